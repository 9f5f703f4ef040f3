"""Real numbers to packed bits and back, on the host, in the emulator and on the GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from accelviz.bits import devices
from accelviz.bits.tensor import BitTensor, Scale, checked_tensor, layout, pack
from accelviz.devices import Device, find_device
from accelviz.devices.choice import as_operand, owner
from accelviz.errors import ArgumentError
from accelviz.plans import Call, KernelSpec, LaunchConfig

_SIDE, _WARPS = 32, 8


def _checked(X: Any) -> Any:
    """Return a matrix as float32, where it lies.

    Raises
    ------
    ArgumentError
        If it is no matrix of real numbers, or some are NaN.
    """
    device = owner(X) or find_device("cpu")
    found = device.adopt(as_operand("X", X))
    if found.ndim != 2 or found.dtype.kind not in "biuf":
        raise ArgumentError("X", f"{found.ndim}-D of {found.dtype}", "a matrix of real numbers")
    with np.errstate(over="ignore"):  # what is infinite in float32 is out of any range
        found = device.contiguous(found)
    if bool((found != found).any()):
        raise ArgumentError("X", "some are NaN, which has no level", "numbers")
    return found


def _range(X: Any, per_column: bool) -> tuple[Any, Any]:
    """Return the least and the largest value of a matrix, or of each column; 0 and 0 of none.

    `X` is NumPy's or CuPy's.
    """
    if not X.size:
        return np.float32(0), np.float32(0)
    axis = 0 if per_column else None
    least, most = X.min(axis=axis), X.max(axis=axis)
    device = owner(X) or find_device("cpu")
    return device.to_host(least), device.to_host(most)


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
    found = _checked(X)
    layout(found.shape, bits, side)
    least, most = _range(found, per_column)
    scale = Scale.of_range(least if low is None else low, most if high is None else high, bits)
    if scale.per_column and scale.low.size != found.shape[1]:
        right = f"one number, or {found.shape[1]}"
        raise ArgumentError("range", f"of {scale.low.size} columns", right)
    holder = owner(found)
    there = "cpu" if holder is None else holder.name
    chosen = devices.chosen(there if device == "auto" else device, found)
    if chosen.name == "cpu":
        levels, clipped = scale.levels(found, bits)
        made = pack(levels, bits, side, scale=scale)
    else:
        made, clipped = _quantized(found, bits, side, scale, chosen)
    if clipped and not clip:
        what = f"{clipped:,} values are out of the range"
        raise ArgumentError("X", what, "a wider range, or clip=True")
    return replace(made, clipped=clipped)


def _call(entry: str, shape: tuple[int, int], side: str, per_column: bool, names: str) -> Call:
    config = {"along_columns": int(side == "left"), "per_column": int(per_column)}
    grid = -(-shape[0] // _SIDE), -(-shape[1] // _SIDE), 1
    return Call(
        LaunchConfig(grid, _WARPS), KernelSpec("bits/pack.cu", entry, config, tuple(names.split()))
    )


def _quantized(X: Any, bits: int, side: str, scale: Scale, device: Device) -> tuple[BitTensor, int]:
    """Quantize and pack by the kernel."""
    planes, lines, words = layout(X.shape, bits, side)
    out, clipped = device.zeros((planes, lines, words), np.uint32), device.zeros(1, np.int32)
    arguments = {"X": X, "low": scale.low, "step": scale.step, "out": out, "clipped": clipped}
    arguments |= {"rows": X.shape[0], "columns": X.shape[1]}
    arguments |= {"bits": bits, "lines": lines, "words": words}
    call = _call("quantize", X.shape, side, scale.per_column, " ".join(arguments))
    device.launch(call, arguments)
    return BitTensor(out, X.shape, side, scale), int(clipped[0])


def levels(tensor: BitTensor, device: str = "auto") -> Any:
    """Return the whole numbers of a tensor, int32, shape (rows, columns), where its words lie.

    Raises
    ------
    ArgumentError, DeviceUnavailable
        As `product` does.
    """
    checked_tensor("tensor", tensor)
    there = "cuda" if tensor.on_gpu else "cpu"
    chosen = devices.chosen(there if device == "auto" else device, tensor.words)
    if chosen.name == "cpu":
        return tensor.levels()
    out = chosen.empty(tensor.shape, np.int32)
    arguments = {"in": tensor.words, "out": out, "rows": tensor.shape[0]}
    arguments |= {"columns": tensor.shape[1], "bits": tensor.bits}
    arguments |= {"lines": tensor.words.shape[1], "words": tensor.words.shape[2]}
    call = _call("levels", tensor.shape, tensor.side, False, " ".join(arguments))
    chosen.launch(call, arguments)
    return out
