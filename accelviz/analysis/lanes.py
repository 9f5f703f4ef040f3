"""Memory accesses of lanes, from a trace: columns of X, and 32-byte sectors of memory.

A trace is the table that `accelviz.trace` returns, with one record per access of a lane. A request
is one memory instruction of one warp. A turn is the rank of a request among those of its warp for
one array. A run is a range of neighboring columns, or bytes, of one request.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from accelviz.analysis.traffic import SECTOR_BYTES, changes
from accelviz.arrays import Longs
from accelviz.errors import ArgumentError, checked_integer
from accelviz.plans.launch import WARP_SIZE
from accelviz.plans.operation import FLOAT_BYTES

#: A picture omits untouched sectors if the spanned sectors are more than so many times the touched.
_SPARSE = 2


def column_visits(traced: pd.DataFrame, n_cols: int, *, array: str = "X") -> pd.DataFrame:
    """List the columns of a dense matrix that each lane accesses, with the turn of its warp.

    Parameters
    ----------
    traced : DataFrame
        From `trace`.
    n_cols : int
        Number of columns of the matrix.
    array : str
        Name of the matrix, "X" or "Y".

    Returns
    -------
    DataFrame
        One record per access of a lane, in the order of the trace, all columns int64: `block`,
        `warp` (hardware warp of the block), `lane`, `thread` (of the block), `turn` (from 0), `row`
        and `column` of the matrix, and `columns` (columns per access; 4 for a float4).

    Raises
    ------
    ArgumentError
        If `n_cols` is below 1.
    """
    checked_integer("n_cols", n_cols, error=ArgumentError)
    accesses = traced[(traced["array"] == array).to_numpy(bool)].reset_index(drop=True)
    names = ["block", "warp", "lane"]
    turns = accesses.groupby(["block", "warp"], observed=True)["step"].rank("dense") - 1
    visits = accesses[names].assign(
        thread=accesses["warp"].astype(np.int64) * WARP_SIZE + accesses["lane"],
        turn=turns,
        row=accesses["index"] // n_cols,
        column=accesses["index"] % n_cols,
        columns=accesses["bytes"] // FLOAT_BYTES,
    )
    return visits.astype(np.int64)


def column_runs(visits: pd.DataFrame) -> pd.DataFrame:
    """Merge accesses of one turn to neighboring columns of one row into runs.

    Parameters
    ----------
    visits : DataFrame
        From `column_visits`.

    Returns
    -------
    DataFrame
        One record per run, all columns int64: `block`, `warp`, `turn`, `row`, `column` (the first),
        `columns` (number of columns), `first_lane`, `last_lane` and `lanes` (number of accesses);
        sorted by the first five.
    """
    keys = ["block", "turn", "warp", "row"]
    ordered = visits.sort_values([*keys, "column", "lane"], kind="stable", ignore_index=True)
    ordered["end"] = ordered["column"] + ordered["columns"]
    begins = changes(*ordered[keys].to_numpy().T)
    begins[1:] |= ordered["column"].to_numpy()[1:] > ordered["end"].to_numpy()[:-1]
    groups = ordered.groupby(begins.cumsum())
    order = ["block", "warp", "turn", "row", "column"]
    runs = groups[order].first()
    runs["columns"] = groups["end"].max() - runs["column"]
    runs["first_lane"], runs["last_lane"] = groups["lane"].min(), groups["lane"].max()
    runs["lanes"] = groups.size()
    return runs.astype(np.int64).sort_values(order, kind="stable", ignore_index=True)


def first_warps(visits: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return the visits of the first `count` warps, in order of warp number, then block.

    Warps of different blocks are different warps even if their numbers are equal.
    """
    warps = visits[["warp", "block"]].drop_duplicates().sort_values(["warp", "block"])[:count]
    return visits.merge(warps, on=["warp", "block"])


def stack_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Assign the runs of each turn to lines of a picture, so that no two runs overlap.

    Parameters
    ----------
    runs : DataFrame
        From `column_runs`.

    Returns
    -------
    DataFrame
        `runs` with two more columns: `worker` (rank of the warp among the warps in `runs`) and
        `line` (from 0 in each turn). Runs of one row share a line, unless several warps read the
        same columns of it. Lines are in the order of their lowest warp.
    """
    table = runs.copy()
    table["worker"] = table.groupby(["warp", "block"]).ngroup()
    repetition = table.groupby(["turn", "row", "column"]).cumcount()
    lowest = table.groupby([table["turn"], table["row"], repetition])["worker"].transform("min")
    line = table.groupby([table["turn"], lowest, table["row"], repetition]).ngroup()
    table["line"] = line - line.groupby(table["turn"]).transform("min")
    return table


def columns_at_once(visits: pd.DataFrame) -> int:
    """Return the median number of distinct columns of a row that a block reads in one turn.

    The median is over all turns and rows, rounded up to an observed number; 0 without a visit.
    """
    keys = ["block", "turn", "row"]
    expanded = visits.loc[visits.index.repeat(visits["columns"]), [*keys, "column"]]
    expanded["column"] += expanded.groupby(level=0).cumcount()
    counts = expanded.drop_duplicates().groupby(keys).size()
    return int(counts.quantile(0.5, interpolation="higher")) if len(counts) else 0


def turns_per_row(visits: pd.DataFrame) -> int:
    """Return the median number of turns in which a warp reads one row; 0 without a visit."""
    turns = visits.groupby(["block", "warp", "row"])["turn"].nunique()
    return int(turns.median()) if len(turns) else 0


def request_numbers(traced: pd.DataFrame) -> Longs:
    """Return request numbers, counted from 0 in order of block and step.

    Returns
    -------
    array of int64, shape (accesses,)
        Request number of each access.
    """
    numbers: Longs = traced.groupby(["block", "step"]).ngroup().to_numpy(np.int64)
    return numbers


def sector_runs(traced: pd.DataFrame) -> pd.DataFrame:
    """List the 32-byte sectors that each request touches, and the requested bytes in them.

    Returns
    -------
    DataFrame
        One record per run of neighboring requested bytes in a sector, ascending: `request` (as of
        `request_numbers`), `warp`, `kind`, `array`, `sector` (of the array, from 0), `first` and
        `last` (bytes in the sector), and `begins` (True for the first run of a request in a
        sector).
    """
    table = traced[["warp", "kind", "array", "offset", "bytes"]]
    table = table.astype(dict.fromkeys(("warp", "offset", "bytes"), np.int64))
    table = table.assign(request=request_numbers(traced))
    table = table.sort_values(["request", "offset"], kind="stable", ignore_index=True)
    table["sector"], table["first"] = np.divmod(table["offset"], SECTOR_BYTES)
    table["last"] = table["first"] + table["bytes"] - 1
    begins = changes(table["request"], table["sector"])
    starts_run = begins.copy()
    starts_run[1:] |= table["first"].to_numpy()[1:] > table["last"].to_numpy()[:-1] + 1
    runs = table.loc[starts_run, ["request", "warp", "kind", "array", "sector", "first"]]
    runs["last"] = table.groupby(starts_run.cumsum())["last"].max().to_numpy()
    return runs.assign(begins=begins[starts_run]).reset_index(drop=True)


class Places:
    """Vertical positions of an array's sectors in a picture.

    Parameters
    ----------
    sectors : array of int64, shape (n,)
        Touched sectors, with repetitions.

    Attributes
    ----------
    touched : array of int64, shape (k,)
        Distinct touched sectors, ascending.
    spanned : int
        Number of sectors from the first touched sector to the last.
    gathered : bool
        Whether only touched sectors have a position. If False, all spanned sectors have one.
    n : int
        Number of positions.
    """

    def __init__(self, sectors: Longs) -> None:
        self.touched = np.unique(sectors)
        self.spanned = int(np.ptp(self.touched)) + 1 if sectors.size else 0
        self.gathered = self.touched.size * _SPARSE < self.spanned
        self.n = self.touched.size if self.gathered else self.spanned

    def find(self, sectors: Longs) -> Longs:
        """Return the position of each of these sectors, from 0; all must be touched."""
        if self.gathered:
            return np.searchsorted(self.touched, sectors)
        return sectors - self.touched[:1].sum()
