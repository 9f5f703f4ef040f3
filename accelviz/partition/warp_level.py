"""Warp-level partition: every warp has metadata of its own (Accel-GCN, Figure 3b).

The scheme that Accel-GCN's block-level partition is measured against, and Equation 1's divisor.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from accelviz.errors import PartitionError
from accelviz.partition.block_level import WORD_LIMIT, BlockSetting
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
