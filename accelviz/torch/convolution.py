"""PyTorch Geometric's convolutional layers, which multiply with a sparse matrix: GCN, GIN, SAGE."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from accelviz.errors import ArgumentError, checked_choice
from accelviz.torch.edges import Edges, edges_of
from accelviz.torch.operations import RowMax, SpMM


def glorot(*tensors: Any) -> None:
    """Initialize matrices uniformly as in Glorot and Bengio, 2010."""
    for tensor in tensors:
        bound = (6.0 / (tensor.size(-2) + tensor.size(-1))) ** 0.5
        torch.nn.init.uniform_(tensor, -bound, bound)


def linear(n_in: Any, n_out: int, bias: bool) -> Any:
    """Return `torch.nn.Linear`; ArgumentError unless `n_in` is known (PyG's layers allow -1)."""
    if not isinstance(n_in, int) or n_in < 1:
        raise ArgumentError("in_channels", f"got {n_in!r}", "a number of columns, at least 1")
    return torch.nn.Linear(n_in, n_out, bias=bias)


class GCNConv(torch.nn.Module):
    """`torch_geometric.nn.GCNConv`.

    It ignores `cached`: normalized weights are stored for each edge_index, except those computed
    from an `edge_weight` argument.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        improved: bool = False,
        cached: bool = False,
        add_self_loops: bool | None = None,
        normalize: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.improved, self.normalize = improved, normalize
        self.add_self_loops = normalize if add_self_loops is None else add_self_loops
        self.in_channels, self.out_channels = in_channels, out_channels
        self.lin = linear(in_channels, out_channels, False)
        self.bias = torch.nn.Parameter(torch.zeros(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters again."""
        glorot(self.lin.weight)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Any:
        """Return `D^-1/2 (A + I) D^-1/2 X W + b`, multiplied in the cheaper order."""
        edges = edges_of(edge_index, x, self.add_self_loops and self.normalize)
        values = self._values(edges, edge_weight)
        if self.in_channels < self.out_channels:
            out = self.lin(SpMM.apply(edges.number, values, x.contiguous()))
        else:
            out = SpMM.apply(edges.number, values, self.lin(x))
        return out if self.bias is None else out + self.bias

    def _values(self, edges: Edges, weight: Any) -> Any:
        """Return the normalized weight of each nonzero."""
        if not self.normalize:
            return edges.values(weight)
        key = f"gcn {self.improved} {self.add_self_loops}"
        constant = weight is None and (edges.weight is None or not edges.weight.requires_grad)
        if constant and key in edges.cache:
            return edges.cache[key]
        values = edges.values(weight)
        if self.add_self_loops:
            # As in PyTorch Geometric, `improved` has an effect only on weighted graphs.
            weighted = weight is not None or edges.weight is not None
            loop_weight = 2.0 if self.improved and weighted else 1.0
            added = (~edges.had_loop).to(values.dtype) * loop_weight
            values = values.index_add(0, edges.diagonal, added)
        root = edges.row_sums(values).pow(-0.5)
        root = root.masked_fill(root == float("inf"), 0.0)
        values = root[edges.rows] * values * root[edges.columns]
        if constant:
            edges.cache[key] = values
        return values


class GINConv(torch.nn.Module):
    """`torch_geometric.nn.GINConv`: `nn((1 + eps) x + sum of x over the neighbors)`."""

    def __init__(self, nn: Any, eps: float = 0.0, train_eps: bool = False) -> None:
        super().__init__()
        self.nn, self.initial_eps = nn, eps
        if train_eps:
            self.eps = torch.nn.Parameter(torch.full((1,), float(eps)))
        else:
            self.register_buffer("eps", torch.full((1,), float(eps)))

    def reset_parameters(self) -> None:
        """Reset the parameters of `nn`, and eps."""
        for module in self.nn.modules():
            if module is not self.nn and hasattr(module, "reset_parameters"):
                module.reset_parameters()
        with torch.no_grad():
            self.eps.fill_(self.initial_eps)

    def forward(self, x: Any, edge_index: Any) -> Any:
        """Sum over the neighbors, then apply `nn`."""
        edges = edges_of(edge_index, x, False)
        neighbor_sum = SpMM.apply(edges.number, edges.values(), x.contiguous())
        return self.nn(neighbor_sum + (1 + self.eps) * x)


class SAGEConv(torch.nn.Module):
    """`torch_geometric.nn.SAGEConv` with the aggregations mean, sum and max."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        aggr: str = "mean",
        normalize: bool = False,
        root_weight: bool = True,
        project: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.aggr = checked_choice("aggr", aggr, ("mean", "sum", "add", "max"))
        self.normalize, self.root_weight, self.project = normalize, root_weight, project
        self.lin = linear(in_channels, in_channels, True) if project else None
        self.lin_l = linear(in_channels, out_channels, bias)
        self.lin_r = linear(in_channels, out_channels, False) if root_weight else None

    def reset_parameters(self) -> None:
        """Initialize the parameters again."""
        for linear in (self.lin, self.lin_l, self.lin_r):
            if linear is not None:
                linear.reset_parameters()

    def forward(self, x: Any, edge_index: Any) -> Any:
        """Return `lin_l(aggregation of the neighbors) + lin_r(x)`."""
        edges = edges_of(edge_index, x, False)
        neighbors = x if self.lin is None else self.lin(x).relu()
        n_in, n_out = self.lin_l.in_features, self.lin_l.out_features
        if self.aggr == "max":
            out = self.lin_l(RowMax.apply(edges.number, neighbors))
        elif n_out < n_in:  # the bias is added after the mean, which is 0 without neighbors
            out = functional.linear(neighbors, self.lin_l.weight)
            out = SpMM.apply(edges.number, self._values(edges, x), out)
            out = out if self.lin_l.bias is None else out + self.lin_l.bias
        else:
            summed = SpMM.apply(edges.number, self._values(edges, x), neighbors.contiguous())
            out = self.lin_l(summed)
        if self.lin_r is not None:
            out = out + self.lin_r(x)
        return functional.normalize(out, p=2.0, dim=-1) if self.normalize else out

    def _values(self, edges: Edges, x: Any) -> Any:
        """Return the weights that compute sum or mean; weights of the edges are ignored."""
        key = f"sage {self.aggr}"
        if key not in edges.cache:
            values = edges.values(torch.ones_like(edges.position, dtype=x.dtype))
            if self.aggr == "mean":
                values = values / edges.row_sums(values).clamp(min=1)[edges.rows]
            edges.cache[key] = values
        return edges.cache[key]
