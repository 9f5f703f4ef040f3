"""fuseGNN's aggregations (ICCAD 2020): edges in parallel over COO, or a block a vertex over CSR."""

from __future__ import annotations

from typing import Any, ClassVar

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.cut import Cut
from accelviz.partition.nonzero_runs import rows_of_nonzeros
from accelviz.plans import Plan, Reading, Strategy
from accelviz.strategies.fusegnn import aggregation, block_size_of, edge_cut, vertex_cut
from accelviz.strategies.spmm.operation import SPMM

OPERANDS = ("values", "X", "Y")


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
        ends = {"rows": rows, "columns": graph.column_indices}
        own: dict[str, Any] = {"block_size": block_size, "heads": heads, "edges": True}
        return aggregation(
            graph, graph, self.name, ends, OPERANDS, n_cols, **own, setup_seconds=seconds
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
        return gar_plan(graph, n_cols, block_size=block_size, heads=heads)

    def cut(self, rows: RowDegrees, n_cols: int, *, block_size: int) -> Cut:
        """Name the thread groups of a row."""
        return vertex_cut(block_size, n_cols)


def gar_plan(graph: Graph, n_cols: int, *, heads: int = 1, **settings: Any) -> Plan:
    """Return a plan in which a block has a row; see `aggregation` for its settings."""
    ends = {"row_pointers": graph.row_pointers, "columns": graph.column_indices}
    own = {"heads": heads, "edges": False, "clears": (), **settings}
    return aggregation(graph, graph, "fusegnn_gar", ends, OPERANDS, n_cols, **own)
