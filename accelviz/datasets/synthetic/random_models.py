"""Random graphs of any size, for scaling studies: R-MAT and the stochastic block model.

The pairs of nodes are drawn twice, once to count the nonzeros of each row and once to store them,
with a generator that finds the k-th pair directly. So nothing is held but the matrix itself: 8
bytes a nonzero, its values included.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from tqdm import tqdm

from accelviz.arrays import Ints, Longs
from accelviz.datasets.synthetic.columns import finished
from accelviz.datasets.synthetic.communities import check_order
from accelviz.datasets.synthetic.draws import STEP, mixed, shuffle, stream
from accelviz.errors import ArgumentError
from accelviz.graph import MAX_SIDE, Graph

#: Graph500's probabilities of the first three quadrants; the last one has the rest.
QUADRANTS = (0.57, 0.19, 0.19)
#: Nonzeros per row, if the number of nodes is not given.
_EDGE_FACTOR = 16
#: Pairs between two steps of the progress bar.
_CHUNK = 1 << 23

#: A model is one of these numbers and its parameters, an array of int64.
_RMAT, _BLOCKS = 0, 1


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
        The same arguments give the same graph on every machine.

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
    bounds = np.rint(np.cumsum(quadrants) * 2**16)
    model = np.array([_RMAT, max(1, (n_nodes - 1).bit_length()), *bounds], dtype=np.int64)
    source = f"R-MAT, {n_edges:,} edges drawn, quadrants {quadrants}, {order} order, seed {seed}"
    return _graph_of_model(model, n_edges, n_nodes, symmetric, order, seed, source)


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
    model = np.array([_BLOCKS, n_blocks, round(within * 2**32)], dtype=np.int64)
    source = (
        f"stochastic block model, {n_edges:,} edges drawn, {n_blocks} blocks, "
        f"{within:g} within, {order} order, seed {seed}"
    )
    return _graph_of_model(model, n_edges, n_nodes, symmetric, order, seed, source)


def _graph_of_model(
    model: Longs, n_edges: int, n_nodes: int, symmetric: bool, order: str, seed: int, source: str
) -> Graph:
    if n_edges < 0:
        raise ArgumentError("n_edges", f"got {n_edges}", "0 or more")
    if not 2 <= n_nodes <= MAX_SIDE:
        raise ArgumentError("n_nodes", f"got {n_nodes}", f"2 to {MAX_SIDE}")
    check_order(order)
    ids = np.arange(n_nodes, dtype=np.int32)
    if order == "shuffled":
        shuffle(stream(seed, "ids"), ids)
    start = stream(seed, "pairs")[0]
    pairs = n_edges // 2 if symmetric else n_edges
    places = np.zeros(n_nodes + 1, dtype=np.int64)
    with tqdm(total=2 * pairs, unit="pair", unit_scale=True, leave=False, disable=None) as bar:

        def draw_all(places: Longs, column_indices: Ints) -> None:
            for first in range(0, pairs, _CHUNK):
                last = min(first + _CHUNK, pairs)
                _draw(model, start, ids, symmetric, first, last, places, column_indices)
                bar.update(last - first)

        draw_all(places[1:], np.empty(0, dtype=np.int32))
        np.cumsum(places, out=places)
        column_indices = np.empty(places[-1], dtype=np.int32)
        draw_all(places, column_indices)
    # Each row's place is now the end of the row, where the next one begins.
    row_pointers = np.concatenate([[0], places[:-1]])
    name = f"{('rmat', 'sbm')[model[0]]}-{n_edges:.3g}".replace("+", "")
    return finished(row_pointers, column_indices, name, source, "random")


@numba.njit(cache=True, nogil=True)
def _pair_at(model: Longs, start: np.uint64, n_nodes: int, index: int) -> Any:
    """Draw the pair number `index`: row and column, different from each other."""
    counter = mixed(start + np.uint64(index) * STEP)
    row = column = np.int64(0)
    while row == column or row >= n_nodes or column >= n_nodes:
        counter += STEP
        word = mixed(counter)
        if model[0] == _RMAT:
            row = column = np.int64(0)
            for level in range(model[1]):
                if level % 4 == 0 and level > 0:
                    counter += STEP
                    word = mixed(counter)
                draw = np.int64(word & np.uint64(0xFFFF))
                word >>= np.uint64(16)
                below = draw >= model[3]
                to_the_right = (draw >= model[2] and not below) or draw >= model[4]
                row = 2 * row + below
                column = 2 * column + to_the_right
        else:
            stays = np.int64(word >> np.uint64(32)) < model[2]
            counter += STEP
            row = np.int64(mixed(counter) % np.uint64(n_nodes))
            counter += STEP
            other = mixed(counter)
            if stays:
                block = row * model[1] // n_nodes
                low = -((-block * n_nodes) // model[1])
                high = -((-(block + 1) * n_nodes) // model[1])
                column = low + np.int64(other % np.uint64(high - low))
            else:
                column = np.int64(other % np.uint64(n_nodes))
    return row, column


@numba.njit(cache=True, nogil=True)
def _draw(
    model: Longs,
    start: np.uint64,
    ids: Ints,
    symmetric: bool,
    first: int,
    last: int,
    places: Longs,
    column_indices: Ints,
) -> None:
    """Store the column of each pair at its row's place, and move the place on.

    Only moves the places, which counts the nonzeros of each row, if `column_indices` is empty.
    """
    for index in range(first, last):
        row, column = _pair_at(model, start, ids.size, index)
        row, column = ids[row], ids[column]
        for _ in range(1 + symmetric):
            if column_indices.size:
                column_indices[places[row]] = column
            places[row] += 1
            row, column = column, row
