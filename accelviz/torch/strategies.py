"""A strategy of accelviz for the operations of a layer, `GCNConv(..., strategy="tc_gnn")`.

An object of `Strategies` has the functions of `operators`. They run plans of the strategy on the
graph in CSR form, which the host builds at the first call with an `edge_index`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable
from torch.utils.weak import WeakIdKeyDictionary

from accelviz.devices.planning import plan_of
from accelviz.devices.ready_plan import ready
from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.plans import Strategy
from accelviz.strategies import OPERATIONS, find_strategy
from accelviz.strategies import strategies as names_of
from accelviz.torch import composed
from accelviz.torch.arrays import as_array, device_of
from accelviz.torch.operators import ATTENTION_OPERANDS, Size, random_words


class _Matrix:
    """The items of an `edge_index` as a matrix with targets as rows; duplicates are one nonzero.

    Attributes
    ----------
    graph : Graph
        The matrix, with values 1.
    positions : tensor of int64, shape (n_items,)
        Index of each item's nonzero; 0 for items that do not count.
    order : tensor of int64, shape (nnz,)
        Index of each nonzero of the transposed matrix.
    duplicates : int
        Number of items beyond the first of a nonzero.
    """

    def __init__(self, edge_index: Any, size: Size) -> None:
        source, target, counts = composed.items(edge_index, *size)
        for ends, n_nodes in ((source, size.sources), (target, size.targets)):
            if ends.numel() and (int(ends.min()) < 0 or int(ends.max()) >= n_nodes):
                problem = f"nodes {int(ends.min())} to {int(ends.max())} of {n_nodes}"
                raise ArgumentError("edge_index", problem, f"0 to {n_nodes - 1}")
        keys, inverse = torch.unique((target * size.sources + source)[counts], return_inverse=True)
        self.positions = torch.zeros_like(source)
        self.positions[counts] = inverse
        self.duplicates = inverse.numel() - keys.numel()
        rows, columns = keys // size.sources, keys % size.sources
        row_counts = torch.bincount(rows, minlength=size.targets).cpu().numpy()
        self.graph = Graph(
            np.concatenate([[0], np.cumsum(row_counts)]).astype(np.int64),
            columns.cpu().numpy().astype(np.int32),
            np.ones(keys.numel(), np.float32),
            (size.targets, size.sources),
            "edge_index",
        )
        order = torch.from_numpy(self.graph.transposed().nonzeros.astype(np.int64))
        self.order = order.to(edge_index.device)


#: The matrices of each `edge_index` that exists, by `Size`, and a copy to detect changes.
_matrices: Any = WeakIdKeyDictionary()


def _matrix(edge_index: Any, size: Size) -> _Matrix:
    with torch.inference_mode(False), torch.no_grad():
        entry = _matrices.get(edge_index)
        if entry is None or not torch.equal(entry[0], edge_index):
            entry = _matrices[edge_index] = edge_index.clone(), {}
        if size not in entry[1]:
            entry[1][size] = _Matrix(edge_index, size)
    matrix: _Matrix = entry[1][size]
    return matrix


def _run(name: str, strategy: Strategy, graph: Graph, **operands: Any) -> list[Any]:
    """Run an operation on PyTorch's tensors; return its outputs."""
    operation = OPERATIONS[name]
    tensors = {
        key: operand.detach().contiguous()
        for key, operand in operands.items()
        if isinstance(operand, torch.Tensor)
    }
    first = next(iter(tensors.values()))
    plan = plan_of(graph, strategy, operation.widths_of(tensors))
    outputs = {}
    for output in operation.outputs:
        shape, dtype = output.shape(plan.sizes), getattr(torch, output.dtype.name)
        outputs[output.name] = torch.empty(shape, dtype=dtype, device=first.device)
    with device_of(first) as device:
        arrays = {key: as_array(tensor, device) for key, tensor in tensors.items()}
        if "random" in arrays:
            arrays["random"] = arrays["random"].view(np.uint32)
        results = {key: as_array(tensor, device) for key, tensor in outputs.items()}
        ready(plan, device).run({**operands, **arrays}, results)
    return [*outputs.values()]


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, chosen: Any, matrix: _Matrix, values: Any, x: Any) -> Any:
        ctx.chosen, ctx.matrix = chosen, matrix
        ctx.save_for_backward(values, x)
        return _run("spmm", chosen["spmm"], matrix.graph, values=values, X=x)[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        (values, x), matrix, d_values, dx = ctx.saved_tensors, ctx.matrix, None, None
        if ctx.needs_input_grad[2]:
            operands = {"U": dy[:, None], "V": x[:, None]}
            d_values = _run("sddmm", ctx.chosen["sddmm"], matrix.graph, **operands)[0][:, 0]
        if ctx.needs_input_grad[3]:
            graph, values = matrix.graph.transposed().graph, values[matrix.order]
            dx = _run("spmm", ctx.chosen["spmm"], graph, values=values, X=dy)[0]
        return None, None, d_values, dx


class _Extremum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, chosen: Any, matrix: _Matrix, name: str, x: Any) -> Any:
        y, source = _run(name, chosen[name], matrix.graph, X=x)
        ctx.chosen, ctx.matrix = chosen, matrix
        # PyTorch's gradient counts the initial 0 among the equal extrema, and so does PyG's.
        one_more = torch.where(source < -1, source - 1, ~2)
        ctx.save_for_backward(x, y, torch.where((y == 0) & (source != -1), one_more, source))
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        x, y, source = ctx.saved_tensors
        name, operands = "spmm_extremum_gradient", {"X": x, "Y": y, "dY": dy, "source": source}
        dx = _run(name, ctx.chosen[name], ctx.matrix.graph, **operands)[0]
        return None, None, None, dx


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, chosen: Any, matrix: _Matrix, name: str, settings: Any, *tensors: Any
    ) -> Any:
        operands = dict(zip(ATTENTION_OPERANDS[name], tensors, strict=True))
        y, *sums = _run(name, chosen[name], matrix.graph, **operands, **settings)
        ctx.chosen, ctx.matrix, ctx.name, ctx.settings = chosen, matrix, name, settings
        ctx.save_for_backward(*tensors, y, *sums)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        names = (*ATTENTION_OPERANDS[ctx.name], "Y", "row_max", "row_sum")
        operands = dict(zip(names, ctx.saved_tensors, strict=True))
        name = f"{ctx.name}_gradient"
        strategy, graph = ctx.chosen[name], ctx.matrix.graph
        return (
            None,
            None,
            None,
            None,
            *_run(name, strategy, graph, **operands, dY=dy, **ctx.settings),
        )


class Strategies:
    """The functions of `operators` by plans of chosen strategies.

    Parameters
    ----------
    layer : str
        Name of the layer, for messages.
    operations : tuple of str
        Operations that the layer runs, the forward one first.
    strategy : str, Strategy, or dict of operation to one of these
        A single strategy runs each operation that has it; the fastest one runs the others.

    Raises
    ------
    ArgumentError
        If a strategy or an operation has no effect on the layer.
    """

    def __init__(self, layer: str, operations: tuple[str, ...], strategy: Any) -> None:
        if not operations:
            problem = f"{layer} with this aggregation runs no operation of accelviz"
            raise ArgumentError("strategy", problem, "None")
        if not isinstance(strategy, dict):
            name = getattr(strategy, "name", strategy)
            owners = [operation for operation in operations if name in [*names_of(operation)]]
            if isinstance(strategy, Strategy):
                owners = [key for key in operations if strategy.operation.name == key]
            strategy = dict.fromkeys(owners or operations[:1], strategy)
        unknown = [key for key in strategy if key not in operations]
        if unknown:
            problem = f"{unknown[0]!r} has no effect on {layer}"
            raise ArgumentError("strategy", problem, f"strategies of {', '.join(operations)}")
        self.layer = layer
        self.chosen = {
            key: find_strategy(strategy.get(key, OPERATIONS[key].fastest), key)
            for key in operations
        }

    def refuse(self) -> None:
        """Raise ArgumentError for a call that only PyTorch Geometric's code covers."""
        problem = f"{self.layer} runs PyTorch Geometric's code for this call, without a strategy"
        raise ArgumentError("strategy", problem, "None, or a call that accelviz's operations cover")

    @torch.compiler.disable
    def spmm(
        self, edge_index: Any, x: Any, size: Size, weight: Any = None, scaling: str = "sum"
    ) -> Any:
        """Compute `operators.spmm`."""
        matrix = _matrix(edge_index, size)
        factors = composed.scales(edge_index, size, scaling, torch.float32)
        factors = factors if weight is None else factors * weight
        values = torch.zeros(matrix.graph.nnz, device=x.device)
        values = values.index_add(0, matrix.positions, factors)
        return _Product.apply(self.chosen, matrix, values, x.float()).to(x.dtype)

    @torch.compiler.disable
    def extremum(self, edge_index: Any, x: Any, size: Size, largest: bool = True) -> Any:
        """Compute `operators.extremum`."""
        name = "spmm_max" if largest else "spmm_min"
        return _Extremum.apply(self.chosen, _matrix(edge_index, size), name, x)

    @torch.compiler.disable
    def attention(
        self,
        edge_index: Any,
        score: str,
        size: Size,
        *,
        slope: float = 0.0,
        rate: float = 0.0,
        **tensors: Any,
    ) -> Any:
        """Compute `operators.attention`; duplicate edges are refused."""
        matrix = _matrix(edge_index, size)
        if matrix.duplicates:
            problem = f"{matrix.duplicates} duplicate edges; a plan has one weight per nonzero"
            expected = "torch_geometric.utils.coalesce(edge_index), or strategy=None"
            raise ArgumentError("edge_index", problem, expected)
        settings: dict[str, Any] = {"slope": slope} if score in ("gat", "gatv2") else {}
        if rate:
            settings |= {"rate": rate, "random": random_words(edge_index.device)}
        operands = [tensors[name].contiguous() for name in ATTENTION_OPERANDS[score]]
        return _Attention.apply(self.chosen, matrix, score, settings, *operands)
