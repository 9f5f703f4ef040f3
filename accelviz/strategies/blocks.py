"""What strategies of every operation share: sizes of blocks, and rows dealt out as they are."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.row_split import RowSplit
from accelviz.plans import Description, Settings, Strategy, Widths, setting
from accelviz.plans.launch import MOST_BLOCK_WARPS, WARP_SIZE

#: Lanes that may have something together.
POWERS = (1, 2, 4, 8, 16, 32)
_MORE = "of a block; more: fewer blocks, and more of them wait for the slowest"


def block_warps_of(default: int | None, *more: int) -> Any:
    """Declare the setting `block_warps`, warps of a block; `more` is tried beside 1 to 8."""
    return setting(default, f"warps {_MORE}", MOST_BLOCK_WARPS, tries=(1, 2, 4, 8, *more))


def block_threads_of(default: int, *tries: int) -> Any:
    """Declare the setting `block_threads` or `block_size`, threads of a block in whole warps."""
    most = MOST_BLOCK_WARPS * WARP_SIZE
    return setting(default, f"threads {_MORE}", most, step=WARP_SIZE, tries=tries)


class BlockWarps(Settings):
    """`block_warps` (warps of a block, 1 to 32)."""

    block_warps: int = block_warps_of(4, 16)


class RowStrategy(Strategy):
    """Consecutive rows to consecutive warps: no preprocessing, no metadata.

    Attributes
    ----------
    rows_per_warp : int
    """

    Settings = BlockWarps
    rows_per_warp: ClassVar[int] = 1

    def describe(self, settings: BlockWarps, rows: RowDegrees, widths: Widths) -> Description:
        """Name the row split; every row is one warp's."""
        return Description(RowSplit(self.rows_per_warp, settings.block_warps))


def column_tiles(n_cols: int, max_columns: int) -> tuple[int, int]:
    """Cut the columns into equal tiles of whole warps.

    Parameters
    ----------
    n_cols : int
        Columns of the features.
    max_columns : int
        Most columns of a tile, a multiple of 32.

    Returns
    -------
    tiles, columns : int
        How many tiles, and the columns of each, rounded up to a multiple of 32.
    """
    tiles = -(-n_cols // max_columns)
    warps = -(-n_cols // (tiles * WARP_SIZE))
    return tiles, warps * WARP_SIZE


def csr_arrays(graph: Graph, n_cols: int) -> dict[str, Any]:
    """Return the arguments of a kernel that walks CSR in the caller's order."""
    return {
        "row_pointers": graph.row_pointers,
        "columns": graph.column_indices,
        "n_cols": np.int32(n_cols),
    }
