"""Edge lists, one edge on each line, as SNAP, OGB, TU and most others publish graphs."""

from __future__ import annotations

import io
import re
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.arrays import Floats
from accelviz.datasets.convert import check_stated_size, from_edges, plausible_nodes
from accelviz.datasets.readers import edge_lines
from accelviz.datasets.readers.edge_lines import Layout, NodeRange, is_comment
from accelviz.datasets.readers.registry import reader
from accelviz.datasets.readers.text import blocks, malformed, shown
from accelviz.errors import ArgumentError, GraphError
from accelviz.graph import MAX_SIDE, Graph

_UNDIRECTED = re.compile(rb"#\s*undirected graph", re.IGNORECASE)
_ENDINGS = [
    f".{kind}{packed}"
    for kind in ("txt", "csv", "tsv", "edges", "edgelist")
    for packed in ("", ".gz", ".bz2")
]


@reader(*_ENDINGS)
def read_edge_list(
    path: Path,
    *,
    name: str,
    source: str,
    base: int | str = "auto",
    n_nodes: int | None = None,
    symmetric: bool | None = None,
    relabel: bool = False,
    weights: bool | None = None,
    progress: bool | None = None,
) -> Graph:
    """Read a file of edges `sender receiver [weight]`, plain or packed with gzip or bzip2.

    The edge `u v` becomes a nonzero in row `v`, column `u`, so that `A @ X` sums over in-neighbors.
    A repeated edge adds up. Fields are separated by commas, semicolons, bars, tabs or blanks, the
    same in all lines. Lines that start with `#`, `%` or `//` are comments; the first other line
    may hold the names of the columns.

    Parameters
    ----------
    base : {0, 1, "auto"}
        The number of the first node. "auto" takes 1 if no node 0 occurs; `source` says which.
    n_nodes : int, optional
        Number of nodes; by default the largest one that occurs decides.
    symmetric : bool, optional
        Whether each line stands for both directions; the matrix becomes max(A, A^T), so a file that
        lists both is not doubled. By default only if a comment says `# Undirected graph`, as SNAP
        writes it.
    relabel : bool
        Number the nodes that occur anew, keeping their order: for sparse node numbers.
    weights : bool, optional
        Whether there is a weight in the third column. By default there is one if there are three
        columns; more columns need a decision: True takes the third, False ignores all after the
        second (so do it for timestamps).

    Raises
    ------
    GraphError
        Also if there is no edge, or if the largest node is out of proportion to the number of edges
        (see `plausible_nodes`) and neither `n_nodes` nor `relabel` is given.
    ArgumentError
        If `base` or `n_nodes` has another value than the above.
    """
    if base not in (0, 1, "auto"):
        raise ArgumentError("base", f"got {base!r}", '0, 1 or "auto"')
    if n_nodes is not None and not (isinstance(n_nodes, Integral) and 0 < n_nodes <= MAX_SIDE):
        raise ArgumentError("n_nodes", f"got {n_nodes!r}", f"1 to {MAX_SIDE}")
    parts, values, undirected = _collect(path, _allowed(base, n_nodes, relabel), weights, progress)
    if not parts:
        raise GraphError(str(path), "there is no edge in it", "lines like `0 1`")
    nodes = np.concatenate(parts)
    parts.clear()
    if relabel:
        codes, labels = pd.factorize(nodes.ravel(), sort=True)
        nodes = codes.astype(np.int32).reshape(-1, 2)
        least, count = 0, len(labels)
        if count > (n_nodes or MAX_SIDE):
            raise GraphError(str(path), f"{count} different nodes", f"{n_nodes or MAX_SIDE}")
        notes = ["numbered anew"]
    else:
        least = int(base) if base != "auto" else int(nodes.min() > 0)
        count = int(nodes.max()) + 1 - least
        most = n_nodes or min(MAX_SIDE, plausible_nodes(len(nodes)))
        if count > most:  # reading once more, now that `most` is known, finds the line
            _collect(path, _allowed(least, n_nodes, relabel, most), weights, progress=False)
        notes = [f"counted from {least}"]
    symmetric = undirected if symmetric is None else symmetric
    if symmetric:
        notes.append("in both directions")
    if values:
        notes.append("weights in column 3")
    sender, receiver = (nodes - np.int32(least) if least else nodes).T
    numbers = np.concatenate(values) if values else None
    source = f"{source}, {', '.join(notes)}"
    count = n_nodes or count
    return from_edges(sender, receiver, numbers, count, name, source, symmetric=symmetric)


@reader("edge.csv.gz")
def read_ogb(
    path: Path,
    *,
    name: str,
    source: str,
    symmetric: bool | None = None,
    progress: bool | None = None,
) -> Graph:
    """Read the `edge.csv.gz` of a data set of one graph, as in `ogbn_arxiv/raw/edge.csv.gz`.

    Each line is `sender,receiver`, counted from 0. If `num-node-list.csv.gz` is in the same
    folder, it gives the number of nodes. The graph has the data set's name, from its folder. Its
    option `symmetric` is that of `read_edge_list`; OGB lists undirected edges once.
    """
    folder = path.absolute().parent
    name = (folder.parent if folder.name == "raw" else folder).name or name
    counts, n_nodes = path.with_name("num-node-list.csv.gz"), None
    if counts.is_file():
        lines = _lines(counts)
        if len(lines) != 1:
            problem = f"it counts the nodes of {len(lines)} graphs"
            raise GraphError(str(counts), problem, "one graph")
        if not lines[0].isdigit() or len(lines[0]) > 10 or not 0 < int(lines[0]) <= MAX_SIDE:
            raise malformed(counts, 1, f"{shown(lines[0])} nodes", f"1 to {MAX_SIDE}")
        n_nodes = int(lines[0])
        # An edge takes at least a byte, even packed.
        check_stated_size(n_nodes, path.stat().st_size)
    options = {"symmetric": symmetric, "progress": progress}
    return read_edge_list(path, name=name, source=source, base=0, n_nodes=n_nodes, **options)


@reader("_a.txt")
def read_tu(path: Path, *, name: str, source: str, progress: bool | None = None) -> Graph:
    """Read `NAME_A.txt`: all graphs of a data set in one block-diagonal matrix.

    Each line is `sender, receiver`, counted from 1 (the data sets list both directions). If
    `NAME_graph_indicator.txt`, with one line for each node, is in the same folder, it gives the
    number of nodes.
    """
    indicator = path.with_name(f"{name}_graph_indicator.txt")
    n_nodes = len(_lines(indicator)) if indicator.is_file() else None
    if n_nodes == 0:
        raise GraphError(str(indicator), "there is no node in it", "a line for each node")
    return read_edge_list(
        path, name=name, source=source, base=1, n_nodes=n_nodes, symmetric=False, progress=progress
    )


def _lines(path: Path) -> list[bytes]:
    """Return the lines of a file that are not empty, without the blanks around them."""
    lines = (line.strip() for _, block in blocks(path) for line in block.split(b"\n"))
    return [line for line in lines if line]


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


def _collect(
    path: Path, allowed: NodeRange, weights: bool | None, progress: bool | None
) -> tuple[list[npt.NDArray[Any]], list[Floats], bool]:
    """Return the nodes and the weights, in parts, and whether a comment says "undirected"."""
    nodes, values, undirected = [], [], False
    layout, header = None, False
    for first_line, block in blocks(path, progress):
        start = 0
        if layout is None:
            for number, line in enumerate(io.BytesIO(block), first_line):
                if number == 1 and line.startswith(b"%%MatrixMarket"):
                    raise GraphError(str(path), "it is a MatrixMarket file", "the ending .mtx")
                if line.strip(b" \t\n") and not is_comment(line):
                    if header or not edge_lines.is_header(line):
                        layout = _layout(path, number, line.rstrip(b"\n"), weights, allowed)
                        first_line = number
                        break
                    header = True
                undirected |= _UNDIRECTED.match(line) is not None
                start += len(line)
            else:
                continue
        found = layout.read(block[start:])
        if found is None:
            raise layout.mistake(first_line, block[start:])
        nodes.append(found[0])
        if found[1] is not None:
            values.append(found[1])
    return nodes, values, undirected


def _layout(
    path: Path, number: int, line: bytes, weights: bool | None, allowed: NodeRange
) -> Layout:
    """Return the layout that the first line with an edge shows."""
    delimiter = edge_lines.delimiter_of(line)
    fields = edge_lines.split(line, delimiter)
    count = len(fields)
    if count > 3 and weights is None and fields[0].isdigit() and fields[1].isdigit():
        expected = "weights=True for weights in the third, or weights=False to ignore all but two"
        raise malformed(path, number, f"{count} columns in {shown(line)}", expected)
    columns = 3 if weights or (weights is None and count == 3) else 2
    more = weights is not None and count > columns
    return Layout(path, number, delimiter, columns, more, allowed)
