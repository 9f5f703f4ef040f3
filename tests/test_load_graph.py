"""`load_graph` and `Graph`: valid and invalid names, objects and arrays."""

import itertools
import pickle

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import accelviz
from accelviz import load_graph
from accelviz.datasets import bundled_graphs, graph_of_degrees, rmat
from accelviz.errors import ArgumentError, GraphError
from accelviz.graph import Graph
from tests.graphs import edges_of

CSR = sparse.csr_array(np.array([[0, 1.5, 0], [0, 0, 0], [2, -3, 0.25]], dtype=np.float32))


def assert_same(graph, matrix):
    assert isinstance(graph, Graph)
    assert graph.shape == matrix.shape
    assert (graph.row_pointers.dtype, graph.column_indices.dtype, graph.values.dtype) == (
        np.int64,
        np.int32,
        np.float32,
    )
    np.testing.assert_array_equal(graph.adjacency.toarray(), matrix.toarray().astype(np.float32))
    assert isinstance(graph.adjacency, sparse.csr_array)


@pytest.mark.parametrize("name", bundled_graphs())
def test_bundled_graphs_match_their_index(name):
    facts = bundled_graphs()[name]
    graph = load_graph(name.upper())
    assert graph.shape == (facts["nodes"], facts["nodes"])
    assert graph.nnz == facts["edges"]
    assert graph.degrees.max() == facts["max_degree"]
    assert (graph.degrees == 0).sum() == facts["zero_degree_rows"]
    assert graph.source == facts["source"]
    A = graph.adjacency
    assert (abs(A - A.T).nnz == 0) == facts["symmetric"]


def test_documented_graphs_are_bundled():
    names = "cora citeseer pubmed facebook ca-condmat email-enron luxembourg-osm mit8"
    assert {*names.split()} <= bundled_graphs().keys()


def test_each_call_returns_a_new_bundled_graph():
    first, second = load_graph("cora"), load_graph("cora")
    assert first is not second
    for array in ("row_pointers", "column_indices", "values", "degrees"):
        assert not np.shares_memory(getattr(first, array), getattr(second, array))
    first.store.get("key", lambda: 1)
    assert not len(second.store)
    bundled_graphs()["cora"]["edges"] = 0
    assert bundled_graphs()["cora"]["edges"] == first.nnz


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_scipy_of_any_format(form, container):
    assert_same(load_graph(container(CSR).asformat(form)), CSR)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float64", "longdouble"])
def test_values_of_any_real_dtype(dtype):
    matrix = sparse.csr_array(np.array([[0, 1], [1, 0]], dtype=dtype))
    assert_same(load_graph(matrix), matrix)


def test_half_precision_values_in_an_npz(tmp_path):
    half = np.array([0.5], np.float16)
    arrays = {"indptr": np.array([0, 1]), "indices": np.array([0]), "shape": np.array([1, 1])}
    np.savez(tmp_path / "half.npz", data=half, **arrays)
    assert load_graph(tmp_path / "half.npz").values.tolist() == [0.5]


def test_unsorted_rows_are_sorted_and_duplicates_summed():
    matrix = sparse.csr_array(
        (np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3)
    )
    graph = load_graph(matrix)
    assert graph.column_indices.tolist() == [0, 2]
    assert graph.values.tolist() == [2, 5]
    assert matrix.indices.tolist() == [2, 0, 2]  # the caller's matrix is unchanged


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "int16", "int64", "float32"])
@pytest.mark.parametrize("form", ["coo", "csr", "csc", "bsr"])
def test_duplicates_are_summed_in_a_wide_type(dtype, form):
    ones, zeros = np.ones(300, dtype), np.zeros(300, int)
    pointers = np.array([0, 300, 300])
    arrays = (ones, (zeros, zeros)) if form == "coo" else (ones, zeros, pointers)
    arrays = (ones.reshape(-1, 1, 1), *arrays[1:]) if form == "bsr" else arrays
    matrix = getattr(sparse, f"{form}_array")(arrays, shape=(2, 2))
    assert edges_of(load_graph(matrix)) == [(0, 0, 300.0)]


def test_a_graph_is_a_copy_and_read_only():
    matrix = CSR.copy()
    graph = load_graph(matrix)
    matrix.data[:] = 7
    assert_same(graph, CSR)
    with pytest.raises(ValueError, match="read-only"):
        graph.values[0] = 1
    assert load_graph(graph) is graph
    renamed = load_graph(graph, name="mine")
    assert (renamed.name, graph.name) == ("mine", "matrix")


def test_explicit_zeros_are_kept():
    matrix = sparse.csr_array((np.array([0.0]), np.array([1]), np.array([0, 1])), shape=(1, 2))
    assert load_graph(matrix).nnz == 1


def test_networkx():
    G = networkx.Graph(name="triangle")
    G.add_edge("a", "b", weight=2.5)
    G.add_edge("b", "c")
    graph = load_graph(G)
    assert graph.name == "triangle"
    assert_same(graph, sparse.csr_array(np.array([[0, 2.5, 0], [2.5, 0, 1], [0, 1, 0]])))
    directed = load_graph(networkx.DiGraph([(0, 1)]))
    assert directed.adjacency.toarray().tolist() == [[0, 0], [1, 0]]  # row 1 is the target
    assert load_graph(networkx.Graph()).shape == (0, 0)
    G["a"]["b"]["weight"] = "heavy"
    with pytest.raises(GraphError, match="numeric edge weights"):
        load_graph(G)


WEIGHTED = networkx.DiGraph()
WEIGHTED.add_nodes_from(range(5))
WEIGHTED.add_weighted_edges_from([(0, 1, 0.5), (1, 0, -2.0), (3, 1, 4.0), (3, 3, 8.0)])
PLAIN = networkx.Graph([(0, 1), (1, 2), (2, 2), (3, 1)])
MULTI = networkx.MultiGraph([(0, 1), (0, 1), (1, 2)])


@pytest.mark.parametrize("graph", [WEIGHTED, PLAIN, MULTI, networkx.path_graph(1)])
def test_graphs_of_networkx_and_igraph(graph):
    expected = networkx.to_numpy_array(graph).T  # row `v` has the in-neighbors of `v`
    np.testing.assert_array_equal(load_graph(graph).adjacency.toarray(), expected)
    igraph = pytest.importorskip("igraph")
    loaded = load_graph(igraph.Graph.from_networkx(graph))
    np.testing.assert_array_equal(loaded.adjacency.toarray(), expected)
    with pytest.raises(ArgumentError, match="n_nodes: an object has no such option"):
        load_graph(igraph.Graph(), n_nodes=3)


def test_edge_index():
    graph = load_graph(np.array([[0, 0, 2, 0], [1, 2, 2, 1]]))
    assert graph.adjacency.toarray().tolist() == [[0, 0, 0], [2, 0, 0], [1, 0, 1]]
    assert load_graph([[0], [3]]).shape == (4, 4)
    assert load_graph(np.empty((2, 0), int)).shape == (0, 0)
    weighted = load_graph([[0, 0], [1, 2]], n_nodes=5, weights=[2, 3])
    assert weighted.shape == (5, 5)
    assert (weighted.adjacency[1, 0], weighted.adjacency[2, 0]) == (2, 3)
    for options, message in (
        ({"weights": [1]}, r"shape \(1,\) for 2 edges"),
        ({"n_nodes": 2}, "node 2 of 2"),
        ({"n_nodes": 2.5}, "an integer"),
        ({"n_nodes": 2**40}, "n_nodes: got 1099511627776"),
        ({"base": 1}, "an edge_index has no such option"),
    ):
        with pytest.raises(ValueError, match=message):
            load_graph([[0, 0], [1, 2]], **options)
    assert load_graph(np.empty((2, 0), complex)).shape == (0, 0)


def test_made_graphs_of_impossible_sizes_are_refused_before_memory_is_asked_for():
    for degrees in ([2**33], [-1], [1.5], [2**30] * 10_000):
        with pytest.raises(ArgumentError, match="degrees: "):
            graph_of_degrees(degrees)
    for size in ({"n_edges": 1.5}, {"n_edges": True}, {"n_edges": 9, "n_nodes": 2**40}):
        with pytest.raises(ArgumentError, match="n_(edges|nodes): got"):
            rmat(**size)
    assert graph_of_degrees([]).shape == (0, 0)
    assert graph_of_degrees([0, 2, 1], apart=True).toarray().tolist() == [
        [0, 0, 0],
        [1, 1, 0],
        [0, 0, 1],
    ]


class Foreign:
    """An object of another library, which need not be installed."""

    def __init__(self, **members):
        vars(self).update(members)


def foreign(library, **members):
    return type("Foreign", (Foreign,), {"__module__": f"{library}.inside"})(**members)


COO = CSR.tocoo()
#: JAX pads with indices beyond the shape.
PADDED = np.vstack([np.transpose(COO.coords), [COO.shape] * 2]), np.append(COO.data, [0, 7])
FOREIGN = {
    "cupyx": lambda: foreign("cupyx", get=lambda: CSR),
    "sparse.COO": lambda: foreign("sparse", to_scipy_sparse=lambda: COO, to_coo=None),
    "sparse.DOK": lambda: foreign("sparse", to_coo=FOREIGN["sparse.COO"]),
    "torch_sparse": lambda: foreign("torch_sparse", to_scipy=lambda: CSR),
    "jax.BCOO": lambda: foreign("jax", indices=PADDED[0], data=PADDED[1], shape=COO.shape),
    "jax.BCSR": lambda: foreign("jax", indices=0, indptr=0, to_bcoo=FOREIGN["jax.BCOO"]),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_sparse_matrices_of_other_libraries(kind):
    matrix = FOREIGN[kind]()
    graph = load_graph(matrix)
    assert_same(graph, CSR)
    assert graph.source == f"{kind.partition('.')[0]} matrix"
    with pytest.raises(ArgumentError, match="n_nodes: an object has no such option"):
        load_graph(matrix, n_nodes=5)
    for name in vars(matrix):
        if name != "to_coo" or kind == "sparse.DOK":
            setattr(matrix, name, lambda: int("x"))
    with pytest.raises(GraphError, match="graph: a Foreign: .*Expected: a 2-D sparse matrix"):
        load_graph(matrix)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 1]], r"shape \(1, 2\).*2 x E"),
        (np.eye(3), r"shape \(3, 3\).*csr_array"),
        ([[0.0], [1.0]], "dtype float64"),
        ([[0], [-1]], "negative node -1"),
        ([[0], [2**31]], "node 2147483648"),
        ([[0, 1], [1]], "inhomogeneous"),
    ],
)
def test_invalid_edge_index(edges, message):
    with pytest.raises(GraphError, match=message):
        load_graph(edges)


def broken(**changes):
    """Return a SciPy matrix whose arrays were changed after SciPy checked them."""
    matrix = CSR.copy()
    for name, (index, value) in changes.items():
        getattr(matrix, name)[index] = value
    return matrix


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (broken(data=(1, np.nan)), r"values: 1 of 4 are NaN.*the first \(nan\) at position 1"),
        (broken(data=(0, np.inf)), "infinite"),
        (broken(indices=(2, -1)), "column_indices: the negative index -1 at position 2"),
        (broken(indices=(2, 3)), "column_indices: 3 at position 2.*0 to 2"),
        (broken(indptr=(1, 4)), "row_pointers: they fall after row 1"),
        (broken(indptr=(0, 1)), "row_pointers: they run from 1 to 4.*from 0"),
        (broken(indptr=(3, 3)), "row_pointers: they run from 0 to 3"),
        (broken(indices=(0, 9)).tocsr().T, "column_indices: 9"),
        (CSR.astype(complex), "values: dtype complex128"),
        (CSR.astype("f8") * 1e300, "NaN or infinite in float32"),
        (sparse.coo_array([1.0, 2.0]), "1-D sparse array"),
    ],
)
def test_invalid_scipy_matrices(matrix, message):
    with pytest.raises(GraphError, match=message):
        load_graph(matrix)


def test_an_invalid_coo_matrix():
    matrix = CSR.tocoo()
    matrix.coords[0][1] = 1000
    with pytest.raises(GraphError, match="axis 0 index 1000 exceeds matrix dimension 3"):
        load_graph(matrix)


ARRAYS = {
    "row_pointers": np.array([0, 1, 2]),
    "column_indices": np.array([1, 0], np.int32),
    "values": np.array([1, 2], np.float32),
    "shape": (2, 2),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"row_pointers": [0, 1, 2]}, "row_pointers: got a list"),
        ({"row_pointers": np.array([0, 1, 2], np.int32)}, "1-D array of int64"),
        ({"row_pointers": np.array([0, 2])}, "2 entries for 2 rows"),
        ({"column_indices": np.array([1, 0])}, "1-D array of int32"),
        ({"values": np.array([1.0, 2.0])}, "1-D array of float32"),
        ({"values": np.array([1], np.float32)}, "values: 1 for 2 column indices"),
        ({"shape": (2, -1)}, "shape: got 2 x -1"),
        ({"shape": 2}, "two integers"),
        ({"shape": (2, 2**31)}, "0 to 2147483647"),
        ({"row_pointers": np.array([0, 2, 2])}, "row 0 is unsorted or repeats"),
    ],
)
def test_graph_accepts_only_canonical_arrays(changes, message):
    assert Graph(**ARRAYS).nnz == 2
    with pytest.raises(GraphError, match=message):
        Graph(**{**ARRAYS, **changes})


@given(st.lists(st.lists(st.integers(0, 5), max_size=5), max_size=6))
def test_rows_must_be_sorted_and_unique(rows):
    arrays = (
        np.cumsum([0, *map(len, rows)]),
        np.fromiter(itertools.chain(*rows), np.int32),
        np.ones(sum(map(len, rows)), np.float32),
    )
    if all(row == sorted(set(row)) for row in rows):
        assert Graph(*arrays, (len(rows), 6)).degrees.tolist() == list(map(len, rows))
    else:
        with pytest.raises(GraphError, match="unsorted or repeats"):
            Graph(*arrays, (len(rows), 6))


class FailsIfUnpickled:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def test_a_pickle_in_an_npz_is_never_loaded(tmp_path):
    path = tmp_path / "pickle.npz"
    np.savez(path, indptr=np.array([FailsIfUnpickled()]), indices=[0], shape=[1, 1])
    with pytest.raises(GraphError, match="pickled objects, which are never loaded"):
        load_graph(path)
    np.savez(path, format=np.array([FailsIfUnpickled()]))
    with pytest.raises(GraphError, match="pickled objects"):
        load_graph(path)
    path.write_bytes(b"\x80\x04.")
    with pytest.raises(GraphError, match=r"pickle\.npz"):
        load_graph(path)


def test_truncated_archives(tmp_path):
    path = tmp_path / "g.npz"
    sparse.save_npz(path, CSR)
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(GraphError, match=r"g\.npz"):
            load_graph(path)
    np.save(tmp_path / "one.npy", np.zeros(3))
    (tmp_path / "one.npy").rename(path)
    with pytest.raises(GraphError, match="a single array"):
        load_graph(path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "coraa",
            r"no graph 'coraa'.*did you mean cora\? Expected: .*Collab.*a file ending in .csv",
        ),
        ("colab", "did you mean collab"),
        ("none.mtx", "there is no such file"),
        ("notes.docx", r"no reader for this ending.*\.npz"),
        (7, "got a int"),
        (None, "got a NoneType"),
        (object(), "got a object"),
        ({"a": 1}, "got a dict"),
    ],
)
def test_unknown_names_and_other_objects(source, message):
    with pytest.raises(GraphError, match=message):
        load_graph(source)


def test_a_folder_is_not_a_graph(tmp_path):
    folder = tmp_path / "g.npz"
    folder.mkdir()
    for options in ({}, {"reader": ".txt"}):
        with pytest.raises(GraphError, match="g.npz: it is a folder"):
            load_graph(folder, **options)


def test_errors_can_be_pickled():
    error = GraphError("values", "wrong", "right")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (GraphError, "values: wrong. Expected: right.")
    assert isinstance(error, accelviz.errors.AccelvizError)
    assert isinstance(error, ValueError)
