"""Quantization of real numbers to packed bits, and unpacking, on the host or a device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from accelviz.bits.tensor import BitTensor, Scale, checked_tensor, pack
from accelviz.devices import Device, choose, find_device
from accelviz.devices.choice import as_operand, owner
from accelviz.errors import ArgumentError
from accelviz.plans import Call, KernelSpec, LaunchConfig
from accelviz.strategies.bits.packing import layout

_SIDE, _WARPS = 32, 8


def _chosen(device: str, array: Any) -> Device:
    """Return the device that converts an array; for "auto" the one that has the array."""
    array_device = owner(array) or find_device("cpu")
    chosen = array_device if device == "auto" else choose(device)
    chosen.require()
    if owner(array) not in (None, chosen):
        name = array_device.name
        problem = f"an operand lies on {name!r}, not where {chosen.name!r} reads"
        raise ArgumentError("device", problem, f"device={name!r}, or the operand on_host()")
    return chosen


def quantize(
    X: Any,
    bits: int,
    side: str,
    *,
    low: Any = None,
    high: Any = None,
    per_column: bool = False,
    clip: bool = True,
    device: str = "auto",
) -> BitTensor:
    """Quantize a matrix by Equation 2.2 and pack it; `Tensor.to_bit` of QGTC.

    Parameters
    ----------
    X : array, shape (rows, columns)
        Real numbers, which are rounded to float32. A CuPy array stays on the GPU.
    bits : int
        Bits of a level, 1 to 16.
    side : {"left", "right"}
        Operand of a product for which the result has the layout.
    low, high : float or array of shape (columns,), optional
        The range that is divided into 2^bits steps; by default the least and the largest value.
    per_column : bool
        Whether each column has a range of its own. This is not possible for the left operand of a
        product with `finish`, as the product sums over its columns.
    clip : bool
        Whether values out of range are clipped and counted in `clipped`. Otherwise they raise an
        error.
    device : {"auto", "cuda", "cpu", "emulator"}
        "auto" is the device that has X.

    Returns
    -------
    BitTensor
        The levels, with their `scale`.

    Raises
    ------
    ArgumentError
        If `bits` or `side` is out of range, X is not a matrix of real numbers or has a NaN, the
        range is invalid, or a value is out of range and `clip` is False.

    Examples
    --------
    >>> X = quantize([[0.0, 0.3], [0.6, 1.0]], 2, "left")
    >>> X.levels()
    array([[0, 1],
           [2, 3]], dtype=int32)
    >>> X.values()
    array([[0.125, 0.375],
           [0.625, 0.875]], dtype=float32)
    """
    X = as_operand("X", X)
    chosen = _chosen(device, X)
    if len(X.shape) != 2 or X.dtype.kind not in "biuf":
        raise ArgumentError("X", f"{len(X.shape)}-D of {X.dtype}", "a matrix of real numbers")
    layout(X.shape, bits, side)
    if owner(X) is not None and not chosen.launches:
        X = chosen.to_host(X)
    array_device = owner(X) or find_device("cpu")
    with np.errstate(over="ignore"):  # values that float32 makes infinite are out of range
        X = array_device.contiguous(array_device.adopt(X))
    if bool((X != X).any()):
        raise ArgumentError("X", "some are NaN, which has no level", "numbers")
    axis = 0 if per_column else None
    if low is None:
        low = array_device.to_host(X.min(axis=axis)) if X.size else np.float32(0)
    if high is None:
        high = array_device.to_host(X.max(axis=axis)) if X.size else np.float32(0)
    scale = Scale.of_range(low, high, bits)
    if scale.per_column and scale.low.size != X.shape[1]:
        expected = f"one number, or {X.shape[1]}"
        raise ArgumentError("range", f"of {scale.low.size} columns", expected)
    if chosen.launches:
        tensor, clipped = _quantize_on_device(X, bits, side, scale, chosen)
    else:
        numbers, clipped = scale.levels(X, bits)
        tensor = pack(numbers, bits, side, scale=scale)
        tensor = replace(tensor, words=chosen.to_device(tensor.words))
    if clipped and not clip:
        problem = f"{clipped:,} values are out of the range"
        raise ArgumentError("X", problem, "a wider range, or clip=True")
    return replace(tensor, clipped=clipped)


def _launch(
    device: Device, entry: str, tensor: BitTensor, per_column: bool, arguments: dict[str, Any]
) -> None:
    """Launch a kernel of pack.cu with a block per 32 x 32 numbers."""
    bits, lines, words = tensor.words.shape
    rows, columns = tensor.shape
    sizes = {"rows": rows, "columns": columns, "bits": bits, "lines": lines, "words": words}
    config = {"along_columns": int(tensor.side == "left"), "per_column": int(per_column)}
    kernel = KernelSpec("bits/pack.cu", entry, config, (*arguments, *sizes))
    grid = -(-rows // _SIDE), -(-columns // _SIDE), 1
    device.launch(Call(LaunchConfig(grid, _WARPS), kernel), arguments | sizes)


def _quantize_on_device(
    X: Any, bits: int, side: str, scale: Scale, device: Device
) -> tuple[BitTensor, int]:
    words, clipped = device.zeros(layout(X.shape, bits, side), np.uint32), device.zeros(1, np.int32)
    tensor = BitTensor(words, X.shape, side, scale)
    arguments = {"X": X, "low": scale.low, "step": scale.step, "out": words, "clipped": clipped}
    _launch(device, "quantize", tensor, scale.per_column, arguments)
    return tensor, int(clipped[0])


def levels(tensor: BitTensor, device: str = "auto") -> Any:
    """Return the numbers of a tensor, int32, shape (rows, columns), on the device that has it.

    Raises
    ------
    ArgumentError, DeviceUnavailable
        As `quantize` does.
    """
    checked_tensor("tensor", tensor)
    chosen = _chosen(device, tensor.words)
    if not chosen.launches:
        return chosen.to_device(tensor.levels())
    out = chosen.empty(tensor.shape, np.int32)
    _launch(chosen, "levels", tensor, False, {"in": tensor.words, "out": out})
    return out
