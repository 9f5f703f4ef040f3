"""Ambiguous files and arguments: the error messages, and the options that resolve them.

Each case is a file of one small graph, compared with a dense matrix whose rows are targets.
"""

import gzip
import re

import networkx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import accelviz
from accelviz import load_graph
from accelviz.errors import ArgumentError, GraphError

#: Three edges `source target weight`, and their matrices.
EDGES = [(0, 1, 0.5), (2, 1, 4.0), (1, 3, 2.0)]
A = np.zeros((4, 4))
for source, target, weight in EDGES:
    A[target, source] = weight
ONES = (A > 0) * 1.0
BODY = "0 1\n2 1\n1 3\n"


@pytest.fixture
def opened(tmp_path):
    """Return a function that writes a file, loads it and returns the dense matrix."""

    def load(content, name="g.csv", **options):
        path = tmp_path / name
        path.write_text(content)
        return load_graph(path, **options).adjacency.toarray()

    return load


def check_error(opened, content, message, name="g.csv", **options):
    with pytest.raises(GraphError, match=message) as caught:
        opened(content, name, **options)
    assert name in str(caught.value)


def rows(fields, separator=","):
    """Return the edges as lines. Fields are source s, target r, weight w or other text."""
    lines = []
    for s, r, w in EDGES:
        values = {"s": s, "r": r, "w": w}
        lines.append(separator.join(str(values.get(field, field)) for field in fields))
    return "\n".join(lines) + "\n"


def test_both_directions_must_agree(opened):
    head = "# Undirected graph: x\n# FromNodeId\tToNodeId\n"
    twice = BODY + "1 0\n1 2\n3 1\n"
    both = np.maximum(ONES, ONES.T)
    for content in (BODY, twice, BODY + "1 0\n"):
        np.testing.assert_array_equal(opened(head + content, "g.txt"), both)
    weighted = "0 1 -5\n1 0 -5\n"
    np.testing.assert_array_equal(opened(weighted, symmetric=True), [[0, -5], [-5, 0]])
    for content in ("0 1 2\n1 0 3\n", "0 1 -5\n1 0 -2\n", "0 1 2\n1 0 1\n1 0 1\n"):
        message = r"symmetric: .*nodes 0 and 1 .*differ.*symmetric=False.*A \+ A.T.*A.maximum"
        check_error(opened, head + content, message)
        directed = opened(head + content, symmetric=False)
        assert directed[0, 1] != 0 != directed[1, 0]
    contacts = "% sym unweighted\n1 2\n2 1\n1 2\n"
    check_error(opened, contacts, "how often they are listed", "out.contacts")
    directed = sparse.csr_array(opened(contacts, "out.contacts", symmetric=False))
    assert load_graph(directed + directed.T).adjacency.toarray().tolist() == [[0, 3], [3, 0]]


@pytest.mark.parametrize(
    "comment",
    [
        "# This is an undirected graph", "# directed: no", "# directed = False", "# not undirected",
        "// type: Undirected", "# sym", "% Nodes 4, undirected", "# Undirected graph: no",
        "# undirected edges: 0", "# undirected graph converted to directed", "# not directed",
        "# un-directed", "# edges have no direction", "# symmetric", "# directed: yes",
        "# Directed graph: no", "# Directed graph: False", "# directed graph? no",
        "# Directed graph converted to undirected", "# DIRECTED GRAPH, edges doubled",
        "# bidirectional", "# reciprocal links", "# mutual follows", "# two-way streets",
        "# each edge is listed once", "# asymmetric", "# symmetrized", "# upper triangle",
        "# orientation: none", "% arcs", "# a digraph", "# Undirected graph: g.txt",
    ],
)  # fmt: skip
def test_ambiguous_comments_about_directions(opened, comment):
    content = f"# a title\n{comment}\n{BODY}"
    check_error(opened, content, "symmetric: the comment.*symmetric=True if", "g.txt")
    np.testing.assert_array_equal(opened(content, symmetric=False), ONES)
    np.testing.assert_array_equal(opened(content, symmetric=True), np.maximum(ONES, ONES.T))


def test_clear_comments_about_directions(opened):
    for note in ("", " (each unordered pair of nodes is saved once)"):
        snap = f"# Undirected graph{note}: ../../x.txt\n# x\n# FromNodeId\tToNodeId\n"
        matrix = opened(snap + BODY, "g.txt")
        np.testing.assert_array_equal(matrix, np.maximum(ONES, ONES.T))
    from_one = "1 2\n3 2\n2 4\n"
    for comment in ("% sym unweighted", "%% sym", "% SYM positive"):
        matrix = opened(f"{comment}\n{from_one}", "g.txt")
        np.testing.assert_array_equal(matrix, np.maximum(ONES, ONES.T))
    for comment in ("# Directed graph: x", "# Directed", "# symbols", "# a directory", "#directed",
                    "# Directed graph (each unordered pair of nodes is saved once): web-Google.txt",
                    "// Directed network", "# made directly", "# Nodes: 4 Edges: 3"):  # fmt: skip
        np.testing.assert_array_equal(opened(f"{comment}\n{BODY}", "g.txt"), ONES)


def test_comments_that_contradict_a_banner(opened):
    snap = "# Undirected graph: x.txt\n# {}\n# FromNodeId\tToNodeId\n" + BODY
    for content in (
        snap.format("both directions are listed"),
        snap.format("Directed graph"),
        snap.format("x").replace("x.txt", "no"),
        "% sym unweighted\n% directed: yes\n1 2\n",
        "% asym unweighted\n% edges are mutual\n1 2\n",
    ):
        check_error(opened, content, "symmetric: the comment.*symmetric=True if", "g.txt")
    assert opened(snap.format("x"), "g.txt").sum() == 6
    assert opened(snap.format("undirected graph"), "g.txt").sum() == 6


GEPHI = "Source,Target,Type,Id,Label,timeset,Weight\n"


def test_a_column_of_directions_needs_an_option(opened):
    both = np.maximum(A, A.T)
    for kind in ("Directed", "Undirected", "Mutual"):
        content = GEPHI + rows(["s", "r", kind, "7", "", "", "w"])
        check_error(opened, content, f"symmetric: the column 'Type' says '{kind}'.*symmetric=True")
        np.testing.assert_array_equal(opened(content, symmetric=True), both)
        np.testing.assert_array_equal(opened(content, symmetric=False), A)
        chosen = opened(content, columns=("Source", "Target", "Weight"), symmetric=True)
        np.testing.assert_array_equal(chosen, both)
    for name in ("directed", "is_undirected", "oneway", "Reciprocal"):
        flags = f"{name},source,target\n" + rows(["no", "s", "r"])
        check_error(opened, flags, f"the column '{name}' says 'no'")
        np.testing.assert_array_equal(opened(flags, symmetric=True), both > 0)


def test_two_types_of_nodes_need_an_option(opened):
    for source, target in ((":START_ID(Person)", ":END_ID(Movie)"), ("userId", "movieId")):
        names = f"('{source}', '{target}')"
        advice = rf"columns={re.escape(names)} if .*SciPy matrix if they"
        check_error(opened, f"{source},{target}\n" + rows("sr"), advice)


def test_the_header_of_pandas_for_columns_without_names(opened):
    for frame in (pd.DataFrame(EDGES), pd.DataFrame(EDGES)[[0, 1]]):
        expected = A if len(frame.columns) > 2 else ONES
        text = frame.to_csv(index=False)
        check_error(opened, text, "line 1: .*pandas.*header=False if it is an edge, header=True")
        np.testing.assert_array_equal(opened(text, header=True), expected)
        assert opened(text, header=False)[1, 0] >= 2
        quoted = frame.to_csv(index=False, sep=";", quoting=1)
        check_error(opened, quoted, "may be an edge, or what pandas")
        np.testing.assert_array_equal(opened(frame.to_csv()), expected)
        np.testing.assert_array_equal(opened(frame.to_csv(sep="\t")), expected)
    np.testing.assert_array_equal(opened("0 1\n2 1\n1 3\n"), ONES)
    np.testing.assert_array_equal(opened("source,target\n" + rows("sr"), header=True), ONES)
    check_error(opened, "title\n" + rows("sr"), "line 1: 1 field.*header=True if line 1 is no edge")
    np.testing.assert_array_equal(opened("title\n" + rows("sr"), header=True), ONES)
    np.testing.assert_array_equal(opened("sep=;\nsource;target\n" + rows("sr", ";")), ONES)


@pytest.mark.parametrize("option", ["symmetric", "relabel", "weights", "header", "base", "n_nodes"])
def test_types_of_options(opened, option):
    for wrong in ("no", np.ones(3), 2.5) if option not in ("weights", "base") else (np.ones(3),):
        with pytest.raises(ArgumentError, match=f"{option}: got .*(True or False|integer)"):
            opened(BODY, "g.txt", **{option: wrong})
    with pytest.raises(ArgumentError, match="weights: got 'no', and columns have no names"):
        opened(rows("srw"), weights="no")
    with pytest.raises(ArgumentError, match="seed: got 'x'. Expected: an integer"):
        load_graph("collab", seed="x")
    assert opened(BODY, "g.txt", symmetric=np.bool_(True), n_nodes=np.int64(5)).sum() == 6


def test_sizes_in_comments(opened):
    snap = "# Nodes: {} Edges: {}\n"
    for head in (snap.format(4, 5), "# Nodes: 4\n# x\n% edges = 5\n"):
        check_error(opened, head + BODY, "3 edges, and a comment states 5", "g.txt")
    np.testing.assert_array_equal(opened(snap.format(4, 3) + BODY, "g.txt"), ONES)
    assert opened(snap.format(6, 3) + BODY, "g.txt").shape == (6, 6)
    assert opened(snap.format(6, 3) + BODY, "g.txt", n_nodes=9).shape == (9, 9)
    assert opened(snap.format(3, 3) + BODY, "g.txt").shape == (4, 4)  # SNAP's numbers are sparse
    assert opened(snap.format(6, 3) + BODY, "g.txt", relabel=True).shape == (4, 4)
    from_one = "1 2\n3 2\n2 3\n"
    check_error(
        opened, snap.format(4, 3) + from_one, "base: .*4 nodes, and 1 to 3.*base=1 or", "g.txt"
    )
    assert opened(snap.format(4, 3) + from_one, "g.txt", base=0).shape == (4, 4)
    assert opened(snap.format(3, 3) + from_one, "g.txt").shape == (3, 3)
    check_error(opened, snap.format(2 * 10**9, 1) + BODY, "2000000000 rows for 3", "g.txt")
    assert opened("% asym unweighted\n% 3 7 7\n" + from_one, "g.txt").shape == (7, 7)


def test_archives_with_features_and_weights(tmp_path):
    path, ends = tmp_path / "g.npz", np.array(EDGES).T[:2].astype(int)
    np.savez(path, edge_index=ends, x=np.ones((6, 2)), y=np.ones(6), w=np.array(EDGES)[:, 2])
    matrix = load_graph(path).adjacency.toarray()
    np.testing.assert_array_equal(matrix, np.pad(A, (0, 2)))
    np.savez(path, edge_index=ends, cost=np.ones(3), x=np.ones((4, 2)))
    with pytest.raises(GraphError, match="weights='cost', or weights=False"):
        load_graph(path)
    np.savez(path, edge_index=ends, x=np.ones((3, 2)))
    with pytest.raises(GraphError, match="node 3 of 3"):
        load_graph(path)


def test_archives_about_directions(tmp_path):
    path, edges = tmp_path / "g.npz", np.array(EDGES).T[:2].astype(int)
    for name, value in (("directed", False), ("is_undirected", True), ("symmetric", np.ones(3))):
        np.savez(path, edge_index=edges, **{name: value})
        with pytest.raises(GraphError, match=f"symmetric: the member {name}.*symmetric=True if"):
            load_graph(path, weights=False)
        np.testing.assert_array_equal(
            load_graph(path, symmetric=False, weights=False).toarray(), ONES
        )
        both = load_graph(path, symmetric=True, weights=False)
        np.testing.assert_array_equal(both.toarray(), np.maximum(ONES, ONES.T))
        assert both.source.endswith("in both directions")
    assert load_graph(edges, symmetric=True).nnz == 6
    sparse.save_npz(path, sparse.csr_array(A))
    with pytest.raises(ArgumentError, match="symmetric: it is about an edge_index"):
        load_graph(path, symmetric=True)


def test_ambiguous_arrays(tmp_path):
    for edges in ([(0, 1), (2, 3)], ((0, 1), (2, 3)), [(0, 2), (1, 3)]):
        with pytest.raises(GraphError, match=r"tuples.*numpy.array\(graph\).T"):
            load_graph(edges)
    square = np.array([[0, 1], [1, 0]])
    for array in (square, square.tolist()):
        with pytest.raises(GraphError, match="edge_index of two edges, or a dense.*coo_.*csr_"):
            load_graph(array)
    np.savez(tmp_path / "g.npz", edge_index=square)
    assert load_graph(tmp_path / "g.npz").nnz == 2
    with pytest.raises(GraphError, match=r"shape \(3, 2\).*its transpose, .T"):
        load_graph(np.array(EDGES)[:, :2].astype(int))


def test_names_of_nodes(opened):
    for content in ("alice bob\nbob carol\n", "source,target\nalice,bob\n"):
        check_error(opened, content, "pandas.factorize")
    check_error(opened, "source,target\nalice,bob\n", "networkx.read_edgelist")
    check_error(opened, "0.0e+00 1.0e+00\n", r"digits, as numpy.savetxt\(..., fmt='%d'\)", "g.txt")


@pytest.mark.parametrize(
    ("header", "fields", "advice"),
    [
        ("head,relation,tail", ["s", "likes", "r"], "('head', 'tail')"),
        ("head,tail", "sr", "('head', 'tail')"),
        ("id,uid,vid", ["9", "s", "r"], "('uid', 'vid')"),
        ("source,other", "sr", "('source', 'other')"),
        ("x,other,target", ["s", "likes", "r"], "('x', 'target')"),
        ("source,target,target", ["s", "r", "7"], "('source', 1)"),
        ("src,dst,cost", "srw", "('src', 'dst', 'cost')"),
        pytest.param("src,dst," + "x" * 50_000, "srw", "('src', 'dst', 2)", id="long"),
        ("src,dst,note,cost", ["s", "r", "hm", "w"], "('src', 'dst', 'cost')"),
        (":START_ID,:END_ID,:TYPE,x", ["s", "r", "KNOWS", "w"], "(':START_ID', ':END_ID', 'x')"),
    ],
)  # fmt: skip
def test_the_proposed_columns_work(opened, header, fields, advice):
    content = f"{header}\n{rows(fields)}"
    with pytest.raises(GraphError) as caught:
        opened(content)
    assert len(str(caught.value)) < 1000
    assert str(caught.value).split("columns=")[1].startswith(advice)
    columns = eval(advice)
    np.testing.assert_array_equal(opened(content, columns=columns), A if "w" in fields else ONES)


def test_text_is_not_proposed_as_weights(opened):
    content = "source,target,relation\n" + rows(["s", "r", "likes"])
    with pytest.raises(GraphError, match="'relation' means. Expected: weights=False to ignore it"):
        opened(content)
    np.testing.assert_array_equal(opened(content, weights=False), ONES)
    content = "source,target,cost,time\n" + rows(["s", "r", "w", "7"])
    np.testing.assert_array_equal(opened(content, weights="cost"), A)
    with pytest.raises(ArgumentError, match="there is no 'price'.*'cost'"):
        opened(content, weights="price")


def test_files_that_need_no_option(opened):
    for header, fields in (
        ("id,source,target", ["9", "s", "r"]),
        ("index,source,target", ["9", "s", "r"]),
        (",source,target", ["9", "s", "r"]),
        ("Unnamed: 0,source,target", ["9", "s", "r"]),
        (":START_ID,:END_ID,:TYPE", ["s", "r", "KNOWS"]),
    ):
        np.testing.assert_array_equal(opened(f"{header}\n{rows(fields)}"), ONES)
    timed = "source,target,weight,timestamp\n" + rows(["s", "r", "w", "1082040961"])
    np.testing.assert_array_equal(opened(timed), A)


def test_edge_lists_of_networkx_with_attributes_name_its_reader(opened, tmp_path):
    for attributes in ("{}", "{'weight': 0.5}", "{'w': np.float64(0.5)}"):
        content = "".join(f"{s} {r} {attributes}\n" for s, r, w in EDGES)
        check_error(opened, content, r"line 1: .*load_graph\(networkx.read_edgelist\(path", "g.txt")
    check_error(opened, "0 1\n2 1 {'weight': 4}\n", "line 2: .*", "g.txt")
    graph = networkx.DiGraph([(0, 1), (2, 1), (1, 3)])
    networkx.write_edgelist(graph, tmp_path / "g.txt", data=False)
    np.testing.assert_array_equal(load_graph(tmp_path / "g.txt").adjacency.toarray(), ONES)


def test_decimal_commas(opened):
    for separator in (";", "\t", "|"):
        text = rows("srw", separator).replace(".", ",")
        for header in ("", separator.join(["source", "target", "weight"]) + "\n"):
            line = 1 + bool(header)
            check_error(opened, header + text, f"line {line}: .*decimal points.*decimal=','")
        check_error(opened, f"0{separator}1{separator}1\n" + text, "line 2: .*decimal points")


def test_other_endings(opened):
    for name, advice in (
        ("g.gexf", r"networkx.read_gexf\(path\)"),
        ("g.adjlist", "networkx.read_adjlist"),
        ("g.net.gz", "igraph.Graph.Read_Pajek"),
        ("g.gr", "pandas.read_csv.* load_graph.edge_index|load_graph.edge_index.*pandas.read_csv"),
        ("g.graph", "networkit.Format.METIS"),
        ("g.h5ad", "anndata.read_h5ad"),
        ("g.g6", "read_graph6"),
        ("g.json", "node_link_graph"),
        ("g.mat", "loadmat"),
        ("g.graphml.gz", r"networkx.read_graphml\(path\)"),
        ("g.gml", r"networkx.read_gml\(path, label='id'\)"),
        ("g.npy", r"load_graph\(numpy.load\(path\)\)"),
        ("g.pt", "torch.load"),
        ("g.parquet", "pandas.read_parquet"),
        ("g.graph.edgedump", "numpy.fromfile"),
        ("g.new_indptr", "numpy.fromfile"),
    ):
        check_error(opened, "x", f"no reader.*{advice}.*mtx", name)
    konect = "% asym unweighted\n1 2\n3 2\n2 4\n"
    np.testing.assert_array_equal(opened(konect, "out.moreno_lesmis"), ONES)


def test_a_reader_is_named_for_a_file_without_its_ending(opened):
    for name in ("g.dat", "g", "g.csv.old", "out.g"):
        np.testing.assert_array_equal(opened(BODY, name, reader=".txt", base=0), ONES)
    check_error(opened, BODY, "no reader for this ending.*reader='.txt'", "g.dat")
    for wrong in ("txt", 3, [".txt"]):
        with pytest.raises(ArgumentError, match="reader: there is no .*one of .*.txt"):
            opened(BODY, "g.dat", reader=wrong)
    check_error(opened, BODY, "Matrix Market", "g.dat", reader=".mtx")


MATRIX = sparse.csr_array(A[:, :3])
U, V = np.arange(8, dtype=np.float32).reshape(4, 2), np.ones((3, 2), np.float32)


def test_tables_as_operands():
    expected = accelviz.sddmm(MATRIX, U, V, device="cpu")
    frames = pd.DataFrame(U), pd.DataFrame(V)
    np.testing.assert_array_equal(accelviz.sddmm(MATRIX, *frames, device="cpu"), expected)
    product = accelviz.spmm(MATRIX, frames[1], device="cpu")
    np.testing.assert_array_equal(product, MATRIX @ V)
    X = np.full((3, 1), 1e300)
    assert np.isinf(accelviz.spmm(MATRIX, X, device="cpu")[1, 0])


@pytest.mark.parametrize(
    ("operands", "options", "message"),
    [
        ((sparse.csr_array(U), V), {}, r"U: a csr_array.*U.toarray\(\)"),
        ((U, pd.DataFrame(V).convert_dtypes()), {}, r"V: a DataFrame.*V.to_numpy\('float32'\)"),
        ((U, V), {"out": pd.Series(np.zeros(3, np.float32))}, "out: a Series.*NumPy"),
        ((U, V), {"out": np.zeros((3, 1), np.float32)}, r"out: shape \(3, 1\).*shape \(3,\)"),
        ((U, V), {"out": np.zeros(2, np.float32)}, r"out: shape \(2,\).*3 nonzeros.*shape \(3,\)"),
        ((U, V), {"out": np.zeros(3)}, "out: a ndarray of float64.*C-contiguous float32"),
        ((U[0], V), {}, r"U: shape \(2,\).*shape \(4, n_cols\)"),
        ((U, V[0]), {}, r"V: shape \(2,\).*shape \(3, 2\)"),
        ((U[:3], V), {}, r"U: shape \(3, 2\) for a matrix of 4 x 3.*shape \(4, 2\)"),
        ((U, V[:, :1]), {}, r"V: shape \(3, 1\).*shape \(3, 2\)"),
        ((U[:, None], V), {}, r"V: shape \(3, 2\).*shape \(3, 1, 2\)"),
    ],
)
def test_invalid_operands_of_sddmm(operands, options, message):
    with pytest.raises(ArgumentError, match=message):
        accelviz.sddmm(MATRIX, *operands, device="cpu", **options)


def test_invalid_operands_of_spmm():
    with pytest.raises(ArgumentError, match=r"X: a csr_array.*X.toarray\(\)"):
        accelviz.spmm(MATRIX, sparse.csr_array(V), device="cpu")
    for name in ("value", "weights"):
        with pytest.raises(ArgumentError, match=f"{name}: .*values=... for weights"):
            accelviz.spmm(MATRIX, V, device="cpu", **{name: np.ones(3)})


def test_relabelled_nodes_are_in_the_order_of_numpy_unique(opened):
    """docs/files.md documents this, so that users can order features likewise."""
    ids = np.array([900, 7, 31, 12])
    content = "".join(f"{ids[s]},{ids[r]},{w}\n" for s, r, w in EDGES)
    order = np.argsort(ids)
    np.testing.assert_array_equal(opened(content, relabel=True), A[order][:, order])


@pytest.mark.parametrize(
    ("name", "counts"),
    [("edge.csv.gz", "num-node-list.csv.gz"), ("MUTAG_A.txt", "MUTAG_graph_indicator.txt")],
)
def test_a_file_with_the_number_of_nodes_needs_an_option(tmp_path, name, counts):
    """Nodes after the last one with an edge would be missing."""
    path = tmp_path / name
    opener = gzip.open if name.endswith(".gz") else open
    with opener(path, "wt") as file:
        file.write("0,1\n2,1\n1,3\n")
    assert load_graph(path, header=False).shape == (4, 4)
    (tmp_path / counts).write_bytes(b"6\n")
    with pytest.raises(ArgumentError, match=f"n_nodes: {counts} beside {name} counts the nodes"):
        load_graph(path, header=False)
    assert load_graph(path, header=False, n_nodes=6).shape == (6, 6)


def test_a_quote_before_a_comment_is_no_warning(opened):
    banner = '"# Undirected graph: x\n# Nodes: 4 Edges: 3\n# FromNodeId\tToNodeId\n'
    with pytest.raises(GraphError, match="g.txt"):
        opened(banner + "0\t1\n1\t2\n3\t1\n", "g.txt")
