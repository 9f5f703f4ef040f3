"""What strategies of every operation share: sizes of blocks, and rows dealt out as they are."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.cut import Cut
from accelviz.plans import Parameter, Strategy
from accelviz.plans.launch import MOST_BLOCK_WARPS, WARP_SIZE

#: Lanes that may have something together.
POWERS = (1, 2, 4, 8, 16, 32)
_MORE = "of a block; more: fewer blocks, and more of them wait for the slowest"


def block_warps_of(default: int | None, *more: int) -> Parameter:
    """Return the parameter `block_warps`, warps of a block; `more` is tried beside 1 to 8."""
    return Parameter(default, f"warps {_MORE}", MOST_BLOCK_WARPS, tries=(1, 2, 4, 8, *more))


def block_threads_of(default: int, *tries: int) -> Parameter:
    """Return the parameter `block_threads` or `block_size`, threads of a block in whole warps."""
    most = MOST_BLOCK_WARPS * WARP_SIZE
    return Parameter(default, f"threads {_MORE}", most, step=WARP_SIZE, tries=tries)


class RowSplit(Strategy):
    """Consecutive rows to consecutive warps: no preprocessing, no metadata.

    Attributes
    ----------
    rows_per_warp : int
    """

    rows_per_warp: ClassVar[int] = 1

    def cut(self, rows: RowDegrees, n_cols: int, *, block_warps: int, heads: int = 1) -> Cut:
        """Name the row split; every row is one warp's."""
        return Cut("rows", {"each": self.rows_per_warp, "warps": block_warps})


def csr_arrays(graph: Graph, n_cols: int) -> dict[str, Any]:
    """Return the arguments of a kernel that walks CSR in the caller's order."""
    return {
        "row_pointers": graph.row_pointers,
        "columns": graph.column_indices,
        "n_cols": np.int32(n_cols),
    }
