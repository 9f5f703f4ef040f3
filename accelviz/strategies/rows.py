"""What the strategies have in common that give each warp whole rows in the caller's order."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.partition.row_split import row_workload
from accelviz.strategies.base import KernelSpec, LaunchConfig, Plan

#: Warps of a block that every CUDA GPU can launch.
MOST_BLOCK_WARPS = 32


def plan_rows(
    strategy: str,
    graph: Graph,
    n_cols: int,
    *,
    block_warps: int,
    rows_per_warp: int,
    column_tiles: int,
    defines: Mapping[str, int],
) -> Plan:
    """Plan a kernel that walks the graph as it is, without preprocessing or metadata.

    Parameters
    ----------
    strategy : str
        Its name, which is also the kernel's and, with `.cu`, its file's.
    graph : Graph
    n_cols : int
    block_warps : int
        Warps of a block, a parameter of the strategy.
    rows_per_warp : int
        Rows of a warp.
    column_tiles : int
        Tiles of columns, along the grid's y.
    defines : mapping of str to int
        Further constants of the kernel, besides `BLOCK_WARPS`.

    Raises
    ------
    PartitionError
        If `block_warps` is not 1 to 32.
    """
    if (
        isinstance(block_warps, bool)
        or not isinstance(block_warps, int | np.integer)
        or not 1 <= block_warps <= MOST_BLOCK_WARPS
    ):
        raise PartitionError("block_warps", f"got {block_warps!r}", f"1 to {MOST_BLOCK_WARPS}")
    block_warps = int(block_warps)
    blocks = -(-graph.n_rows // (rows_per_warp * block_warps))
    arrays: dict[str, Any] = {
        "row_pointers": graph.row_pointers,
        "columns": graph.column_indices,
        "values": graph.values,
        "n_rows": np.int32(graph.n_rows),
        "n_cols": np.int32(n_cols),
    }
    return Plan(
        strategy=strategy,
        graph=graph,
        n_cols=n_cols,
        parameters={"block_warps": block_warps},
        matrix=graph,
        launch=LaunchConfig((blocks, column_tiles, 1), block_warps),
        slice_workload=partial(row_workload, graph.row_pointers, rows_per_warp, block_warps),
        kernel=KernelSpec(
            file=f"{strategy}.cu",
            entry=strategy,
            defines={"BLOCK_WARPS": block_warps, **defines},
            arguments=("row_pointers", "columns", "values", "X", "Y", "n_rows", "n_cols"),
        ),
        arrays=arrays,
        zero_output=False,
    )
