"""The workload table: which warp of which block handles which nonzeros of which row.

Every plot, statistic and executor reads this table and none asks which strategy made it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.errors import PartitionError

#: Columns of the table, in order.
COLUMNS = ("block", "warp", "row", "nz_start", "nz_count")


@dataclass(frozen=True, eq=False)
class Workload:
    """Some consecutive blocks of a plan's work, one record for each run of nonzeros.

    Parameters
    ----------
    block : array of int64, shape (n,)
        The block. Records are in ascending order of block.
    warp : array of int32, shape (n,)
        The warp's index within its block. Where a strategy combines several hardware warps into one
        to cover more columns (Accel-GCN's combined warp), this is the combined warp.
    row : array of int32, shape (n,)
        Row of the matrix that the kernel walks (`Plan.walked`, which may be a permuted one).
    nz_start : array of int64, shape (n,)
        Position of the run's first nonzero in that matrix's nonzero arrays.
    nz_count : array of int32, shape (n,)
        Length of the run; 0 where the warp writes a row that has no nonzero.

    Other integer dtypes are converted to these.

    Raises
    ------
    PartitionError
        If a column is not one-dimensional, not integer, or of another length than the rest.
    """

    block: npt.NDArray[Any]
    warp: npt.NDArray[Any]
    row: npt.NDArray[Any]
    nz_start: npt.NDArray[Any]
    nz_count: npt.NDArray[Any]

    def __post_init__(self) -> None:
        dtypes = (np.int64, np.int32, np.int32, np.int64, np.int32)
        for name, dtype in zip(COLUMNS, dtypes, strict=True):
            column = np.asarray(getattr(self, name))
            if column.ndim != 1 or (column.size and column.dtype.kind not in "iu"):
                raise PartitionError(
                    name, f"a {column.ndim}-D column of {column.dtype}", "a 1-D column of integers"
                )
            object.__setattr__(self, name, column.astype(dtype, copy=False))
        lengths = {name: getattr(self, name).size for name in COLUMNS}
        if len(set(lengths.values())) > 1:
            raise PartitionError("workload", f"columns of different length {lengths}", "one length")

    def __len__(self) -> int:
        return self.block.size

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in COLUMNS:
            raise KeyError(f"{name!r} is not one of {', '.join(COLUMNS)}")
        column: npt.NDArray[Any] = getattr(self, name)
        return column

    def __repr__(self) -> str:
        return f"Workload of {len(self):,} records: {', '.join(COLUMNS)}"

    def _repr_html_(self) -> str:
        html: str = self.to_frame()._repr_html_()
        return html

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame with the columns `COLUMNS`."""
        return pd.DataFrame({name: getattr(self, name) for name in COLUMNS})

    @classmethod
    def concatenate(cls, slices: Iterable[Workload]) -> Workload:
        """Join consecutive slices into one table; no slice at all gives an empty one."""
        parts = [[getattr(part, name) for name in COLUMNS] for part in slices]
        empty = [np.empty(0, dtype=np.int64)] * len(COLUMNS)
        return cls(*(np.concatenate(column) for column in zip(*(parts or [empty]), strict=True)))


@dataclass
class WorkloadStatistics:
    """What a partition does to a graph, counted from its workload.

    Attributes
    ----------
    blocks : int
        Blocks launched (for one tile of columns).
    warps : int
        Warps launched: `blocks` times the warps of a block.
    slots : int
        Nonzeros the launched warps could have handled in the time their block takes: for each
        block, its warps times the nonzeros of its busiest warp.
    nonzeros_per_warp : dict of int to int
        How many launched warps handle how many nonzeros each, idle warps (0) included.
    """

    blocks: int = 0
    warps: int = 0
    slots: int = 0
    nonzeros_per_warp: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.warps and not self.nonzeros_per_warp:
            self.nonzeros_per_warp = {0: self.warps}  # idle until counted otherwise

    def add(self, per_warp: npt.NDArray[np.int64]) -> None:
        """Count some blocks: the nonzeros of each of their warps, shape (blocks, warps)."""
        self.slots += int(per_warp.max(axis=1, initial=0).sum()) * per_warp.shape[1]
        counts = np.bincount(per_warp.ravel())
        counts[:1] = 0
        tally = Counter(self.nonzeros_per_warp)
        tally.update({int(n): int(counts[n]) for n in np.flatnonzero(counts)})
        tally[0] -= int(counts.sum())
        self.nonzeros_per_warp = {n: tally[n] for n in sorted(tally) if tally[n]}

    @property
    def busy_warps(self) -> int:
        """Warps that have at least one nonzero."""
        return self.warps - self.nonzeros_per_warp.get(0, 0)

    @property
    def nonzeros(self) -> int:
        """Nonzeros covered."""
        return sum(n * warps for n, warps in self.nonzeros_per_warp.items())

    @property
    def idle_warps(self) -> float:
        """Share of the launched warps that have nothing to do, 0 to 1."""
        return 1.0 - self.busy_warps / self.warps if self.warps else 0.0

    @property
    def idle_share(self) -> float:
        """Share of warp time spent idle or waiting for the busiest warp of the block, 0 to 1."""
        return 1.0 - self.nonzeros / self.slots if self.slots else 0.0

    @property
    def largest(self) -> int:
        """Nonzeros of the busiest warp."""
        return max(self.nonzeros_per_warp, default=0)

    @property
    def imbalance(self) -> float:
        """Busiest warp's nonzeros over the mean of the warps with work; 1 is perfect balance."""
        return self.largest * self.busy_warps / self.nonzeros if self.nonzeros else 1.0


def statistics(
    slices: Iterable[Workload], n_blocks: int, warps_per_block: int
) -> WorkloadStatistics:
    """Count a workload, one slice of whole blocks at a time.

    Parameters
    ----------
    slices : iterable of Workload
        Together the whole workload, each of them whole blocks (`Plan.workload_slices()`).
    n_blocks : int
        Blocks launched, those without a record included.
    warps_per_block : int
        Warps launched in each block.

    Returns
    -------
    WorkloadStatistics
    """
    result = WorkloadStatistics(blocks=n_blocks, warps=n_blocks * warps_per_block)
    for part in slices:
        result.add(nonzeros_per_warp(part, warps_per_block))
    return result


def spread(counts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Deal `counts[i]` records to each `i`: the owner of every record, and its place there.

    Parameters
    ----------
    counts : array of int64, shape (k,)

    Returns
    -------
    owner, place : arrays of int64, shape (sum of counts,)
        For counts 2, 0, 3: owners 0 0 2 2 2 and places 0 1 0 1 2.
    """
    owner = np.repeat(np.arange(counts.size), counts)
    return owner, np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)


def nonzeros_per_warp(workload: Workload, warps_per_block: int) -> npt.NDArray[np.int64]:
    """Sum the nonzeros of each warp of the blocks that a workload touches.

    Returns
    -------
    array of int64, shape (blocks, warps_per_block)
        One line for each block from the first to the last in the table.
    """
    if not len(workload):
        return np.zeros((0, warps_per_block), dtype=np.int64)
    first = int(workload.block[0])
    n_blocks = int(workload.block[-1]) - first + 1
    slot = (workload.block - first) * warps_per_block + workload.warp
    sums = np.bincount(slot, weights=workload.nz_count, minlength=n_blocks * warps_per_block)
    return sums.astype(np.int64).reshape(n_blocks, warps_per_block)


def check_cover(
    slices: Iterable[Workload],
    row_pointers: npt.NDArray[np.int64],
    n_blocks: int,
    warps_per_block: int,
) -> None:
    """Refuse a workload that does not cover every nonzero exactly once.

    Parameters
    ----------
    slices : iterable of Workload
        Together the whole workload.
    row_pointers : array of int64, shape (n_rows + 1,)
        Of the matrix that the kernel walks.
    n_blocks, warps_per_block : int
        What the plan launches.

    Raises
    ------
    PartitionError
        Naming the first record or nonzero at fault.
    """
    covered = np.zeros(int(row_pointers[-1]), dtype=np.bool_)
    last_block = 0
    for part in slices:
        if not len(part):
            continue
        for name, upper in (
            ("block", n_blocks),
            ("warp", warps_per_block),
            ("row", row_pointers.size - 1),
        ):
            column = getattr(part, name)
            if column.min() < 0 or column.max() >= upper:
                raise PartitionError(
                    name, f"{column.min()} to {column.max()} occur", f"0 to {upper - 1}"
                )
        if part.block[0] < last_block or np.any(part.block[1:] < part.block[:-1]):
            raise PartitionError("block", "the records fall back to an earlier block", "ascending")
        last_block = int(part.block[-1])
        fault, position = _mark(part.row, part.nz_start, part.nz_count, row_pointers, covered)
        if fault == _OUTSIDE_ROW:
            start, count = part.nz_start[position], part.nz_count[position]
            row = part.row[position]
            raise PartitionError(
                "nz_start",
                f"nonzeros {start} to {start + count - 1} of block {part.block[position]} are not "
                f"all in row {row}",
                f"between {row_pointers[row]} and {row_pointers[row + 1] - 1}",
            )
        if fault == _TWICE:
            raise PartitionError(
                "workload", f"nonzero {position} is covered twice", "every nonzero exactly once"
            )
    if not covered.all():
        missed = int(np.argmin(covered))
        raise PartitionError(
            "workload",
            f"{covered.size - int(covered.sum())} of {covered.size} nonzeros are never covered, "
            f"the first at position {missed}",
            "every nonzero exactly once",
        )


_FINE, _OUTSIDE_ROW, _TWICE = 0, 1, 2


@numba.njit(cache=True, nogil=True)
def _mark(
    row: npt.NDArray[np.int32],
    nz_start: npt.NDArray[np.int64],
    nz_count: npt.NDArray[np.int32],
    row_pointers: npt.NDArray[np.int64],
    covered: npt.NDArray[np.bool_],
) -> tuple[int, int]:
    for i in range(row.size):
        start, stop = nz_start[i], nz_start[i] + nz_count[i]
        row_start, row_stop = row_pointers[row[i]], row_pointers[row[i] + 1]
        inside = row_start <= start and stop <= row_stop
        if not inside or nz_count[i] < min(1, row_stop - row_start):
            return _OUTSIDE_ROW, i
        for k in range(start, stop):
            if covered[k]:
                return _TWICE, k
            covered[k] = True
    return _FINE, 0
