"""`split`: a graph whose vertices are divided among several GPUs.

A device has a range of vertices with their rows of the matrix, of X and of Y. Edges from its own
vertices are local, others remote. Its halo are the rows of X of other devices that its remote edges
need, each once.
"""

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
from accelviz.errors import ArgumentError, GraphError, PartitionError, checked_integer, checked_type
from accelviz.graph import Graph
from accelviz.immutable import taken_over
from accelviz.ordering import ORDERS, Permutation, vertex_order
from accelviz.ordering.community import metis_parts
from accelviz.store import Stopwatch

#: Maximum number of devices: kernels have 8 pointer arguments, as a host has 8 GPUs.
MAX_DEVICES = 8
#: Bits of a halo word (`Part.words`).
WORD_BITS = 32


def edge_ranges(row_pointers: Longs, n_devices: int) -> Longs:
    """Divide the vertices into ranges with about the same number of edges (Algorithm 3, chapter 4).

    Parameters
    ----------
    row_pointers : array of int64, shape (n_rows + 1,)
    n_devices : int

    Returns
    -------
    array of int64, shape (n_devices + 1,)
        Device `p` has vertices `bounds[p]` to `bounds[p + 1] - 1`. A range may be empty, for
        example if one row has more edges than a device's share.

    Notes
    -----
    As in the thesis, the end of each range is searched among the remaining vertices, for the number
    of edges before the range plus an equal share. Four errors of the printed algorithm are
    corrected:

    - `mid` is the mean of two row pointers, which count edges, but it halves a range of vertices.
      With uneven degrees it selects the wrong half. Here `numpy.searchsorted` compares the row
      pointer of the middle vertex with the target.
    - `i = (i + j) / 2` no longer changes once j = i + 1, so that the loop does not end.
    - The loop finds as many points as there are GPUs, one more than the size of the result. Here
      the last range ends with the last vertex.
    - The search returns the later one of the two vertices around the target. Here it returns the
      nearer one, so that a hub at the border is not always given to the earlier range.
    """
    row_pointers = on_host("row_pointers", row_pointers)
    if row_pointers.ndim != 1 or not row_pointers.size or row_pointers.dtype.kind not in "iu":
        problem = f"shape {row_pointers.shape}, dtype {row_pointers.dtype}"
        raise PartitionError("row_pointers", problem, "integers: Graph.row_pointers")
    n_devices = checked_integer("n_devices", n_devices)
    edges = int(row_pointers[-1])
    bounds, share = np.zeros(n_devices + 1, np.int64), -(-edges // n_devices)
    for device in range(1, n_devices):
        first = int(bounds[device - 1])
        target = min(int(row_pointers[first]) + share, edges)
        stop = first + int(np.searchsorted(row_pointers[first:], target))
        if stop > first and target - row_pointers[stop - 1] < row_pointers[stop] - target:
            stop -= 1
        bounds[device] = stop
    bounds[-1] = row_pointers.size - 1
    return bounds


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of one device, as a matrix of local edges and a matrix of remote edges.

    Attributes
    ----------
    device : int
    first, stop : int
        The device has the vertices `first` to `stop - 1` of the split's graph.
    local : Graph, shape (n_rows, n_rows)
        Local edges; vertices are numbered from 0 on.
    remote : Graph, shape (n_rows, n_halo)
        Remote edges; column `h` is row `h` of the halo.
    halo_owner, halo_row : arrays of int32, shape (n_halo,)
        Owner of each halo row, and the row's number on the owner. The order starts with the next
        device and wraps around, so that the devices do not all fetch from the same device first.
    """

    device: int
    first: int
    stop: int
    local: Graph
    remote: Graph
    halo_owner: Ints
    halo_row: Ints

    @property
    def n_rows(self) -> int:
        """Number of vertices of this device."""
        return self.stop - self.first

    @property
    def n_halo(self) -> int:
        """Number of halo rows."""
        return self.halo_row.size

    def words(self, n_devices: int) -> npt.NDArray[np.uint32]:
        """Return the halo words: the owner in the upper bits, the row's number in the lower ones.

        Raises
        ------
        PartitionError
            If the number of a row does not fit into the lower bits.
        """
        shift = word_shift(n_devices)
        if self.halo_row.size and int(self.halo_row.max()) >> shift:
            problem = f"a device has {int(self.halo_row.max()) + 1:,} rows or more"
            raise PartitionError("split", problem, f"at most {1 << shift:,} of {n_devices} devices")
        return self.halo_owner.astype(np.uint32) << np.uint32(shift) | self.halo_row.view(np.uint32)


def word_shift(n_devices: int) -> int:
    """Return the number of lower bits of a halo word, those of the row's number."""
    return WORD_BITS - max(1, (n_devices - 1).bit_length())


@dataclass(frozen=True, eq=False)
class Split:
    """The vertices of a graph, with their rows of X and Y, divided among devices.

    As in MGG's hybrid placement (section 4.4.2), the features of a device are readable by all
    devices, and only the device itself reads the structure of its rows. Unlike there, X is divided
    into the same ranges as the graph. A layer's result is then already divided as the X of the next
    layer.

    Attributes
    ----------
    graph : Graph
        A square graph in the split's vertex order.
    bounds : array of int64, shape (n_devices + 1,)
        Device `p` has vertices `bounds[p]` to `bounds[p + 1] - 1` of `graph`.
    permutation : Permutation or None
        Vertex `i` of `graph` is the caller's vertex `permutation.order[i]`. None if both orders are
        the same.
    how : str
        Method of the split, for messages.
    setup_seconds : dict of str to float
        Seconds of each step of `split`.
    """

    graph: Graph
    bounds: Longs
    permutation: Permutation | None
    how: str
    setup_seconds: dict[str, float]

    @property
    def n_devices(self) -> int:
        """Number of devices, including those without a vertex."""
        return self.bounds.size - 1

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The part of each device."""
        return tuple(_part(self.graph, self.bounds, device) for device in range(self.n_devices))

    @property
    def cut_share(self) -> float:
        """Share of remote edges, 0 for a graph without edges."""
        return sum(part.remote.nnz for part in self.parts) / max(self.graph.nnz, 1)

    def table(self) -> pd.DataFrame:
        """Return one row per device: `rows`, `edges`, `local`, `remote`, `halo` and `reuse`.

        `local` and `remote` are numbers of edges, `halo` is the number of halo rows. `reuse` is the
        mean number of edges per halo row, which is how often MGG fetches it.
        """
        rows = []
        for part in self.parts:
            local, remote = part.local.nnz, part.remote.nnz
            counts = {"rows": part.n_rows, "edges": local + remote, "local": local}
            counts |= {"remote": remote, "halo": part.n_halo}
            rows.append({**counts, "reuse": remote / part.n_halo if part.n_halo else np.nan})
        return pd.DataFrame(rows, index=pd.Index(range(self.n_devices), name="device"))

    def apply(self, array: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Return the rows of each device, given all rows in the caller's order."""
        array = on_host("array", array)
        if array.shape[:1] != (self.graph.n_rows,):
            raise ArgumentError("array", f"shape {array.shape}", f"{self.graph.n_rows} rows")
        ordered = array if self.permutation is None else self.permutation.apply(array)
        return [ordered[a:b] for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True)]

    def collect(self, arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Return all rows in the caller's order, given the rows of each device."""
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
        A square graph, because rows of X and of Y have the same owner.
    devices : int
        Number of devices; programs (`plan`) are for at most 8.
    by : {"edges", "rows", "metis"} or array of int, shape (devices + 1,)
        "edges": ranges with about the same number of edges (Algorithm 3, `edge_ranges`). "rows":
        ranges with the same number of rows. "metis": METIS' parts, with few remote edges (requires
        pymetis). An array has the bounds of the ranges, from 0 to the number of vertices.
    order : str or Permutation, optional
        Vertex order before the division, such as "rabbit" (`ordering.ORDERS`); by default the given
        one. METIS computes its own order.

    Returns
    -------
    Split

    Raises
    ------
    GraphError
        If the graph is not square, or the permutation has another size.
    PartitionError
        If the number of devices or the bounds are out of range.
    ArgumentError
        If there is no such order, or its package is not installed.

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
    devices = checked_integer("devices", devices)
    clock = Stopwatch()
    how, permutation, bounds = str(by), None, None
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
            graph = permutation.apply_to_graph(graph, columns=True)
    with clock.step("ranges"):
        if bounds is None:
            bounds, how = _bounds(graph, devices, by, how)
    return Split(graph, bounds, permutation, how, clock.seconds)


def _bounds(graph: Graph, devices: int, by: Any, how: str) -> tuple[Longs, str]:
    """Return the bounds of the ranges, and the description of the method."""
    if isinstance(by, str):
        if by == "edges":
            return edge_ranges(graph.row_pointers, devices), how
        if by == "rows":
            return np.linspace(0, graph.n_rows, devices + 1).astype(np.int64), how
        expected = f"'edges', 'rows', 'metis' or bounds; as order= one of {', '.join(ORDERS)}"
        raise PartitionError("by", f"got {by!r}", expected)
    bounds = np.asarray(by)
    well_formed = bounds.shape == (devices + 1,) and bounds.dtype.kind in "iu"
    if (
        not well_formed
        or (bounds[0], bounds[-1]) != (0, graph.n_rows)
        or (np.diff(bounds) < 0).any()
    ):
        expected = f"{devices + 1} integers from 0 to {graph.n_rows}, never falling"
        raise PartitionError("by", f"got {by!r}", expected)
    return bounds.astype(np.int64), "given bounds"


def _part(graph: Graph, bounds: Longs, device: int) -> Part:
    first, stop = map(int, bounds[device : device + 2])
    rows = graph.adjacency[first:stop]
    columns = rows.indices
    is_halo = np.zeros(graph.n_rows, np.bool_)
    is_halo[columns] = True
    is_halo[first:stop] = False
    halo = np.concatenate([stop + np.flatnonzero(is_halo[stop:]), np.flatnonzero(is_halo[:first])])
    owner = np.searchsorted(bounds, halo, side="right") - 1
    name = f"{graph.name}, device {device}"
    return Part(
        *(device, first, stop),
        _subgraph(graph, rows[:, first:stop], name),
        _subgraph(graph, rows[:, halo], f"{name}, remote"),
        *(owner.astype(np.int32), (halo - bounds[owner]).astype(np.int32)),
    )


def _subgraph(graph: Graph, matrix: sparse.csr_array, name: str) -> Graph:
    """Return a matrix as a graph of the kind of `graph`."""
    matrix.sort_indices()
    pointers, columns = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    arrays = taken_over(pointers), taken_over(columns), taken_over(matrix.data)
    return Graph(*arrays, matrix.shape, name, graph.source, graph.kind)
