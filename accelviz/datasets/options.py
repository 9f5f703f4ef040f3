"""Check of keyword options against the signature of the function that gets them."""

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
    """Raise an ArgumentError for an unknown option or a value of the wrong type.

    Options are the keyword-only arguments of `function` except `reserved` ones. Types are checked
    if the annotation consists of bool, int, float, str and None. `owner` is the name of `function`
    in the message, such as "the reader of .txt files".
    """
    names = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.name not in reserved
    ]
    hints = get_type_hints(function) if options else {}
    for option, value in options.items():
        if option not in names:
            expected = ", ".join(names) or "no options"
            raise ArgumentError(option, f"{owner} has no such option", expected)
        hint = hints.get(option, Any)
        allowed = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        if set(allowed) <= _CHECKS.keys() and not any(_CHECKS[kind](value) for kind in allowed):
            expected = " or ".join(_NAMES.get(kind, f"a {kind.__name__}") for kind in allowed)
            simple = value is None or isinstance(value, bool | int | float | str)
            text = repr(value) if simple else f"a {type(value).__name__}"
            raise ArgumentError(option, f"got {text}", expected)


#: For each type of an option, a function that returns whether a value has it.
_CHECKS: dict[Any, Callable[[Any], bool]] = {
    bool: lambda value: isinstance(value, bool | np.bool_),
    int: lambda value: isinstance(value, Integral) and not isinstance(value, bool),
    float: lambda value: isinstance(value, Real) and not isinstance(value, bool),
    str: lambda value: isinstance(value, str),
    NoneType: lambda value: value is None,
}
_NAMES: dict[Any, str] = {bool: "True or False", int: "an integer", NoneType: "None"}
