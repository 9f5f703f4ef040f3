"""Twins have exactly the degrees of their graph, and never change."""

import hashlib
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accelviz
from accelviz import load_graph
from accelviz.analysis.locality import locality
from accelviz.card import average_edge_span, is_symmetric
from accelviz.datasets import TABLE_ONE, bundled_graphs, twin
from accelviz.datasets.synthetic.communities import default_sizes, lay_out
from accelviz.errors import ArgumentError, GraphError
from tests.graphs import graph_of_degrees

# Numba takes 15 s to compile the generator of twins, so these tests run in one process.
pytestmark = pytest.mark.xdist_group("twins")

#: Twins that take a fraction of a second; benchmarks/pages/graphs.py makes the others.
QUICK = ["artist", "arxiv", "collab", "com-amazon", "ovcar-8h", "pubmed-twin", "twitter-partial"]
FITTING = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks/pages/fitted_degrees.py"))
heavy_tailed_degrees = FITTING["heavy_tailed_degrees"]


def degrees_of(histogram):
    degrees, rows = histogram
    return np.repeat(degrees, rows)


@pytest.mark.parametrize("key", TABLE_ONE)
def test_the_degrees_of_table_one_add_up(key):
    entry = TABLE_ONE[key]
    degrees, rows = entry.histogram()
    assert entry.name.lower() == key
    assert rows.sum() == entry.nodes
    assert degrees @ rows == entry.edges
    assert (np.diff(degrees) > 0).all()
    assert (rows > 0).all()
    if not entry.exact:
        assert degrees[-1] == FITTING["LARGEST"][entry.name]
    assert {entry.name for entry in TABLE_ONE.values() if not entry.exact} == {*FITTING["LARGEST"]}


@pytest.mark.sample(6)
@pytest.mark.parametrize("order", ["natural", "shuffled"])
@pytest.mark.parametrize("name", QUICK)
def test_a_twin_has_exactly_its_degrees_and_its_symmetry(name, order):
    entry = TABLE_ONE[name.removesuffix("-twin")]
    graph = load_graph(name, order=order)  # Graph itself refuses duplicate columns
    assert (graph.shape, graph.nnz) == ((entry.nodes, entry.nodes), entry.edges)
    np.testing.assert_array_equal(np.sort(graph.degrees), degrees_of(entry.histogram()))
    assert is_symmetric(graph) == (not entry.directed)
    rows = np.repeat(np.arange(graph.n_rows), graph.degrees)
    loops = np.count_nonzero(rows == graph.column_indices)
    assert loops == (0 if entry.directed else entry.edges % 2)
    assert graph.kind == "twin"
    assert graph.name == f"{entry.name}-twin" + ("-shuffled" if order == "shuffled" else "")
    assert f"{order} order" in graph.source


@pytest.mark.long
def test_names_in_any_case_with_or_without_twin():
    assert load_graph("COLLAB-Twin").name == load_graph("collab").name == "Collab-twin"
    assert load_graph("pubmed").kind == "real"
    assert load_graph("Pubmed-TWIN").nnz == 99_203
    again = load_graph(load_graph("twitter-partial").name)
    assert again.name == "TWITTER-Partial-twin"


def test_what_is_approximate_says_so_everywhere(monkeypatch):
    import accelviz.datasets.synthetic.table_one as module

    small = module.TableEntry("Reddit", 400, 9_001, exact=False)
    monkeypatch.setitem(module.TABLE_ONE, "reddit", small)
    monkeypatch.setitem(module._histograms(), "Reddit", heavy_tailed_degrees(400, 9_001, 200))
    for name in ("reddit", "REDDIT-twin", "Reddit-approximate-twin"):
        graph = load_graph(name)
        assert graph.name == "Reddit-approximate-twin"
        assert graph.source.startswith("APPROXIMATE")
        assert graph.kind == "approximate twin"
        assert "approximate" in str(accelviz.describe(graph))
        assert (graph.n_rows, graph.nnz, graph.degrees.max()) == (400, 9_001, 200)


#: SHA-256 of the column indices. Changing one invalidates every recorded measurement on a twin:
#: increase `_TWIN_VERSION` in datasets/load.py, and note it in the changelog.
CHECKSUMS = {
    ("artist", "natural", 0): "d749e8fb7801befd",
    ("artist", "shuffled", 7): "d042977bf65ad883",
    ("arxiv", "natural", 0): "bc4c5777ed7a83dd",
}


@pytest.mark.parametrize(("name", "order", "seed"), CHECKSUMS)
def test_a_twin_is_the_same_on_every_machine(name, order, seed):
    graph = load_graph(name, order=order, seed=seed)
    columns = graph.column_indices.astype("<i4").tobytes()
    assert hashlib.sha256(columns).hexdigest()[:16] == CHECKSUMS[name, order, seed]


def test_seeds_and_orders_differ_and_shuffling_renames_only():
    first, second = (twin("artist", seed=seed) for seed in (0, 1))
    assert (first.column_indices != second.column_indices).any()
    assert second.name == "Artist-twin-seed-1"
    shuffled = twin("artist", order="shuffled")
    assert average_edge_span(first) < 0.5 * average_edge_span(shuffled)
    expected = shuffled.n_rows / 3
    assert average_edge_span(shuffled) == pytest.approx(expected, rel=0.02)


def local_share(graph, share):
    degrees, rows = np.unique(graph.degrees, return_counts=True)
    sizes = default_sizes(graph.n_rows, graph.nnz)
    layout = lay_out(degrees, rows, locality=share, sizes=sizes, order="natural", seed=0)
    community = np.repeat(np.arange(layout.bounds.size - 1), np.diff(layout.bounds))
    row = np.repeat(np.arange(graph.n_rows), graph.degrees)
    np.testing.assert_array_equal(layout.degrees, graph.degrees)  # the same layout as the twin's
    return (community[row] == community[graph.column_indices]).mean()


@pytest.mark.parametrize("name", ["collab", "arxiv"])
def test_locality_is_the_share_of_neighbors_in_the_own_community(name):
    shares = [local_share(twin(name, locality=share), share) for share in (0.0, 0.5, 0.8)]
    assert shares[0] < 0.02
    # Arxiv's hubs have more neighbors than any community has rows.
    low, high = (0.49, 0.79) if name == "collab" else (0.42, 0.68)
    assert low < shares[1] < 0.52
    assert high < shares[2] < 0.82


def test_community_sizes_are_heavy_tailed_and_fill_the_graph():
    layout = lay_out(
        np.array([3]), np.array([200_000]), locality=1.0, sizes=(10, 1000), order="natural", seed=3
    )
    sizes = np.diff(layout.bounds)
    assert layout.bounds[-1] == 200_000
    assert sizes.min() >= 10
    assert sizes[:-1].max() <= 1000
    # P(size >= s) of the law s^-2 between 10 and 1000
    for s in (20, 50, 200):
        expected = (10 / s - 10 / 1000) / (1 - 10 / 1000)
        assert (sizes >= s).mean() == pytest.approx(expected, rel=0.15)


def test_popularity_follows_degree():
    graph = twin("arxiv", locality=0.0)
    column_degrees = np.bincount(graph.column_indices, minlength=graph.n_rows)
    for low, high in ((0, 1), (1, 4), (16, 64), (64, 256)):
        chosen = (graph.degrees >= low) & (graph.degrees < high)
        expected = graph.nnz * (graph.degrees[chosen] + 1.0).mean() / (graph.nnz + graph.n_rows)
        assert column_degrees[chosen].mean() == pytest.approx(expected, rel=0.1)


@given(st.dictionaries(st.integers(0, 12), st.integers(0, 9), max_size=6), st.sampled_from([0, 1]))
@settings(max_examples=300)
def test_any_histogram_has_a_twin_or_says_why_not(histogram, seed):
    n, largest = sum(histogram.values()), max((d for d in histogram if histogram[d]), default=0)
    if largest > n:
        with pytest.raises(GraphError, match="a degree of"):
            twin(histogram, seed=seed)
        return
    for order in ("natural", "shuffled"):
        graph = twin(histogram, seed=seed, order=order)
        expected = sorted(d for d, rows in histogram.items() for _ in range(rows))
        assert sorted(graph.degrees.tolist()) == expected


def test_symmetric_where_the_degrees_allow_it():
    assert is_symmetric(twin({3: 4}))  # the complete graph of four
    assert is_symmetric(twin({1: 8, 8: 1}))  # a star
    odd = twin({1: 3})  # an edge, and a nonzero on the diagonal
    assert is_symmetric(odd)
    assert np.count_nonzero(odd.adjacency.diagonal()) == 1
    impossible = {4: 2, 1: 4, 0: 1}  # two rows that need each other and three more each: no
    assert not is_symmetric(twin(impossible))
    with pytest.raises(GraphError, match="no symmetric graph.*symmetric=False"):
        twin(impossible, symmetric=True)
    assert not is_symmetric(twin({2: 40}, symmetric=False))


def test_a_graph_has_a_twin_of_its_own():
    for name in ("cora", "cit-hepph"):
        real = load_graph(name)
        double = twin(real)
        np.testing.assert_array_equal(np.sort(double.degrees), np.sort(real.degrees))
        assert is_symmetric(double) == is_symmetric(real)
        assert double.name == f"{name}-twin"
        assert twin(real, locality=0.5).name == f"{name}-twin-locality-0.5"
    with pytest.raises(GraphError, match="square"):
        twin(graph_of_degrees([1, 2], 5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: twin("facebook"), "'facebook' is not in Table I.*OVCAR-8H"),
        (lambda: twin("collab", order="sorted"), "one of natural, shuffled"),
        (lambda: twin("collab", locality=1.1), "0 to 1"),
        (lambda: twin("collab", locality=float("nan")), "0 to 1"),
        (lambda: load_graph("collab", localty=1), "twin of Collab has no such option.*locality"),
        (lambda: load_graph("cora", seed=1), "a real graph has no options"),
        (lambda: load_graph("pubmed", seed=1), "pubmed-twin"),
    ],
)
def test_arguments_that_are_wrong(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


@pytest.mark.parametrize("of", [7, None, {"a": "b"}, {-1: 2}, {1: -2}, {1: 2**31}])
def test_what_has_no_twin(of):
    with pytest.raises(GraphError):
        twin(of)


@pytest.mark.parametrize(
    ("n_rows", "nnz", "largest"),
    [(1000, 5_000, 300), (1000, 20_000, 25), (1000, 1299, 300), (7, 49, 7), (1, 5, 5), (9, 9, 1)],
)
def test_heavy_tailed_degrees_meet_all_three_figures(n_rows, nnz, largest):
    degrees = degrees_of(heavy_tailed_degrees(n_rows, nnz, largest))
    assert (degrees.size, degrees.sum(), degrees.max()) == (n_rows, nnz, largest)
    assert degrees.min() >= 1


@given(st.data())
def test_heavy_tailed_degrees_meet_any_figures_that_can_be_met(data):
    n_rows, largest = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 60))
    low, high = n_rows + largest - 1, n_rows * largest
    nnz = data.draw(st.integers(low, high))
    degrees = degrees_of(heavy_tailed_degrees(n_rows, nnz, largest))
    assert (degrees.size, degrees.sum(), degrees.max(), degrees.min() >= 1) == (
        n_rows,
        nnz,
        largest,
        True,
    )
    for wrong in (low - 1, high + 1):
        with pytest.raises(ArgumentError, match="nonzeros"):
            heavy_tailed_degrees(n_rows, wrong, largest)


def test_the_cache_keeps_a_twin_and_notices_damage(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELVIZ_CACHE", str(tmp_path / "cache"))
    fresh = load_graph("artist", order="shuffled")
    assert not (tmp_path / "cache").exists()  # nothing is written unasked
    load_graph("artist", order="shuffled", cache=True)
    (path,) = (tmp_path / "cache" / "graphs").glob("*.npz")
    written = path.stat().st_mtime_ns

    def assert_loads():
        again = load_graph("artist", order="shuffled", cache=True)
        np.testing.assert_array_equal(again.column_indices, fresh.column_indices)
        np.testing.assert_array_equal(again.row_pointers, fresh.row_pointers)
        assert (again.name, again.source, again.kind) == (fresh.name, fresh.source, fresh.kind)

    assert_loads()
    assert path.stat().st_mtime_ns == written  # read, not made again
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert_loads()
    assert path.stat().st_mtime_ns != written
    for damaged in (b"", path.read_bytes()[:-40]):
        path.write_bytes(damaged)
        assert_loads()
    load_graph("artist", cache=True)
    assert len(list(path.parent.glob("*.npz"))) == 2


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", bundled_graphs())
def test_real_graphs_lie_between_their_twins_orders(name):
    """Twins in both orders bracket the statistics that SpMM depends on."""
    real = load_graph(name)
    by_order = {order: locality(twin(real, order=order)) for order in ("natural", "shuffled")}
    natural, shuffled, measured = by_order["natural"], by_order["shuffled"], locality(real)
    # In some statistics the road network and facebook's circles are more local than any twin.
    if name not in ("luxembourg-osm", "facebook"):
        assert natural.average_edge_span < measured.average_edge_span
        assert natural.distinct_share < measured.distinct_share
        assert natural.median_reuse_distance < measured.median_reuse_distance
    assert measured.average_edge_span < 1.07 * shuffled.average_edge_span
    assert measured.distinct_share < 1.01 * shuffled.distinct_share
    assert measured.median_reuse_distance < 1.03 * shuffled.median_reuse_distance
    assert measured.neighbor_overlap > 0.3 * shuffled.neighbor_overlap


def test_the_documented_table_is_what_the_histograms_say():
    """benchmarks/pages/graphs.py generates the table of docs/graphs.md, and every graph for it."""
    table = pd.read_csv(Path(__file__).parents[1] / "docs" / "tables" / "table-one.csv")
    assert len(table) == len(TABLE_ONE) == 18
    for row, entry in zip(table.itertuples(), TABLE_ONE.values(), strict=True):
        degrees, rows = entry.histogram()
        assert row.nodes == row.nodes_published == entry.nodes
        assert row.edges == row.edges_published == entry.edges
        assert (row.largest_degree, row.empty_rows) == (degrees[-1], rows[degrees == 0].sum())
        assert row.graph == entry.name + ("" if entry.exact else "-approximate")
        assert row.degrees == ("exact" if entry.exact else "approximate")
        assert row.symmetric == ("no" if entry.directed else "yes")
