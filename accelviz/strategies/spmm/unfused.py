"""What fuseGNN (ICCAD 2020) compares with: NeuGraph's fused gather, and aggregation not fused."""

from __future__ import annotations

from functools import partial

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.nonzero_runs import Products, rows_of_nonzeros, run_workload
from accelviz.partition.row_split import RowSplit
from accelviz.plans.description import Description, LaneColumns
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.strategies.fusegnn import BlockSize
from accelviz.strategies.spmm.fusegnn import FuseGnnGar, side_by_side
from accelviz.strategies.spmm.operation import SPMM


class NeuGraph(FuseGnnGar):
    """A block has a vertex and takes its edges one after the other, a thread a column.

    NeuGraph's fused gather as fuseGNN describes it (section 6.1): its GAR without thread groups, so
    that with few columns most threads of a block are idle. It takes `block_size` (threads of a
    block, a multiple of 32 up to 1,024).
    """

    name = "neugraph"
    summary = "fused gather: a block a row, one nonzero after the other"
    worker = "block"
    groups = 1

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name the row split: each is one block's."""
        return Description(RowSplit(1, 1), side_by_side(settings, widths))


class UnfusedGas(Strategy):
    """Three kernels: gather a row for each edge into memory, weigh it there, scatter it.

    What the frameworks do that fuseGNN sets out from (section 2.3). A thread has an element of an
    edge's row. It takes `block_size` (threads of a block, a multiple of 32 up to 1,024).
    """

    operation = SPMM
    name = "unfused_gas"
    summary = "gather, apply edge, scatter, a kernel each; edges x columns in memory"
    worker = "thread"
    Settings = BlockSize

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Spell out the rows of the nonzeros; the workload describes what is gathered.

        Raises
        ------
        PartitionError
            If the blocks are too many for a grid.
        """
        n_cols, block_size = widths["n_cols"], settings.block_size
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
                    arguments=(*arguments, "n_edges", "n_cols"),
                ),
            )
            for entry, arguments in takes.items()
        )
        arrays = {
            "rows": rows,
            "columns": graph.column_indices,
            "n_edges": np.int64(graph.nnz),
            "n_cols": np.int32(n_cols),
        }
        workload = partial(run_workload, graph.row_pointers, 1, n_cols, block_size)
        return Plan(
            Layout(graph.pattern, workload, workers_per_block=block_size),
            calls,
            Buffers(arrays, workspace={"messages": (graph.nnz * n_cols, np.float32)}),
            Provenance(self, graph.values, widths, settings, seconds),
        )

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name the products, a thread's each; an edge counts for the thread of its first one.

        A thread has a column where whole rows fill a block; else they begin anywhere.
        """
        n_cols, block_size = widths["n_cols"], settings.block_size
        scheme = Products(run=1, heads=n_cols, warps=block_size, atomics=0)
        return Description(scheme, None if block_size % n_cols else LaneColumns(n_cols, 1, n_cols))
