"""How unequal the rows of a graph are, counted from its degree histogram."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.arrays import Longs
from accelviz.errors import ArgumentError


@dataclass(frozen=True)
class LongestRows:
    """The longest rows of a graph, and what part of its work they are.

    Attributes
    ----------
    rows : int
        How many they are, at least 1 where there is a row.
    n_rows : int
        Rows in all.
    share : float
        Share of the nonzeros that they hold, 0 to 1.
    degree : int
        Nonzeros of the shortest of them.
    """

    rows: int
    n_rows: int
    share: float
    degree: int


def checked_histogram(degrees: npt.ArrayLike, rows: npt.ArrayLike) -> tuple[Longs, Longs]:
    """Return a degree histogram as two int64 arrays, shape (k,).

    Raises
    ------
    ArgumentError
        If they are not two 1-D arrays of one length, `degrees` not negative and ascending, `rows`
        not negative.
    """
    checked = np.atleast_1d(degrees, rows)
    if checked[0].shape != checked[1].shape or checked[0].ndim != 1:
        problem = f"shape {checked[1].shape} beside degrees of shape {checked[0].shape}"
        raise ArgumentError("rows", problem, "two 1-D arrays of one length, as of DegreeHistogram")
    for name, values in zip(("degrees", "rows"), checked, strict=True):
        if values.size and (values.dtype.kind not in "iu" or values.min() < 0):
            raise ArgumentError(name, f"{values.dtype}, or one below 0", "integers from 0 up")
    if (np.diff(checked[0].astype(np.int64)) <= 0).any():
        raise ArgumentError("degrees", "not ascending", "each degree once, the smallest first")
    return checked[0].astype(np.int64), checked[1].astype(np.int64)


def logarithmic_bins(degrees: Longs, rows: Longs) -> pd.DataFrame:
    """Count rows in ranges of degrees, four to each doubling; rows of degree 0 are left out.

    As long as four would be narrower than one degree there are fewer.

    Parameters
    ----------
    degrees, rows : arrays of int64, shape (k,)
        The degrees that occur, ascending, and how many rows have each of them.

    Returns
    -------
    DataFrame
        A line for each range that has a row, all columns int64: `low` and `high`, its first and
        last degree, `widths`, the degrees in it, and `rows`, those with one of them.
    """
    octaves = max(1, int(degrees.max(initial=1)).bit_length())
    edges = np.unique(np.ceil(2.0 ** (np.arange(octaves * 4 + 1) / 4))).astype(np.int64)
    counts, _ = np.histogram(degrees, edges, weights=rows)
    columns = {"low": edges[:-1], "high": edges[1:] - 1, "widths": np.diff(edges), "rows": counts}
    return pd.DataFrame(columns, dtype=np.int64).query("rows > 0")


def degree_at(degrees: Longs, rows: Longs, share: float) -> int:
    """Return the smallest degree that at least `share` (0 to 1) of the rows do not exceed."""
    below = np.cumsum(rows)
    if not below.size or not below[-1]:
        return 0
    return int(degrees[np.searchsorted(below, share * below[-1])])


def cumulative_shares(
    degrees: Longs, rows: Longs
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Add up the rows, and their nonzeros, from the smallest degree to the largest.

    Returns
    -------
    of_rows, of_nonzeros : arrays of float64, shape (k,)
        Share, 0 to 1, that rows of at most each degree have; all 0 where there is nothing to share.
    """
    sums = np.cumsum(rows), np.cumsum(degrees * rows)
    of_rows, of_nonzeros = (total / max(1, int(total[-1]) if total.size else 1) for total in sums)
    return of_rows, of_nonzeros


def longest_rows(degrees: Longs, rows: Longs, share: float = 0.01) -> LongestRows:
    """Say what part of the nonzeros the longest rows hold.

    Parameters
    ----------
    degrees, rows : arrays of int64, shape (k,)
        The degrees that occur, ascending, and how many rows have each of them.
    share : float
        How many of the rows, 0 to 1; rounded to whole rows, at least one. Of rows that are equally
        long any may be among them.

    Raises
    ------
    ArgumentError
        If `share` is not between 0 and 1.
    """
    if not 0 < share <= 1:
        raise ArgumentError("share", f"got {share}", "above 0, at most 1")
    n_rows, nonzeros = int(rows.sum()), int(degrees @ rows)
    if not n_rows:
        return LongestRows(0, 0, 0.0, 0)
    count = max(1, round(share * n_rows))
    # Rows taken of each degree, the largest degree first.
    before = np.cumsum(rows[::-1]) - rows[::-1]
    taken = np.clip(count - before, 0, rows[::-1])
    held = int(degrees[::-1] @ taken)
    shortest = int(degrees[::-1][np.flatnonzero(taken)[-1]])
    return LongestRows(count, n_rows, held / max(1, nonzeros), shortest)
