"""The workload table: which warp of which block handles which nonzeros of which row.

Every plot, statistic and executor reads this table and none asks which strategy made it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.arrays import Longs
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


def spread(counts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Deal `counts[i]` records to each `i`: the owner of every record, and its offset there.

    Parameters
    ----------
    counts : array of int64, shape (k,)

    Returns
    -------
    owner, offset : arrays of int64, shape (sum of counts,)
        For counts 2, 0, 3: owners 0 0 2 2 2 and offsets 0 1 0 1 2.
    """
    owner = np.repeat(np.arange(counts.size), counts)
    offset = np.arange(owner.size)
    offset -= np.repeat(np.cumsum(counts) - counts, counts)
    return owner, offset


def nonzeros_per_warp(workload: Workload, warps_per_block: int) -> Longs:
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
    row_pointers: Longs,
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
    runs = [(np.empty(0, dtype=np.int64),) * 2]
    bounds = {"block": n_blocks, "warp": warps_per_block, "row": row_pointers.size - 1}
    last_block = 0
    for part in filter(len, slices):
        for name, upper in bounds.items():
            low, high = part[name].min(), part[name].max()
            if low < 0 or high >= upper:
                raise PartitionError(name, f"{low} to {high} occur", f"0 to {upper - 1}")
        if part.block[0] < last_block or np.any(part.block[1:] < part.block[:-1]):
            raise PartitionError("block", "the records fall back to an earlier block", "ascending")
        last_block = int(part.block[-1])
        start, stop = part.nz_start, part.nz_start + part.nz_count
        row_start, row_stop = row_pointers[part.row], row_pointers[part.row + 1]
        inside = (row_start <= start) & (stop <= row_stop)
        inside &= part.nz_count >= np.minimum(row_stop - row_start, 1)
        if not inside.all():
            at = int(np.argmin(inside))
            raise PartitionError(
                "nz_start",
                f"nonzeros {start[at]} to {stop[at] - 1} of block {part.block[at]} are not "
                f"all in row {part.row[at]}",
                f"between {row_start[at]} and {row_stop[at] - 1}",
            )
        busy = part.nz_count > 0
        runs.append((start[busy], stop[busy]))
    starts, stops = (np.concatenate(ends) for ends in zip(*runs, strict=True))
    order = np.argsort(starts, kind="stable")
    starts, stops = starts[order], stops[order]
    reached = np.append(0, np.maximum.accumulate(stops))  # by the runs before each one
    twice = starts < reached[:-1]
    if twice.any():
        problem = f"nonzero {starts[np.argmax(twice)]} is covered twice"
        raise PartitionError("workload", problem, "every nonzero exactly once")
    nnz = int(row_pointers[-1])
    missing = nnz - int((stops - starts).sum())
    if missing:
        first = reached[np.argmax(np.append(starts, nnz) > reached)]
        problem = f"{missing} of {nnz} nonzeros are never covered, the first at position {first}"
        raise PartitionError("workload", problem, "every nonzero exactly once")
