"""Reader of edge lists: valid forms, and error messages with line numbers."""

import bz2
import functools
import gzip
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accelviz import load_graph
from accelviz.datasets.convert import plausible_nodes
from accelviz.datasets.readers import text
from accelviz.datasets.readers.edge_table import DELIMITERS, Layout, NodeRange, is_comment, split
from accelviz.errors import ArgumentError, GraphError
from tests.graphs import edges_of

#: gzip without a time stamp, so that names of parametrized tests are the same in every process.
gzipped = functools.partial(gzip.compress, mtime=0)


def at_any_block_size(monkeypatch, sizes=(1, 3, 16, 1000)):
    for size in sizes:
        monkeypatch.setattr(text, "BLOCK_BYTES", size)
        yield size


ONES = [(1, 0, 1.0), (0, 1, 1.0), (3, 1, 1.0)]


@pytest.mark.parametrize(
    "content",
    [
        "0 1\n1 0\n3 1\n",
        "0 1\n1 0\n3 1",
        "  0    1  \n 1 0\n\n3   1 \t\n   \n",
        "0\t1\n1\t0\n3\t1\n",
        "0 \t 1\n1\t0 \n 3\t1\n \t \n",
        "0,1\n1,0\n3,1\n",
        "0 ,\t1\n1, 0\n 3,1\n",
        "0;1\n1;0\n3;1\n",
        "0|1\n1|0\n3|1\n",
        "0 1\r\n1 0\r\n3 1\r\n",
        "0 1\r1 0\r3 1",
        "\ufeff0 1\n1 0\n3 1\n",
        "\ufeff# mark\n0 1\n1 0\n3 1\n",
        "src,dst\n0,1\n1,0\n3,1\n",
        '"src";"dst"\n0;1\n1;0\n3;1\n',
        "# a\n\nFromNodeId\tToNodeId\n# b\n0\t1\n1\t0\n3\t1\n",
        "% a\n// b\n  # c\n0 1\n#\n1 0\n% x\n3 1\n# end",
        "# R\u00e9seau\n0 1\n1 0\n3 1\n",
        b"# R\xe9seau, in Latin 1\n0 1\n1 0\n3 1\n",
        "000 1\n1 00000000000000000000000000000000000\n03 1\n",
    ],
)
def test_one_graph_in_many_forms(file, monkeypatch, content):
    path = file(content)
    for _ in at_any_block_size(monkeypatch):
        graph = load_graph(path)
        assert edges_of(graph) == ONES
        assert (graph.shape, graph.name) == ((4, 4), "g")
        assert graph.source == "file g.txt, counted from 0"


@pytest.mark.parametrize("kind", ["txt", "csv", "tsv", "edges", "edgelist"])
@pytest.mark.parametrize(
    ("packed", "pack"), [("", bytes), (".gz", gzipped), (".bz2", bz2.compress)]
)
def test_every_ending_plain_and_packed(file, kind, packed, pack):
    content = b"0 1\n1 0\n3 1\n"
    assert edges_of(load_graph(file(pack(content), f"G.{kind}{packed}"))) == ONES
    # The ending may be wrong, for example if a browser has unpacked the file.
    assert edges_of(load_graph(file(content, f"plain.{kind}{packed}"))) == ONES
    in_two_members = pack(content[:4]) + pack(content[4:])
    assert edges_of(load_graph(file(in_two_members, f"parts.{kind}"))) == ONES


def test_base_and_n_nodes(file):
    path = file("1 2\n4 2\n")
    graph = load_graph(path)
    assert graph.shape == (4, 4)
    assert edges_of(graph) == [(0, 1, 1.0), (3, 1, 1.0)]
    assert graph.source.endswith("counted from 1")
    assert load_graph(path, base=0).shape == (5, 5)
    assert load_graph(path, base=1).shape == (4, 4)
    assert load_graph(path, n_nodes=9).shape == (9, 9)
    assert load_graph(path, n_nodes=4).shape == (4, 4)
    with pytest.raises(GraphError, match=r"line 2: node 4 is too large for 4 nodes.*0 to 3"):
        load_graph(path, base=0, n_nodes=4)
    with pytest.raises(GraphError, match=r"line 3: node 4 is too large for 4 nodes.*0 to 3"):
        load_graph(file("1 2\n0 1\n4 2\n"), n_nodes=4)
    with pytest.raises(GraphError, match=r"line 2: node 9 is too large for 4 nodes.*0 to 3, or 1"):
        load_graph(file("1 2\n0 9\n4 2\n"), n_nodes=4)
    with pytest.raises(GraphError, match="line 2: node 0.*nodes from 1 on, or base=0"):
        load_graph(file("1 2\n0 1\n"), base=1)


def test_symmetric(file):
    path = file("0 1 2.5\n1 0 2.5\n2 1 -3\n2 2 4\n0 3 0\n")
    both = load_graph(path, symmetric=True).adjacency.toarray()
    expected = np.array([[0, 2.5, 0, 0], [2.5, 0, -3, 0], [0, -3, 4, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(both, expected)
    assert load_graph(path, symmetric=True).nnz == 7  # explicit zeros are edges
    assert load_graph(path).nnz == 5
    header = "# Undirected graph: ../../data/output/youtube.ungraph.txt\n# Nodes: 3 Edges: 2\n"
    header += "# FromNodeId\tToNodeId\n"
    graph = load_graph(file(header + "0\t1\n2\t1\n"))
    assert edges_of(graph) == [(1, 0, 1.0), (0, 1, 1.0), (2, 1, 1.0), (1, 2, 1.0)]
    assert graph.source.endswith("counted from 0, in both directions")
    assert load_graph(file(header + "0\t1\n2\t1\n"), symmetric=False).nnz == 2
    assert load_graph(file("# Directed graph\n0\t1\n")).nnz == 1
    assert load_graph(file("0 1\n# Directed graph\n#\n")).nnz == 1
    for comment in ("# Undirected graph", " % edges have no direction", "// not directed"):
        for later in (f"0 1\n{comment}\n", f"0 1\n1 2\n{comment}", f"# x\n0 1\n\n{comment}\n2 3\n"):
            path = file(later)
            with pytest.raises(GraphError, match="symmetric: the comment .*symmetric=True"):
                load_graph(path)
            assert load_graph(path, symmetric=True).nnz == 2 * load_graph(path, symmetric=False).nnz


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-2, 2)), min_size=1),
)
def test_repeated_and_reversed_edges_against_numpy(tmp_path_factory, edges):
    path = tmp_path_factory.mktemp("edges") / "g.csv"
    path.write_text("".join(f"{u},{v},{w}\n" for u, v, w in edges))
    A, times = np.full((6, 6), np.nan), np.zeros((6, 6))
    for u, v, w in edges:
        A[v, u] = np.nansum([A[v, u], w])
        times[v, u] += 1
    graph = load_graph(path, base=0, n_nodes=6, header=False)
    np.testing.assert_array_equal(graph.adjacency.toarray(), np.nan_to_num(A))
    assert graph.nnz == np.isfinite(A).sum()
    both = (times > 0) & (times.T > 0)
    if (both & ((A != A.T) | (times != times.T))).any():
        with pytest.raises(GraphError, match="symmetric: .*differ by direction"):
            load_graph(path, base=0, n_nodes=6, header=False, symmetric=True)
        return
    graph = load_graph(path, base=0, n_nodes=6, header=False, symmetric=True)
    np.testing.assert_array_equal(graph.adjacency.toarray(), np.nan_to_num(np.fmax(A, A.T)))
    assert graph.nnz == np.isfinite(np.fmax(A, A.T)).sum()


def test_weights(file):
    path = file("u v w\n0 1 0.5\n1 2 -1e2\n2 0 .25\n0 1 1.\n")
    graph = load_graph(path)
    assert edges_of(graph) == [(2, 0, 0.25), (0, 1, 1.5), (1, 2, -100.0)]
    assert graph.source.endswith("counted from 0, weights in 'w'")
    assert set(load_graph(path, weights=False).values.tolist()) == {1.0, 2.0}
    path = file("0 1 7 999\n1 2 8 999 note\n")
    assert edges_of(load_graph(path, weights=True)) == [(0, 1, 7.0), (1, 2, 8.0)]
    assert edges_of(load_graph(path, weights=False)) == [(0, 1, 1.0), (1, 2, 1.0)]
    with pytest.raises(GraphError, match=r"columns: 4 without names.*weights=True.*weights=False"):
        load_graph(path)
    with pytest.raises(GraphError, match="line 1: 2 fields in '0 1'.*source target weight"):
        load_graph(file("0 1\n"), weights=True)
    quoted = file('0,1,"a, b"\n1,2,"c"\n', "g.csv")
    assert load_graph(quoted, weights=False).nnz == 2
    for hidden in ('0,1,a\n1,2,"b\n2,3,c"\n3,4,d\n', '0,1,a\n1,2,"b\n2,3,c\n'):
        with pytest.raises(GraphError, match="from line 1 on: a line ends inside quotes"):
            load_graph(file(hidden, "g.csv"), weights=False)


def test_relabel(file):
    path = file("900000000000 5\n5 70\n9223372036854775806 5\n")
    graph = load_graph(path, relabel=True)
    assert edges_of(graph) == [(2, 0, 1.0), (3, 0, 1.0), (0, 1, 1.0)]
    assert graph.source.endswith("numbered anew")
    assert load_graph(path, relabel=True, n_nodes=6).shape == (6, 6)
    with pytest.raises(GraphError, match="4 different nodes.*3"):
        load_graph(path, relabel=True, n_nodes=3)
    with pytest.raises(GraphError, match="line 1: node 900000000000 does not fit.*relabel=True"):
        load_graph(path)
    with pytest.raises(GraphError, match="line 1: node 9223372036854775807 does not fit in 64"):
        load_graph(file("9223372036854775807 1"), relabel=True)
    # Equal in float64, the dtype of the weights.
    weighted = file("9007199254740992 0 1\n9007199254740993 0 1\n")
    assert load_graph(weighted, relabel=True).shape == (3, 3)


def test_a_large_node_needs_an_option(file):
    path = file("0 1\n5 2000000\n1 2\n")
    message = "line 2: node 2000000 is out of proportion.*relabel=True.*n_nodes"
    with pytest.raises(GraphError, match=message):
        load_graph(path)
    assert load_graph(path, relabel=True).shape == (5, 5)
    assert load_graph(path, n_nodes=2_000_001).n_rows == 2_000_001
    limit = plausible_nodes(1)
    assert load_graph(file(f"0 {limit - 1}\n")).n_rows == limit
    assert load_graph(file(f"1 {limit}\n")).n_rows == limit
    for node in (limit, 2**31 - 2, 2**31 - 1):
        with pytest.raises(GraphError, match=f"line 1: node {node} is out of"):
            load_graph(file(f"0 {node}\n"))
    with pytest.raises(GraphError, match="line 2: node 2147483648 does not fit in 32 bits"):
        load_graph(file("1 2\n2147483648 1\n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("\n \n# only\n", "there is no edge in it"),
        ("src dst\n", "there is no edge in it"),
        ("0 1\n1,2\n", "line 2: mixed delimiters in '1,2'.*separated by blanks as in line 1"),
        ("0\t1\n1 2\n", "line 2: mixed delimiters.*separated by tabs"),
        ("0,1\n1;2\n", "line 2: mixed delimiters"),
        ("0,1,2\n1,2 3\n", "line 2: mixed delimiters"),
        ("0,1\n1 2,3\n", "line 2: mixed delimiters"),
        ("0 1\n\n2\n", "line 3: 1 field in '2'"),
        ("0 1\n1 2 3\n", "line 2: 3 fields in '1 2 3'.*source target, separated"),
        ("0 1 5\n1 2\n", "line 2: 2 fields in '1 2'.*source target weight"),
        ("0,1\n1,\n", "line 2: the target is empty"),
        ("0\t1\n\t2\n", "line 2: the source is empty"),
        ("0,1,\n", "line 1: the weight is empty"),
        ("0,1\n1,2,\n", "line 2: 3 fields"),
        ("0 1\n-5 2\n", "line 2: the negative node -5.*nodes from 0"),
        ("0 1\n1.0 2\n", "line 2: '1.0' is not a node.*digits"),
        ("0 1 1\n1.0 2 1\n", "line 2: '1.0' is not a node"),
        ("0 1\n1e3 2\n", "line 2: '1e3' is not a node"),
        ("0 1\n1_0 2\n", "line 2: '1_0' is not a node"),
        ("0 1\n0x10 2\n", "line 2: '0x10' is not a node"),
        ("0 1\n\u0663 2\n", "line 2: '\u0663' is not a node"),
        ("0 1\n'1' 2\n", "is not a node"),
        ('"0","x"\n', "line 1: 'x' is not a node"),
        ('0,1\n"0""1",2\n', "line 2: '0\"1' is not a node"),
        ("nan nan\n0 1\n", "line 1: 'nan' is not a node"),
        ("0 1\nnan 2\n", "line 2: 'nan' is not a node"),
        ("src dst\nc d\n0 1\n", "line 2: 'c' is not a node"),
        ("0 1\nsrc dst\n", "line 2: 'src' is not a node"),
        ("0 1 nan\n", "line 1: the weight 'nan'.*finite"),
        ("0 1 inf\n", "line 1: the weight 'inf'"),
        ("0 1 1\n0 1 1e39\n", "line 2: the weight '1e39' is infinite in float32"),
        ("0 1 1e400\n", "line 1: the weight '1e400' is infinite"),
        ("0 1 1_0\n", "line 1: the weight '1_0'"),
        ("0 1 0x1p3\n", "line 1: the weight"),
        ("0 1 # note\n", "4 without names"),
        ("0 1\n1 2 # note\n", "line 2: 4 fields"),
        ("0 1\n\x0b\n", "line 2"),
        ("0 1\n1\x0b2\n", "line 2"),
        ("0 1\n1\xa02\n", "line 2"),
        ("0 1\n1 2\n\0 3\n", "line 3: a NUL byte, so the file is binary"),
        (b"\x93NUMPY\x01\x00v\x00{'descr'", "line 1: a NUL byte"),
        (b"PK\x03\x04\x14\x00\x00\x00", "line 1: a NUL byte"),
        (b"\xffhello\n", r"line 1: 1 field in '\\\\xffhello'"),
        ("0 1\n".encode("utf-16"), "it is UTF-16 text.*UTF-8"),
        ("0 1\n".encode("utf-16-be"), "a NUL byte"),
        ("The quick fox\njumps over it\n", "columns: of 'The', 'quick', .* none may be the s"),
        ("%%MatrixMarket matrix coordinate\n1 1 1\n1 1 1\n", "a MatrixMarket file.*.mtx"),
        ("%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n", "a MatrixMarket file"),
        ("0 " + "9" * 5000, r"line 1: node 9{40}… does not fit"),
        ("0 " + "x" * 5000, r"line 1: 'x{40}…' is not a node"),
        (gzipped(b"0 1\n" * 100)[:-9], "it cannot be unpacked.*truncated"),
        (gzipped(b"0 1\n" * 100)[:-4], "it cannot be unpacked"),
        (gzipped(b"0 1\n" * 100)[:-4] + b"abcd", "it cannot be unpacked"),
        (gzipped(b"0 1\n") + b"junk", "it cannot be unpacked"),
        (bz2.compress(b"0 1\n" * 100)[:-9], "it cannot be unpacked"),
        (b"\x1f\x8b", "it cannot be unpacked"),
        (gzipped(b""), "there is no edge in it"),
    ],
)
def test_invalid_files(file, monkeypatch, content, message):
    path = file(content)
    for _ in at_any_block_size(monkeypatch):
        with pytest.raises(GraphError, match=message) as caught:
            load_graph(path)
        assert str(path) in str(caught.value)
        assert len(str(caught.value)) < len(str(path)) + 300


@pytest.mark.parametrize(
    "options", [{"base": 2}, {"base": "one"}, {"n_nodes": 0}, {"n_nodes": "9"}, {"n_nodes": 2**31}]
)
def test_invalid_options(file, options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        load_graph(file("0 1\n"), **options)
    with pytest.raises(ArgumentError, match="colour: the reader of .txt files.*base, n_nodes"):
        load_graph(file("0 1\n"), colour=1)


FIELDS = ["0", "1", "7", "42", "007", "", " ", "-1", "+1", "1.5", "1.", ".5", ".", "1e3", "1e", "-"]
FIELDS += ["1e400", "3e38", "4e38", "1e-50", "0x1", "1_0", "nan", "inf", '"1"', "x", "\u0661"]
FIELDS += ["2147483646", "2147483647", "2147483648", "9223372036854775807", "99999999999999999999"]
FIELDS += ["9007199254740993", "1 2", "1\t2", "\x0c", "\x0b", "#", "%", "//", "1#"]


@given(data=st.data())
def test_blocks_of_fields_against_python(data):
    delimiter = data.draw(st.sampled_from([*DELIMITERS]))
    positions = data.draw(st.sampled_from([(0, 1), (0, 1, 2), (1, 0), (2, 0), (1, 3), (2, 1, 0)]))
    columns = max(positions) + 1
    high = data.draw(st.sampled_from([100, 2**31 - 2, 2**63 - 2]))
    low = data.draw(st.integers(0, 1))
    count = columns + data.draw(st.integers(0, 1))
    allowed = NodeRange(low, high, "is too large", "less")
    blanks = st.sampled_from(["", "", "", " ", "  ", "\t"])
    valid = st.sampled_from(FIELDS[:5])

    def line(field, count):
        parts = data.draw(
            st.lists(st.tuples(blanks, field, blanks), min_size=count, max_size=count)
        )
        return delimiter.join("".join(part) for part in parts)

    lines = []
    for _ in range(data.draw(st.integers(0, 4))):
        kind = data.draw(st.integers(0, 9))
        if kind < 7:
            lines.append(line(valid, count))
        elif kind == 7:
            lines.append(data.draw(st.sampled_from(["", " ", "\t", "# x", " % y", "//", "/"])))
        else:
            lines.append(line(st.sampled_from(FIELDS), data.draw(st.integers(0, 4))))
    first = delimiter.join(["1"] * count).encode()
    layout = Layout("f", 1, first, delimiter, count, positions, allowed)
    check_against_python(layout, "".join(f"{text}\n" for text in lines).encode())


@pytest.mark.long
@given(st.text(alphabet="0123456789 \t,;|.eE+-#%/\n\x0b\x0cx", max_size=40))
@example("1 2\n 3 4 \n")
def test_blocks_of_any_text_against_python(content):
    for delimiter in DELIMITERS:
        for columns in (2, 3):
            for count in (columns, 4):
                allowed = NodeRange(0, 2**31 - 2, "is too large", "less")
                first = delimiter.join(["1"] * count).encode()
                layout = Layout("f", 1, first, delimiter, count, tuple(range(columns)), allowed)
                check_against_python(layout, content.encode() + b"\n")


def check_against_python(layout, block):
    """Check that a block raises an error, or has the numbers that Python reads."""
    arrays = layout.read(block)
    if arrays is None:
        assert re.match("f, (from )?line", layout.mistake(1, block).argument)
        return
    data = [line for line in block.split(b"\n") if line.strip(b" \t") and not is_comment(line)]
    rows = [[split(line, layout.delimiter)[column] for column in layout.positions] for line in data]
    nodes, weights = arrays
    assert nodes.tolist() == [[int(u), int(v)] for u, v, *_ in rows]
    assert nodes.dtype == (np.int32 if layout.allowed.high < 2**31 else np.int64)
    if len(layout.positions) == 2:
        assert weights is None
    else:
        expected = np.array([float(weight) for *_, weight in rows]).astype(np.float32)
        assert weights.dtype == np.float32
        np.testing.assert_array_equal(weights, expected)
