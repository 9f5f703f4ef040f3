"""An `edge_index` on the CPU in CSR form, by target and by source, cached by its content.

The key of the cache is a hash of the node numbers, computed at each call: PyTorch's version counter
does not count changes through a NumPy array of the same memory or through `.data`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from accelviz.arrays import Floats, Ints
from accelviz.compiled import njit
from accelviz.errors import ArgumentError, memory_bytes
from accelviz.plans.replay import Records, in_threads

#: Number of graphs in the cache, and of their bytes. The latest graph may have more bytes, up to a
#: quarter of the machine's memory, so that a backward pass finds the graph of its forward pass.
CACHE_GRAPHS, CACHE_BYTES = 256, 256 << 20
#: Number of 64-bit words that one call of `_hash` reads; least number of edges that a thread sorts.
_WORDS, _EDGES = 1 << 17, 1 << 18
_P1, _P2, _P3 = (
    np.uint64(prime) for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
)

_cache: dict[tuple[int, ...], Adjacency] = {}
#: At least the number of bytes of the graphs in the cache.
_most_bytes = 0


class CSR(NamedTuple):
    """The items of a graph, grouped by target (rows are targets) or by source.

    Attributes
    ----------
    columns : array of int32, shape (nnz,)
        The other node of each item.
    items : array of int32, shape (nnz,)
        Number of each item, ascending within a row.
    records : Records
        Each row as one record.
    """

    columns: Ints
    items: Ints
    records: Records

    @property
    def degrees(self) -> Any:
        """Number of items of each row, int64."""
        return self.records.walk[2]


class Adjacency:
    """The items of a graph by target and by source, and their scales.

    Parameters
    ----------
    edges : array of int64 or int32, shape (2, E), contiguous
        The object does not store it, but a function that sorts it: `csr` has it as an argument.
    sources, targets, loops : int
        See `operators.Size`.

    Raises
    ------
    ArgumentError
        If a node does not exist.
    """

    def __init__(self, edges: Any, sources: int, targets: int, loops: int) -> None:
        self.size, self.loops = (sources, targets), loops
        self.n_items = edges.shape[1] + loops
        if self.n_items >= 1 << 31:
            raise ArgumentError("edge_index", f"{self.n_items} edges and loops", "below 2^31")
        if loops > min(self.size):
            raise ArgumentError("loops", f"got {loops}", f"0 to {min(self.size)}")
        self.nbytes = 0
        self._arrays: dict[Any, Any] = {}
        self._in_degrees = self.csr(edges, False).degrees.astype(np.float32)

    def csr(self, edges: Any, by_source: bool) -> CSR:
        """Return the items by target or by source."""
        row = 0 if by_source else 1

        def sort() -> tuple[CSR, int]:
            csr = _sorted(edges, row, self.size, self.loops)
            arrays: tuple[Any, ...] = csr.items, csr.records.cost, *csr.records.walk
            return csr, sum(array.nbytes for array in arrays)

        csr: CSR = self._cached(row, sort)
        return csr

    def values(self, edges: Any, scaling: str, transposed: bool) -> Floats:
        """Return the factor of each item in the order of `csr`; see `operators.spmm`."""
        csr = self.csr(edges, transposed)

        def compute() -> tuple[Floats, int]:
            values, degrees = np.ones(csr.columns.size, np.float32), self._in_degrees
            if scaling == "mean":
                scale = 1 / np.maximum(degrees, 1)
                values = scale[csr.columns] if transposed else np.repeat(scale, csr.degrees)
            elif scaling == "symmetric":
                scale = np.zeros(max(self.size), np.float32)
                np.divide(1, np.sqrt(degrees), out=scale[: degrees.size], where=degrees > 0)
                values = np.repeat(scale[: csr.degrees.size], csr.degrees) * scale[csr.columns]
            return values, values.nbytes

        values: Floats = self._cached((scaling, transposed and scaling != "sum"), compute)
        return values

    def _cached(self, key: Any, compute: Callable[[], tuple[Any, int]]) -> Any:
        if key not in self._arrays:
            self._arrays[key], nbytes = compute()
            self.nbytes += nbytes
            _trim_cache(nbytes)
        return self._arrays[key]


def adjacency(edge_index: Any, sources: int, targets: int, loops: int) -> tuple[Any, Adjacency]:
    """Return the node numbers as a NumPy array, and their graph, new or from the cache."""
    edges = edge_array(edge_index)
    key = (_content_hash(edges), edges.size, edges.itemsize, sources, targets, loops)
    graph = _cache.pop(key, None)  # a thread that misses it meanwhile makes its own
    _cache[key] = graph = graph or Adjacency(edges, sources, targets, loops)
    return edges, graph


def edge_array(edge_index: Any) -> Any:
    """Return the node numbers as a contiguous NumPy array."""
    if edge_index.dtype not in (torch.int64, torch.int32) or edge_index.shape[:-1] != (2,):
        problem = f"shape {tuple(edge_index.shape)}, {edge_index.dtype}"
        raise ArgumentError("edge_index", problem, "int64 or int32, shape (2, E)")
    return np.ascontiguousarray(edge_index.detach().numpy())


def _trim_cache(nbytes: int) -> None:
    """Drop the graphs that were used the longest time ago, after `nbytes` more bytes."""
    global _most_bytes
    for key in list(_cache)[: max(0, len(_cache) - CACHE_GRAPHS)]:
        _cache.pop(key, None)
    _most_bytes += nbytes
    if _most_bytes <= CACHE_BYTES:
        return  # Else a step with a new graph would add up 256 graphs several times.
    graphs = list(_cache.items())
    _most_bytes = sum(graph.nbytes for _, graph in graphs)
    for n_left, (key, graph) in zip(range(len(graphs), 0, -1), graphs, strict=True):
        if _most_bytes > (CACHE_BYTES if n_left > 1 else max(CACHE_BYTES, memory_bytes() // 4)):
            _cache.pop(key, None)
            _most_bytes -= graph.nbytes


def _content_hash(edges: Any) -> int:
    """Return a hash of 64 bits of an array."""
    words = edges.reshape(-1).view(np.uint64)
    if words.size <= _WORDS:
        return int(_hash(words, 0, words.size))
    bounds = [*range(0, words.size, _WORDS), words.size]
    hashes = np.empty(len(bounds) - 1, np.uint64)

    def compute(first: int, last: int) -> None:
        hashes[first // _WORDS] = _hash(words, first, last)

    in_threads(compute, bounds, torch.get_num_threads() if len(bounds) > 4 else 1)
    return int(_hash(hashes, 0, hashes.size))


@njit(inline="always")
def _add_word(total: Any, word: Any) -> Any:
    total += word * _P2
    return ((total << np.uint64(31)) | (total >> np.uint64(33))) * _P1


@njit(nogil=True)
def _hash(words: Any, first: int, last: int) -> Any:
    a, b, c, d = _P1, _P2, _P3, np.uint64(last - first)
    stop = last - (last - first) % 4
    for k in range(first, stop, 4):  # four sums hide the latency of the products
        a = _add_word(a, words[k])
        b = _add_word(b, words[k + 1])
        c = _add_word(c, words[k + 2])
        d = _add_word(d, words[k + 3])
    for k in range(stop, last):
        a = _add_word(a, words[k])
    total = _P3
    for part in (a, b, c, d):
        total = _add_word(total, part ^ (part >> np.uint64(29)))
    return total ^ (total >> np.uint64(32))


def _sorted(edges: Any, row: int, size: tuple[int, int], loops: int) -> CSR:
    """Sort the items by the nodes in a row of `edges`, by counting; equal ones keep their order."""
    operands = edges[row], edges[1 - row], size[row], size[1 - row], loops
    n_edges = edges.shape[1]
    threads = min(torch.get_num_threads(), n_edges // max(_EDGES, size[row]) + 1)
    sort = _sort if threads == 1 else functools.partial(_sort_in_threads, threads)
    items, walk, cost = sort(*operands)
    if cost.size != size[row] + 1:
        raise no_such_node(edges, size)
    return CSR(walk[3], items, Records(walk, cost))


def no_such_node(edges: Any, size: tuple[int, int]) -> ArgumentError:
    """Return the error of edges whose nodes do not all exist."""
    ranges = [f"{int(nodes.min())} to {int(nodes.max())}" for nodes in edges]
    problem = f"sources {ranges[0]}, targets {ranges[1]}"
    expected = f"sources 0 to {size[0] - 1}, targets 0 to {size[1] - 1}"
    return ArgumentError("edge_index", problem, expected)


def _sort_in_threads(
    threads: int, index: Any, other: Any, n_rows: int, n_columns: int, loops: int
) -> Any:
    """Return the result of `_sort`."""
    n_edges = index.size
    bounds = [n_edges * thread // threads for thread in range(threads + 1)]
    counts, valid = np.zeros((threads, n_rows), np.int32), np.ones(threads, bool)

    def count(first: int, last: int) -> None:
        thread = bounds.index(first)
        valid[thread] = _count(first, last, index, other, n_columns, loops, counts[thread])

    in_threads(count, bounds, threads)
    columns, items = (np.empty(n_edges + loops, np.int32) for _ in range(2))
    if not valid.all():
        return _records(np.zeros(0, np.int64), columns, items)
    row_pointers = _positions(counts, n_edges, loops, columns, items)

    def scatter(first: int, last: int) -> None:
        _scatter(first, last, index, other, loops, counts[bounds.index(first)], columns, items)

    in_threads(scatter, bounds, threads)
    return _records(row_pointers, columns, items)


@njit(nogil=True)
def _count(
    first: int, last: int, index: Any, other: Any, n_columns: int, loops: int, counts: Ints
) -> bool:
    """Count the edges of each row; return whether all nodes exist."""
    for e in range(first, last):
        i, j = index[e], other[e]
        if not (0 <= i < counts.size and 0 <= j < n_columns):
            return False
        if loops == 0 or i != j:
            counts[i] += 1
    return True


@njit(nogil=True)
def _positions(counts: Any, n_edges: int, loops: int, columns: Ints, items: Ints) -> Any:
    """Replace the counts of each thread by its positions, write the loops, return the pointers."""
    position, row_pointers = 0, np.zeros(counts.shape[1] + 1, np.int64)
    for i in range(counts.shape[1]):
        for thread in range(counts.shape[0]):
            count = counts[thread, i]
            counts[thread, i] = position
            position += count
        if i < loops:
            columns[position], items[position] = i, n_edges + i
            position += 1
        row_pointers[i + 1] = position
    return row_pointers


@njit(nogil=True)
def _scatter(
    first: int,
    last: int,
    index: Any,
    other: Any,
    loops: int,
    positions: Ints,
    columns: Ints,
    items: Ints,
) -> None:
    """Write the edges to their positions."""
    for e in range(first, last):
        i, j = index[e], other[e]
        if loops == 0 or i != j:
            position = positions[i]
            columns[position], items[position] = j, e
            positions[i] = position + 1


@njit(nogil=True)
def _records(row_pointers: Any, columns: Ints, items: Ints) -> Any:
    """Return the items in their order, and the attributes of `Records`, empty without pointers."""
    rows, n_items = np.arange(row_pointers.size), row_pointers[-1] if row_pointers.size else 0
    degrees, row_numbers = np.diff(row_pointers), rows[:-1].astype(np.int32)
    walk = rows, row_pointers[:-1], degrees, columns[:n_items], row_numbers
    return items[:n_items], walk, row_pointers + rows


@njit(nogil=True)
def _sort(index: Any, other: Any, n_rows: int, n_columns: int, loops: int) -> Any:
    """Sort in one call, which costs less than three; if a node does not exist, `cost` is empty."""
    n_edges, row_pointers = index.size, np.zeros(0, np.int64)
    counts = np.zeros((1, n_rows), np.int32)
    columns, items = np.empty(n_edges + loops, np.int32), np.empty(n_edges + loops, np.int32)
    if _count(0, n_edges, index, other, n_columns, loops, counts[0]):
        row_pointers = _positions(counts, n_edges, loops, columns, items)
        _scatter(0, n_edges, index, other, loops, counts[0], columns, items)
    return _records(row_pointers, columns, items)
