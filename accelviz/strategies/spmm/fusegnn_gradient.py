"""fuseGNN's backward passes with the gradient of edge weights (ICCAD 2020, Algorithm 2 and 5.4).

Without that gradient its forward kernels serve, on the transposed matrix.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.cut import Cut
from accelviz.partition.nonzero_runs import (
    check_numbers,
    numbers_32,
    rows_of_nonzeros,
    run_workload,
)
from accelviz.partition.thread_groups import thread_groups, vertex_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Plan, Strategy
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.fusegnn import block_size_of, edge_cut, vertex_cut
from accelviz.strategies.spmm.gradient import SPMM_GRADIENT

#: Most columns whose sums fit in shared memory beside a row of X.
_MOST_COLUMNS = 24_000
_OPERANDS = ("values", "X", "dY", "d_values", "dX")


class FuseGnnGasGradient(Strategy):
    """A thread group has an edge: it scatters to dX with atomics, and reduces d_values on chip.

    Algorithm 2 of the paper. It takes `block_size` (threads of a block, a multiple of 32 up to
    1,024; the paper's T).
    """

    operation = SPMM_GRADIENT
    name = "fusegnn_gas"
    summary = "edges in parallel over COO; dX by atomics, weights' gradients reduced on chip"
    worker = "thread group"
    parameters: ClassVar = block_size_of(256)

    def build(self, graph: Graph, n_cols: int, *, block_size: int, heads: int = 1) -> Plan:
        """Spell out the senders of the nonzeros; give each thread group one, or one of its heads.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, or too many blocks for a grid.
        """
        check_numbers(graph.nnz)
        turned, nonzeros = graph.transposed().graph, graph.transposed().nonzeros
        sources, seconds = rows_of_nonzeros(turned)
        groups = thread_groups(block_size, n_cols)
        kernel = KernelSpec(
            file="spmm/fusegnn_gas_gradient.cu",
            entry="fusegnn_gas_gradient",
            defines={"BLOCK_THREADS": block_size, "HEADS": heads},
            arguments=("sources", "targets", "order", *_OPERANDS, "n_edges", "n_cols", "groups"),
        )
        launch = LaunchConfig((-(-graph.nnz * heads // groups), 1, 1), block_size // WARP_SIZE)
        return Plan(
            graph.pattern,
            (Call(launch, kernel),),
            partial(run_workload, turned.row_pointers, 1, heads, groups),
            walked=turned.pattern,
            nonzero_order=nonzeros,
            arrays={
                "sources": sources,
                "targets": turned.column_indices,
                "order": numbers_32(nonzeros),
                "n_edges": np.int64(graph.nnz),
                "n_cols": np.int32(n_cols),
                "groups": np.int32(groups),
            },
            clears=("dX",),
            setup_seconds=seconds,
            workers_per_block=groups,
        )

    def cut(self, rows: RowDegrees, n_cols: int, *, block_size: int) -> Cut:
        """Name runs of one edge: each is an atomic a column."""
        return edge_cut(block_size, n_cols)


class FuseGnnGarGradient(Strategy):
    """A block has a sender: its thread groups share the edges, and all is reduced on chip.

    Section 5.4 of the paper. It takes `block_size` (threads of a block, a multiple of 32 up to
    1,024; the paper's T).
    """

    operation = SPMM_GRADIENT
    name = "fusegnn_gar"
    summary = "a block a sender; thread groups take turns at its nonzeros and reduce on chip"
    worker = "thread group"
    parameters: ClassVar = block_size_of(128)

    def build(self, graph: Graph, n_cols: int, *, block_size: int, heads: int = 1) -> Plan:
        """Give each block a sender, or one of its heads.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, or the columns do not fit in shared memory.
        """
        if n_cols > _MOST_COLUMNS:
            raise PartitionError("n_cols", f"got {n_cols}", f"at most {_MOST_COLUMNS:,}")
        check_numbers(graph.nnz)
        turned, nonzeros = graph.transposed().graph, graph.transposed().nonzeros
        groups = thread_groups(block_size, n_cols)
        kernel = KernelSpec(
            file="spmm/fusegnn_gar_gradient.cu",
            entry="fusegnn_gar_gradient",
            defines={"BLOCK_THREADS": block_size, "HEADS": heads},
            arguments=("source_pointers", "targets", "order", *_OPERANDS, "n_cols", "groups"),
        )
        shared = 8 * n_cols if groups == 1 else 0
        launch = LaunchConfig((turned.n_rows, heads, 1), block_size // WARP_SIZE, shared)
        return Plan(
            graph.pattern,
            (Call(launch, kernel),),
            partial(vertex_workload, turned.row_pointers, groups),
            walked=turned.pattern,
            nonzero_order=nonzeros,
            arrays={
                "source_pointers": turned.row_pointers,
                "targets": turned.column_indices,
                "order": numbers_32(nonzeros),
                "n_cols": np.int32(n_cols),
                "groups": np.int32(groups),
            },
            clears=(),
            workers_per_block=groups,
        )

    def cut(self, rows: RowDegrees, n_cols: int, *, block_size: int) -> Cut:
        """Name the thread groups of a sender."""
        return vertex_cut(block_size, n_cols)
