"""Files that other libraries wrote: NetworkX, PyTorch, h5py, pandas, SciPy."""

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


@pytest.mark.parametrize("graph", [WEIGHTED, PLAIN, MULTI])
def test_networkx_s_edge_lists_with_attributes(tmp_path, graph):
    path = tmp_path / "g.edgelist"
    networkx.write_edgelist(graph, path)
    found = load_graph(path, base=0, n_nodes=len(graph), symmetric=not graph.is_directed())
    np.testing.assert_array_equal(dense(found), of_networkx(graph))


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


def test_adjacency_lists(tmp_path, file):
    path = tmp_path / "g.adjlist"
    networkx.write_adjlist(PLAIN, path)
    with pytest.raises(GraphError, match="one direction only.*symmetric=True.*symmetric=False"):
        load_graph(path)
    np.testing.assert_array_equal(dense(load_graph(path, symmetric=True)), of_networkx(PLAIN))
    networkx.write_adjlist(WEIGHTED, path)
    expected = of_networkx(WEIGHTED) != 0
    np.testing.assert_array_equal(dense(load_graph(path, symmetric=False)), expected)
    both = file("1 2\n2 1\n# x\n4\n", "g.adjlist")
    assert dense(load_graph(both, base=1)).sum() == 2
    assert load_graph(both, base=0).shape == (5, 5)
    with pytest.raises(GraphError, match="base: there is no node 0 among 1 to 4.*base=1 or base=0"):
        load_graph(both)
    for content, says in (
        ("\n# x\n", "there is no node in it"),
        ("0 a\n", "line 1: the node 'a'.*read_adjlist"),
        ("0 1\n1 -2\n", "line 2: the node '-2'"),
        ("0 1_0\n", "the node '1_0'"),
        ("0 999999999999\n", "rows for 1 entries"),
    ):
        with pytest.raises(GraphError, match=says):
            load_graph(file(content, "g.adjlist"))
    with pytest.raises(GraphError, match="line 1: the node '0'.*from 1"):
        load_graph(file("0 1\n", "g.adjlist"), base=1)


PAJEK = (
    "*Network x\n*Vertices 4\n1 same\n2 same\n% c\n*Arcs\n1 2 2.5\n1 2\n*Edges\n3 2 4 c red\n4 4\n"
)


def test_pajek(tmp_path, file):
    with pytest.raises(GraphError, match="no line `.Vertices n`"):
        load_graph(file("\n% x\n", "g.net"))
    expected = np.zeros((4, 4))
    expected[1, 0], expected[1, 2], expected[2, 1], expected[3, 3] = 3.5, 4, 4, 1
    for name in ("g.net", "g.pajek"):
        found = load_graph(file(PAJEK, name))  # vertices of one label stay two
        np.testing.assert_array_equal(dense(found), expected)
    path = tmp_path / "g.net"
    networkx.write_pajek(WEIGHTED, path)
    np.testing.assert_array_equal(dense(load_graph(path)), of_networkx(WEIGHTED))
    networkx.write_pajek(MULTI, path)
    np.testing.assert_array_equal(dense(load_graph(path)), of_networkx(MULTI))
    for old, new, says in (
        ("*Vertices 4", "*Vertices 4 2", "line 2: .*without a second"),
        ("*Arcs", "*Arcs :1", "line 6"),
        ("*Arcs", "*Arcslist", "line 6"),
        ("*Arcs", "*Matrix", "line 6"),
        ("1 2 2.5", "1 2 2,5", "line 7: the weight '2,5'"),
        ("1 2 2.5", "1 5", "line 7: .*vertices from 1 to 4"),
        ("1 2 2.5", "1", "line 7"),
        ("*Vertices 4", "*Vertices 2000000000", "rows for"),
        ("*Vertices 4", "*Network", r"line 3: .*\*Vertices first"),
    ):
        with pytest.raises(GraphError, match=says):
            load_graph(file(PAJEK.replace(old, new), "g.net"))


def test_dimacs(file):
    arcs = "c New York\np sp 3 3\na 1 2 803\na 2 3 158\na 2 3 2\n"
    assert dense(load_graph(file(arcs, "g.gr"))).tolist() == [[0, 0, 0], [803, 0, 0], [0, 160, 0]]
    edges = "c queens\np edge 3 4\ne 1 2\ne 2 1\ne 3 2\ne 2 3\n"
    for name in ("g.col", "g.dimacs", "g.col.gz"):
        packed = gzip.compress(edges.encode()) if name.endswith("gz") else edges
        found = dense(load_graph(file(packed, name)))
        assert found.tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    for old, new, says in (
        ("p sp 3 3", "p sp 3 4", "3 edges.*4, as its first"),
        ("p sp 3 3\n", "", "line 2: .*once and first"),
        ("a 1 2 803", "a 1 4 803", "line 3: .*nodes from 1 to 3"),
        ("a 1 2 803", "a 1 2 x", "line 3"),
        ("a 1 2 803", "e 1 2", "line 4"),
        ("a 1 2 803", "e 1 2 803", "line 3"),
        ("a 1 2 803", "1 2", "line 3"),
        ("a 1 2 803", "a 1 -2", "line 3"),
    ):
        with pytest.raises(GraphError, match=says):
            load_graph(file(arcs.replace(old, new), "g.gr"))
    with pytest.raises(GraphError, match="no line `p KIND"):
        load_graph(file("c only\n", "g.gr"))


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
        for each in (weight, weight.to(torch.bfloat16)):
            assert dense(load_graph(saved({**both, key: each}))).tolist() == ROWS
    assert dense(load_graph(saved({**both, "edge_attr": weight[:, None]}))).tolist() == ROWS
    with pytest.raises(GraphError, match="weights='edge_attr', or weights=False"):
        load_graph(saved({**both, "edge_attr": torch.ones(3, 2)}))
    assert weights_of(load_graph(path, weights=False)) == [1, 1, 1]
    options = {"check_invariants": True}
    matrix = torch.sparse_coo_tensor(index.flip(0), weight.detach(), (4, 4), **options)
    for each in (matrix, matrix.coalesce().to_sparse_csr(), matrix.coalesce().to_sparse_csc()):
        assert dense(load_graph(saved(each))).tolist() == ROWS
    with pytest.raises(GraphError, match="among others"):
        load_graph(saved({"adj": matrix, "x": torch.ones(4)}))
    for content, says in (
        (torch.ones(3, 3), r"shape \(3, 3\).*2 x E"),
        (torch.zeros(2, 3), "integers"),
        (-index, "negative node"),
        (index + 2**31, "rows for 3 entries"),
        ({"x": index}, "edge_index"),
        ([1, 2], "g.pt"),
        (torch.zeros(1, dtype=torch.long).expand(2, 2**40), "unpacks from"),
        (np.ones(3), "other objects, which are never loaded"),
    ):
        with pytest.raises(GraphError, match=says) as caught:
            load_graph(saved(content))
        assert "\n" not in str(caught.value)
    path.write_bytes(b"no tensor")
    with pytest.raises(GraphError, match="other objects.*or is damaged"):
        load_graph(path)


def test_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "g.h5"
    A = sparse.csr_array(np.array(ROWS, np.float32))

    def saved(**groups):
        with h5py.File(path, "w") as file:
            for name, (fields, attributes) in groups.items():
                group = file.create_group(name)
                group.attrs.update(attributes)
                for key, value in fields.items():
                    group[key] = value
        return path

    def stored(matrix, **attributes):
        fields = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
        return fields, {"shape": matrix.shape, **attributes}

    anndata = {"encoding-type": "csr_matrix"}
    assert dense(load_graph(saved(X=stored(A, **anndata)))).tolist() == ROWS
    columns = {"encoding-type": "csc_matrix"}
    assert dense(load_graph(saved(X=stored(A.tocsc(), **columns)))).tolist() == ROWS
    tenx = stored(A.tocsc())
    tenx = {**tenx[0], "shape": A.shape, "barcodes": [b"a", b"b"]}, {}
    with pytest.raises(GraphError, match='how its matrix is stored.*form="csr" or form="csc"'):
        load_graph(saved(matrix=tenx))
    assert dense(load_graph(path, form="csc")).tolist() == ROWS
    edges = {"edge_index": EDGES, "edge_weight": WEIGHTS, "num_nodes": 4}, {}
    assert dense(load_graph(saved(g=edges))).tolist() == ROWS
    saved(g=edges, h=stored(A, **anndata))
    with pytest.raises(GraphError, match="2 groups hold a graph.*key='g' or key='h'"):
        load_graph(path)
    assert dense(load_graph(path, key="/h")).tolist() == ROWS
    with pytest.raises(ArgumentError, match="key: no graph in 'k'.*g, h"):
        load_graph(path, key="k")
    with pytest.raises(ArgumentError, match="form: got 'coo'"):
        load_graph(path, form="coo")
    with pytest.raises(GraphError, match="0 groups hold a graph"):
        load_graph(saved(g=({"x": EDGES}, {})))
    with pytest.raises(GraphError, match="lacks a shape"):
        load_graph(saved(g=(stored(A)[0], {})))
    wrong = stored(A, **anndata)
    wrong[0]["indices"] = wrong[0]["indices"] + 9
    with pytest.raises(GraphError, match=r"g\.h5"):
        load_graph(saved(g=wrong))
    with h5py.File(path, "w") as file:
        file.create_dataset("edge_index", (2, 2**40), "i8", chunks=(2, 64))
    with pytest.raises(GraphError, match="unpacks from"):
        load_graph(path)
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(40))
    with pytest.raises(GraphError, match=r"g\.h5"):
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
    [(".pt", "torch"), (".h5", "h5py"), (".parquet", "pyarrow")],
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
