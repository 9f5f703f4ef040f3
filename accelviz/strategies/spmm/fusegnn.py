"""fuseGNN's aggregations (ICCAD 2020): edges in parallel over COO, or a block a vertex over CSR."""

from __future__ import annotations

from typing import ClassVar

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.nonzero_runs import rows_of_nonzeros
from accelviz.plans import Description, LaneColumns, Plan, Strategy, Widths
from accelviz.strategies.fusegnn import (
    Block128,
    BlockSize,
    aggregation,
    edge_scheme,
    vertex_scheme,
)
from accelviz.strategies.spmm.operation import SPMM

OPERANDS = ("values", "X", "Y")


def side_by_side(settings: BlockSize, widths: Widths) -> LaneColumns:
    """Give each thread of a group a column, or several where the block is one group."""
    n_cols = widths["n_cols"]
    return LaneColumns(min(n_cols, settings.block_size), 1, n_cols)


class FuseGnnGas(Strategy):
    """A thread group has an edge: it gathers a row of X and scatters it to Y with atomics.

    Gather-ApplyEdge-Scatter, Algorithm 1 of the paper. Its COO may be in any order; here it is the
    CSR's, with the row of each nonzero spelled out. It takes `block_size` (threads of a block, a
    multiple of 32 up to 1,024; the paper's T).
    """

    operation = SPMM
    name = "fusegnn_gas"
    summary = "edges in parallel over COO; every product is added by an atomic"
    worker = "thread group"
    # 256 threads, with which the paper keeps the occupancy high (section 5.3).
    Settings = BlockSize

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Spell out the rows of the nonzeros; give each thread group one, or one of its heads.

        Raises
        ------
        PartitionError
            If the blocks are too many for a grid.
        """
        rows, seconds = rows_of_nonzeros(graph)
        ends = {"rows": rows, "columns": graph.column_indices}
        walk = (self, graph, graph, self.name, ends, OPERANDS, widths, settings)
        return aggregation(*walk, edges=True, zero_outputs=None, setup_seconds=seconds)

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name runs of one edge: each is an atomic a column."""
        return Description(edge_scheme(settings, widths), side_by_side(settings, widths))


class FuseGnnGar(Strategy):
    """A block has a vertex: its thread groups share the edges and add up in shared memory.

    Gather-ApplyEdge-Reduce, Algorithm 3 of the paper, without its weights of self-loops, which are
    nonzeros of the matrix here. It takes `block_size` (threads of a block, a multiple of 32 up to
    1,024; the paper's T).
    """

    operation = SPMM
    name = "fusegnn_gar"
    summary = "a block a row; thread groups take turns at its nonzeros and reduce on chip"
    worker = "thread group"
    Settings = Block128
    groups: ClassVar[int | None] = None

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Give each block a row, or one of its heads."""
        ends = {"row_pointers": graph.row_pointers, "columns": graph.column_indices}
        walk = (self, graph, graph, "fusegnn_gar", ends, OPERANDS, widths, settings)
        return aggregation(*walk, edges=False, groups=self.groups)

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name the thread groups of a row."""
        return Description(vertex_scheme(settings, widths), side_by_side(settings, widths))
