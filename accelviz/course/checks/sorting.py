"""Assignment A1: a counting sort by degree."""

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
from accelviz.course.checks.remote import call_beside, link_of, name_of

Lists = Mapping[str, npt.NDArray[np.int32]]
#: Fewest rows of the input whose reads are counted, and most; rows of the input that is timed.
_ROWS, MANY_ROWS = (300, 500), 500_000
#: Reads of each element: a dozen of loops, and less than a walk through all of them for each.
MOST_READS = 30
#: Processor time for `MANY_ROWS`: a loop over them takes half a second, all pairs half a minute.
MOST_SECONDS = 10
#: What sorts by comparing, keeps things sorted, does it for you, or runs what no cell shows.
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
    """Hold a degree histogram to NumPy's.

    Parameters
    ----------
    degree_histogram : callable
        The student's: degrees to rows of each degree from 0 to the largest.
    lists : mapping of str to array of int32
        Degrees, by name.
    """
    _hold("counts", degree_histogram, lists, _counts)


def first_places(first_places: Callable[[Any], Any], lists: Lists) -> None:
    """Hold a prefix sum, of the right histogram of each list, to NumPy's; see `histogram`."""
    counts = {name: _counts(degrees) for name, degrees in lists.items()}
    for array in counts.values():
        array.setflags(write=False)
    _hold("places", first_places, counts, lambda array: np.cumsum(array) - array)


def ascending(counting_sort: Callable[[Any], Any], lists: Lists) -> None:
    """Ask only for a permutation that puts the degrees in ascending order; see `histogram`."""
    for name, degrees in lists.items():
        with case(name):
            _check_ascending(degrees, counting_sort(degrees))


def stable(counting_sort: Callable[[Any], Any], lists: Lists) -> None:
    """Ask for rows of equal degree in their old order, too; see `histogram`."""
    _hold("order", counting_sort, lists, partial(np.argsort, kind="stable"))


def inverse(inverse_permutation: Callable[[Any], Any], orders: Lists) -> None:
    """Hold an inverse permutation to the definition: `place[order[i]] = i`; see `histogram`."""
    _hold("place", inverse_permutation, orders, np.argsort)


def _hold(
    name: str, function: Callable[[Any], Any], inputs: Mapping[str, Any], expected: Any
) -> None:
    for input_name, array in inputs.items():
        with case(input_name):
            same(name, function(array), expected(array))


def linear_sort(counting_sort: Callable[[Any], Any], seed: int) -> None:
    """Ask for O(rows + largest degree) reads and time, and no sorting by comparison."""
    _linear(
        counting_sort,
        lambda rows: hidden.sized_degrees(rows, rows // 2, seed),
        _check_ascending,
        seed,
    )


def linear_inverse(inverse_permutation: Callable[[Any], Any], seed: int) -> None:
    """Ask for O(rows) reads and time, and no sorting by comparison; see `linear_sort`."""
    _linear(
        inverse_permutation,
        lambda rows: hidden.generator(seed).permutation(rows).astype(np.int32),
        lambda order, result: same("place", result, np.argsort(order)),
        seed,
    )


def _linear(
    function: Callable[[Any], Any],
    make: Callable[[int], npt.NDArray[Any]],
    check: Callable[[npt.NDArray[Any], Any], None],
    seed: int,
) -> None:
    link = link_of(function)
    if used := sorted(_used_by(name_of(function), link.cells if link else ()) & SORTING):
        raise AssertionError(f"it uses {', '.join(used)}; count instead")
    small = make(int(hidden.generator(seed).integers(*_ROWS, endpoint=True)))
    result, reads = call_beside(function, "accelviz.course.counted:called_counting", small)
    check(small, result)
    require(
        reads <= MOST_READS * small.size,
        f"{small.size:,} elements are read {reads:,} times, which is {reads / small.size:.0f} "
        f"times each; at most {MOST_READS} may be",
    )
    large = make(MANY_ROWS)
    clock = link.processor_seconds if link else time.process_time
    begin = clock()
    check(large, function(large))
    seconds = clock() - begin
    require(
        seconds <= MOST_SECONDS,
        f"{MANY_ROWS:,} elements take {seconds:.0f} s of processor time; {MOST_SECONDS} are more "
        "than any linear way needs",
    )


def _used_by(name: str, cells: Iterable[str]) -> set[str]:
    """Return the names in the cells that define a function, and those that it calls, are made of.

    Names that these cells bind themselves are left out; attributes and imports are not.
    """
    trees = []
    for cell in cells:
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            trees.append(ast.parse(cell))
    wanted, names, bound, always = {name}, set[str](), set[str](), set[str]()
    while chosen := [tree for tree in trees if wanted & _defined(tree)]:
        trees = [tree for tree in trees if tree not in chosen]
        bound.update(*map(_defined, chosen))
        for node in itertools.chain.from_iterable(map(ast.walk, chosen)):
            match node:
                case ast.arg(arg=name):
                    bound.add(name)
                case ast.Name(id=name, ctx=ast.Load()):
                    names.add(name)
                case ast.Name(id=name):
                    bound.add(name)
                case ast.Attribute(attr=name):
                    always.add(name)
                case ast.alias(name=name):
                    always.add(name.rpartition(".")[2])
        wanted |= names
    return names - bound | always


def _defined(tree: ast.Module) -> set[str]:
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def _counts(degrees: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    return np.bincount(degrees, minlength=1).astype(np.int64)


def _check_ascending(degrees: npt.NDArray[Any], result: Any) -> None:
    order = integers("order", result, degrees.shape)
    once = np.array_equal(np.sort(order), np.arange(degrees.size))
    require(once, f"order is no permutation: each of 0 to {degrees.size - 1} once is")
    require(np.all(np.diff(degrees[order]) >= 0), "degrees[order] is not ascending")
