"""Edge lists, one edge on each line, as SNAP, KONECT and most others publish graphs."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.arrays import Floats
from accelviz.datasets.convert import check_stated_size, from_edges, plausible_nodes
from accelviz.datasets.readers import edge_table
from accelviz.datasets.readers.columns import Columns, choose_columns, role
from accelviz.datasets.readers.edge_table import Layout, NodeRange
from accelviz.datasets.readers.registry import packed, reader
from accelviz.datasets.readers.text import blocks, malformed, numbered_lines, quoted
from accelviz.errors import ArgumentError, GraphError
from accelviz.graph import MAX_SIDE, Graph

#: KONECT's first line: whether edges have a direction, and what the third column holds.
_KONECT = re.compile(rb"%+\s*(sym|asym|bip)(\s+[a-z]+){0,2}\s*", re.IGNORECASE)
#: SNAP's first and last comment.
_SNAP = re.compile(rb"# Undirected graph\b.*", re.DOTALL)
_SNAP_NAMES = re.compile(rb"#\s*FromNodeId\s+ToNodeId\s*")
#: Comments that may say that edges have no direction; SNAP's of a directed graph is none.
_DIRECTION = re.compile(
    rb"(?!\W*directed( (graph|network)\b|\s*$))(?=.*(direct(ed|ion)|\bsym(metric)?\b))",
    re.IGNORECASE,
)
#: What SNAP states of the nodes and of the edges, and KONECT of the nodes.
_STATED = re.compile(rb"(?i)\bnodes\s*[:=]\s*([0-9]{1,18})\b|\bedges\s*[:=]\s*([0-9]{1,18})\b")
_STATED_BY_KONECT = re.compile(rb"%\s*[0-9]+\s+([0-9]{1,18})\s+\1\s*")
#: What Gephi writes in the column `Type`, and others in a column `directed`.
_DIRECTIONS = {"undirected", "mutual", "directed"}
#: What tells Excel the delimiter.
_SEPARATOR = re.compile(rb'"?sep=."?\s*', re.IGNORECASE)
#: Files of OGB's and TU's data sets that count the nodes of the edge list beside them.
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
    A repeated edge adds up. Fields are separated by commas, semicolons, bars, tabs or blanks, the
    same in all lines. Lines that start with `#`, `%` or `//` are comments; the first other line
    may hold the names of the columns, which then count (`source`, `dst`, `from`, `:END_ID`,
    `weight`, ...), in any order. A name that does not say what it is, is asked about.

    Parameters
    ----------
    base : {0, 1, "auto"}
        The number of the first node. "auto" takes 1 if no node 0 occurs; `source` says which.
    n_nodes : int, optional
        Number of nodes; by default what a comment states, as SNAP and KONECT do, or the largest one
        that occurs.
    symmetric : bool, optional
        Whether each line stands for both directions. A file may list both of an edge, which then
        counts once; if they differ in weight or number, it is refused. By default True under the
        banners of undirected graphs of SNAP (`# Undirected graph: ...` to `# FromNodeId ToNodeId`)
        and KONECT (`% sym`), else False. Any other comment or column that speaks of directions is
        asked about.
    relabel : bool
        Number the nodes that occur anew, for sparse node numbers: node `i` is the `i`-th of
        `numpy.unique` of all that occur.
    weights : bool or str, optional
        Whether there are weights. By default there are if a column's name says so or, without
        names, if there are three columns; more columns need a decision: True takes the third,
        False ignores all but source and target (so do it for timestamps). A name is that of a
        column.
    columns : sequence of str or int, optional
        Where source, target and perhaps weight stand: two or three names, or positions from 0.
    header : bool, optional
        Whether the first line is no edge: it has names, states sizes such as nodes and edges, or
        is `0,1`, which pandas writes over columns without names. A file whose first line may be
        either is refused without it.

    Raises
    ------
    GraphError
        Also if there is no edge, or if the largest node is out of proportion to the number of edges
        (see `plausible_nodes`) and neither `n_nodes` nor `relabel` is given.
    ArgumentError
        If `base`, `n_nodes` or `columns` has another value than the above.
    """
    if base not in (0, 1, "auto"):
        raise ArgumentError("base", f"got {base!r}", '0, 1 or "auto"')
    if n_nodes is not None and not (isinstance(n_nodes, Integral) and 0 < n_nodes <= MAX_SIDE):
        raise ArgumentError("n_nodes", f"got {n_nodes!r}", f"1 to {MAX_SIDE}")
    if n_nodes is None and not relabel:
        _ask_for_nodes(path)
    start = _read_start(path, header)
    if start.konect and base == "auto":
        base = 1
    layout = _layout(start, path, symmetric, weights, columns, header)
    layout = replace(layout, allowed=_allowed(base, n_nodes, relabel))
    if symmetric is None:
        symmetric = start.says_undirected()
    parts = _read(layout, progress)
    nodes = np.concatenate([part[0] for part in parts])
    numbers = None
    if parts[0][1] is not None:
        numbers = np.concatenate([part[1] for part in parts if part[1] is not None])
    parts.clear()
    if header is None and not (start.names or start.konect):
        _ask_about_sizes(path, nodes, numbers)
    if len(nodes) < start.edges:
        problem = f"{len(nodes)} edges, and a comment states {start.edges}"
        raise GraphError(str(path), problem, "a complete file, or another comment")
    if relabel:
        codes, labels = pd.factorize(nodes.ravel(), sort=True)
        nodes = codes.astype(np.int32).reshape(-1, 2)
        least, count = 0, len(labels)
        if count > (n_nodes or MAX_SIDE):
            raise GraphError("nodes", f"{count} different nodes", f"{n_nodes or MAX_SIDE}")
        notes = ["numbered anew"]
    else:
        n_nodes = _stated_nodes(start.nodes, base, nodes) if n_nodes is None else n_nodes
        least = int(base) if base != "auto" else int(nodes.min() > 0)
        count = int(nodes.max()) + 1 - least
        most = n_nodes or min(MAX_SIDE, plausible_nodes(len(nodes)))
        if count > most:  # reading once more, now that the bound is known, says where
            _read(replace(layout, allowed=_allowed(least, n_nodes, relabel, most)), progress=False)
        notes = [f"counted from {least}"]
    if symmetric:
        notes.append("in both directions")
    if numbers is not None:
        last = layout.take[-1]
        notes.append(
            f"weights in {repr(start.names[last]) if start.names else f'column {last + 1}'}"
        )
    sources, targets = (nodes - np.int32(least) if least else nodes).T
    source = f"{source}, {', '.join(notes)}"
    count = n_nodes or count
    return from_edges(sources, targets, numbers, count, name, source, symmetric=symmetric)


def _read(layout: Layout, progress: bool | None) -> list[tuple[Any, Floats | None]]:
    """Read nodes and weights, in parts; raise an error for the first mistake."""
    parts = []
    for first_line, block in blocks(layout.path, progress):
        if first_line < layout.number:
            block = block.split(b"\n", layout.number - first_line)[-1]
            first_line = layout.number
        if not block:
            continue
        part = layout.read(block)
        if part is None:
            raise layout.mistake(first_line, block)
        parts.append(part)
    return parts


def _stated_nodes(stated: int, base: int | str, nodes: npt.NDArray[Any]) -> int | None:
    """Return how many nodes a comment states, unless nodes have larger numbers."""
    least, most = int(nodes.min()), int(nodes.max())
    if base == "auto" and least > 0 and stated > most:
        problem = f"a comment states {stated} nodes, and {least} to {most} occur"
        raise GraphError("base", problem, "base=1 or base=0, the number of the first node")
    first = int(least > 0) if base == "auto" else int(base)
    if stated < most + 1 - first:
        return None
    check_stated_size(stated, len(nodes))
    return stated


def _ask_for_nodes(path: Path) -> None:
    """Refuse an edge list whose nodes another file counts: the last may have no edge."""
    for ending, counts in _NODE_COUNTS:
        beside = path.with_name(path.name.removesuffix(ending) + counts)
        if path.name.endswith(ending) and beside.is_file():
            problem = f"{beside.name} beside {path.name} counts the nodes"
            raise ArgumentError("n_nodes", problem, "n_nodes=..., the number that it says")


def _ask_about_sizes(path: Path, nodes: npt.NDArray[Any], weights: Floats | None) -> None:
    """Refuse a first line that may be an edge, or the numbers of nodes and edges behind it."""
    edges = len(nodes) - 1
    first = [int(node) for node in nodes[0]] + ([] if weights is None else [float(weights[0])])
    if edges and first[-1] in (edges, edges / 2) and min(first[:-1]) >= nodes[1:].max():
        problem = f"the first line may be an edge, or state that {first[-1]:g} edges follow"
        raise GraphError(str(path), problem, "header=True if it states sizes, header=False if not")


def _allowed(
    base: int | str, n_nodes: int | None, relabel: bool, most: int | None = None
) -> NodeRange:
    if relabel:
        return NodeRange(0, 2**63 - 2, "does not fit in 64 bits", "less than 2^63 - 1")
    # As long as it is not known where counting starts, either may be right.
    low, past = (0, 1) if base == "auto" else (int(base), int(base))
    if n_nodes is not None:
        high = n_nodes - 1 + past
        advice = f"0 to {high - 1}, or 1 to {high}" if past > low else f"{low} to {high}"
        return NodeRange(low, high, f"is too large for {n_nodes} nodes", advice)
    if most is not None and most < MAX_SIDE:
        reason = f"is out of proportion to the number of edges, which allows {most} nodes"
        advice = "relabel=True to number sparse nodes anew, or n_nodes if so many are meant"
        return NodeRange(low, most - 1 + past, reason, advice)
    high = MAX_SIDE - 1 + past
    advice = f"up to {high}; relabel=True numbers them anew"
    return NodeRange(low, high, "does not fit in 32 bits", advice)


@dataclass(frozen=True)
class _Start:
    """What stands before the first edge, and that edge.

    `number`, `line` and `fields` are those of the edge, `names` the columns' names if there are
    any, `konect` what KONECT's banner says of directions, `nodes` and `edges` the sizes that
    comments state.
    """

    number: int
    line: bytes
    fields: list[str]
    names: list[str] | None
    comments: list[bytes]
    konect: bytes
    nodes: int
    edges: int

    def says_undirected(self) -> bool:
        """Say whether a banner says that edges have no direction; ask if another comment may."""
        snap = any(map(_SNAP.match, self.comments[:1]))
        if self.konect or (snap and any(map(_SNAP_NAMES.fullmatch, self.comments))):
            return self.konect != b"asym"
        for comment in self.comments:
            if _DIRECTION.match(comment):
                problem = (
                    f"the comment {quoted(comment.strip())} may say that edges have no direction"
                )
                expected = "symmetric=True if they have none, or symmetric=False"
                raise GraphError("symmetric", problem, expected)
        return False


def _read_start(path: Path, header: bool | None) -> _Start:
    names, skip, comments, sizes = None, bool(header), [], [0, 0]
    for number, line in numbered_lines(path):
        if edge_table.is_comment(line):
            if number == 1 and re.match(rb"(?i)%%?\s*matrixmarket", line):
                raise GraphError(str(path), "it is a MatrixMarket file", "the ending .mtx")
            comments.append(line)
            for stated in _STATED.finditer(line):
                sizes = [int(stated[1] or sizes[0]), int(stated[2] or sizes[1])]
        elif line.strip(b" \t") and not (number == 1 and _SEPARATOR.fullmatch(line)):
            if names is None:
                names = edge_table.names_of(line)
                if names or skip:
                    skip = False
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
    if names is None and comments:  # as `numpy.savetxt(..., header=...)` writes them
        words = comments[-1].strip(b"#%/ \t\n").decode("utf-8", "replace")
        said = re.split(r"[\s,;|]+", words)
        if len(said) == len(fields) and {"source", "target"} <= {*map(role, said)}:
            names = said
    return _Start(number, line, fields, names, comments, konect, *sizes)


def _layout(
    start: _Start,
    path: Path,
    symmetric: bool | None,
    weights: bool | str | None,
    columns: Columns,
    header: bool | None,
) -> Layout:
    """Return the layout that the first edge, and the names before it, show, for any nodes."""
    number, line, fields, names = start.number, start.line, start.fields, start.names
    if re.search(rb"\{.*\}\s*$", line):
        raise malformed(path, number, f"{quoted(line)} has attributes of NetworkX", _NETWORKX)
    delimiter = edge_table.delimiter_of(line)
    count = len(fields)
    perhaps = number == 1 and fields in edge_table.POSITIONS and delimiter != " "
    if perhaps and header is None and ".csv" in path.name.lower():
        problem = f"{quoted(line)} may be an edge, or what pandas writes over columns without names"
        expected = "header=False if it is an edge, header=True if not"
        raise malformed(path, number, problem, expected)
    if names is not None and count != len(names):
        problem = f"{count} field{'s' * (count > 1)} in {quoted(line)}"
        expected = f"{len(names)}, as there are names, and decimal points: pandas.read_csv("
        expected += "decimal=',') reads commas"
        raise malformed(path, number, problem, expected)
    named = list(zip(names or (), fields, strict=False))
    directions = [
        at
        for at, (name, field) in enumerate(named)
        if name.lower() == "directed" or field.lower() in _DIRECTIONS
    ]
    if directions and symmetric is None:
        name, field = named[directions[0]]
        expected = "symmetric=True if no edge has a direction, symmetric=False if all have one"
        raise GraphError("symmetric", f"the column {name!r} says {field!r}", expected)
    if start.konect and weights is columns is None:
        weights = count > 2
    take = choose_columns(names, fields, columns, weights, directions)
    doubtful = not (start.names or start.konect) and weights is columns is None
    anything = _allowed("auto", None, False)
    return Layout(path, number, line, delimiter, count, take, anything, doubtful)
