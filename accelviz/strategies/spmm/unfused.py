"""What fuseGNN (ICCAD 2020) compares with: NeuGraph's fused gather, and aggregation not fused."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.cut import Cut
from accelviz.partition.nonzero_runs import rows_of_nonzeros, run_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Plan, Reading, Strategy
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.fusegnn import block_size_of
from accelviz.strategies.spmm.fusegnn import ThreadGroups, gar_plan
from accelviz.strategies.spmm.operation import SPMM


class NeuGraph(ThreadGroups):
    """A block has a vertex and takes its edges one after the other, a thread a column.

    NeuGraph's fused gather as fuseGNN describes it (section 6.1): its GAR without thread groups, so
    that with few columns most threads of a block are idle. It takes `block_size` (threads of a
    block, a multiple of 32 up to 1,024).
    """

    name = "neugraph"
    summary = "fused gather: a block a row, one nonzero after the other"
    worker = "block"
    parameters: ClassVar = block_size_of(128)

    def build(self, graph: Graph, n_cols: int, *, block_size: int) -> Plan:
        """Give each block a row."""
        return gar_plan(graph, n_cols, block_size=block_size, groups=1)

    def cut(self, rows: RowDegrees, n_cols: int, *, block_size: int) -> Cut:
        """Name the row split: each is one block's."""
        return Cut("rows", {"each": 1, "warps": 1})


class UnfusedGas(Strategy):
    """Three kernels: gather a row for each edge into memory, weigh it there, scatter it.

    What the frameworks do that fuseGNN sets out from (section 2.3). A thread has an element of an
    edge's row. It takes `block_size` (threads of a block, a multiple of 32 up to 1,024).
    """

    operation = SPMM
    name = "unfused_gas"
    summary = "gather, apply edge, scatter, a kernel each; edges x columns in memory"
    worker = "thread"
    parameters: ClassVar = block_size_of(256)

    def build(self, graph: Graph, n_cols: int, *, block_size: int) -> Plan:
        """Spell out the rows of the nonzeros; the workload describes what is gathered.

        Raises
        ------
        PartitionError
            If the blocks are too many for a grid.
        """
        rows, seconds = rows_of_nonzeros(graph)
        blocks = -(-graph.nnz * n_cols // block_size)
        launch = LaunchConfig((blocks, 1, 1), block_size // WARP_SIZE)
        takes: dict[str, tuple[str, ...]] = {
            "gather": ("columns", "X", "messages"),
            "apply_edge": ("values", "messages"),
            "scatter": ("rows", "messages", "Y"),
        }
        calls = tuple(
            Call(
                launch,
                KernelSpec(
                    file="spmm/unfused_gas.cu",
                    entry=entry,
                    config={"block_threads": block_size},
                    arguments=(*own, "n_edges", "n_cols"),
                ),
            )
            for entry, own in takes.items()
        )
        return Plan(
            graph.pattern,
            calls,
            partial(run_workload, graph.row_pointers, 1, n_cols, block_size),
            arrays={
                "rows": rows,
                "columns": graph.column_indices,
                "n_edges": np.int64(graph.nnz),
                "n_cols": np.int32(n_cols),
            },
            workspace={"messages": (graph.nnz * n_cols, np.float32)},
            workers_per_block=block_size,
            setup_seconds=seconds,
        )

    def cut(self, rows: RowDegrees, n_cols: int, *, block_size: int) -> Cut:
        """Name the products, a thread's each; an edge counts for the thread of its first one."""
        return Cut("products", {"run": 1, "heads": n_cols, "warps": block_size, "atomics": 0})

    def reading(self, graph: Graph, n_cols: int, *, block_size: int) -> Reading | None:
        """Give each thread a column, where whole rows fill a block; else they begin anywhere."""
        return None if block_size % n_cols else Reading(n_cols, 1, n_cols)
