"""The block-level partition for lane groups: several short rows a group, cut rows first.

Algorithms 1 and 2 of Accel-GCN (`block_level`) with lane groups in the place of warps, and four
departures: a group takes several short rows, rows without a nonzero have blocks too, the parts of
cut rows come first, and the other blocks come in the order in which their rows stand in the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from accelviz.arrays import Ints
from accelviz.ordering import DegreeHistogram, RowDegrees
from accelviz.ordering.degree import SortedRows
from accelviz.partition.block_level import (
    FIELD_LIMIT,
    INT4_BYTES,
    BlockSetting,
    RowPatterns,
    ceil_div,
    decoded,
)
from accelviz.partition.nonzero_runs import check_numbers
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import Loads, PartitionSummary
from accelviz.store import Stopwatch
from accelviz.workload import Workload

#: What the words of a block's int4 are called; halves of a word are parted by a bar.
WORDS = ("degree", "first place", "first nonzero", "nonzeros of a group | rows, or the part")


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

    @property
    def arrays(self) -> dict[str, Any]:
        """What the kernel takes, by name."""
        names = ("metadata", "output_rows", "columns")
        return {name: getattr(self, name) for name in names}


def lane_group_partition(
    histogram: DegreeHistogram, setting: BlockSetting, short_nzs: int
) -> tuple[Ints, int]:
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
    check_numbers(histogram.nnz)  # a block's first one is an unsigned 32-bit word
    metadata, parts = _patterns(histogram, setting, short_nzs).int4(parts_first=True)
    return metadata.view(np.int32), len(parts)


def _patterns(histogram: DegreeHistogram, setting: BlockSetting, short_nzs: int) -> RowPatterns:
    degrees, groups, most = histogram.degrees, setting.max_block_warps, setting.max_warp_nzs
    factor = np.ones_like(degrees)
    shared = (degrees > most) & (degrees <= setting.deg_bound)
    factor[shared] = setting.pattern(degrees[shared])[0]
    alone = groups * (short_nzs // np.maximum(degrees, 1)).clip(1)
    block_rows = np.where(degrees > most, groups // factor, alone).clip(max=FIELD_LIMIT)
    group_nzs = np.maximum(ceil_div(degrees, factor), 1)
    return RowPatterns(degrees, histogram.rows, block_rows, group_nzs, setting)


def in_place_order(metadata: Ints, cut_blocks: int, output_rows: Ints) -> Ints:
    """Sort the blocks of whole rows by the place of their first row in the graph.

    Blocks that run at the same time then have rows that were neighbors before they were sorted by
    degree, so that a graph keeps the locality that it has. Parts of cut rows stay where they are.
    `LanePartition` says what the arguments are.
    """
    places = output_rows[metadata[cut_blocks:, 1]]
    order = np.argsort(places, kind="stable")
    return np.concatenate([metadata[:cut_blocks], metadata[cut_blocks:][order]])


def subwarp_partition(
    rows: SortedRows, setting: BlockSetting, short_nzs: int, in_place: bool = True
) -> tuple[LanePartition, dict[str, float]]:
    """Partition sorted rows into blocks of subwarps, and say what that took.

    Parameters
    ----------
    rows : SortedRows
    setting, short_nzs
        As of `lane_group_partition`.
    in_place : bool
        Whether blocks come in the order in which their rows stand in the graph.

    Returns
    -------
    LanePartition
    seconds : dict of str to float

    Raises
    ------
    PartitionError
        If there are 2^32 nonzeros or more.
    """
    clock, output_rows = Stopwatch(), rows.permutation.order
    with clock.step("block partition"):
        metadata, cut_blocks = lane_group_partition(rows.histogram, setting, short_nzs)
        if in_place:
            metadata = in_place_order(metadata, cut_blocks, output_rows)
        metadata.setflags(write=False)
    columns = rows.pattern.column_indices
    partition = LanePartition(metadata, cut_blocks, output_rows, columns, rows.nonzero_order)
    return partition, clock.seconds


def lane_group_workload(metadata: Ints, setting: BlockSetting, start: int, stop: int) -> Workload:
    """Spell out which group does what in blocks `start` to `stop` - 1.

    Returns
    -------
    Workload
        A record for each row of a group, or, where groups share a row, for each group. Its `warp`
        is the group. Short rows go to the groups in turn.
    """
    fields = decoded(metadata[start:stop], setting, numbered_parts=True)
    return fields.workload(start, setting.max_block_warps)


@dataclass(frozen=True)
class Subwarps(Scheme):
    """Blocks of `warps` subwarps, as `lane_group_partition` makes them.

    Attributes
    ----------
    most : int
        Most nonzeros of a subwarp.
    short : int
        Most nonzeros of a subwarp that takes several rows.
    tiles : int, optional
        Tiles of columns, in each of which a part of a split row reports that it is done.
    in_place : int
        1 if blocks come in the order in which their rows stand in the graph.
    """

    kind = "lane_groups"
    warps: int
    most: int
    short: int
    tiles: int | None
    in_place: int

    def summary(self, rows: RowDegrees, n_cols: int) -> PartitionSummary:
        """Count what `lane_group_partition` makes; see `Scheme`."""
        histogram, groups = rows.histogram, self.warps
        setting = BlockSetting(groups, self.most)
        blocks, kind = _patterns(histogram, setting, self.short).kinds()
        n_rows, row_nzs, group_nzs = kind.rows, kind.row_nzs, kind.warp_nzs
        per_row = kind.warps_per_row
        several, part = per_row > 1, kind.degree > setting.deg_bound
        # Where each row is one group's, a group has every `groups`-th of them.
        turns, more = np.divmod(n_rows, groups)
        last = row_nzs - (per_row - 1) * group_nzs
        nonzeros = np.where(several, (group_nzs, last), (turns * row_nzs, (turns + 1) * row_nzs))
        owners = np.where(several, (n_rows * (per_row - 1), n_rows), (groups - more, more))
        busiest = np.where(several, group_nzs, (turns + (more > 0)) * row_nzs)
        n_blocks, n_parts = int(blocks.sum()), int(blocks[part].sum())
        shared_rows = int((blocks * n_rows)[several & ~part].sum())
        cut_rows = int(histogram.rows[histogram.degrees > setting.deg_bound].sum())
        reports = None if self.tiles is None and n_parts else n_parts * (self.tiles or 0)
        return PartitionSummary(
            blocks=n_blocks,
            warps=n_blocks * groups,
            slots=int(blocks @ busiest) * groups,
            loads=Loads.gathered(nonzeros.ravel(), (blocks * owners).ravel()),
            metadata_bytes=INT4_BYTES * n_blocks,
            rows_shared=shared_rows + (cut_rows if groups > 1 else 0),
            rows_cut=cut_rows,
            shared_atomics=0,
            global_atomics=reports,
        )
