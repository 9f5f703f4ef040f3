"""What fuseGNN's strategies of every operation share (ICCAD 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from accelviz.graph import Graph
from accelviz.partition.nonzero_runs import Products, run_workload
from accelviz.partition.thread_groups import Vertex, thread_groups, vertex_workload
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.settings import Settings
from accelviz.strategies.blocks import block_threads_of

#: Products of an average row from which a block for each is faster than an atomic a product: where
#: both took as long on an H200, two million edges in random order (degree 14 at 16 columns, 2.4 at
#: 64, below 1 at 256; docs/reproduction.md).
ENOUGH_PRODUCTS = 200


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

    block_size: int = block_threads_of(256, 64, 128, 256, 512, 1024)


class Block128(BlockSize):
    """The same, 128 by default."""

    block_size: int = block_threads_of(128, 64, 128, 256, 512, 1024)


def aggregation(
    strategy: Strategy,
    graph: Graph,
    over: Graph,
    entry: str,
    ends: Mapping[str, Any],
    operands: tuple[str, ...],
    widths: Widths,
    settings: BlockSize,
    *,
    edges: bool,
    groups: int | None = None,
    shared_bytes: int = 0,
    nonzero_order: Any = None,
    zero_outputs: tuple[str, ...] | None = (),
    setup_seconds: Mapping[str, float] | None = None,
) -> Plan:
    """Return a plan in which a thread group has an edge at a time, or a block has a row.

    Parameters
    ----------
    strategy : Strategy
        Whose plan it is.
    graph, over : Graph
        What the plan is of, and what its kernel walks: the same, or the transpose.
    entry : str
        The kernel's name, and its file's.
    ends : mapping of str to array
        The kernel's first arguments, which say where edges begin and end.
    operands : tuple of str
        Its next ones; `n_edges`, if thread groups have edges, `n_cols` and `groups` are the last.
    widths : mapping of str to int
        Each edge, or row, is `heads` of them, if that is a width.
    settings : BlockSize
    edges : bool
        Whether thread groups have edges; else blocks have rows.
    groups : int, optional
        Thread groups of a block, if not as many as fit.
    shared_bytes : int
        Shared memory that a launch asks for.
    nonzero_order, zero_outputs, setup_seconds
        As of `Layout`, `Buffers` and `Provenance`.
    """
    n_cols, heads, block_size = widths["n_cols"], widths.get("heads", 1), settings.block_size
    groups = thread_groups(block_size, n_cols) if groups is None else groups
    sizes: dict[str, Any] = {"n_cols": np.int32(n_cols), "groups": np.int32(groups)}
    grid, workload = (over.n_rows, heads, 1), partial(vertex_workload, over.row_pointers, groups)
    if edges:
        sizes = {"n_edges": np.int64(graph.nnz), **sizes}
        grid = (-(-graph.nnz * heads // groups), 1, 1)
        workload = partial(run_workload, over.row_pointers, 1, heads, groups)
    kernel = KernelSpec(
        file=f"spmm/{entry}.cu",
        entry=entry,
        config={"block_threads": block_size, "heads": heads},
        arguments=(*ends, *operands, *sizes),
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
        Provenance(strategy, graph.values, widths, settings, setup_seconds or {}),
    )


def edge_scheme(settings: BlockSize, widths: Widths, atomics: int = 1) -> Products:
    """Name runs of one edge, or one of its heads, for each thread group: `atomics` a column."""
    groups = thread_groups(settings.block_size, widths["n_cols"])
    return Products(run=1, heads=widths.get("heads", 1), warps=groups, atomics=atomics)


def vertex_scheme(settings: BlockSize, widths: Widths) -> Vertex:
    """Name the thread groups of a block that has a row, or a column."""
    return Vertex(thread_groups(settings.block_size, widths["n_cols"]))
