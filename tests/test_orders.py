"""Vertex orders: what all of them hold, and what each is for."""

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


def of_edges(edges, n_rows):
    source, target = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    ones = np.ones(source.size, dtype=np.float32)
    return load_graph(sparse.coo_array((ones, (target, source)), shape=(n_rows, n_rows)))


def path(n_rows):
    return of_edges([(row, row + 1) for row in range(n_rows - 1)], n_rows)


def cliques(count, size):
    """Disjoint cliques, each on one run of ids, and the clique of each row."""
    label = np.repeat(np.arange(count), size)
    return load_graph(sparse.csr_array((label[:, None] == label).astype(np.float32))), label


#: Square graphs with what those of `tests/graphs.py` lack.
SQUARE = {
    "hub": partial(of_edges, [(0, row) for row in range(1, 400)], 450),
    "directed_cycle": partial(of_edges, [(row, (row + 1) % 9) for row in range(9)], 9),
    "only_loops": partial(of_edges, [(row, row) for row in range(6)], 6),
    "two_components": partial(of_edges, [(0, 3), (3, 5), (5, 0), (1, 2), (2, 2), (4, 1)], 7),
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
        pytest.skip("the libraries' own time")
    arrays = (graph.row_pointers, graph.column_indices, graph.values)
    before = [array.copy() for array in arrays]
    permutation = vertex_order(graph, order)
    assert isinstance(permutation, Permutation)
    assert permutation.order.dtype == np.int32
    assert not permutation.order.flags.writeable
    assert sorted(permutation.order.tolist()) == list(range(graph.n_rows))
    again = vertex_order(Graph(*before, graph.shape), order)
    np.testing.assert_array_equal(permutation.order, again.order)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("order", NEED_SQUARE)
def test_edges_count_in_both_directions_without_weights_or_loops(order):
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
    graph = of_edges(edges, n_rows)
    dense = graph.adjacency.toarray() != 0
    pattern = undirected_pattern(graph)
    np.testing.assert_array_equal(
        pattern.toarray(), (dense | dense.T) & ~np.eye(n_rows, dtype=bool)
    )
    assert pattern.nnz == np.count_nonzero(pattern.toarray())
    assert pattern.has_canonical_format
    assert not np.shares_memory(pattern.indices, graph.column_indices)


def test_the_door_names_what_there_is():
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
        graph, *rest = inspect.signature(order).parameters.values()
        assert graph.name == "graph"
        assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in rest)
        assert all(parameter.default is not parameter.empty for parameter in rest)


def test_orders_import_no_library_before_it_is_wanted():
    code = (
        "import sys, accelviz.ordering; accelviz.ordering.rabbit_order('cora'); "
        "print([m for m in ('networkx', 'igraph', 'pymetis') if m in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def bandwidth(graph):
    matrix = graph.adjacency.tocoo()
    return int(abs(matrix.row - matrix.col).max())


def test_cuthill_mckee_narrows_the_band():
    grid = load_graph(networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(30, 8)))
    mixed = shuffled(grid)
    assert bandwidth(mixed) > 150
    assert bandwidth(reverse_cuthill_mckee(mixed).apply_to_graph(mixed, columns=True)) <= 12
    # Breadth first from a leaf of a star comes second to the hub; reversed, second to last.
    assert reverse_cuthill_mckee(of_edges([(3, row) for row in (0, 1, 2, 4)], 5)).order[-2] == 3
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
def test_communities_come_by_smallest_row_with_rows_in_old_order(method):
    graph, label = cliques(8, 12)
    shuffle = random_order(graph, seed=3)
    mixed, label = shuffle.apply_to_graph(graph, columns=True), shuffle.apply(label)
    first = np.array([np.flatnonzero(label == clique)[0] for clique in range(8)])
    expected = np.lexsort((np.arange(96), first[label]))
    parts = {"parts": 8} if method == "metis" else {}
    order = community_order(mixed, method=method, **parts).order
    assert order.tolist() == expected.tolist()


@pytest.mark.parametrize("method", METHODS)
def test_communities_shorten_edges_and_follow_the_seed(method):
    graph = shuffled(load_graph("cora"))
    orders = [community_order(graph, method=method, seed=seed) for seed in (0, 1, 0)]
    for order in orders:
        span = average_edge_span(order.apply_to_graph(graph, columns=True))
        assert span < average_edge_span(graph) / 3
    assert orders[0].order.tolist() != orders[1].order.tolist()
    assert orders[0].order.tolist() == orders[2].order.tolist()


def test_metis_makes_as_many_parts_as_asked():
    graph = path(100)
    # Any run of a path is a part, in one piece: with one part, or as many as rows, nothing moves.
    for parts in (1, 100):
        order = community_order(graph, method="metis", parts=parts).order
        assert order.tolist() == list(range(100))
    mixed = shuffled(graph)
    order = community_order(mixed, method="metis", parts=4)
    falls = np.count_nonzero(np.diff(order.order) < 0)
    assert falls == 3  # rows ascend inside each part


def test_the_random_numbers_of_others_are_left_alone():
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


def test_a_missing_package_is_named_and_auto_does_without(monkeypatch):
    graph = SQUARE["two_components"]()
    with_igraph = community_order("cora").order.tolist()
    assert with_igraph == community_order("cora", method="igraph").order.tolist()
    for package, method in (("igraph", "igraph"), ("pymetis", "metis")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ArgumentError, match=f"{package}, which is not.*pip install '{package}"):
            community_order(graph, method=method)
    without = community_order("cora").order.tolist()
    assert without == community_order("cora", method="networkx").order.tolist()


@pytest.mark.parametrize(
    ("parameters", "says"),
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
def test_community_parameters_are_checked(parameters, says):
    with pytest.raises(ArgumentError, match=says):
        community_order(SQUARE["two_components"](), **parameters)


@pytest.mark.parametrize(
    ("n_rows", "threshold", "pays"), [(9_999, 0, True), (10_000, 1, False), (40_000, 2, False)]
)
def test_the_aes_rule_at_its_edge(n_rows, threshold, pays):
    advice = renumbering_pays(path(n_rows))  # each edge spans 1 id
    assert (advice.average_edge_span, advice.root_span) == (1, 1)
    assert (advice.threshold, advice.pays, bool(advice)) == (threshold, pays, pays)
    says = "is likely to pay" if pays else "is unlikely to pay"
    assert says in str(advice)
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
    """Replay: each visited vertex, its parent or -1, and the communities before, by their roots."""
    members = {row: [row] for row in range(len(dendrogram.visits))}
    for row in dendrogram.visits.tolist():
        parent = int(dendrogram.parents[row])
        yield row, parent, members
        if parent >= 0:
            members[parent] = members[parent] + members.pop(row)


def check_each_merge(graph):
    """Each vertex takes the neighbor with the best gain, by brute force."""
    dendrogram = rabbit_dendrogram(graph)
    A = undirected_pattern(graph).toarray().astype(int)
    degrees = A.sum(axis=0)
    assert sorted(dendrogram.visits.tolist()) == list(range(graph.n_rows))
    assert (np.diff(degrees[dendrogram.visits]) >= 0).all()
    # (2m)^2 times the modularity, in whole numbers, from its definition; half a merge's gain is the
    # sum over the pairs that it brings together.
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
def test_rabbit_takes_the_best_positive_gain_in_tiny_graphs(edges):
    check_each_merge(of_edges(edges, 10))


@pytest.mark.parametrize("seed", range(4))
def test_rabbit_takes_the_best_positive_gain_among_many_equal_ones(seed):
    check_each_merge(load_graph(networkx.random_regular_graph(3 + seed, 80, seed=seed)))
    check_each_merge(load_graph(networkx.barabasi_albert_graph(80, 1 + seed, seed=seed)))


@pytest.mark.parametrize("name", ["cora", "facebook", "hub", "two_components"])
def test_every_community_of_rabbit_order_is_one_run_after_every_merge(name):
    dendrogram = rabbit_dendrogram(ALL[name]())
    position = dendrogram.numbering().inverse
    for row, parent, members in merges(dendrogram):
        if parent >= 0:
            places = position[members[parent] + members[row]]
            assert places.max() - places.min() == places.size - 1
            assert position[parent] == places.min()
            assert (position[members[parent]] < position[row]).all()  # who joined before is before


@pytest.mark.parametrize("seed", range(3))
def test_rabbit_recovers_planted_cliques(seed):
    graph, label = cliques(30, 7)
    shuffle = random_order(graph, seed=seed)
    mixed, label = shuffle.apply_to_graph(graph, columns=True), shuffle.apply(label)
    dendrogram = rabbit_dendrogram(mixed)
    assert dendrogram.n_communities == 30
    assert dendrogram.modularity == pytest.approx(1 - 1 / 30)
    assert np.count_nonzero(np.diff(label[rabbit_order(mixed).order])) == 29


@pytest.mark.parametrize("name", ["cora", "pubmed", "as-caida", "facebook", "athletes", "mit8"])
def test_rabbit_s_modularity_is_near_louvain_s(name):
    igraph = pytest.importorskip("igraph")
    graph = load_graph(name)
    dendrogram = rabbit_dendrogram(graph)
    edges = sparse.triu(undirected_pattern(graph), format="coo")
    theirs = igraph.Graph(graph.n_rows, np.column_stack([edges.row, edges.col]))
    _, membership = np.unique(dendrogram.communities, return_inverse=True)
    assert dendrogram.modularity == pytest.approx(theirs.modularity(membership))
    assert dendrogram.modularity > 0.8 * theirs.community_multilevel().modularity


@pytest.mark.parametrize(
    ("name", "falls"), [("cora", 6), ("pubmed", 4), ("as-caida", 3), ("luxembourg-osm", 100)]
)
def test_rabbit_order_shortens_the_edges_of_a_shuffled_graph(name, falls):
    graph = shuffled(load_graph(name))
    ordered = rabbit_order(graph).apply_to_graph(graph, columns=True)
    assert average_edge_span(ordered) < average_edge_span(graph) / falls


def test_rabbit_finds_many_communities_where_all_degrees_are_equal():
    # Visited in the order of their ids, the vertices of a path make 3 communities.
    dendrogram = rabbit_dendrogram(path(20_000))
    assert dendrogram.n_communities > 80
    assert dendrogram.modularity > 0.98


def test_rabbit_keeps_isolated_rows_in_order():
    graph = of_edges([(2, 5), (5, 7)], 300)
    order = rabbit_order(graph).order.tolist()
    assert order[:297] == [row for row in range(300) if row not in (2, 5, 7)]


def test_the_memory_of_rabbit_order_grows_with_the_nonzeros_alone():
    graph = load_graph("ca-astroph")
    rabbit_order(graph)
    tracemalloc.start()
    rabbit_order(graph)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 48 * graph.nnz + 128 * graph.n_rows
