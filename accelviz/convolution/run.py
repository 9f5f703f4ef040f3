"""Sliding-channel convolution of feature maps (thesis, chapter 6), forward and backward."""

from __future__ import annotations

import math
from typing import Any

from accelviz.convolution.channels import ChannelMap
from accelviz.devices.choice import as_operand
from accelviz.devices.run import run_operation
from accelviz.errors import ArgumentError, checked_choice, checked_type
from accelviz.plans import Strategy
from accelviz.strategies.convolution.operation import SCC, SCC_GRADIENT, SCC_LAST, SCC_LAST_WEIGHTS

#: Axis of the channels in a feature map, by layout.
LAYOUTS = {"first": 1, "last": 3}


def scc(
    X: Any,
    channels: ChannelMap,
    weights: Any,
    strategy: str | Strategy | None = None,
    device: str = "auto",
    *,
    layout: str = "first",
    **parameters: Any,
) -> Any:
    """Convolve feature maps with 1 x 1 filters that each read a window of the channels.

    Parameters
    ----------
    X : array, shape (images, in_channels, height, width)
        Rounded to float32. A CuPy array stays on the GPU.
    channels : ChannelMap
    weights : array, shape (out_channels, channels.width)
        Weight `k` of filter `o` belongs to channel `channels.windows[o, k]`.
    strategy : str or Strategy, optional
        A name of `accelviz.strategies("scc")`, or of `accelviz.strategies("scc_last")` for the
        layout "last".
    device : {"auto", "cuda", "cpu", "emulator"}
    layout : {"first", "last"}
        Axis of the channels. With "last", X has the shape (images, height, width, in_channels).
    **parameters
        Parameters of the strategy; they require `strategy`.

    Returns
    -------
    array of float32, shape (images, out_channels, height, width)
        It has the layout of X.

    Raises
    ------
    ArgumentError, PartitionError, DeviceUnavailable, KernelError
        As `accelviz.spmm` does.
    """
    checked_type("channels", channels, ChannelMap, "a ChannelMap")
    X, weights = _map("X", X, channels.in_channels, layout), as_operand("weights", weights)
    operands = {"values": channels.values(weights), "X": _flat(X, layout)}
    operation, graph = SCC if layout == "first" else SCC_LAST, channels.graph
    Y = run_operation(operation, graph, operands, strategy, device, None, parameters)["Y"]
    shape = list(X.shape)
    shape[LAYOUTS[layout]] = channels.out_channels
    return Y.reshape(shape)


def scc_gradient(
    X: Any,
    dY: Any,
    channels: ChannelMap,
    weights: Any,
    strategy: str | Strategy | None = None,
    device: str = "auto",
    *,
    layout: str = "first",
    **parameters: Any,
) -> tuple[Any, Any]:
    """Return the gradients of `scc` with respect to X and to the weights.

    Parameters
    ----------
    X : array, shape (images, in_channels, height, width)
    dY : array, shape (images, out_channels, height, width)
        Gradient with respect to the result.
    channels, weights, strategy, device, layout, **parameters
        As in `scc`; `accelviz.strategies("scc_gradient")` lists the strategies. With the layout
        "last", the gradient of X is the operation "scc_last" with the transposed pattern, and that
        of the weights is "scc_last_weights"; both have the strategy `strided_windows`.

    Returns
    -------
    dX : array of float32, of the shape of X
    d_weights : array of float32, shape (out_channels, channels.width)

    Raises
    ------
    ArgumentError, PartitionError, DeviceUnavailable, KernelError
        As `scc` does.
    """
    checked_type("channels", channels, ChannelMap, "a ChannelMap")
    X, weights = _map("X", X, channels.in_channels, layout), as_operand("weights", weights)
    dY = _map("dY", dY, channels.out_channels, layout)
    values, maps = channels.values(weights), {"X": _flat(X, layout), "dY": _flat(dY, layout)}
    settings = strategy, device, None, parameters
    if layout == "first":
        operands = {"values": values, **maps}
        gradients = run_operation(SCC_GRADIENT, channels.graph, operands, *settings)
    else:
        gradients = run_operation(SCC_LAST_WEIGHTS, channels.graph, maps, *settings)
        transpose = channels.graph.transposed()
        operands = {"values": values[transpose.nonzeros], "X": maps["dY"]}
        gradients["dX"] = run_operation(SCC_LAST, transpose.graph, operands, *settings)["Y"]
    return gradients["dX"].reshape(X.shape), channels.weights(gradients["d_values"])


def _map(name: str, array: Any, channels: int, layout: str) -> Any:
    """Return a feature map; ArgumentError for an unknown layout, a wrong shape or no pixels."""
    array, axis = as_operand(name, array), LAYOUTS[checked_choice("layout", layout, LAYOUTS)]
    if len(array.shape) != 4 or array.shape[axis] != channels:
        axes = ["images", "height", "width"]
        axes.insert(axis, str(channels))
        raise ArgumentError(name, f"shape {tuple(array.shape)}", f"({', '.join(axes)})")
    if 0 in array.shape:
        expected = "at least one image, of at least one pixel"
        raise ArgumentError(name, f"shape {tuple(array.shape)}", expected)
    return array


def _flat(array: Any, layout: str) -> Any:
    if layout == "last":
        return array.reshape(-1, array.shape[3])
    return array.reshape(*array.shape[:2], math.prod(array.shape[2:]))
