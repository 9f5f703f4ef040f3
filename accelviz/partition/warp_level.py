"""Warp-level partition: every warp has metadata of its own (Accel-GCN, Figure 3b).

The scheme that Accel-GCN's block-level partition is measured against, and Equation 1's divisor.
"""

from __future__ import annotations

from collections.abc import Iterable

import numba
import numpy as np
import numpy.typing as npt

from accelviz.errors import PartitionError
from accelviz.ordering import RowDegrees
from accelviz.partition.block_level import WORD_LIMIT, BlockSetting
from accelviz.partition.metadata import MetadataLine, word_lines
from accelviz.partition.summary import Integers, Loads, PartitionSummary
from accelviz.workload import Workload


def warp_partition(row_pointers: npt.NDArray[np.int64], max_warp_nzs: int) -> npt.NDArray[np.int32]:
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
    metadata = np.empty((_count_runs(row_pointers, max_warp_nzs), 4), dtype=np.int32)
    _emit_runs(row_pointers, max_warp_nzs, metadata)
    return metadata


@numba.njit(cache=True, nogil=True)
def _count_runs(row_pointers: npt.NDArray[np.int64], most: int) -> int:
    runs = 0
    for row in range(row_pointers.size - 1):
        degree = row_pointers[row + 1] - row_pointers[row]
        runs += min(degree, 1) if degree <= most else -(-degree // most)
    return runs


@numba.njit(cache=True, nogil=True)
def _emit_runs(
    row_pointers: npt.NDArray[np.int64], most: int, metadata: npt.NDArray[np.int32]
) -> None:
    run = 0
    for row in range(row_pointers.size - 1):
        start, end = row_pointers[row], row_pointers[row + 1]
        while start < end:
            words = metadata[run]
            words[0], words[1], words[2], words[3] = row, start, min(most, end - start), 0
            start += most
            run += 1


def warp_workload(
    metadata: npt.NDArray[np.int32], warps_per_block: int, start: int = 0, stop: int | None = None
) -> Workload:
    """Spell out warp-level metadata as a workload, `warps_per_block` consecutive warps a block.

    Parameters
    ----------
    metadata : array of int32, shape (warps, 4)
        As `warp_partition` gives it.
    warps_per_block : int
    start, stop : int
        First block and the one after the last; all blocks if not given.
    """
    first = start * warps_per_block
    last = len(metadata) if stop is None else min(stop * warps_per_block, len(metadata))
    runs = metadata[first:last]
    block, warp = np.divmod(np.arange(first, first + len(runs)), warps_per_block)
    return Workload(block, warp, runs[:, 0], runs[:, 1], runs[:, 2])


def warp_level_lines(
    metadata: npt.NDArray[np.int32], lines: int | Iterable[int]
) -> list[MetadataLine]:
    """Take the int4 of some warps apart (Figure 3b); see `word_lines`."""
    names = ("row", "first nonzero", "length", "padding")
    return word_lines(metadata, lines, names=names, called="warp")


def cuts_rows(metadata: npt.NDArray[np.int32], warps_per_block: int) -> bool:
    """Tell whether some row has warps in more than one block, so that its parts meet in the output.

    Parameters
    ----------
    metadata : array of int32, shape (warps, 4)
        As `warp_partition` gives it.
    warps_per_block : int
    """
    row = metadata[:, 0]
    first_of_block = np.arange(warps_per_block, row.size, warps_per_block)
    return bool(np.any(row[first_of_block] == row[first_of_block - 1]))


def storage_ratio(
    block_metadata: npt.NDArray[np.int32], warp_metadata: npt.NDArray[np.int32]
) -> float:
    """Equation 1: metadata bytes of the block-level over those of the warp-level partition.

    Both take 16 bytes an entry, so this is about 1 / (average warps with work in a block).
    """
    return block_metadata.nbytes / warp_metadata.nbytes if warp_metadata.size else 1.0


def runs_summary(
    rows: RowDegrees, n_cols: int, most: int, block_warps: int, run_bytes: int
) -> PartitionSummary:
    """Cut each row into runs of `most` nonzeros, one a warp; consecutive runs make a block.

    The warp-level partition and GNNAdvisor's neighbor groups. Runs of a row in one block add up in
    shared memory; parts of a row in several blocks meet in the output, once a block.

    Parameters
    ----------
    rows : RowDegrees
    n_cols : int
        Columns of X, for the atomics.
    most : int
        Most nonzeros of a run.
    block_warps : int
        Warps of a block.
    run_bytes : int
        Bytes of metadata for each run.
    """
    histogram = rows.histogram
    whole, rest = np.divmod(histogram.degrees, most)
    warps = int(histogram.rows @ (whole + (rest > 0)))
    blocks = -(-warps // block_warps)
    loads = np.zeros(min(most, histogram.largest) + 1, dtype=np.int64)
    np.add.at(loads, rest, histogram.rows)  # what is left of each row; none at 0
    if most < loads.size:
        loads[most] += int(histogram.rows @ whole)
    slots = shared = cut = runs = parts = None
    if rows.row_pointers is not None:
        slots, shared, cut, runs, parts = _walk_runs(rows.row_pointers, most, block_warps)
    return PartitionSummary(
        blocks=blocks,
        warps=blocks * block_warps,
        slots=slots,
        loads=Loads.counted(loads),
        metadata_bytes=run_bytes * warps,
        rows_shared=shared,
        rows_cut=cut,
        shared_atomics=None if runs is None else runs * n_cols,
        global_atomics=None if parts is None else parts * n_cols,
    )


@numba.njit(cache=True, nogil=True)
def _walk_runs(
    row_pointers: Integers, most: int, block_warps: int
) -> tuple[int, int, int, int, int]:
    """Slots, rows shared, rows cut, runs that share a row in a block, parts of cut rows."""
    slots = shared = cut = runs = parts = 0
    filled = 0  # warps of the block that is being filled
    busiest = 0
    for row in range(row_pointers.size - 1):
        degree = row_pointers[row + 1] - row_pointers[row]
        if degree <= most:  # most rows, spared the divisions
            if degree > 0:
                busiest = max(busiest, degree)
                filled += 1
                if filled == block_warps:
                    slots += block_warps * busiest
                    filled = busiest = 0
            continue
        left = -(-degree // most)
        last = degree - (left - 1) * most
        pieces = 0
        shares = False
        while left > 0:
            taken = min(left, block_warps - filled)
            if filled == 0 and left > block_warps:  # whole blocks of full runs, all at once
                many = (left - 1) // block_warps
                slots += many * block_warps * most
                pieces += many
                if block_warps > 1:
                    shares = True
                    runs += many * block_warps
                left -= many * block_warps
                continue
            left -= taken
            pieces += 1
            if taken > 1:
                shares = True
                runs += taken
            busiest = max(busiest, most if taken > 1 or left > 0 else last)
            filled += taken
            if filled == block_warps:
                slots += block_warps * busiest
                filled = busiest = 0
        if shares:
            shared += 1
        if pieces > 1:
            cut += 1
            parts += pieces
    return slots + block_warps * busiest, shared, cut, runs, parts
