"""Batches of dense subgraphs of a sparse graph: parts, the edges that they cut, one transfer each.

Sections 2.4.1 and 2.4.6 of the thesis (QGTC), after Cluster-GCN (Chiang et al., KDD 2019).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.bits.tensor import BitTensor, checked_tensor
from accelviz.datasets import load_graph
from accelviz.datasets.load import load_pattern
from accelviz.errors import ArgumentError, DeviceUnavailable, checked_choice, checked_integer
from accelviz.graph import Graph
from accelviz.ordering import vertex_order
from accelviz.strategies.bits.packing import pack_ones

METHODS = ("metis", "rabbit")


def partition(graph: Any, parts: int, method: str = "metis") -> Ints:
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
    checked_choice("method", method, METHODS)
    if parts == 1:
        return np.zeros(graph.n_rows, np.int32)
    if method == "rabbit":
        rank = np.argsort(vertex_order(graph, "rabbit").order)
        return (rank * parts // graph.n_rows).astype(np.int32)
    try:
        import pymetis
    except ImportError as error:
        fix = "pip install pymetis, or method='rabbit'"
        raise DeviceUnavailable("METIS", "pymetis is not installed", fix) from error
    both = graph.adjacency + graph.adjacency.T
    both.setdiag(0)
    both.data[:] = both.data != 0
    both.eliminate_zeros()
    _, part = pymetis.part_graph(parts, pymetis.CSRAdjacency(both.indptr, both.indices))
    return np.asarray(part, np.int32)


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

    nodes: Longs
    starts: Longs
    A: BitTensor
    degrees: Longs


def cut_edges(graph: Any, part: Ints) -> int:
    """Count the edges between two parts, which no batch has."""
    graph, part = _checked(graph, part)
    rows = np.repeat(part, graph.degrees)
    return int((rows != part[graph.column_indices]).sum())


def batches(graph: Any, part: Ints, size: int) -> Iterator[Batch]:
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
    ends = np.append(0, np.cumsum(np.bincount(part, minlength=1)))
    for first in range(0, ends.size - 1, size):
        last = min(first + size, ends.size - 1)
        nodes = by_part[ends[first] : ends[last]]
        edges = graph.adjacency[nodes][:, nodes].tocoo()
        inside = part[nodes[edges.row]] == part[nodes[edges.col]]
        loops = np.arange(nodes.size)
        rows, columns = np.append(edges.row[inside], loops), np.append(edges.col[inside], loops)
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
    part = np.asarray(part)
    if part.shape != (graph.n_rows,) or part.dtype.kind not in "iu" or part.min(initial=0) < 0:
        problem = f"shape {part.shape}, dtype {part.dtype}"
        expected = f"{graph.n_rows:,} integers of at least 0, a part for each node"
        raise ArgumentError("part", problem, expected)
    return graph, part


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
    return BitTensor(pack_ones(rows, columns, shape), shape, "left")


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
    for i, tensor in enumerate(tensors):
        checked_tensor(f"tensors[{i}]", tensor)
    parts = [tensor.words.ravel() for tensor in tensors]
    buffer = np.concatenate(parts) if parts else np.empty(0, np.uint32)
    return buffer, views(buffer, tensors)


def views(buffer: Any, tensors: Sequence[BitTensor]) -> list[BitTensor]:
    """Return tensors whose words are parts of a buffer, here or on the GPU, in their order."""
    moved, start = [], 0
    for tensor in tensors:
        shape = tensor.words.shape
        part = buffer[start : start + math.prod(shape)]
        moved.append(replace(tensor, words=part.reshape(shape)))
        start += part.size
    return moved
