"""Statistics of a degree histogram: which rows are long, and how many nonzeros they hold.

A degree is the number of nonzeros of a row. A histogram is the pair of arrays of
`ordering.DegreeHistogram`: the degrees that occur, ascending, and the number of rows of each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.arrays import Longs
from accelviz.errors import ArgumentError


@dataclass(frozen=True)
class LongestRows:
    """The longest rows of a graph and their share of the nonzeros.

    Attributes
    ----------
    rows : int
        Number of longest rows; at least 1 unless the graph has no row.
    n_rows : int
        Number of rows of the graph.
    share : float
        Share of the graph's nonzeros in the longest rows, 0 to 1.
    degree : int
        Smallest degree among the longest rows.
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
        If the arrays differ in shape, are not 1-D, or have negative or non-integer entries, or if
        `degrees` is not ascending.
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
    """Count rows in ranges of degrees, four ranges per doubling, without rows of degree 0.

    Small degrees have fewer ranges, because a range spans at least one degree.

    Parameters
    ----------
    degrees, rows : arrays of int64, shape (k,)
        Degree histogram.

    Returns
    -------
    DataFrame
        One record per range with rows, all columns int64: `low` and `high` (first and last degree),
        `widths` (number of degrees) and `rows` (number of rows).
    """
    octaves = max(1, int(degrees.max(initial=1)).bit_length())
    edges = np.unique(np.ceil(2.0 ** (np.arange(octaves * 4 + 1) / 4))).astype(np.int64)
    counts, _ = np.histogram(degrees, edges, weights=rows)
    columns = {"low": edges[:-1], "high": edges[1:] - 1, "widths": np.diff(edges), "rows": counts}
    return pd.DataFrame(columns, dtype=np.int64).query("rows > 0")


def degree_at(degrees: Longs, rows: Longs, share: float) -> int:
    """Return a quantile of the degrees: at least `share` (0 to 1) of the rows do not exceed it."""
    cumulative = np.cumsum(rows)
    if not cumulative.size or not cumulative[-1]:
        return 0
    return int(degrees[np.searchsorted(cumulative, share * cumulative[-1])])


def cumulative_shares(
    degrees: Longs, rows: Longs
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return cumulative distributions of rows and of nonzeros over the degrees.

    Returns
    -------
    row_shares, nonzero_shares : arrays of float64, shape (k,)
        Share of all rows, and of all nonzeros, in rows of at most each degree, 0 to 1; all 0 if
        there is no row, or no nonzero.
    """
    sums = np.cumsum(rows), np.cumsum(degrees * rows)
    row_shares, nonzero_shares = (total / max(1, total.max(initial=1)) for total in sums)
    return row_shares, nonzero_shares


def longest_rows(degrees: Longs, rows: Longs, share: float = 0.01) -> LongestRows:
    """Return the longest rows of a graph and their share of its nonzeros.

    Parameters
    ----------
    degrees, rows : arrays of int64, shape (k,)
        Degree histogram.
    share : float
        Share of the rows that counts as longest, 0 to 1; rounded to an integer of at least 1 row.

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
    descending_degrees, descending_rows = degrees[::-1], rows[::-1]
    longer_rows = np.cumsum(descending_rows) - descending_rows
    selected = np.clip(count - longer_rows, 0, descending_rows)  # longest rows of each degree
    held = int(descending_degrees @ selected)
    shortest = int(descending_degrees[np.flatnonzero(selected)[-1]])
    return LongestRows(count, n_rows, held / max(1, nonzeros), shortest)
