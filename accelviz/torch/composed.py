"""The operations composed from PyTorch's gather and scatter: for gradients of gradients, and tests.

They have arrays of items x columns, which the operations of `operators` avoid, and work in any
floating-point type.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from accelviz.strategies.attention.scores import dropout_factors


class Size(NamedTuple):
    """Number of sources, of targets, and of added self loops of a graph."""

    sources: int
    targets: int
    loops: int = 0


def items(edge_index: Any, sources: int, targets: int, loops: int) -> tuple[Any, Any, Any]:
    """Return the source and the target of each item, and whether it counts (bool), (n_items,)."""
    source, target = edge_index[0].long(), edge_index[1].long()
    if not loops:
        return source, target, torch.ones_like(source, dtype=torch.bool)
    nodes = torch.arange(loops, device=source.device)
    counts = torch.cat([source != target, torch.ones_like(nodes, dtype=torch.bool)])
    return torch.cat([source, nodes]), torch.cat([target, nodes]), counts


def scales(edge_index: Any, size: Any, scaling: str, dtype: Any) -> Any:
    """Return the factor of each item, (n_items,); 0 for items that do not count."""
    source, target, counts = items(edge_index, *size)
    factor = counts.to(dtype)
    if scaling == "sum":
        return factor
    degree = torch.zeros(max(size[:2]), dtype=dtype, device=source.device)
    degree = degree.index_add(0, target, factor)
    if scaling == "mean":
        return factor / degree.clamp(min=1)[target]
    root = degree.rsqrt().masked_fill(degree == 0, 0)
    return factor * root[source] * root[target]


def spmm(
    edge_index: Any,
    weight: Any,
    x: Any,
    sources: int,
    targets: int,
    loops: int,
    scaling: str,
    transposed: bool,
) -> Any:
    """Compute `operators.spmm`."""
    size = sources, targets, loops
    source, target, _ = items(edge_index, *size)
    factor = scales(edge_index, size, scaling, x.dtype)
    factor = factor if weight is None else factor * weight
    gathered, reduced, rows = source, target, targets
    if transposed:
        gathered, reduced, rows = target, source, sources
    zeros = torch.zeros((rows, x.size(1)), dtype=x.dtype, device=x.device)
    return zeros.index_add(0, reduced, factor[:, None] * x[gathered])


def spmm_weight_gradient(
    edge_index: Any, x: Any, dy: Any, sources: int, targets: int, loops: int, transposed: bool
) -> Any:
    """Return the gradient of the items' weights, (n_items,), for dY of the result."""
    source, target, counts = items(edge_index, sources, targets, loops)
    gathered, reduced = (target, source) if transposed else (source, target)
    return (x[gathered] * dy[reduced]).sum(-1) * counts


def extremum(
    edge_index: Any, x: Any, sources: int, targets: int, loops: int, largest: bool
) -> tuple[Any, Any]:
    """Return the extrema, 0 without items, and their sources as of `spmm.extrema.extremum`.

    PyTorch's gradient counts an initial 0 among the equal extrema, and so does PyG's.
    """
    source, target, counts = items(edge_index, sources, targets, loops)
    source, target = source[counts], target[counts]
    y = x.new_zeros((targets, x.size(1)))
    index = target[:, None].expand(-1, x.size(1))
    reduction = "amax" if largest else "amin"
    y = y.scatter_reduce(0, index, x[source], reduction, include_self=False)
    equal = x[source] == y[target]
    number = torch.zeros_like(y, dtype=torch.int32).index_add(0, target, equal.int())
    column = torch.where(equal, source[:, None], -1).int()
    single = torch.full_like(number, -1).scatter_reduce(0, index, column, "amax")
    number += (number > 0) & (y == 0)
    return y, torch.where(y.isnan(), ~1, torch.where(number == 1, single, ~number))


def extremum_gradient(
    edge_index: Any,
    x: Any,
    y: Any,
    dy: Any,
    source: Any,
    sources: int,
    targets: int,
    loops: int,
) -> Any:
    """Return the gradient of x: equal parts of dY for equal extrema."""
    column, target, counts = items(edge_index, sources, targets, loops)
    equal = (x[column] == y[target]) & counts[:, None]
    parts = dy / torch.where(source < -1, ~source, 1)
    return torch.zeros_like(x).index_add(0, column, parts[target] * equal)


def attention(
    edge_index: Any,
    score: str,
    first: Any,
    second: Any,
    third: Any,
    random: Any,
    slope: float,
    rate: float,
    *size: int,
) -> Any:
    """Compute `operators.attention`."""
    source, target, counts = items(edge_index, *size)
    if score == "gat":
        values, scores = third, first[target] + second[source]
        scores = torch.nn.functional.leaky_relu(scores, slope)
    elif score == "gatv2":
        values = second
        ends = torch.nn.functional.leaky_relu(first[target] + second[source], slope)
        scores = (third * ends).sum(-1)
    else:
        keys, values = (second * third[..., None], second) if score == "cosine" else (second, third)
        scores = (first[target] * keys[source]).sum(-1)
    scores = scores.masked_fill(~counts[:, None], -torch.inf)
    index = target[:, None].expand_as(scores)
    rows = size[1], scores.size(1)
    largest = scores.new_full(rows, -torch.inf).scatter_reduce(0, index, scores.detach(), "amax")
    powers = (scores - largest.masked_fill(largest.isinf(), 0)[target]).exp()
    sums = scores.new_zeros(rows).index_add(0, target, powers)
    alpha = powers / sums[target].clamp(min=torch.finfo(sums.dtype).tiny)
    if rate:
        words = random.cpu().numpy().view("uint32")
        factors = dropout_factors(source.numel(), scores.size(1), {"rate": rate, "random": words})
        alpha = alpha * torch.from_numpy(factors).to(alpha)
    zeros = values.new_zeros((size[1], *values.shape[1:]))
    return zeros.index_add(0, target, alpha[..., None] * values[source])


def attention_gradient(
    edge_index: Any,
    score: str,
    first: Any,
    second: Any,
    third: Any,
    random: Any,
    dy: Any,
    slope: float,
    rate: float,
    *size: int,
) -> Any:
    """Return the gradients of the three operands for dY, themselves differentiable.

    An operand without a gradient has None.
    """
    with torch.enable_grad():
        # One operand may be computed from another, through which no gradient may flow here.
        first, second, third = (tensor.view_as(tensor) for tensor in (first, second, third))
        y = attention(edge_index, score, first, second, third, random, slope, rate, *size)
        operands = first, second, third
        inputs = [tensor for tensor in operands if tensor.requires_grad]
        gradients = iter(torch.autograd.grad(y, inputs, dy, create_graph=True))
    return tuple(next(gradients) if tensor.requires_grad else None for tensor in operands)
