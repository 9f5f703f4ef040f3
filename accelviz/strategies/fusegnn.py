"""fuseGNN's aggregations, forward and backward (ICCAD 2020), and what it compares them with.

Edges in parallel over COO (GAS), or a block a vertex over CSR (GAR). The backward passes here bring
the gradient of edge weights too (Algorithm 2 and section 5.4); without it the forward kernels
serve, on the transposed matrix.
"""

from __future__ import annotations

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
    ends : tuple of two str
        What the kernel calls the rows of edges, or where those of a row begin, and their columns.
    """

    worker = "thread group"
    Settings = BlockSize
    edges: ClassVar[bool]
    entry: ClassVar[str]
    ends: ClassVar[tuple[str, str]]

    def groups(self, settings: BlockSize, widths: Widths) -> int:
        """Return the thread groups of a block: as many as fit."""
        return thread_groups(settings.block_size, widths["n_cols"])

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Give each thread group an edge, or each block a row; of a gradient, a column.

        Each edge, or row, is `heads` of them, if that is a width.

        Raises
        ------
        PartitionError
            If the blocks are too many for a grid; of a gradient also if there are 2^32 nonzeros or
            more, or more columns of X than fit in shared memory.
        """
        n_cols, heads, block_size = widths["n_cols"], widths.get("heads", 1), settings.block_size
        groups, over, order, shared_bytes = self.groups(settings, widths), graph, None, 0
        if self.operation.by_sender:
            check_numbers(graph.nnz)
            over, order = graph.transposed().graph, graph.transposed().nonzeros
            if not self.edges and n_cols > _MOST_COLUMNS:
                raise PartitionError("n_cols", f"got {n_cols}", f"at most {_MOST_COLUMNS:,}")
            if not self.edges and groups == 1:
                shared_bytes = 8 * n_cols
        sizes: dict[str, Any] = {"n_cols": np.int32(n_cols), "groups": np.int32(groups)}
        zero_outputs: tuple[str, ...] = ()
        seconds: dict[str, float] = {}
        first: Any = over.row_pointers
        if self.edges:
            first, seconds = rows_of_nonzeros(over)
            sizes = {"n_edges": np.int64(graph.nnz), **sizes}
            grid = (-(-graph.nnz * heads // groups), 1, 1)
            workload = partial(run_workload, over.row_pointers, 1, heads, groups)
            zero_outputs = (list(self.operation.operands)[-1],)  # products are added by atomics
        else:
            grid = (over.n_rows, heads, 1)
            workload = partial(vertex_workload, over.row_pointers, groups)
        ends = dict(zip(self.ends, (first, over.column_indices), strict=True))
        if order is not None:
            ends["order"] = numbers_32(order)
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
                nonzero_order=order,
                workers_per_block=groups,
            ),
            (Call(LaunchConfig(grid, block_size // WARP_SIZE, shared_bytes), kernel),),
            Buffers({**ends, **sizes}, zero_outputs=zero_outputs),
            Provenance(self, graph.values, widths, settings, seconds),
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
    ends = ("rows", "columns")


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
    ends = ("row_pointers", "columns")


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
    ends = ("sources", "targets")


class FuseGnnGarGradient(FuseGnnGasGradient):
    """A block has a column of A: its thread groups share the edges, and all is reduced on chip.

    Section 5.4 of the paper.
    """

    name = "fusegnn_gar"
    entry = "fusegnn_gar_gradient"
    summary = "a block a sender; thread groups take turns at its nonzeros and reduce on chip"
    Settings = Block128
    edges = False
    ends = ("source_pointers", "targets")


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
