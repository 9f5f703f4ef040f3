"""Row split: consecutive rows to consecutive warps, whatever their degrees."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accelviz.workload import Workload


def row_workload(
    row_pointers: npt.NDArray[np.int64],
    rows_per_warp: int,
    warps_per_block: int,
    start: int,
    stop: int,
) -> Workload:
    """Return the workload of blocks `start` to `stop` - 1.

    Parameters
    ----------
    row_pointers : array of int64, shape (n_rows + 1,)
    rows_per_warp, warps_per_block : int
    start, stop : int
        Blocks.

    Returns
    -------
    Workload
        A record for each row; its `nz_count` is 0 where the warp only writes the row's zeros.
    """
    rows_per_block = rows_per_warp * warps_per_block
    last = min(stop * rows_per_block, row_pointers.size - 1)
    rows = np.arange(min(start * rows_per_block, last), last)
    return Workload(
        rows // rows_per_block,
        rows % rows_per_block // rows_per_warp,
        rows,
        row_pointers[rows],
        row_pointers[rows + 1] - row_pointers[rows],
    )
