"""METIS and Chaco graph files: a line for each vertex, with its neighbors."""

from __future__ import annotations

import io
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from accelviz.arrays import Floats, Ints, Longs
from accelviz.datasets.convert import from_csr_arrays
from accelviz.datasets.readers.registry import packed, reader
from accelviz.datasets.readers.text import blocks, malformed, shown
from accelviz.errors import GraphError
from accelviz.graph import MAX_SIDE, Graph

_COMMENT_LINES = re.compile(rb"(?m)^[ \t]*+%[^\n]*+\n")
_LARGEST_WEIGHT = 1e38

#: Neighbors of each vertex (int64), the neighbors from 0 (int32), the weights of their edges.
Rows = tuple[Longs, Ints, Floats | None]


@reader(*packed(".graph"))
def read_metis(path: Path, *, name: str, source: str, progress: bool | None = None) -> Graph:
    """Read a METIS or Chaco `.graph` file: an undirected graph, each edge listed at both ends.

    The first line is `vertices edges [format [constraints]]`; the format's digits say whether there
    are vertex sizes, vertex weights and edge weights. Each further line is a vertex's neighbors,
    counted from 1, and is empty if it has none; lines that start with `%` are comments. Edge
    weights become the matrix's values; sizes and weights of vertices are left out. An edge whose
    other end is missing is refused.
    """
    header, rows = None, []
    for first_line, block in blocks(path, progress):
        if header is None:
            header, first_line, block = _header(path, first_line, block)
            left = header.vertices if header else 0
        if header is not None:
            part = _read(header, block, left)
            if part is None:
                raise _mistake(header, first_line, block, left)
            rows.append(part)
            left -= len(part[0])
    if header is None:
        raise GraphError(str(path), "there is no first line `vertices edges`", "a METIS graph")
    if left:
        problem = f"it ends after {header.vertices - left} of {header.vertices} vertices"
        expected = "a line for each vertex, an empty one if it has no neighbors"
        raise GraphError(str(path), problem, expected)
    counts = np.concatenate([part[0] for part in rows])
    weights = [part[2] for part in rows if part[2] is not None]
    row_pointers = np.concatenate([[0], np.cumsum(counts)])
    neighbors = np.concatenate([part[1] for part in rows])
    values = np.concatenate(weights) if weights else None
    graph = from_csr_arrays(row_pointers, neighbors, values, [header.vertices] * 2, name, source)
    _check_symmetric(header, graph)
    listed = int(counts.sum())
    loops = int(graph.adjacency.diagonal().astype(bool).sum())
    # METIS knows no loops; where there are some, they may be counted once or twice.
    if header.edges not in (listed / 2, (listed + loops) / 2):
        expected = f"{listed / 2:g}, as there are in the file"
        raise malformed(path, header.line, f"{header.edges} edges", expected)
    return graph


@dataclass(frozen=True)
class _Header:
    """The first line: its number, and what it says.

    Each vertex's line starts with `skip` numbers that are not neighbors. With a `step` of 2, a
    weight follows each neighbor; otherwise it is 1.
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
            expected = "vertices edges [format [constraints]]"
            raise malformed(path, number, shown(line.strip()), expected)
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


def _read(header: _Header, block: bytes, left: int) -> Rows | None:
    """Read the lines of at most `left` vertices; None if there is a mistake: see `_mistake`."""
    if b"%" in block:
        block = _COMMENT_LINES.sub(b"", block)
    if block.translate(None, b"0123456789 \t\n"):
        return None
    # Of an edge weight beyond int64, float64 gives the size; no node is so large.
    dtype = np.float64 if header.step > 1 else np.int64
    # NumPy makes a number of no text.
    tokens = np.fromstring(block, dtype, sep=" ") if block.strip() else np.empty(0, dtype)
    characters = np.frombuffer(b"\n" + block, np.uint8)
    inside = characters > ord(" ")
    starts = np.flatnonzero(inside[1:] & ~inside[:-1])
    ends = np.flatnonzero(characters[1:] == ord("\n"))
    counts = np.diff(np.searchsorted(starts, ends), prepend=0)  # of each line
    if counts[left:].any():
        return None
    counts = counts[:left]
    listed, odd = np.divmod(counts - header.skip, header.step)
    if (listed < 0).any() or odd.any():
        return None
    weights = None
    if header.skip or header.step > 1:
        place = np.arange(len(tokens)) - np.repeat(np.cumsum(counts) - counts, counts)
        place -= header.skip
        if header.step > 1:
            weights = tokens[(place >= 0) & (place % 2 == 1)]
            if weights.min(initial=1) < 1 or weights.max(initial=1) > _LARGEST_WEIGHT:
                return None
            weights = weights.astype(np.float32)
        tokens = tokens[(place >= 0) & (place % header.step == 0)]
    if tokens.min(initial=1) < 1 or tokens.max(initial=0) > header.vertices:
        return None
    return listed, tokens.astype(np.int32) - np.int32(1), weights


def _mistake(header: _Header, first_line: int, block: bytes, left: int) -> GraphError:
    """Return an error for the first mistake in a block: its line, and what is expected."""
    for number, line in enumerate(block.split(b"\n")[:-1], first_line):
        tokens = re.findall(rb"[^ \t]+", line)
        if tokens and tokens[0].startswith(b"%"):
            continue
        if not left and tokens:
            problem = f"{shown(line)} after the last of {header.vertices} vertices"
            return malformed(header.path, number, problem, f"the end, as line {header.line} says")
        if left:
            found = _problem(header, line, tokens)
            if found is not None:
                return malformed(header.path, number, *found)
            left -= 1
    raise AssertionError("there is no mistake")


def _problem(header: _Header, line: bytes, tokens: list[bytes]) -> tuple[str, str] | None:
    """Say what is wrong with a vertex's line and what is expected; None if nothing is."""
    for place, token in enumerate(tokens, -header.skip):
        if not token.isdigit():
            return shown(token), "a whole number in digits"
        weight = place >= 0 and place % header.step == 1
        most = _LARGEST_WEIGHT if weight else header.vertices
        if place >= 0 and not 1 <= float(token) <= most:
            what = "edge weight" if weight else "neighbor"
            return f"the {what} {shown(token)[1:-1]}", f"1 to {most}"
    if len(tokens) < header.skip or (len(tokens) - header.skip) % header.step:
        expected = f"{header.skip} numbers of the vertex, then its neighbors"
        expected += ", each with the weight of its edge" if header.step > 1 else ""
        return f"a number is missing in {shown(line)}", expected
    return None


def _check_symmetric(header: _Header, graph: Graph) -> None:
    there = graph.adjacency
    odd = (there != there.T.tocsr()).tocoo()
    if not odd.nnz:
        return
    # Of the two ends, the one that lists the edge, or both if their weights differ.
    vertex, other = int(odd.row[0]), int(odd.col[0])
    if not there[vertex, other]:
        vertex, other = other, vertex
    numbers = (
        number
        for first_line, block in blocks(header.path, progress=False)
        for number, line in enumerate(io.BytesIO(block), first_line)
        if number > header.line and not line.lstrip().startswith(b"%")
    )
    number = next(itertools.islice(numbers, vertex, None))
    problem = f"vertex {vertex + 1} lists {other + 1}, which does not list it likewise"
    raise malformed(header.path, number, problem, "each edge at both ends, with the same weight")
