"""Checks of assignment A1: a counting sort of rows by degree.

The student writes the degree histogram, its exclusive prefix sum (the first place of each degree in
the sorted order), the stable sort, and the inverse of a permutation.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.course.checks import hidden
from accelviz.course.checks.common import case, integers, require, same
from accelviz.course.checks.remote import call_in_submission, link_of, name_of

Lists = Mapping[str, npt.NDArray[np.int32]]
#: Range of the size of the input whose reads are counted; size of the input that is timed.
_COUNTED_ROWS, TIMED_ROWS = (300, 500), 500_000
#: Most reads per element: allows a dozen loops over all elements, but not one loop per element.
MAX_READS = 30
#: Processor seconds for `TIMED_ROWS`; one loop takes half a second, all pairs half a minute.
MAX_SECONDS = 10
#: Names that an answer may not use: comparison sorts, sorted containers, the library's own sorts,
#: and functions that run or look up code by a string.
SORTING = frozenset(
    {
        *("sort", "sorted", "argsort", "lexsort", "partition", "argpartition", "unique", "rank"),
        *("sort_values", "sort_index", "rankdata", "groupby", "heapify", "heappush", "heapq"),
        *("bisect", "insort", "nlargest", "nsmallest", "setdiff1d", "union1d", "intersect1d"),
        *("degree_sort", "sort_by_degree", "windowed_degree_sort", "vertex_order"),
        *("DegreeHistogram", "Permutation", "njit", "jit"),
        *("exec", "eval", "compile", "getattr", "__import__", "import_module", "globals"),
    }
)


def histogram(degree_histogram: Callable[[Any], Any], lists: Lists) -> None:
    """Compare a degree histogram with NumPy's.

    Parameters
    ----------
    degree_histogram : callable
        The student's: maps degrees to the number of rows of each degree from 0 to the largest.
    lists : mapping of str to array of int32
        Degrees, by name of the case.
    """
    _compare("counts", degree_histogram, lists, _counts)


def first_places(first_places: Callable[[Any], Any], lists: Lists) -> None:
    """Compare an exclusive prefix sum of each list's histogram with NumPy's; see `histogram`."""
    counts = {name: _counts(degrees) for name, degrees in lists.items()}
    for array in counts.values():
        array.setflags(write=False)
    _compare("places", first_places, counts, lambda array: np.cumsum(array) - array)


def ascending(counting_sort: Callable[[Any], Any], lists: Lists) -> None:
    """Require a permutation, stable or not, into ascending degrees; see `histogram`."""
    for name, degrees in lists.items():
        with case(name):
            _check_ascending(degrees, counting_sort(degrees))


def stable(counting_sort: Callable[[Any], Any], lists: Lists) -> None:
    """Require ascending degrees with rows of equal degree in their old order; see `histogram`."""
    _compare("order", counting_sort, lists, partial(np.argsort, kind="stable"))


def inverse(inverse_permutation: Callable[[Any], Any], orders: Lists) -> None:
    """Require the inverse permutation, `place[order[i]] = i`; see `histogram`."""
    _compare("place", inverse_permutation, orders, np.argsort)


def _compare(
    name: str, function: Callable[[Any], Any], inputs: Mapping[str, Any], reference: Any
) -> None:
    for input_name, array in inputs.items():
        with case(input_name):
            same(name, function(array), reference(array))


def linear_sort(counting_sort: Callable[[Any], Any], seed: int) -> None:
    """Require O(rows + largest degree) reads and time, and no comparison sort."""
    _linear(
        counting_sort,
        lambda rows: hidden.sized_degrees(rows, rows // 2, seed),
        _check_ascending,
        seed,
    )


def linear_inverse(inverse_permutation: Callable[[Any], Any], seed: int) -> None:
    """Require O(rows) reads and time, and no comparison sort; see `linear_sort`."""
    _linear(
        inverse_permutation,
        lambda rows: hidden.generator(seed).permutation(rows).astype(np.int32),
        lambda order, result: same("place", result, np.argsort(order)),
        seed,
    )


def _linear(
    function: Callable[[Any], Any],
    make_input: Callable[[int], npt.NDArray[Any]],
    check: Callable[[npt.NDArray[Any], Any], None],
    seed: int,
) -> None:
    link = link_of(function)
    if used := sorted(_names_used_by(name_of(function), link.cells if link else ()) & SORTING):
        raise AssertionError(f"it uses {', '.join(used)}; count instead")
    small = make_input(int(hidden.generator(seed).integers(*_COUNTED_ROWS, endpoint=True)))
    result, reads = call_in_submission(
        function, "accelviz.course.counted:call_counting_reads", small
    )
    check(small, result)
    require(
        reads <= MAX_READS * small.size,
        f"{small.size:,} elements are read {reads:,} times, which is {reads / small.size:.0f} "
        f"times each; at most {MAX_READS} may be",
    )
    large = make_input(TIMED_ROWS)
    processor_seconds = link.processor_seconds if link else time.process_time
    begin = processor_seconds()
    check(large, function(large))
    seconds = processor_seconds() - begin
    require(
        seconds <= MAX_SECONDS,
        f"{TIMED_ROWS:,} elements take {seconds:.0f} s of processor time; {MAX_SECONDS} are more "
        "than any linear way needs",
    )


def _names_used_by(function: str, cells: Iterable[str]) -> set[str]:
    """Return the names in the cells that define a function and the functions that it calls.

    These are attributes, imported names, and variables that the cells read but do not bind.
    """
    trees = []
    for cell in cells:
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            trees.append(ast.parse(cell))
    functions, loaded, bound, other = {function}, set[str](), set[str](), set[str]()
    while defining := [tree for tree in trees if functions & _functions_in(tree)]:
        trees = [tree for tree in trees if tree not in defining]
        bound.update(*map(_functions_in, defining))
        for node in itertools.chain.from_iterable(map(ast.walk, defining)):
            match node:
                case ast.arg(arg=name):
                    bound.add(name)
                case ast.Name(id=name, ctx=ast.Load()):
                    loaded.add(name)
                case ast.Name(id=name):
                    bound.add(name)
                case ast.Attribute(attr=name):
                    other.add(name)
                case ast.alias(name=name):
                    other.add(name.rpartition(".")[2])
        functions |= loaded
    return loaded - bound | other


def _functions_in(tree: ast.Module) -> set[str]:
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def _counts(degrees: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    return np.bincount(degrees, minlength=1).astype(np.int64)


def _check_ascending(degrees: npt.NDArray[Any], result: Any) -> None:
    order = integers("order", result, degrees.shape)
    is_permutation = np.array_equal(np.sort(order), np.arange(degrees.size))
    require(is_permutation, f"order is no permutation: each of 0 to {degrees.size - 1} once is")
    require(np.all(np.diff(degrees[order]) >= 0), "degrees[order] is not ascending")
