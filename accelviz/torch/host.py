"""The operations on the CPU."""

from __future__ import annotations

from typing import Any

import torch

from accelviz.torch import composed


def spmm(edge_index: Any, weight: Any, x: Any, *arguments: Any) -> Any:
    """Compute `operators.spmm`."""
    return composed.spmm(edge_index, weight, x.float(), *arguments).to(x.dtype)


def spmm_gradient(
    edge_index: Any,
    weight: Any,
    x: Any,
    dy: Any,
    sources: int,
    targets: int,
    loops: int,
    transposed: bool,
) -> tuple[Any, Any]:
    """Return the gradients of the weights and of x."""
    size = sources, targets, loops
    d_weight = composed.spmm_weight_gradient(edge_index, x, dy, *size, transposed)
    return d_weight, composed.spmm(edge_index, weight, dy, *size, "sum", not transposed)


def extremum(
    edge_index: Any, x: Any, sources: int, targets: int, loops: int, largest: bool
) -> tuple[Any, Any]:
    """Return the extrema and 1 over the number of items that have them; 0 without items."""
    source, target, _ = composed.items(edge_index, sources, targets, loops)
    y = x.new_zeros((targets, x.size(1)))
    index = target[:, None].expand(-1, x.size(1))
    reduction = "amax" if largest else "amin"
    y = y.scatter_reduce(0, index, x[source], reduction, include_self=False)
    equal = (x[source] == y[target]).to(x.dtype)
    share = torch.zeros_like(y).index_add(0, target, equal)
    return y, share.reciprocal().masked_fill(share == 0, 0)


extremum_gradient = composed.extremum_gradient


def attention(
    edge_index: Any, score: str, first: Any, second: Any, third: Any, *rest: Any
) -> tuple[Any, Any, Any]:
    """Return the result, and per target and head the largest score and the sum of powers."""
    y = composed.attention(edge_index, score, first, second, third, *rest)
    statistics = y.new_zeros(y.shape[:2])
    return y, statistics, statistics.clone()


def attention_gradient(edge_index: Any, score: str, first: Any, *rest: Any) -> Any:
    """Return the gradients of the three operands."""
    second, third, random, _, _, _, dy, *numbers = rest
    operands = [tensor.detach().requires_grad_() for tensor in (first, second, third)]
    gradients = composed.attention_gradient(edge_index, score, *operands, random, dy, *numbers)
    return tuple(gradient.detach() for gradient in gradients)
