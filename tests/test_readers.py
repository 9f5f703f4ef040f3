"""METIS, MatrixMarket, NumPy and raw files; and what all readers have in common."""

import bz2
import functools
import gzip
import io
import tarfile
import zipfile

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from accelviz import load_graph
from accelviz.datasets.convert import plausible_nodes
from accelviz.datasets.readers import READERS, metis, npz, reader, text
from accelviz.errors import ArgumentError, GraphError

#: Without the time, which would give a test another name in every process.
gzipped = functools.partial(gzip.compress, mtime=0)

A = sparse.csr_array(np.array([[0, 2, 0, 1], [2, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]], np.float32))
PLAIN = "4 2\n2 4\n1\n\n1\n"


@pytest.fixture
def file(tmp_path):
    """Write a file and return its path."""

    def write(content, name):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def at_any_block_size(monkeypatch, sizes=(1, 2, 3, 5, 7, 16, 31, 1000)):
    for size in sizes:
        monkeypatch.setattr(text, "BLOCK_BYTES", size)
        yield size


@pytest.mark.parametrize(
    ("content", "weighted"),
    [
        (PLAIN, False),
        ("4 2 0\n2 4\n1\n\n1\n", False),
        ("4\t2\t000\n \t2\t4 \n 1\n \t\n1\n\n\n", False),
        ("% c\n\n4 2\r\n% c\r\n2 4\r\n1\r\n\r\n%\r\n1\r\n% end", False),
        ("4 2 1\n2 2 4 1\n1 2\n\n1 1\n", True),
        ("4 2 11\n9 2 2 4 1\n9 1 2\n9\n9 1 1\n", True),
        ("4 2 111 2\n7 8 9 2 2 4 1\n7 8 9 1 2\n7 8 9\n7 8 9 1 1\n", True),
        ("4 2 100\n9 2 4\n9 1\n9\n9 1\n", False),
        ("4 2 10 3\n0 0 0 2 4\n9 9 9 1\n9 9 9\n9 9 9 1\n", False),
    ],
)
def test_metis(file, monkeypatch, content, weighted):
    path = file(content, "g.graph")
    for _ in at_any_block_size(monkeypatch):
        graph = load_graph(path)
        expected = A if weighted else A.astype(bool)
        np.testing.assert_array_equal(graph.adjacency.toarray(), expected.toarray())
        assert (graph.name, graph.source) == ("g", "file g.graph")


def test_metis_packed_empty_and_with_loops(file):
    assert load_graph(file(gzipped(PLAIN.encode()), "g.graph.gz")).nnz == 4
    assert load_graph(file(bz2.compress(PLAIN.encode()), "g.graph.bz2")).nnz == 4
    assert load_graph(file("0 0\n", "g.graph")).shape == (0, 0)
    assert load_graph(file("2 0\n\n\n", "g.graph")).shape == (2, 2)
    for edges in (2, 1.5):  # a loop counts once or, as two ends, half
        content = f"2 {edges:g}\n1 2\n1\n"
        if edges == 2:
            assert load_graph(file(content, "g.graph")).nnz == 3


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "the file is empty"),
        ("% nothing\n", "no first line `vertices edges`"),
        ("4\n", "line 1: '4'.*vertices edges"),
        ("4 2 1 1 1\n", "line 1: '4 2 1 1 1'"),
        ("a 2\n", "line 1: 'a 2'"),
        ("-4 2\n", "line 1: '-4 2'"),
        ("4 2 2\n", "line 1: the format '002'.*three digits"),
        ("4 2 1111\n", "line 1: the format '1111'"),
        ("2147483648 2\n", "line 1: 2147483648 vertices.*2147483647"),
        ("2147483647 0\n", "it ends after 0 of 2147483647 vertices"),
        ("4 2\n2 4\n1\n\n", "it ends after 3 of 4 vertices.*empty one if"),
        ("4 2\n2 4\n1\n\n1\n3\n", "line 6: '3' after the last of 4 vertices.*line 1"),
        ("4 2\n2 5\n1\n\n1\n", "line 2: the neighbor 5.*1 to 4"),
        ("4 2\n%\n0 2\n1\n\n1\n", "line 3: the neighbor 0"),
        ("4 2\n2 4\n-1\n\n1\n", "line 3: '-1' is no whole number|line 3: '-1'"),
        ("4 2\n2 4\n1.0\n\n1\n", "line 3: '1.0'.*whole number"),
        ("4 2\n2 99999999999999999999\n1\n\n1\n", "line 2: the neighbor 99999999999999999999"),
        ("4 2\n2 " + "9" * 5000 + "\n1\n\n1\n", r"line 2: the neighbor 9{40}…"),
        ("4 3\n2 4\n1\n\n1\n", "line 1: 3 edges.*2, as there are"),
        ("2 1\n\n1\n", r"line 3: vertex 2 lists 1, which does not list it"),
        ("% c\n3 1\n% c\n2\n\n\n", r"line 4: vertex 1 lists 2"),
        ("2 1 1\n2 5\n1 6\n", "line 2: vertex 1 lists 2.*same weight"),
        ("2 1 1\n2\n1\n", "line 2: a number is missing in '2'.*weight of its edge"),
        ("2 1 10 2\n1\n1 1\n", "line 2: a number is missing in '1'.*2 numbers of the vertex"),
        ("2 1 1\n2 0\n1 0\n", "line 2: the edge weight 0.*1 to"),
        ("2 1 1\n2 " + "9" * 39 + "\n1 1\n", "line 2: the edge weight"),
        ("2 1\n2\n\0\n", "line 3: a NUL byte"),
        (gzipped(PLAIN.encode())[:-6], "it cannot be unpacked"),
    ],
)
def test_metis_that_is_wrong(file, monkeypatch, content, says):
    path = file(content, "g.graph")
    for _ in at_any_block_size(monkeypatch):
        with pytest.raises(GraphError, match=says) as caught:
            load_graph(path)
        assert str(path) in str(caught.value)


TOKENS = ["1", "2", "3", "007", "0", "4", "-1", "+1", "1.5", "x", "9223372036854775807", "%"]


@given(
    st.lists(st.lists(st.sampled_from(TOKENS[:6] * 4 + TOKENS), max_size=4), max_size=4),
    st.integers(0, 2),
    st.integers(1, 2),
    st.integers(0, 5),
)
def test_metis_s_fast_way_reads_as_the_slow_one_or_leaves_it_to_it(lines, skip, step, left):
    header = metis._Header("f", 1, 7, 0, skip, step)
    block = "".join(" ".join(line) + "\n" for line in lines).encode()
    fast = metis._fast(header, block, left)
    try:
        slow = metis._slow(header, 2, block, left)
    except GraphError:
        assert fast is None
        return
    if fast is None:  # numbers that NumPy cannot tell from larger ones
        assert b"9223372036854775807" in block
        return
    for quick, exact in zip(fast, slow, strict=True):
        assert (quick is None) == (exact is None)
        if quick is not None:
            assert quick.dtype == exact.dtype
            np.testing.assert_array_equal(quick, exact)


def written(matrix, **options):
    stream = io.BytesIO()
    scipy.io.mmwrite(stream, matrix, **options)
    return stream.getvalue()


def test_matrix_market_streams(file, monkeypatch, capsys):
    content = written(sparse.random_array((500, 300), density=0.1, rng=0))
    expected = scipy.io.mmread(io.BytesIO(content), spmatrix=False).astype(np.float32)
    for name, packed in (
        ("m.mtx", content),
        ("m.mtx.gz", gzipped(content)),
        ("m.mtx.bz2", bz2.compress(content)),
    ):
        graph = load_graph(file(packed, name), progress=True)
        assert f"{name}: 100%" in capsys.readouterr().err
        assert abs(graph.adjacency - expected).nnz == 0
        assert (graph.name, graph.source) == ("m", f"file {name}")


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_dense_matrix_market(file, monkeypatch, symmetry, n):
    dense = np.random.default_rng(n).integers(-3, 4, (n, n)).astype(float)
    dense = {"symmetric": dense + dense.T, "skew-symmetric": dense - dense.T}.get(symmetry, dense)
    content = written(dense, symmetry=symmetry, comment="a\n%b")
    assert symmetry.encode() in content
    for _ in at_any_block_size(monkeypatch):
        graph = load_graph(file(content, "m.mtx"))
        np.testing.assert_array_equal(graph.adjacency.toarray(), dense)


def tarred(members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def test_an_archive_of_the_suitesparse_collection(file):
    matrix = written(A, symmetry="symmetric")
    whole = tarred({"net/net_coord.mtx": b"x", "net/net.mtx": matrix, "net/more.txt": b"y"})
    for name in ("net.tar.gz", "renamed.tar.gz"):
        graph = load_graph(file(whole, name))
        np.testing.assert_array_equal(graph.adjacency.toarray(), A.toarray())
        assert graph.name == name.removesuffix(".tar.gz")
    with pytest.raises(GraphError, match="there is no net.mtx in it.*SuiteSparse"):
        load_graph(file(tarred({"net/other.mtx": matrix}), "net.tar.gz"))
    for broken in (whole[:-30], gzipped(b"no archive"), b"nor this"):
        with pytest.raises(GraphError, match="net.tar.gz"):
            load_graph(file(broken, "net.tar.gz"))


HEADER = "%%MatrixMarket matrix coordinate pattern general\n"
DENSE = "%%MatrixMarket matrix array real general\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (HEADER + "2 2 2\n1 1\n3 1\n", "Line 4: Row index out of bounds"),
        (HEADER + "2 2 2\n1 1\n1 x\n", "line 4: '1 x'"),
        (HEADER + "2 2 2\n1 1\n1 99999999999999999999\n", "Line 4"),
        (HEADER + "2 2 1000000000000\n1 1\n", "it states 1000000000000 entries"),
        (HEADER + "2000000000 2 1\n1 1\n", "shape: 2000000000 rows for 1 entries"),
        (HEADER + "2 2 1\n1 1$", r"line 3: '1 1\$'.*row column"),
        (HEADER + "2 2 1\n% c\n1 1 5\n", "line 4: '1 1 5'.*row column"),
        (HEADER.replace("pattern", "real") + "2 2 1\n1 1\n", "line 3: '1 1'.*row column value"),
        (HEADER.replace("pattern", "real") + "2 2 1\n1 1 nan\n", "line 3: '1 1 nan'"),
        (HEADER + "2 2 2\n1 1\n", "Truncated file"),
        (HEADER + "2 2 1\n1 1\n2 2\n", "Line 4: Too many lines"),
        (HEADER + "2 2 1\n1 \0 1\n", "line 3: a NUL byte"),
        (DENSE + "99999 99999\n1\n", "9999800001 entries"),
        (DENSE + "2 2\n1\n2\n3\n", "3 values.*4, for 2 x 2 general"),
        (DENSE + "2 2\n1\n2\n3\n4\n5\n", "5 values.*4, for 2 x 2 general"),
        (DENSE + "2 2\n%\n1\n2\nx\n4\n", "line 6: 'x'.*a finite number"),
        (DENSE.replace("general", "symmetric") + "2 2\n1\n2\n", "2 values.*3, for 2 x 2 symm"),
        (DENSE.replace("general", "skew-symmetric") + "2 2\n1\n2\n", "2 values.*1, for 2 x 2"),
        (DENSE.replace("real", "complex") + "1 1\n1 1\n", "its values are complex"),
        ("", "the file is empty"),
    ],
)
def test_matrix_market_that_is_wrong(file, content, says):
    path = file(content, "m.mtx")
    with pytest.raises(GraphError, match=says) as caught:
        load_graph(path)
    assert str(path) in str(caught.value)


EDGES = np.array([[0, 0, 2], [1, 2, 2]])
ROWS = [[0, 0, 0], [1, 0, 0], [1, 0, 1]]  # of the receivers


def test_edge_index_files(tmp_path):
    path = tmp_path / "g.npz"
    np.savez(path, edge_index=EDGES)
    assert load_graph(path).adjacency.toarray().tolist() == ROWS
    np.savez_compressed(path, edge_index=EDGES.astype(np.uint16), num_nodes=5, y=np.ones(5))
    assert load_graph(path).shape == (5, 5)
    np.save(tmp_path / "g.npy", EDGES)
    graph = load_graph(tmp_path / "g.npy")
    assert graph.adjacency.toarray().tolist() == ROWS
    assert (graph.name, graph.source) == ("g", "file g.npy")
    np.save(tmp_path / "g.npy", np.asfortranarray(EDGES))
    assert load_graph(tmp_path / "g.npy").adjacency.toarray().tolist() == ROWS


def test_gnnadvisor_s_archive_has_senders_as_rows(tmp_path):
    path = tmp_path / "g.npz"
    np.savez(path, src_li=EDGES[0], dst_li=EDGES[1], num_nodes=4)
    coo = sparse.coo_array((np.ones(3), (EDGES[0], EDGES[1])), shape=(4, 4))
    np.testing.assert_array_equal(load_graph(path).adjacency.toarray(), coo.toarray())


def arrays(**changes):
    return {"src_li": EDGES[0], "dst_li": EDGES[1], "num_nodes": 4, **changes}


@pytest.mark.parametrize(
    ("members", "says"),
    [
        (arrays(num_nodes=2), "node 2 of 2"),
        (arrays(num_nodes=-1), "node 2 of -1"),
        (arrays(num_nodes=2.5), "num_nodes: got array"),
        (arrays(num_nodes=[1, 2]), "num_nodes: got array"),
        (arrays(num_nodes=2_000_000_000), "2000000000 rows for 3 entries"),
        (arrays(src_li=EDGES[0, :2]), "shapes.*equal lengths"),
        (arrays(src_li=EDGES[0] - 1), "negative node -1"),
        (arrays(src_li=EDGES[0] * 0.5), "dtype float64"),
        ({"src_li": EDGES[0], "dst_li": EDGES[1]}, "lacks indices, indptr, shape"),
        ({"indptr": [0], "indices": EDGES[0], "shape": [1j, 1]}, "shape: dtype complex128"),
        ({"edge_index": EDGES.T}, r"shape \(3, 2\)"),
        ({"edge_index": EDGES * 1.0}, "dtype float64"),
        ({"edge_index": EDGES + 2_000_000_000}, "2000000003 rows for 3"),
        ({"edge_index": EDGES[:, :0], "num_nodes": 2_000_000_000}, "2000000000 rows for 0"),
    ],
)
def test_archives_that_are_wrong(tmp_path, members, says):
    path = tmp_path / "g.npz"
    np.savez(path, **members)
    with pytest.raises(GraphError, match=says) as caught:
        load_graph(path)
    assert str(path) in str(caught.value)


def claiming(shape, dtype="<i8"):
    """A .npy file whose header promises more than there is."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return stream.getvalue() + bytes(64)


@pytest.mark.parametrize("shape", [(2, 10**15), (10**40,), (2, 5), (2**31, 2**31, 2**31)])
def test_headers_that_promise_too_much(tmp_path, shape):
    content = claiming(shape)
    (tmp_path / "g.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
        archive.writestr("edge_index.npy", content)
    for name in ("g.npy", "g.npz"):
        with pytest.raises(GraphError, match=f"{name}: an array claims .* bytes of 64"):
            load_graph(tmp_path / name)


def test_pickles_in_npy_are_never_loaded(tmp_path):
    np.save(tmp_path / "g.npy", np.array([None]), allow_pickle=True)
    with pytest.raises(GraphError, match="pickled objects, which are never loaded"):
        load_graph(tmp_path / "g.npy")


def test_an_archive_that_unpacks_to_too_much(tmp_path, monkeypatch):
    path = tmp_path / "g.npz"
    np.savez_compressed(path, edge_index=np.zeros((2, 100_000), int))
    assert load_graph(path).nnz == 1
    monkeypatch.setattr(npz, "MOST_BYTES", 1000)
    with pytest.raises(GraphError, match="it unpacks from .* to .*at most 100 times"):
        load_graph(path)


@pytest.mark.parametrize("kind", ["csc", "coo", "bsr", "dia"])
def test_scipy_archives_of_any_format(tmp_path, kind):
    path = tmp_path / "g.npz"
    sparse.save_npz(path, A.asformat(kind))
    np.testing.assert_array_equal(load_graph(path).adjacency.toarray(), A.toarray())
    huge = sparse.coo_array(([1.0], ([0], [0])), shape=(2_000_000_000, 1))
    sparse.save_npz(path, huge)
    with pytest.raises(GraphError, match="2000000000 rows for 1 entries"):
        load_graph(path)


@pytest.mark.parametrize(
    ("pointers", "indices", "says"),
    [
        ([0, 2, 0, 2], [0, 1], "index pointer values must form a non-decreasing"),
        ([0, 1, 1, 2], [0, 7], "column index values must be < 3"),
    ],
)
def test_tampered_blocks_are_refused(tmp_path, pointers, indices, says):
    arrays = {"indptr": pointers, "indices": indices, "data": np.ones((2, 2, 2)), "shape": [6, 6]}
    np.savez(tmp_path / "g.npz", format=b"bsr", **arrays)
    with pytest.raises(GraphError, match=says):
        load_graph(tmp_path / "g.npz")


@pytest.mark.parametrize(
    ("pointers", "indices"),
    [("graph.ptrdump", "graph.edgedump"), ("new_indptr", "new_indices")],
)
def test_raw_pairs(file, pointers, indices):
    first = file(A.indptr.astype("<i4").tobytes(), f"Web.{pointers}")
    second = file(A.indices.astype("<i4").tobytes(), f"Web.{indices}")
    for path in (first, second):
        graph = load_graph(path)
        np.testing.assert_array_equal(graph.adjacency.toarray(), A.astype(bool).toarray())
        assert (graph.name, graph.source) == ("Web", f"file {path.name}")
        assert load_graph(path, n_cols=9).shape == (4, 9)
        with pytest.raises(GraphError, match="column_indices: 3 at position"):
            load_graph(path, n_cols=3)
    for content, says in (
        (b"abcde", "length of 5 bytes.*multiple of 4"),
        (b"", "empty.*at least one row pointer"),
        (np.array([0, 9], "<i4").tobytes(), "row_pointers: they run from 0 to 9.*nonzeros, 4"),
        (np.array([0, 5, 4], "<i4").tobytes(), "row_pointers: they fall"),
        (np.array([0, 4], ">i4").tobytes(), "row_pointers: they run from 0 to 67108864"),
    ):
        file(content, first.name)
        with pytest.raises(GraphError, match=says) as caught:
            load_graph(second)
        assert "Web." in str(caught.value)
    first.unlink()
    with pytest.raises(GraphError, match=f"Web.{pointers}: there is no such file.*both files"):
        load_graph(second)


def test_a_reader_is_one_function(file, monkeypatch):
    for ending in (".mine", "whole.name"):
        monkeypatch.setitem(READERS, ending, None)  # to be taken away again

    @reader(".mine", "whole.name")
    def read_mine(path, *, name, source, fail=None):
        if fail:
            raise fail
        return load_graph(np.array([[0], [1]]), name=name)

    path = file("", "my.graph.MINE")
    assert load_graph(path).name == "my.graph"
    assert load_graph(file("", "whole.name")).name == "whole.name"
    with pytest.raises(GraphError, match="no reader for this ending"):
        load_graph(file("", "not.the.whole.name"))
    with pytest.raises(ArgumentError, match="shape: the reader of .mine files.*fail"):
        load_graph(path, shape=1)
    for fail, says in (
        (GraphError("values", "wrong"), "my.graph.MINE: values: wrong"),
        (OSError("no access"), "my.graph.MINE: no access"),
        (MemoryError(), "my.graph.MINE: it does not fit in memory"),
    ):
        with pytest.raises(GraphError, match=says):
            load_graph(path, fail=fail)


def test_the_rule_for_plausible_sizes_is_lenient():
    assert plausible_nodes(0) > 1_000_000
    assert plausible_nodes(352_807) > 9_912_553  # cit-HepTh's sparse numbers
