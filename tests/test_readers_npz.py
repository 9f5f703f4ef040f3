"""Reader of `.npz` archives."""

import io
import zipfile

import numpy as np
import pytest
from scipy import sparse

from accelviz import load_graph
from accelviz.datasets.readers import text
from accelviz.errors import ArgumentError, GraphError
from tests.graphs import edges_of

A = sparse.csr_array(np.array([[0, 2, 0, 1], [2, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]], np.float32))
EDGES = np.array([[0, 0, 2], [1, 2, 2]])
ROWS = [[0, 0, 0], [1, 0, 0], [1, 0, 1]]  # a row per target


def test_edge_index_files(tmp_path):
    path = tmp_path / "g.npz"
    np.savez(path, edge_index=EDGES)
    assert load_graph(path).adjacency.toarray().tolist() == ROWS
    np.savez_compressed(path, edge_index=EDGES.astype(np.uint16), num_nodes=5, y=np.ones(5))
    assert load_graph(path).shape == (5, 5)
    np.savez(path, edge_index=np.asfortranarray(EDGES))
    assert load_graph(path).adjacency.toarray().tolist() == ROWS


def test_rows_of_gnnadvisor_s_archives_are_sources(tmp_path):
    path = tmp_path / "g.npz"
    np.savez(path, src_li=EDGES[0], dst_li=EDGES[1], num_nodes=4)
    coo = sparse.coo_array((np.ones(3), (EDGES[0], EDGES[1])), shape=(4, 4))
    np.testing.assert_array_equal(load_graph(path).adjacency.toarray(), coo.toarray())


def gnnadvisor(**changes):
    return {"src_li": EDGES[0], "dst_li": EDGES[1], "num_nodes": 4, **changes}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (gnnadvisor(num_nodes=2), "node 2 of 2"),
        (gnnadvisor(num_nodes=-1), "node 2 of -1"),
        (gnnadvisor(num_nodes=2.5), r"num_nodes: got shape \(\) of float64"),
        (gnnadvisor(num_nodes=[1, 2]), r"num_nodes: got shape \(2,\) of int64"),
        (gnnadvisor(num_nodes=2_000_000_000), "2000000000 rows for 3 entries"),
        (gnnadvisor(src_li=EDGES[0, :2]), "shapes.*equal lengths"),
        (gnnadvisor(src_li=EDGES[0] - 1), "negative node -1"),
        (gnnadvisor(src_li=EDGES[0] * 0.5), "dtype float64"),
        ({"src_li": EDGES[0], "dst_li": EDGES[1]}, "lacks indices, indptr, shape"),
        (
            {"indptr": [0], "indices": EDGES[0], "shape": [1j, 1]},
            r"shape: got shape \(2,\) of complex128",
        ),
        ({"indptr": [0, 1], "indices": [0], "data": [[1]], "shape": [1, 1]}, "values: a 2-D"),
        ({"indptr": [0], "indices": np.array([], int)}, "lacks shape.*save_npz"),
        ({"indptr": [0.0, 1.0], "indices": [0], "shape": [1, 1]}, "row_pointers: a 1-D.*float64"),
        ({"indptr": [0, 1], "indices": [2**32], "shape": [1, 1]}, "column_indices: 4294967296"),
        ({"indptr": [0, 1], "indices": [0], "shape": [1]}, "shape"),
        ({"format": "xyz", "indptr": [0]}, "g.npz"),
        ({"edge_index": EDGES.T}, r"shape \(3, 2\)"),
        ({"edge_index": EDGES * 1.0}, "dtype float64"),
        ({"edge_index": EDGES + 2_000_000_000}, "2000000003 rows for 3"),
        ({"edge_index": EDGES[:, :0], "num_nodes": 2_000_000_000}, "2000000000 rows for 0"),
        ({"edge_index": np.empty((2, 0)), "num_nodes": 2_000_000_000}, "2000000000 rows for 0"),
    ],
)
def test_invalid_archives(tmp_path, members, message):
    path = tmp_path / "g.npz"
    np.savez(path, **members)
    with pytest.raises(GraphError, match=message) as caught:
        load_graph(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("shape", [(2, 10**15), (10**40,), (2, 5), (2**31, 2**31, 2**31)])
def test_array_headers_with_too_large_a_shape(tmp_path, shape):
    stream = io.BytesIO()
    header = {"descr": "<i8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
        archive.writestr("edge_index.npy", stream.getvalue() + bytes(64))
    with pytest.raises(GraphError, match="g.npz: an array claims .* bytes of 64"):
        load_graph(tmp_path / "g.npz")


def test_an_archive_with_too_high_a_compression_ratio(tmp_path, monkeypatch):
    path = tmp_path / "g.npz"
    np.savez_compressed(path, edge_index=np.zeros((2, 100_000), int))
    assert load_graph(path).nnz == 1
    monkeypatch.setattr(text, "MOST_BYTES", 1000)
    with pytest.raises(GraphError, match="it unpacks from .* to .*at most 100 times"):
        load_graph(path)


@pytest.mark.parametrize("kind", ["csc", "coo", "bsr", "dia"])
def test_scipy_archives_of_any_format(tmp_path, kind):
    path = tmp_path / "g.npz"
    sparse.save_npz(path, A.asformat(kind))
    graph = load_graph(str(path))
    np.testing.assert_array_equal(graph.adjacency.toarray(), A.toarray())
    assert (graph.name, graph.source) == ("g", "file g.npz")
    with np.load(path) as archive:
        members = {**archive, "shape": [2_000_000_000, 1], "data": np.ones(1)}
    np.savez(path, **members)
    with pytest.raises(GraphError, match="2000000000 rows for 1 entries"):
        load_graph(path)


@pytest.mark.parametrize(
    ("pointers", "indices", "message"),
    [
        ([0, 2, 0, 2], [0, 1], "row_pointers: they fall after row 1"),
        ([0, 100, 50, 0], [0, 1], "row_pointers: they fall after row 1"),
        ([0, 1, 1, 2], [0, 7], "column_indices: 7 at position 1.*0 to 2"),
    ],
)
def test_invalid_bsr_archives(tmp_path, pointers, indices, message):
    arrays = {"indptr": pointers, "indices": indices, "data": np.ones((2, 2, 2)), "shape": [6, 6]}
    np.savez(tmp_path / "g.npz", format=b"bsr", **arrays)
    with pytest.raises(GraphError, match=message):
        load_graph(tmp_path / "g.npz")


@pytest.mark.parametrize("name", ["edge_weight", "edge_attr", "weight"])
def test_weights_of_an_edge_index(tmp_path, name):
    path = tmp_path / "g.npz"
    weights = np.array([0.5, 4, 2])
    for array in (weights, weights[:, None], weights.astype(np.float16)):
        np.savez(path, edge_index=EDGES, **{name: array})
        assert edges_of(load_graph(path)) == [(0, 1, 0.5), (0, 2, 4.0), (2, 2, 2.0)]
        assert load_graph(path).source.endswith(f"weights in {name}")
    assert edges_of(load_graph(path, weights=False)) == [(0, 1, 1.0), (0, 2, 1.0), (2, 2, 1.0)]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"edge_attr": np.ones((3, 2))}, "weights='edge_attr', or weights=False"),
        ({"edge_time": np.ones(3)}, "weights='edge_time', or weights=False"),
        ({"edge_weight": np.ones(3), "weight": np.ones(3)}, "weights='edge_weight' or weights='w"),
        ({"edge_weight": np.ones(2)}, r"shape \(2,\) for 3 edges"),
        ({"edge_weight": np.array([1, np.nan, 1])}, "NaN"),
        ({"edge_weight": np.ones(3, complex)}, "complex128"),
    ],
)
def test_ambiguous_weights_of_an_edge_index(tmp_path, members, message):
    path = tmp_path / "g.npz"
    np.savez(path, edge_index=EDGES, **members)
    with pytest.raises(GraphError, match=message):
        load_graph(path)
    assert edges_of(load_graph(path, weights=False)) == [(0, 1, 1.0), (0, 2, 1.0), (2, 2, 1.0)]
    with pytest.raises(ArgumentError, match="weights: there is no 'cost'"):
        load_graph(path, weights="cost")


def test_an_archive_of_a_matrix_has_no_option_weights(tmp_path):
    sparse.save_npz(tmp_path / "g.npz", sparse.eye_array(3).tocsr())
    with pytest.raises(ArgumentError, match="weights: it is about an edge_index"):
        load_graph(tmp_path / "g.npz", weights=False)
