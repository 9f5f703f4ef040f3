"""Options that `load_graph` passes on to the function that opens the graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

import numpy as np

from accelviz.errors import ArgumentError


def checked_options(
    function: Callable[..., Any],
    options: Mapping[str, Any],
    owner: str,
    reserved: Collection[str] = (),
) -> None:
    """Raise an ArgumentError for an option that is not a keyword-only argument of `function`.

    Or for one whose value is not of the type that the signature gives, as far as that is bool, int,
    float, str or None. `owner` says in the message what `function` is: "the reader of .txt
    files". Arguments that are `reserved` are not options.
    """
    known = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.name not in reserved
    ]
    hints = get_type_hints(function) if options else {}
    for option, value in options.items():
        if option not in known:
            expected = ", ".join(known) or "no options"
            raise ArgumentError(option, f"{owner} has no such option", expected)
        hint = hints.get(option, Any)
        allowed = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        if set(allowed) <= _FITS.keys() and not any(_FITS[kind](value) for kind in allowed):
            expected = " or ".join(_NAMES.get(kind, f"a {kind.__name__}") for kind in allowed)
            simple = value is None or isinstance(value, bool | int | float | str)
            text = repr(value) if simple else f"a {type(value).__name__}"
            raise ArgumentError(option, f"got {text}", expected)


#: Type of an option to whether a value is one.
_FITS: dict[Any, Callable[[Any], bool]] = {
    bool: lambda value: isinstance(value, bool | np.bool_),
    int: lambda value: isinstance(value, Integral) and not isinstance(value, bool),
    float: lambda value: isinstance(value, Real) and not isinstance(value, bool),
    str: lambda value: isinstance(value, str),
    NoneType: lambda value: value is None,
}
_NAMES: dict[Any, str] = {bool: "True or False", int: "an integer", NoneType: "None"}
