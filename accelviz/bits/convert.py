"""Real numbers to packed bits and back, on the host, in the emulator and on the GPU."""

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
    """Return the device that converts an array: of "auto", where it lies."""
    holder = owner(array) or find_device("cpu")
    wanted = holder if device == "auto" else choose(device)
    wanted.require()
    if owner(array) not in (None, wanted):
        problem = f"an operand lies on {holder.name!r}, not where {wanted.name!r} reads"
        raise ArgumentError("device", problem, f"device={holder.name!r}, or the operand on_host()")
    return wanted


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
        Real numbers, rounded to float32. A CuPy array stays on the GPU.
    bits : int
        1 to 16.
    side : {"left", "right"}
        Of which operand of a product it is to be.
    low, high : float or array of shape (columns,), optional
        The range that is cut into 2^bits steps; the least and the largest value if not given.
    per_column : bool
        Whether each column has a range of its own. A product sums over the columns of its left
        operand, which therefore cannot have one.
    clip : bool
        Values out of the range go to its ends and are counted in `clipped`; without, they are
        refused.
    device : {"auto", "cuda", "cpu", "emulator"}
        "auto" is where X lies.

    Returns
    -------
    BitTensor
        With its `scale`.

    Raises
    ------
    ArgumentError
        If `bits` or `side` is none, X is no matrix or has a NaN, the range is none, or a value is
        out of it and `clip` is False.

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
    holder = owner(X) or find_device("cpu")
    with np.errstate(over="ignore"):  # what is infinite in float32 is out of any range
        X = holder.contiguous(holder.adopt(X))
    if bool((X != X).any()):
        raise ArgumentError("X", "some are NaN, which has no level", "numbers")
    axis = 0 if per_column else None
    if low is None:
        low = holder.to_host(X.min(axis=axis)) if X.size else np.float32(0)
    if high is None:
        high = holder.to_host(X.max(axis=axis)) if X.size else np.float32(0)
    scale = Scale.of_range(low, high, bits)
    if scale.per_column and scale.low.size != X.shape[1]:
        expected = f"one number, or {X.shape[1]}"
        raise ArgumentError("range", f"of {scale.low.size} columns", expected)
    if chosen.launches:
        tensor, clipped = _quantized(X, bits, side, scale, chosen)
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
    """Run a kernel of pack.cu on 32 x 32 numbers a block."""
    bits, lines, words = tensor.words.shape
    rows, columns = tensor.shape
    sizes = {"rows": rows, "columns": columns, "bits": bits, "lines": lines, "words": words}
    config = {"along_columns": int(tensor.side == "left"), "per_column": int(per_column)}
    kernel = KernelSpec("bits/pack.cu", entry, config, (*arguments, *sizes))
    grid = -(-rows // _SIDE), -(-columns // _SIDE), 1
    device.launch(Call(LaunchConfig(grid, _WARPS), kernel), arguments | sizes)


def _quantized(X: Any, bits: int, side: str, scale: Scale, device: Device) -> tuple[BitTensor, int]:
    """Quantize and pack by the kernel."""
    words, clipped = device.zeros(layout(X.shape, bits, side), np.uint32), device.zeros(1, np.int32)
    tensor = BitTensor(words, X.shape, side, scale)
    arguments = {"X": X, "low": scale.low, "step": scale.step, "out": words, "clipped": clipped}
    _launch(device, "quantize", tensor, scale.per_column, arguments)
    return tensor, int(clipped[0])


def levels(tensor: BitTensor, device: str = "auto") -> Any:
    """Return the whole numbers of a tensor, int32, shape (rows, columns), where its words lie.

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
