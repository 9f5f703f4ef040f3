"""METIS and MatrixMarket files; and what all readers have in common."""

import bz2
import functools
import gzip
import io
import tarfile

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from accelviz import load_graph
from accelviz.datasets.convert import plausible_nodes
from accelviz.datasets.readers import READERS, metis, reader, text
from accelviz.errors import ArgumentError, GraphError

#: Without the time, which would give a test another name in every process.
gzipped = functools.partial(gzip.compress, mtime=0)

A = sparse.csr_array(np.array([[0, 2, 0, 1], [2, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]], np.float32))
PLAIN = "4 2\n2 4\n1\n\n1\n"


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
def test_metis_blocks_are_read_as_python_reads_their_lines_or_have_a_mistake(
    lines, skip, step, left
):
    header = metis._Header("f", 1, 7, 0, skip, step)
    block = "".join(" ".join(line) + "\n" for line in lines).encode()
    found = metis._read(header, block, left)
    if found is None:
        assert isinstance(metis._mistake(header, 2, block, left), GraphError)
        return
    with pytest.raises(AssertionError, match="there is no mistake"):
        metis._mistake(header, 2, block, left)
    counts, neighbors, weights = found
    kept = [line[skip:] for line in lines if not line or not line[0].startswith("%")][:left]
    assert counts.tolist() == [len(line) // step for line in kept]
    expected = [int(token) - 1 for line in kept for token in line[::step]]
    assert neighbors.tolist() == expected
    assert (counts.dtype, neighbors.dtype) == (np.int64, np.int32)
    if step == 1:
        assert weights is None
    else:
        expected = np.array([int(token) for line in kept for token in line[1::2]], np.float32)
        np.testing.assert_array_equal(weights, expected)
        assert weights.dtype == np.float32


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
        ("hello\n", "Line 1: Not a Matrix Market file"),
        (HEADER, "Line 2: .* Premature EOF"),
        (HEADER + "2 2 1\n0 1\n", "Line 3: Row index out of bounds"),
        (HEADER + "2 2 1\n1 9\n", "Line 3: Column index out of bounds"),
        (HEADER + "2 2 1\n1 -1\n", "line 3: '1 -1'"),
        (HEADER + "99999999999 2 1\n1 1\n", "shape: 99999999999 rows for 1 entries"),
        ("\0\1\2\3", "line 1: a NUL byte"),
    ],
)
def test_matrix_market_that_is_wrong(file, content, says):
    path = file(content, "m.mtx")
    with pytest.raises(GraphError, match=says) as caught:
        load_graph(path)
    assert str(path) in str(caught.value)


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
