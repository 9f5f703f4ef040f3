"""The block-level partition for subwarps: several short rows a subwarp, split rows first.

Algorithms 1 and 2 of Accel-GCN (`block_level`) with subwarps in the place of warps, and four
departures: a subwarp takes several short rows, rows without a nonzero have blocks too, the parts of
split rows come first, and the other blocks come in the order of their rows in the graph.
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
class SubwarpPartition:
    """What the kernel of `lane_groups` reads of a graph; NumPy's arrays, or CuPy's.

    Attributes
    ----------
    metadata : array of int32, shape (blocks, 4)
        One int4 a block, as of `subwarp_blocks`.
    cut_blocks : int
        How many of them hold parts of split rows.
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


def subwarp_blocks(
    histogram: DegreeHistogram, setting: BlockSetting, short_nzs: int
) -> tuple[Ints, int]:
    """Describe every block, for rows in ascending order of degree.

    Parameters
    ----------
    histogram : DegreeHistogram
    setting : BlockSetting
        Subwarps of a block, as `max_block_warps`, and most nonzeros of one, as `max_warp_nzs`.
    short_nzs : int
        Most nonzeros of a subwarp that takes several rows; a row without a nonzero counts as one.

    Returns
    -------
    metadata : array of int32, shape (blocks, 4)
        One int4 a block, as of `block_partition`, except that of a part of a split row the last
        word is the number of the part, and that the third is unsigned.
    cut_blocks : int
        How many of them, the first ones, hold parts of split rows.

    Raises
    ------
    PartitionError
        If there are 2^32 nonzeros or more.
    """
    check_numbers(histogram.nnz)  # a block's first one is an unsigned 32-bit word
    metadata = _patterns(histogram, setting, short_nzs).int4()
    cut_blocks = int(np.count_nonzero(metadata[:, 0] > setting.deg_bound))
    return np.roll(metadata, cut_blocks, axis=0), cut_blocks


def _patterns(histogram: DegreeHistogram, setting: BlockSetting, short_nzs: int) -> RowPatterns:
    degrees, subwarps, most = histogram.degrees, setting.max_block_warps, setting.max_warp_nzs
    factor = np.ones_like(degrees)
    shared = (degrees > most) & (degrees <= setting.deg_bound)
    factor[shared] = setting.pattern(degrees[shared])[0]
    alone = subwarps * (short_nzs // np.maximum(degrees, 1)).clip(1)
    block_rows = np.where(degrees > most, subwarps // factor, alone).clip(max=FIELD_LIMIT)
    nonzeros = np.maximum(ceil_div(degrees, factor), 1)
    return RowPatterns(degrees, histogram.rows, block_rows, nonzeros, setting)


def in_place_order(metadata: Ints, cut_blocks: int, output_rows: Ints) -> Ints:
    """Sort the blocks of whole rows by the place of their first row in the graph.

    Blocks that run at the same time then have rows that were neighbors before they were sorted by
    degree, so that a graph keeps the locality that it has. Parts of split rows stay where they are.
    `SubwarpPartition` says what the arguments are.
    """
    order = np.argsort(output_rows[metadata[cut_blocks:, 1]], kind="stable")
    return np.concatenate([metadata[:cut_blocks], metadata[cut_blocks:][order]])


def subwarp_partition(
    rows: SortedRows, setting: BlockSetting, short_nzs: int, in_place: bool = True
) -> tuple[SubwarpPartition, dict[str, float]]:
    """Partition sorted rows into blocks of subwarps, and say what that took.

    With `in_place`, blocks come in the order in which their rows stand in the graph. The others are
    as of `subwarp_blocks`, whose error it raises.
    """
    clock, output_rows = Stopwatch(), rows.permutation.order
    with clock.step("block partition"):
        metadata, cut_blocks = subwarp_blocks(rows.histogram, setting, short_nzs)
        if in_place:
            metadata = in_place_order(metadata, cut_blocks, output_rows)
        metadata.setflags(write=False)
    columns = rows.pattern.column_indices
    partition = SubwarpPartition(metadata, cut_blocks, output_rows, columns, rows.nonzero_order)
    return partition, clock.seconds


def subwarp_workload(metadata: Ints, setting: BlockSetting, start: int, stop: int) -> Workload:
    """Spell out which subwarp does what in blocks `start` to `stop` - 1.

    There is a record for each row of a subwarp, or, where subwarps share a row, for each subwarp.
    Short rows go to the subwarps in turn.
    """
    fields = decoded(metadata[start:stop], setting, numbered_parts=True)
    return fields.workload(start, setting.max_block_warps)


@dataclass(frozen=True)
class Subwarps(Scheme):
    """Blocks of `warps` subwarps, as `subwarp_blocks` makes them.

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
        """Count what `subwarp_blocks` makes; see `Scheme`."""
        histogram, warps = rows.histogram, self.warps
        setting = BlockSetting(warps, self.most)
        blocks, kind = _patterns(histogram, setting, self.short).kinds()
        n_rows, row_nzs, nonzeros = kind.rows, kind.row_nzs, kind.warp_nzs
        per_row = kind.warps_per_row
        several, part = per_row > 1, kind.degree > setting.deg_bound
        # Where each row is one subwarp's, a subwarp has every `warps`-th of them.
        turns, more = np.divmod(n_rows, warps)
        last = row_nzs - (per_row - 1) * nonzeros
        loads = np.where(several, (nonzeros, last), (turns * row_nzs, (turns + 1) * row_nzs))
        owners = np.where(several, (n_rows * (per_row - 1), n_rows), (warps - more, more))
        busiest = np.where(several, nonzeros, (turns + (more > 0)) * row_nzs)
        n_blocks, n_parts = int(blocks.sum()), int(blocks[part].sum())
        split_rows = int(histogram.rows[histogram.degrees > setting.deg_bound].sum())
        shared_rows = int((blocks * n_rows)[several & ~part].sum())
        return PartitionSummary(
            blocks=n_blocks,
            warps=n_blocks * warps,
            slots=int(blocks @ busiest) * warps,
            loads=Loads.gathered(loads.ravel(), (blocks * owners).ravel()),
            metadata_bytes=INT4_BYTES * n_blocks,
            rows_shared=shared_rows + split_rows * (warps > 1),
            rows_cut=split_rows,
            shared_atomics=0,
            global_atomics=None if self.tiles is None and n_parts else n_parts * (self.tiles or 0),
        )
