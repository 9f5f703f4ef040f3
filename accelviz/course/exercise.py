"""A learner's own lines, compared with what they should give."""

from __future__ import annotations

import copy
import dis
import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

#: Numbers of a matrix that a message shows; of a larger one it says the shape.
_MOST_SHOWN = 24
#: What multiplies: operators of Python, and by their names the functions that do the same.
PRODUCTS = frozenset(
    {
        *("*", "@", "mul", "prod", "sumprod", "multiply", "matmul"),
        *("dot", "vdot", "vecdot", "inner", "einsum", "tensordot"),
    }
)


@dataclass(frozen=True)
class sealed:  # noqa: N801 - reads as a function in a lesson
    """An answer that `compare` can check and nobody can read: numbers, by a digest of them."""

    #: `seal(answer, digits)`, and the decimals to which both are rounded.
    digest: str
    digits: int = 2


def seal(answer: Any, digits: int = 2) -> str:
    """Return the digest of a number or of an array of numbers, rounded to so many decimals."""
    numbers = np.round(np.asarray(answer, dtype=float), digits) + 0.0  # no -0
    text = f"{numbers.shape} {numbers.ravel().tolist()}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def compare(
    mine: Any,
    reference: Any,
    *cases: tuple[Any, ...],
    unless: str | None = None,
    without: Collection[str] = (),
) -> None:
    """Print whether a learner's function gives what it should, or where it first does not.

    Parameters
    ----------
    mine : callable, or a value
        What the learner wrote. A function that returns None or `...`, or these in place of a value,
        is not written yet.
    reference : callable, or a value
        What is right: a function of the same arguments, called when something is there to be
        compared, or the value. A `sealed` value is not told.
    *cases : tuple
        Arguments of both functions, a tuple a case; each call gets copies of its own.
    unless : str, optional
        Why it cannot be checked here, such as `find_device("emulator").unavailable_reason()`. That
        is printed, and nothing is compared.
    without : collection of str, optional
        Operators and names that the learner's function may not have, such as `PRODUCTS`.

    Examples
    --------
    >>> def blocks(rows, warps):
    ...     ...  # how many blocks of so many warps do the rows need, one warp a row?
    >>> compare(blocks, lambda rows, warps: -(-rows // warps), (8, 4), (9, 4))
    Not written yet: blocks gives nothing.
    """
    if unless:
        print(f"Not checked: {unless}")
        return
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
        expected = reference(*copy.deepcopy(case)) if callable(reference) else reference
        if problem := _difference(got, expected):
            print(f"Not yet: {call} gives{_whole(got)}{problem}")
            return
    if used := sorted(_used(mine) & set(without)):
        print(f"Not yet: the results are right, but {name} has {', '.join(used)}. Do it without.")
        return
    print(f"Right, in all {len(cases)} cases." if len(cases) > 1 else "Right.")


def _difference(got: Any, expected: Any) -> str:
    """Say in what two values differ; "" if they agree."""
    if isinstance(expected, sealed):
        try:
            agree = seal(got, expected.digits) == expected.digest
        except (TypeError, ValueError):
            return "Expected: numbers."
        return "" if agree else "That is not it."
    try:
        result, wanted = (
            np.asarray(value.toarray() if hasattr(value, "toarray") else value)
            for value in (got, expected)
        )
    except ValueError:
        return f"Expected: {_short(expected)}."
    if result.shape != wanted.shape:
        expectation = f"the shape {wanted.shape}" if wanted.ndim else "a single value"
        return f"Expected: {expectation}, not {result.shape or 'a single value'}."
    numbers = {wanted.dtype.kind, result.dtype.kind} <= {*"biufc"}
    agree = np.isclose(result, wanted, rtol=1e-4, atol=1e-6) if numbers else result == wanted
    if np.all(agree):
        return ""
    if wanted.ndim == 0:
        return f"Expected: {_short(expected)}."
    at = tuple(map(int, np.argwhere(~np.asarray(agree))[0]))
    index = at[0] if len(at) == 1 else at
    return f"Expected: {_short(wanted[at])} at {index}, not {_short(result[at])}."


def _used(function: Any) -> set[str]:
    """Return the operators of a function and the names of what is not local, or its own name."""

    def of(code: CodeType) -> set[str]:
        steps = [step for step in dis.get_instructions(code) if step.opname == "BINARY_OP"]
        operators = {step.argrepr.removesuffix("=") for step in steps}
        inner = (of(constant) for constant in code.co_consts if isinstance(constant, CodeType))
        return operators.union(code.co_names, *inner)

    code = getattr(function, "__code__", None)
    return of(code) if code else {getattr(function, "__name__", "")}


def _whole(value: Any) -> str:
    """Write down a result, with nothing cut off that a person still reads."""
    if hasattr(value, "to_numpy"):  # a table, in lines of its own
        return f"\n{value}\n"
    return f" {_short(value, 400, _MOST_SHOWN)}. "


def _short(value: Any, letters: int = 60, numbers: int = 8) -> str:
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, np.ndarray) and value.ndim > 1 and value.size > _MOST_SHOWN:
        return f"<array of {' x '.join(map(str, value.shape))}>"
    if isinstance(value, np.ndarray) and value.ndim:
        return np.array2string(value, threshold=numbers, edgeitems=3, precision=4, separator=", ")
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    with np.printoptions(legacy="1.25"):  # 9 in a list, not np.int64(9)
        text = " ".join(str(value if isinstance(value, np.generic) else repr(value)).split())
    return text if len(text) <= letters else f"{text[: letters - 3]}..."
