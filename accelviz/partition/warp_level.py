"""Warp-level partition: one metadata record per warp (Accel-GCN, Figure 3b).

Accel-GCN compares its block-level partition with this scheme; Equation 1 is the ratio of their
metadata sizes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.errors import PartitionError
from accelviz.ordering import RowDegrees
from accelviz.partition.block_level import WORD_LIMIT, BlockSetting, ceil_div
from accelviz.partition.hardware_warps import HardwareWarps
from accelviz.partition.metadata import MetadataRecord, word_records
from accelviz.partition.neighbor_groups import neighbor_groups, warp_memory
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import (
    Loads,
    PartitionSummary,
    count_distinct,
    counted_loads,
    counted_workers,
    launched,
)
from accelviz.workload import Workload


def warp_partition(row_pointers: Longs, max_warp_nzs: int) -> Ints:
    """Split every row into runs of at most `max_warp_nzs` nonzeros, one run per warp.

    Parameters
    ----------
    row_pointers : array of int64, shape (n_rows + 1,)
        Of a valid CSR matrix. The rows keep their order and need not be sorted by degree.
    max_warp_nzs : int
        Largest number of nonzeros per warp, 1 to 65,535.

    Returns
    -------
    array of int32, shape (warps, 4)
        One record per warp: `(row, position of first nonzero, length, 0)`. The last word pads the
        record to 128 bits, which one memory transaction reads.

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
    """Return the workload of blocks `start` to `stop` - 1, by default of all blocks.

    A block has `block_warps` consecutive records of `metadata`.
    """
    first = start * block_warps
    runs = metadata[first : None if stop is None else stop * block_warps]
    block, warp = np.divmod(first + np.arange(len(runs)), block_warps)
    return Workload(block, warp, runs[:, 0], runs[:, 1], runs[:, 2])


def warp_level_records(metadata: Ints, warps: int | Iterable[int]) -> list[MetadataRecord]:
    """Decode the int4 of selected warps (Figure 3b); see `word_records`."""
    names = ("row", "first nonzero", "length", "padding")
    return word_records(metadata, warps, names=names, called="warp")


def cuts_rows(metadata: Ints, block_warps: int) -> bool:
    """Return whether any row has warps in several blocks, so that the output needs atomics."""
    row = metadata[:, 0]
    first_of_block = np.arange(block_warps, row.size, block_warps)
    return bool(np.any(row[first_of_block] == row[first_of_block - 1]))


def storage_ratio(block_metadata: Ints, warp_metadata: Ints) -> float:
    """Return the size of block-level metadata over that of warp-level metadata (Equation 1).

    A record has 16 bytes in both, so this is about 1 / (mean number of busy warps per block). It is
    1 if there is no warp.
    """
    return block_metadata.nbytes / warp_metadata.nbytes if warp_metadata.size else 1.0


@dataclass(frozen=True)
class Runs(Scheme):
    """One run of at most `most` nonzeros of a row per warp, `warps` consecutive runs per block.

    This is the warp-level partition and GNNAdvisor's neighbor groups. Runs of a row in one block
    add up in shared memory by atomics. If a row has runs in several blocks, each of them adds its
    sum to the output by atomics. A run has `line_bytes` bytes of metadata.
    """

    kind = "runs"
    warps: int
    most: int
    line_bytes: int

    def summary(self, rows: RowDegrees, n_cols: int, hardware: HardwareWarps) -> PartitionSummary:
        """Count runs and the rows that they share; see `Scheme`."""
        most, warps = self.most, self.warps
        histogram = rows.histogram
        degrees, n_rows = histogram.degrees, histogram.rows
        n_runs = int(n_rows @ ceil_div(degrees, most))
        blocks = -(-n_runs // warps)
        loads = Loads.of_split_rows(n_rows, degrees, np.full_like(degrees, most))
        summary = replace(
            launched(blocks, hardware),
            **counted_loads(loads, hardware),
            metadata_bytes=self.line_bytes * n_runs,
        )
        if rows.row_pointers is None:
            return summary
        runs = neighbor_groups(rows.row_pointers, most)
        memory = warp_memory(runs.rows, warps)
        return replace(
            summary,
            **counted_workers(np.diff(runs.pointers), hardware),
            rows_shared=count_distinct(runs.rows[memory.shared]),
            rows_cut=count_distinct(runs.rows[memory.cut]),
            shared_atomics=int(memory.shared.sum()) * n_cols,
            global_atomics=int((memory.leader & memory.cut).sum()) * n_cols,
        )
