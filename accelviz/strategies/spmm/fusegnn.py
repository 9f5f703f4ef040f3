"""fuseGNN's aggregations (ICCAD 2020): edges in parallel over COO, or a block a vertex over CSR."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.cut import Cut
from accelviz.partition.nonzero_runs import rows_of_nonzeros, run_workload
from accelviz.partition.thread_groups import thread_groups, vertex_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Plan, Reading, Strategy
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.blocks import csr_arrays
from accelviz.strategies.fusegnn import block_size_of, edge_cut, vertex_cut
from accelviz.strategies.spmm.operation import SPMM


class ThreadGroups(Strategy):
    """What these share: threads side by side take the columns."""

    operation = SPMM
    worker = "thread group"

    def reading(self, graph: Graph, n_cols: int, *, block_size: int) -> Reading:
        """Give each thread of a group a column, or several where the block is one group."""
        return Reading(min(n_cols, block_size), 1, n_cols)


class FuseGnnGas(ThreadGroups):
    """A thread group has an edge: it gathers a row of X and scatters it to Y with atomics.

    Gather-ApplyEdge-Scatter, Algorithm 1 of the paper. Its COO may be in any order; here it is the
    CSR's, with the row of each nonzero spelled out. It takes `block_size` (threads of a block, a
    multiple of 32 up to 1,024; the paper's T).
    """

    name = "fusegnn_gas"
    summary = "edges in parallel over COO; every product is added by an atomic"
    # 256 threads, with which the paper keeps the occupancy high (section 5.3).
    parameters: ClassVar = block_size_of(256)

    def build(self, graph: Graph, n_cols: int, *, block_size: int, heads: int = 1) -> Plan:
        """Spell out the rows of the nonzeros; give each thread group one, or one of its heads.

        Raises
        ------
        PartitionError
            If the blocks are too many for a grid.
        """
        rows, seconds = rows_of_nonzeros(graph)
        groups = thread_groups(block_size, n_cols)
        launch = LaunchConfig((-(-graph.nnz * heads // groups), 1, 1), block_size // WARP_SIZE)
        kernel = KernelSpec(
            file="spmm/fusegnn_gas.cu",
            entry="fusegnn_gas",
            defines={"BLOCK_THREADS": block_size, "HEADS": heads},
            arguments=("rows", "columns", "values", "X", "Y", "n_edges", "n_cols", "groups"),
        )
        return Plan(
            graph.pattern,
            (Call(launch, kernel),),
            partial(run_workload, graph.row_pointers, 1, heads, groups),
            arrays={
                "rows": rows,
                "columns": graph.column_indices,
                "n_edges": np.int64(graph.nnz),
                "n_cols": np.int32(n_cols),
                "groups": np.int32(groups),
            },
            setup_seconds=seconds,
            workers_per_block=groups,
        )

    def cut(self, rows: RowDegrees, n_cols: int, *, block_size: int) -> Cut:
        """Name runs of one edge: each is an atomic a column."""
        return edge_cut(block_size, n_cols)


class FuseGnnGar(ThreadGroups):
    """A block has a vertex: its thread groups share the edges and add up in shared memory.

    Gather-ApplyEdge-Reduce, Algorithm 3 of the paper, without its weights of self-loops, which are
    nonzeros of the matrix here. It takes `block_size` (threads of a block, a multiple of 32 up to
    1,024; the paper's T).
    """

    name = "fusegnn_gar"
    summary = "a block a row; thread groups take turns at its nonzeros and reduce on chip"
    parameters: ClassVar = block_size_of(128)

    def build(self, graph: Graph, n_cols: int, *, block_size: int, heads: int = 1) -> Plan:
        """Give each block a row, or one of its heads."""
        return gar_plan(graph, n_cols, block_size, thread_groups(block_size, n_cols), heads)

    def cut(self, rows: RowDegrees, n_cols: int, *, block_size: int) -> Cut:
        """Name the thread groups of a row."""
        return vertex_cut(block_size, n_cols)


def gar_plan(graph: Graph, n_cols: int, block_size: int, groups: int, heads: int = 1) -> Plan:
    """Return a plan in which a block of so many thread groups has a row."""
    kernel = KernelSpec(
        file="spmm/fusegnn_gar.cu",
        entry="fusegnn_gar",
        defines={"BLOCK_THREADS": block_size, "HEADS": heads},
        arguments=("row_pointers", "columns", "values", "X", "Y", "n_cols", "groups"),
    )
    return Plan(
        graph.pattern,
        (Call(LaunchConfig((graph.n_rows, heads, 1), block_size // WARP_SIZE), kernel),),
        partial(vertex_workload, graph.row_pointers, groups),
        arrays={**csr_arrays(graph, n_cols), "groups": np.int32(groups)},
        clears=(),
        workers_per_block=groups,
    )
