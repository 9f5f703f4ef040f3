"""fuseGNN's backward passes with the gradient of edge weights (ICCAD 2020, Algorithm 2 and 5.4).

Without that gradient its forward kernels serve, on the transposed matrix.
"""

from __future__ import annotations

from typing import Any, ClassVar

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.cut import Cut
from accelviz.partition.nonzero_runs import check_numbers, numbers_32, rows_of_nonzeros
from accelviz.partition.thread_groups import thread_groups
from accelviz.plans import Plan, Strategy
from accelviz.strategies.fusegnn import aggregation, block_size_of, edge_cut, vertex_cut
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
        sources, seconds = rows_of_nonzeros(graph.transposed().graph)
        own: dict[str, Any] = {"block_size": block_size, "heads": heads, "edges": True}
        own |= {"clears": ("dX",), "setup_seconds": seconds}
        return _plan(graph, "fusegnn_gas_gradient", {"sources": sources}, n_cols, **own)

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
        ends = {"source_pointers": graph.transposed().graph.row_pointers}
        own: dict[str, Any] = {"block_size": block_size, "heads": heads, "edges": False}
        shared = 8 * n_cols if thread_groups(block_size, n_cols) == 1 else 0
        own |= {"clears": (), "shared_bytes": shared}
        return _plan(graph, "fusegnn_gar_gradient", ends, n_cols, **own)

    def cut(self, rows: RowDegrees, n_cols: int, *, block_size: int) -> Cut:
        """Name the thread groups of a sender."""
        return vertex_cut(block_size, n_cols)


def _plan(graph: Graph, entry: str, ends: dict[str, Any], n_cols: int, **settings: Any) -> Plan:
    turned = graph.transposed()
    ends |= {"targets": turned.graph.column_indices, "order": numbers_32(turned.nonzeros)}
    settings["nonzero_order"] = turned.nonzeros
    return aggregation(graph, turned.graph, entry, ends, _OPERANDS, n_cols, **settings)
