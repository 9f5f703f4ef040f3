"""Rabbit order: hierarchical communities, each of which gets contiguous row numbers.

Arai et al., "Rabbit Order: Just-in-Time Parallel Reordering for Fast Graph Analysis" (IPDPS 2016);
the renumbering of GNNAdvisor (section 3.5.1). This is a serial reimplementation.

**Merging.** At first each vertex is a community of its own. Each vertex `u` is visited once, in
order of ascending degree, and then represents all vertices that were merged into it. Merging `u`
into a neighboring community `v` raises the modularity by

    2 (w(u, v) / 2m - s(u) s(v) / (2m)^2)

Here `w` is the number of edges between the two, `s` the sum of the degrees of a community's
vertices, and `2m` the sum of all degrees. `u` is merged into the neighbor with the largest positive
gain; among equal gains, into the smallest id. Vertices of equal degree are visited in a random but
fixed order, because along a path consecutive visits would merge everything into one community.

**Lazy aggregation.** A merge only appends the edge list of `u` to the chain of lists of `v`. The
visit of `v` reads the chain, finds the current community of each neighbor by union-find, and adds
up the edges to the same community. The result is shorter and is written over the lists.

**Numbering.** The merges form a forest, in which the parent of `u` is the vertex that it was merged
into. Vertices are numbered depth first, children in merge order. Each subtree, and therefore each
community at any time, has contiguous numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.compiled import njit
from accelviz.datasets import load_graph
from accelviz.ordering.permutation import Permutation
from accelviz.ordering.plain import undirected_pattern


@dataclass(frozen=True, eq=False)
class Dendrogram:
    """The forest of merges that Rabbit order computes.

    Attributes
    ----------
    visits : array of int32, shape (n,)
        Vertices in visiting order.
    parents : array of int32, shape (n,)
        Vertex that each vertex was merged into; -1 for roots.
    sizes : array of int32, shape (n,)
        Number of vertices of each subtree, including its root.
    modularity : float
        Modularity of the top-level communities; NaN for a graph without edges.
    """

    visits: Ints
    parents: Ints
    sizes: Ints
    modularity: float

    @property
    def n_communities(self) -> int:
        """Number of top-level communities, including isolated vertices."""
        return int(np.count_nonzero(self.parents < 0))

    @cached_property
    def communities(self) -> Ints:
        """Top-level community of each vertex, identified by its root; int32, shape (n,)."""
        ids = np.arange(self.parents.size, dtype=np.int32)
        roots = np.where(self.parents < 0, ids, self.parents)
        while not np.array_equal(roots, ancestors := roots[roots]):  # pointer jumping
            roots = ancestors
        return roots

    def numbering(self) -> Permutation:
        """Return the depth-first order of the vertices, in which each subtree is contiguous."""
        return Permutation.trusted(_depth_first(self.visits, self.parents, self.sizes))


def rabbit_order(graph: Any) -> Permutation:
    """Order the vertices so that communities and their subcommunities are contiguous.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        A square matrix. Edge directions, weights and self loops are ignored.

    Returns
    -------
    Permutation
        The depth-first order of `rabbit_dendrogram(graph)`. Equal graphs give equal orders.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix, or not square.

    Notes
    -----
    The renumbering of GNNAdvisor (section 3.5.1); `renumbering_pays` predicts whether it pays off.
    The module's docstring explains the algorithm.
    """
    return rabbit_dendrogram(graph).numbering()


def rabbit_dendrogram(graph: Any) -> Dendrogram:
    """Merge vertices into communities as Rabbit order does; see `rabbit_order`."""
    pattern = undirected_pattern(load_graph(graph))
    row_pointers = pattern.indptr.astype(np.int64)
    neighbors = pattern.indices.astype(np.int32, copy=False)
    degrees = np.diff(row_pointers)
    # Ascending degrees, vertices of equal degree shuffled, but those without edges in order.
    shuffled = np.random.default_rng(0).permutation(degrees.size).astype(np.int32)
    visits = shuffled[np.argsort(degrees[shuffled], kind="stable")]
    visits[: np.count_nonzero(degrees == 0)].sort()
    parents, sizes, modularity = _merge(row_pointers, neighbors, visits)
    return Dendrogram(visits, parents, sizes, float(modularity))


@njit(nogil=True)
def _merge(row_pointers: Longs, neighbors: Ints, visits: Ints) -> tuple[Ints, Ints, float]:
    """Return the parents, sizes and modularity of a `Dendrogram`. Overwrites `neighbors`.

    The edge list of a vertex is its CSR row in `neighbors` and `weights`, with `used[vertex]` valid
    entries at its start. The edge list of a community is a chain of such lists, linked by
    `next_list` and starting with the list of its representative.
    """
    n, total = visits.size, float(neighbors.size)
    weights = np.ones(neighbors.size, dtype=np.int64)
    strengths = row_pointers[1:] - row_pointers[:-1]  # np.diff takes Numba 6 s to compile
    used = strengths.copy()
    next_list = np.full(n, -1, dtype=np.int32)
    last_list = np.arange(n).astype(np.int32)
    joined = np.arange(n).astype(np.int32)  # union-find parents
    parents = np.full(n, -1, dtype=np.int32)
    sizes = np.ones(n, dtype=np.int32)
    visited = np.zeros(n, dtype=np.bool_)
    edges = np.zeros(n, dtype=np.int64)  # from u to each community; reset after each visit
    touched = np.empty(n, dtype=np.int32)  # indices of the nonzeros of `edges`
    modularity = 0.0 if neighbors.size else np.nan
    for v in range(n):
        if strengths[v] > 0:
            modularity -= (strengths[v] / total) ** 2

    for u in visits:
        visited[u] = True
        n_touched = 0
        owner = u
        while owner >= 0:
            for k in range(row_pointers[owner], row_pointers[owner] + used[owner]):
                v = _find_community(joined, neighbors[k])
                if v != u:
                    if edges[v] == 0:
                        touched[n_touched] = v
                        n_touched += 1
                    edges[v] += weights[k]
            owner = next_list[owner]

        best, best_gain = -1, 0.0
        for v in touched[:n_touched]:
            # The gain in units of 2 / (2m)^2 is an integer, and exact below 2^53.
            gain = edges[v] * total - float(strengths[u]) * float(strengths[v])
            if gain > best_gain or (gain == best_gain and v < best):
                best, best_gain = v, gain

        if best >= 0:
            parents[u] = joined[u] = best
            strengths[best] += strengths[u]
            sizes[best] += sizes[u]
            modularity += 2 * best_gain / total**2
            if not visited[best]:  # the list of a visited vertex is never read
                owner, k = u, row_pointers[u]
                used[u] = 0
                for v in touched[:n_touched]:
                    if v == best:
                        continue
                    while k == row_pointers[owner + 1]:
                        owner = next_list[owner]
                        used[owner] = 0
                        k = row_pointers[owner]
                    neighbors[k] = v
                    weights[k] = edges[v]
                    used[owner] += 1
                    k += 1
                next_list[owner] = -1  # the other lists of the chain are empty
                next_list[last_list[best]] = u
                last_list[best] = owner
        for v in touched[:n_touched]:
            edges[v] = 0
    return parents, sizes, modularity


@njit(nogil=True)
def _find_community(joined: Ints, v: int) -> int:
    """Return the current community of `v`; compress the path by path halving."""
    while joined[v] != v:
        joined[v] = joined[joined[v]]
        v = joined[v]
    return v


@njit(nogil=True)
def _depth_first(visits: Ints, parents: Ints, sizes: Ints) -> Ints:
    """Return the order of the vertices: trees and children in visiting order."""
    n = visits.size
    order = np.empty(n, dtype=np.int32)
    position = np.empty(n, dtype=np.int64)
    end = np.empty(n, dtype=np.int64)  # end of the unassigned positions of each subtree
    free = 0
    for v in visits:
        if parents[v] < 0:
            position[v] = free
            free += sizes[v]
            end[v] = free
    # In reverse visiting order parents precede children, and the last child gets the last numbers.
    for u in visits[::-1]:
        if parents[u] >= 0:
            end[parents[u]] -= sizes[u]
            position[u] = end[parents[u]]
            end[u] = position[u] + sizes[u]
        order[position[u]] = u
    return order
