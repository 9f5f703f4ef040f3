"""Formats of graph programs: GraphML and GML through NetworkX, Pajek and adjacency lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from accelviz.datasets.convert import check_stated_size, from_edges, from_networkx
from accelviz.datasets.readers.edge_lines import NUMBER
from accelviz.datasets.readers.registry import packed, reader
from accelviz.datasets.readers.text import blocks, explained, malformed, shown, unpacked
from accelviz.errors import ArgumentError, GraphError
from accelviz.graph import MAX_SIDE, Graph

_NAMESPACE = b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
_NODE = re.compile(rb"[0-9]{1,18}")


@reader(*packed(".graphml"))
def read_graphml(path: Path, *, name: str, source: str, weights: bool | str | None = None) -> Graph:
    """Read a GraphML file of one graph; rows are in the order of its nodes.

    An undirected edge counts in both directions. `weights` names the attribute of edges that is
    their weight, or says that there is none (False). By default it is `weight`; if there is
    another attribute of numbers in its place, a decision is needed. An edge without it takes the
    attribute's default, or 1.
    """
    import networkx

    with explained(path, "a GraphML file"):
        with unpacked(path) as stream:
            text = stream.read()
        parse = networkx.GraphMLReader(force_multigraph=True)
        graphs = list(parse(string=text.replace(b"<graphml>", _NAMESPACE, 1)))
        if len(graphs) != 1:
            raise GraphError(str(path), f"there are {len(graphs)} graphs in it", "one")
        (found,) = graphs
        # The rest NetworkX (3.6) leaves out, or makes up, without a word.
        for kind, read in (("node", found.number_of_nodes()), ("edge", found.number_of_edges())):
            stated = sum(1 for each in parse.xml.iter() if each.tag.rpartition("}")[2] == kind)
            if stated != read:
                problem = f"of {stated} {kind}s stated, NetworkX makes {read}"
                expected = f"every {kind} with an id of its own, and no graph inside a node"
                raise GraphError(str(path), problem, expected)
        for key, value in found.graph.get("edge_default", {}).items():
            for *_, own in found.edges(data=True):
                own.setdefault(key, value)
    return _weighted(found, name, source, weights)


@reader(*packed(".gml"))
def read_gml(path: Path, *, name: str, source: str, weights: bool | str | None = None) -> Graph:
    """Read a GML file; rows are in the order of its nodes, and `weights` is as of GraphML."""
    import networkx

    with explained(path, "a GML file, with `multigraph 1` if edges are parallel"):
        lines = (line.decode() for _, line in _lines(path))
        found = networkx.parse_gml(lines, label="id")
    return _weighted(found, name, source, weights)


def _weighted(found: Any, name: str, source: str, weights: bool | str | None) -> Graph:
    """Make a graph of a NetworkX one, with the weights that `weights` chooses."""
    edges = [own for *_, own in found.edges(data=True)]
    numbers = {key for own in edges for key, value in own.items() if type(value) in (int, float)}
    numbers -= {"id", "key"}
    if weights is None and "weight" not in numbers and numbers:
        listed = " or ".join(f"weights={key!r}" for key in sorted(map(str, numbers))[:4])
        problem = "its edges have numbers, none of which is called weight"
        raise GraphError("weights", problem, f"{listed}, or weights=False")
    if weights is None:
        weights = "weight" if any("weight" in own for own in edges) else False
    key = "weight" if weights is True else weights
    if key is not False and not any(key in own for own in edges):
        raise GraphError("weights", f"no edge has the attribute {key!r}", "weights=False")
    source = f"{source}, weights in {key!r}" if key else source
    return from_networkx(found, name, source, key or None)


@reader(*packed(".adjlist"))
def read_adjacency_list(
    path: Path, *, name: str, source: str, base: int | None = None, symmetric: bool | None = None
) -> Graph:
    """Read an adjacency list as NetworkX writes it: a node, and those that it sends to, in a line.

    Nodes are numbers from `base` on, which has to be given if no node 0 occurs; text behind `#` is
    a comment. The file does not say whether edges have directions, and NetworkX lists an undirected
    edge once. So `symmetric` has to, unless both directions are listed.
    """
    if base not in (None, 0, 1):
        raise ArgumentError("base", f"got {base}", "0 or 1")
    senders: list[int] = []
    receivers: list[int] = []
    least, first, last = base or 0, MAX_SIDE, -1
    for number, line in _lines(path):
        fields = line.partition(b"#")[0].split()
        for field in fields:
            if not _NODE.fullmatch(field) or int(field) < least:
                expected = (
                    f"a whole number from {least} on; networkx.read_adjlist reads names, and "
                )
                expected += "load_graph takes what it returns"
                raise malformed(path, number, f"the node {shown(field)}", expected)
        if fields:
            node, *others = map(int, fields)
            senders += [node] * len(others)
            receivers += others
            first, last = min(first, node, *others), max(last, node, *others)
    if last < 0:
        raise GraphError(str(path), "there is no node in it", "a line for each node")
    if base is None and first > 0:
        raise GraphError("base", f"there is no node 0 among {first} to {last}", "base=1 or base=0")
    sender, receiver = np.array([senders, receivers], np.int64) - least
    count = last + 1 - least
    check_stated_size(count, sender.size)
    graph = from_edges(sender, receiver, None, count, name, source, symmetric=bool(symmetric))
    there = graph.adjacency.astype(bool)
    if symmetric is None and (there != there.T).nnz:
        expected = "symmetric=True if its edges have no direction, symmetric=False if they have"
        raise GraphError("symmetric", "an edge is listed in one direction only", expected)
    return graph


@reader(*packed(".net", ".pajek"))
def read_pajek(path: Path, *, name: str, source: str) -> Graph:
    """Read a Pajek network: `*Vertices n`, then `*Arcs` and `*Edges` of lines `u v [weight]`.

    An edge counts in both directions, parallel lines add up, and one without a weight counts 1.
    Networks of two modes or several relations, lists and matrices are refused.
    """
    # NetworkX (3.6) merges vertices of one label, takes edges behind arcs for arcs, and a weight
    # that it cannot read for 1.
    section, vertices = "", 0
    ends: list[tuple[int, int]] = []
    weights: list[float] = []
    for number, line in _lines(path):
        fields = line.split()
        if not fields or fields[0].startswith(b"%"):
            continue
        if fields[0].startswith(b"*"):
            section = fields[0][1:].decode("ascii", "replace").lower()
            if section == "vertices" and len(fields) == 2 and _NODE.fullmatch(fields[1]):
                vertices = int(fields[1])
            elif section not in ("network", "arcs", "edges") or (
                section != "network" and fields[1:]
            ):
                expected = "*Vertices n, *Arcs and *Edges, without a second number"
                raise malformed(path, number, shown(line), expected)
        elif section in ("arcs", "edges"):
            numbers = fields[:3]
            if len(numbers) < 2 or not all(_NODE.fullmatch(each) for each in numbers[:2]):
                raise malformed(path, number, shown(line), "two vertices, and perhaps a weight")
            first, second = int(numbers[0]) - 1, int(numbers[1]) - 1
            if not (0 <= first < vertices and 0 <= second < vertices):
                raise malformed(path, number, shown(line), f"vertices from 1 to {vertices}")
            if len(numbers) > 2 and not re.fullmatch(NUMBER, numbers[2]):
                raise malformed(path, number, f"the weight {shown(numbers[2])}", "a finite number")
            pairs = {(first, second), (second, first)} if section == "edges" else {(first, second)}
            ends += pairs
            weights += [float(numbers[2]) if len(numbers) > 2 else 1.0] * len(pairs)
        elif section != "vertices":
            raise malformed(path, number, shown(line), "a line that starts with *Vertices first")
    if not section:
        raise GraphError(str(path), "there is no line `*Vertices n`", "a Pajek network")
    check_stated_size(vertices, len(ends))
    sender, receiver = np.array(ends, np.int64).reshape(-1, 2).T
    return from_edges(sender, receiver, np.array(weights), vertices, name, source)


@reader(*packed(".gr", ".col", ".dimacs"))
def read_dimacs(path: Path, *, name: str, source: str) -> Graph:
    """Read a DIMACS graph: `p KIND nodes edges`, then arcs `a u v [weight]` or edges `e u v`.

    Nodes count from 1, lines that start with `c` are comments, an edge counts in both directions
    and once, however often it is listed.
    """
    nodes = stated = -1
    kind = b""
    rows: list[tuple[int, int]] = []
    weights: list[float] = []
    for number, line in _lines(path):
        fields = line.split()
        if not fields or fields[0] == b"c":
            continue
        ends = fields[1:3] if fields[0] != b"p" else fields[2:4]
        good = len(ends) == 2 and all(_NODE.fullmatch(each) for each in ends)
        if fields[0] == b"p" and nodes < 0 and len(fields) == 4 and good:
            nodes, stated = int(ends[0]), int(ends[1])
            continue
        weight = fields[3:] if fields[0] == b"a" and fields[3:] else [b"1", *fields[3:]]
        good = good and nodes >= 0 and fields[0] in (b"a", b"e") and kind in (b"", fields[0])
        if not good or len(weight) != 1 or not re.fullmatch(NUMBER, weight[0]):
            expected = "`p KIND nodes edges` once and first, then `a u v [weight]` or `e u v`"
            raise malformed(path, number, shown(line), expected)
        kind = fields[0]
        first, second = int(ends[0]) - 1, int(ends[1]) - 1
        if not (0 <= first < nodes and 0 <= second < nodes):
            raise malformed(path, number, shown(line), f"nodes from 1 to {nodes}")
        rows.append((first, second))
        weights.append(float(weight[0]))
    if nodes < 0:
        raise GraphError(str(path), "there is no line `p KIND nodes edges`", "a DIMACS graph")
    # Those of the coloring sets list an edge once or at both ends, and count either.
    if len(rows) != stated and (kind != b"e" or stated not in (2 * len(rows), len(rows) / 2)):
        raise GraphError(str(path), f"{len(rows)} edges", f"{stated}, as its first line states")
    check_stated_size(nodes, len(rows))
    sender, receiver = np.array(rows, np.int64).reshape(-1, 2).T
    if kind == b"e":
        both = np.concatenate([[sender, receiver], [receiver, sender]], axis=1)
        sender, receiver = np.unique(both, axis=1)
        return from_edges(sender, receiver, None, nodes, name, source)
    return from_edges(sender, receiver, np.array(weights), nodes, name, source)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a text with their numbers."""
    for first, block in blocks(path):
        yield from enumerate(block[:-1].split(b"\n"), first)
