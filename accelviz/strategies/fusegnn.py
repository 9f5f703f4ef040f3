"""What fuseGNN's strategies of every operation share (ICCAD 2020)."""

from __future__ import annotations

from accelviz.graph import Graph
from accelviz.partition.cut import Cut
from accelviz.partition.thread_groups import thread_groups
from accelviz.plans import Parameter
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


def edge_cut(block_size: int, n_cols: int, heads: int = 1, atomics: int = 1) -> Cut:
    """Name runs of one edge, or one of its heads, for each thread group: `atomics` a column."""
    groups = thread_groups(block_size, n_cols)
    return Cut("products", {"run": 1, "heads": heads, "warps": groups, "atomics": atomics})


def vertex_cut(block_size: int, n_cols: int) -> Cut:
    """Name the thread groups of a block that has a row, or a sender."""
    return Cut("vertex", {"warps": thread_groups(block_size, n_cols)})
