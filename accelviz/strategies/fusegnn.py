"""fuseGNN's aggregations, forward and backward (ICCAD 2020), and what it compares them with.

Edges in parallel over COO (GAS), or a block a vertex over CSR (GAR). The backward passes here bring
the gradient of edge weights too (Algorithm 2 and section 5.4); without it the forward kernels
serve, on the transposed matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.nonzero_runs import (
    Products,
    check_numbers,
    numbers_32,
    rows_of_nonzeros,
    run_workload,
)
from accelviz.partition.row_split import RowSplit
from accelviz.partition.thread_groups import Vertex, thread_groups, vertex_workload
from accelviz.plans import Description, LaneColumns, Settings, Strategy, Widths
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance
from accelviz.strategies.blocks import block_threads_of
from accelviz.strategies.spmm.gradient import SPMM_GRADIENT
from accelviz.strategies.spmm.operation import SPMM

#: Products of an average row from which a block for each is faster than an atomic a product: where
#: both took as long on an H200, two million edges in random order (degree 14 at 16 columns, 2.4 at
#: 64, below 1 at 256; docs/reproduction.md).
ENOUGH_PRODUCTS = 200
#: Most columns whose sums fit in shared memory beside a row of X.
_MOST_COLUMNS = 24_000


def faster_aggregation(graph: Graph, n_cols: int) -> str:
    """Choose GAS or GAR by the average degree (section 4), and by the columns.

    The paper says "high" and "low" and leaves the border open. It is where a row has products
    enough to keep a block busy; a conversion from COO, if one is needed, is not counted.

    Parameters
    ----------
    graph : Graph
    n_cols : int

    Returns
    -------
    str
        "fusegnn_gas" or "fusegnn_gar".
    """
    products = graph.nnz / max(graph.n_rows, 1) * n_cols
    return "fusegnn_gar" if products >= ENOUGH_PRODUCTS else "fusegnn_gas"


class BlockSize(Settings):
    """`block_size` (threads of a block, a multiple of 32 up to 1,024), the paper's T."""

    # 256 threads, with which the paper keeps the occupancy high (section 5.3).
    block_size: int = block_threads_of(256, 64, 128, 256, 512, 1024)


class Block128(BlockSize):
    """The same, 128 by default."""

    block_size: int = block_threads_of(128, 64, 128, 256, 512, 1024)


class _ThreadGroups(Strategy):
    """What they share: a thread group has an edge at a time, or a block has a row.

    Attributes
    ----------
    edges : bool
        Whether thread groups have edges; else blocks have rows.
    entry : str
        The kernel's name, and its file's.
    """

    worker = "thread group"
    Settings = BlockSize
    edges: ClassVar[bool]
    entry: ClassVar[str]

    def groups(self, settings: BlockSize, widths: Widths) -> int:
        """Return the thread groups of a block: as many as fit."""
        return thread_groups(settings.block_size, widths["n_cols"])

    def _aggregation(
        self,
        graph: Graph,
        over: Graph,
        ends: Mapping[str, Any],
        widths: Widths,
        settings: BlockSize,
        *,
        shared_bytes: int = 0,
        nonzero_order: Any = None,
        setup_seconds: Mapping[str, float] | None = None,
    ) -> Plan:
        """Plan `graph` by a kernel that walks `over`, the same or the transpose.

        Its first arguments are the `ends` of edges; operands and sizes follow. Each edge, or row,
        is `heads` of them, if that is a width.
        """
        heads, block_size = widths.get("heads", 1), settings.block_size
        groups = self.groups(settings, widths)
        sizes: dict[str, Any] = {"n_cols": np.int32(widths["n_cols"]), "groups": np.int32(groups)}
        zero_outputs: tuple[str, ...] = ()
        if self.edges:
            sizes = {"n_edges": np.int64(graph.nnz), **sizes}
            grid = (-(-graph.nnz * heads // groups), 1, 1)
            workload = partial(run_workload, over.row_pointers, 1, heads, groups)
            zero_outputs = (list(self.operation.operands)[-1],)  # products are added by atomics
        else:
            grid = (over.n_rows, heads, 1)
            workload = partial(vertex_workload, over.row_pointers, groups)
        kernel = KernelSpec(
            file=f"spmm/{self.entry}.cu",
            entry=self.entry,
            config={"block_threads": block_size, "heads": heads},
            arguments=(*ends, *self.operation.operands, *sizes),
        )
        return Plan(
            Layout(
                graph.pattern,
                workload,
                over.pattern,
                nonzero_order=nonzero_order,
                workers_per_block=groups,
            ),
            (Call(LaunchConfig(grid, block_size // WARP_SIZE, shared_bytes), kernel),),
            Buffers({**ends, **sizes}, zero_outputs=zero_outputs),
            Provenance(self, graph.values, widths, settings, setup_seconds or {}),
        )

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name the edges, an atomic a column each, or the thread groups of a vertex.

        Each thread of a group has a column, or several where the block is one group.
        """
        groups, n_cols = self.groups(settings, widths), widths["n_cols"]
        heads = widths.get("heads", 1)
        lanes = LaneColumns(min(n_cols, settings.block_size), 1, n_cols)
        scheme = Products(1, heads, groups, atomics=heads) if self.edges else Vertex(groups)
        return Description(scheme, lanes if self.operation is SPMM else None)


class FuseGnnGas(_ThreadGroups):
    """A thread group has an edge: it gathers a row of X and scatters it to Y with atomics.

    Gather-ApplyEdge-Scatter, Algorithm 1 of the paper. Its COO may be in any order; here it is the
    CSR's, with the row of each nonzero spelled out.
    """

    operation = SPMM
    name = entry = "fusegnn_gas"
    summary = "edges in parallel over COO; every product is added by an atomic"
    edges = True

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Spell out the rows of the nonzeros; give each thread group one, or one of its heads.

        Raises
        ------
        PartitionError
            If the blocks are too many for a grid.
        """
        rows, seconds = rows_of_nonzeros(graph)
        ends = {"rows": rows, "columns": graph.column_indices}
        return self._aggregation(graph, graph, ends, widths, settings, setup_seconds=seconds)


class FuseGnnGar(_ThreadGroups):
    """A block has a vertex: its thread groups share the edges and add up in shared memory.

    Gather-ApplyEdge-Reduce, Algorithm 3 of the paper, without its weights of self-loops, which are
    nonzeros of the matrix here.
    """

    operation = SPMM
    name = entry = "fusegnn_gar"
    summary = "a block a row; thread groups take turns at its nonzeros and reduce on chip"
    Settings = Block128
    edges = False

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Give each block a row, or one of its heads."""
        ends = {"row_pointers": graph.row_pointers, "columns": graph.column_indices}
        return self._aggregation(graph, graph, ends, widths, settings)


class NeuGraph(FuseGnnGar):
    """A block has a vertex and takes its edges one after the other, a thread a column.

    NeuGraph's fused gather as fuseGNN describes it (section 6.1): its GAR without thread groups, so
    that with few columns most threads of a block are idle.
    """

    name = "neugraph"
    summary = "fused gather: a block a row, one nonzero after the other"
    worker = "block"

    def groups(self, settings: BlockSize, widths: Widths) -> int:
        """Return 1: the block is one group."""
        return 1

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name the row split: each is one block's."""
        return Description(RowSplit(1, 1), super().describe(settings, rows, widths).lanes)


class FuseGnnGasGradient(_ThreadGroups):
    """A thread group has an edge: it scatters to dX with atomics, and reduces d_values on chip.

    Algorithm 2 of the paper.
    """

    operation = SPMM_GRADIENT
    name = "fusegnn_gas"
    entry = "fusegnn_gas_gradient"
    summary = "edges in parallel over COO; dX by atomics, weights' gradients reduced on chip"
    edges = True

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Give each thread group an edge, or one of its heads; or each block a column of A.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, too many blocks for a grid, or more columns of X
            than fit in shared memory.
        """
        check_numbers(graph.nnz)
        turned, shared_bytes = graph.transposed(), 0
        ends, seconds = self.first_ends(turned.graph)
        ends |= {"targets": turned.graph.column_indices, "order": numbers_32(turned.nonzeros)}
        if not self.edges and self.groups(settings, widths) == 1:
            shared_bytes = 8 * widths["n_cols"]
        return self._aggregation(
            *(graph, turned.graph, ends, widths, settings),
            shared_bytes=shared_bytes,
            nonzero_order=turned.nonzeros,
            setup_seconds=seconds,
        )

    def first_ends(self, turned: Graph) -> tuple[dict[str, Any], dict[str, float]]:
        """Spell out the columns of the nonzeros, and say what that took."""
        sources, seconds = rows_of_nonzeros(turned)
        return {"sources": sources}, seconds


class FuseGnnGarGradient(FuseGnnGasGradient):
    """A block has a column of A: its thread groups share the edges, and all is reduced on chip.

    Section 5.4 of the paper.
    """

    name = "fusegnn_gar"
    entry = "fusegnn_gar_gradient"
    summary = "a block a sender; thread groups take turns at its nonzeros and reduce on chip"
    Settings = Block128
    edges = False

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """See `FuseGnnGasGradient`."""
        if widths["n_cols"] > _MOST_COLUMNS:
            raise PartitionError("n_cols", f"got {widths['n_cols']}", f"at most {_MOST_COLUMNS:,}")
        return super().build(graph, widths, settings)

    def first_ends(self, turned: Graph) -> tuple[dict[str, Any], dict[str, float]]:
        """Return where the edges of each column begin."""
        return {"source_pointers": turned.row_pointers}, {}


class UnfusedGas(Strategy):
    """Three kernels: gather a row for each edge into memory, weigh it there, scatter it.

    What the frameworks do that fuseGNN sets out from (section 2.3). A thread has an element of an
    edge's row.
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
        launch = LaunchConfig((-(-graph.nnz * n_cols // block_size), 1, 1), block_size // WARP_SIZE)
        file, config = "spmm/unfused_gas.cu", {"block_threads": block_size}
        calls = tuple(
            Call(launch, KernelSpec(file, entry, config, (*arguments, "n_edges", "n_cols")))
            for entry, *arguments in (
                ("gather", "columns", "X", "messages"),
                ("apply_edge", "values", "messages"),
                ("scatter", "rows", "messages", "Y"),
            )
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
