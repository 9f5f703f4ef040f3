"""Random graphs of any size, for scaling studies: R-MAT and the stochastic block model.

NumPy draws the pairs of nodes, SciPy sorts them and drops what repeats. That takes about 30 bytes a
nonzero for a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import sparse
from tqdm import trange

from accelviz.arrays import Ints
from accelviz.datasets.convert import from_csr_arrays
from accelviz.datasets.synthetic.communities import check_order
from accelviz.errors import ArgumentError
from accelviz.graph import MAX_SIDE, Graph

#: Graph500's probabilities of the first three quadrants; the last one has the rest.
QUADRANTS = (0.57, 0.19, 0.19)
#: Nonzeros per row, if the number of nodes is not given.
_EDGE_FACTOR = 16
#: Pairs between two steps of the progress bar.
_CHUNK = 1 << 20

#: Rows and columns of some pairs, int32.
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
    """Make up a graph with a heavy-tailed degree distribution by recursive quadrants (R-MAT).

    Parameters
    ----------
    n_edges : int
        Nonzeros to draw, up to billions. Duplicates are dropped after that, so the graph
        has fewer: with the other arguments as they are, 16 % of 50 thousand are lost, 9 % of a
        million, 6 % of ten million.
    n_nodes : int, optional
        A power of two near `n_edges` / 16 if not given.
    quadrants : tuple of three floats
        Probabilities a, b, c that an edge lies in the upper left, upper right and lower left
        quadrant of the matrix, at each level; the rest falls to the lower right quadrant.
    symmetric : bool
        Draw half as many pairs and store each in both directions.
    order : {"shuffled", "natural"}
        `natural` leaves the ids as the recursion gives them: hubs come first, and neighbors are
        near. Graph500 shuffles.
    seed : int
        The same arguments give the same graph, with one version of NumPy.

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
    Chakrabarti, Zhan and Faloutsos 2004. If `n_nodes` is not a power of two, pairs beyond it are
    drawn again.
    """
    if n_nodes is None:
        n_nodes = 1 << max(1, round(np.log2(max(2, n_edges / _EDGE_FACTOR))))
    a, b, c = quadrants
    # Where nearly all edges are dropped, drawing another one instead would never end.
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
    """Make up a graph of equal communities with equal degrees (planted partition).

    Parameters
    ----------
    n_edges : int
        Nonzeros to draw, as for `rmat`.
    n_nodes : int, optional
        `n_edges` / 16 if not given.
    n_blocks : int, optional
        Communities, of equal size; one for every 256 nodes if not given.
    within : float
        Share of the edges that stay inside a community, 0 to 1. Chance puts 1 / `n_blocks` of the
        others there too.
    symmetric, seed
        As for `rmat`.
    order : {"natural", "shuffled"}
        `natural`: communities have contiguous ids.

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
    inside and one between communities; the number of edges is given instead of being random.
    """
    if n_nodes is None:
        n_nodes = max(2, n_edges // _EDGE_FACTOR)
    if n_blocks is None:
        n_blocks = max(1, n_nodes // 256)
    if not 1 <= n_blocks <= max(1, n_nodes // 2):
        raise ArgumentError("n_blocks", f"{n_blocks} of {n_nodes} nodes", "blocks of 2 or more")
    if not 0 <= within <= 1:
        raise ArgumentError("within", f"got {within}", "a share, 0 to 1")

    def draw(rng: np.random.Generator, count: int) -> Pairs:
        row, other = rng.integers(n_nodes, size=(2, count))
        block = row * n_blocks // n_nodes
        first, last = (-(-(block + i) * n_nodes // n_blocks) for i in (0, 1))
        column = np.where(rng.random(count) < within, first + other % (last - first), other)
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
    """Make a graph of pairs of different nodes; `draw` may draw others, which are replaced."""
    if n_edges < 0:
        raise ArgumentError("n_edges", f"got {n_edges}", "0 or more")
    if not 2 <= n_nodes <= MAX_SIDE:
        raise ArgumentError("n_nodes", f"got {n_nodes}", f"2 to {MAX_SIDE}")
    check_order(order)
    rng = np.random.default_rng(seed)
    pairs = n_edges // 2 if symmetric else n_edges
    ends = np.zeros((2, pairs), np.int32)
    for first in trange(0, pairs, _CHUNK, leave=False, disable=None):
        chunk = ends[:, first : first + _CHUNK]
        unfit = np.arange(chunk.shape[1])
        while unfit.size:
            chunk[:, unfit] = draw(rng, unfit.size)
            wrong = (chunk[0, unfit] == chunk[1, unfit]) | (chunk[:, unfit].max(axis=0) >= n_nodes)
            unfit = unfit[wrong]
    if order == "shuffled":
        ends = rng.permutation(np.arange(n_nodes, dtype=np.int32))[ends]
    ones = np.ones(pairs, np.int8)
    matrix = sparse.coo_array((ones, tuple(ends)), shape=(n_nodes, n_nodes)).tocsr()
    matrix.data[:] = 1
    matrix = matrix + matrix.T if symmetric else matrix
    name = f"{name}-{n_edges:.3g}".replace("+", "")
    graph = from_csr_arrays(matrix.indptr, matrix.indices, None, matrix.shape, name, source)
    return replace(graph, kind="random")
