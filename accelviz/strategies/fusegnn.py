"""What fuseGNN's strategies of every operation share (ICCAD 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from accelviz.graph import Graph
from accelviz.partition.cut import Cut
from accelviz.partition.nonzero_runs import run_workload
from accelviz.partition.thread_groups import thread_groups, vertex_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Parameter, Plan
from accelviz.plans.launch import WARP_SIZE
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


def block_size_of(default: int) -> dict[str, Parameter]:
    """Return the one parameter of all these: threads of a block, the paper's T."""
    return {"block_size": block_threads_of(default, 64, 128, 256, 512, 1024)}


def aggregation(
    graph: Graph,
    over: Graph,
    entry: str,
    ends: Mapping[str, Any],
    operands: tuple[str, ...],
    n_cols: int,
    *,
    block_size: int,
    heads: int,
    edges: bool,
    groups: int | None = None,
    shared_bytes: int = 0,
    **options: Any,
) -> Plan:
    """Return a plan in which a thread group has an edge at a time, or a block has a row.

    Parameters
    ----------
    graph, over : Graph
        Whose plan it is, and what its kernel walks: the same, or the transpose.
    entry : str
        The kernel's name, and its file's.
    ends : mapping of str to array
        The kernel's first arguments, which say where edges begin and end.
    operands : tuple of str
        Its next ones; `n_edges`, if thread groups have edges, `n_cols` and `groups` are the last.
    n_cols, block_size, heads : int
        Each edge, or row, is `heads` of them.
    edges : bool
        Whether thread groups have edges; else blocks have rows.
    groups : int, optional
        Thread groups of a block, if not as many as fit.
    shared_bytes : int
        Shared memory that a launch asks for.
    **options
        Further arguments of `Plan`.
    """
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
        graph.pattern,
        (Call(LaunchConfig(grid, block_size // WARP_SIZE, shared_bytes), kernel),),
        workload,
        walked=over.pattern,
        arrays={**ends, **sizes},
        workers_per_block=groups,
        **options,
    )


def edge_cut(block_size: int, n_cols: int, heads: int = 1, atomics: int = 1) -> Cut:
    """Name runs of one edge, or one of its heads, for each thread group: `atomics` a column."""
    groups = thread_groups(block_size, n_cols)
    return Cut("products", {"run": 1, "heads": heads, "warps": groups, "atomics": atomics})


def vertex_cut(block_size: int, n_cols: int) -> Cut:
    """Name the thread groups of a block that has a row, or a sender."""
    return Cut("vertex", {"warps": thread_groups(block_size, n_cols)})
