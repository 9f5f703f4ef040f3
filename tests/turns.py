"""What of many cases runs each day; the rest are `long`, and run before a release."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def in_turn(
    values: Iterable[Any],
    every: int,
    *,
    first: int = 0,
    name: Callable[[Any], str | None] | None = None,
    always: Callable[[Any], bool] = lambda value: False,
) -> list[Any]:
    """Cases for `parametrize`: of all of them, every so-many-th, from `first` on, runs each day.

    So do those of which `always` says so. A tuple has several arguments. `name` says what a case is
    called.
    """
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            id=name(value) if name else None,
            marks=() if i % every == first or always(value) else pytest.mark.long,
        )
        for i, value in enumerate(values)
    ]
