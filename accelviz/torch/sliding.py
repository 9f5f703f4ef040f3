"""DSXplore's sliding-channel convolution (thesis, chapter 6) as a PyTorch module.

A GPU of compute capability 8.0 or more runs the tensor-core kernels of `strided_windows` on float32
maps. Everywhere else (the host, older GPUs, float64) PyTorch multiplies matrices; one has all
filters that read the same window.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import torch

from accelviz.convolution.channels import ChannelMap
from accelviz.devices import Device, find_device, ready
from accelviz.devices.cuda.plan import VECTOR_BYTES
from accelviz.devices.planning import plan_of
from accelviz.errors import ArgumentError, checked_choice
from accelviz.graph import Graph
from accelviz.plans.fragments import TF32_CAPABILITY
from accelviz.strategies import find_strategy
from accelviz.strategies.convolution.operation import SCC_LAST, SCC_LAST_WEIGHTS
from accelviz.strategies.convolution.strided_tiles import ARITHMETICS
from accelviz.torch.arrays import as_array, device_of
from accelviz.torch.operators import Operator

_HALF = torch.float16, torch.bfloat16
_SETTINGS = "int groups, float overlap, str arithmetic"
#: Most distinct windows for a product each; with more, one product with zeros is faster on a CPU.
MOST_WINDOWS = 32
#: `ChannelMap` with its graph, whose store has the plans.
_channel_map = functools.lru_cache(64)(ChannelMap)


class SlidingChannelConv2d(torch.nn.Module):
    """A 1 x 1 convolution whose filters read overlapping windows of the channels: SCC-cgX-coY%.

    Filter `o` reads `in_channels / groups` channels from `o * step` on and continues at channel 0;
    see `accelviz.convolution.ChannelMap`.

    Parameters
    ----------
    in_channels, out_channels : int
    groups : int
        The chapter's cg, a divisor of `in_channels`.
    overlap : float
        The chapter's co, 0 to 1: the share of a window's channels that are also in the window of
        the previous filter.
    bias : bool
    device, dtype
        As of `torch.nn.Conv2d`.
    arithmetic : {"3xtf32", "tf32"}
        Products on a GPU: as accurate as float32, or with inputs rounded to TF32. The host and
        float64 ignore it.

    Attributes
    ----------
    weight : Parameter, shape (out_channels, in_channels / groups, 1, 1)
        Weight `k` of filter `o` belongs to channel `channels.windows[o, k]`. The shape and the
        initial values are those of `torch.nn.Conv2d` with as many groups.
    bias : Parameter, shape (out_channels,), or None
    channels : ChannelMap

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    Notes
    -----
    The memory format of the result is that of the input. On a GPU `channels_last` is faster, as
    other maps are converted before and after. Maps of float16 and bfloat16 are computed in float32.

    Examples
    --------
    >>> layer = SlidingChannelConv2d(64, 128, groups=2, overlap=0.5)
    >>> layer(torch.randn(8, 64, 16, 16)).shape
    torch.Size([8, 128, 16, 16])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        groups: int = 2,
        overlap: float = 0.5,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        arithmetic: str = ARITHMETICS[0],
    ) -> None:
        super().__init__()
        self.channels = ChannelMap(in_channels, out_channels, groups, overlap)
        self.arithmetic = checked_choice("arithmetic", arithmetic, ARITHMETICS)
        options = {"device": device, "dtype": dtype}
        shape = out_channels, self.channels.width, 1, 1
        self.weight = torch.nn.Parameter(torch.empty(shape, **options))
        self.bias = torch.nn.Parameter(torch.empty(out_channels, **options)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters again, as `torch.nn.Conv2d` does."""
        bound = 1 / math.sqrt(self.channels.width)
        torch.nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            torch.nn.init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Return the arguments of the constructor."""
        channels = self.channels
        text = f"{channels.in_channels}, {channels.out_channels}, groups={channels.groups}"
        text += f", overlap={channels.overlap:g}" + (", bias=False" if self.bias is None else "")
        return text + (f", arithmetic={self.arithmetic!r}" if self.arithmetic == "tf32" else "")

    def forward(self, x: Any) -> Any:
        """Convolve maps of shape (images, in_channels, height, width), or one without `images`.

        Raises
        ------
        ArgumentError
            If `x` has another shape, is not a floating-point tensor, or is float64 and the weights
            are not, or the reverse.
        """
        channels, weight = self.channels, self.weight
        if x.dim() not in (3, 4) or x.size(-3) != channels.in_channels:
            expected = f"(images, {channels.in_channels}, height, width), images optional"
            raise ArgumentError("x", f"shape {tuple(x.shape)}", expected)
        doubles = [tensor.dtype == torch.float64 for tensor in (x, weight)]
        if not x.is_floating_point() or doubles[0] != doubles[1]:
            raise ArgumentError("x", f"{x.dtype} for weights of {weight.dtype}", f"{weight.dtype}")
        maps = x if x.dim() == 4 else x[None]
        maps = maps.float() if x.dtype in _HALF else maps
        filters = weight.flatten(1).to(maps.dtype)
        settings = channels.groups, float(channels.overlap), self.arithmetic
        y = sliding_channels(maps, filters, *settings)
        if self.bias is not None:
            y = y + self.bias.to(y.dtype)[:, None, None]
        y = y.to(x.dtype)
        return y if x.dim() == 4 else y[0]


# ---------------------------------------------------------------------------------- the operators
#
# Each is linear in both tensors and has the other two as derivatives, to any order.


def _convolve(x: Any, weight: Any, groups: int, overlap: float, arithmetic: str) -> Any:
    """Return the convolution, of the memory format of `x`.

    Parameters
    ----------
    x : tensor, shape (images, in_channels, height, width)
    weight : tensor of the same dtype, shape (out_channels, in_channels / groups)
    groups, overlap, arithmetic
        As of `SlidingChannelConv2d`.
    """
    channels = _channel_map(x.size(1), weight.size(0), groups, overlap)
    if _has_kernels(x):
        return by_kernels(channels, weight, x, arithmetic)
    y, maps, factors = _zeros_like(x, weight.size(0)), x.flatten(2), _factors(channels, weight)
    for filters, read, matrix in factors:
        y.flatten(2)[:, filters] += matrix @ maps[:, read]
    return y


def _input_gradient(
    dy: Any, weight: Any, in_channels: int, groups: int, overlap: float, arithmetic: str
) -> Any:
    """Return the gradient of `sliding_channels` with respect to `x`."""
    channels = _channel_map(in_channels, weight.size(0), groups, overlap)
    if _has_kernels(dy):
        return by_kernels(channels, weight, dy, arithmetic, transposed=True)
    dx, maps, factors = _zeros_like(dy, in_channels), dy.flatten(2), _factors(channels, weight)
    for filters, read, matrix in factors:
        dx.flatten(2)[:, read] += matrix.T @ maps[:, filters]
    return dx


def _weight_gradient(x: Any, dy: Any, groups: int, overlap: float, arithmetic: str) -> Any:
    """Return the gradient of `sliding_channels` with respect to `weight`."""
    channels = _channel_map(x.size(1), dy.size(1), groups, overlap)
    if _has_kernels(x):
        return weights_by_kernels(channels, x, dy, arithmetic)
    gradient = x.new_zeros((channels.out_channels, channels.width))
    maps, d_maps = x.flatten(2), dy.flatten(2)
    if channels.cyclic_distance > MOST_WINDOWS:
        dense = torch.einsum("nop,ncp->oc", d_maps, maps)
        return dense.gather(1, _order(channels, "windows", x.device).view_as(gradient))
    for filters, read, matrix in _factors(channels, gradient):
        matrix += torch.einsum("nop,ncp->oc", d_maps[:, filters], maps[:, read])
    return gradient


def _format(maps: Any) -> torch.memory_format:
    """Return the memory format of a result: that of the operand."""
    last = maps.is_contiguous(memory_format=torch.channels_last) and not maps.is_contiguous()
    return torch.channels_last if last else torch.contiguous_format


def _fake(x: Any, weight: Any, *settings: Any) -> Any:
    y = x.new_empty((x.size(0), weight.size(0), x.size(2), x.size(3)))
    return y.contiguous(memory_format=_format(x))


def _input_fake(dy: Any, weight: Any, in_channels: Any, *settings: Any) -> Any:
    dx = dy.new_empty((dy.size(0), in_channels, dy.size(2), dy.size(3)))
    return dx.contiguous(memory_format=_format(dy))


def _weight_fake(x: Any, dy: Any, groups: int, *settings: Any) -> Any:
    return x.new_empty((dy.size(1), x.size(1) // groups))


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.settings = inputs[-3:]


def _backward(ctx: Any, dy: Any) -> Any:
    (x, weight), needed = ctx.saved_tensors, ctx.needs_input_grad
    dx = input_gradient(dy, weight, x.size(1), *ctx.settings) if needed[0] else None
    d_weight = weight_gradient(x, dy, *ctx.settings) if needed[1] else None
    return dx, d_weight, None, None, None


def _input_backward(ctx: Any, change: Any) -> Any:
    (dy, weight), needed = ctx.saved_tensors, ctx.needs_input_grad
    d_dy = sliding_channels(change, weight, *ctx.settings) if needed[0] else None
    d_weight = weight_gradient(change, dy, *ctx.settings) if needed[1] else None
    return d_dy, d_weight, None, None, None, None


def _weight_backward(ctx: Any, change: Any) -> Any:
    (x, dy), needed = ctx.saved_tensors, ctx.needs_input_grad
    dx = input_gradient(dy, change, x.size(1), *ctx.settings) if needed[0] else None
    d_dy = sliding_channels(x, change, *ctx.settings) if needed[1] else None
    return dx, d_dy, None, None, None


sliding_channels = Operator(
    f"sliding_channels(Tensor x, Tensor weight, {_SETTINGS}) -> Tensor",
    *(_fake, _save, _backward, _convolve),
)
input_gradient = Operator(
    f"sliding_channels_input(Tensor dy, Tensor weight, SymInt in_channels, {_SETTINGS}) -> Tensor",
    *(_input_fake, _save, _input_backward, _input_gradient),
)
weight_gradient = Operator(
    f"sliding_channels_weight(Tensor x, Tensor dy, {_SETTINGS}) -> Tensor",
    *(_weight_fake, _save, _weight_backward, _weight_gradient),
)


def _zeros_like(maps: Any, channels: int) -> Any:
    """Return zeros of the images, pixels and memory format of `maps`."""
    shape, kind = (maps.size(0), channels, *maps.shape[2:]), {"dtype": maps.dtype}
    zeros = torch.empty(shape, **kind, device=maps.device, memory_format=_format(maps))
    return zeros.zero_()


def _factors(channels: ChannelMap, weight: Any) -> Iterator[tuple[slice, slice, Any]]:
    """Yield (filters, channels, their weights as a matrix) of each dense product.

    The weights are a view of `weight`; a window that wraps around has two. With many distinct
    windows it is one product with a matrix that has zeros.
    """
    distance, width, total = channels.cyclic_distance, channels.width, channels.in_channels
    if distance > MOST_WINDOWS:
        columns = _order(channels, "windows", weight.device).view_as(weight)
        zeros = weight.new_zeros((channels.out_channels, total))
        yield slice(None), slice(None), zeros.scatter(1, columns, weight)
        return
    for number in range(distance):
        filters, start = slice(number, None, distance), number * channels.step % total
        inside = min(width, total - start)
        yield filters, slice(start, start + inside), weight[filters, :inside]
        if inside < width:
            yield filters, slice(0, width - inside), weight[filters, inside:]


# ------------------------------------------------------------------------------------ the kernels


def _has_kernels(maps: Any) -> bool:
    """Return whether the kernels compute these maps."""
    usable = maps.is_cuda and maps.dtype == torch.float32 and maps.numel() > 0
    return usable and _capability(maps.device) >= TF32_CAPABILITY


@functools.cache
def _capability(device: Any) -> int:
    major, minor = torch.cuda.get_device_capability(device)
    return 10 * major + minor


@functools.lru_cache(256)
def _order(channels: ChannelMap, target: str, device: Any) -> Any:
    """Return the index, on a device, that puts weights or values in another order.

    `target` is "values" (weights to the graph's nonzeros), "transposed" (weights to the nonzeros of
    the transposed graph), "weights" (values to weights) or "windows" (channels of the weights).
    """
    if target == "windows":
        return torch.from_numpy(channels.windows.astype("int64").ravel()).to(device)
    numbers = torch.arange(channels.parameters).numpy()
    order = channels.values(numbers.reshape(channels.out_channels, channels.width))
    if target == "transposed":
        order = order[channels.graph.transposed().nonzeros]
    elif target == "weights":
        order = channels.weights(numbers).ravel()
    return torch.from_numpy(order).to(device)


def by_kernels(
    channels: ChannelMap,
    weight: Any,
    maps: Any,
    arithmetic: str,
    device: Device | None = None,
    *,
    transposed: bool = False,
) -> Any:
    """Return the convolution, or with `transposed` its gradient by the input, by `scc_last`.

    `device` is the tensors' device, or the emulator for tensors on the host.
    """
    graph, target = channels.graph, "values"
    if transposed:
        graph, target = channels.graph.transposed().graph, "transposed"
    values = weight.reshape(-1).index_select(0, _order(channels, target, maps.device))
    images, _, height, width = maps.shape
    Y = maps.new_empty((images * height * width, graph.n_rows))
    operands = {"values": values, "X": _pixels(maps)}
    _run(SCC_LAST, graph, operands, {"Y": Y}, arithmetic, device)
    y = Y.view(images, height, width, -1).permute(0, 3, 1, 2)
    return y.contiguous(memory_format=_format(maps))


def weights_by_kernels(
    channels: ChannelMap, x: Any, dy: Any, arithmetic: str, device: Device | None = None
) -> Any:
    """Return the gradient by the weights, by `scc_last_weights`."""
    d_values = x.new_empty(channels.parameters)
    operands = {"X": _pixels(x), "dY": _pixels(dy)}
    outputs = {"d_values": d_values}
    _run(SCC_LAST_WEIGHTS, channels.graph, operands, outputs, arithmetic, device)
    d_weight = d_values.index_select(0, _order(channels, "weights", x.device))
    return d_weight.view(channels.out_channels, channels.width)


def _pixels(maps: Any) -> Any:
    """Return maps as a matrix of pixels x channels, a view of maps in `channels_last`."""
    return maps.permute(0, 2, 3, 1).contiguous().view(-1, maps.size(1))


def _run(
    operation: Any,
    graph: Graph,
    operands: dict[str, Any],
    outputs: dict[str, Any],
    arithmetic: str,
    device: Device | None,
) -> None:
    """Run an operation on tensors, on PyTorch's current stream."""
    X = operands["X"]
    with torch.cuda.device_of(X):  # no change for a tensor on the host
        current = device or find_device(X.device.type)
        plan = _prepared(operation, graph, X.size(0), arithmetic, current, X.device)
        if device is None and all(one.data_ptr() % VECTOR_BYTES == 0 for one in operands.values()):
            arguments = {name: _Memory(tensor) for name, tensor in (operands | outputs).items()}
            plan.launch_on(torch.cuda.current_stream().cuda_stream, arguments)
            return
    with device_of(X):
        inputs = {name: as_array(tensor, current) for name, tensor in operands.items()}
        results = {name: as_array(tensor, current) for name, tensor in outputs.items()}
        plan.run(inputs, results)


class _Memory:
    """A tensor's address, as a launch takes that of a CuPy array."""

    def __init__(self, tensor: Any) -> None:
        self.ptr = tensor.data_ptr()

    @property
    def data(self) -> _Memory:
        return self


@functools.lru_cache(256)
def _prepared(
    operation: Any, graph: Graph, pixels: int, arithmetic: str, device: Device, torch_device: Any
) -> Any:
    """Return the plan of an operation, prepared on the current GPU, which is `torch_device`."""
    settings = {"n_cols": pixels, "arithmetic": arithmetic}
    return ready(plan_of(graph, find_strategy(operation.fastest, operation), settings), device)
