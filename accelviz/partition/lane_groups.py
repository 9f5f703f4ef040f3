"""The block-level partition for lane groups: several short rows a group, cut rows first.

Algorithms 1 and 2 of Accel-GCN (`block_level`) with lane groups in the place of warps, and four
departures: a group takes several short rows, rows without a nonzero have blocks too, the parts of
cut rows come first, and the other blocks come in the order in which their rows stand in the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from accelviz.errors import PartitionError
from accelviz.ordering import DegreeHistogram
from accelviz.partition.block_level import FIELD_BITS, FIELD_LIMIT, BlockSetting, ceil_div
from accelviz.partition.summary import Integers, Loads, PartitionSummary
from accelviz.workload import Workload, spread

#: A block's first nonzero is an unsigned 32-bit word.
MOST_NONZEROS = (1 << 32) - 1


@dataclass(frozen=True, eq=False)
class LanePartition:
    """What the kernel of `lane_groups` reads of a graph; NumPy's arrays, or CuPy's.

    Attributes
    ----------
    metadata : array of int32, shape (blocks, 4)
        One int4 a block, as of `lane_group_partition`.
    cut_blocks : int
        How many of them hold parts of cut rows.
    output_rows : array of int32, shape (n_rows,)
        Row of the graph that each sorted row is.
    columns : array of int32, shape (nnz,)
        Column of each nonzero, rows in sorted order.
    nonzero_order : array of int, shape (nnz,)
        Which nonzero of the graph each of them is.
    """

    metadata: Any
    cut_blocks: int
    output_rows: Any
    columns: Any
    nonzero_order: Any


def lane_group_partition(
    histogram: DegreeHistogram, setting: BlockSetting, short_nzs: int
) -> tuple[npt.NDArray[np.int32], int]:
    """Describe every block, for rows in ascending order of degree.

    Parameters
    ----------
    histogram : DegreeHistogram
    setting : BlockSetting
        Groups of a block, as `max_block_warps`, and most nonzeros of a group, as `max_warp_nzs`.
    short_nzs : int
        Most nonzeros of a group that takes several rows; a row without a nonzero counts as one.

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
    degrees, counts = histogram.degrees, histogram.rows
    nnz = histogram.nnz
    if nnz > MOST_NONZEROS:
        raise PartitionError("graph", f"{nnz:,} nonzeros", f"at most {MOST_NONZEROS:,}")
    groups, most = setting.max_block_warps, setting.max_warp_nzs
    whole = degrees <= setting.deg_bound
    factor = np.ones_like(degrees)
    shared = whole & (degrees > most)
    factor[shared] = setting.pattern(degrees[shared])[0]
    alone = groups * (short_nzs // np.maximum(degrees, 1)).clip(1)
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


def in_place_order(
    metadata: npt.NDArray[np.int32], cut_blocks: int, output_rows: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Sort the blocks of whole rows by the place of their first row in the graph.

    Blocks that run at the same time then have rows that were neighbors before they were sorted by
    degree, so that a graph keeps the locality that it has.

    Parameters
    ----------
    metadata : array of int32, shape (blocks, 4)
    cut_blocks : int
        How many blocks, the first ones, hold parts of cut rows; they stay where they are.
    output_rows : array of int32, shape (n_rows,)
        Row of the graph that each sorted row is.
    """
    places = output_rows[metadata[cut_blocks:, 1]]
    order = np.argsort(places, kind="stable")
    return np.concatenate([metadata[:cut_blocks], metadata[cut_blocks:][order]])


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


def lane_group_workload(
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


def lane_group_summary(
    histogram: DegreeHistogram,
    setting: BlockSetting,
    short_nzs: int,
    n_cols: int,
    tiles: int | None,
) -> PartitionSummary:
    """Say what the partition does to a graph, from its metadata.

    Parameters
    ----------
    histogram : DegreeHistogram
    setting : BlockSetting
    short_nzs : int
        As of `lane_group_partition`.
    n_cols : int
        Columns of X, for the atomics.
    tiles : int, optional
        Tiles of columns, each of which counts the parts of a cut row; None if not known.
    """
    metadata, cut_blocks = lane_group_partition(histogram, setting, short_nzs)
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
    # Each part adds its sums and counts itself; the last one takes the sums and the count.
    atomics = (
        None if tiles is None and cut_blocks else (cut_blocks + cut_rows) * (n_cols + (tiles or 0))
    )
    return PartitionSummary(
        blocks=len(metadata),
        warps=len(metadata) * groups,
        slots=int(busiest.sum()) * groups,
        loads=Loads.counted(tally),
        metadata_bytes=metadata.nbytes,
        rows_shared=shared_rows + (cut_rows if groups > 1 else 0),
        rows_cut=cut_rows,
        shared_atomics=0,
        global_atomics=atomics,
    )
