"""PyTorch Geometric's attention layers, by fused kernels: GAT, GATv2, AGNN.

An edge leads from its sender to its receiver; the formulas are those of `layers.attention`.
"""

from __future__ import annotations

from typing import Any

import torch

from accelviz.errors import ArgumentError
from accelviz.layers.attention import SLOPE
from accelviz.layers.cosines import NORM_EPS
from accelviz.torch.convolution import glorot, linear
from accelviz.torch.edges import edges_of
from accelviz.torch.operations import attention


class _MultiHead(torch.nn.Module):
    """Base class of GATConv and GATv2Conv: the attention heads and their epilogue."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int,
        concat: bool,
        slope: float,
        dropout: float,
        add_self_loops: bool,
        edge_dim: int | None,
        bias: bool,
        residual: bool,
    ) -> None:
        super().__init__()
        if edge_dim is not None:
            raise ArgumentError("edge_dim", f"got {edge_dim!r}", "None; accelviz has no other yet")
        self.heads, self.out_channels, self.concat = heads, out_channels, concat
        self.negative_slope, self.dropout = slope, dropout
        self.add_self_loops = add_self_loops
        width = heads * out_channels if concat else out_channels
        self.res = linear(in_channels, width, False) if residual else None
        self.bias = torch.nn.Parameter(torch.zeros(width)) if bias else None

    def _epilogue(self, out: Any, x: Any) -> Any:
        out = out.flatten(1) if self.concat else out.mean(dim=1)
        if self.res is not None:
            out = out + self.res(x)
        return out if self.bias is None else out + self.bias

    def _by_head(self, x: Any) -> Any:
        return x.view(-1, self.heads, self.out_channels)

    def _attend(self, edge_index: Any, x: Any, name: str, **tensors: Any) -> Any:
        edges = edges_of(edge_index, x, self.add_self_loops)
        edges.require_no_duplicates(type(self).__name__)
        rate = self.dropout if self.training else 0.0
        return attention(edges, name, rate, self.negative_slope, **tensors)

    def reset_parameters(self) -> None:
        """Initialize the parameters again."""
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                glorot(parameter)
            elif name == "bias":
                torch.nn.init.zeros_(parameter)


class GATConv(_MultiHead):
    """`torch_geometric.nn.GATConv` without edge features, fused forward and backward."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = SLOPE,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: Any = "mean",
        bias: bool = True,
        residual: bool = False,
    ) -> None:
        shared = heads, concat, negative_slope, dropout, add_self_loops, edge_dim, bias, residual
        super().__init__(in_channels, out_channels, *shared)
        self.lin = linear(in_channels, heads * out_channels, False)
        self.att_src = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.reset_parameters()

    def forward(self, x: Any, edge_index: Any) -> Any:
        """Return the attention over each node's neighbors."""
        V = self._by_head(self.lin(x))
        scores = {"receiver": (V * self.att_dst).sum(-1), "sender": (V * self.att_src).sum(-1)}
        return self._epilogue(self._attend(edge_index, x, "gat", **scores, V=V), x)


class GATv2Conv(_MultiHead):
    """`torch_geometric.nn.GATv2Conv` without edge features, fused forward and backward."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = SLOPE,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: Any = "mean",
        bias: bool = True,
        share_weights: bool = False,
        residual: bool = False,
    ) -> None:
        shared = heads, concat, negative_slope, dropout, add_self_loops, edge_dim, bias, residual
        super().__init__(in_channels, out_channels, *shared)
        self.lin_l = linear(in_channels, heads * out_channels, bias)
        self.lin_r = self.lin_l
        if not share_weights:
            self.lin_r = linear(in_channels, heads * out_channels, bias)
        self.att = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.reset_parameters()

    def forward(self, x: Any, edge_index: Any) -> Any:
        """Return the attention over each node's neighbors."""
        V, R = self._by_head(self.lin_l(x)), self._by_head(self.lin_r(x))
        out = self._attend(edge_index, x, "gatv2", R=R, V=V, a=self.att[0])
        return self._epilogue(out, x)


class AGNNConv(torch.nn.Module):
    """`torch_geometric.nn.AGNNConv`, fused forward and backward."""

    def __init__(self, requires_grad: bool = True, add_self_loops: bool = True) -> None:
        super().__init__()
        self.add_self_loops = add_self_loops
        if requires_grad:
            self.beta = torch.nn.Parameter(torch.ones(1))
        else:
            self.register_buffer("beta", torch.ones(1))

    def reset_parameters(self) -> None:
        """Reset beta to 1."""
        with torch.no_grad():
            self.beta.fill_(1.0)

    def forward(self, x: Any, edge_index: Any) -> Any:
        """Return the attention over each node's neighbors."""
        edges = edges_of(edge_index, x, self.add_self_loops)
        edges.require_no_duplicates("AGNNConv")
        scale = 1 / x.norm(dim=-1, keepdim=True).clamp(min=NORM_EPS)
        Q = (self.beta * scale * x)[:, None]
        return attention(edges, "cosine", 0.0, None, Q=Q, V=x[:, None], scale=scale)[:, 0]
