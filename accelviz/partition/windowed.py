"""The block-level partition for lane groups: several short rows a group, cut rows first, windows.

Algorithms 1 and 2 of Accel-GCN (`block_level`) with lane groups in the place of warps, and four
departures: a group takes as many short rows as it may take nonzeros, rows without a nonzero have
blocks too, the parts of cut rows come first, and the rows may be sorted window by window.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from accelviz.errors import PartitionError
from accelviz.ordering import RowDegrees
from accelviz.partition.block_level import FIELD_BITS, FIELD_LIMIT, BlockSetting, ceil_div
from accelviz.partition.summary import Integers, Loads, PartitionSummary
from accelviz.workload import Workload, spread

#: A block's first nonzero is an unsigned 32-bit word.
MOST_NONZEROS = (1 << 32) - 1


def degree_runs(rows: RowDegrees, window: int | None) -> tuple[Integers, Integers] | None:
    """Return the runs of equal degree in the order in which the rows are walked.

    Parameters
    ----------
    rows : RowDegrees
    window : int, optional
        Rows are sorted by degree inside windows of so many; all of them if None.

    Returns
    -------
    degrees, counts : arrays of int64, shape (runs,)
        None where the order of the rows matters and is not known.
    """
    if window is None or window >= rows.histogram.n_rows:
        return rows.histogram.degrees, rows.histogram.rows
    if rows.row_pointers is None:
        return None
    return _window_runs(rows.row_pointers, window, rows.histogram.largest)


@numba.njit(cache=True, nogil=True)
def _window_runs(
    row_pointers: Integers, window: int, largest: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    n_rows = row_pointers.size - 1
    degrees = np.empty(n_rows, dtype=np.int64)
    counts = np.empty(n_rows, dtype=np.int64)
    runs = 0
    for start in range(0, n_rows, window):
        stop = min(start + window, n_rows)
        own = np.sort(row_pointers[start + 1 : stop + 1] - row_pointers[start:stop])
        for i in range(own.size):
            if i > 0 and own[i] == own[i - 1]:
                counts[runs - 1] += 1
            else:
                degrees[runs], counts[runs] = own[i], 1
                runs += 1
    return degrees[:runs].copy(), counts[:runs].copy()


def windowed_partition(
    degrees: Integers, counts: Integers, setting: BlockSetting
) -> tuple[npt.NDArray[np.int32], int]:
    """Describe every block, for runs of rows of equal degree.

    Parameters
    ----------
    degrees, counts : arrays of int64, shape (runs,)
        From `degree_runs`.
    setting : BlockSetting
        Groups of a block, as `max_block_warps`, and most nonzeros of a group, as `max_warp_nzs`.

    Returns
    -------
    metadata : array of int32, shape (blocks, 4)
        One int4 a block, as of `block_partition`, except that of a part of a cut row the last word
        is the number of the part, and that the third is unsigned.
    cut_blocks : int
        How many of them, the first ones, hold parts of cut rows.

    Raises
    ------
    PartitionError
        If there are 2^32 nonzeros or more.
    """
    nnz = int(degrees @ counts)
    if nnz > MOST_NONZEROS:
        raise PartitionError("graph", f"{nnz:,} nonzeros", f"at most {MOST_NONZEROS:,}")
    groups, most = setting.max_block_warps, setting.max_warp_nzs
    whole = degrees <= setting.deg_bound
    factor = np.ones_like(degrees)
    shared = whole & (degrees > most)
    factor[shared] = setting.pattern(degrees[shared])[0]
    alone = groups * (most // np.maximum(degrees, 1)).clip(1)
    block_rows = np.where(degrees > most, groups // factor, alone).clip(max=FIELD_LIMIT)
    group_nzs = np.maximum(ceil_div(degrees, factor), 1)
    parts = np.where(whole, 0, counts * ceil_div(degrees, setting.deg_bound))
    blocks = np.where(whole, ceil_div(counts, block_rows), 0)
    metadata = np.empty((int(parts.sum() + blocks.sum()), 4), dtype=np.uint32)
    cut_blocks = int(parts.sum())
    fields = group_nzs << FIELD_BITS
    _emit(metadata, cut_blocks, degrees, counts, block_rows, fields, setting.deg_bound)
    return metadata.view(np.int32), cut_blocks


@numba.njit(cache=True, nogil=True)
def _emit(
    metadata: npt.NDArray[np.uint32],
    cut_blocks: int,
    degrees: Integers,
    counts: Integers,
    block_rows: Integers,
    fields: Integers,
    deg_bound: int,
) -> None:
    row = loc = cut = 0
    block = cut_blocks
    for i in range(degrees.size):
        degree = degrees[i]
        end = row + counts[i]
        while row < end:
            if degree <= deg_bound:
                taken = min(block_rows[i], end - row)
                words = metadata[block]
                words[0], words[1], words[2], words[3] = degree, row, loc, fields[i] | taken
                block += 1
            else:
                taken = 1
                for part in range(-(-degree // deg_bound)):
                    words = metadata[cut]
                    words[0], words[1], words[2] = degree, row, loc + part * deg_bound
                    words[3] = part
                    cut += 1
            row += taken
            loc += taken * degree


def _decoded(metadata: npt.NDArray[np.int32], setting: BlockSetting) -> tuple[Integers, ...]:
    """First row, first nonzero, rows, nonzeros of a row and of a group of each block."""
    words = metadata.view(np.uint32).astype(np.int64)
    degree, first_row, first_nz, info = words.T
    cut = degree > setting.deg_bound
    rows = np.where(cut, 1, info & FIELD_LIMIT)
    left = np.minimum(setting.deg_bound, degree - info * setting.deg_bound)
    row_nzs = np.where(cut, left, degree)
    shares = ceil_div(row_nzs, setting.max_block_warps)
    return first_row, first_nz, rows, row_nzs, np.where(cut, shares, info >> FIELD_BITS)


def windowed_workload(
    metadata: npt.NDArray[np.int32], setting: BlockSetting, start: int, stop: int
) -> Workload:
    """Spell out which group does what in blocks `start` to `stop` - 1.

    Returns
    -------
    Workload
        A record for each row of a group, or, where groups share a row, for each group. Its `warp`
        is the group. Short rows go to the groups in turn.
    """
    first_row, first_nz, rows, row_nzs, group_nzs = _decoded(metadata[start:stop], setting)
    per_row = np.maximum(ceil_div(row_nzs, group_nzs), 1)
    block, record = spread(rows * per_row)
    row, part = record // per_row[block], record % per_row[block]
    offset = part * group_nzs[block]
    return Workload(
        block=start + block,
        warp=record % setting.max_block_warps,
        row=first_row[block] + row,
        nz_start=first_nz[block] + row * row_nzs[block] + offset,
        nz_count=np.minimum(group_nzs[block], row_nzs[block] - offset),
    )


def windowed_summary(
    rows: RowDegrees, n_cols: int, setting: BlockSetting, window: int | None, tiles: int
) -> PartitionSummary:
    """Say what the partition does to a graph, from its metadata.

    Parameters
    ----------
    rows : RowDegrees
    n_cols : int
        Columns of X, for the atomics.
    setting : BlockSetting
    window : int, optional
        As of `degree_runs`.
    tiles : int
        Tiles of columns.
    """
    found = degree_runs(rows, window)
    if found is None:
        return PartitionSummary()
    metadata, cut_blocks = windowed_partition(*found, setting)
    groups = setting.max_block_warps
    _, _, block_rows, row_nzs, group_nzs = _decoded(metadata, setting)
    per_row = np.maximum(ceil_div(row_nzs, group_nzs), 1)
    several = per_row > 1
    # Where each row is one group's, a group has every `groups`-th of them.
    turns, more = np.divmod(block_rows, groups)
    last = row_nzs - (per_row - 1) * group_nzs
    nonzeros = np.concatenate(
        [
            np.where(several, group_nzs, turns * row_nzs),
            np.where(several, last, (turns + 1) * row_nzs),
        ]
    )
    warps = np.concatenate(
        [
            np.where(several, block_rows * (per_row - 1), groups - more),
            np.where(several, block_rows, more),
        ]
    )
    tally = np.bincount(nonzeros, weights=warps).astype(np.int64)
    busiest = np.where(several, group_nzs, (turns + (more > 0)) * row_nzs)
    shared_rows = int(block_rows[cut_blocks:][several[cut_blocks:]].sum())
    cut_rows = int(np.count_nonzero(metadata[:cut_blocks, 3] == 0))
    return PartitionSummary(
        blocks=len(metadata),
        warps=len(metadata) * groups,
        slots=int(busiest.sum()) * groups,
        loads=Loads.counted(tally),
        metadata_bytes=metadata.nbytes,
        rows_shared=shared_rows + (cut_rows if groups > 1 else 0),
        rows_cut=cut_rows,
        shared_atomics=0,
        # Each part adds its sums and counts itself; the last one takes the sums and the count.
        global_atomics=(cut_blocks + cut_rows) * (n_cols + tiles),
    )
