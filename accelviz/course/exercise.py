"""A learner's own lines, compared with what they should give."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np


def compare(mine: Any, right: Any, *cases: tuple[Any, ...]) -> None:
    """Print whether a learner's function gives what it should, or where it first does not.

    Parameters
    ----------
    mine : callable, or a value
        What the learner wrote. A function that returns None or `...`, or these in place of a value,
        is not written yet.
    right : callable, or a value
        What is right: a function of the same arguments, called when something is there to be
        compared, or the value.
    *cases : tuple
        Arguments of both functions, a tuple a case; each call gets copies of its own.

    Examples
    --------
    >>> def blocks(rows, warps):
    ...     ...  # how many blocks of so many warps do the rows need, one warp a row?
    >>> compare(blocks, lambda rows, warps: -(-rows // warps), (8, 4), (9, 4))
    Not written yet: blocks gives nothing.
    """
    for case in cases or [()]:
        call = name = getattr(mine, "__name__", "yours")
        if cases:
            call = f"{name}({', '.join(map(_short, case))})"
        try:
            got = mine(*copy.deepcopy(case)) if cases else mine
        except Exception as error:  # the learner's own, in a sentence
            print(f"Not yet: {call} raises {type(error).__name__}: {error}")
            return
        if got is None or got is ...:
            print(f"Not written yet: {name} gives nothing.")
            return
        expected = right(*copy.deepcopy(case)) if callable(right) else right
        if problem := _difference(got, expected):
            print(f"Not yet: {call} gives {_short(got)}. {problem}")
            return
    print(f"Right, in all {len(cases)} cases." if len(cases) > 1 else "Right.")


def _difference(got: Any, expected: Any) -> str:
    """Say in what two values differ; "" if they agree."""
    got, expected = (
        each.toarray() if hasattr(each, "toarray") else each for each in (got, expected)
    )
    try:
        found, wanted = np.asarray(got), np.asarray(expected)
    except ValueError:
        return f"Expected: {_short(expected)}."
    if found.shape != wanted.shape:
        return f"Expected: the shape {wanted.shape}, not {found.shape}."
    if wanted.dtype.kind not in "biufc" or found.dtype.kind not in "biufc":
        agree = found == wanted
    else:
        agree = np.isclose(found, wanted, rtol=1e-4, atol=1e-6)
    if np.all(agree):
        return ""
    if wanted.ndim == 0:
        return f"Expected: {_short(expected)}."
    at = tuple(map(int, np.argwhere(~np.asarray(agree))[0]))
    place = at[0] if len(at) == 1 else at
    return f"Expected: {_short(wanted[at])} at {place}, not {_short(found[at])}."


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.ndim:
        return np.array2string(value, threshold=8, edgeitems=3, precision=4, separator=", ")
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    text = str(value) if isinstance(value, np.generic) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
