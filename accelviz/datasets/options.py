"""Options that `load_graph` passes on to the function that opens the graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from accelviz.errors import ArgumentError


def checked_options(
    function: Callable[..., Any],
    options: Mapping[str, Any],
    what: str,
    reserved: Collection[str] = (),
) -> None:
    """Raise an ArgumentError for an option that is not a keyword-only argument of `function`.

    `what` says in the message what `function` opens: "the reader of .txt files". Arguments that are
    `reserved` are not options.
    """
    known = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.name not in reserved
    ]
    for option in options:
        if option not in known:
            expected = ", ".join(known) or "no options"
            raise ArgumentError(option, f"{what} has no such option", expected)
