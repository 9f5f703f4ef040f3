"""Warp-level partition: every warp has metadata of its own (Accel-GCN, Figure 3b).

The scheme that Accel-GCN's block-level partition is measured against, and Equation 1's divisor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.errors import PartitionError
from accelviz.ordering import RowDegrees
from accelviz.partition.block_level import WORD_LIMIT, BlockSetting, ceil_div
from accelviz.partition.metadata import MetadataRecord, word_records
from accelviz.partition.neighbor_groups import neighbor_groups, warp_memory
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import Loads, PartitionSummary, count_distinct, slots_of
from accelviz.workload import Workload


def warp_partition(row_pointers: Longs, max_warp_nzs: int) -> Ints:
    """Cut every row, in the order given, into runs of at most `max_warp_nzs` nonzeros.

    Parameters
    ----------
    row_pointers : array of int64, shape (n_rows + 1,)
        Of a valid CSR matrix; the rows need no order.
    max_warp_nzs : int
        Most nonzeros one warp handles, 1 to 65,535.

    Returns
    -------
    array of int32, shape (warps, 4)
        `(row, position of first nonzero, length, 0)` for each warp: 96 bits, padded to the 128 that
        one memory transaction reads.

    Raises
    ------
    PartitionError
        If `max_warp_nzs` is out of range, or there are 2^31 nonzeros or more.
    """
    max_warp_nzs = BlockSetting(max_warp_nzs=max_warp_nzs).max_warp_nzs
    if row_pointers[-1] > WORD_LIMIT:
        raise PartitionError("graph", f"{row_pointers[-1]:,} nonzeros", f"at most {WORD_LIMIT:,}")
    runs = neighbor_groups(row_pointers, max_warp_nzs)
    metadata = np.zeros((len(runs), 4), dtype=np.int32)
    metadata[:, 0], metadata[:, 1] = runs.rows, runs.pointers[:-1]
    metadata[:, 2] = np.diff(runs.pointers)
    return metadata


def warp_workload(
    metadata: Ints, block_warps: int, start: int = 0, stop: int | None = None
) -> Workload:
    """Spell out warp-level metadata as a workload, `block_warps` consecutive warps a block.

    `start` and `stop` are the first block and the one after the last; all blocks if not given.
    """
    first = start * block_warps
    runs = metadata[first : None if stop is None else stop * block_warps]
    block, warp = np.divmod(first + np.arange(len(runs)), block_warps)
    return Workload(block, warp, runs[:, 0], runs[:, 1], runs[:, 2])


def warp_level_records(metadata: Ints, lines: int | Iterable[int]) -> list[MetadataRecord]:
    """Take the int4 of some warps apart (Figure 3b); see `word_records`."""
    names = ("row", "first nonzero", "length", "padding")
    return word_records(metadata, lines, names=names, called="warp")


def cuts_rows(metadata: Ints, block_warps: int) -> bool:
    """Tell whether some row has warps in several blocks, so that its parts meet in the output."""
    row = metadata[:, 0]
    first_of_block = np.arange(block_warps, row.size, block_warps)
    return bool(np.any(row[first_of_block] == row[first_of_block - 1]))


def storage_ratio(block_metadata: Ints, warp_metadata: Ints) -> float:
    """Equation 1: metadata bytes of the block-level over those of the warp-level partition.

    Both take 16 bytes an entry, so this is about 1 / (average warps with work in a block).
    """
    return block_metadata.nbytes / warp_metadata.nbytes if warp_metadata.size else 1.0


@dataclass(frozen=True)
class Runs(Scheme):
    """Runs of at most `most` nonzeros of a row, one a warp; consecutive runs make a block.

    The warp-level partition and GNNAdvisor's neighbor groups. Runs of a row in one block add up in
    shared memory; parts of a row in several blocks meet in the output, once a block. A run has
    `line_bytes` bytes of metadata.
    """

    kind = "runs"
    warps: int
    most: int
    line_bytes: int

    def summary(self, rows: RowDegrees, n_cols: int) -> PartitionSummary:
        """Count the runs; see `Scheme`."""
        most, warps = self.most, self.warps
        histogram = rows.histogram
        degrees, n_rows = histogram.degrees, histogram.rows
        lines = int(n_rows @ ceil_div(degrees, most))
        blocks = -(-lines // warps)
        summary = PartitionSummary(
            blocks=blocks,
            warps=blocks * warps,
            loads=Loads.of_shares(n_rows, degrees, np.full_like(degrees, most)),
            metadata_bytes=self.line_bytes * lines,
        )
        if rows.row_pointers is None:
            return summary
        runs = neighbor_groups(rows.row_pointers, most)
        memory = warp_memory(runs.rows, warps)
        return replace(
            summary,
            slots=slots_of(np.diff(runs.pointers), warps),
            rows_shared=count_distinct(runs.rows[memory.shared]),
            rows_cut=count_distinct(runs.rows[memory.cut]),
            shared_atomics=int(memory.shared.sum()) * n_cols,
            global_atomics=int((memory.leader & memory.cut).sum()) * n_cols,
        )
