"""A graph whose nodes are divided among the ranks of `torch.distributed`.

`torchrun` starts one process per device. A rank has a range of nodes, with their features and the
edges into them. Its *halo* are the nodes of other ranks from which its edges come.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import distributed

from accelviz.datasets import load_graph
from accelviz.errors import ArgumentError, DeviceUnavailable, GraphError, checked_integer
from accelviz.graph import Graph
from accelviz.many_gpus.model import Work
from accelviz.many_gpus.process import join, this_process
from accelviz.many_gpus.split import Split, edge_ranges, split
from accelviz.many_gpus.step import WHOLE_SHARE, StepPrediction, predict_step
from accelviz.torch import operators
from accelviz.torch.composed import Size
from accelviz.torch.edges import check_edge_index, fix
from accelviz.torch.exchange import Exchange, Fetch, Matrix, OverlappedSum
from accelviz.torch.halo_rows import HaloRows, plain

#: Operands of an attention with a row per source, and with a row per target.
_OF_SOURCES, _OF_TARGETS = ("sender", "V", "K", "scale"), ("receiver", "R", "Q")


class SplitGraph:
    """Part of a graph that a rank has, in place of `edge_index` of accelviz's layers.

    All ranks have to create it with the same graph, and to call the same layers in the same order.
    The first one joins `torch.distributed` if the program has not, with the rank of `torchrun`,
    `mpirun` or `srun`: backend NCCL on GPUs, gloo on CPUs. Without a launcher it has all nodes.

    Parameters
    ----------
    graph : tensor, Split, or anything `load_graph` takes
        An `edge_index` of shape (2, E), sources and targets; a square graph whose rows are targets;
        or the result of `many_gpus.split`, which has another order of the nodes or other ranges.
    n_nodes : int, optional
        Number of nodes; required for an `edge_index`.
    weight : tensor, shape (E,), optional
        `edge_weight` of `GCNConv`, for an `edge_index`; other layers refuse it.
    devices : int or "auto", optional
        Number of ranks that get nodes, by default all. The others are idle, and may end. "auto" is
        the number for which `many_gpus.predict_step` predicts the fastest step.
    columns : sequence of int, optional
        For "auto": columns of the features and of each layer's result, such as (128, 64, 16).
    device : str or torch.device, optional
        By default the GPU of this rank, or the CPU without a GPU.
    group : ProcessGroup, optional
        The ranks; all by default.
    **prediction
        For "auto": further arguments of `many_gpus.predict_step`, such as `attention=True`.

    Attributes
    ----------
    rank, size : int
        Number of this rank, and of ranks with nodes.
    prediction : StepPrediction or None
        What "auto" chose, and why: `print(graph.prediction)`.
    is_idle : bool
        Whether this rank has no part in the graph; it then has no further attributes.
    device : torch.device
    nodes : tensor of int64, shape (n_own,)
        The caller's numbers of this rank's nodes: `x[graph.nodes]` are their rows.
    bounds : array of int64, shape (size + 1,)
        Rank `r` has the nodes `bounds[r]` to `bounds[r + 1] - 1`, in the order of the split.
    edge_index : tensor of int32, shape (2, E)
        Edges into this rank's nodes. Sources are numbered own nodes first, then the halo.
    weight : tensor or None
        Weights of these edges.
    n_own, n_sources : int
        Number of own nodes, and of rows with the halo, of which the last may be zeros.
    overlap : bool
        Whether sums and means of neighbors are computed while rows travel, True by default.

    Raises
    ------
    ArgumentError, GraphError
        If the graph is invalid, differs between ranks, or has fewer nodes than ranks.
        GPUs of several kinds need a `Split` with ranges of their sizes.
    DeviceUnavailable
        If the processes cannot connect.

    Notes
    -----
    A layer computes its dense product on own nodes, fetches the rows of the halo, and runs its
    operation on the local edges. Rows are numbered so that sums have the same order as those of one
    process.

    Examples
    --------
    >>> from accelviz.torch import GCNConv, SplitGraph
    >>> graph = SplitGraph("cora", device="cpu")  # one process: all nodes
    >>> GCNConv(8, 4)(torch.ones(graph.n_own, 8), graph).shape
    torch.Size([2708, 4])
    """

    overlap = True

    def __init__(
        self,
        graph: Any,
        n_nodes: int | None = None,
        weight: Any = None,
        *,
        devices: int | str | None = None,
        columns: Sequence[int] | None = None,
        device: Any = None,
        group: Any = None,
        **prediction: Any,
    ) -> None:
        self.device = torch.device(_default_device() if device is None else device)
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        self.size, self.rank, self.group = 1, 0, group
        if _join(self.device):
            self.size, self.rank = distributed.get_world_size(group), distributed.get_rank(group)
            backend = distributed.get_backend(group)
            if backend == ("gloo" if self.device.type == "cuda" else "nccl"):
                problem = f"{self.device} with the backend {backend}"
                expected = "NCCL for GPUs, gloo for CPUs: leave init_process_group to SplitGraph"
                raise ArgumentError("device", problem, expected)
        if not isinstance(graph, torch.Tensor | Split):
            graph = load_graph(graph)
        self.prediction = None
        if devices == "auto":
            self.prediction = self._predicted(graph, n_nodes, columns, prediction)
            devices = self.prediction.choice
        elif columns is not None or prediction:
            name = "columns" if columns is not None else min(prediction)
            raise ArgumentError(name, f"given with devices={devices!r}", "devices='auto'")
        if devices is not None:
            self._use_first(devices)
        self.is_idle = self.rank >= self.size
        if self.is_idle:
            return
        order = None
        if isinstance(graph, torch.Tensor):
            check_edge_index(graph)
            edges = self._of_edge_index(graph, checked_nodes(n_nodes), weight)
        else:
            if weight is not None or n_nodes is not None:
                name = "weight" if n_nodes is None else "n_nodes"
                raise ArgumentError(name, "for a graph that has its own", "an edge_index, or None")
            edges = self._of_graph(graph)
            if isinstance(graph, Split) and graph.permutation is not None:
                order = torch.tensor(graph.permutation.order, dtype=torch.int64)
        source, target, self.weight, *stored = edges
        self.n_nodes = int(self.bounds[-1])
        self._check_alike(*stored)
        if not isinstance(graph, Split):
            self._check_speeds()
        first, stop = self.bounds[self.rank : self.rank + 2].tolist()
        self.n_own = stop - first
        numbers = torch.arange(first, stop) if order is None else order[first:stop]
        self.nodes = numbers.to(self.device)
        halo = self._number_sources(source, target, first, stop)
        if self.size > 1:
            bounds = torch.tensor(self.bounds, device=self.device)
            self.exchange = Exchange(halo, bounds, self.rank, self.group)
        self._cached: dict[Any, Any] = {}

    def _predicted(self, graph: Any, n_nodes: Any, columns: Any, options: Any) -> StepPrediction:
        """Return the prediction of the number of devices with the fastest step."""
        if columns is None:
            expected = "columns of the features and of each layer's result, such as (128, 64, 16)"
            raise ArgumentError("columns", "missing for devices='auto'", expected)
        if isinstance(graph, Split):
            splits = [graph] if graph.n_devices <= self.size else []
        else:
            if isinstance(graph, torch.Tensor):
                check_edge_index(graph)
                graph = _graph_of(graph, checked_nodes(n_nodes))
            counts = {self.size, *(1 << k for k in range(1, self.size.bit_length()))}
            splits = [split(graph, n) for n in sorted(counts) if n <= self.size]
        predictions = [predict_step(Work.of(part), columns, **options) for part in splits]
        return min(predictions, key=lambda prediction: prediction.seconds)

    def _use_first(self, devices: Any) -> None:
        """Let the first ranks have all nodes."""
        devices = checked_integer("devices", devices, self.size, error=ArgumentError)
        if devices < self.size:
            if self.group is not None:
                raise ArgumentError("devices", f"{devices} ranks of a group", "all, or no group")
            self.group, self.size = distributed.new_group(range(devices)), devices

    def _of_edge_index(self, edge_index: Any, n_nodes: int, weight: Any) -> tuple[Any, ...]:
        """Set `bounds`; return sources, targets and weights of own edges, then what is stored."""
        if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < n_nodes:
            problem = f"nodes {int(edge_index.min())} to {int(edge_index.max())}"
            raise ArgumentError("edge_index", problem, f"0 to {n_nodes - 1}")
        if weight is not None and tuple(weight.shape) != (edge_index.size(1),):
            problem = f"shape {tuple(weight.shape)} for {edge_index.size(1)} edges"
            raise ArgumentError("weight", problem, "one weight per edge")
        degrees = torch.bincount(edge_index[1], minlength=n_nodes).cpu().numpy()
        self.bounds = edge_ranges(np.concatenate([[0], np.cumsum(degrees)]), self.size)
        first, stop = self.bounds[self.rank : self.rank + 2].tolist()
        is_own = (edge_index[1] >= first) & (edge_index[1] < stop)
        source, target = edge_index[:, is_own].to(self.device)
        stored = [edge_index]
        if weight is not None:
            stored.append(weight)
            weight = weight.detach()[is_own].to(self.device)
        return source.long(), (target - first).int(), weight, edge_index.size(1), *stored

    def _of_graph(self, graph: Any) -> tuple[Any, ...]:
        """Do what `_of_edge_index` does for a graph in CSR format, or a split."""
        if isinstance(graph, Split):
            if self.size == 1:
                graph = replace(graph, bounds=graph.bounds[[0, -1]])
            if graph.n_devices != self.size:
                problem = f"a split over {graph.n_devices} devices for {self.size} ranks"
                raise ArgumentError("graph", problem, f"many_gpus.split(..., devices={self.size})")
            self.bounds, graph = graph.bounds, graph.graph
        else:
            _check_square(graph)
            self.bounds = edge_ranges(graph.row_pointers, self.size)
        first, stop = self.bounds[self.rank : self.rank + 2].tolist()
        pointers = graph.row_pointers[first : stop + 1]
        columns = graph.column_indices[pointers[0] : pointers[-1]]
        weight, values = None, graph.values[pointers[0] : pointers[-1]]
        if not bool((values == 1).all()):
            weight = torch.tensor(values, device=self.device)
        degrees = torch.tensor(np.diff(pointers), device=self.device)
        rows = torch.arange(stop - first, dtype=torch.int32, device=self.device)
        target = rows.repeat_interleave(degrees, output_size=columns.size)
        sources = torch.tensor(columns, device=self.device).long()
        stored = graph.row_pointers, graph.column_indices, graph.values
        return sources, target, weight, graph.nnz, *stored

    def _check_alike(self, n_edges: int, *stored: Any) -> None:
        """Raise an error on all ranks unless all have the same graph, and a node each."""
        if self.n_nodes < self.size:
            problem = f"{self.n_nodes} nodes for {self.size} ranks"
            raise ArgumentError("graph", problem, "at least a node for each: start fewer processes")
        if self.size == 1:
            return
        checksum = 0
        for array in stored:
            if isinstance(array, torch.Tensor):
                array = array.detach().cpu().numpy()
            checksum = zlib.crc32(np.ascontiguousarray(array), checksum)
        mine = [self.n_nodes, n_edges, checksum, *self.bounds.tolist()]
        sent = torch.tensor(mine, device=self.device)
        received = [torch.empty_like(sent) for _ in range(self.size)]
        distributed.all_gather(received, sent, group=self.group)
        table = torch.stack(received).tolist()
        if any(row[:3] != mine[:3] for row in table):
            sizes = [tuple(row[:2]) for row in table]
            problem = f"ranks have different graphs: (nodes, edges) {sizes}"
            if len(set(sizes)) == 1:
                problem = "ranks have different edges or weights, or edges in another order"
            raise ArgumentError("graph", problem, "the same graph on all ranks")
        if any(row != mine for row in table):
            raise ArgumentError("graph", "ranks have different ranges", "the same on all ranks")

    def _check_speeds(self) -> None:
        """Raise an error on all ranks if GPUs of several kinds get equal shares of the edges."""
        if self.size > 1:
            names: list[Any] = [None] * self.size
            distributed.all_gather_object(names, _device_name(self.device), group=self.group)
            if {*names} != {names[0]}:
                expected = "GPUs of one kind, or many_gpus.split(graph, by=bounds) for their speeds"
                raise ArgumentError("graph", f"equal shares for {', '.join(names)}", expected)

    def _number_sources(self, source: Any, target: Any, first: int, stop: int) -> Any:
        """Set `edge_index`; return the numbers of the halo's nodes, in order."""
        is_halo = torch.zeros(self.n_nodes, dtype=torch.bool, device=self.device)
        is_halo[source] = True
        is_halo[first:stop] = False
        # Selecting a row takes as long as moving 100 bytes (two H100).
        for rank, of_rank in enumerate(is_halo.split(np.diff(self.bounds).tolist())):
            if rank != self.rank and int(of_rank.sum()) >= WHOLE_SHARE * of_rank.numel():
                of_rank.fill_(True)
        halo = is_halo.nonzero().flatten()
        self.n_halo = halo.numel()
        # The number of rows tells x with a halo from x of own nodes, and from x of all nodes, which
        # is refused: a row of zeros, which no edge reads, makes it different.
        self.n_sources = self.n_own + self.n_halo
        if self.size > 1 and self.n_sources in (self.n_own, self.n_nodes):
            self.n_sources += 1
        number = torch.empty(self.n_nodes, dtype=torch.int32, device=self.device)
        number[first:stop] = torch.arange(self.n_own, dtype=torch.int32, device=self.device)
        numbers = torch.arange(self.n_own, self.n_own + self.n_halo, device=self.device)
        number[halo] = numbers.int()
        self.edge_index = torch.stack([number[source], target])
        fix(self.edge_index)
        return halo

    def __repr__(self) -> str:
        if self.is_idle:
            return f"SplitGraph(rank {self.rank}, idle)"
        return (
            f"SplitGraph(rank {self.rank} of {self.size}: {self.n_own:,} of {self.n_nodes:,} nodes,"
            f" {self.edge_index.size(1):,} edges, halo of {self.n_halo:,})"
        )

    # ------------------------------------------------------------------------------------- rows

    def with_halo(self, x: Any) -> Any:
        """Append the rows of the halo; a layer then fetches nothing.

        Use it once for features that do not change. `torch.nn.functional.dropout` of the result
        drops the same elements of a node's row on all ranks, which exchange nothing; the seed is
        that of rank 0. Gradients of the halo go back to its owners.

        Parameters
        ----------
        x : tensor, shape (n_own, ...)

        Returns
        -------
        HaloRows, shape (n_sources, ...)
            A tensor.
        """
        return HaloRows.of(self.all_rows(x), self)

    def all_rows(self, x: Any) -> Any:
        """Return x, (n_own, ...) or (n_sources, ...), with the rows of the halo."""
        if self.rows_of(x) == self.n_sources:
            return plain(x)
        return Fetch.apply(self, x.contiguous())[0]

    def rows_of(self, x: Any) -> int:
        """Return the number of rows of x; ArgumentError unless it is n_own or n_sources."""
        rows = x.size(0)
        if rows not in (self.n_own, self.n_sources):
            problem = f"{rows} rows for {self.n_own} nodes of rank {self.rank}"
            raise ArgumentError("x", problem, "x[graph.nodes], or graph.with_halo(x[graph.nodes])")
        return int(rows)

    def own_rows(self, x: Any) -> Any:
        """Return the rows of own nodes."""
        self.rows_of(x)
        return plain(x)[: self.n_own]

    def collect(self, x: Any) -> Any:
        """Return the rows of all nodes in the caller's order, on every rank, without gradient.

        Parameters
        ----------
        x : tensor, shape (n_own, ...)
        """
        rows, nodes = self.own_rows(x.detach()), self.nodes
        if self.size > 1:
            rows, nodes = (torch.cat([*self._gathered(array)]) for array in (rows, nodes))
        out = torch.empty_like(rows)
        out[nodes] = rows
        return out

    def _gathered(self, array: Any) -> Iterator[Any]:
        """Yield the rows of each rank."""
        for rank, count in enumerate(np.diff(self.bounds).tolist()):
            rows = array.new_empty((count, *array.shape[1:]))
            rows = array.contiguous() if rank == self.rank else rows
            distributed.broadcast(rows, self.global_rank(rank), group=self.group)
            yield rows

    def next_random(self) -> Any:
        """Return the words of `accelviz.random` for a dropout, int32 (4,), equal on all ranks."""
        words = self.cached("random", self._first_random)
        drawn = words.clone()
        words[3:] += 1
        return drawn

    @property
    def random_state(self) -> Any:
        """State of `next_random`, equal on all ranks; None before its first call."""
        return self._cached.get("random")

    @random_state.setter
    def random_state(self, words: Any) -> None:
        self._cached["random"] = words.to(self.device)

    def _first_random(self) -> Any:
        seed = torch.randint(-(1 << 31), 1 << 31, (2,)).to(self.device)
        if self.size > 1:
            distributed.broadcast(seed, self.global_rank(0), group=self.group)
        return torch.cat([seed, torch.zeros_like(seed)]).int()

    def source_nodes(self) -> Any:
        """Return the caller's numbers of own nodes and of the halo, int64, (n_sources,)."""
        return self.cached("source nodes", lambda: self.all_rows(self.nodes))

    def global_rank(self, rank: int) -> int:
        """Return the number of a rank among all processes."""
        return rank if self.group is None else distributed.get_global_rank(self.group, rank)

    def cached(self, key: Any, build: Callable[[], Any]) -> Any:
        """Return `build()`, computed at the first call with a key."""
        if key not in self._cached:
            with torch.no_grad():
                self._cached[key] = build()
        return self._cached[key]

    # ------------------------------------------------------------------------------- operations

    def spmm(self, x: Any, size: Size, weight: Any, scaling: str) -> Any:
        """Compute `operators.spmm` on own or all rows of x."""
        is_own = self.rows_of(x) == self.n_own
        if self.overlap and is_own and self.size > 1 and x.dtype is torch.float32:
            local, remote, scale = self._matrices(size.loops > 0, weight, scaling)
            return OverlappedSum.apply(x.contiguous(), self.exchange, local, remote, scale)
        size = self._size(size)
        return operators.spmm(self.edge_index, self.all_rows(x), size, weight, scaling)

    def _matrices(self, loops: bool, weight: Any, scaling: str) -> tuple[Matrix, Matrix, Any]:
        """Return the edges from own nodes and from the halo, and the scale of each target."""
        *_, local, remote, scale = self.cached(
            ("matrices", loops, id(weight), scaling),
            lambda: (weight, *self._divided(loops, weight, scaling)),  # keeps the id's tensor
        )
        return local, remote, scale

    def _divided(self, loops: bool, weight: Any, scaling: str) -> tuple[Matrix, Matrix, Any]:
        n_edges, is_own = self.edge_index.size(1), self.edge_index[0] < self.n_own
        local_edges, remote_edges = self.cached("divided", lambda: self._divided_edges(is_own))
        local_weight = remote_weight = scale = None
        if weight is not None:
            local_weight = torch.cat([weight[:n_edges][is_own], weight[n_edges:]])
            remote_weight = weight[:n_edges][~is_own]
        if scaling == "mean":
            degrees = torch.bincount(self.edge_index[1], minlength=self.n_own)
            scale = degrees.clamp(min=1).float().reciprocal()[:, None]
        local_size = Size(self.n_own, self.n_own, self.n_own if loops else 0)
        local = Matrix(local_edges, local_size, local_weight)
        return local, Matrix(remote_edges, Size(self.n_halo, self.n_own), remote_weight), scale

    def _divided_edges(self, is_own: Any) -> list[Any]:
        """Return the edges from own nodes, and those from the halo."""
        parts = [self.edge_index[:, is_own], self.edge_index[:, ~is_own]]
        parts[1][0] -= self.n_own
        for edges in parts:
            fix(edges)
        return parts

    def extremum(self, x: Any, size: Size, largest: bool) -> Any:
        """Compute `operators.extremum`."""
        return operators.extremum(self.edge_index, self.all_rows(x), self._size(size), largest)

    def attention(self, score: str, size: Size, options: Any, tensors: Any) -> Any:
        """Compute `operators.attention`."""
        for name in tensors.keys() & {*_OF_TARGETS}:
            tensors[name] = self.own_rows(tensors[name])
        sources = {name: plain(tensors[name]) for name in tensors if name in _OF_SOURCES}
        fetched = [name for name, x in sources.items() if self.rows_of(x) != self.n_sources]
        if fetched:
            rows = Fetch.apply(self, *(sources[name].contiguous() for name in fetched))
            sources |= dict(zip(fetched, rows, strict=True))
        tensors |= sources
        size = self._size(size)
        return operators.attention(self.edge_index, score, size, **options, **tensors)

    def _size(self, size: Size) -> Size:
        return Size(self.n_sources, self.n_own, self.n_own if size.loops else 0)


def _check_square(graph: Graph) -> None:
    if graph.shape[0] != graph.shape[1]:
        problem = f"{graph.shape[0]} x {graph.shape[1]} is not square"
        raise GraphError("graph", problem, "as many rows as columns: both are nodes")


def _graph_of(edge_index: Any, n_nodes: int) -> Graph:
    """Return a graph with targets as rows."""
    source, target = edge_index.cpu().numpy()
    ones = np.ones(source.size, np.float32)
    matrix = sparse.csr_array((ones, (target, source)), shape=(n_nodes, n_nodes))
    return load_graph(matrix)


def checked_nodes(n_nodes: Any) -> int:
    """Return the number of nodes of an `edge_index`."""
    if n_nodes is None:
        raise ArgumentError("n_nodes", "missing for an edge_index", "the number of nodes")
    return checked_integer("n_nodes", n_nodes, error=ArgumentError)


def _default_device() -> str:
    """Return the GPU of this process, or the CPU."""
    if not torch.cuda.is_available():
        return "cpu"
    process = this_process()
    gpu, n_gpus = (0 if process is None else process.gpu), torch.cuda.device_count()
    if gpu >= n_gpus:
        problem = f"rank {process.rank if process else 0} wants GPU {gpu} of {n_gpus}"
        raise DeviceUnavailable("cuda", problem, "start as many processes as a host has GPUs")
    return f"cuda:{gpu}"


def _device_name(device: Any) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)


def _join(device: Any) -> bool:
    """Join the launcher's processes, unless the program has; return whether there are several."""
    if not distributed.is_available():
        return False
    if not distributed.is_initialized():
        process = this_process()
        if process is None:
            return False
        is_gpu = device.type == "cuda"
        join(process, "nccl" if is_gpu else "gloo", **({"device_id": device} if is_gpu else {}))
    return True
