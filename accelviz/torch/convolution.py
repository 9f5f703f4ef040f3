"""PyTorch Geometric's layers that multiply with a sparse matrix: GCN, GIN, SAGE."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch.nn import Sequential, functional
from torch_geometric import nn
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from accelviz.errors import ArgumentError
from accelviz.torch import composed, fused, operators
from accelviz.torch.edges import Edges, converted, fix, from_sparse, mean_weights
from accelviz.torch.layer import (
    FLOATS,
    Layer,
    convertible,
    dense,
    ends,
    is_plain,
    is_sparse,
)
from accelviz.torch.split import SplitGraph


class _Normalized(Edges):
    """The graph that `GCNConv(cached=True)` stores: operands of its product.

    Indexing it returns what PyTorch Geometric's code stores in the same attribute.
    """

    def __init__(self, edge_index: Any, size: operators.Size, weight: Any, scaling: str) -> None:
        if not torch.compiler.is_compiling():
            edge_index = edge_index.clone()  # The caller may modify its tensor.
            fix(edge_index)
        self.edge_index, self.size, self.weight = edge_index, size[:2], weight
        self.operands = edge_index, size, weight, scaling

    def __getitem__(self, index: int) -> Any:
        edge_index, size, weight, scaling = self.operands
        if weight is None:
            weight = composed.scales(edge_index, size, scaling, torch.float32)
        source, target, counts = composed.items(edge_index, *size)
        return (torch.stack([source, target])[:, counts], weight[counts])[index]


def _normalized_weights(
    edge_index: Any, weight: Any, size: operators.Size, fill: float, graph: Any = None
) -> Any:
    """Return the weight of each item by the rule of `gcn_norm`, without a synchronization.

    An existing loop is the weight of the added one. The weight of its own item does not matter.
    `graph` is the SplitGraph of `edge_index`.
    """
    (source, target), n_nodes = edge_index.unbind(), size.targets
    weight, loops = weight.float(), None
    if size.loops:
        is_loop = source == target
        nodes = torch.where(is_loop, source, n_nodes).long()
        loops = weight.new_full((n_nodes + 1,), fill)
        if graph is None:
            loops = loops.scatter(0, nodes, weight)[:n_nodes]
        else:  # the last loop of a node, in each run
            items = torch.arange(nodes.numel(), device=nodes.device)
            last = nodes.new_full((n_nodes + 1,), -1).scatter_reduce(0, nodes, items, "amax")
            loops = torch.where(last < 0, loops, weight[last])[:n_nodes]
        weight = weight.masked_fill(is_loop, 0)
    if graph is None or graph.weight is None:
        degree = weight.new_zeros(n_nodes).index_add(0, target, weight)
    else:  # the same bits in each run
        ones = weight.new_ones(size.sources, 1)
        sizes = operators.Size(size.sources, n_nodes)
        degree = operators.spmm(edge_index, ones, sizes, weight)[:, 0]
    degree = degree if loops is None else degree + loops
    root = degree.pow(-0.5)
    root = root.masked_fill(root == torch.inf, 0)
    source_root = root if graph is None else graph.all_rows(root)
    weight = source_root.index_select(0, source) * weight * root.index_select(0, target)
    return weight if loops is None else torch.cat([weight, root * loops * root])


def _has_weight_per_edge(edge_index: Any, weight: Any) -> bool:
    """Return whether weights are ours to use; ArgumentError if their number is wrong."""
    if weight.dim() != 1 or weight.dtype not in FLOATS:
        return False
    n_edges = edge_index.size(1)
    if weight.size(0) != n_edges and weight.size(0) != 1:
        problem = f"shape {tuple(weight.shape)} for {n_edges} edges"
        raise ArgumentError("edge_weight", problem, "one weight per edge")
    if weight.device != edge_index.device:
        raise ArgumentError("edge_weight", f"on {weight.device}", f"on {edge_index.device}, as x")
    return bool(weight.size(0) == n_edges)


def _halo_is_constant(x: Any, graph: SplitGraph, n_in: int, n_out: int) -> bool:
    """Return whether x has a halo without gradient: one wide product beats two narrow ones."""
    return not x.requires_grad and x.size(0) == graph.n_sources and n_in <= 2 * n_out


def _sparse(operands: Any) -> Any:
    """Return the operands of a product in the order of `fused.Convolution`."""
    edge_index, size, weight, scaling = operands
    return edge_index, weight, size, scaling


class GCNConv(Layer, nn.GCNConv):
    """`torch_geometric.nn.GCNConv` with accelviz's products.

    Existing self loops keep their weight if `edge_index` is (2, E). In a sparse tensor, PyTorch
    Geometric adds a loop to a node that has one, and so does this layer.
    """

    # PyTorch Geometric reads this: propagate_type: (x: Tensor, edge_weight: OptTensor)

    _operations: ClassVar[dict[str, tuple[str, ...]]] = {"sum": ("spmm", "sddmm")}

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Any:
        """Return `D^-1/2 (A + I) D^-1/2 X W + b`, multiplied in the cheaper order.

        Parameters
        ----------
        x : tensor, shape (n_nodes, in_channels)
        edge_index : tensor of shape (2, E), EdgeIndex, Edges, or sparse tensor
        edge_weight : tensor, shape (E,), optional

        Returns
        -------
        tensor, shape (n_nodes, out_channels)

        Raises
        ------
        ArgumentError
            If a tensor has the wrong shape or lies on another device.
        """
        operands = None
        if type(edge_index) is Edges and edge_weight is None:
            edge_weight = edge_index.weight
        if self._reduction(x) == "sum":
            operands = self._operands(x, edge_index, edge_weight)
        if operands is None:
            edge_index, _ = self._unwrapped(edge_index)
            return super().forward(x, edge_index, edge_weight)
        edge_index, size, weight, scaling = operands
        linear = self._modules["lin"]
        bias = self._parameters["bias"]
        n_in, n_out = linear.in_channels, linear.out_channels
        # A product whose X has no gradient needs no second product in the backward pass.
        cheaper = n_in < (n_out if x.requires_grad or not torch.is_grad_enabled() else 2 * n_out)
        if type(edge_index) is SplitGraph:
            cheaper = cheaper or _halo_is_constant(x, edge_index, n_in, n_out)
        fusible = is_plain(linear) and self._is_fusible(edge_index)
        if fusible and fused.applies(x, None, weight, linear.weight, bias):
            dense_operands = x, linear.weight, bias, None, None
            return fused.Convolution.apply(*dense_operands, *_sparse(operands), not cheaper)
        if cheaper and is_plain(linear):
            out = self._operators.spmm(edge_index, x.contiguous(), size, weight, scaling)
            out = functional.linear(out, linear.weight, bias)
            product = out
        else:
            product = dense(linear, x)
            out = self._operators.spmm(edge_index, product, size, weight, scaling)
            out = out if bias is None else out + bias
        if product.dtype is not x.dtype and (
            bias is not None or weight is not None or scaling != "sum"
        ):
            out = out.to(x.dtype)  # PyTorch Geometric promotes to the type of the weights.
        return out

    def _operands(self: Any, x: Any, edge_index: Any, edge_weight: Any) -> Any:
        """Return edge_index, Size, weight and scaling of the product, or None."""
        cache = self._cached_edge_index if self.normalize else None
        if cache is not None:
            if type(cache) is not _Normalized:
                return None
            if cache.size[0] != x.size(0):
                problem = f"{x.size(0)} rows for the cached graph of {cache.size[0]} nodes"
                raise ArgumentError("x", problem, f"{cache.size[0]} rows")
            return cache.operands
        if is_sparse(edge_index):
            operands = self._sparse_operands(x, edge_index, edge_weight)
        else:
            operands = self._dense_operands(x, edge_index, edge_weight)
        if (
            operands is not None
            and self.normalize
            and self.cached
            and type(edge_index) is not SplitGraph
        ):
            self._cached_edge_index = _Normalized(*operands)
        return operands

    def _dense_operands(self, x: Any, edge_index: Any, weight: Any) -> Any:
        graph = self._graph(edge_index, x)
        if graph is None:
            return None
        edge_index, n_nodes, n_targets = graph
        if type(edge_index) is SplitGraph:
            return self._split_operands(edge_index, weight)
        if n_nodes != n_targets or (
            weight is not None and not _has_weight_per_edge(edge_index, weight)
        ):
            return None
        if not self.normalize:
            return edge_index, operators.Size(n_nodes, n_nodes), weight, "sum"
        size = operators.Size(n_nodes, n_nodes, n_nodes if self.add_self_loops else 0)
        if weight is None:
            return edge_index, size, None, "symmetric"
        weight = _normalized_weights(edge_index, weight, size, 2.0 if self.improved else 1.0)
        return edge_index, size, weight, "sum"

    def _split_operands(self: Any, graph: SplitGraph, weight: Any) -> Any:
        if weight is not None:
            problem = "given beside a SplitGraph"
            raise ArgumentError("edge_weight", problem, "SplitGraph(edge_index, n_nodes, weight)")
        weight, loops = graph.weight, graph.n_own if self.add_self_loops else 0
        size = operators.Size(graph.n_sources, graph.n_own, loops if self.normalize else 0)
        if not self.normalize:
            return graph, size, weight, "sum"
        fill = 2.0 if self.improved and weight is not None else 1.0

        def build() -> Any:
            edges = graph.edge_index
            ones = torch.ones(edges.size(1), device=graph.device) if weight is None else weight
            return _normalized_weights(edges, ones, size, fill, graph)

        return graph, size, graph.cached(("gcn", size.loops, fill), build), "sum"

    def _sparse_operands(self: Any, x: Any, adj: Any, weight: Any) -> Any:
        if weight is not None or self.flow != "source_to_target" or not convertible(adj):
            return None
        if not self.normalize:
            graph = converted(adj, "edges", from_sparse)
        else:
            n_nodes = x.size(0)
            if (adj.size(0), adj.size(1)) != (n_nodes, n_nodes):
                problem = f"a matrix of {adj.size(0)} x {adj.size(1)} for {n_nodes} rows of x"
                raise ArgumentError("edge_index", problem, f"{n_nodes} x {n_nodes}")
            options = n_nodes, self.improved, self.add_self_loops, self.flow, x.dtype

            def normalized(adj: Any) -> Edges:
                result = gcn_norm(adj, None, *options)
                return from_sparse(result[0] if isinstance(result, tuple) else result)

            graph = converted(adj, ("gcn", *options), normalized)
        edge_index, n_nodes, n_targets = self._graph(graph, x)
        return edge_index, operators.Size(n_nodes, n_targets), graph.weight, "sum"


class _Aggregation(Layer):
    """Base class of GINConv and SAGEConv: the aggregation of features."""

    _operations: ClassVar[dict[str, tuple[str, ...]]] = {
        "sum": ("spmm",),
        "mean": ("spmm",),
        "max": ("spmm_max", "spmm_extremum_gradient"),
        "min": ("spmm_min", "spmm_extremum_gradient"),
    }

    def _operands(
        self: Any, reduction: str, x: Any, target: Any, edge_index: Any, size: Any
    ) -> Any:
        """Return edge_index, Size, weight and scaling or None, as `GCNConv._operands`."""
        weight = None
        if is_sparse(edge_index):
            if self.flow != "source_to_target" or not convertible(edge_index):
                return None
            if self.aggr not in ("add", "sum", "mean", "max", "min"):
                return None  # PyTorch Geometric has no fused path, and ignores the weights.
            build = mean_weights if reduction == "mean" else from_sparse
            edge_index = converted(edge_index, build, build)
            weight = edge_index.weight
            if reduction in ("max", "min") and (weight is not None or x.is_cpu):
                return None  # On the CPU PyTorch Geometric gives one of equal extrema the gradient.
        else:
            self._refuse_weights(edge_index)
        graph = self._graph(edge_index, x, target, size)
        if graph is None:
            return None
        edge_index, n_sources, n_targets = graph
        scaling = "mean" if reduction == "mean" and weight is None else "sum"
        return edge_index, operators.Size(n_sources, n_targets), weight, scaling

    def _aggregate(self: Any, reduction: str, x: Any, operands: Any) -> Any:
        """Return the sum, mean, maximum or minimum of the features of each target's sources."""
        edge_index, size, weight, scaling = operands
        if reduction in ("sum", "mean"):
            return self._operators.spmm(edge_index, x.contiguous(), size, weight, scaling)
        out = self._operators.extremum(edge_index, x.float().contiguous(), size, reduction == "max")
        return out.to(x.dtype)


class GINConv(_Aggregation, nn.GINConv):
    """`torch_geometric.nn.GINConv` with accelviz's products."""

    # PyTorch Geometric reads this: propagate_type: (x: OptPairTensor)

    def forward(self, x: Any, edge_index: Any, size: Any = None) -> Any:
        """Reduce the features of the sources, add (1 + eps) x, and apply `nn`.

        Parameters
        ----------
        x : tensor, shape (n_nodes, in_channels), or pair of tensors
            Features of all nodes, or of sources and of targets; those of targets may be None.
        edge_index : tensor of shape (2, E), EdgeIndex, Edges, or sparse tensor
        size : (int, int), optional
            Numbers of sources and targets.

        Returns
        -------
        tensor, shape (n_targets, out_channels)

        Raises
        ------
        ArgumentError
            If a tensor has the wrong shape or lies on another device.
        """
        source, target = ends(x, edge_index)
        operands, reduction = None, self._reduction(source) or ""
        if reduction:
            operands = self._operands(reduction, source, target, edge_index, size)
        if operands is None:
            edge_index, size = self._unwrapped(edge_index, size)
            return super().forward(x, edge_index, size)
        shift = 1 + self.eps
        if target is source and reduction in ("sum", "mean") and is_plain(self.nn, Sequential):
            modules: list[Any] = [*self.nn]
            linear: Any = modules[0] if modules else None
            if is_plain(linear):
                parameters = linear.weight, linear.bias
                fusible = self._is_fusible(operands[0]) and not shift.requires_grad
                if fusible and fused.applies(source, shift, operands[2], *parameters):
                    n_out, n_in = linear.weight.shape
                    matrices = *parameters, None, None, *_sparse(operands)
                    out = fused.Convolution.apply(source, *matrices, n_out < n_in, shift)
                    for module in modules[1:]:
                        out = module(out)
                    return out
        out = self._aggregate(reduction, source, operands)
        if target is not None:
            out = out + shift * target
        return self.nn(out)


class SAGEConv(_Aggregation, nn.SAGEConv):
    """`torch_geometric.nn.SAGEConv` with accelviz's products and extrema."""

    # PyTorch Geometric reads this: propagate_type: (x: OptPairTensor)

    def forward(self, x: Any, edge_index: Any, size: Any = None) -> Any:
        """Return `lin_l(reduction of the sources' features) + lin_r(x)`.

        Parameters, result and errors are those of `GINConv.forward`. A sum or mean is taken after
        `lin_l` if `lin_l` has fewer columns of output than of input.
        """
        source, target = ends(x, edge_index)
        operands, reduction = None, self._reduction(source) or ""
        if reduction:
            operands = self._operands(reduction, source, target, edge_index, size)
        if operands is None:
            edge_index, size = self._unwrapped(edge_index, size)
            return super().forward(x, edge_index, size)
        modules = self._modules
        if self.project:
            source = dense(modules["lin"], source).relu()
        left = modules["lin_l"]
        root = modules["lin_r"] if self.root_weight and target is not None else None
        linear, dense_first = reduction in ("sum", "mean"), left.out_channels < left.in_channels
        if linear and is_plain(left) and (root is None or is_plain(root)) and not self.project:
            matrices = left.weight, left.bias, target, None if root is None else root.weight
            fusible = self._is_fusible(operands[0])
            if fusible and fused.applies(source, target, operands[2], *matrices):
                out = fused.Convolution.apply(source, *matrices, *_sparse(operands), dense_first)
                return functional.normalize(out, p=2.0, dim=-1) if self.normalize else out
        if dense_first and type(edge_index) is SplitGraph:
            widths = left.in_channels, left.out_channels
            dense_first = not _halo_is_constant(source, edge_index, *widths)
        if linear and dense_first and is_plain(left):
            out = self._aggregate(reduction, functional.linear(source, left.weight), operands)
            bias = left.bias  # Added after the mean, which is 0 for a target without sources.
            if root is None:
                out = out if bias is None else out + bias.to(out.dtype)
            elif is_plain(root):
                out = out + functional.linear(target, root.weight, bias)
            else:
                out = (out if bias is None else out + bias.to(out.dtype)) + root(target)
        else:
            out = dense(left, self._aggregate(reduction, source, operands))
            out = out if root is None else out + dense(root, target)
        return functional.normalize(out, p=2.0, dim=-1) if self.normalize else out
