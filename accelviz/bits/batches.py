"""Batches of dense subgraphs of a sparse graph, and their transfer to a GPU in one copy.

A part is a set of nodes with few edges to other parts. A batch has the edges inside of some parts.
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
from accelviz.errors import (
    ArgumentError,
    DeviceUnavailable,
    checked_choice,
    checked_integer,
    pip_install,
)
from accelviz.graph import Graph
from accelviz.ordering import vertex_order
from accelviz.strategies.bits.packing import pack_ones

METHODS = ("metis", "rabbit")


def partition(graph: Any, parts: int, method: str = "metis") -> Ints:
    """Divide the nodes of a graph into parts with few edges between them.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        A square matrix. The directions of edges are ignored.
    parts : int
        Number of parts, at most the number of nodes.
    method : {"metis", "rabbit"}
        METIS, by the package pymetis; or Rabbit order, divided into parts of equal size.

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
        fix = f"{pip_install('pymetis')}, or method='rabbit'"
        raise DeviceUnavailable("METIS", "pymetis is not installed", fix) from error
    symmetric = graph.adjacency + graph.adjacency.T
    symmetric.setdiag(0)
    symmetric.data[:] = symmetric.data != 0
    symmetric.eliminate_zeros()
    adjacency = pymetis.CSRAdjacency(symmetric.indptr, symmetric.indices)
    _, part = pymetis.part_graph(parts, adjacency)
    return np.asarray(part, np.int32)


@dataclass(frozen=True, eq=False)
class Batch:
    """Some parts of a graph as one block-diagonal binary matrix.

    Attributes
    ----------
    nodes : array of int64, shape (n,)
        Nodes of the graph, part by part.
    starts : array of int64, shape (parts + 1,)
        Position in `nodes` of each part's first node.
    A : BitTensor, shape (n, n), side "left"
        Edges inside of the parts, and a self-loop of each node.
    degrees : array of int64, shape (n,)
        Number of ones in each row of A.
    """

    nodes: Longs
    starts: Longs
    A: BitTensor
    degrees: Longs


def cut_edges(graph: Any, part: Ints) -> int:
    """Return the number of edges between different parts, which batches leave out."""
    graph, part = _checked(graph, part)
    rows = np.repeat(part, graph.degrees)
    return int((rows != part[graph.column_indices]).sum())


def batches(graph: Any, part: Ints, size: int) -> Iterator[Batch]:
    """Yield the batches of a graph, without the edges between different parts.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
    part : array of int32, shape (n_nodes,)
        The part of each node, as `partition` returns it.
    size : int
        Number of parts of a batch.

    Raises
    ------
    ArgumentError
        If `part` does not have a part, 0 or above, for each node, or `size` is below 1.
    """
    size = checked_integer("size", size, error=ArgumentError)
    graph, part = _checked(graph, part)
    by_part = np.argsort(part, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(part, minlength=1)))
    for first in range(0, starts.size - 1, size):
        last = min(first + size, starts.size - 1)
        nodes = by_part[starts[first] : starts[last]]
        edges = graph.adjacency[nodes][:, nodes].tocoo()
        inside = part[nodes[edges.row]] == part[nodes[edges.col]]
        loops = np.arange(nodes.size)
        rows, columns = np.append(edges.row[inside], loops), np.append(edges.col[inside], loops)
        A = _packed(rows, columns, (nodes.size, nodes.size))
        degrees = np.bitwise_count(A.words[0, : nodes.size]).sum(axis=1, dtype=np.int64)
        yield Batch(nodes, starts[first : last + 1] - starts[first], A, degrees)


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
    """Return the pattern of a matrix, a bit per element, as the left operand of `A X`.

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
    """Concatenate the words of several tensors, so that one copy transfers all of them.

    Returns
    -------
    buffer : array of uint32
        The words of all tensors.
    tensors : list of BitTensor
        The same tensors with words that are views of the buffer.

    Raises
    ------
    ArgumentError
        If an argument is not a BitTensor.
    """
    for i, tensor in enumerate(tensors):
        checked_tensor(f"tensors[{i}]", tensor)
    words = [tensor.words.ravel() for tensor in tensors]
    buffer = np.concatenate([np.empty(0, np.uint32), *words])
    return buffer, views(buffer, tensors)


def views(buffer: Any, tensors: Sequence[BitTensor]) -> list[BitTensor]:
    """Return the tensors with words that are views of a buffer, on the host or a GPU."""
    results, start = [], 0
    for tensor in tensors:
        shape = tensor.words.shape
        words = buffer[start : start + math.prod(shape)]
        results.append(replace(tensor, words=words.reshape(shape)))
        start += words.size
    return results
