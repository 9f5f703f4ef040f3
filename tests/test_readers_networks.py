"""Files and graphs of other libraries: NetworkX, igraph, PyTorch, pandas, SciPy."""

import functools
import gzip
import sys

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.io
from scipy import sparse

from accelviz import load_graph
from accelviz.errors import ArgumentError, GraphError

WEIGHTED = networkx.DiGraph()
WEIGHTED.add_nodes_from(range(5))
WEIGHTED.add_weighted_edges_from([(0, 1, 0.5), (1, 0, -2.0), (3, 1, 4.0), (3, 3, 8.0)])
PLAIN = networkx.Graph([(0, 1), (1, 2), (2, 2), (3, 1)])
MULTI = networkx.MultiGraph([(0, 1), (0, 1), (1, 2)])
WRITERS = {"graphml": networkx.write_graphml, "gml": networkx.write_gml}


def dense(graph):
    return graph.adjacency.toarray()


def weights_of(graph):
    return graph.values.tolist()  # noqa: PD011


def of_networkx(graph):
    """Row `v` holds what node `v` receives."""
    return networkx.to_numpy_array(graph).T


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("graph", [WEIGHTED, PLAIN, MULTI, networkx.path_graph(1)])
def test_what_networkx_writes_comes_back(tmp_path, kind, graph):
    for packed in ("", ".gz", ".bz2"):
        path = tmp_path / f"g.{kind}{packed}"
        WRITERS[kind](graph, path)
        np.testing.assert_array_equal(dense(load_graph(path)), of_networkx(graph))


def test_weights_of_another_name_are_asked_about(tmp_path, file):
    novel = networkx.Graph()
    novel.add_edge(0, 1, value=3)
    novel.add_edge(1, 2, value=5, label="x")
    for kind, write in WRITERS.items():
        path = tmp_path / f"g.{kind}"
        write(novel, path)
        with pytest.raises(GraphError, match="none of which is called weight.*weights='value'"):
            load_graph(path)
        assert weights_of(load_graph(path, weights="value")) == [3, 3, 5, 5]
        assert weights_of(load_graph(path, weights=False)) == [1, 1, 1, 1]
        with pytest.raises(GraphError, match="no edge has the attribute 'cost'"):
            load_graph(path, weights="cost")


HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
KEY = '<key id="w" for="edge" attr.name="weight" attr.type="double"><default>2</default></key>'
TWO = '<node id="a"/><node id="b"/><edge source="a" target="b"/>'
BOMB = (
    "<!DOCTYPE x ["
    + '<!ENTITY a0 "ha">'
    + "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(12))
)


def test_graphml_has_defaults_and_may_lack_its_namespace(file):
    directed = f'<graph edgedefault="directed">{TWO}</graph></graphml>'
    assert dense(load_graph(file(HEAD + KEY + directed, "g.graphml"))).tolist() == [[0, 0], [2, 0]]
    assert load_graph(file("<graphml>" + directed, "g.graphml")).nnz == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (f"{HEAD}<graph>{TWO}</graph><graph>{TWO}</graph></graphml>", "2 graphs"),
        (f"{HEAD}</graphml>", "0 graphs"),
        (f'{HEAD}<graph>{TWO}<edge source="a" target="c"/></graph></graphml>', "of 2 nodes stated"),
        (f'{HEAD}<graph><node id="x"><graph>{TWO}</graph></node></graph></graphml>', "of 3 nodes"),
        (f"{HEAD}<graph>{TWO}", "no element found|unclosed"),
        (f'{BOMB}]>{HEAD}<graph><node id="&a12;"/></graph></graphml>', "amplification|limit"),
        ("", "empty"),
        ("\0", "token"),
    ],
)
def test_graphml_that_is_wrong(file, content, says):
    path = file(content, "g.graphml")
    with pytest.raises(GraphError, match=says) as caught:
        load_graph(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("graph [ node [ id 0 ] node [ id 0 ] ]", "duplicated"),
        ("graph [ node [ id 0 ] edge [ source 0 target 1 ] ]", "undefined target"),
        (
            "graph [ node [ id 0 ] edge [ source 0 target 0 ] edge [ source 0 target 0 ] ]",
            "duplicated.*multigraph",
        ),
        ("graph [ node [ id 0 ]", "EOF|expected"),
        ("graph " + "[ a " * 5000, "g.gml"),
        ('graph [ node [ id 0 ] edge [ source 0 target 0 weight "x" ] ]', "numeric edge weights"),
        ("graph [ node [ id 0 ] edge [ source 0 target 0 weight 1.0e99 ] ]", "infinite in float32"),
    ],
)
def test_gml_that_is_wrong(file, content, says):
    with pytest.raises(GraphError, match=says) as caught:
        load_graph(file(content, "g.gml"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("graph", [WEIGHTED, PLAIN, MULTI, networkx.path_graph(1)])
def test_graphs_of_igraph(graph):
    igraph = pytest.importorskip("igraph")
    np.testing.assert_array_equal(
        dense(load_graph(igraph.Graph.from_networkx(graph))), of_networkx(graph)
    )
    with pytest.raises(ArgumentError, match="n_nodes: an object has no such option"):
        load_graph(igraph.Graph(), n_nodes=3)


EDGES = np.array([[0, 0, 2], [1, 2, 2]])
WEIGHTS = np.array([0.5, -2, 4], np.float32)
ROWS = [[0, 0, 0, 0], [0.5, 0, 0, 0], [-2, 0, 4, 0], [0, 0, 0, 0]]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor")
def test_tensors(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    path = tmp_path / "g.pt"

    def saved(content):
        torch.save(content, path)
        return path

    index, weight = torch.tensor(EDGES), torch.tensor(WEIGHTS, requires_grad=True)
    assert dense(load_graph(saved(index))).tolist() == [[0, 0, 0], [1, 0, 0], [1, 0, 1]]
    both = {"edge_index": index, "num_nodes": 4, "x": torch.ones(4, 2), "y": None}
    for key in ("edge_weight", "edge_attr"):
        for tensor in (weight, weight.to(torch.bfloat16)):
            assert dense(load_graph(saved({**both, key: tensor}))).tolist() == ROWS
    assert dense(load_graph(saved({**both, "edge_attr": weight[:, None]}))).tolist() == ROWS
    with pytest.raises(GraphError, match="weights='edge_attr', or weights=False"):
        load_graph(saved({**both, "edge_attr": torch.ones(3, 2)}))
    assert weights_of(load_graph(path, weights=False)) == [1, 1, 1]
    matrix = torch.sparse_coo_tensor(index.flip(0), weight.detach(), (4, 4), check_invariants=True)
    for tensor in (matrix, {"adj": matrix, "x": torch.ones(4)}, matrix.to_sparse_csr()):
        with pytest.raises(
            GraphError, match=r"layout torch.sparse.*scipy.sparse.coo_array\(\(tens"
        ):
            load_graph(saved(tensor))
    tensor = matrix.to_sparse_csr().to_sparse_coo().coalesce()  # as the message says
    advised = sparse.coo_array((tensor.values(), tensor.indices()), tensor.shape)
    assert dense(load_graph(advised)).tolist() == ROWS
    for content, says in (
        (torch.ones(3, 3), r"shape \(3, 3\).*2 x E"),
        (torch.zeros(2, 3), "integers"),
        (-index, "negative node"),
        (index + 2**31, "rows for 3 entries"),
        ({"x": index}, "edge_index"),
        ([1, 2], "it holds edge_index"),
        (torch.zeros(1, dtype=torch.long).expand(2, 2**40), "unpacks from"),
        (np.ones(3), "other objects, which are never loaded"),
    ):
        with pytest.raises(GraphError, match=says) as caught:
            load_graph(saved(content))
        assert "\n" not in str(caught.value)
    path.write_bytes(b"no tensor")
    with pytest.raises(GraphError, match="other objects.*or is damaged"):
        load_graph(path)


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "g.parquet"
    table = pd.DataFrame({"weight": WEIGHTS, "target": EDGES[1], "source": EDGES[0]})

    def saved(table):
        table.to_parquet(path)
        return path

    graph = load_graph(saved(table), n_nodes=4)
    assert dense(graph).tolist() == ROWS
    assert graph.source.endswith("counted from 0, weights in 'weight'")
    assert dense(load_graph(saved(table.iloc[::-1]), n_nodes=4)).tolist() == ROWS  # has an index
    assert load_graph(saved(table.assign(source=table["source"] + 2**40)), relabel=True).nnz == 3
    with pytest.raises(GraphError, match="node 1099511627778 is out of.*relabel=True"):
        load_graph(path)
    with pytest.raises(GraphError, match="not known what 'time' means.*columns="):
        load_graph(saved(table.rename(columns={"weight": "time"})))
    chosen = load_graph(path, columns=("source", "target", "time"), symmetric=True)
    assert dense(chosen)[0, 1] == dense(chosen)[1, 0] == 0.5
    for wrong, says in (
        (table.assign(source=["a", "b", "c"]), "column 'source': .*pandas.factorize"),
        (table.assign(source=[0, None, 2]), "column 'source': dtype float64"),
        (table.assign(source=[0, -1, 2]), "column 'source'"),
        (table.assign(weight=[0, np.nan, 2]), "NaN or infinite"),
        (table.assign(weight=["a", "b", "c"]), "values: dtype object|real floating"),
        (table.iloc[:0], "no edge in it"),
        (table.assign(source=10**8), "out of proportion"),
    ):
        with pytest.raises(GraphError, match=says) as caught:
            load_graph(saved(wrong))
        assert str(path) in str(caught.value)
    path.write_bytes(b"PAR1")
    with pytest.raises(GraphError, match=r"g\.parquet"):
        load_graph(path)


@pytest.mark.parametrize(
    ("ending", "package"),
    [(".pt", "torch"), (".parquet", "pyarrow")],
)
def test_a_missing_library_is_named(file, monkeypatch, ending, package):
    for module in [*sys.modules]:
        if module.partition(".")[0] == package:
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(GraphError, match=f"needs {package}, which is not.*pip install {package}"):
        load_graph(file("x", f"g{ending}"))


@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
def test_matrix_market_of_every_kind(tmp_path, field, symmetry):
    path = tmp_path / "g.mtx"
    A = np.round(4 * np.random.default_rng(1).standard_normal((6, 6)))
    A = {"general": A, "symmetric": A + A.T, "skew-symmetric": A - A.T}[symmetry]
    A = (A != 0).astype(int) if field == "pattern" else A
    if field == "pattern" and symmetry == "skew-symmetric":
        return
    scipy.io.mmwrite(path, sparse.coo_array(A.astype(int)), field=field, symmetry=symmetry)
    np.testing.assert_array_equal(dense(load_graph(path)), A)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"%%MatrixMarket", b"\xef\xbb\xbf%%matrixmarket"))
    np.testing.assert_array_equal(dense(load_graph(path)), A)


@pytest.mark.parametrize(
    ("head", "body", "says"),
    [
        ("integer general", "2 2 1\n1 2 5.5\n", "line 3: '1 2 5.5'.*integer"),
        ("real symmetric", "3 3 2\n1 2 3\n2 1 5\n", "twice or in both triangles"),
        ("real skew-symmetric", "3 3 1\n1 1 3\n", "diagonal is not zero"),
        ("complex hermitian", "2 2 1\n2 1 3 4\n", "complex"),
    ],
)
def test_matrix_market_that_scipy_would_misread(file, head, body, says):
    content = f"%%MatrixMarket matrix coordinate {head}\n{body}"
    with pytest.raises(GraphError, match=says):
        load_graph(file(content, "g.mtx"))


@pytest.mark.parametrize("pack", [functools.partial(gzip.compress, mtime=0)])
def test_a_bomb_is_refused(file, monkeypatch, pack):
    from accelviz.datasets.readers import text

    bomb = file(pack(b"0 1\n" * 250_000), "g.txt")
    assert weights_of(load_graph(bomb)) == [250_000]
    monkeypatch.setattr(text, "MOST_BYTES", 10_000)
    with pytest.raises(GraphError, match="unpacks from .* at most 100 times its size"):
        load_graph(bomb)
