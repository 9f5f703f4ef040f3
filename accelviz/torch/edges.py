"""The edges of a graph as CSR, made once for each tensor that holds them."""

from __future__ import annotations

import collections
import itertools
import weakref
from typing import Any, ClassVar

import numpy as np
import torch

from accelviz.errors import ArgumentError
from accelviz.graph import Graph


class Edges:
    """The edges of a graph as CSR, for as many layers and steps as use them.

    Parameters
    ----------
    edge_index : tensor of int64, shape (2, E), or sparse CSR tensor
        Senders and receivers, or the matrix whose row is the receiver.
    n_nodes : int
    loops : bool
        Give every node a self loop, where it has none.

    Attributes
    ----------
    rows, columns : tensors of int64, shape (nnz,)
        Receiver and sender of each nonzero.
    position : tensor of int64, shape (E,)
        The nonzero of each edge; edges that are there twice share one.
    diagonal : tensor of int64
        The nonzeros on the diagonal that are self loops, in the order of the nodes; with `loops`
        one for each node.
    had_loop : tensor of bool, shape (n_nodes,)
        Which nodes had a self loop already.
    weight : tensor or None
        The values of a sparse tensor, one for each edge.

    Raises
    ------
    ArgumentError
        If `edge_index` is neither, or a node does not exist.
    """

    _numbers = itertools.count()
    _all: ClassVar[weakref.WeakValueDictionary[int, Edges]] = weakref.WeakValueDictionary()
    #: A backward pass may come when its `edge_index` is gone already.
    _recent: ClassVar[collections.deque[Edges]] = collections.deque(maxlen=16)
    _known: ClassVar[dict[tuple[int, int, bool], tuple[Any, int, Edges]]] = {}

    def __init__(self, edge_index: Any, n_nodes: int, loops: bool) -> None:
        senders, receivers, self.weight = _pairs(edge_index, n_nodes)
        ends = torch.stack([senders, receivers])
        if ends.numel() and (int(ends.min()) < 0 or int(ends.max()) >= n_nodes):
            problem = f"nodes {int(ends.min())} to {int(ends.max())} for {n_nodes} rows of x"
            raise ArgumentError("edge_index", problem, f"0 to {n_nodes - 1}")
        nodes = torch.arange(n_nodes, device=ends.device)
        keys = receivers * n_nodes + senders
        both = torch.cat([keys, nodes * n_nodes + nodes]) if loops else keys
        unique, position = torch.unique(both, return_inverse=True)
        self.rows, self.columns = unique // n_nodes, unique % n_nodes
        self.position, self.diagonal = position.tensor_split([keys.numel()])
        self.had_loop = torch.zeros(n_nodes, dtype=torch.bool, device=ends.device)
        self.had_loop[receivers[senders == receivers]] = True
        self.repeated = int(keys.numel() - torch.unique(self.position).numel())
        counts = torch.bincount(self.rows, minlength=n_nodes).cpu().numpy()
        self.graph = Graph(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            self.columns.cpu().numpy().astype(np.int32),
            np.ones(unique.numel(), np.float32),
            (n_nodes, n_nodes),
            "edge_index",
        )
        self.number = next(self._numbers)
        Edges._all[self.number] = self
        Edges._recent.append(self)
        self.constants: dict[str, Any] = {}

    @classmethod
    def numbered(cls, number: int) -> Edges:
        """Return the edges with a number, as custom operators pass it."""
        return cls._all[number]

    @classmethod
    def of(cls, edge_index: Any, n_nodes: int, loops: bool) -> Edges:
        """Return the edges of a tensor, made once while it lives unchanged; Edges as they are."""
        if isinstance(edge_index, Edges):
            return edge_index
        key = (id(edge_index), n_nodes, loops)
        version = getattr(edge_index, "_version", 0)
        reference, known, edges = cls._known.get(key, (lambda: None, 0, None))
        if edges is None or reference() is not edge_index or known != version:
            edges = cls(edge_index, n_nodes, loops)
            forget = weakref.ref(edge_index, lambda _: cls._known.pop(key, None))
            cls._known[key] = (forget, version, edges)
        return edges

    def single(self, layer: str) -> Edges:
        """Return itself if no edge is there twice.

        Raises
        ------
        ArgumentError
            If one is: a weight is that of a pair of nodes here.
        """
        if self.repeated:
            problem = f"{self.repeated} edges are there twice, and {layer} weighs each by itself"
            raise ArgumentError("edge_index", problem, "torch_geometric.utils.coalesce(edge_index)")
        return self

    def values(self, weight: Any = None) -> Any:
        """Return the weights of edges, 1 if not given, added up for each nonzero."""
        weight = self.weight if weight is None else weight
        if weight is None:
            weight = torch.ones(self.position.numel(), device=self.position.device)
        edges = self.position.numel()
        if weight.numel() != edges:
            problem = f"shape {tuple(weight.shape)} for {edges} edges"
            raise ArgumentError("edge_weight", problem, "a number for each")
        zeros = torch.zeros(self.rows.numel(), device=weight.device, dtype=weight.dtype)
        return zeros.index_add(0, self.position, weight.reshape(-1))

    def row_sums(self, values: Any) -> Any:
        """Add up weights of nonzeros over each row."""
        zeros = torch.zeros(self.graph.n_rows, device=values.device, dtype=values.dtype)
        return zeros.index_add(0, self.rows, values)


def _pairs(edge_index: Any, n_nodes: int) -> tuple[Any, Any, Any]:
    """Return senders, receivers and weights, the last None if there are none."""
    if hasattr(edge_index, "csr") and not isinstance(edge_index, torch.Tensor):  # torch_sparse
        pointers, columns, weight = edge_index.csr()
    elif isinstance(edge_index, torch.Tensor) and edge_index.layout == torch.sparse_csr:
        pointers, columns = edge_index.crow_indices(), edge_index.col_indices()
        weight = edge_index.values()
    elif isinstance(edge_index, torch.Tensor) and edge_index.layout == torch.sparse_coo:
        return _pairs(edge_index.to_sparse_csr(), n_nodes)
    else:
        fits = isinstance(edge_index, torch.Tensor) and edge_index.dim() == 2
        if not fits or edge_index.size(0) != 2 or edge_index.dtype != torch.int64:
            problem = f"a {type(edge_index).__name__}"
            if isinstance(edge_index, torch.Tensor):
                problem = f"shape {tuple(edge_index.shape)}, {edge_index.dtype}"
            expected = "a tensor of int64 of shape (2, E), or a sparse CSR tensor"
            raise ArgumentError("edge_index", problem, expected)
        return edge_index[0], edge_index[1], None
    rows = torch.arange(pointers.numel() - 1, device=pointers.device)
    if rows.numel() != n_nodes:
        problem = f"a matrix of {rows.numel()} rows for {n_nodes} rows of x"
        raise ArgumentError("edge_index", problem, "as many")
    return columns.long(), rows.repeat_interleave(pointers.diff()), weight


@torch.compiler.disable
def edges_of(edge_index: Any, x: Any, loops: bool) -> Edges:
    """Return the edges that a layer was called with, after a look at `x`."""
    if not isinstance(x, torch.Tensor) or x.dim() != 2:
        shape = getattr(x, "shape", None)
        problem = f"a {type(x).__name__}" if shape is None else f"shape {tuple(shape)}"
        raise ArgumentError(
            "x", problem, "a tensor of shape (n_nodes, n_features): one set of nodes"
        )
    if x.dtype != torch.float32:
        raise ArgumentError("x", f"dtype {x.dtype}", "torch.float32")
    return Edges.of(edge_index, x.size(0), loops)
