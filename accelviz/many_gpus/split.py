"""A graph split over several GPUs: the vertices of each, and the rows that it needs of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from accelviz.arrays import Ints, Longs
from accelviz.datasets import load_graph
from accelviz.devices.operands import on_host
from accelviz.errors import (
    ArgumentError,
    GraphError,
    PartitionError,
    checked_integer,
    checked_type,
)
from accelviz.graph import Graph, taken_over
from accelviz.ordering import ORDERS, Permutation, vertex_order
from accelviz.ordering.community import metis_parts
from accelviz.store import Stopwatch

#: Most devices of a split; kernels take as many pointers, because a host has 8 GPUs.
MOST_DEVICES = 8
WORD_BITS = 32


def edge_ranges(row_pointers: Longs, n_devices: int) -> Longs:
    """Cut the vertices into ranges of about equally many edges (Algorithm 3 of chapter 4).

    Parameters
    ----------
    row_pointers : array of int64, shape (n_rows + 1,)
    n_devices : int

    Returns
    -------
    array of int64, shape (n_devices + 1,)
        Device `p` has vertices `bounds[p]` to `bounds[p + 1] - 1`. A range may be empty, as where
        one row holds more than a device's share.

    Notes
    -----
    As in the thesis, each search is confined to the vertices that are left, and aims at the edges
    before them plus an equal share. Four things are printed wrong, and mended:

    - `mid` is the mean of two row pointers, an edge, while the ranges that it halves are of
      vertices: with uneven degrees it steers to the wrong half. Here `numpy.searchsorted` compares
      the middle vertex's pointer with the target;
    - `i = (i + j) / 2` stays where it is once j = i + 1: the loop never ends;
    - the loop finds as many points as there are GPUs, one more than the result is said to hold.
      Here the last range ends with the last vertex, rows without an edge at the end included;
    - of the two vertices around the target the search ends at the later one. Here the nearer one
      counts, so that a hub at the border does not always go to the left.
    """
    row_pointers = on_host("row_pointers", row_pointers)
    if row_pointers.ndim != 1 or not row_pointers.size or row_pointers.dtype.kind not in "iu":
        problem = f"shape {row_pointers.shape}, dtype {row_pointers.dtype}"
        raise PartitionError("row_pointers", problem, "integers: Graph.row_pointers")
    n_devices = checked_integer("n_devices", n_devices, MOST_DEVICES)
    n_rows = row_pointers.size - 1
    edges = int(row_pointers[-1])
    bounds, share = np.zeros(n_devices + 1, np.int64), -(-edges // n_devices)
    for device in range(1, n_devices):
        last = int(bounds[device - 1])
        target = min(int(row_pointers[last]) + share, edges)
        after = last + int(np.searchsorted(row_pointers[last:], target))
        nearer = after > last and target - row_pointers[after - 1] < row_pointers[after] - target
        bounds[device] = after - int(nearer)
    bounds[-1] = n_rows
    return bounds


@dataclass(frozen=True, eq=False)
class Part:
    """One device's rows, as a matrix of its own vertices and one of the others'.

    Attributes
    ----------
    device : int
    first, stop : int
        Its vertices, in the split's order.
    local : Graph, rows x rows
        Edges from its own vertices, which are numbered from 0 on.
    remote : Graph, rows x halo rows
        Edges from the others' vertices. Column `h` is row `h` of the halo.
    local_nonzeros, remote_nonzeros : arrays of int64
        Nonzero `k` of `local` is that nonzero of the split's graph; so for `remote`.
    halo_owner, halo_row : arrays of int32, shape (n_halo,)
        The vertices of others that its edges come from, each once: the owner, and the row there.
        They begin with the next device's and go round, so that devices do not fetch from the same
        one first.
    """

    device: int
    first: int
    stop: int
    local: Graph
    remote: Graph
    local_nonzeros: npt.NDArray[Any]
    remote_nonzeros: npt.NDArray[Any]
    halo_owner: Ints
    halo_row: Ints

    @property
    def n_rows(self) -> int:
        """Vertices of this device."""
        return self.stop - self.first

    @property
    def n_halo(self) -> int:
        """Rows of others that it needs."""
        return self.halo_row.size

    def words(self, n_devices: int) -> npt.NDArray[np.uint32]:
        """Pack owner and number of each halo row into a word, the owner on top.

        Raises
        ------
        PartitionError
            If a device has more rows than the rest of the word can count.
        """
        shift = word_shift(n_devices)
        if self.halo_row.size and int(self.halo_row.max()) >> shift:
            problem = f"a device has {int(self.halo_row.max()) + 1:,} rows or more"
            raise PartitionError("split", problem, f"at most {1 << shift:,} of {n_devices} devices")
        return self.halo_owner.astype(np.uint32) << np.uint32(shift) | self.halo_row.view(np.uint32)


def word_shift(n_devices: int) -> int:
    """Return the number of bits that the row has in a halo word; the owner has the upper ones."""
    return WORD_BITS - max(1, (n_devices - 1).bit_length())


@dataclass(frozen=True, eq=False)
class Split:
    """A graph's vertices divided among devices, rows of X and of Y alike.

    All devices read the features, each device has those of its vertices; the structure is private
    to the device whose rows it describes (hybrid placement, section 4.4.2). Unlike there, X has the
    ranges of the graph, not ranges of equally many rows, so that each device has the rows of a
    layer's result that the next layer needs.

    Attributes
    ----------
    graph : Graph
        Square, in the split's order.
    bounds : array of int64, shape (n_devices + 1,)
        Device `p` has vertices `bounds[p]` to `bounds[p + 1] - 1` of `graph`.
    permutation : Permutation or None
        Vertex `i` of `graph` is the caller's `permutation.order[i]`; None for the same order.
    nonzeros : array of int or None
        Nonzero `k` of `graph` is the caller's nonzero `nonzeros[k]`.
    how : str
        The method.
    setup_seconds : mapping of str to float
    """

    graph: Graph
    bounds: Longs
    permutation: Permutation | None
    nonzeros: npt.NDArray[Any] | None
    how: str
    setup_seconds: dict[str, float]

    @property
    def n_devices(self) -> int:
        """Devices, those without a vertex too."""
        return self.bounds.size - 1

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The part of each device."""
        return tuple(_part(self.graph, self.bounds, device) for device in range(self.n_devices))

    @cached_property
    def transposed(self) -> Split:
        """The same vertices on the same devices, every edge turned round: for gradients."""
        turned = self.graph.transposed()
        order = turned.nonzeros if self.nonzeros is None else self.nonzeros[turned.nonzeros]
        how = f"{self.how}, transposed"
        return Split(turned.graph, self.bounds, self.permutation, order, how, {})

    @property
    def cut_share(self) -> float:
        """Share of the edges that come from another device; 0 of a graph without an edge."""
        return sum(part.remote.nnz for part in self.parts) / max(self.graph.nnz, 1)

    def table(self) -> pd.DataFrame:
        """Return a row for each device: `rows`, `edges`, `local`, `remote`, `halo` and `reuse`.

        `reuse` is the mean number of edges that use a halo row: MGG fetches it so many times.
        """
        lines = []
        for part in self.parts:
            local, remote = part.local.nnz, part.remote.nnz
            counts = {"rows": part.n_rows, "edges": local + remote, "local": local}
            counts |= {"remote": remote, "halo": part.n_halo}
            lines.append({**counts, "reuse": remote / part.n_halo if part.n_halo else np.nan})
        return pd.DataFrame(lines, index=pd.Index(range(self.n_devices), name="device"))

    def apply(self, array: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Return the rows of each device, given all in the caller's order."""
        array = on_host("array", array)
        if array.shape[:1] != (self.graph.n_rows,):
            raise ArgumentError("array", f"shape {array.shape}", f"{self.graph.n_rows} rows")
        ordered = array if self.permutation is None else self.permutation.apply(array)
        return [ordered[a:b] for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True)]

    def collect(self, arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Return all rows in the caller's order, given those of each device."""
        checked_type("arrays", arrays, Sequence, "an array of rows for each device")
        rows = [on_host("arrays", array) for array in arrays]
        if [array.shape[:1] for array in rows] != [(part.n_rows,) for part in self.parts]:
            problem = f"shapes {', '.join(str(array.shape) for array in rows) or 'of nothing'}"
            expected = f"{' and '.join(str(part.n_rows) for part in self.parts)} rows"
            raise ArgumentError("arrays", problem, expected)
        ordered = np.concatenate(rows)
        return ordered if self.permutation is None else self.permutation.invert(ordered)

    def __repr__(self) -> str:
        return (
            f"Split({self.graph.name!r} over {self.n_devices} devices by {self.how}: "
            f"{self.cut_share:.1%} of the edges are cut)"
        )


def split(graph: Any, devices: int = 2, *, by: Any = "edges", order: Any = None) -> Split:
    """Divide a graph's vertices among several devices.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        Square: rows of the result are where rows of the features are.
    devices : int
        1 to 8.
    by : {"edges", "rows", "metis"} or array of int, shape (devices + 1,)
        Ranges of about as many edges each (Algorithm 3, `edge_ranges`), of as many rows, METIS'
        parts, which cut few edges (pymetis), or the first vertex of each range and the number of
        vertices.
    order : str or Permutation, optional
        An order of the vertices to cut into ranges, such as "rabbit" (`ordering.ORDERS`). Without
        one they stay as they are; METIS has its own.

    Returns
    -------
    Split

    Raises
    ------
    GraphError
        If the graph is not square, or the order does not fit.
    PartitionError
        If the number of devices or the bounds are out of range.
    ArgumentError
        If an order does not exist, or its package is not installed.

    Examples
    --------
    >>> from accelviz import many_gpus
    >>> two = many_gpus.split("cora", 2, order="rabbit")
    >>> two.table()["rows"].sum()
    np.int64(2708)
    """
    graph = load_graph(graph)
    if graph.shape[0] != graph.shape[1]:
        problem = f"{graph.shape[0]} x {graph.shape[1]} is not square"
        raise GraphError("graph", problem, "as many rows as columns: both are dealt out alike")
    devices = checked_integer("devices", devices, MOST_DEVICES)
    clock = Stopwatch()
    how, permutation, nonzeros, bounds = str(by), None, None, None
    with clock.step("order"):
        if isinstance(by, str) and by == "metis":
            if order is not None:
                raise PartitionError("order", f"got {order!r}", "None, as METIS has its own")
            labels = metis_parts(graph, devices)
            permutation = Permutation.trusted(np.argsort(labels, kind="stable").astype(np.int32))
            bounds = np.cumsum([0, *np.bincount(labels, minlength=devices)], dtype=np.int64)
        elif isinstance(order, str):
            permutation, how = vertex_order(graph, order), f"{how} in {order} order"
        elif order is not None:
            if not isinstance(order, Permutation):
                expected = "a name of an order, or Permutation(...) of the vertices"
                raise PartitionError("order", f"got a {type(order).__name__}", expected)
            permutation, how = order, f"{how} in a given order"
        if permutation is not None:
            pattern, nonzeros = permutation.apply_to_pattern(graph.pattern, columns=True)
            graph = Graph(
                *(pattern.row_pointers, pattern.column_indices),
                taken_over(np.take(graph.values, nonzeros)),
                *(graph.shape, graph.name, graph.source, graph.kind),
            )
    with clock.step("ranges"):
        if bounds is None:
            bounds, how = _bounds(graph, devices, by, how)
    divided = Split(graph, bounds, permutation, nonzeros, how, clock.seconds)
    with clock.step("parts"):
        divided.parts  # noqa: B018 - computed now, so that they are timed
    return divided


def _bounds(graph: Graph, devices: int, by: Any, how: str) -> tuple[Longs, str]:
    if isinstance(by, str):
        if by == "edges":
            return edge_ranges(graph.row_pointers, devices), how
        if by == "rows":
            return np.linspace(0, graph.n_rows, devices + 1).astype(np.int64), how
        expected = f"'edges', 'rows', 'metis' or bounds; as order= one of {', '.join(ORDERS)}"
        raise PartitionError("by", f"got {by!r}", expected)
    bounds = np.asarray(by)
    fits = bounds.shape == (devices + 1,) and bounds.dtype.kind in "iu"
    if not fits or bounds[0] != 0 or bounds[-1] != graph.n_rows or (np.diff(bounds) < 0).any():
        expected = f"{devices + 1} integers from 0 to {graph.n_rows}, never falling"
        raise PartitionError("by", f"got {by!r}", expected)
    return bounds.astype(np.int64), "given bounds"


def _part(graph: Graph, bounds: Longs, device: int) -> Part:
    first, stop = map(int, bounds[device : device + 2])
    pointers = graph.row_pointers[first : stop + 1]
    begin, end = int(pointers[0]), int(pointers[-1])
    columns, shape = graph.column_indices[begin:end], (stop - first, graph.n_rows)
    nonzeros = sparse.csr_array((np.arange(begin, end), columns, pointers - begin), shape)
    used = np.zeros(graph.n_rows, np.bool_)
    used[columns] = True
    used[first:stop] = False
    halo = np.concatenate([stop + np.flatnonzero(used[stop:]), np.flatnonzero(used[:first])])
    owner = np.searchsorted(bounds, halo, side="right") - 1
    name = f"{graph.name}, device {device}"
    local, local_nonzeros = _taken(graph, nonzeros[:, first:stop], name)
    remote, remote_nonzeros = _taken(graph, nonzeros[:, halo], f"{name}, remote")
    return Part(
        *(device, first, stop, local, remote, local_nonzeros, remote_nonzeros),
        *(owner.astype(np.int32), (halo - bounds[owner]).astype(np.int32)),
    )


def _taken(graph: Graph, nonzeros: sparse.csr_array, name: str) -> tuple[Graph, Longs]:
    """Return a matrix of numbers of a graph's nonzeros as a graph, and the numbers."""
    nonzeros.sort_indices()
    pointers, columns = nonzeros.indptr.astype(np.int64), nonzeros.indices.astype(np.int32)
    arrays = (
        taken_over(pointers),
        taken_over(columns),
        taken_over(np.take(graph.values, nonzeros.data)),
    )
    return Graph(*arrays, nonzeros.shape, name, graph.source, graph.kind), nonzeros.data
