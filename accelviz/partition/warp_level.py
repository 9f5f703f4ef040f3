"""Warp-level partition: every warp has metadata of its own (Accel-GCN, Figure 3b).

The scheme that Accel-GCN's block-level partition is measured against, and Equation 1's divisor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numba
import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.errors import PartitionError
from accelviz.ordering import RowDegrees
from accelviz.partition.block_level import WORD_LIMIT, BlockSetting, ceil_div
from accelviz.partition.metadata import MetadataRecord, word_records
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import Loads, PartitionSummary
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
    runs = int(ceil_div(np.diff(row_pointers), max_warp_nzs).sum())
    metadata = np.empty((runs, 4), dtype=np.int32)
    _emit_runs(row_pointers, max_warp_nzs, metadata)
    return metadata


@numba.njit(cache=True, nogil=True)
def _emit_runs(row_pointers: Longs, most: int, metadata: Ints) -> None:
    run = 0
    for row in range(row_pointers.size - 1):
        start, end = row_pointers[row], row_pointers[row + 1]
        while start < end:
            words = metadata[run]
            words[0], words[1], words[2], words[3] = row, start, min(most, end - start), 0
            start += most
            run += 1


def warp_workload(
    metadata: Ints, block_warps: int, start: int = 0, stop: int | None = None
) -> Workload:
    """Spell out warp-level metadata as a workload, `block_warps` consecutive warps a block.

    Parameters
    ----------
    metadata : array of int32, shape (warps, 4)
        As `warp_partition` gives it.
    block_warps : int
    start, stop : int
        First block and the one after the last; all blocks if not given.
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
        slots = shared = cut = runs = parts = None
        if rows.row_pointers is not None:
            slots, shared, cut, runs, parts = _walk_runs(rows.row_pointers, most, warps)
        return PartitionSummary(
            blocks=blocks,
            warps=blocks * warps,
            slots=slots,
            loads=Loads.of_shares(n_rows, degrees, np.full_like(degrees, most)),
            metadata_bytes=self.line_bytes * lines,
            rows_shared=shared,
            rows_cut=cut,
            shared_atomics=None if runs is None else runs * n_cols,
            global_atomics=None if parts is None else parts * n_cols,
        )


@numba.njit(cache=True, nogil=True)
def _walk_runs(row_pointers: Longs, most: int, block_warps: int) -> tuple[int, int, int, int, int]:
    """Slots, rows shared, rows cut, runs that share a row in a block, parts of cut rows."""
    slots = shared = cut = runs = parts = 0
    filled = busiest = 0  # warps of the block that is being filled, nonzeros of its busiest one
    for row in range(row_pointers.size - 1):
        degree = row_pointers[row + 1] - row_pointers[row]
        left = min(degree, 1) if degree <= most else -(-degree // most)  # most rows divide nothing
        last = degree - (left - 1) * most
        pieces = together = 0
        while left > 0:
            if filled == 0 and left > block_warps:  # whole blocks of full runs, all at once
                many = (left - 1) // block_warps
                slots += many * block_warps * most
                pieces += many
                together += many * block_warps if block_warps > 1 else 0
                left -= many * block_warps
                continue
            taken = min(left, block_warps - filled)
            left -= taken
            pieces += 1
            together += taken if taken > 1 else 0
            busiest = max(busiest, most if taken > 1 or left > 0 else last)
            filled += taken
            if filled == block_warps:
                slots += block_warps * busiest
                filled = busiest = 0
        runs += together
        shared += min(together, 1)
        if pieces > 1:
            cut += 1
            parts += pieces
    return slots + block_warps * busiest, shared, cut, runs, parts
