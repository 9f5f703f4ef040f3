"""Which lane reads which column of X when, and which sectors of memory that moves.

All from a trace (`accelviz.trace`), so it holds for any strategy's kernel as it is written.

`traced` is the table that `trace` returns.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from accelviz.analysis.traffic import SECTOR_BYTES, changes
from accelviz.arrays import Longs
from accelviz.errors import ArgumentError, checked_integer
from accelviz.plans.launch import WARP_SIZE
from accelviz.plans.operation import FLOAT_BYTES

#: Gaps between sectors are left out where so many times as many sectors lie there as are touched.
_SPARSE = 2


def column_visits(traced: pd.DataFrame, n_cols: int, *, array: str = "X") -> pd.DataFrame:
    """Say which lane touches which columns of a dense matrix, in which turn of its warp.

    Parameters
    ----------
    traced : DataFrame
        From `trace`.
    n_cols : int
        Columns of the matrix.
    array : str
        The matrix: X, or Y.

    Returns
    -------
    DataFrame
        A row for each access of each lane, in the order of the trace: `block`, `warp` (of the
        hardware), `lane`, `thread` (of the block), `turn` (which request of that warp for that
        array, from 0), `row` of the matrix, `column`, and `columns`, the neighboring columns read
        at once, which is 4 for a float4.

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
    """Put lanes of one turn together that touch neighboring columns of one row.

    Parameters
    ----------
    visits : DataFrame
        From `column_visits`.

    Returns
    -------
    DataFrame
        `block`, `warp`, `turn`, `row`, `column` (the first), `columns` (how many), `first_lane`,
        `last_lane` and `lanes`; in ascending order of the first five.
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
    """Keep the visits of the `count` lowest warps that have any.

    Warps of equal number of several blocks are different warps; lower blocks come first.
    """
    order = visits[["warp", "block"]].drop_duplicates().sort_values(["warp", "block"])[:count]
    return visits.merge(order, on=["warp", "block"])


def stack_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Give the runs of each turn lines on which none hides another.

    Parameters
    ----------
    runs : DataFrame
        From `column_runs`.

    Returns
    -------
    DataFrame
        The same with `worker`, the warp counted from 0 among those that there are, and `line`, from
        0 in each turn: runs of one row share a line, unless several warps read the same columns
        of it. The line of the lowest warp comes first.
    """
    table = runs.copy()
    table["worker"] = table.groupby(["warp", "block"]).ngroup()
    again = table.groupby(["turn", "row", "column"]).cumcount()
    lowest = table.groupby([table["turn"], table["row"], again])["worker"].transform("min")
    line = table.groupby([table["turn"], lowest, table["row"], again]).ngroup()
    table["line"] = line - line.groupby(table["turn"]).transform("min")
    return table


def columns_at_once(visits: pd.DataFrame) -> int:
    """Return how many columns of a row are read in one turn, by whichever warps of a block.

    The median over the turns and the rows that are read in each, the higher one of two; 0 if
    nothing is read.
    """
    keys = ["block", "turn", "row"]
    wide = visits.loc[visits.index.repeat(visits["columns"]), [*keys, "column"]]
    wide["column"] += wide.groupby(level=0).cumcount()
    covered = wide.drop_duplicates().groupby(keys).size()
    return int(covered.quantile(0.5, interpolation="higher")) if len(covered) else 0


def turns_per_row(visits: pd.DataFrame) -> int:
    """Return in how many turns a warp reads of the same row; the median, 0 if nothing is read."""
    turns = visits.groupby(["block", "warp", "row"])["turn"].nunique()
    return int(turns.median()) if len(turns) else 0


def request_numbers(traced: pd.DataFrame) -> Longs:
    """Count the requests of a trace from 0, in the order in which they are made.

    Returns
    -------
    array of int64, shape (accesses,)
        The request of each access: blocks one after the other, steps in order.
    """
    numbers: Longs = traced.groupby(["block", "step"]).ngroup().to_numpy(np.int64)
    return numbers


def sector_runs(traced: pd.DataFrame) -> pd.DataFrame:
    """Say which 32-byte sectors each request touches, and which bytes of them it asks for.

    Returns
    -------
    DataFrame
        A row for each run of neighboring bytes in one sector that a request asks for, by however
        many lanes: `request` (from 0, in the order in which they are made), `warp`, `kind`,
        `array`, `sector` (of the array, from 0), `first` and `last` byte in the sector, and
        `begins`, True for the first run of its request in its sector. In ascending order.
    """
    table = traced[["warp", "kind", "array", "offset", "bytes"]]
    table = table.astype(dict.fromkeys(("warp", "offset", "bytes"), np.int64))
    table = table.assign(request=request_numbers(traced))
    table = table.sort_values(["request", "offset"], kind="stable", ignore_index=True)
    table["sector"], table["first"] = np.divmod(table["offset"], SECTOR_BYTES)
    table["last"] = table["first"] + table["bytes"] - 1
    begins = changes(table["request"], table["sector"])
    parted = begins.copy()
    parted[1:] |= table["first"].to_numpy()[1:] > table["last"].to_numpy()[:-1] + 1
    runs = table.loc[parted, ["request", "warp", "kind", "array", "sector", "first"]]
    runs["last"] = table.groupby(parted.cumsum())["last"].max().to_numpy()
    return runs.assign(begins=begins[parted]).reset_index(drop=True)


class Places:
    """Where the sectors of an array go in a picture.

    Parameters
    ----------
    sectors : array of int64, shape (n,)
        Those that are touched, repetitions allowed.

    Attributes
    ----------
    touched : array of int64, shape (k,)
        The sectors, ascending.
    spanned : int
        Sectors from the first touched one to the last.
    gathered : bool
        Whether the touched ones alone have a place. If not, the untouched ones between them have
        one, too.
    n : int
        Places there are.
    """

    def __init__(self, sectors: Longs) -> None:
        self.touched = np.unique(sectors)
        self.spanned = int(np.ptp(self.touched)) + 1 if sectors.size else 0
        self.gathered = self.touched.size * _SPARSE < self.spanned
        self.n = self.touched.size if self.gathered else self.spanned

    def find(self, sectors: Longs) -> Longs:
        """Return the place of each of these sectors, from 0; all must be touched ones."""
        if self.gathered:
            return np.searchsorted(self.touched, sectors)
        return sectors - self.touched[:1].sum()
