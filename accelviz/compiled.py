"""Compilation of Python functions by Numba, whose results are cached where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return the decorator `numba.njit` with a cache on disk, or without if no folder is writable.

    Numba raises an error at import if neither the package's folder nor the user's cache is.
    """

    def compile_function(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:
            return numba.njit(**options)(function)

    return compile_function
