"""Reader of edge lists: text files with one edge `source target [weight]` per line.

SNAP, KONECT and others publish graphs in this form. For an ambiguous file, the reader raises an
error that names the option to pass. `_read_start` reads everything before the first edge, `_layout`
derives the columns from that, and `_read_edges` reads the edges with pandas (`edge_table`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Floats
from accelviz.datasets.convert import check_stated_size, from_edges, plausible_nodes
from accelviz.datasets.readers import edge_table
from accelviz.datasets.readers.columns import DIRECTION, Columns, choose_columns, role
from accelviz.datasets.readers.edge_table import Layout, NodeRange
from accelviz.datasets.readers.registry import packed, reader
from accelviz.datasets.readers.text import blocks, malformed, numbered_lines, quoted
from accelviz.errors import ArgumentError, GraphError
from accelviz.graph import MAX_SIDE, Graph

#: KONECT's first line: the direction of edges, and the meaning of the third column.
_KONECT = re.compile(rb"%+\s*(sym|asym|bip)(\s+[a-z]+){0,2}\s*", re.IGNORECASE)
#: Comments that only say whether edges have a direction, as SNAP's first comment. After a colon,
#: they have one word, the name of the file.
_CLEAR = re.compile(
    rb"[#%/\s]*(un)?directed(?: (?:graph|network))?"
    rb"\s*(?:\(each (?:un)?ordered pair of nodes is saved once\))?\s*"
    rb"(?:: *(?!(?:no|none|yes|false|true|[nyft01])\s*$)\S+)?\s*",
    re.IGNORECASE,
)
#: SNAP's last comment.
_SNAP_NAMES = re.compile(rb"#\s*FromNodeId\s+ToNodeId\s*")
#: Comments after the first edge.
_COMMENTS = re.compile(rb"^[ \t]*+(?:#|%|//)[^\n]*+", re.MULTILINE)
#: Numbers of nodes and edges in SNAP's comments, and of nodes in KONECT's second line.
_STATED = re.compile(rb"(?i)\bnodes\s*[:=]\s*([0-9]{1,18})\b|\bedges\s*[:=]\s*([0-9]{1,18})\b")
_STATED_BY_KONECT = re.compile(rb"%\s*[0-9]+\s+([0-9]{1,18})\s+\1\s*")
#: A first line that defines the delimiter for Excel.
_SEPARATOR = re.compile(rb'"?sep=."?\s*', re.IGNORECASE)
#: Endings of edge lists of OGB and TUDataset, and of the files beside them with the node counts.
_NODE_COUNTS = (("edge.csv.gz", "num-node-list.csv.gz"), ("_A.txt", "_graph_indicator.txt"))
_NETWORKX = "load_graph(networkx.read_edgelist(path, nodetype=int)), in the order of its nodes"


@reader(*packed(".txt", ".csv", ".tsv", ".edges", ".edgelist"))
def read_edge_list(
    path: Path,
    *,
    name: str,
    source: str,
    base: int | str = "auto",
    n_nodes: int | None = None,
    symmetric: bool | None = None,
    relabel: bool = False,
    weights: bool | str | None = None,
    columns: Columns = None,
    header: bool | None = None,
    progress: bool | None = None,
) -> Graph:
    """Read a file of edges `source target [weight]`, plain or packed with gzip or bzip2.

    The edge `u v` becomes a nonzero in row `v`, column `u`, so that `A @ X` sums over in-neighbors.
    The weights of a repeated edge are added. Fields are separated by commas, semicolons, bars, tabs
    or blanks, the same in all lines. Lines that start with `#`, `%` or `//` are comments. The first
    other line may contain column names (`source`, `dst`, `from`, `:END_ID`, `weight`, ...), which
    determine the columns. Unknown names raise an error.

    Parameters
    ----------
    base : {0, 1, "auto"}
        Number of the first node. "auto" is 1 if there is no node 0, else 0; `source` of the graph
        states the result.
    n_nodes : int, optional
        Number of nodes; by default the number in a comment, as SNAP and KONECT write it, or the
        largest node of any edge.
    symmetric : bool, optional
        Whether each line stands for both directions. If a file lists both directions of an edge,
        they count once, and must agree in weight and number. True by default for the banners of
        undirected graphs of SNAP (`# Undirected graph: ...` to `# FromNodeId ToNodeId`) and KONECT
        (`% sym`), else False. Other comments or columns about directions, except
        `# Directed graph`, raise an error.
    relabel : bool
        Whether to renumber sparse node numbers: node `i` is entry `i` of `numpy.unique` of all node
        numbers.
    weights : bool or str, optional
        Whether edges have weights, or the name of their column. By default they have if a column's
        name says so or, without names, if there are three columns. With more columns without names
        it is required: True uses the third column, False only source and target (for timestamps).
    columns : sequence of str or int, optional
        Names, or positions from 0, of source, target and, optionally, weight.
    header : bool, optional
        Whether the first line is not an edge: it has column names, states sizes such as nodes and
        edges, or is `0,1`, which pandas writes for columns without names. Required if the first
        line is ambiguous.

    Raises
    ------
    GraphError
        If the file is malformed or ambiguous, has no edge, or has a node number out of proportion
        to the number of edges (see `plausible_nodes`) without `n_nodes` or `relabel`.
    ArgumentError
        If `base`, `n_nodes` or `columns` is invalid.
    """
    if base not in (0, 1, "auto"):
        raise ArgumentError("base", f"got {base!r}", '0, 1 or "auto"')
    if n_nodes is not None and not (isinstance(n_nodes, Integral) and 0 < n_nodes <= MAX_SIDE):
        raise ArgumentError("n_nodes", f"got {n_nodes!r}", f"1 to {MAX_SIDE}")
    if n_nodes is None and not relabel:
        _check_node_count_file(path)
    start = _read_start(path, header)
    if start.konect and base == "auto":
        base = 1
    layout = _layout(start, path, symmetric, weights, columns, header)
    layout = replace(layout, allowed=_node_range(base, n_nodes, relabel))
    is_undirected = start.is_undirected() if symmetric is None else None
    symmetric = bool(symmetric or is_undirected)
    nodes, values = _read_edges(layout, progress, is_undirected)
    if header is None and not (start.names or start.konect):
        _check_first_edge(path, nodes, values)
    if len(nodes) < start.edges:
        problem = f"{len(nodes)} edges, and a comment states {start.edges}"
        raise GraphError(str(path), problem, "a complete file, or another comment")
    if relabel:
        import pandas as pd

        codes, labels = pd.factorize(nodes.ravel(), sort=True)
        nodes = codes.astype(np.int32).reshape(-1, 2)
        first_node, count = 0, len(labels)
        if count > (n_nodes or MAX_SIDE):
            raise GraphError("nodes", f"{count} different nodes", f"{n_nodes or MAX_SIDE}")
        notes = ["numbered anew"]
    else:
        if n_nodes is None:
            n_nodes = _stated_nodes(start.nodes, base, nodes)
        first_node = int(nodes.min() > 0) if base == "auto" else int(base)
        count = int(nodes.max()) + 1 - first_node
        max_nodes = n_nodes or min(MAX_SIDE, plausible_nodes(len(nodes)))
        if count > max_nodes:  # read again with the final bound, which raises an error with a line
            allowed = _node_range(first_node, n_nodes, relabel, max_nodes)
            _read_edges(replace(layout, allowed=allowed), progress=False)
        notes = [f"counted from {first_node}"]
    if symmetric:
        notes.append("in both directions")
    if values is not None:
        position = layout.positions[-1]
        column = repr(start.names[position]) if start.names else f"column {position + 1}"
        notes.append(f"weights in {column}")
    sources, targets = (nodes - np.int32(first_node) if first_node else nodes).T
    source = f"{source}, {', '.join(notes)}"
    count = n_nodes or count
    return from_edges(sources, targets, values, count, name, source, symmetric=symmetric)


def _read_edges(
    layout: Layout, progress: bool | None, is_undirected: bool | None = None
) -> tuple[npt.NDArray[Any], Floats | None]:
    """Return nodes, shape (edges, 2), and weights or None; raise an error for the first mistake.

    `is_undirected` is what the comments before the edges say; None if the caller knows better.
    """
    nodes: list[npt.NDArray[Any]] = []
    weights: list[Floats] = []
    for block_line, block in blocks(layout.path, progress):
        if block_line < layout.line_number:
            block = block.split(b"\n", layout.line_number - block_line)[-1]
            block_line = layout.line_number
        if not block:
            continue
        if is_undirected is not None and any(sign in block for sign in (b"#", b"%", b"//")):
            for comment in _COMMENTS.findall(block):
                _check_comment(comment, is_undirected)
        edges = layout.read(block)
        if edges is None:
            raise layout.mistake(block_line, block)
        nodes.append(edges[0])
        if edges[1] is not None:
            weights.append(edges[1])
    return np.concatenate(nodes), np.concatenate(weights) if weights else None


def _stated_nodes(stated: int, base: int | str, nodes: npt.NDArray[Any]) -> int | None:
    """Return the number of nodes that a comment states, or None if larger numbers occur."""
    smallest, largest = int(nodes.min()), int(nodes.max())
    if base == "auto" and smallest > 0 and stated > largest:
        problem = f"a comment states {stated} nodes, and {smallest} to {largest} occur"
        raise GraphError("base", problem, "base=1 or base=0, the number of the first node")
    first_node = int(smallest > 0) if base == "auto" else int(base)
    if stated < largest + 1 - first_node:
        return None
    check_stated_size(stated, len(nodes))
    return stated


def _check_node_count_file(path: Path) -> None:
    """Raise an error if another file has the number of nodes: the last nodes may have no edge."""
    for ending, counts_ending in _NODE_COUNTS:
        counts = path.with_name(path.name.removesuffix(ending) + counts_ending)
        if path.name.endswith(ending) and counts.is_file():
            problem = f"{counts.name} beside {path.name} counts the nodes"
            raise ArgumentError("n_nodes", problem, "n_nodes=..., the number that it says")


def _check_first_edge(path: Path, nodes: npt.NDArray[Any], weights: Floats | None) -> None:
    """Raise an error if the first edge may be a line with the numbers of nodes and edges."""
    edges_after = len(nodes) - 1
    numbers = [int(node) for node in nodes[0]] + ([] if weights is None else [float(weights[0])])
    *node_counts, edge_count = numbers
    if not edges_after or edge_count not in (edges_after, edges_after / 2):
        return
    if min(node_counts) >= nodes[1:].max():
        problem = f"the first line may be an edge, or state that {edge_count:g} edges follow"
        raise GraphError(str(path), problem, "header=True if it states sizes, header=False if not")


def _node_range(
    base: int | str, n_nodes: int | None, relabel: bool, max_nodes: int | None = None
) -> NodeRange:
    """Return the valid node numbers; `max_nodes` is the bound of `plausible_nodes`, if known."""
    if relabel:
        return NodeRange(0, 2**63 - 2, "does not fit in 64 bits", "less than 2^63 - 1")
    min_base, max_base = (0, 1) if base == "auto" else (int(base), int(base))
    if n_nodes is not None:
        high = n_nodes - 1 + max_base
        auto = base == "auto"
        advice = f"0 to {high - 1}, or 1 to {high}" if auto else f"{min_base} to {high}"
        return NodeRange(min_base, high, f"is too large for {n_nodes} nodes", advice)
    if max_nodes is not None and max_nodes < MAX_SIDE:
        reason = f"is out of proportion to the number of edges, which allows {max_nodes} nodes"
        advice = "relabel=True to number sparse nodes anew, or n_nodes if so many are meant"
        return NodeRange(min_base, max_nodes - 1 + max_base, reason, advice)
    high = MAX_SIDE - 1 + max_base
    advice = f"up to {high}; relabel=True numbers them anew"
    return NodeRange(min_base, high, "does not fit in 32 bits", advice)


@dataclass(frozen=True)
class _Start:
    """The lines up to the first edge.

    `line_number`, `line` and `fields` belong to the first edge. `names` are the column names, if
    any. `konect` is "sym" or "asym" from KONECT's banner, else empty. `nodes` and `edges` are the
    sizes in comments, or 0.
    """

    line_number: int
    line: bytes
    fields: list[str]
    names: list[str] | None
    comments: list[bytes]
    konect: bytes
    nodes: int
    edges: int

    def is_undirected(self) -> bool:
        """Return whether a banner says so; raise an error for other comments about directions."""
        first = _CLEAR.fullmatch(self.comments[0]) if self.comments else None
        is_snap = first and first[1] and any(map(_SNAP_NAMES.fullmatch, self.comments))
        is_undirected = self.konect == b"sym" or bool(is_snap)
        for comment in self.comments[1 if self.konect or is_snap else 0 :]:
            _check_comment(comment, is_undirected)
        return is_undirected


def _check_comment(comment: bytes, is_undirected: bool) -> None:
    """Raise an error for a comment about directions, unless it only says that edges have one."""
    clear = _CLEAR.fullmatch(comment)
    if DIRECTION.search(comment.decode("latin-1")) and not (
        clear and bool(clear[1]) == is_undirected
    ):
        problem = f"the comment {quoted(comment.strip())} may say whether edges have a direction"
        expected = "symmetric=True if they have none, or symmetric=False"
        raise GraphError("symmetric", problem, expected)


def _read_start(path: Path, header: bool | None) -> _Start:
    names, skip_line, comments, sizes = None, bool(header), [], [0, 0]
    for number, line in numbered_lines(path):
        if edge_table.is_comment(line):
            if number == 1 and re.match(rb"(?i)%%?\s*matrixmarket", line):
                raise GraphError(str(path), "it is a MatrixMarket file", "the ending .mtx")
            comments.append(line)
            for match in _STATED.finditer(line):
                sizes = [int(match[1] or sizes[0]), int(match[2] or sizes[1])]
        elif line.strip(b" \t") and not (number == 1 and _SEPARATOR.fullmatch(line)):
            if names is None:
                names = edge_table.names_of(line)
                if names or skip_line:
                    skip_line = False
                    continue
            break
    else:
        raise GraphError(str(path), "there is no edge in it", "lines like `0 1`")
    banner = _KONECT.fullmatch(comments[0]) if comments else None
    konect = banner[1].lower() if banner else b""
    if konect == b"bip":
        expected = "a SciPy matrix made of it, as its two sides are both counted from 1"
        raise GraphError(str(path), "it is a bipartite graph of KONECT", expected)
    if konect and len(comments) > 1 and (counts := _STATED_BY_KONECT.fullmatch(comments[1])):
        sizes = [int(counts[1]), 0]
    fields = edge_table.split(line, edge_table.delimiter_of(line))
    if names is None and comments:  # names in a comment, as numpy.savetxt(header=...) writes them
        text = comments[-1].strip(b"#%/ \t\n").decode("utf-8", "replace")
        words = re.split(r"[\s,;|]+", text)
        if len(words) == len(fields) and {"source", "target"} <= {*map(role, words)}:
            names = words
    return _Start(number, line, fields, names, comments, konect, *sizes)


def _layout(
    start: _Start,
    path: Path,
    symmetric: bool | None,
    weights: bool | str | None,
    columns: Columns,
    header: bool | None,
) -> Layout:
    """Derive the layout from the first edge and the column names, with any node numbers."""
    number, line, fields, names = start.line_number, start.line, start.fields, start.names
    if re.search(rb"\{.*\}\s*$", line):
        raise malformed(path, number, f"{quoted(line)} has attributes of NetworkX", _NETWORKX)
    delimiter = edge_table.delimiter_of(line)
    count = len(fields)
    may_be_header = number == 1 and fields in edge_table.POSITIONS and delimiter != " "
    if may_be_header and header is None and ".csv" in path.name.lower():
        problem = f"{quoted(line)} may be an edge, or what pandas writes over columns without names"
        expected = "header=False if it is an edge, header=True if not"
        raise malformed(path, number, problem, expected)
    if names is not None and count != len(names):
        problem = f"{count} field{'s' * (count > 1)} in {quoted(line)}"
        expected = f"{len(names)}, as there are names, and decimal points: pandas.read_csv("
        expected += "decimal=',') reads commas"
        raise malformed(path, number, problem, expected)
    direction_columns = [
        position
        for position, (name, field) in enumerate(zip(names or (), fields, strict=False))
        if DIRECTION.search(name) or DIRECTION.fullmatch(field)  # such as Gephi's column `Type`
    ]
    if names and direction_columns and symmetric is None:
        name, field = names[direction_columns[0]], fields[direction_columns[0]]
        expected = "symmetric=True if no edge has a direction, symmetric=False if all have one"
        raise GraphError("symmetric", f"the column {name!r} says {field!r}", expected)
    if start.konect and weights is columns is None:
        weights = count > 2
    positions = choose_columns(names, fields, columns, weights, direction_columns)
    guessed_weights = not (start.names or start.konect) and weights is columns is None
    allowed = _node_range("auto", None, False)
    return Layout(path, number, line, delimiter, count, positions, allowed, guessed_weights)
