"""Options that `load_graph` passes on to whatever opens the graph."""

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
    """Refuse options that are no keyword-only argument of `function`.

    Parameters
    ----------
    function : callable
        That opens the graph.
    options : mapping
        Names and values to be passed on.
    what : str
        What `function` opens, for the message: "the reader of .txt files".
    reserved : collection of str
        Keyword-only arguments that are not the caller's to set.

    Raises
    ------
    ArgumentError
        Naming the first unknown option and those there are.
    """
    known = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.name not in reserved
    ]
    for option in options:
        if option not in known:
            raise ArgumentError(
                option, f"{what} has no such option", ", ".join(known) or "no options"
            )
