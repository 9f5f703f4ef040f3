"""Vertex orders: properties of all orders, and the purpose of each."""

import inspect
import random
import subprocess
import sys
import tracemalloc
from functools import partial

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from accelviz import load_graph
from accelviz.card import average_edge_span
from accelviz.errors import ArgumentError, GraphError
from accelviz.graph import Graph
from accelviz.ordering import (
    ORDERS,
    Permutation,
    community_order,
    rabbit_dendrogram,
    rabbit_order,
    random_order,
    renumbering_pays,
    reverse_cuthill_mckee,
    vertex_order,
)
from accelviz.ordering.plain import undirected_pattern
from tests.graphs import GRAPHS, graph_of_degrees

METHODS = ("igraph", "networkx", "metis")


def shuffled(graph, seed=7):
    return random_order(graph, seed=seed).apply_to_graph(graph, columns=True)


def graph_of_edges(edges, n_rows):
    source, target = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    ones = np.ones(source.size, dtype=np.float32)
    return load_graph(sparse.coo_array((ones, (target, source)), shape=(n_rows, n_rows)))


def path(n_rows):
    return graph_of_edges([(row, row + 1) for row in range(n_rows - 1)], n_rows)


def cliques(count, size):
    """Return a graph of disjoint cliques with contiguous ids, and the clique of each row."""
    label = np.repeat(np.arange(count), size)
    return load_graph(sparse.csr_array((label[:, None] == label).astype(np.float32))), label


#: Square graphs in addition to those of `tests/graphs.py`.
SQUARE = {
    "hub": partial(graph_of_edges, [(0, row) for row in range(1, 400)], 450),
    "directed_cycle": partial(graph_of_edges, [(row, (row + 1) % 9) for row in range(9)], 9),
    "only_loops": partial(graph_of_edges, [(row, row) for row in range(6)], 6),
    "two_components": partial(graph_of_edges, [(0, 3), (3, 5), (5, 0), (1, 2), (2, 2), (4, 1)], 7),
}
ALL = GRAPHS | SQUARE
NEED_SQUARE = ("rcm", "community", "rabbit")


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("order", ORDERS)
def test_every_order_of_every_graph(order, name):
    graph = ALL[name]()
    if order in NEED_SQUARE and graph.shape[0] != graph.shape[1]:
        with pytest.raises(GraphError, match="not square"):
            vertex_order(graph, order)
        return
    if order == "community" and graph.nnz > 120_000:
        pytest.skip("the community libraries are slow")
    arrays = (graph.row_pointers, graph.column_indices, graph.values)
    copies = [array.copy() for array in arrays]
    permutation = vertex_order(graph, order)
    assert isinstance(permutation, Permutation)
    assert permutation.order.dtype == np.int32
    assert not permutation.order.flags.writeable
    assert sorted(permutation.order.tolist()) == list(range(graph.n_rows))
    repeated = vertex_order(Graph(*copies, graph.shape), order)
    np.testing.assert_array_equal(permutation.order, repeated.order)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("order", NEED_SQUARE)
def test_directions_weights_and_loops_are_ignored(order):
    one_way = load_graph("cit-hepph").adjacency[:3000, :3000]
    weights = np.random.default_rng(0).standard_normal(one_way.nnz).astype(np.float32)
    weighted = sparse.csr_array((weights, one_way.indices, one_way.indptr), one_way.shape)
    looped = weighted + sparse.diags_array(np.arange(3000, dtype=np.float32) % 2, format="csr")
    expected = vertex_order(one_way + one_way.T, order).order
    assert expected.tolist() != list(range(3000))
    for other in (one_way, one_way.T, weighted, looped):
        np.testing.assert_array_equal(vertex_order(other, order).order, expected)


@given(
    st.integers(0, 8).flatmap(lambda n: st.lists(st.tuples(*[st.integers(0, max(n - 1, 0))] * 2)))
)
def test_the_undirected_pattern(edges):
    n_rows = max((max(edge) for edge in edges), default=-1) + 2
    graph = graph_of_edges(edges, n_rows)
    dense = graph.adjacency.toarray() != 0
    pattern = undirected_pattern(graph)
    np.testing.assert_array_equal(
        pattern.toarray(), (dense | dense.T) & ~np.eye(n_rows, dtype=bool)
    )
    assert pattern.nnz == np.count_nonzero(pattern.toarray())
    assert pattern.has_canonical_format
    assert not np.shares_memory(pattern.indices, graph.column_indices)


def test_errors_and_signatures_of_vertex_order():
    with pytest.raises(ArgumentError, match=r"no order 'rabit'.*original, random.*rabbit"):
        vertex_order("cora", "rabit")
    with pytest.raises(ArgumentError, match="no order None"):
        vertex_order("cora", None)
    with pytest.raises(ArgumentError, match=r"seed: the order 'rcm' has no such.*no options"):
        vertex_order("cora", "rcm", seed=1)
    with pytest.raises(ArgumentError, match=r"windows: .*'windowed_degree'.*Expected: window\."):
        vertex_order("cora", "windowed_degree", windows=1)
    with pytest.raises(GraphError, match="there is no .*'nothing'"):
        vertex_order("nothing", "original")
    for order in ORDERS.values():
        graph, *options = inspect.signature(order).parameters.values()
        assert graph.name == "graph"
        assert all(option.kind is option.KEYWORD_ONLY for option in options)
        assert all(option.default is not option.empty for option in options)


def test_libraries_are_imported_only_when_needed():
    code = (
        "import sys, accelviz.ordering; accelviz.ordering.rabbit_order('cora'); "
        "print([m for m in ('networkx', 'igraph', 'pymetis') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def bandwidth(graph):
    matrix = graph.adjacency.tocoo()
    return int(abs(matrix.row - matrix.col).max())


def test_cuthill_mckee_reduces_the_bandwidth():
    grid = load_graph(networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(30, 8)))
    mixed = shuffled(grid)
    assert bandwidth(mixed) > 150
    assert bandwidth(reverse_cuthill_mckee(mixed).apply_to_graph(mixed, columns=True)) <= 12
    # From a leaf of a star, the hub is visited second, so it is second to last when reversed.
    assert (
        reverse_cuthill_mckee(graph_of_edges([(3, row) for row in (0, 1, 2, 4)], 5)).order[-2] == 3
    )
    road = shuffled(load_graph("luxembourg-osm"))
    ordered = reverse_cuthill_mckee(road).apply_to_graph(road, columns=True)
    assert bandwidth(ordered) < bandwidth(road) / 50


def test_cuthill_mckee_keeps_components_together():
    parts = sparse.block_diag([path(size).adjacency for size in (30, 1, 50, 2, 20)], format="csr")
    graph = shuffled(load_graph(parts))
    _, label = sparse.csgraph.connected_components(graph.adjacency)
    labels = label[reverse_cuthill_mckee(graph).order]
    assert np.count_nonzero(np.diff(labels)) == 4


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_communities_and_of_their_rows(method):
    graph, label = cliques(8, 12)
    shuffle = random_order(graph, seed=3)
    mixed, label = shuffle.apply_to_graph(graph, columns=True), shuffle.apply(label)
    first = np.array([np.flatnonzero(label == clique)[0] for clique in range(8)])
    expected = np.lexsort((np.arange(96), first[label]))
    parts = {"parts": 8} if method == "metis" else {}
    order = community_order(mixed, method=method, **parts).order
    assert order.tolist() == expected.tolist()


@pytest.mark.parametrize("method", METHODS)
def test_community_orders_shorten_edges_and_depend_on_the_seed(method):
    graph = shuffled(load_graph("cora"))
    orders = [community_order(graph, method=method, seed=seed) for seed in (0, 1, 0)]
    for order in orders:
        span = average_edge_span(order.apply_to_graph(graph, columns=True))
        assert span < average_edge_span(graph) / 3
    assert orders[0].order.tolist() != orders[1].order.tolist()
    assert orders[0].order.tolist() == orders[2].order.tolist()


def test_the_number_of_parts_of_metis():
    graph = path(100)
    # One part, or one part per row, gives the identity.
    for parts in (1, 100):
        order = community_order(graph, method="metis", parts=parts).order
        assert order.tolist() == list(range(100))
    mixed = shuffled(graph)
    order = community_order(mixed, method="metis", parts=4)
    assert np.count_nonzero(np.diff(order.order) < 0) == 3  # rows ascend within each of 4 parts


def test_global_random_generators_are_not_changed():
    igraph = pytest.importorskip("igraph")
    community_order("cora", method="igraph", seed=5)
    random.seed(1)
    state = random.getstate()
    community_order("cora", method="igraph", seed=5)
    community_order("cora", method="networkx", seed=5)
    assert random.getstate() == state
    drawn = igraph.Graph.Erdos_Renyi(50, 0.2).get_edgelist()
    assert random.getstate() != state  # igraph draws from `random` again
    random.setstate(state)
    assert igraph.Graph.Erdos_Renyi(50, 0.2).get_edgelist() == drawn


def test_missing_packages(monkeypatch):
    graph = SQUARE["two_components"]()
    with_igraph = community_order("cora").order.tolist()
    assert with_igraph == community_order("cora", method="igraph").order.tolist()
    for package, method in (("igraph", "igraph"), ("pymetis", "metis")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(
            ArgumentError, match=f"{package}, which is not.*pip install '?{package}"
        ):
            community_order(graph, method=method)
    without = community_order("cora").order.tolist()
    assert without == community_order("cora", method="networkx").order.tolist()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "leiden"}, "there is no 'leiden'.*auto, igraph, networkx, metis"),
        ({"method": None}, "there is no None"),
        ({"seed": -1}, "seed: got -1"),
        ({"parts": 3}, "Louvain finds the number itself"),
        ({"method": "metis", "parts": 0}, "parts: got 0"),
        ({"method": "metis", "parts": 8}, "parts: got 8 for 7 rows"),
        ({"method": "metis", "parts": 2.0}, "parts: got 2.0"),
    ],
)
def test_invalid_parameters_of_community_order(parameters, message):
    with pytest.raises(ArgumentError, match=message):
        community_order(SQUARE["two_components"](), **parameters)


@pytest.mark.parametrize(
    ("n_rows", "threshold", "pays"), [(9_999, 0, True), (10_000, 1, False), (40_000, 2, False)]
)
def test_the_aes_rule_at_its_threshold(n_rows, threshold, pays):
    advice = renumbering_pays(path(n_rows))  # each edge spans 1 id
    assert (advice.average_edge_span, advice.root_span) == (1, 1)
    assert (advice.threshold, advice.pays, bool(advice)) == (threshold, pays, pays)
    assert ("is likely to pay" if pays else "is unlikely to pay") in str(advice)
    assert f"{'>' if pays else '<='} {threshold} =" in str(advice)


def test_the_aes_rule_on_graphs():
    road = load_graph("luxembourg-osm")
    advice = renumbering_pays(shuffled(road))
    assert advice
    assert advice.average_edge_span == pytest.approx(road.n_rows / 3, rel=0.02)
    assert advice.root_span == advice.average_edge_span**0.5
    assert advice.threshold == 3
    nothing = renumbering_pays(graph_of_degrees([0, 0]))
    assert not nothing
    assert np.isnan(nothing.average_edge_span)
    assert "no edge" in str(nothing)
    with pytest.raises(GraphError, match="1 x 5 is not square"):
        renumbering_pays(graph_of_degrees([1], 5))


def merges(dendrogram):
    """Yield each visited vertex, its parent or -1, and the communities before, by their roots."""
    members = {row: [row] for row in range(len(dendrogram.visits))}
    for row in dendrogram.visits.tolist():
        parent = int(dendrogram.parents[row])
        yield row, parent, members
        if parent >= 0:
            members[parent] = members[parent] + members.pop(row)


def check_each_merge(graph):
    """Check by brute force that each vertex is merged into the neighbor with the largest gain."""
    dendrogram = rabbit_dendrogram(graph)
    A = undirected_pattern(graph).toarray().astype(int)
    degrees = A.sum(axis=0)
    assert sorted(dendrogram.visits.tolist()) == list(range(graph.n_rows))
    assert (np.diff(degrees[dendrogram.visits]) >= 0).all()
    # The modularity times (2m)^2, in integers. The gain of a merge is twice the sum over pairs of
    # vertices of the two communities.
    Q = A * A.sum() - np.outer(degrees, degrees)
    for row, parent, members in merges(dendrogram):
        gains = {
            other: int(Q[np.ix_(members[row], members[other])].sum())
            for other in members
            if other != row and A[np.ix_(members[row], members[other])].any()
        }
        best = max(gains.values(), default=0)
        choice = min((other for other in gains if gains[other] == best), default=-1)
        assert parent == (choice if best > 0 else -1)
    total = sum(int(Q[np.ix_(rows, rows)].sum()) for rows in members.values())
    if A.any():
        assert dendrogram.modularity == pytest.approx(total / A.sum() ** 2, abs=1e-12)
    else:
        assert np.isnan(dendrogram.modularity)
    assert dendrogram.n_communities == len(members)
    for root, rows in members.items():
        assert (dendrogram.communities[rows] == root).all()
        assert dendrogram.sizes[root] == len(rows)


@given(st.lists(st.tuples(*[st.integers(0, 8)] * 2)))
def test_rabbit_merges_by_the_largest_gain_in_tiny_graphs(edges):
    check_each_merge(graph_of_edges(edges, 10))


@pytest.mark.parametrize("seed", range(4))
def test_rabbit_merges_by_the_largest_gain_among_equal_ones(seed):
    check_each_merge(load_graph(networkx.random_regular_graph(3 + seed, 80, seed=seed)))
    check_each_merge(load_graph(networkx.barabasi_albert_graph(80, 1 + seed, seed=seed)))


@pytest.mark.parametrize("name", ["cora", "facebook", "hub", "two_components"])
def test_communities_of_rabbit_order_are_contiguous_after_every_merge(name):
    dendrogram = rabbit_dendrogram(ALL[name]())
    position = dendrogram.numbering().inverse
    for row, parent, members in merges(dendrogram):
        if parent >= 0:
            merged = position[members[parent] + members[row]]
            assert merged.max() - merged.min() == merged.size - 1
            assert position[parent] == merged.min()
            assert (position[members[parent]] < position[row]).all()  # in the order of merges


@pytest.mark.parametrize("seed", range(3))
def test_rabbit_recovers_planted_cliques(seed):
    graph, label = cliques(30, 7)
    shuffle = random_order(graph, seed=seed)
    mixed, label = shuffle.apply_to_graph(graph, columns=True), shuffle.apply(label)
    dendrogram = rabbit_dendrogram(mixed)
    assert dendrogram.n_communities == 30
    assert dendrogram.modularity == pytest.approx(1 - 1 / 30)
    assert np.count_nonzero(np.diff(label[rabbit_order(mixed).order])) == 29


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["cora", "pubmed", "as-caida", "facebook", "athletes", "mit8"])
def test_rabbit_s_modularity_is_near_louvain_s(name):
    igraph = pytest.importorskip("igraph")
    graph = load_graph(name)
    dendrogram = rabbit_dendrogram(graph)
    edges = sparse.triu(undirected_pattern(graph), format="coo")
    in_igraph = igraph.Graph(graph.n_rows, np.column_stack([edges.row, edges.col]))
    _, membership = np.unique(dendrogram.communities, return_inverse=True)
    assert dendrogram.modularity == pytest.approx(in_igraph.modularity(membership))
    assert dendrogram.modularity > 0.8 * in_igraph.community_multilevel().modularity


@pytest.mark.parametrize(
    ("name", "factor"), [("cora", 6), ("pubmed", 4), ("as-caida", 3), ("luxembourg-osm", 100)]
)
def test_rabbit_order_shortens_the_edges_of_a_shuffled_graph(name, factor):
    graph = shuffled(load_graph(name))
    ordered = rabbit_order(graph).apply_to_graph(graph, columns=True)
    assert average_edge_span(ordered) < average_edge_span(graph) / factor


def test_rabbit_finds_many_communities_where_all_degrees_are_equal():
    # If vertices were visited in the order of their ids, a path would have 3 communities.
    dendrogram = rabbit_dendrogram(path(20_000))
    assert dendrogram.n_communities > 80
    assert dendrogram.modularity > 0.98


def test_rabbit_keeps_isolated_rows_in_order():
    graph = graph_of_edges([(2, 5), (5, 7)], 300)
    order = rabbit_order(graph).order.tolist()
    assert order[:297] == [row for row in range(300) if row not in (2, 5, 7)]


def test_peak_memory_of_rabbit_order():
    graph = load_graph("ca-astroph")
    rabbit_order(graph)
    tracemalloc.start()
    rabbit_order(graph)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 48 * graph.nnz + 128 * graph.n_rows
