"""Assignment A1: a counting sort by degree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.course.checks import hidden
from accelviz.course.checks.common import case, integers, require, same
from accelviz.course.checks.steps import linear

Lists = Mapping[str, npt.NDArray[np.int32]]
#: Fewest rows of the smaller input that steps are counted on, and most.
_ROWS = (300, 500)


def histogram(degree_histogram: Callable[[Any], Any], lists: Lists) -> None:
    """Hold a degree histogram to NumPy's.

    Parameters
    ----------
    degree_histogram : callable
        The student's: degrees to rows of each degree from 0 to the largest.
    lists : mapping of str to array of int32
        Degrees, by name.

    Raises
    ------
    AssertionError
        Naming the first difference.
    """
    for name, degrees in lists.items():
        with case(name):
            same("counts", degree_histogram(degrees), _counts(degrees))


def first_places(first_places: Callable[[Any], Any], lists: Lists) -> None:
    """Hold a prefix sum, of the right histogram of each list, to NumPy's; see `histogram`."""
    for name, degrees in lists.items():
        with case(name):
            counts = _counts(degrees)
            expected = np.cumsum(counts) - counts
            counts.setflags(write=False)
            same("places", first_places(counts), expected)


def ascending(counting_sort: Callable[[Any], Any], lists: Lists) -> None:
    """Ask only for a permutation that puts the degrees in ascending order; see `histogram`."""
    for name, degrees in lists.items():
        with case(name):
            _ascending(counting_sort, degrees)


def stable(counting_sort: Callable[[Any], Any], lists: Lists) -> None:
    """Ask for rows of equal degree in their old order, too; see `histogram`."""
    for name, degrees in lists.items():
        with case(name):
            same("order", counting_sort(degrees), np.argsort(degrees, kind="stable"))


def inverse(inverse_permutation: Callable[[Any], Any], orders: Lists) -> None:
    """Hold an inverse permutation to the definition: `place[order[i]] = i`; see `histogram`."""
    for name, order in orders.items():
        with case(name):
            _inverse(inverse_permutation, order)


def linear_sort(counting_sort: Callable[[Any], Any], seed: int) -> None:
    """Ask for O(rows + largest degree) steps and no sorting by comparison; see `steps.linear`."""
    rows = _rows(seed)
    linear(
        counting_sort,
        lambda scale: hidden.sized_degrees(scale * rows, scale * rows // 2, seed),
        _ascending,
    )


def linear_inverse(inverse_permutation: Callable[[Any], Any], seed: int) -> None:
    """Ask for O(rows) steps and no sorting by comparison; see `steps.linear`."""
    rows = _rows(seed)

    def order(scale: int) -> npt.NDArray[np.int32]:
        return hidden.generator(seed).permutation(scale * rows).astype(np.int32)

    linear(inverse_permutation, order, _inverse)


def _rows(seed: int) -> int:
    return int(hidden.generator(seed).integers(*_ROWS, endpoint=True))


def _counts(degrees: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    return np.bincount(degrees, minlength=1).astype(np.int64)


def _ascending(counting_sort: Callable[[Any], Any], degrees: npt.NDArray[Any]) -> None:
    order = integers("order", counting_sort(degrees), degrees.shape)
    once = np.array_equal(np.sort(order), np.arange(degrees.size))
    require(once, f"order is no permutation: each of 0 to {degrees.size - 1} once is")
    require(np.all(np.diff(degrees[order]) >= 0), "degrees[order] is not ascending")


def _inverse(inverse_permutation: Callable[[Any], Any], order: npt.NDArray[Any]) -> None:
    same("place", inverse_permutation(order), np.argsort(order))
