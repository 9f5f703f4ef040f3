"""Random graphs of any size, for scaling studies: R-MAT and the stochastic block model.

NumPy draws pairs of nodes, SciPy sorts them and merges duplicates. The peak memory is about 30
bytes per nonzero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import sparse
from tqdm import trange

from accelviz.arrays import Ints
from accelviz.datasets.convert import from_csr_arrays
from accelviz.datasets.synthetic.communities import ORDERS
from accelviz.errors import (
    ArgumentError,
    check_fits,
    checked_choice,
    checked_integer,
    checked_number,
)
from accelviz.graph import MAX_SIDE, Graph

#: Graph500's probabilities of the first three quadrants.
QUADRANTS = (0.57, 0.19, 0.19)
#: Default number of edges per node.
_EDGE_FACTOR = 16
#: Number of pairs drawn at a time, per step of the progress bar.
_CHUNK = 1 << 20

#: Rows and columns of pairs of nodes.
Pairs = tuple[Ints, Ints]


def rmat(
    n_edges: int,
    *,
    n_nodes: int | None = None,
    quadrants: tuple[float, float, float] = QUADRANTS,
    symmetric: bool = True,
    order: str = "shuffled",
    seed: int = 0,
) -> Graph:
    """Generate a graph with a heavy-tailed degree distribution by recursive quadrants (R-MAT).

    Parameters
    ----------
    n_edges : int
        Number of nonzeros to draw, up to billions. The graph has fewer, because duplicates are
        merged: with default arguments, graphs had 16 % less for 50 thousand, 9 % less for a
        million, 6 % less for ten million.
    n_nodes : int, optional
        Number of nodes; by default a power of two near `n_edges` / 16.
    quadrants : tuple of three floats
        Probabilities a, b, c of the upper left, upper right and lower left quadrant of the matrix
        at each level; that of the lower right quadrant is 1 - a - b - c.
    symmetric : bool
        Whether to draw half as many pairs and store each in both directions.
    order : {"shuffled", "natural"}
        `natural` keeps the ids of the recursion, in which hubs have small ids and neighbors similar
        ids. `shuffled`, as in Graph500, assigns random ids.
    seed : int
        Equal arguments give equal graphs with the same version of NumPy.

    Returns
    -------
    Graph
        Of kind "random", all weights 1.

    Raises
    ------
    ArgumentError
        If a size is impossible or the probabilities do not add up.

    Notes
    -----
    Chakrabarti, Zhan and Faloutsos 2004. If `n_nodes` is not a power of two, pairs with larger ids
    are drawn again.
    """
    if n_nodes is None:
        n_nodes = 1 << max(1, round(np.log2(max(2, n_edges / _EDGE_FACTOR))))
    a, b, c = quadrants
    # Otherwise nearly all pairs are self loops or beyond `n_nodes`, and are drawn again for ever.
    if min(quadrants) < 0 or a + b + c > 1 or a < 0.01 or b + c < 0.01:
        expected = "shares of at most 1 together; a and b + c above 0.01"
        raise ArgumentError("quadrants", f"got {quadrants}", expected)
    levels = (n_nodes - 1).bit_length()

    def draw(rng: np.random.Generator, count: int) -> Pairs:
        row, column = np.zeros((2, count), np.int32)
        for _ in range(levels):
            drawn = rng.random(count, np.float32)
            below = drawn >= a + b
            right = (drawn >= a) & ~below | (drawn >= a + b + c)
            row, column = 2 * row + below, 2 * column + right
        return row, column

    source = f"R-MAT, {n_edges:,} edges drawn, quadrants {quadrants}, {order} order, seed {seed}"
    return _graph_of_pairs(draw, n_edges, n_nodes, symmetric, order, seed, "rmat", source)


def stochastic_block(
    n_edges: int,
    *,
    n_nodes: int | None = None,
    n_blocks: int | None = None,
    within: float = 0.8,
    symmetric: bool = True,
    order: str = "natural",
    seed: int = 0,
) -> Graph:
    """Generate a graph of equal communities with equal mean degrees (planted partition).

    Parameters
    ----------
    n_edges : int
        Number of nonzeros to draw, as for `rmat`.
    n_nodes : int, optional
        Number of nodes; by default `n_edges` / 16.
    n_blocks : int, optional
        Number of communities of equal size; by default one per 256 nodes.
    within : float
        Share of the edges that are drawn within a community, 0 to 1. The other edges are drawn from
        all pairs of nodes, so 1 / `n_blocks` of them are within a community too.
    symmetric, seed
        As for `rmat`.
    order : {"natural", "shuffled"}
        `natural`: communities have contiguous ids. `shuffled`: random ids.

    Returns
    -------
    Graph
        Of kind "random", all weights 1.

    Raises
    ------
    ArgumentError
        If a size or share is impossible.

    Notes
    -----
    The sparse stochastic block model of Holland, Laskey and Leinhardt 1983 with one probability
    within and one between communities, and a given instead of a random number of edges.
    """
    if n_nodes is None:
        n_nodes = max(2, n_edges // _EDGE_FACTOR)
    if n_blocks is None:
        n_blocks = max(1, n_nodes // 256)
    if not 1 <= n_blocks <= max(1, n_nodes // 2):
        raise ArgumentError("n_blocks", f"{n_blocks} of {n_nodes} nodes", "blocks of 2 or more")
    checked_number("within", within, 1, or_zero=True)

    def draw(rng: np.random.Generator, count: int) -> Pairs:
        row, column = rng.integers(n_nodes, size=(2, count))
        block = row * n_blocks // n_nodes
        start, stop = (-(-(block + i) * n_nodes // n_blocks) for i in (0, 1))
        local_column = start + column % (stop - start)
        column = np.where(rng.random(count) < within, local_column, column)
        return row.astype(np.int32), column.astype(np.int32)

    source = (
        f"stochastic block model, {n_edges:,} edges drawn, {n_blocks} blocks, "
        f"{within:g} within, {order} order, seed {seed}"
    )
    return _graph_of_pairs(draw, n_edges, n_nodes, symmetric, order, seed, "sbm", source)


def _graph_of_pairs(
    draw: Callable[[np.random.Generator, int], Pairs],
    n_edges: int,
    n_nodes: int,
    symmetric: bool,
    order: str,
    seed: int,
    name: str,
    source: str,
) -> Graph:
    """Return the graph of pairs of nodes from `draw`.

    Pairs of equal nodes, and pairs with a node of `n_nodes` or more, are drawn again.
    """
    checked_integer("n_edges", n_edges, least=0, error=ArgumentError)
    checked_integer("n_nodes", n_nodes, MAX_SIDE, least=2, error=ArgumentError)
    checked_choice("order", order, ORDERS)
    problem = f"{n_edges:,} edges of {n_nodes:,} nodes"
    check_fits("n_edges", problem, 16 * n_edges + 8 * n_nodes, "fewer edges or nodes")
    rng = np.random.default_rng(seed)
    pairs = n_edges // 2 if symmetric else n_edges
    nodes = np.zeros((2, pairs), np.int32)
    for first in trange(0, pairs, _CHUNK, leave=False, disable=None):
        chunk = nodes[:, first : first + _CHUNK]
        missing = np.arange(chunk.shape[1])
        while missing.size:
            drawn = draw(rng, missing.size)
            chunk[:, missing] = drawn
            missing = missing[(drawn[0] == drawn[1]) | (np.maximum(*drawn) >= n_nodes)]
    if order == "shuffled":
        nodes = rng.permutation(np.arange(n_nodes, dtype=np.int32))[nodes]
    ones = np.ones(pairs, np.int8)
    matrix = sparse.coo_array((ones, tuple(nodes)), shape=(n_nodes, n_nodes)).tocsr()
    matrix.data[:] = 1  # sums of duplicates, which may overflow, are overwritten
    matrix = matrix + matrix.T if symmetric else matrix
    name = f"{name}-{n_edges:.3g}".replace("+", "")
    graph = from_csr_arrays(matrix.indptr, matrix.indices, None, matrix.shape, name, source)
    return replace(graph, kind="random")
