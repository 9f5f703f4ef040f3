"""Batches of dense subgraphs of a sparse graph: parts, the edges that they cut, one transfer each.

Sections 2.4.1 and 2.4.6 of the thesis (QGTC), after Cluster-GCN (Chiang et al., KDD 2019).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.bits.tensor import WORD_BITS, BitTensor, checked_tensor, layout
from accelviz.datasets import load_graph
from accelviz.datasets.load import load_pattern
from accelviz.errors import ArgumentError, DeviceUnavailable, checked_integer
from accelviz.graph import Graph
from accelviz.ordering import vertex_order

METHODS = ("metis", "rabbit")


def partition(graph: Any, parts: int, method: str = "metis") -> npt.NDArray[np.int32]:
    """Deal the nodes of a graph out to parts that few edges leave.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        Square; directions do not count.
    parts : int
        At most the number of nodes.
    method : {"metis", "rabbit"}
        METIS, which needs the package pymetis; or Rabbit order, cut into pieces of equal size.

    Returns
    -------
    array of int32, shape (n_nodes,)
        The part of each node.

    Raises
    ------
    ArgumentError
        If the graph is not square, or an argument is out of range.
    DeviceUnavailable
        If pymetis is not installed.
    """
    graph = _square(graph)
    parts = checked_integer("parts", parts, max(graph.n_rows, 1), error=ArgumentError)
    if method not in METHODS:
        raise ArgumentError("method", f"got {method!r}", " or ".join(map(repr, METHODS)))
    if method == "rabbit" or parts == 1:
        place = np.empty(graph.n_rows, np.int64)
        if parts > 1:
            place[vertex_order(graph, "rabbit").order] = np.arange(graph.n_rows)
        else:
            place[:] = 0
        return (place * parts // max(graph.n_rows, 1)).astype(np.int32)
    try:
        import pymetis
    except ImportError as error:
        fix = "pip install pymetis, or method='rabbit'"
        raise DeviceUnavailable("METIS", "pymetis is not installed", fix) from error
    both = graph.adjacency + graph.adjacency.T
    both.setdiag(0)
    both.data[:] = both.data != 0
    both.eliminate_zeros()
    neighbors = pymetis.CSRAdjacency(both.indptr, both.indices)
    found = pymetis.part_graph(parts, neighbors)
    return np.asarray(found[1], np.int32)


@dataclass(frozen=True, eq=False)
class Batch:
    """Some parts of a graph, as one block-diagonal matrix of single bits.

    Attributes
    ----------
    nodes : array of int64, shape (n,)
        Nodes of the graph, part after part.
    starts : array of int64, shape (parts + 1,)
        Where each part begins.
    A : BitTensor, shape (n, n), side "left"
        The edges inside parts, and each node's own.
    degrees : array of int64, shape (n,)
        Ones in each row of A.
    """

    nodes: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    A: BitTensor
    degrees: npt.NDArray[np.int64]


def cut_edges(graph: Any, part: npt.NDArray[np.int32]) -> int:
    """Count the edges between two parts, which no batch has."""
    graph, part = _checked(graph, part)
    rows = np.repeat(part, graph.degrees)
    return int((rows != part[graph.column_indices]).sum())


def batches(graph: Any, part: npt.NDArray[np.int32], size: int) -> Iterator[Batch]:
    """Give the graph in batches of `size` parts; edges between two parts are left out.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
    part : array of int32, shape (n_nodes,)
        As `partition` returns it.
    size : int

    Raises
    ------
    ArgumentError
        If `part` does not have a part, 0 or above, for each node, or `size` is below 1.
    """
    size = checked_integer("size", size, error=ArgumentError)
    graph, part = _checked(graph, part)
    by_part = np.argsort(part, kind="stable")
    counts = np.bincount(part, minlength=1)
    ends = np.append(0, np.cumsum(counts))
    place = np.empty(graph.n_rows, np.int64)
    for first in range(0, counts.size, size):
        last = min(first + size, counts.size)
        nodes = by_part[ends[first] : ends[last]]
        place[nodes] = np.arange(nodes.size)
        owner = np.repeat(np.arange(nodes.size), graph.degrees[nodes])
        begin = np.repeat(graph.row_pointers[nodes], graph.degrees[nodes])
        own = np.arange(owner.size) - np.repeat(
            np.cumsum(graph.degrees[nodes]) - graph.degrees[nodes], graph.degrees[nodes]
        )
        columns = graph.column_indices[begin + own]
        inside = part[columns] == part[nodes[owner]]
        rows = np.append(owner[inside], np.arange(nodes.size))
        columns = np.append(place[columns[inside]], np.arange(nodes.size))
        A = _packed(rows, columns, (nodes.size, nodes.size))
        degrees = np.bitwise_count(A.words[0, : nodes.size]).sum(axis=1, dtype=np.int64)
        yield Batch(nodes, ends[first : last + 1] - ends[first], A, degrees)


def _square(graph: Any) -> Graph:
    graph = load_graph(graph)
    if graph.shape[0] != graph.shape[1]:
        raise ArgumentError("graph", f"{graph.shape[0]} x {graph.shape[1]}", "a square one")
    return graph


def _checked(graph: Any, part: Any) -> tuple[Graph, npt.NDArray[Any]]:
    graph = _square(graph)
    found = np.asarray(part)
    if found.shape != (graph.n_rows,) or found.dtype.kind not in "iu" or found.min(initial=0) < 0:
        what = f"shape {found.shape}, dtype {found.dtype}"
        right = f"{graph.n_rows:,} integers of at least 0, a part for each node"
        raise ArgumentError("part", what, right)
    return graph, found


def pack_pattern(graph: Any) -> BitTensor:
    """Pack which elements of a matrix are nonzeros: one bit each, the left operand of `A X`.

    Parameters
    ----------
    graph : Pattern, or anything `load_graph` takes
    """
    graph = load_pattern(graph)
    degrees = np.diff(graph.row_pointers)
    rows = np.repeat(np.arange(graph.shape[0]), degrees)
    return _packed(rows, graph.column_indices, graph.shape)


def _packed(rows: Any, columns: Any, shape: tuple[int, int]) -> BitTensor:
    words = np.zeros(layout(shape, 1, "left"), np.uint32)
    bits = np.uint32(1) << (columns % WORD_BITS).astype(np.uint32)
    np.bitwise_or.at(words[0], (rows, columns // WORD_BITS), bits)
    return BitTensor(words, shape, "left")


def one_transfer(*tensors: BitTensor) -> tuple[npt.NDArray[np.uint32], list[BitTensor]]:
    """Put the words of several tensors behind each other, so that one copy moves them all.

    Returns
    -------
    buffer : array of uint32
        What is copied.
    tensors : list of BitTensor
        The same tensors; their words are parts of the buffer.

    Raises
    ------
    ArgumentError
        If one is no BitTensor.
    """
    for i, each in enumerate(tensors):
        checked_tensor(f"tensors[{i}]", each)
    buffer = np.empty(sum(each.words.size for each in tensors), np.uint32)
    return buffer, views(buffer, tensors, fill=True)


def views(buffer: Any, tensors: Any, *, fill: bool = False) -> list[BitTensor]:
    """Return tensors whose words are parts of a buffer, here or on the GPU, in their order."""
    found, start = [], 0
    for each in tensors:
        part = buffer[start : start + each.words.size].reshape(each.words.shape)
        if fill:
            part[...] = each.words
        found.append(BitTensor(part, each.shape, each.side, each.scale, each.clipped))
        start += each.words.size
    return found
