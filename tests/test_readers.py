"""Reader of MatrixMarket files; registration of readers."""

import bz2
import functools
import gzip
import io
import tarfile

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from accelviz import load_graph
from accelviz.datasets.convert import plausible_nodes
from accelviz.datasets.readers import READERS, reader, text
from accelviz.errors import ArgumentError, GraphError

#: gzip without a time stamp, so that names of parametrized tests are the same in every process.
gzipped = functools.partial(gzip.compress, mtime=0)

A = sparse.csr_array(np.array([[0, 2, 0, 1], [2, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]], np.float32))


def market_file(matrix, **options):
    stream = io.BytesIO()
    scipy.io.mmwrite(stream, matrix, **options)
    return stream.getvalue()


def test_packed_matrix_market(file, capsys):
    content = market_file(sparse.random_array((500, 300), density=0.1, rng=0))
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


@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
def test_matrix_market_of_every_kind(tmp_path, monkeypatch, field, symmetry):
    path = tmp_path / "g.mtx"
    A = np.round(4 * np.random.default_rng(1).standard_normal((6, 6)))
    A = {"general": A, "symmetric": A + A.T, "skew-symmetric": A - A.T}[symmetry]
    A = (A != 0).astype(int) if field == "pattern" else A
    if field == "pattern" and symmetry == "skew-symmetric":
        return
    form = {"field": field, "symmetry": symmetry, "comment": "a\n%b"}
    scipy.io.mmwrite(path, sparse.coo_array(A.astype(int)), **form)
    content = path.read_bytes()
    for size in (1, 3, 16, 1000):
        monkeypatch.setattr(text, "BLOCK_BYTES", size)
        np.testing.assert_array_equal(load_graph(path).adjacency.toarray(), A)
    path.write_bytes(content.replace(b"%%MatrixMarket", b"\xef\xbb\xbf%%matrixmarket"))
    np.testing.assert_array_equal(load_graph(path).adjacency.toarray(), A)


@pytest.mark.parametrize(
    ("head", "body", "message"),
    [
        ("integer general", "2 2 1\n1 2 5.5\n", "line 3: '1 2 5.5'.*integer"),
        ("real symmetric", "3 3 2\n1 2 3\n2 1 5\n", "twice or in both triangles"),
        ("real skew-symmetric", "3 3 1\n1 1 3\n", "diagonal is not zero"),
        ("complex hermitian", "2 2 1\n2 1 3 4\n", "complex"),
    ],
)
def test_matrix_market_that_scipy_misreads(file, head, body, message):
    content = f"%%MatrixMarket matrix coordinate {head}\n{body}"
    with pytest.raises(GraphError, match=message):
        load_graph(file(content, "g.mtx"))


def test_too_high_a_compression_ratio(file, monkeypatch):
    path = file(gzipped(b"0 1\n" * 250_000), "g.txt")
    assert load_graph(path).adjacency.data.tolist() == [250_000]
    monkeypatch.setattr(text, "MOST_BYTES", 10_000)
    with pytest.raises(GraphError, match="unpacks from .* at most 100 times its size"):
        load_graph(path)


def tarred(members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def test_an_archive_of_the_suitesparse_collection(file):
    matrix = market_file(A, symmetry="symmetric")
    archive = tarred({"net/net_coord.mtx": b"x", "net/net.mtx": matrix, "net/more.txt": b"y"})
    for name in ("net.tar.gz", "renamed.tar.gz"):
        graph = load_graph(file(archive, name))
        np.testing.assert_array_equal(graph.adjacency.toarray(), A.toarray())
        assert graph.name == name.removesuffix(".tar.gz")
    with pytest.raises(GraphError, match="there is no net.mtx in it.*SuiteSparse"):
        load_graph(file(tarred({"net/other.mtx": matrix}), "net.tar.gz"))
    for broken in (archive[:-30], gzipped(b"no archive"), b"nor this"):
        with pytest.raises(GraphError, match="net.tar.gz"):
            load_graph(file(broken, "net.tar.gz"))


HEADER = "%%MatrixMarket matrix coordinate pattern general\n"
DENSE = "%%MatrixMarket matrix array real general\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEADER + "2 2 2\n1 1\n3 1\n", "Line 4: Row index out of bounds"),
        (HEADER + "2 2 2\n1 1\n1 x\n", "line 4: '1 x'"),
        (HEADER + "2 2 2\n1 1\n1 99999999999999999999\n", "Line 4"),
        (HEADER + "2 2 1000000000000\n1 1\n", "it states 1000000000000 entries"),
        (HEADER + "2000000000 2 1\n1 1\n", "shape: 2000000000 rows for 1 entries"),
        (HEADER + "2 2 1\n1 1$", r"line 3: '1 1\$'.*row column"),
        (HEADER + "2 2 1\n1 1 5\n", "line 3: '1 1 5'.*row column"),
        (HEADER + "2 2 1\n% c\n1 1\n", "line 3: '% c'.*row column; comments stand before"),
        (HEADER.replace("general", "symmetric") + "2 3 1\n2 1\n", "symmetric, and states 2 rows"),
        (HEADER.replace("pattern", "real") + "2 2 1\n1 1\n", "line 3: '1 1'.*row column value"),
        (HEADER.replace("pattern", "real") + "2 2 1\n1 1 nan\n", "line 3: '1 1 nan'"),
        (HEADER + "2 2 2\n1 1\n", "Truncated file"),
        (HEADER + "2 2 1\n1 1\n2 2\n", "Line 4: Too many lines"),
        (HEADER + "2 2 1\n1 \0 1\n", "line 3: a NUL byte"),
        (DENSE + "1 1\n1\n", r"a dense matrix.*csr_array\(scipy.io.mmread\(path\)\)"),
        (HEADER.replace("pattern", "complex") + "1 1 1\n1 1 1 1\n", "its values are complex"),
        ("", "the file is empty"),
        ("hello\n", "Line 1: Not a Matrix Market file"),
        (HEADER, "Line 2: .* Premature EOF"),
        (HEADER + "2 2 1\n0 1\n", "Line 3: Row index out of bounds"),
        (HEADER + "2 2 1\n1 9\n", "Line 3: Column index out of bounds"),
        (HEADER + "2 2 1\n1 -1\n", "line 3: '1 -1'"),
        (HEADER + "99999999999 2 1\n1 1\n", "shape: 99999999999 rows for 1 entries"),
        ("\0\1\2\3", "line 1: a NUL byte"),
    ],
)
def test_invalid_matrix_market(file, content, message):
    path = file(content, "m.mtx")
    with pytest.raises(GraphError, match=message) as caught:
        load_graph(path)
    assert str(path) in str(caught.value)


def test_a_reader_is_one_function(file, monkeypatch):
    monkeypatch.setitem(READERS, ".mine", None)  # removed after the test

    @reader(".mine")
    def read_mine(path, *, name, source, fail=None):
        if fail:
            raise fail
        return load_graph(np.array([[0], [1]]), name=name)

    path = file("", "my.graph.MINE")
    assert load_graph(path).name == "my.graph"
    with pytest.raises(ArgumentError, match="shape: the reader of .mine files.*fail"):
        load_graph(path, shape=1)
    for fail, message in (
        (GraphError("values", "wrong"), "my.graph.MINE: values: wrong"),
        (OSError("no access"), "my.graph.MINE: no access"),
        (MemoryError(), "my.graph.MINE: it does not fit in memory"),
    ):
        with pytest.raises(GraphError, match=message):
            load_graph(path, fail=fail)


def test_the_limit_of_plausible_sizes():
    assert plausible_nodes(0) > 1_000_000
    assert plausible_nodes(352_807) > 9_912_553  # cit-HepTh's sparse numbers
