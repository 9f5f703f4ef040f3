"""fuseGNN's backward passes with the gradient of edge weights (ICCAD 2020, Algorithm 2 and 5.4).

Without that gradient its forward kernels serve, on the transposed matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.nonzero_runs import check_numbers, numbers_32, rows_of_nonzeros
from accelviz.partition.thread_groups import thread_groups
from accelviz.plans import Description, Plan, Strategy, Widths
from accelviz.strategies.fusegnn import (
    Block128,
    BlockSize,
    aggregation,
    edge_scheme,
    vertex_scheme,
)
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
    Settings = BlockSize

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Spell out the senders of the nonzeros; give each thread group one, or one of its heads.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, or too many blocks for a grid.
        """
        check_numbers(graph.nnz)
        sources, seconds = rows_of_nonzeros(graph.transposed().graph)
        walk = _walk(self, graph, "fusegnn_gas_gradient", {"sources": sources}, widths, settings)
        return walk(edges=True, zero_outputs=("dX",), setup_seconds=seconds)

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name runs of one edge: each is an atomic a column."""
        return Description(edge_scheme(settings, widths))


class FuseGnnGarGradient(Strategy):
    """A block has a sender: its thread groups share the edges, and all is reduced on chip.

    Section 5.4 of the paper. It takes `block_size` (threads of a block, a multiple of 32 up to
    1,024; the paper's T).
    """

    operation = SPMM_GRADIENT
    name = "fusegnn_gar"
    summary = "a block a sender; thread groups take turns at its nonzeros and reduce on chip"
    worker = "thread group"
    Settings = Block128

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Give each block a sender, or one of its heads.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, or the columns do not fit in shared memory.
        """
        n_cols = widths["n_cols"]
        if n_cols > _MOST_COLUMNS:
            raise PartitionError("n_cols", f"got {n_cols}", f"at most {_MOST_COLUMNS:,}")
        check_numbers(graph.nnz)
        ends = {"source_pointers": graph.transposed().graph.row_pointers}
        shared = 8 * n_cols if thread_groups(settings.block_size, n_cols) == 1 else 0
        walk = _walk(self, graph, "fusegnn_gar_gradient", ends, widths, settings)
        return walk(edges=False, shared_bytes=shared)

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name the thread groups of a sender."""
        return Description(vertex_scheme(settings, widths))


def _walk(
    strategy: Strategy,
    graph: Graph,
    entry: str,
    ends: dict[str, Any],
    widths: Widths,
    settings: BlockSize,
) -> Callable[..., Plan]:
    """Return `aggregation` over the transpose, but for its keywords."""
    turned = graph.transposed()
    ends |= {"targets": turned.graph.column_indices, "order": numbers_32(turned.nonzeros)}
    walk = (strategy, graph, turned.graph, entry, ends, _OPERANDS, widths, settings)
    return partial(aggregation, *walk, nonzero_order=turned.nonzeros)
