"""Exercises of lessons: compares the results of a learner's function with the right ones."""

from __future__ import annotations

import copy
import dis
import hashlib
import itertools
from collections.abc import Collection, ItemsView, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np
from scipy import sparse

#: Largest number of elements of a matrix that a message shows; a larger one is shown as its shape.
_MAX_SHOWN = 24
#: Most elements that are taken from a generator, which may have no end.
_MAX_LISTED = 100_000
#: Operators and functions that multiply, for exercises that exclude them.
PRODUCTS = frozenset(
    {
        *("*", "@", "** 2", "mul", "prod", "sumprod", "multiply", "matmul"),
        *("dot", "vdot", "vecdot", "inner", "outer", "kron", "einsum", "tensordot"),
        *("convolve", "correlate", "cumprod", "square", "imul", "imatmul"),
        *("__mul__", "__rmul__", "__imul__", "__matmul__", "__rmatmul__", "__imatmul__"),
    }
)

#: Hints of the lessons' sealed answers by digest, with which a message about a wrong one ends.
HINTS = {
    "eeb734fb": "The rival is `best`, the columns are [64], and the natural order comes first.",
    "e92b84dd": "Renumber `rabbit`, so that the windows sort rows of Rabbit's order.",
    "9df1c951": "A gain is the MB with tiles of 128 columns over those with tiles of 64. Before "
    "the blocks are in order, the order is 'degree'; after, 'place'.",
}


@dataclass(frozen=True)
class sealed:  # noqa: N801 - reads as a function in a lesson
    """Digest of a right answer, which `compare` can check without revealing the answer."""

    #: `seal(answer, digits)`, and the number of decimals that are compared.
    digest: str
    digits: int = 2


def seal(answer: Any, digits: int = 2) -> str:
    """Return a digest of a number or an array of numbers, rounded to `digits` decimals."""
    numbers = np.round(np.asarray(answer, dtype=float), digits) + 0.0  # -0.0 becomes 0.0
    text = f"{numbers.shape} {numbers.ravel().tolist()}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def compare(
    mine: Any,
    reference: Any,
    *cases: tuple[Any, ...],
    unless: str | None = None,
    without: Collection[str] = (),
) -> None:
    """Print whether a learner's result is right, or the first case in which it is wrong.

    Parameters
    ----------
    mine : callable or object
        The learner's function or value. A result of None or `...` counts as not written yet.
    reference : callable or object
        The right function, of the same arguments, or the right value. The message does not show a
        `sealed` value.
    *cases : tuple
        Arguments of both functions, one tuple for each case; see `known`. Each call gets its own
        copies, and a learner's function must not change arrays among them.
    unless : str, optional
        Reason why it cannot be checked, such as `find_device("emulator").unavailable_reason()`. It
        is printed, and nothing is compared.
    without : collection of str, optional
        Operators and names that the learner's function may not use, such as `PRODUCTS`.

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
        arguments = copy.deepcopy(case)
        try:
            result = _listed(mine(*arguments) if cases else mine)
        except Exception as error:  # the learner's code may raise anything
            print(f"Not yet: {call} raises {type(error).__name__}: {error}")
            return
        if result is None or result is ...:
            print(f"Not written yet: {name} gives nothing.")
            return
        expected = reference(*copy.deepcopy(case)) if callable(reference) else reference
        if problem := _difference(result, expected):
            print(f"Not yet: {call} gives{_long(result)}{problem}".rstrip())
            return
        changed = [
            number
            for number, (after, before) in enumerate(zip(arguments, case, strict=True), 1)
            if isinstance(before, np.ndarray)
            and not np.array_equal(after, before, equal_nan=before.dtype.kind in "fc")
        ]
        if changed:
            print(f"Not yet: {call} is right, but {name} changes its argument {changed[0]}.")
            return
    if cases and _is_reference(mine, reference):
        calls = f"calls {reference.__name__}, which it is compared with"
        print(f"Not yet: the results are right, but {name} {calls}. Write it yourself.")
        return
    if used := sorted(_used(mine) & set(without)):
        print(f"Not yet: the results are right, but {name} has {', '.join(used)}. Do it without.")
        return
    print(f"Right, in all {len(cases)} cases." if len(cases) > 1 else "Right.")


def _listed(result: Any) -> Any:
    """Return a list of what a generator, `map`, `zip`, a dictionary or a view of one holds.

    Of a dictionary these are the values, as of a pandas Series.
    """
    if isinstance(result, Mapping):
        return list(result.values())
    if isinstance(result, Iterator | KeysView | ValuesView | ItemsView):
        return list(itertools.islice(result, _MAX_LISTED))
    return result


def _difference(result: Any, expected: Any) -> str:
    """Describe the difference between two values, "" if they agree."""
    if isinstance(expected, sealed):
        try:
            numbers = _as_floats(np.asarray(result))
        except ValueError:  # rows of unequal lengths
            return f"Expected: numbers. {HINTS.get(expected.digest, '')}"
        if numbers.dtype.kind not in "biuf":
            return f"Expected: numbers. {HINTS.get(expected.digest, '')}"
        digests = {seal(array, expected.digits) for array in (numbers, np.squeeze(numbers))}
        hint = HINTS.get(expected.digest, "")
        return "" if expected.digest in digests else f"That is not it. {hint}"
    if isinstance(expected, tuple) and any(isinstance(part, np.ndarray) for part in expected):
        if not isinstance(result, (tuple, list)) or len(result) != len(expected):
            return f"Expected: {len(expected)} results."
        problems = [_difference(*pair) for pair in zip(result, expected, strict=True)]
        return next((f"Result {n}: {text}" for n, text in enumerate(problems, 1) if text), "")
    try:
        actual, target = (
            np.asarray(value.toarray() if sparse.issparse(value) else value)
            for value in (result, expected)
        )
    except ValueError:
        return f"Expected: {_short(expected)}."
    if target.ndim < 2 and np.squeeze(actual).shape == np.squeeze(target).shape:
        actual = actual.reshape(target.shape)  # one number in a list is that number
    if actual.shape != target.shape:
        shape = f"the shape {target.shape}" if target.ndim else "a single value"
        return f"Expected: {shape}, not {actual.shape or 'a single value'}."
    actual = _as_floats(actual)
    are_numbers = {target.dtype.kind, actual.dtype.kind} <= {*"biufc"}
    agree = np.isclose(actual, target, rtol=1e-4, atol=1e-6) if are_numbers else actual == target
    if np.all(agree):
        return ""
    is_fraction = are_numbers and target.dtype.kind == "f"
    if is_fraction and any(np.array_equal(actual, np.round(target, n)) for n in range(1, 5)):
        return "Yours is rounded. Expected: all digits."
    if target.ndim == 0:
        return f"Expected: {_short(expected)}."
    position = tuple(map(int, np.argwhere(~np.asarray(agree))[0]))
    index = position[0] if len(position) == 1 else position
    return f"Expected: {_short(target[position])} at {index}, not {_short(actual[position])}."


def _as_floats(array: Any) -> Any:
    """Convert an array of Python's fractions, decimals or other real numbers to floats."""
    if array.dtype.kind != "O" or not all(hasattr(element, "__float__") for element in array.flat):
        return array
    try:
        return array.astype(float)
    except (TypeError, ValueError, OverflowError):
        return array


def _is_reference(mine: Any, reference: Any) -> bool:
    """Return whether a learner's function is the reference, or calls it by a global name."""
    names = getattr(mine, "__globals__", {})
    return mine is reference or any(names.get(name) is reference for name in _used(mine))


def _used(function: Any) -> set[str]:
    """Return the operators, globals and attributes that a function uses.

    For a function without Python code, return its own name.
    """

    def used_by(code: CodeType) -> set[str]:
        operators, last = set(), None
        for step in dis.get_instructions(code):
            if step.opname == "BINARY_OP":
                operator = step.argrepr.removesuffix("=")
                operators.add("** 2" if operator == "**" and last == 2 else operator)
            last = step.argval if step.opname.startswith("LOAD_") else None
        nested = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        return operators.union(code.co_names, *map(used_by, nested))

    code = getattr(function, "__code__", None)
    return used_by(code) if code else {getattr(function, "__name__", "")}


def _long(value: Any) -> str:
    """Return a result as text, a table in lines of its own."""
    if hasattr(value, "to_numpy"):
        return f"\n{value}\n"
    return f" {_short(value, 400, _MAX_SHOWN)}. "


def _short(value: Any, max_length: int = 60, max_elements: int = 8) -> str:
    if sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, np.ndarray) and value.ndim > 1 and value.size > _MAX_SHOWN:
        return f"<array of {' x '.join(map(str, value.shape))}>"
    if isinstance(value, np.ndarray) and value.ndim:
        return np.array2string(
            value, threshold=max_elements, edgeitems=3, precision=4, separator=", "
        )
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    with np.printoptions(legacy="1.25"):  # 9 in a list, not np.int64(9)
        text = " ".join(str(value if isinstance(value, np.generic) else repr(value)).split())
    return text if len(text) <= max_length else f"{text[: max_length - 3]}..."
