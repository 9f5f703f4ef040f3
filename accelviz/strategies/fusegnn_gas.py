"""fuseGNN's fused-GAS (ICCAD 2020): edges in parallel over COO, all sums by atomics."""

from __future__ import annotations

from functools import partial

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition import closed_forms
from accelviz.partition.summary import PartitionSummary
from accelviz.partition.thread_groups import edge_workload, thread_groups
from accelviz.strategies.base import Strategy
from accelviz.strategies.plans import WARP_SIZE, KernelSpec, LaunchConfig, Plan
from accelviz.strategies.rows import checked_block_size, rows_of_nonzeros


class FuseGnnGas(Strategy):
    """A thread group has an edge: it gathers a row of X and scatters it to Y with atomics.

    Gather-ApplyEdge-Scatter, Algorithm 1 of the paper. Its COO may be in any order; here it is the
    CSR's, with the row of each nonzero spelled out. `build` takes `block_size` (threads of a block,
    a multiple of 32 up to 1,024; the paper's T).
    """

    name = "fusegnn_gas"
    summary = "edges in parallel over COO; every product is added by an atomic"

    # 256 threads, with which the paper keeps the occupancy high (section 5.3).
    def build(self, graph: Graph, n_cols: int, *, block_size: int = 256) -> Plan:
        """Spell out the rows of the nonzeros; give each thread group one.

        Raises
        ------
        PartitionError
            If `block_size` is out of range, or the blocks are too many for a grid.
        """
        block_size = checked_block_size(block_size)

        rows, seconds = rows_of_nonzeros(graph)
        groups = thread_groups(block_size, n_cols)
        return Plan(
            strategy=self.name,
            graph=graph,
            n_cols=n_cols,
            parameters={"block_size": block_size},
            matrix=graph,
            launch=LaunchConfig((-(-graph.nnz // groups), 1, 1), block_size // WARP_SIZE),
            slice_workload=partial(edge_workload, rows, groups),
            kernel=KernelSpec(
                file="fusegnn_gas.cu",
                entry="fusegnn_gas",
                defines={"BLOCK_THREADS": block_size},
                arguments=("rows", "columns", "values", "X", "Y", "n_edges", "n_cols", "groups"),
            ),
            arrays={
                "rows": rows,
                "columns": graph.column_indices,
                "values": graph.values,
                "n_edges": np.int64(graph.nnz),
                "n_cols": np.int32(n_cols),
                "groups": np.int32(groups),
            },
            zero_output=True,
            setup_seconds=seconds,
            workload_warps=groups,
        )

    def summarize(self, rows: RowDegrees, n_cols: int, *, block_size: int) -> PartitionSummary:
        """Count edges: each is an atomic a column."""
        groups = thread_groups(checked_block_size(block_size), n_cols)
        return closed_forms.edges(rows, n_cols, groups)
