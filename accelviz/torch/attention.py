"""PyTorch Geometric's attention layers, by fused kernels: GAT, GATv2, AGNN, Transformer."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch_geometric import nn

from accelviz.torch import operators
from accelviz.torch.edges import converted, from_sparse
from accelviz.torch.layer import Layer, convertible, dense, ends, is_sparse
from accelviz.torch.split import SplitGraph

#: Least number of rows for which `_score_parts` computes GAT's scores. On small graphs it would
#: launch more kernels.
_PRODUCT_ROWS = 1 << 17


class _Attention(Layer):
    """Base class of the attention layers: their graph, and the epilogue of several heads."""

    def _operands(self: Any, x: Any, target: Any, edge_index: Any, size: Any) -> Any:
        """Return edge_index and Size; None if PyTorch Geometric's code has to run."""
        if self._reduction(x) != "sum" or target is None:
            return None
        if is_sparse(edge_index):
            layout = getattr(edge_index, "layout", None)  # torch_sparse has none
            loops_in_csc = self.add_self_loops and layout is torch.sparse_csc
            unsorted = layout is torch.sparse_coo and not edge_index.is_coalesced()
            features = layout is None and edge_index.has_value()  # PyTorch Geometric's edge_attr
            if loops_in_csc or unsorted or features or not convertible(edge_index):
                return None
            edge_index = converted(edge_index, from_sparse, from_sparse)
        else:
            self._refuse_weights(edge_index)
        graph = self._graph(edge_index, x, target, size)
        if graph is None:
            return None
        edge_index, sources, targets = graph
        loops = min(sources, targets) if self.add_self_loops else 0
        return edge_index, operators.Size(sources, targets, loops)

    def _rate(self: Any) -> float:
        """Return the rate of dropout; -1 if PyTorch Geometric's code has to drop or refuse."""
        rate = self.dropout if self.training else 0.0
        return rate if 0 <= rate < 1 else -1.0

    def _epilogue(self: Any, out: Any, dtype: Any, residual: Any) -> Any:
        """Return the layer's result for that of the attention, (n_targets, heads, n_cols)."""
        out = out.flatten(1) if self.concat else out.mean(dim=1)
        out = out if out.dtype is dtype else out.to(dtype)
        out = out if residual is None else out + residual
        bias = self._parameters["bias"]
        return out if bias is None else out + bias


class GATConv(_Attention, nn.GATConv):
    """`torch_geometric.nn.GATConv`, fused forward and backward without features of edges."""

    # PyTorch Geometric reads this: propagate_type: (x: OptPairTensor, alpha: Tensor)
    # and this: edge_updater_type: (alpha: OptPairTensor, edge_attr: OptTensor)

    _operations: ClassVar[dict[str, tuple[str, ...]]] = {"sum": ("gat", "gat_gradient")}

    def forward(
        self,
        x: Any,
        edge_index: Any,
        edge_attr: Any = None,
        size: Any = None,
        return_attention_weights: Any = None,
    ) -> Any:
        """Return the attention over each target's sources.

        Parameters
        ----------
        x : tensor, shape (n_nodes, in_channels), or pair of tensors
            Features of all nodes, or of sources and of targets.
        edge_index : tensor of shape (2, E), EdgeIndex, Edges, or sparse tensor
        edge_attr, return_attention_weights
            As of PyTorch Geometric, whose code runs if one is given.
        size : (int, int), optional
            Numbers of sources and targets.

        Returns
        -------
        tensor, shape (n_targets, heads * out_channels), or (n_targets, out_channels)

        Raises
        ------
        ArgumentError
            If a tensor has the wrong shape or lies on another device.
        """
        operands, rate = None, self._rate()
        if edge_attr is None and return_attention_weights is None and rate >= 0:
            source, target = ends(x, edge_index)
            operands = self._operands(source, target, edge_index, size)
        if operands is None:
            edge_index, size = self._unwrapped(edge_index, size)
            return super().forward(x, edge_index, edge_attr, size, return_attention_weights)
        modules, parameters = self._modules, self._parameters
        heads = -1, self.heads, self.out_channels
        residual = dense(modules["res"], target) if self.residual else None
        if modules.get("lin") is not None:
            values = dense(modules["lin"], source).view(heads)
            shared = target is source or type(edge_index) is SplitGraph
            attended = values if shared else dense(modules["lin"], target).view(heads)
        else:
            values = dense(modules["lin_src"], source).view(heads)
            attended = dense(modules["lin_dst"], target).view(heads)
        vectors = parameters["att_src"], parameters["att_dst"]
        if attended is values and _is_product_faster(values, *vectors):
            sender, receiver = _score_parts(values, *vectors)
        else:
            sender, receiver = (
                (x * v).sum(-1) for x, v in zip((values, attended), vectors, strict=True)
            )
        out = self._operators.attention(
            *(operands[0], "gat", operands[1]),
            slope=self.negative_slope,
            rate=rate,
            receiver=receiver.float(),
            sender=sender.float(),
            V=values.float(),
        )
        return self._epilogue(out, sender.dtype, residual)


def _is_product_faster(values: Any, *vectors: Any) -> bool:
    """Return whether `_score_parts` saves time, and has float32's precision.

    An exported layer takes graphs of any size, so it cannot choose by the number of rows.
    """
    return (
        not getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)()
        and values.size(0) >= _PRODUCT_ROWS
        and all(tensor.dtype is torch.float32 for tensor in (values, *vectors))
        and torch.get_float32_matmul_precision() == "highest"
        and not torch.is_autocast_enabled(values.device.type)
    )


def _score_parts(values: Any, source_vector: Any, target_vector: Any) -> Any:
    """Return both parts of GAT's scores, (n_nodes, heads), by one product with the values.

    It reads the values once, forward and backward; sums of elementwise products store them.
    """
    heads, n_cols = values.shape[1:]
    vectors = torch.cat([source_vector, target_vector]).permute(1, 2, 0)[..., None]
    identity = torch.eye(heads, device=values.device)[:, None, None]
    matrix = (vectors * identity).reshape(heads * n_cols, 2 * heads)
    return (values.flatten(1) @ matrix).view(-1, 2, heads).unbind(1)


class GATv2Conv(_Attention, nn.GATv2Conv):
    """`torch_geometric.nn.GATv2Conv`, fused forward and backward without features of edges."""

    # PyTorch Geometric reads this: propagate_type: (x: PairTensor, alpha: Tensor)
    # and this: edge_updater_type: (x: PairTensor, edge_attr: OptTensor)

    _operations: ClassVar[dict[str, tuple[str, ...]]] = {"sum": ("gatv2", "gatv2_gradient")}

    def forward(
        self, x: Any, edge_index: Any, edge_attr: Any = None, return_attention_weights: Any = None
    ) -> Any:
        """Return the attention over each target's sources.

        Parameters, result and errors are those of `GATConv.forward` without `size`.
        """
        operands, rate = None, self._rate()
        if edge_attr is None and return_attention_weights is None and rate >= 0:
            source, target = ends(x, edge_index)
            operands = self._operands(source, target, edge_index, None)
        if operands is None:
            edge_index, _ = self._unwrapped(edge_index)
            return super().forward(x, edge_index, edge_attr, return_attention_weights)
        modules, heads = self._modules, (-1, self.heads, self.out_channels)
        residual = dense(modules["res"], target) if self.residual else None
        values = dense(modules["lin_l"], source).view(heads)
        shared = self.share_weights and target is source
        queries = values if shared else dense(modules["lin_r"], target).view(heads)
        vectors = self._parameters["att"]
        out = self._operators.attention(
            *(operands[0], "gatv2", operands[1]),
            slope=self.negative_slope,
            rate=rate,
            R=queries.float(),
            V=values.float(),
            a=vectors[0].float(),
        )
        return self._epilogue(out, torch.promote_types(values.dtype, vectors.dtype), residual)


class AGNNConv(_Attention, nn.AGNNConv):
    """`torch_geometric.nn.AGNNConv`, fused forward and backward."""

    # PyTorch Geometric reads this: propagate_type: (x: Tensor, x_norm: Tensor)

    _operations: ClassVar[dict[str, tuple[str, ...]]] = {"sum": ("cosine", "cosine_gradient")}

    def forward(self, x: Any, edge_index: Any) -> Any:
        """Return the attention over each node's neighbors.

        Parameters
        ----------
        x : tensor, shape (n_nodes, n_features)
        edge_index : tensor of shape (2, E), EdgeIndex, Edges, or sparse tensor

        Returns
        -------
        tensor, shape (n_nodes, n_features)

        Raises
        ------
        ArgumentError
            If a tensor has the wrong shape or lies on another device.
        """
        operands = self._operands(x, x, edge_index, None)
        if operands is None:
            return super().forward(x, self._unwrapped(edge_index)[0])
        values = x.float()
        scale = 1 / values.norm(dim=-1, keepdim=True).clamp(min=_NORM_EPS)
        queries = (self.beta.float() * scale * values)[:, None]
        out = self._operators.attention(
            *(operands[0], "cosine", operands[1]), Q=queries, V=values[:, None], scale=scale
        )
        return out[:, 0].to(torch.promote_types(x.dtype, self.beta.dtype))


class TransformerConv(_Attention, nn.TransformerConv):
    """`torch_geometric.nn.TransformerConv`, fused like `GATConv`."""

    # PyTorch Geometric reads this: propagate_type: (query: Tensor, key: Tensor, value: Tensor,
    #                                                edge_attr: OptTensor)

    _operations: ClassVar[dict[str, tuple[str, ...]]] = {"sum": ("dot", "dot_gradient")}
    add_self_loops = False

    def forward(
        self, x: Any, edge_index: Any, edge_attr: Any = None, return_attention_weights: Any = None
    ) -> Any:
        """Return the attention over each target's sources.

        Parameters, result and errors are those of `GATConv.forward` without `size`.
        """
        operands, rate = None, self._rate()
        # Without edge_attr, PyTorch Geometric refuses a layer with edge_dim.
        if edge_attr is None and return_attention_weights is None and rate >= 0:
            source, target = ends(x, edge_index)
            if self.edge_dim is None:
                operands = self._operands(source, target, edge_index, None)
        if operands is None:
            edge_index, _ = self._unwrapped(edge_index)
            return super().forward(x, edge_index, edge_attr, return_attention_weights)
        modules, heads = self._modules, (-1, self.heads, self.out_channels)
        queries = dense(modules["lin_query"], target).view(heads)
        keys = dense(modules["lin_key"], source).view(heads)
        values = dense(modules["lin_value"], source).view(heads)
        out = self._operators.attention(
            *(operands[0], "dot", operands[1]),
            rate=rate,
            Q=queries.float() * self.out_channels**-0.5,
            K=keys.float(),
            V=values.float(),
        )
        out = out.flatten(1) if self.concat else out.mean(dim=1)
        # Autocast sums the scores in float32 on a GPU only.
        summed = source.is_cuda and torch.is_autocast_enabled("cuda")
        dtype = torch.float32 if summed else values.dtype
        if not self.root_weight:
            return out.to(dtype)
        skipped, out = dense(modules["lin_skip"], target), out.to(dtype)
        if not self.beta:
            return out + skipped
        beta = dense(modules["lin_beta"], torch.cat([out, skipped, out - skipped], -1)).sigmoid()
        return beta * skipped + (1 - beta) * out


#: The smallest norm that `functional.normalize` divides by.
_NORM_EPS = 1e-12
