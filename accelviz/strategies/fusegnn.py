"""fuseGNN's aggregations, forward and backward (ICCAD 2020), and its two baselines.

GAS processes the edges of a COO matrix in parallel; GAR assigns each vertex of a CSR matrix to a
block. The backward passes here also compute the gradient of the edge weights (Algorithm 2 and
section 5.4). Without that gradient, a backward pass is a forward kernel on the transposed matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.arrays import Longs
from accelviz.datasets import load_graph
from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.nonzero_runs import (
    Products,
    check_numbers,
    numbers_32,
    rows_of_nonzeros,
    run_loads,
    run_workload,
)
from accelviz.partition.row_split import RowSplit
from accelviz.partition.thread_groups import Vertex, thread_groups, vertex_workload
from accelviz.plans import Description, LaneColumns, Settings, Strategy, Widths, WorkerLanes
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance
from accelviz.strategies.blocks import block_threads_setting
from accelviz.strategies.spmm.gradient import SPMM_GRADIENT
from accelviz.strategies.spmm.operation import SPMM

#: Mean degree times columns at which GAS and GAR took the same time on an H200, for two million
#: edges in random order (degree 14 at 16 columns, 2.4 at 64; results/fusegnn-crossover-h200.csv).
ENOUGH_PRODUCTS = 200
#: Edges below which GAS is chosen: between Cora's 13 thousand, where GAS is faster at any column
#: count, and Pubmed's 108 thousand. The block of the longest row bounds GAR on small graphs.
ENOUGH_EDGES = 1 << 15
#: Seconds that GAR saves per edge and column, and seconds of a conversion: constant and per edge.
SAVED_SECONDS, CONVERSION_SECONDS = 7.5e-12, (4e-4, 2.5e-10)
#: Most columns whose sums and one row of X fit in shared memory.
_MOST_COLUMNS = 24_000


def faster_aggregation(graph: Any, n_cols: int, *, converted: bool = False) -> str:
    """Choose GAS or GAR by the mean degree (section 4), the edges and the number of columns.

    The paper advises GAR for a "high" degree and gives no threshold; those here are measured on an
    H200.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
    n_cols : int
        Number of columns of the features.
    converted : bool
        Whether each pass converts an unsorted COO matrix to CSR and CSC for GAR, as in the paper.

    Returns
    -------
    str
        "fusegnn_gas" or "fusegnn_gar".

    Examples
    --------
    >>> faster_aggregation("cora", 64), faster_aggregation("pubmed", 64)
    ('fusegnn_gas', 'fusegnn_gar')
    """
    loaded = load_graph(graph)
    return chosen_aggregation(loaded.n_rows, loaded.nnz, n_cols, converted)


def chosen_aggregation(n_rows: int, n_edges: int, n_cols: int, converted: bool) -> str:
    """Return the choice of `faster_aggregation` for a graph of this size."""
    products = n_edges * n_cols
    constant, per_edge = CONVERSION_SECONDS
    seconds = constant + per_edge * n_edges if converted else 0.0
    enough = products >= ENOUGH_PRODUCTS * n_rows and n_edges >= ENOUGH_EDGES
    return "fusegnn_gar" if enough and products * SAVED_SECONDS > seconds else "fusegnn_gas"


class BlockSize(Settings):
    """`block_size`, the paper's T: threads per block, a multiple of 32 up to 1,024."""

    # The paper uses 256 threads for a high occupancy (section 5.3).
    block_size: int = block_threads_setting(256, 64, 128, 256, 512, 1024)


class Block128(BlockSize):
    """`block_size` as above, by default 128."""

    block_size: int = block_threads_setting(128, 64, 128, 256, 512, 1024)


class _ThreadGroups(Strategy):
    """Base class. A thread group has one thread per column of X, if these fit in a block.

    Attributes
    ----------
    edges : bool
        True if a thread group processes one edge (GAS), False if a block processes one row (GAR).
    entry : str
        Name of the kernel and of its file.
    ends : tuple of two str
        Kernel arguments: the edges' rows (GAS) or the row pointers (GAR), and the edges' columns.
    """

    worker = "thread group"
    Settings = BlockSize
    edges: ClassVar[bool]
    entry: ClassVar[str]
    ends: ClassVar[tuple[str, str]]

    def groups(self, settings: BlockSize, widths: Widths) -> int:
        """Return the number of thread groups per block: as many as fit."""
        return thread_groups(settings.block_size, widths["n_cols"])

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Assign edges to thread groups, or rows to blocks; columns to blocks for a gradient.

        With a width `heads`, each head of an edge or row is assigned separately.

        Raises
        ------
        PartitionError
            If the blocks are too many for a grid; of a gradient also if there are 2^32 nonzeros or
            more, or more columns of X than fit in shared memory.
        """
        n_cols, heads, block_size = widths["n_cols"], widths.get("heads", 1), settings.block_size
        groups, walked, order, shared_bytes = self.groups(settings, widths), graph, None, 0
        loads: Callable[[int, int], Longs] | None = None
        if self.operation.by_sender:
            check_numbers(graph.nnz)
            walked, order = graph.transposed().graph, graph.transposed().nonzeros
            if not self.edges and n_cols > _MOST_COLUMNS:
                raise PartitionError("n_cols", f"got {n_cols}", f"at most {_MOST_COLUMNS:,}")
            if not self.edges and groups == 1:
                shared_bytes = 8 * n_cols
        sizes: dict[str, Any] = {"n_cols": np.int32(n_cols), "groups": np.int32(groups)}
        zero_outputs: tuple[str, ...] = ()
        seconds: dict[str, float] = {}
        rows: Any = walked.row_pointers
        if self.edges:
            rows, seconds = rows_of_nonzeros(walked)
            sizes = {"n_edges": np.int64(graph.nnz), **sizes}
            grid = (-(-graph.nnz * heads // groups), 1, 1)
            workload = partial(run_workload, walked.row_pointers, 1, heads, groups)
            loads = partial(run_loads, graph.nnz, 1, heads, groups)
            zero_outputs = (list(self.operation.operands)[-1],)  # the kernel adds to it by atomics
        else:
            grid = (walked.n_rows, heads, 1)
            workload = partial(vertex_workload, walked.row_pointers, groups)
        ends = dict(zip(self.ends, (rows, walked.column_indices), strict=True))
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
                walked.pattern,
                nonzero_order=order,
                workers_per_block=groups,
                slice_loads=loads,
            ),
            (Call(LaunchConfig(grid, block_size // WARP_SIZE, shared_bytes), kernel),),
            Buffers({**ends, **sizes}, zero_outputs=zero_outputs),
            Provenance(self, graph.values, widths, settings, seconds),
        )

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Describe edges with one atomic per column, or the thread groups of a vertex."""
        groups, n_cols = self.groups(settings, widths), widths["n_cols"]
        heads = widths.get("heads", 1)
        lanes = LaneColumns(min(n_cols, settings.block_size), 1, n_cols)
        scheme = Products(1, heads, groups, atomics=heads) if self.edges else Vertex(groups)
        workers = WorkerLanes(lanes.lanes, settings.block_size // WARP_SIZE)
        return Description(scheme, lanes if self.operation is SPMM else None, workers)


class FuseGnnGas(_ThreadGroups):
    """A thread group reads a row of X for its edge and adds the product to Y by atomics.

    Gather-ApplyEdge-Scatter, Algorithm 1 of the paper. The paper's COO matrix may have any order;
    here it has the order of the CSR matrix.
    """

    operation = SPMM
    name = entry = "fusegnn_gas"
    summary = "edges in parallel over COO; every product is added by an atomic"
    edges = True
    ends = ("rows", "columns")


class FuseGnnGar(_ThreadGroups):
    """The thread groups of a block share the edges of one vertex and reduce in shared memory.

    Gather-ApplyEdge-Reduce, Algorithm 3 of the paper. The paper has separate weights of self-loops;
    here they are nonzeros of the matrix.
    """

    operation = SPMM
    name = entry = "fusegnn_gar"
    summary = "a block per row; thread groups share its nonzeros and reduce in shared memory"
    Settings = Block128
    edges = False
    ends = ("row_pointers", "columns")


class NeuGraph(FuseGnnGar):
    """A block processes the edges of one vertex one after the other, with a thread per column.

    NeuGraph's fused gather as fuseGNN describes it (section 6.1): GAR without thread groups. With
    few columns most threads of a block are idle.
    """

    name = "neugraph"
    summary = "fused gather: a block per row, one nonzero after the other"
    worker = "block"

    def groups(self, settings: BlockSize, widths: Widths) -> int:
        """Return 1: the block is one thread group."""
        return 1

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Describe a row split with one row per block."""
        return replace(super().describe(settings, rows, widths), scheme=RowSplit(1, 1))


class FuseGnnGasGradient(_ThreadGroups):
    """A thread group adds its edge's term of dX by atomics and reduces d_values in shared memory.

    Algorithm 2 of the paper.
    """

    operation = SPMM_GRADIENT
    name = "fusegnn_gas"
    entry = "fusegnn_gas_gradient"
    summary = "edges in parallel over COO; dX by atomics, weights' gradients in shared memory"
    edges = True
    ends = ("sources", "targets")


class FuseGnnGarGradient(FuseGnnGasGradient):
    """The thread groups of a block share the edges of a column of A and reduce in shared memory.

    Section 5.4 of the paper.
    """

    name = "fusegnn_gar"
    entry = "fusegnn_gar_gradient"
    summary = "a block per column; thread groups share its nonzeros and reduce in shared memory"
    Settings = Block128
    edges = False
    ends = ("source_pointers", "targets")


class UnfusedGas(Strategy):
    """Three kernels: copy a row of X per edge, multiply the copies by the weights, add them to Y.

    The frameworks that fuseGNN compares with do this (section 2.3). A thread processes one element
    of an edge's copy.
    """

    operation = SPMM
    name = "unfused_gas"
    summary = "gather, apply edge and scatter in three kernels; edges x columns in memory"
    worker = "thread"
    Settings = BlockSize

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Store the row of each nonzero; plan the three kernels. The workload is the gather's.

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
        loads = partial(run_loads, graph.nnz, 1, n_cols, block_size)
        return Plan(
            Layout(graph.pattern, workload, workers_per_block=block_size, slice_loads=loads),
            calls,
            Buffers(arrays, workspace={"messages": (graph.nnz * n_cols, np.float32)}),
            Provenance(self, graph.values, widths, settings, seconds),
        )

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Describe one product per thread.

        Lanes are described if whole edges fill a block, so that a thread always has one column.
        """
        n_cols, block_size = widths["n_cols"], settings.block_size
        scheme = Products(run=1, heads=n_cols, warps=block_size, atomics=0)
        lanes = None if block_size % n_cols else LaneColumns(n_cols, 1, n_cols)
        return Description(scheme, lanes, WorkerLanes(1, block_size // WARP_SIZE))
