"""Edge lists, one edge on each line, as SNAP, KONECT and most others publish graphs."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.arrays import Floats
from accelviz.datasets.convert import check_stated_size, from_edges, plausible_nodes
from accelviz.datasets.readers import columns as columns_of
from accelviz.datasets.readers import edge_lines
from accelviz.datasets.readers.columns import Columns
from accelviz.datasets.readers.edge_lines import Layout, NodeRange, is_comment
from accelviz.datasets.readers.registry import packed, reader
from accelviz.datasets.readers.text import blocks, malformed, shown
from accelviz.errors import ArgumentError, GraphError
from accelviz.graph import MAX_SIDE, Graph

#: A comment that says that edges have no direction, as SNAP does; and one that may mean it.
_UNDIRECTED = re.compile(rb"[\s#%/]*+undirected(\s+(graph|network|edges)\b|\s*$)", re.IGNORECASE)
_PERHAPS = re.compile(rb"undirected|directed\W+(no|false|0)\b|^\W*sym\b", re.IGNORECASE)
#: What SNAP states of the nodes and of the edges, and KONECT of the nodes.
_STATED = re.compile(rb"(?i)\bnodes\s*[:=]\s*([0-9]{1,18})\b|\bedges\s*[:=]\s*([0-9]{1,18})\b")
_STATED_BY_KONECT = re.compile(rb"%\s*[0-9]+\s+([0-9]{1,18})\s+\1\s*")
#: KONECT's first line: whether edges have a direction, and what the third column holds.
_KONECT = re.compile(rb"%+\s*(sym|asym|bip)(\s+[a-z]+){0,2}\s*", re.IGNORECASE)
#: What NetworkX writes behind an edge: its attributes.
_ATTRIBUTES = re.compile(rb"(?m)[ \t]\{([^\n]*)\}[ \t]*$")
_WEIGHT = rb"'%b': (?:np\.[a-z0-9]+\()?+(%b)\)?+"
#: What tells Excel the delimiter.
_SEPARATOR = re.compile(rb'"?sep=."?\s*', re.IGNORECASE)


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
    """Read a file of edges `sender receiver [weight]`, plain or packed with gzip or bzip2.

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
        counts once; if they differ in weight or number, it is refused. By default only if a comment
        says so, `# Undirected graph` of SNAP or `% sym` of KONECT, or Gephi's column `Type`.
    relabel : bool
        Number the nodes that occur anew, for sparse node numbers: node `i` is the `i`-th of
        `numpy.unique` of all that occur.
    weights : bool or str, optional
        Whether there are weights. By default there are if a column's name says so or, without
        names, if there are three columns; more columns need a decision: True takes the third,
        False ignores all but sender and receiver (so do it for timestamps). A name is that of a
        column, or of an attribute that NetworkX wrote.
    columns : sequence of str or int, optional
        Where sender, receiver and perhaps weight stand: two or three names, or positions from 0.
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
    _check_numbering(base, n_nodes)
    asked = _Asked(path, weights, columns, header, symmetric)
    found = _collect(asked, _allowed(base, n_nodes, relabel), progress)
    if not found.nodes:
        raise GraphError(str(path), "there is no edge in it", "lines like `0 1`")
    nodes = np.concatenate(found.nodes)
    found.nodes.clear()
    numbers = np.concatenate(found.weights) if found.weights else None
    if header is None and not found.described:
        _ask_about_sizes(path, nodes, numbers)
    if symmetric is None and found.perhaps and not found.undirected:
        problem = f"the comment {shown(found.perhaps)} may say that edges have no direction"
        raise GraphError("symmetric", problem, "symmetric=True if they have none, or False")
    if found.konect and base == "auto":
        base = 1
    if len(nodes) < found.stated[1]:
        problem = f"{len(nodes)} edges, and a comment states {found.stated[1]}"
        raise GraphError(str(path), problem, "a complete file, or another comment")
    if n_nodes is None and not relabel:
        n_nodes = _stated_nodes(found.stated[0], base, nodes)

    def locate(least: int, most: int) -> None:  # reading once more, now that `most` is known
        _collect(asked, _allowed(least, n_nodes, relabel, most), progress=False)

    return numbered(
        nodes,
        numbers,
        name,
        source,
        base=base,
        n_nodes=n_nodes,
        symmetric=found.undirected if symmetric is None else symmetric,
        relabel=relabel,
        locate=locate,
        weights_in=found.weights_in,
    )


def numbered(
    nodes: npt.NDArray[Any],
    weights: Floats | None,
    name: str,
    source: str,
    *,
    base: int | str = "auto",
    n_nodes: int | None = None,
    symmetric: bool | None = None,
    relabel: bool = False,
    locate: Callable[[int, int], None] | None = None,
    weights_in: str = "",
) -> Graph:
    """Make a graph of edges whose nodes are numbered as `base` and `relabel` say.

    `nodes` has the shape (edges, 2), sender first; the options are those of `read_edge_list`.
    `locate(least, most)` raises an error that says where a node above `most` is.
    """
    _check_numbering(base, n_nodes)
    if relabel:
        codes, labels = pd.factorize(nodes.ravel(), sort=True)
        nodes = codes.astype(np.int32).reshape(-1, 2)
        least, count = 0, len(labels)
        if count > (n_nodes or MAX_SIDE):
            raise GraphError("nodes", f"{count} different nodes", f"{n_nodes or MAX_SIDE}")
        notes = ["numbered anew"]
    else:
        least = int(base) if base != "auto" else int(nodes.min() > 0)
        count = int(nodes.max()) + 1 - least
        most = n_nodes or min(MAX_SIDE, plausible_nodes(len(nodes)))
        if count > most or nodes.min() < least:
            if locate is not None:
                locate(least, most)
            allowed = _allowed(least, n_nodes, relabel, most)
            node = int(nodes.min() if nodes.min() < least else nodes.max())
            problem = f"node {node} " + (allowed.reason if node >= least else "is too small")
            raise GraphError("nodes", problem, allowed.advice if node >= least else "base=0")
        notes = [f"counted from {least}"]
    if symmetric:
        notes.append("in both directions")
    if weights is not None:
        notes.append(f"weights in {weights_in}")
    sender, receiver = (nodes - np.int32(least) if least else nodes).T
    source = f"{source}, {', '.join(notes)}"
    count = n_nodes or count
    return from_edges(sender, receiver, weights, count, name, source, symmetric=bool(symmetric))


def _check_numbering(base: int | str, n_nodes: int | None) -> None:
    if base not in (0, 1, "auto"):
        raise ArgumentError("base", f"got {base!r}", '0, 1 or "auto"')
    if n_nodes is not None and not (isinstance(n_nodes, Integral) and 0 < n_nodes <= MAX_SIDE):
        raise ArgumentError("n_nodes", f"got {n_nodes!r}", f"1 to {MAX_SIDE}")


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
class _Asked:
    """A file, and the options that say what is in it."""

    path: Path
    weights: bool | str | None
    columns: Columns
    header: bool | None
    symmetric: bool | None


@dataclass
class _Found:
    """Nodes and weights, in parts, and what the lines before the first edge say.

    `undirected` and `konect`: whether a comment says so; `perhaps`: one that may. `stated`: nodes
    and edges. `described`: whether columns have names.
    """

    nodes: list[npt.NDArray[Any]] = field(default_factory=list)
    weights: list[Floats] = field(default_factory=list)
    undirected: bool = False
    perhaps: bytes = b""
    konect: bool = False
    stated: tuple[int, int] = (0, 0)
    described: bool = False
    weights_in: str = ""


def _collect(asked: _Asked, allowed: NodeRange, progress: bool | None) -> _Found:
    found, layout, names, comment, skipped = _Found(), None, None, b"", False
    for first_line, block in blocks(asked.path, progress):
        start = 0
        if layout is None:
            for number, line in enumerate(io.BytesIO(block), first_line):
                if number == 1:
                    _check_kind(asked.path, line, found)
                if line.strip(b" \t\n") and not is_comment(line):
                    if number == 1 and _SEPARATOR.fullmatch(line):
                        pass
                    elif names is None and b"{" not in line and edge_lines.names_of(line):
                        names, skipped = edge_lines.names_of(line), True
                    elif asked.header and not skipped:
                        skipped = True
                    else:
                        layout = _layout(asked, number, line, names, comment, allowed, found)
                        first_line = number
                        break
                elif line.strip(b" \t\n"):
                    comment = line
                    _note(line, found)
                start += len(line)
            else:
                continue
        block = block[start:]
        if b"{" in block:
            block = _ATTRIBUTES.sub(lambda match: _without(match, asked.weights), block)
        part = layout.read(block)
        if part is None:
            raise layout.mistake(first_line, block)
        found.nodes.append(part[0])
        if part[1] is not None:
            found.weights.append(part[1])
    return found


def _note(comment: bytes, found: _Found) -> None:
    """Keep what a comment says of the graph."""
    found.undirected |= _UNDIRECTED.match(comment) is not None
    if _PERHAPS.search(comment) and not _KONECT.fullmatch(comment):
        found.perhaps = comment.strip(b" \t\n")
    for size in _STATED.finditer(comment):
        found.stated = int(size[1] or found.stated[0]), int(size[2] or found.stated[1])
    if found.konect and (stated := _STATED_BY_KONECT.fullmatch(comment)):
        found.stated = int(stated[1]), 0


def _check_kind(path: Path, line: bytes, found: _Found) -> None:
    """Look at the first line of a file for what other formats, and KONECT, write there."""
    if line.lower().startswith(b"%%matrixmarket"):
        raise GraphError(str(path), "it is a MatrixMarket file", "the ending .mtx")
    konect = _KONECT.fullmatch(line)
    kind = konect[1].lower() if konect else b""
    if kind == b"bip":
        expected = "a SciPy matrix made of it, as its two sides are both counted from 1"
        raise GraphError(str(path), "it is a bipartite graph of KONECT", expected)
    found.konect, found.undirected = bool(kind), kind == b"sym"


def _without(match: re.Match[bytes], weights: bool | str | None) -> bytes:
    """Return what the attributes of an edge say as a further field: the weight or nothing."""
    attributes = match[1].strip()
    key = re.escape(weights.encode()) if isinstance(weights, str) else b"weight"
    weight = re.fullmatch(_WEIGHT % (key, edge_lines.NUMBER), attributes)
    if not attributes or weights is False:
        return b""
    return b" " + weight[1] if weight else match[0]


def _layout(
    asked: _Asked,
    number: int,
    line: bytes,
    names: list[str] | None,
    comment: bytes,
    allowed: NodeRange,
    found: _Found,
) -> Layout:
    """Return the layout that the first line with an edge, and the names before it, show."""
    given = line.rstrip(b"\n")
    line = _ATTRIBUTES.sub(lambda match: _without(match, asked.weights), given)
    if b"{" in line and line == given:
        expected = "{} or {'weight': 1.5}, weights='cost' for {'cost': 1.5}, or weights=False"
        raise malformed(asked.path, number, f"{shown(line)} has other attributes", expected)
    if (commas := edge_lines.decimal_commas(line)) is not None:
        raise malformed(asked.path, number, *commas)
    delimiter = edge_lines.delimiter_of(line)
    fields = edge_lines.split(line, delimiter)
    count = len(fields)
    perhaps = number == 1 and fields in edge_lines.POSITIONS and delimiter != b" "
    if perhaps and names is asked.header is None and ".csv" in asked.path.name.lower():
        problem = f"{shown(line)} may be an edge, or what pandas writes over columns without names"
        raise malformed(
            asked.path, number, problem, "header=False if it is an edge, header=True if not"
        )
    if names is None:  # as `numpy.savetxt(..., header=...)` writes them
        words = comment.strip(b"#%/ \t\n").decode("utf-8", "replace")
        said = re.split(r"[\s,;|]+", words)
        if len(said) == count and {"sender", "receiver"} <= {*map(columns_of.role, said)}:
            names = said
    if names is not None and count != len(names):
        problem = f"{count} field{'s' * (count > 1)} in {shown(line)}"
        raise malformed(asked.path, number, problem, f"{len(names)}, as there are names")
    weights = True if line != given and asked.weights else asked.weights
    if found.konect and weights is None and asked.columns is None:
        weights = count > 2
    first = [field.strip(b'"').decode("utf-8", "replace") for field in fields]
    column = columns_of.direction(names, first) if names and asked.symmetric is None else None
    numeric = [re.fullmatch(edge_lines.NUMBER, field) is not None for field in fields]
    skip = column[:1] if column else ()
    take = columns_of.chosen(names, count, asked.columns, weights, numeric, skip)
    same = None
    if column and column[0] not in take:
        same, found.undirected = (column[0], fields[column[0]].strip(b'"')), column[1]
    found.described = names is not None or found.konect
    if len(take) > 2:
        found.weights_in = f"column {take[2] + 1}" if names is None else repr(names[take[2]])
    doubtful = not found.described and asked.weights is None and asked.columns is None
    more = count > max(*take, *skip) + 1
    return Layout(asked.path, number, delimiter, take, more, allowed, doubtful, same)
