"""The edges of a graph in CSR form, computed once per `edge_index` tensor."""

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
    """The edges of a graph in CSR form, shared by all layers and steps that use them.

    Parameters
    ----------
    edge_index : tensor of int64, shape (2, E), or sparse CSR tensor
        Sources and targets, or a matrix with targets as rows and sources as columns.
    n_nodes : int
    loops : bool
        Add a self loop to each node that has none.

    Attributes
    ----------
    number : int
        Identifies this object; a custom operator of PyTorch takes numbers, but no objects.
    graph : Graph
        The matrix of the edges, targets as rows, with values 1.
    rows, columns : tensors of int64, shape (nnz,)
        Target and source of each nonzero.
    position : tensor of int64, shape (E,)
        Index of each edge's nonzero. Duplicate edges share one nonzero.
    diagonal : tensor of int64, shape (n_nodes,)
        Index of each node's self loop among the nonzeros; empty without `loops`.
    had_loop : tensor of bool, shape (n_nodes,)
        Whether each node has a self loop in `edge_index`.
    weight : tensor or None
        Values of a sparse tensor, one per edge.
    repeated : int
        Number of duplicate edges.
    cache : dict of str to tensor
        Tensors that layers compute from the edges alone.

    Raises
    ------
    ArgumentError
        If `edge_index` is neither of these tensors, or a node does not exist.
    """

    _numbers = itertools.count()
    _by_number: ClassVar[weakref.WeakValueDictionary[int, Edges]] = weakref.WeakValueDictionary()
    #: Strong references to the latest objects: a backward pass, which finds them by number, may
    #: follow the deletion of its `edge_index`. The length bounds the memory that they hold.
    _recent: ClassVar[collections.deque[Edges]] = collections.deque(maxlen=16)
    #: Reference to and version of each live `edge_index`, and its edges, by the arguments of `of`.
    _by_tensor: ClassVar[dict[tuple[int, int, bool], tuple[Any, int, Edges]]] = {}

    def __init__(self, edge_index: Any, n_nodes: int, loops: bool) -> None:
        sources, targets, self.weight = _pairs(edge_index, n_nodes)
        ends = torch.stack([sources, targets])
        if ends.numel() and (int(ends.min()) < 0 or int(ends.max()) >= n_nodes):
            problem = f"nodes {int(ends.min())} to {int(ends.max())} for {n_nodes} rows of x"
            raise ArgumentError("edge_index", problem, f"0 to {n_nodes - 1}")
        nodes = torch.arange(n_nodes, device=ends.device)
        keys = targets * n_nodes + sources  # positions in the dense matrix, row by row
        with_loops = torch.cat([keys, nodes * n_nodes + nodes]) if loops else keys
        unique, position = torch.unique(with_loops, return_inverse=True)
        self.rows, self.columns = unique // n_nodes, unique % n_nodes
        self.position, self.diagonal = position.tensor_split([keys.numel()])
        self.had_loop = torch.zeros(n_nodes, dtype=torch.bool, device=ends.device)
        self.had_loop[targets[sources == targets]] = True
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
        Edges._by_number[self.number] = self
        Edges._recent.append(self)
        self.cache: dict[str, Any] = {}

    @classmethod
    def numbered(cls, number: int) -> Edges:
        """Return the edges with this `number`."""
        return cls._by_number[number]

    @classmethod
    def of(cls, edge_index: Any, n_nodes: int, loops: bool) -> Edges:
        """Return the edges of a tensor, computed once while it exists and is not modified."""
        if isinstance(edge_index, Edges):
            return edge_index
        key = (id(edge_index), n_nodes, loops)
        version = getattr(edge_index, "_version", 0)
        reference, cached_version, edges = cls._by_tensor.get(key, (lambda: None, 0, None))
        if edges is None or reference() is not edge_index or cached_version != version:
            edges = cls(edge_index, n_nodes, loops)
            reference = weakref.ref(edge_index, lambda _: cls._by_tensor.pop(key, None))
            cls._by_tensor[key] = (reference, version, edges)
        return edges

    def require_no_duplicates(self, layer: str) -> None:
        """Raise ArgumentError if there are duplicate edges.

        The attention kernels have one weight per pair of nodes, PyTorch Geometric one per edge.
        """
        if self.repeated:
            problem = f"{self.repeated} duplicate edges; {layer} has one weight per pair of nodes"
            raise ArgumentError("edge_index", problem, "torch_geometric.utils.coalesce(edge_index)")

    def values(self, weight: Any = None) -> Any:
        """Return the weight of each nonzero, the sum over its edges; a weight is 1 by default."""
        weight = self.weight if weight is None else weight
        n_edges = self.position.numel()
        if weight is None:
            weight = torch.ones(n_edges, device=self.position.device)
        if weight.numel() != n_edges:
            problem = f"shape {tuple(weight.shape)} for {n_edges} edges"
            raise ArgumentError("edge_weight", problem, "one weight per edge")
        zeros = torch.zeros(self.rows.numel(), device=weight.device, dtype=weight.dtype)
        return zeros.index_add(0, self.position, weight.reshape(-1))

    def row_sums(self, values: Any) -> Any:
        """Return the sum of `values`, (nnz,), over each row."""
        zeros = torch.zeros(self.graph.n_rows, device=values.device, dtype=values.dtype)
        return zeros.index_add(0, self.rows, values)


def _pairs(edge_index: Any, n_nodes: int) -> tuple[Any, Any, Any]:
    """Return sources, targets and weights (None for an unweighted graph)."""
    if hasattr(edge_index, "csr") and not isinstance(edge_index, torch.Tensor):  # torch_sparse
        pointers, columns, weight = edge_index.csr()
    elif isinstance(edge_index, torch.Tensor) and edge_index.layout == torch.sparse_csr:
        pointers, columns = edge_index.crow_indices(), edge_index.col_indices()
        weight = edge_index.values()
    elif isinstance(edge_index, torch.Tensor) and edge_index.layout == torch.sparse_coo:
        return _pairs(edge_index.to_sparse_csr(), n_nodes)
    else:
        is_matrix = isinstance(edge_index, torch.Tensor) and edge_index.dim() == 2
        if not is_matrix or edge_index.size(0) != 2 or edge_index.dtype != torch.int64:
            problem = f"a {type(edge_index).__name__}"
            if isinstance(edge_index, torch.Tensor):
                problem = f"shape {tuple(edge_index.shape)}, {edge_index.dtype}"
            expected = "a tensor of int64 of shape (2, E), or a sparse CSR tensor"
            raise ArgumentError("edge_index", problem, expected)
        return edge_index[0], edge_index[1], None
    rows = torch.arange(pointers.numel() - 1, device=pointers.device)
    if rows.numel() != n_nodes:
        problem = f"a matrix of {rows.numel()} rows for {n_nodes} rows of x"
        raise ArgumentError("edge_index", problem, "one row of x per row of the matrix")
    return columns.long(), rows.repeat_interleave(pointers.diff()), weight


@torch.compiler.disable
def edges_of(edge_index: Any, x: Any, loops: bool) -> Edges:
    """Return the edges of a layer's call; ArgumentError unless `x` is a float32 matrix."""
    if not isinstance(x, torch.Tensor) or x.dim() != 2:
        shape = getattr(x, "shape", None)
        problem = f"a {type(x).__name__}" if shape is None else f"shape {tuple(shape)}"
        expected = "a tensor of shape (n_nodes, n_features): one set of nodes"
        raise ArgumentError("x", problem, expected)
    if x.dtype != torch.float32:
        raise ArgumentError("x", f"dtype {x.dtype}", "torch.float32")
    return Edges.of(edge_index, x.size(0), loops)
