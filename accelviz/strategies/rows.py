"""What strategies share that walk the graph as it is, in the caller's order."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition import closed_forms
from accelviz.partition.checks import checked_integer
from accelviz.partition.row_split import row_workload
from accelviz.partition.summary import PartitionSummary
from accelviz.partition.thread_groups import coo_rows
from accelviz.strategies.base import Stopwatch, prepared
from accelviz.strategies.plans import WARP_SIZE, KernelSpec, LaunchConfig, Plan

#: Warps of a block that every CUDA GPU can launch.
MOST_BLOCK_WARPS = 32


def checked_block_size(block_size: int) -> int:
    """Return fuseGNN's parameter of that name, threads of a block, if it is whole warps.

    Raises
    ------
    PartitionError
        If it is no multiple of 32 up to 1,024.
    """
    most = MOST_BLOCK_WARPS * WARP_SIZE
    return checked_integer("block_size", block_size, most, step=WARP_SIZE)


def rows_of_nonzeros(graph: Graph) -> tuple[npt.NDArray[np.int32], dict[str, float]]:
    """Return the row of each nonzero, which COO stores, once for each graph; and what it took."""

    def convert(clock: Stopwatch) -> npt.NDArray[np.int32]:
        with clock.step("CSR to COO"):
            rows = coo_rows(graph.row_pointers)
        rows.setflags(write=False)
        return rows

    return prepared(graph, "coo rows", convert)


def summarize_rows(rows: RowDegrees, rows_per_warp: int, block_warps: int) -> PartitionSummary:
    """Sum up what `plan_rows` plans.

    Raises
    ------
    PartitionError
        If `block_warps` is not 1 to 32.
    """
    block_warps = checked_integer("block_warps", block_warps, MOST_BLOCK_WARPS)
    return closed_forms.rows_in_order(rows, rows_per_warp, block_warps)


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
    block_warps = checked_integer("block_warps", block_warps, MOST_BLOCK_WARPS)
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
