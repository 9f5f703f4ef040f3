"""METIS and Chaco graph files: one line a vertex, with its neighbors."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from accelviz.arrays import Floats, Ints, Longs
from accelviz.datasets.convert import from_csr_arrays
from accelviz.datasets.readers.registry import reader
from accelviz.datasets.readers.text import blocks, malformed, shown
from accelviz.errors import GraphError
from accelviz.graph import MAX_SIDE, Graph

_COMMENT_LINES = re.compile(rb"(?m)^[ \t]*+%[^\n]*+\n")
_TOKEN = re.compile(rb"[^ \t]+")

#: Neighbors of each vertex (int64), the neighbors from 0 (int32), the weights of their edges.
Rows = tuple[Longs, Ints, Floats | None]


@reader(".graph", ".graph.gz", ".graph.bz2")
def read_metis(path: Path, *, name: str, source: str, progress: bool | None = None) -> Graph:
    """Read a METIS or Chaco `.graph` file: an undirected graph, each edge listed at both ends.

    The first line is `vertices edges [format [constraints]]`; the format's digits say whether there
    are vertex sizes, vertex weights and edge weights. Each further line is a vertex's neighbors,
    counted from 1, and is empty if it has none; lines that start with `%` are comments. Edge
    weights become the matrix's values; sizes and weights of vertices are left out.

    Raises
    ------
    GraphError
        Naming the line, where one is malformed or lacks an edge's other end; or if the number of
        lines or of edges is not what the first line says.
    """
    header, rows = None, []
    for first_line, block in blocks(path, progress):
        if header is None:
            header, first_line, block = _header(path, first_line, block)
            left = header.vertices if header else 0
        if header is not None:
            part = _fast(header, block, left) or _slow(header, first_line, block, left)
            rows.append(part)
            left -= len(part[0])
    if header is None:
        raise GraphError(str(path), "there is no first line `vertices edges`", "a METIS graph")
    if left:
        raise GraphError(
            str(path),
            f"it ends after {header.vertices - left} of {header.vertices} vertices",
            "a line for each vertex, an empty one if it has no neighbors",
        )
    counts = np.concatenate([part[0] for part in rows])
    weights = [part[2] for part in rows if part[2] is not None]
    graph = from_csr_arrays(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([part[1] for part in rows]),
        np.concatenate(weights) if weights else None,
        (header.vertices, header.vertices),
        name,
        source,
    )
    _check_symmetric(path, graph)
    listed = int(counts.sum())
    loops = int(graph.adjacency.diagonal().astype(bool).sum())
    # METIS knows no loops; where there are some, they may be counted once or twice.
    if header.edges not in (listed / 2, (listed + loops) / 2):
        raise malformed(
            path, header.line, f"{header.edges} edges", f"{listed / 2:g}, as there are in the file"
        )
    return graph


@dataclass(frozen=True)
class _Header:
    """The first line.

    Parameters
    ----------
    path : Path
    line : int
        Its number.
    vertices, edges : int
    skip : int
        Numbers at the start of a vertex's line that are no neighbors.
    step : int
        2 if a weight follows each neighbor, else 1.
    """

    path: Path
    line: int
    vertices: int
    edges: int
    skip: int
    step: int


def _header(path: Path, first_line: int, block: bytes) -> tuple[_Header | None, int, bytes]:
    """Return the header, if it is in this block, and the lines behind it."""
    start = 0
    for number, line in enumerate(io.BytesIO(block), first_line):
        start += len(line)
        if line.isspace() or line.lstrip().startswith(b"%"):
            continue
        fields = line.split()
        if not 2 <= len(fields) <= 4 or not all(re.fullmatch(rb"[0-9]{1,18}", f) for f in fields):
            raise malformed(
                path, number, shown(line.strip()), "vertices edges [format [constraints]]"
            )
        vertices, edges = int(fields[0]), int(fields[1])
        if vertices > MAX_SIDE:
            raise malformed(path, number, f"{vertices} vertices", f"at most {MAX_SIDE}")
        form = fields[2].rjust(3, b"0") if len(fields) > 2 else b"000"
        if not re.fullmatch(rb"[01]{3}", form):
            raise malformed(path, number, f"the format {shown(form)}", "three digits 0 or 1")
        sizes, vertex_weights, edge_weights = (digit == ord("1") for digit in form)
        constraints = int(fields[3]) if len(fields) > 3 else 1
        skip = sizes + vertex_weights * constraints
        header = _Header(path, number, vertices, edges, skip, 1 + edge_weights)
        return header, number + 1, block[start:]
    return None, 0, b""


def _fast(header: _Header, block: bytes, left: int) -> Rows | None:
    """Return what `_slow` returns, or None where `_slow` has to look at it."""
    if b"%" in block:
        block = _COMMENT_LINES.sub(b"", block)
    if block.translate(None, b"0123456789 \t\n"):
        return None
    # NumPy makes a number of no text.
    tokens = np.fromstring(block, np.int64, sep=" ") if block.strip() else np.empty(0, np.int64)
    counts = _tokens_per_line(block)
    if counts[left:].any():
        return None
    counts = counts[:left]
    listed, odd = np.divmod(counts - header.skip, header.step)
    if (listed < 0).any() or odd.any() or tokens.max(initial=0) == np.iinfo(np.int64).max:
        return None
    weights = None
    if header.skip or header.step > 1:
        place = np.arange(len(tokens)) - np.repeat(np.cumsum(counts) - counts, counts)
        place -= header.skip
        if header.step > 1:
            weights = tokens[(place >= 0) & (place % 2 == 1)]
            if weights.min(initial=1) < 1:
                return None
            weights = weights.astype(np.float32)
        tokens = tokens[(place >= 0) & (place % header.step == 0)]
    if tokens.min(initial=1) < 1 or tokens.max(initial=1) > header.vertices:
        return None
    return listed, (tokens - 1).astype(np.int32), weights


def _tokens_per_line(block: bytes) -> Longs:
    characters = np.frombuffer(b"\n" + block, np.uint8)
    inside = characters > ord(" ")
    starts = np.flatnonzero(inside[1:] & ~inside[:-1])
    ends = np.flatnonzero(characters[1:] == ord("\n"))
    return np.diff(np.searchsorted(starts, ends), prepend=0)


def _slow(header: _Header, first_line: int, block: bytes, left: int) -> Rows:
    """Read the lines of at most `left` vertices one by one.

    Raises
    ------
    GraphError
        With the number of the line, what is wrong with it and what is expected.
    """
    counts: list[int] = []
    neighbors: list[int] = []
    weights: list[int] = []
    for number, line in enumerate(block.split(b"\n")[:-1], first_line):
        if line.lstrip(b" \t").startswith(b"%"):
            continue
        if len(counts) < left:
            before = len(neighbors)
            _read_vertex(header, number, line, neighbors, weights)
            counts.append(len(neighbors) - before)
        elif line.strip(b" \t"):
            problem = f"{shown(line)} after the last of {header.vertices} vertices"
            raise malformed(header.path, number, problem, f"the end, as line {header.line} says")
    return (
        np.array(counts, np.int64),
        np.array(neighbors, np.int32),
        np.array(weights, np.float32) if header.step > 1 else None,
    )


def _read_vertex(
    header: _Header, number: int, line: bytes, neighbors: list[int], weights: list[int]
) -> None:
    """Add the neighbors in a line, counted from 0, and the weights of their edges."""
    place = -header.skip
    for place, found in enumerate(_TOKEN.finditer(line), 1 - header.skip):
        token = found[0]
        digits = token.lstrip(b"0")[:60]  # more would be too large for anything
        if not token.isdigit():
            problem, expected = f"{shown(token)}", "a whole number in digits"
        elif place <= 0:
            continue
        elif place % header.step == 0 and header.step > 1:
            weights.append(int(digits or b"0"))
            problem, expected = f"the edge weight {shown(token)[1:-1]}", "1 to 10^38"
            if 1 <= weights[-1] <= 10**38:
                continue
        else:
            neighbors.append(int(digits or b"0") - 1)
            problem, expected = f"the neighbor {shown(token)[1:-1]}", f"1 to {header.vertices}"
            if 0 <= neighbors[-1] < header.vertices:
                continue
        raise malformed(header.path, number, problem, expected)
    if place < 0 or place % header.step:
        expected = f"{header.skip} numbers of the vertex, then its neighbors"
        expected += ", each with the weight of its edge" if header.step > 1 else ""
        raise malformed(header.path, number, f"a number is missing in {shown(line)}", expected)


def _check_symmetric(path: Path, graph: Graph) -> None:
    there = graph.adjacency
    back = there.T.tocsr()
    odd = (there != back).tocoo()
    if not odd.nnz:
        return
    # Of the two ends, the one that lists the edge, or both if their weights differ.
    vertex, other = int(odd.row[0]), int(odd.col[0])
    if not there[vertex, other]:
        vertex, other = other, vertex
    raise malformed(
        path,
        _line_of(path, vertex),
        f"vertex {vertex + 1} lists {other + 1}, which does not list it likewise",
        "each edge at both ends, with the same weight",
    )


def _line_of(path: Path, vertex: int) -> int:
    """Return the number of a vertex's line."""
    at = -1  # the header
    for first_line, block in blocks(path, progress=False):
        for number, line in enumerate(io.BytesIO(block), first_line):
            if (at < 0 and line.isspace()) or line.lstrip().startswith(b"%"):
                continue
            if at == vertex:
                return number
            at += 1
    raise AssertionError(vertex)
