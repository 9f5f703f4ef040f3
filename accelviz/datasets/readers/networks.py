"""GraphML and GML, with NetworkX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accelviz.datasets.convert import from_networkx
from accelviz.datasets.readers.registry import packed, reader
from accelviz.datasets.readers.text import explained, numbered_lines, unpacked
from accelviz.errors import GraphError
from accelviz.graph import Graph

_NAMESPACE = b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'


@reader(*packed(".graphml"))
def read_graphml(path: Path, *, name: str, source: str, weights: bool | str | None = None) -> Graph:
    """Read a GraphML file of one graph; rows are in the order of its nodes.

    An undirected edge counts in both directions. `weights` names the attribute of edges that is
    their weight, or says that there is none (False). By default it is `weight`; if there is
    another attribute of numbers in its place, a decision is needed. An edge without it takes the
    attribute's default, or 1.
    """
    import networkx

    with explained(path, "a GraphML file that networkx.read_graphml opens, of one graph"):
        with unpacked(path) as stream:
            text = stream.read()
        parse = networkx.GraphMLReader(force_multigraph=True)
        graphs = list(parse(string=text.replace(b"<graphml>", _NAMESPACE, 1)))
        if len(graphs) != 1:
            raise GraphError(str(path), f"there are {len(graphs)} graphs in it", "one")
        (graph,) = graphs
        # The rest NetworkX (3.6) leaves out, or makes up, without a word.
        for kind, count in (("node", graph.number_of_nodes()), ("edge", graph.number_of_edges())):
            stated = sum(1 for tag in parse.xml.iter() if tag.tag.rpartition("}")[2] == kind)
            if stated != count:
                problem = f"of {stated} {kind}s stated, NetworkX makes {count}"
                expected = f"every {kind} with an id of its own, and no graph inside a node"
                raise GraphError(str(path), problem, expected)
        for key, value in graph.graph.get("edge_default", {}).items():
            for *_, attributes in graph.edges(data=True):
                attributes.setdefault(key, value)
    return _weighted(graph, name, source, weights)


@reader(*packed(".gml"))
def read_gml(path: Path, *, name: str, source: str, weights: bool | str | None = None) -> Graph:
    """Read a GML file; rows are in the order of its nodes, and `weights` is as of GraphML."""
    import networkx

    with explained(path, "a GML file, with `multigraph 1` if edges are parallel"):
        lines = (line.decode() for _, line in numbered_lines(path))
        graph = networkx.parse_gml(lines, label="id")
    return _weighted(graph, name, source, weights)


def _weighted(graph: Any, name: str, source: str, weights: bool | str | None) -> Graph:
    """Make a graph of a NetworkX one, with the weights that `weights` chooses."""
    edges = [attributes for *_, attributes in graph.edges(data=True)]
    numbers = {
        key
        for attributes in edges
        for key, value in attributes.items()
        if type(value) in (int, float) and key not in ("id", "key")
    }
    if weights is None and "weight" not in numbers and numbers:
        listed = " or ".join(f"weights={key!r}" for key in sorted(map(str, numbers))[:4])
        problem = "its edges have numbers, none of which is called weight"
        raise GraphError("weights", problem, f"{listed}, or weights=False")
    if weights is None:
        weights = "weight" if any("weight" in attributes for attributes in edges) else False
    key = "weight" if weights is True else weights
    if key is not False and not any(key in attributes for attributes in edges):
        raise GraphError("weights", f"no edge has the attribute {key!r}", "weights=False")
    source = f"{source}, weights in {key!r}" if key else source
    return from_networkx(graph, name, source, key or None)
