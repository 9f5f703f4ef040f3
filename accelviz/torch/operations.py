"""Sparse operations of the layers as PyTorch operators, for autograd and torch.compile.

All operations go through one custom operator, `accelviz::operation`. Its arguments are the number
of an `Edges`, the operation's name, and the operands: `keys` has their names, separated by commas,
first those of `tensors`, then those of `numbers`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from accelviz.devices import Device, find_device, ready
from accelviz.devices.planning import plan_of
from accelviz.graph import Graph
from accelviz.strategies import OPERATIONS, find_strategy
from accelviz.torch.edges import Edges


def _operation(number: int, name: str, keys: str, tensors: list[Any], numbers: list[float]) -> Any:
    """Run an operation; return its outputs."""
    operation, graph = _operation_and_graph(number, name)
    names = keys.split(",")
    torch_device = tensors[0].device
    device = find_device(torch_device.type)
    named_tensors = zip(names, tensors, strict=False)
    inputs = {name: tensor.detach().contiguous() for name, tensor in named_tensors}
    widths = operation.widths_of(inputs)
    plan = plan_of(graph, find_strategy(operation.fastest, operation), widths)
    shapes = {output.name: output.shape(plan.sizes) for output in operation.outputs}
    outputs = {name: torch.empty(shape, device=torch_device) for name, shape in shapes.items()}
    on_gpu = torch_device.type == "cuda"
    with device.on_stream(torch.cuda.current_stream(torch_device) if on_gpu else None):
        operands = {name: _array(tensor, device) for name, tensor in inputs.items()}
        operands |= dict(zip(names[len(tensors) :], numbers, strict=True))
        results = {name: _array(tensor, device) for name, tensor in outputs.items()}
        ready(plan, device).run(operands, results)
    return list(outputs.values())


def _array(tensor: Any, device: Device) -> Any:
    """Return a tensor's memory as a device array; int32, random words, becomes uint32."""
    array = device.xp.from_dlpack(tensor)
    return array.view(np.uint32) if tensor.dtype == torch.int32 else array


def _operation_and_graph(number: int, name: str) -> tuple[Any, Graph]:
    edges = Edges.numbered(number)
    if name == "spmm_transposed":
        return OPERATIONS["spmm"], edges.graph.transposed().graph
    return OPERATIONS[name], edges.graph


def _shapes(number: int, name: str, keys: str, tensors: list[Any], numbers: list[float]) -> Any:
    """Return outputs without content but with the right shapes, for torch.compile."""
    operation, graph = _operation_and_graph(number, name)
    inputs = dict(zip(keys.split(","), tensors, strict=False))
    sizes = operation.sizes(graph.pattern, operation.widths_of(inputs))
    return [tensors[0].new_empty(output.shape(sizes)) for output in operation.outputs]


_run = torch.library.custom_op(
    "accelviz::operation",
    _operation,
    mutates_args=(),
    schema="(int number, str name, str keys, Tensor[] tensors, float[] numbers) -> Tensor[]",
)
_run.register_fake(_shapes)


class SpMM(torch.autograd.Function):
    """`A X`, with gradients of the weights and of X."""

    @staticmethod
    def forward(ctx: Any, number: int, values: Any, X: Any) -> Any:
        """Return `A X`, where A has the pattern of edges `number` and the weights `values`."""
        ctx.number = number
        ctx.save_for_backward(values, X)
        return _run(number, "spmm", "X,values", [X, values], [])[0]

    @staticmethod
    def backward(ctx: Any, dY: Any) -> Any:
        """Return the gradients of the weights, by an SDDMM, and of X, by an SpMM with A.T."""
        (values, X), d_values, dX = ctx.saved_tensors, None, None
        if ctx.needs_input_grad[1]:
            operands = [dY[:, None].contiguous(), X[:, None].contiguous()]
            d_values = _run(ctx.number, "sddmm", "U,V", operands, [])[0][:, 0]
        if ctx.needs_input_grad[2]:
            order = _transposed_order(ctx.number, values.device)
            operands = [dY.contiguous(), values[order]]
            dX = _run(ctx.number, "spmm_transposed", "X,values", operands, [])[0]
        return None, d_values, dX


class RowMax(torch.autograd.Function):
    """Maximum of each column over the neighbors; equal maxima share the gradient."""

    @staticmethod
    def forward(ctx: Any, number: int, X: Any) -> Any:
        """Return the maxima, 0 for a node without neighbors."""
        Y, share = _run(number, "spmm_max", "X", [X], [])
        ctx.number = number
        ctx.save_for_backward(X, Y, share)
        return Y

    @staticmethod
    def backward(ctx: Any, dY: Any) -> Any:
        """Return the gradient of X."""
        X, Y, share = ctx.saved_tensors
        operands = [X, Y, dY * share]
        return None, _run(ctx.number, "spmm_extremum_gradient", "X,Y,dY", operands, [])[0]


@torch.compiler.disable
def _transposed_order(number: int, device: Any) -> Any:
    edges = Edges.numbered(number)
    if "order" not in edges.cache:
        order = torch.from_numpy(edges.graph.transposed().nonzeros.astype(np.int64))
        edges.cache["order"] = order.to(device)
    return edges.cache["order"]


class Attention(torch.autograd.Function):
    """A fused attention, with gradients of its float32 tensors."""

    @staticmethod
    def forward(ctx: Any, number: int, name: str, keys: str, numbers: Any, *tensors: Any) -> Any:
        """Run the operation."""
        Y, logsumexp = _run(number, name, keys, [*tensors], numbers)
        ctx.number, ctx.name, ctx.keys, ctx.numbers = number, name, keys, numbers
        ctx.save_for_backward(*tensors, Y, logsumexp)
        return Y

    @staticmethod
    def backward(ctx: Any, dY: Any) -> Any:
        """Run the gradient of the operation."""
        operands = [*ctx.saved_tensors, dY.contiguous()]
        n_tensors, names = len(operands) - 3, ctx.keys.split(",")
        keys = ",".join([*names[:n_tensors], "Y", "logsumexp", "dY", *names[n_tensors:]])
        name = f"{ctx.name}_gradient"
        results = _run(ctx.number, name, keys, operands, ctx.numbers)
        outputs = [output.name for output in OPERATIONS[name].outputs]
        gradients = dict(zip(outputs, results, strict=True))
        d_names = (f"d{key}" if len(key) == 1 else f"d_{key}" for key in names[:n_tensors])
        # None for the arguments before the tensors, and for "random".
        return (None,) * 4 + tuple(gradients.get(d_name) for d_name in d_names)


def attention(edges: Edges, name: str, rate: float, slope: float | None, **tensors: Any) -> Any:
    """Run a fused attention with its gradient.

    Parameters
    ----------
    edges : Edges
    name : {"gat", "gatv2", "dot", "cosine"}
    rate : float
        Rate of dropout of the attention weights.
    slope : float or None
        Negative slope of the LeakyReLU; None for a score without LeakyReLU.
    **tensors : tensors of float32
        The operands, by name.
    """
    numbers = {} if slope is None else {"slope": slope}
    tensors = {key: tensor.contiguous() for key, tensor in tensors.items()}
    if rate:  # two random words as the seed, then site 0 and step 0
        device = next(iter(tensors.values())).device
        seed = torch.randint(-(1 << 31), 1 << 31, (2,), device=device)
        tensors["random"] = torch.cat([seed, torch.zeros_like(seed)]).to(torch.int32)
        numbers["rate"] = rate
    keys = ",".join([*tensors, *numbers])
    return Attention.apply(edges.number, name, keys, [*numbers.values()], *tensors.values())
