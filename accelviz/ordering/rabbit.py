"""Rabbit order: communities inside communities, numbered so that each is one run of rows.

Arai et al., "Rabbit Order: Just-in-Time Parallel Reordering for Fast Graph Analysis" (IPDPS 2016);
the renumbering of GNNAdvisor (section 3.5.1). This is an implementation of our own and serial.

**Merging.** At first each vertex is a community of its own. Each vertex is visited once, by
ascending degree, and then stands for the community that has gathered in it. Merging `u` into a
neighboring community `v` would raise the modularity by

    2 (w(u, v) / 2m - s(u) s(v) / (2m)^2)

Here `w` counts the edges between the two, `s` sums the degrees of a community's vertices, and `2m`
sums those of the whole graph. `u` joins the neighbor with the largest gain if that is positive (of
equal ones, the smallest id). Equal degrees are visited in a scattered but fixed order: along a
path, neighbors visited one after the other would all join one growing community.

**Lazy aggregation.** A merge only notes that `v` now also owns the edge list of `u`. When `v` is
visited, it reads the lists it owns, asks a union-find for the community of each neighbor, and adds
up equal ones. The shorter list goes back into the space of the lists it was read from.

**Numbering.** The merges form a forest: the parent of `u` is the vertex it joined. The trees are
numbered depth first, children in the order in which they joined, so that each subtree is one run of
numbers, and so is each community after any merge.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.datasets import load_graph
from accelviz.ordering.permutation import Permutation
from accelviz.ordering.plain import undirected_pattern


@dataclass(frozen=True, eq=False)
class Dendrogram:
    """Which vertex joined which, and when: the result of Rabbit order's merging.

    Attributes
    ----------
    visits : array of int32, shape (n,)
        The vertices in the order in which they were visited.
    parents : array of int32, shape (n,)
        The vertex that each joined at its visit, -1 where it stayed.
    sizes : array of int32, shape (n,)
        Vertices of each subtree, its root included.
    modularity : float
        Of the communities of the top level; NaN for a graph without edges.
    """

    visits: Ints
    parents: Ints
    sizes: Ints
    modularity: float

    @property
    def n_communities(self) -> int:
        """Communities of the top level, an isolated vertex being one."""
        return int(np.count_nonzero(self.parents < 0))

    @cached_property
    def communities(self) -> Ints:
        """Community of the top level of each vertex, by its root's id; int32, shape (n,)."""
        ids = np.arange(self.parents.size, dtype=np.int32)
        roots = np.where(self.parents < 0, ids, self.parents)
        while not np.array_equal(roots, further := roots[roots]):  # twice as far up each time
            roots = further
        return roots

    def numbering(self) -> Permutation:
        """Return the depth-first order of the vertices: each subtree is one run."""
        return Permutation.trusted(_depth_first(self.visits, self.parents, self.sizes))


def rabbit_order(graph: Any) -> Permutation:
    """Order the vertices so that communities, and communities inside them, are runs of rows.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        Square. Its edges count in both directions (the pattern of `A + A^T`), weights and self
        loops do not.

    Returns
    -------
    Permutation
        The trees of `rabbit_dendrogram(graph)`, depth first.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix, or not square.

    Notes
    -----
    The renumbering of GNNAdvisor (section 3.5.1); `renumbering_pays` is its rule of when. The
    same graph always gives the same order. The module's docstring explains the algorithm.
    """
    return rabbit_dendrogram(graph).numbering()


def rabbit_dendrogram(graph: Any) -> Dendrogram:
    """Merge vertices into communities as Rabbit order does; see `rabbit_order`."""
    pattern = undirected_pattern(load_graph(graph))
    row_pointers = pattern.indptr.astype(np.int64)
    neighbors = pattern.indices.astype(np.int32, copy=False)
    degrees = np.diff(row_pointers)
    # By ascending degree: equal degrees scattered, vertices without an edge in order.
    scattered = np.random.default_rng(0).permutation(degrees.size).astype(np.int32)
    visits = scattered[np.argsort(degrees[scattered], kind="stable")]
    visits[: np.count_nonzero(degrees == 0)].sort()
    parents, sizes, modularity = _merge(row_pointers, neighbors, visits)
    return Dendrogram(visits, parents, sizes, float(modularity))


@numba.njit(cache=True, nogil=True)
def _merge(row_pointers: Longs, neighbors: Ints, visits: Ints) -> tuple[Ints, Ints, float]:
    """Visit and merge: parents, sizes and the modularity. Writes over `neighbors`.

    A vertex's room is its own stretch of `neighbors`, of which the first `used[vertex]` entries
    count. The list of a community is a chain of rooms, from its vertex's own along `next_room`.
    """
    n, total = visits.size, float(neighbors.size)
    weights = np.ones(neighbors.size, dtype=np.int64)
    strengths = row_pointers[1:] - row_pointers[:-1]  # np.diff takes Numba 6 s to compile
    used = strengths.copy()
    next_room = np.full(n, -1, dtype=np.int32)
    last_room = np.arange(n).astype(np.int32)
    joined = np.arange(n).astype(np.int32)  # union-find: towards the community of each vertex
    parents = np.full(n, -1, dtype=np.int32)
    sizes = np.ones(n, dtype=np.int32)
    visited = np.zeros(n, dtype=np.bool_)
    edges = np.zeros(n, dtype=np.int64)  # from u to each community; cleared after each visit
    touched = np.empty(n, dtype=np.int32)  # where it is not zero
    modularity = 0.0 if neighbors.size else np.nan
    for v in range(n):
        if strengths[v] > 0:
            modularity -= (strengths[v] / total) ** 2

    for u in visits:
        visited[u] = True
        n_touched = 0
        room = u
        while room >= 0:
            for k in range(row_pointers[room], row_pointers[room] + used[room]):
                v = _find(joined, neighbors[k])
                if v != u:
                    if edges[v] == 0:
                        touched[n_touched] = v
                        n_touched += 1
                    edges[v] += weights[k]
            room = next_room[room]

        best, best_gain = -1, 0.0
        for v in touched[:n_touched]:
            # The gain in units of 2 / (2m)^2: whole numbers, so exact up to 2^53.
            gain = edges[v] * total - float(strengths[u]) * float(strengths[v])
            if gain > best_gain or (gain == best_gain and v < best):
                best, best_gain = v, gain

        if best >= 0:
            parents[u] = joined[u] = best
            strengths[best] += strengths[u]
            sizes[best] += sizes[u]
            modularity += 2 * best_gain / total**2
            if not visited[best]:  # otherwise nobody reads the list again
                room, k = u, row_pointers[u]
                used[u] = 0
                for v in touched[:n_touched]:
                    if v == best:
                        continue
                    while k == row_pointers[room + 1]:
                        room = next_room[room]
                        used[room] = 0
                        k = row_pointers[room]
                    neighbors[k] = v
                    weights[k] = edges[v]
                    used[room] += 1
                    k += 1
                next_room[room] = -1  # what is left of the chain is empty
                next_room[last_room[best]] = u
                last_room[best] = room
        for v in touched[:n_touched]:
            edges[v] = 0
    return parents, sizes, modularity


@numba.njit(cache=True, nogil=True)
def _find(joined: Ints, v: int) -> int:
    """Community that `v` belongs to by now; halves the path to it on the way."""
    while joined[v] != v:
        joined[v] = joined[joined[v]]
        v = joined[v]
    return v


@numba.njit(cache=True, nogil=True)
def _depth_first(visits: Ints, parents: Ints, sizes: Ints) -> Ints:
    """Order of the vertices: trees by their roots' visits, children by theirs."""
    n = visits.size
    order = np.empty(n, dtype=np.int32)
    position = np.empty(n, dtype=np.int64)
    end = np.empty(n, dtype=np.int64)  # of the part of each subtree's run that is still free
    free = 0
    for v in visits:
        if parents[v] < 0:
            position[v] = free
            free += sizes[v]
            end[v] = free
    # From the last visit back: parents come before children, and the last child to join is given
    # the end of its parent's run.
    for u in visits[::-1]:
        if parents[u] >= 0:
            end[parents[u]] -= sizes[u]
            position[u] = end[parents[u]]
            end[u] = position[u] + sizes[u]
        order[position[u]] = u
    return order
