"""The workload table: the nonzeros of each warp, in the same form for every strategy.

A record is one run of consecutive nonzeros of one row that one warp of one block handles. Plots,
statistics and the CPU executor read only this table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Longs
from accelviz.errors import PartitionError

if TYPE_CHECKING:
    import pandas as pd

#: Columns of the table, in order.
COLUMNS = ("block", "warp", "row", "nz_start", "nz_count")


@dataclass(frozen=True, eq=False)
class Workload:
    """The workload of consecutive blocks: one record per run of nonzeros.

    Parameters
    ----------
    block : array of int, shape (n,)
        Block number, ascending. Converted to int64.
    warp : array of int, shape (n,)
        Index of the warp in its block. If a strategy combines several hardware warps to cover more
        columns (Accel-GCN's combined warp), index of the combined warp. Converted to int32.
    row : array of int, shape (n,)
        Row of `Plan.walked`, the matrix in the row order of the kernel. Converted to int32.
    nz_start : array of int, shape (n,)
        Position of the run's first nonzero in that matrix. Converted to int64.
    nz_count : array of int, shape (n,)
        Length of the run; 0 for a row without nonzeros whose output the warp writes. Converted to
        int32.

    Raises
    ------
    PartitionError
        If a column is not a 1-D array of integers, or if the columns have different lengths.
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
        import pandas as pd

        return pd.DataFrame({name: getattr(self, name) for name in COLUMNS})

    @classmethod
    def concatenate(cls, slices: Iterable[Workload]) -> Workload:
        """Join consecutive slices into one table, which is empty if there are none."""
        empty = cls(*[np.empty(0, dtype=np.int64)] * len(COLUMNS))
        tables = [*slices, empty]
        return cls(*(np.concatenate([table[name] for table in tables]) for name in COLUMNS))


def spread(counts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Repeat each index `i` `counts[i]` times, and number its repetitions.

    Parameters
    ----------
    counts : array of int64, shape (k,)

    Returns
    -------
    owner, offset : arrays of int64, shape (sum of counts,)
        The repeated indices, and the numbers of the repetitions, from 0. For counts 2, 0, 3 they
        are 0 0 2 2 2 and 0 1 0 1 2.
    """
    owner = np.repeat(np.arange(counts.size), counts)
    offset = np.arange(owner.size)
    offset -= np.repeat(np.cumsum(counts) - counts, counts)
    return owner, offset


def nonzeros_per_warp(workload: Workload, warps_per_block: int, *, longest: bool = False) -> Longs:
    """Sum the nonzeros of each warp, or return those of its longest run.

    Returns
    -------
    array of int64, shape (blocks, warps_per_block)
        One row per block, from the first to the last block of the workload.
    """
    if not len(workload):
        return np.zeros((0, warps_per_block), dtype=np.int64)
    first = int(workload.block[0])
    n_blocks = int(workload.block[-1]) - first + 1
    slot = (workload.block - first) * warps_per_block + workload.warp
    if longest:
        most = np.zeros(n_blocks * warps_per_block, dtype=np.int64)
        np.maximum.at(most, slot, workload.nz_count)
        return most.reshape(n_blocks, warps_per_block)
    sums = np.bincount(slot, weights=workload.nz_count, minlength=n_blocks * warps_per_block)
    return sums.astype(np.int64).reshape(n_blocks, warps_per_block)


def check_cover(
    slices: Iterable[Workload],
    row_pointers: Longs,
    n_blocks: int,
    warps_per_block: int,
) -> None:
    """Check that a workload covers every nonzero of a matrix exactly once.

    Parameters
    ----------
    slices : iterable of Workload
        The whole workload, in consecutive slices.
    row_pointers : array of int64, shape (n_rows + 1,)
        Row pointers of `Plan.walked`.
    n_blocks, warps_per_block : int
        Size of the launch.

    Raises
    ------
    PartitionError
        With the first wrong record or nonzero.
    """
    empty = np.empty(0, dtype=np.int64)
    start_slices, stop_slices = [empty], [empty]
    bounds = {"block": n_blocks, "warp": warps_per_block, "row": row_pointers.size - 1}
    last_block = 0
    for work in filter(len, slices):
        for name, upper in bounds.items():
            low, high = work[name].min(), work[name].max()
            if low < 0 or high >= upper:
                raise PartitionError(name, f"{low} to {high} occur", f"0 to {upper - 1}")
        if work.block[0] < last_block or np.any(work.block[1:] < work.block[:-1]):
            raise PartitionError("block", "the records fall back to an earlier block", "ascending")
        last_block = int(work.block[-1])
        start, stop = work.nz_start, work.nz_start + work.nz_count
        row_start, row_stop = row_pointers[work.row], row_pointers[work.row + 1]
        # each compared apart, as the sum of a start and a count can wrap around
        valid = (row_start <= start) & (start <= row_stop) & (work.nz_count <= row_stop - start)
        valid &= (work.nz_count > 0) | (work.nz_count == 0) & (row_start == row_stop)
        if not valid.all():
            i = int(np.argmin(valid))
            if work.nz_count[i] < 1 <= (length := row_stop[i] - row_start[i]):
                problem = f"{work.nz_count[i]} in row {work.row[i]}, which has {length} nonzeros"
                raise PartitionError("nz_count", problem, "at least 1")
            problem = f"nonzeros {start[i]} to {stop[i] - 1} of block {work.block[i]} are not all "
            problem += f"in row {work.row[i]}"
            expected = f"between {row_start[i]} and {row_stop[i] - 1}"
            raise PartitionError("nz_start", problem, expected)
        nonempty = work.nz_count > 0
        start_slices.append(start[nonempty])
        stop_slices.append(stop[nonempty])
    starts, stops = np.concatenate(start_slices), np.concatenate(stop_slices)
    order = np.argsort(starts, kind="stable")
    starts, stops = starts[order], stops[order]
    previous_stop = np.append(0, np.maximum.accumulate(stops))
    overlaps = starts < previous_stop[:-1]
    if overlaps.any():
        problem = f"nonzero {starts[np.argmax(overlaps)]} is covered twice"
        raise PartitionError("workload", problem, "every nonzero exactly once")
    nnz = int(row_pointers[-1])
    missing = nnz - int((stops - starts).sum())
    if missing:
        first = previous_stop[np.argmax(np.append(starts, nnz) > previous_stop)]
        problem = f"{missing} of {nnz} nonzeros are never covered, the first at position {first}"
        raise PartitionError("workload", problem, "every nonzero exactly once")
