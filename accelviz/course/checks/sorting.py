"""Checks of assignment A1: a counting sort of rows by degree.

The student writes the degree histogram, its exclusive prefix sum (the first place of each degree in
the sorted order), the stable sort, and the inverse of a permutation.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.course.checks import hidden
from accelviz.course.checks.common import case, integers, remarks, require, same
from accelviz.course.checks.remote import RIGHT_HELPERS, charged_once, link_of

Lists = Mapping[str, npt.NDArray[np.int32]]
#: Sizes of the inputs that are timed, each four times the one before, and most processor seconds
#: for the last: one loop takes half a second, all pairs half a minute.
TIMED_ROWS, MAX_SECONDS = (8_000, 32_000, 128_000, 512_000), 10.0
#: Largest growth of the processor time from one size to the next, a linear way's 4 with a reserve
#: for caches and a busy machine; seconds that do not count, as they are mostly noise.
MAX_GROWTH, NOISE_SECONDS = 8, 0.4
#: Words of a submission's cells that a person should look at, as they are of sorts by comparison.
_SORTS = frozenset(
    {
        *("sort", "sorted", "argsort", "lexsort", "argpartition", "unique", "rank"),
        *("sort_values", "sort_index", "rankdata", "groupby", "heapify", "heappush", "heapq"),
        *("bisect", "insort", "nlargest", "nsmallest", "setdiff1d", "union1d", "intersect1d"),
        *("sort_by_degree", "DegreeHistogram", "njit", "jit", "ctypes", "cffi", "subprocess"),
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
    _compare("places", first_places, counts, _places)


@charged_once("degree_histogram", "first_places")
def ascending(counting_sort: Callable[[Any], Any], lists: Lists) -> None:
    """Require a permutation, stable or not, into ascending degrees; see `histogram`."""
    for name, degrees in lists.items():
        with case(name):
            _check_ascending(degrees, counting_sort(degrees))


@charged_once("degree_histogram", "first_places")
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


@charged_once("degree_histogram", "first_places")
def linear_sort(counting_sort: Callable[[Any], Any], seed: int) -> None:
    """Require processor time that grows as rows + largest degree do.

    A compiled sort by comparison is as fast, and one may waste time on small inputs, so words that
    may be of one become a remark.
    """
    # a second attempt (`charged_once`) must not know the inputs of the first
    seed += len(getattr(link_of(counting_sort), "replaced", ()))
    _linear(
        counting_sort,
        lambda rows: hidden.sized_degrees(rows, rows // 2, seed),
        _check_ascending,
    )


def linear_inverse(inverse_permutation: Callable[[Any], Any], seed: int) -> None:
    """Require processor time that grows as the rows do; see `linear_sort`."""
    _linear(
        inverse_permutation,
        lambda rows: hidden.generator(seed).permutation(rows).astype(np.int32),
        lambda order, result: same("place", result, np.argsort(order)),
    )


def _linear(
    function: Callable[[Any], Any],
    make_input: Callable[[int], npt.NDArray[Any]],
    check: Callable[[npt.NDArray[Any], Any], None],
) -> None:
    link = link_of(function)
    text = " ".join(link.cells) if link else ""
    if used := sorted(_SORTS & {*re.findall(r"\w+", text)}):
        remarks.append(f"look at it, no points were taken: its cells say {', '.join(used)}")
    processor_seconds = link.processor_seconds if link else time.process_time
    limit, previous = MAX_SECONDS, f"at most {MAX_SECONDS:g} s"
    for rows in TIMED_ROWS:
        array, begin = make_input(rows), processor_seconds()
        result = function(array)
        seconds = processor_seconds() - begin
        check(array, result)
        require(
            seconds <= limit,
            f"{rows:,} elements take {seconds:.1f} s of processor time, and should take {previous}",
        )
        limit = min(MAX_SECONDS, MAX_GROWTH * seconds + NOISE_SECONDS)
        previous = f"about 4 times the {seconds:.2f} s of {rows:,}, as in a linear way"


def _counts(degrees: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    return np.bincount(degrees, minlength=1).astype(np.int64)


def _places(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.cumsum(counts) - counts


RIGHT_HELPERS |= {"degree_histogram": _counts, "first_places": _places}


def _check_ascending(degrees: npt.NDArray[Any], result: Any) -> None:
    order = integers("order", result, degrees.shape)
    is_permutation = np.array_equal(np.sort(order), np.arange(degrees.size))
    require(is_permutation, f"order is no permutation: each of 0 to {degrees.size - 1} once is")
    require(np.all(np.diff(degrees[order]) >= 0), "degrees[order] is not ascending")
