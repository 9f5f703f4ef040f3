"""fuseGNN's fused-GAR (ICCAD 2020): a block a vertex over CSR, sums on chip."""

from __future__ import annotations

from functools import partial

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition import closed_forms
from accelviz.partition.summary import PartitionSummary
from accelviz.partition.thread_groups import thread_groups, vertex_workload
from accelviz.strategies.base import Strategy
from accelviz.strategies.plans import WARP_SIZE, KernelSpec, LaunchConfig, Plan
from accelviz.strategies.rows import checked_block_size


class FuseGnnGar(Strategy):
    """A block has a vertex: its thread groups share the edges and add up in shared memory.

    Gather-ApplyEdge-Reduce, Algorithm 3 of the paper, without its weights of self-loops, which are
    nonzeros of the matrix here. `build` takes `block_size` (threads of a block, a multiple of 32 up
    to 1,024; the paper's T).
    """

    name = "fusegnn_gar"
    summary = "a block a row; thread groups take turns at its nonzeros and reduce on chip"

    def build(self, graph: Graph, n_cols: int, *, block_size: int = 128) -> Plan:
        """Give each block a row.

        Raises
        ------
        PartitionError
            If `block_size` is out of range.
        """
        block_size = checked_block_size(block_size)
        groups = thread_groups(block_size, n_cols)
        return Plan(
            strategy=self.name,
            graph=graph,
            n_cols=n_cols,
            parameters={"block_size": block_size},
            matrix=graph,
            launch=LaunchConfig((graph.n_rows, 1, 1), block_size // WARP_SIZE),
            slice_workload=partial(vertex_workload, graph.row_pointers, groups),
            kernel=KernelSpec(
                file="fusegnn_gar.cu",
                entry="fusegnn_gar",
                defines={"BLOCK_THREADS": block_size},
                arguments=("row_pointers", "columns", "values", "X", "Y", "n_cols", "groups"),
            ),
            arrays={
                "row_pointers": graph.row_pointers,
                "columns": graph.column_indices,
                "values": graph.values,
                "n_cols": np.int32(n_cols),
                "groups": np.int32(groups),
            },
            zero_output=False,
            workload_warps=groups,
        )

    def summarize(self, rows: RowDegrees, n_cols: int, *, block_size: int) -> PartitionSummary:
        """Count what each thread group of each row has."""
        groups = thread_groups(checked_block_size(block_size), n_cols)
        return closed_forms.vertices(rows, groups)
