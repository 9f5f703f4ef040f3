"""Columns of edge lists: recognized by name, or chosen by options after an error."""

import numpy as np
import pandas as pd
import pytest

from accelviz import load_graph
from accelviz.errors import ArgumentError, GraphError
from tests.graphs import edges_of

EDGES = [(0, 1, 0.5), (2, 1, 4.0), (1, 3, 2.0)]
ONES = [(0, 1, 1.0), (2, 1, 1.0), (1, 3, 1.0)]


@pytest.fixture
def file(file):
    return lambda content, name="g.csv": file(content, name)


def table(header, order, separator=",", *, quoted=False):
    """Return the edges as text. Fields of `order` are source s, target r, weight w, id or text."""
    lines = [header] if header else []
    for number, (source, target, weight) in enumerate(EDGES):
        values = {"s": source, "r": target, "w": weight, "id": number + 70}
        fields = [str(values.get(field, field)) for field in order]
        lines.append(separator.join(f'"{field}"' if quoted else field for field in fields))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("header", "order"),
    [
        ("source,target,weight", "srw"),
        ("weight,source,target", "wsr"),
        ("target,source,weight", "rsw"),
        ("to,weight,from", "rws"),
        ('"Dst","Src","W"', "rsw"),
        ("target , Edge_Weight , source", "rws"),
        ("FromNodeId,ToNodeId,weights", "srw"),
        ("node_1,node_2,weight", "srw"),
        ("id1,id2,edge-weight", "srw"),
        (":START_ID,weight,:END_ID", "swr"),
        ("\ufeffv,u,w", "rsw"),
        ("source,target,weight,timestamp", ["s", "r", "w", "1082040961"]),
        (",source,target,weight", ["id", *"srw"]),
        ("Unnamed: 0,source,target,weight", ["id", *"srw"]),
        (":START_ID,:TYPE,weight,:END_ID", ["s", "KNOWS", "w", "r"]),
        (",0,1,2", ["id", *"srw"]),
    ],
)
def test_names_determine_the_columns(file, header, order):
    for quoted in (False, True):
        graph = load_graph(file(table(header, order, quoted=quoted)))
        assert edges_of(graph) == EDGES
        assert "weights in " in graph.source
    assert edges_of(load_graph(file(table(header, order)), weights=False)) == ONES


def test_ambiguous_names_need_an_option(file):
    for header, order, message, options in (
        ("src,dst,timestamp", "srw", "what 'timestamp' means", {"weights": False}),
        ("row,col", "rs", "none may be the sources", {"columns": [1, 0]}),
        ("source,id,from", ["s", "id", "r"], "2 may be the sources", {"columns": (0, 2)}),
        ("s,note,r", ["s", "a q, 5 ,b", "r"], "none may be", {"columns": ("s", "r")}),
    ):
        path = file(table(header, order, quoted="note" in header))
        with pytest.raises(GraphError, match=message):
            load_graph(path)
        assert edges_of(load_graph(path, **options)) == ONES


def test_an_option_chooses_the_weights(file):
    path = file(table("src,dst,cost,year", ["s", "r", "w", "1999"]))
    with pytest.raises(GraphError, match="'cost', 'year'"):
        load_graph(path)
    with pytest.raises(GraphError, match="'cost', 'year'"):
        load_graph(path, weights=True)
    assert edges_of(load_graph(path, columns=("src", "dst", "cost"))) == EDGES
    assert edges_of(load_graph(path, columns=(0, 1, 2))) == EDGES
    path = file(table("src,dst,weight,year", ["s", "r", "w", "1999"]))
    assert edges_of(load_graph(path, weights=True)) == EDGES
    with pytest.raises(GraphError, match="hold no weight"):
        load_graph(file(table("source,target", "sr")), weights=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "ab"}, "got 'ab'.*by name or position"),
        ({"columns": 5}, "got 5"),
        ({"columns": ("a",)}, "got"),
        ({"columns": ("a", "a")}, "each column once"),
        ({"columns": (0, "a")}, "each column once"),
        ({"columns": ("a", "c")}, "there is no 'c'.*'a', 'b'"),
        ({"columns": (0, 2)}, "there is no 2"),
        ({"columns": (0, True)}, "there is no True"),
        ({"columns": (0, 1), "weights": False}, "beside columns"),
    ],
)
def test_invalid_columns(file, options, message):
    with pytest.raises(ArgumentError, match=message):
        load_graph(file("a,b\n0,1\n"), **options)


def test_files_of_pandas_and_numpy(tmp_path):
    path = tmp_path / "g.csv"
    frame = pd.DataFrame(EDGES, columns=["source", "target", "weight"])
    for options in (
        {"index": False},
        {"index": False, "columns": ["weight", "target", "source"]},
        {"index": False, "sep": "\t", "quoting": 1},
        {},
    ):
        frame.to_csv(path, **options)
        assert edges_of(load_graph(path)) == EDGES
    reversed_columns = np.array(EDGES)[:, ::-1]
    np.savetxt(path, reversed_columns, fmt=("%g", "%d", "%d"), header="weight target source")
    assert edges_of(load_graph(path)) == EDGES


def test_konect(file):
    body = "1 2\n3 2\n2 4\n"
    graph = load_graph(file("% sym unweighted\n% 3 4 4\n" + body, "out.tsv"))
    assert graph.nnz == 6
    assert graph.source.endswith("counted from 1, in both directions")
    assert edges_of(load_graph(file("% asym unweighted\n" + body, "g.txt"))) == ONES
    timed = "% asym positive\n1 2 0.5 1082040961\n3 2 4 1082155839\n2 4 2 1082155840\n"
    assert edges_of(load_graph(file(timed, "g.txt"))) == EDGES
    with pytest.raises(GraphError, match="bipartite graph of KONECT.*SciPy"):
        load_graph(file("% bip weighted\n1 1 3\n", "g.txt"))
    with pytest.raises(GraphError, match="line 2: node 0"):
        load_graph(file("% sym unweighted\n0 1\n", "g.txt"))


def test_times_are_not_read_as_weights(file):
    path = file("0 1 1082040961\n2 1 1082155839\n1 3 1082155840\n", "CollegeMsg.txt")
    with pytest.raises(GraphError, match="line 1: '1082040961' in the third column is a time or"):
        load_graph(path)
    assert edges_of(load_graph(path, weights=False)) == ONES
    assert edges_of(load_graph(path, weights=True))[0][2] == np.float32(1082040961)
    assert load_graph(file("0 1 16777216\n0 2 16777217.5\n", "g.txt")).nnz == 2


@pytest.mark.parametrize("first", ["4 3", "5 3", "4 4 3", "4", "4 3 1 0"])
def test_a_first_line_of_sizes_needs_an_option(file, first):
    path = file(f"{first}\n0 1\n2 1\n1 3\n", "g.txt")
    with pytest.raises(GraphError, match=r"header=True|columns"):
        load_graph(path)
    assert edges_of(load_graph(path, header=True)) == ONES
    if first == "4 3":
        assert load_graph(path, header=False).nnz == 4
        weighted = file("4 3\n" + table("", "srw", " "), "g.txt")
        with pytest.raises(GraphError, match="line 2: 3 fields in '0 1 0.5'.*header=True"):
            load_graph(weighted)
        assert edges_of(load_graph(weighted, header=True)) == EDGES
    # No error if there is a header, or if the numbers do not match the file.
    assert load_graph(file("source target\n4 3\n0 1\n2 1\n1 3\n", "g.txt")).nnz == 4
    assert load_graph(file("4 2\n0 1\n2 1\n1 3\n", "g.txt")).nnz == 4
    assert load_graph(file("2 3\n0 1\n2 1\n1 3\n", "g.txt")).nnz == 4
