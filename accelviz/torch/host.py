"""The operations on the CPU, in Numba.

An operation walks the rows of `host_graph.Adjacency`, a row a record of the replays of
`accelviz.strategies`. A row's sum has one order, so that results do not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import torch

from accelviz.errors import ArgumentError
from accelviz.plans.replay import in_pieces
from accelviz.random import row_uniform
from accelviz.strategies.attention.scores import dropout_factors, score_operands
from accelviz.strategies.spmm import extrema, gradient
from accelviz.strategies.spmm.row_sums import sum_csr
from accelviz.torch.host_attention import add_gradients, attend
from accelviz.torch.host_graph import CSR, adjacency, edge_array, no_such_node

#: Most elements, items x columns, of a product without a CSR form of the graph.
SMALL_ELEMENTS = 1 << 17
_NO_VALUES = np.zeros(0, np.float32)


def _array(name: str, tensor: Any, *shape: int) -> Any:
    """Return a float32 operand of this shape as an array; convert 16-bit numbers."""
    if tuple(tensor.shape) != shape or tensor.dtype == torch.float64:
        problem = f"shape {tuple(tensor.shape)}, {tensor.dtype}"
        raise ArgumentError(name, problem, f"float32, shape {shape}")
    array = tensor.detach() if tensor.dtype == torch.float32 else tensor.detach().float()
    return np.ascontiguousarray(array.numpy())


def _by_rows(csr: CSR, function: Callable[..., None], products: int, *operands: Any) -> None:
    """Call `function(first, last, walk, *operands)` on ranges of rows, in PyTorch's threads."""
    walk = csr.records.walk

    def compute(first: int, last: int) -> None:
        function(first, last, walk, *operands)

    in_pieces(compute, csr.records, products, torch.get_num_threads())


@numba.njit(cache=True, nogil=True)
def add_products(
    edges: Any,
    values: Any,
    X: Any,
    Y: Any,
    targets: int,
    loops: int,
    symmetric: bool,
    mean: bool,
    transposed: bool,
) -> bool:
    """Add A X to Y without a CSR form of A, item by item; return whether all nodes exist.

    A new graph has no CSR form yet, and making it takes longer than a small product.
    """
    n_edges = edges.shape[1]
    n_sources = Y.shape[0] if transposed else X.shape[0]
    scales = np.zeros(targets if symmetric or mean else 0, np.float32)
    for e in range(n_edges):
        source, target = edges[0, e], edges[1, e]
        if not (0 <= source < n_sources and 0 <= target < targets):
            return False
        if scales.size and (loops == 0 or source != target):
            scales[target] += 1
    for i in range(scales.size):
        degree = scales[i] + np.float32(i < loops)
        if mean:
            scales[i] = np.float32(1) / max(degree, np.float32(1))
        elif degree > 0:
            scales[i] = np.float32(1) / np.sqrt(degree)
    for item in range(n_edges + loops):
        source = target = item - n_edges
        if item < n_edges:
            source, target = edges[0, item], edges[1, item]
            if loops and source == target:
                continue
        weight = values[item] if values.size else np.float32(1)
        if mean:
            weight *= scales[target]
        elif symmetric:
            weight *= scales[target] * scales[source]
        row, column = (source, target) if transposed else (target, source)
        for c in range(X.shape[1]):
            Y[row, c] += weight * X[column, c]
    return True


def spmm(
    edge_index: Any,
    weight: Any,
    x: Any,
    sources: int,
    targets: int,
    loops: int,
    scaling: str,
    transposed: bool,
    start: Any = None,
) -> Any:
    """Compute `operators.spmm`, added to `start`, which is overwritten."""
    n_rows, n_inputs = (sources, targets) if transposed else (targets, sources)
    X, n_items = _array("x", x, n_inputs, x.shape[-1]), edge_index.shape[-1] + loops
    if n_items * X.shape[1] <= SMALL_ELEMENTS and loops <= min(sources, targets):
        edges, values = edge_array(edge_index), _NO_VALUES
        if weight is not None:
            values = _array("weight", weight, n_items)
        y = torch.zeros((n_rows, X.shape[1])) if start is None else start
        operands = edges, values, X, y.numpy(), targets, loops, scaling == "symmetric"
        if not add_products(*operands, scaling == "mean", transposed):
            raise no_such_node(edges, (sources, targets))
        return y.to(x.dtype)
    edges, graph = adjacency(edge_index, sources, targets, loops)
    csr = graph.csr(edges, transposed)
    if weight is None:
        values = graph.values(edges, scaling, transposed)
    else:
        values = _array("weight", weight, graph.n_items)[csr.items]
    y = torch.empty((n_rows, X.shape[1]))
    _by_rows(csr, sum_csr, X.shape[1], values, X, y.numpy())
    return y.to(x.dtype) if start is None else y.add_(start)


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
    edges, graph = adjacency(edge_index, sources, targets, loops)
    n_rows, n_inputs = (sources, targets) if transposed else (targets, sources)
    csr = graph.csr(edges, not transposed)
    X, dY = _array("x", x, n_inputs, x.shape[-1]), _array("dy", dy, n_rows, x.shape[-1])
    values = _array("weight", weight, graph.n_items)[csr.items]
    d_weight, dx = torch.zeros(graph.n_items), torch.empty(X.shape)
    outputs = d_weight.numpy(), dx.numpy()
    _by_rows(csr, gradient.gradient_rows, X.shape[1], csr.items, values, X, dY, *outputs)
    return d_weight.to(weight.dtype), dx.to(x.dtype)


def extremum(
    edge_index: Any, x: Any, sources: int, targets: int, loops: int, largest: bool
) -> tuple[Any, Any]:
    """Compute `composed.extremum`."""
    edges, graph = adjacency(edge_index, sources, targets, loops)
    X = _array("x", x, sources, x.shape[-1])
    constants = np.array([1 if largest else -1, 1, 0], "f4")  # sign, initial, first
    y = torch.empty(targets, X.shape[1])
    source = torch.empty(targets, X.shape[1], dtype=torch.int32)
    operands = *constants, X, y.numpy(), source.numpy()
    _by_rows(graph.csr(edges, False), extrema.reduce_rows, X.shape[1], *operands)
    return y.to(x.dtype), source


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
    """Compute `composed.extremum_gradient`."""
    edges, graph = adjacency(edge_index, sources, targets, loops)
    X, n_cols = _array("x", x, sources, x.shape[-1]), x.shape[-1]
    results = [_array(name, z, targets, n_cols) for name, z in (("y", y), ("dy", dy))]
    dx = torch.empty(X.shape)
    operands = X, *results, source.contiguous().numpy(), dx.numpy()
    _by_rows(graph.csr(edges, True), extrema.gradient_rows, n_cols, *operands)
    return dx


def _scored(score: str, tensors: Any, slope: float, sources: int, targets: int) -> Any:
    """Return `score_operands` of an operator's operands."""
    values = tensors[2 if score in ("gat", "dot") else 1]
    heads, n_cols = values.shape[1:]
    by_source, by_target = (sources, heads, n_cols), (targets, heads, n_cols)
    shapes = {
        "gat": (("receiver", by_target[:2]), ("sender", by_source[:2]), ("V", by_source)),
        "gatv2": (("R", by_target), ("V", by_source), ("a", by_source[1:])),
        "cosine": (("Q", by_target), ("V", by_source), ("scale", by_source[:2])),
        "dot": (("Q", by_target), ("K", by_source), ("V", by_source)),
    }[score]
    inputs = {
        name: _array(name, tensor, *shape)
        for (name, shape), tensor in zip(shapes, tensors, strict=True)
    }
    return score_operands(score, inputs | {"slope": np.float32(slope)})


def _with_factors(
    csr: CSR, function: Callable[..., None], products: int, dropout: Any, *operands: Any
) -> None:
    """Call `function(first, last, walk, factors, *operands)` on ranges of rows, as `_by_rows`.

    `dropout` has the rate, the random words and the number of heads; `factors` are of these rows.
    """
    rate, random, heads = dropout
    inputs = {"rate": rate, "random": None if random is None else random.numpy().view(np.uint32)}

    def compute(first: int, last: int, walk: Any) -> None:
        start, stop = csr.records.cost[first] - first, csr.records.cost[last] - last
        factors = dropout_factors(csr.items[start:stop], heads, inputs)
        function(first, last, walk, factors, *operands)

    _by_rows(csr, compute, products)


def attention(
    edge_index: Any,
    score: str,
    first: Any,
    second: Any,
    third: Any,
    random: Any,
    slope: float,
    rate: float,
    sources: int,
    targets: int,
    loops: int,
) -> tuple[Any, ...]:
    """Return the result, and per target and head the largest score and the sum of powers."""
    edges, graph = adjacency(edge_index, sources, targets, loops)
    scored = _scored(score, (first, second, third), slope, sources, targets)
    heads, n_cols = scored[4].shape[1:]
    results = torch.empty((targets, heads, n_cols)), *(torch.empty(targets, heads) for _ in "ms")
    arrays = tuple(result.numpy() for result in results)
    csr, dropout = graph.csr(edges, False), (rate, random, heads)
    _with_factors(csr, attend, heads * n_cols, dropout, scored, arrays)
    return results


def attention_gradient(
    edge_index: Any,
    score: str,
    first: Any,
    second: Any,
    third: Any,
    random: Any,
    y: Any,
    row_max: Any,
    row_sum: Any,
    dy: Any,
    slope: float,
    rate: float,
    sources: int,
    targets: int,
    loops: int,
) -> tuple[Any, ...]:
    """Return the gradients of the three operands."""
    edges, graph = adjacency(edge_index, sources, targets, loops)
    scored = _scored(score, (first, second, third), slope, sources, targets)
    _, a, A, B, V, _ = scored
    statistics = torch.stack([row_max, row_sum.reciprocal(), (dy * y).sum(-1)], -1)
    results = _array("dy", dy, *y.shape), statistics.numpy()
    dropout, products = (rate, random, V.shape[1]), V.shape[1] * V.shape[2]
    dA, dV = torch.zeros(A.shape), torch.zeros(V.shape)
    dB = dV if score == "gatv2" else torch.zeros(B.shape)
    rows = graph.csr(edges, False)
    by_piece = {row: np.zeros_like(a) for row in rows.records.pieces}  # of da

    def add_rows(first: int, last: int, walk: Any, factors: Any) -> None:
        for low, high in rows.records.pieces_within(first, last):
            gradients = dA.numpy(), dV.numpy(), by_piece[low]
            dropped = factors[walk[1][low] - walk[1][first] :]
            add_gradients(low, high, walk, dropped, True, scored, results, gradients)

    _with_factors(rows, add_rows, products, dropout)
    gradients = dB.numpy(), dV.numpy(), a
    columns = graph.csr(edges, True)
    _with_factors(columns, add_gradients, products, dropout, False, scored, results, gradients)
    if score == "gat":
        return dA[..., 0], dB[..., 0], dV
    if score == "gatv2":
        return dA, dV, torch.from_numpy(sum(by_piece.values()))
    if score == "cosine":
        return dA, dV + third[..., None] * dB, (dB * second).sum(-1)
    return dA, dB, dV


def row_dropout(x: Any, nodes: Any, random: Any, rate: float) -> Any:
    """Drop elements of x, (n_rows, n_cols), by the numbers of the rows' nodes, int64, (n_rows,).

    `random` has the words of `accelviz.random`, int32, (4,): two as the seed, site and step.
    """
    drawn = row_uniform(nodes.numpy(), x.size(1), random.numpy().view(np.uint32))
    p, one = np.float32(rate), np.float32(1)
    return x.detach() * torch.from_numpy(np.where(drawn >= p, one / (one - p), np.float32(0)))
