"""The block-level partition for subwarps, which the strategy `lane_groups` uses.

A subwarp is a group of lanes of a warp that works on rows of its own. The partition follows
Algorithms 1 and 2 of Accel-GCN (`block_level`) with subwarps in place of warps, and differs in four
ways: a subwarp may have several short rows, rows without a nonzero have blocks too, the parts of
split rows come first, and the other blocks may be in the order of their rows in the graph.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accelviz.arrays import Ints
from accelviz.immutable import taken_over
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
from accelviz.partition.hardware_warps import HardwareWarps
from accelviz.partition.nonzero_runs import check_numbers
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import PartitionSummary, counted, launched
from accelviz.store import Stopwatch
from accelviz.workload import Workload, nonzeros_per_warp

#: Names of the words of a block's int4. A bar separates the names of two 16-bit halves.
WORDS = ("degree", "first place", "first nonzero", "nonzeros of a group | rows, or the part")


@dataclass(frozen=True, eq=False)
class SubwarpPartition:
    """Arrays that the kernel of `lane_groups` reads, from NumPy or CuPy.

    Attributes
    ----------
    metadata : array of int32, shape (blocks, 4)
        One int4 per block, as `subwarp_blocks` returns it.
    cut_blocks : int
        Number of blocks with parts of split rows. They are the first blocks.
    output_rows : array of int32, shape (n_rows,)
        Row of the graph for each row in degree-sorted order.
    columns : array of int32, shape (nnz,)
        Column of each nonzero, in degree-sorted order of the rows.
    nonzero_order : array of int, shape (nnz,)
        Position in the graph of each nonzero of `columns`.
    """

    metadata: Any
    cut_blocks: int
    output_rows: Any
    columns: Any
    nonzero_order: Any

    @property
    def arrays(self) -> dict[str, Any]:
        """Arguments of the kernel, by name."""
        names = ("metadata", "output_rows", "columns")
        return {name: getattr(self, name) for name in names}


def subwarp_blocks(
    histogram: DegreeHistogram, setting: BlockSetting, short_nzs: int
) -> tuple[Ints, int]:
    """Compute the metadata of every block, for rows sorted by ascending degree.

    Parameters
    ----------
    histogram : DegreeHistogram
    setting : BlockSetting
        Number of subwarps per block (`max_block_warps`) and largest number of nonzeros per subwarp
        (`max_warp_nzs`).
    short_nzs : int
        Largest number of nonzeros of a subwarp with several rows. A row without a nonzero counts as
        one nonzero.

    Returns
    -------
    metadata : array of int32, shape (blocks, 4)
        One int4 per block, as of `block_partition`, with two differences: the third word is
        unsigned, and the last word of a part of a split row is the index of the part.
    cut_blocks : int
        Number of blocks with parts of split rows. They are the first blocks.

    Raises
    ------
    PartitionError
        If there are 2^32 nonzeros or more.
    """
    check_numbers(histogram.nnz)
    metadata = _patterns(histogram, setting, short_nzs).int4()
    cut_blocks = int(np.count_nonzero(metadata[:, 0] > setting.deg_bound))
    return np.roll(metadata, cut_blocks, axis=0), cut_blocks


def _patterns(histogram: DegreeHistogram, setting: BlockSetting, short_nzs: int) -> RowPatterns:
    degrees, subwarps, most = histogram.degrees, setting.max_block_warps, setting.max_warp_nzs
    factor = np.ones_like(degrees)
    shared = (degrees > most) & (degrees <= setting.deg_bound)
    factor[shared] = setting.pattern(degrees[shared])[0]
    rows_per_subwarp = (short_nzs // np.maximum(degrees, 1)).clip(1)
    block_rows = np.where(degrees > most, subwarps // factor, subwarps * rows_per_subwarp)
    block_rows = block_rows.clip(max=FIELD_LIMIT)
    nonzeros = np.maximum(ceil_div(degrees, factor), 1)
    return RowPatterns(degrees, histogram.rows, block_rows, nonzeros, setting)


def in_place_order(metadata: Ints, cut_blocks: int, output_rows: Ints) -> Ints:
    """Sort the blocks of whole rows by the number of their first row in the graph.

    Blocks that run at the same time then have rows that are near each other in the graph, which
    preserves the locality of its vertex order. Blocks with parts of split rows keep their places.
    The parameters are attributes of `SubwarpPartition`.
    """
    order = np.argsort(output_rows[metadata[cut_blocks:, 1]], kind="stable")
    return np.concatenate([metadata[:cut_blocks], metadata[cut_blocks:][order]])


def subwarp_partition(
    rows: SortedRows, setting: BlockSetting, short_nzs: int, in_place: bool = True
) -> tuple[SubwarpPartition, dict[str, float]]:
    """Partition degree-sorted rows into blocks of subwarps; see `subwarp_blocks`.

    With `in_place`, the blocks of whole rows are in the order of `in_place_order`. Returns the
    partition and the seconds of each step.
    """
    clock, output_rows = Stopwatch(), rows.permutation.order
    with clock.step("block partition"):
        metadata, cut_blocks = subwarp_blocks(rows.histogram, setting, short_nzs)
        if in_place:
            metadata = in_place_order(metadata, cut_blocks, output_rows)
    columns = rows.pattern.column_indices
    metadata = taken_over(metadata)
    partition = SubwarpPartition(metadata, cut_blocks, output_rows, columns, rows.nonzero_order)
    return partition, clock.seconds


def subwarp_workload(metadata: Ints, setting: BlockSetting, start: int, stop: int) -> Workload:
    """Return the workload of blocks `start` to `stop` - 1: one record per row and subwarp.

    Row `i` of a block of short rows belongs to subwarp `i` modulo the number of subwarps.
    """
    fields = decoded(metadata[start:stop], setting, numbered_parts=True)
    return fields.workload(start, setting.max_block_warps)


@dataclass(frozen=True)
class Subwarps(Scheme):
    """Blocks of `warps` subwarps, as in `subwarp_blocks`.

    Attributes
    ----------
    most : int
        Largest number of nonzeros per subwarp.
    short : int
        Largest number of nonzeros of a subwarp with several rows.
    tiles : int, optional
        Number of column tiles. A block of a split row executes one atomic per column tile.
    in_place : int
        1 if blocks are in the order of their rows in the graph, else 0.
    """

    kind = "lane_groups"
    warps: int
    most: int
    short: int
    tiles: int | None
    in_place: int

    def summary(self, rows: RowDegrees, n_cols: int, hardware: HardwareWarps) -> PartitionSummary:
        """Count the blocks of `subwarp_blocks`; see `Scheme`."""
        histogram, warps = rows.histogram, self.warps
        setting = BlockSetting(warps, self.most)
        blocks, fields = _patterns(histogram, setting, self.short).distinct_blocks()
        shared, is_part = fields.warps_per_row > 1, fields.degree > setting.deg_bound
        n_blocks, n_parts = int(blocks.sum()), int(blocks[is_part].sum())
        split_rows = int(histogram.rows[histogram.degrees > setting.deg_bound].sum())
        shared_rows = int((blocks * fields.rows)[shared & ~is_part].sum())
        loads = nonzeros_per_warp(fields.workload(0, warps), warps)
        return replace(
            launched(n_blocks, hardware),
            **counted(loads, hardware, blocks),
            metadata_bytes=INT4_BYTES * n_blocks,
            rows_shared=shared_rows + split_rows * (warps > 1),
            rows_cut=split_rows,
            shared_atomics=0,
            global_atomics=None if self.tiles is None and n_parts else n_parts * (self.tiles or 0),
        )
