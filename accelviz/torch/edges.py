"""Forms of a graph that layers accept beside an `edge_index` tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from accelviz.errors import ArgumentError


class Edges:
    """A graph that does not change, in place of `edge_index`.

    On a GPU a layer prepares its kernels for it once, and does not compare it with earlier calls.

    Parameters
    ----------
    edge_index : tensor of int64 or int32, shape (2, E)
        Sources and targets of the edges. The tensor must not be modified afterwards.
    size : int or (int, int)
        Number of nodes, or of sources and of targets.
    weight : tensor, shape (E,), optional
        `edge_weight` of `GCNConv`; other layers refuse it.

    Raises
    ------
    ArgumentError
        If a tensor has another shape or type, or an edge has a node that does not exist.
    """

    def __init__(self, edge_index: Any, size: Any, weight: Any = None) -> None:
        check_edge_index(edge_index)
        self.size = (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))
        for ends, n_nodes, role in zip(edge_index, self.size, ("sources", "targets"), strict=True):
            low, high = (int(ends.min()), int(ends.max())) if ends.numel() else (0, -1)
            if low < 0 or high >= n_nodes:
                problem = f"{role} {low} to {high} for a size of {n_nodes}"
                raise ArgumentError("edge_index", problem, f"0 to {n_nodes - 1}")
        if weight is not None and tuple(weight.shape) != (edge_index.size(1),):
            problem = f"shape {tuple(weight.shape)} for {edge_index.size(1)} edges"
            raise ArgumentError("weight", problem, "one weight per edge")
        self.edge_index, self.weight = edge_index.contiguous(), weight
        fix(self.edge_index)

    def __repr__(self) -> str:
        return f"Edges({self.edge_index.size(1)} edges, size={self.size})"


def fix(edge_index: Any) -> None:
    """Let kernels be prepared once for a tensor that will not be modified."""
    if edge_index.is_cuda:
        from accelviz.torch import blocks

        blocks.fix(edge_index)


def check_edge_index(edge_index: Any) -> None:
    """Raise ArgumentError unless `edge_index` is an integer tensor of shape (2, E)."""
    expected = "a tensor of int64 or int32 of shape (2, E), an EdgeIndex, or a sparse tensor"
    if not isinstance(edge_index, torch.Tensor):
        raise ArgumentError("edge_index", f"a {type(edge_index).__name__}", expected)
    integer = not (edge_index.is_floating_point() or edge_index.is_complex())
    if edge_index.dim() != 2 or edge_index.size(0) != 2 or not integer:
        problem = f"shape {tuple(edge_index.shape)}, {edge_index.dtype}"
        raise ArgumentError("edge_index", problem, expected)


# --------------------------------------------------------------------------------- sparse tensors

#: The converted forms of each sparse tensor that exists, with the state that they belong to.
_converted: Any = WeakIdKeyDictionary()


def parts(adj: Any) -> tuple[Any, ...]:
    """Return the index tensors and then the values of a sparse tensor, of torch or torch_sparse."""
    if not isinstance(adj, torch.Tensor):
        return adj.coo()
    if adj.layout is torch.sparse_coo:
        return adj._indices(), adj._values()
    if adj.layout is torch.sparse_csr:
        return adj.crow_indices(), adj.col_indices(), adj.values()
    return adj.ccol_indices(), adj.row_indices(), adj.values()


def converted(adj: Any, key: Any, build: Callable[[Any], Edges]) -> Edges:
    """Return `build(adj)`, computed once while the tensor exists and is not modified."""
    tensors = [tensor for tensor in parts(adj) if tensor is not None]
    state = [(tensor.data_ptr(), tensor._version) for tensor in tensors if not is_inference(tensor)]
    entry = _converted.get(adj)
    if entry is None or entry[0] != state:
        entry = _converted[adj] = state, {}
    if key not in entry[1]:
        # A training may follow; tensors of inference mode cannot be saved for its gradients.
        with torch.inference_mode(False), torch.no_grad():
            entry[1][key] = build(adj)
    edges: Edges = entry[1][key]
    return edges


def is_inference(tensor: Any) -> bool:
    """Return whether a tensor has no version, because it was made in inference mode."""
    return bool(tensor.is_inference())


def from_sparse(adj: Any) -> Edges:
    """Convert a matrix with targets as rows; weights that are all 1 become None."""
    if not isinstance(adj, torch.Tensor):
        rows, columns, weight = adj.coo()
    elif adj.layout is torch.sparse_coo:
        adj = adj.coalesce()
        (rows, columns), weight = adj.indices(), adj.values()
    else:
        pointers, indices, weight = parts(adj)
        pointed = torch.arange(pointers.numel() - 1, device=pointers.device)
        pointed = pointed.repeat_interleave(pointers.diff(), output_size=indices.numel())
        by_rows = adj.layout is torch.sparse_csr
        rows, columns = (pointed, indices) if by_rows else (indices, pointed)
    if weight is not None:
        weight = None if bool((weight == 1).all()) else weight.detach().float()
    edge_index = torch.stack([columns.long(), rows.long()])
    return Edges(edge_index, (adj.size(1), adj.size(0)), weight)


def mean_weights(adj: Any) -> Edges:
    """Convert a matrix whose weights are to be averaged over each row."""
    edges = converted(adj, "edges", from_sparse)
    if edges.weight is None:
        return edges
    target = edges.edge_index[1]
    count = torch.zeros(edges.size[1], device=target.device).index_add(
        0, target, torch.ones_like(edges.weight)
    )
    return Edges(edges.edge_index, edges.size, edges.weight / count[target])
