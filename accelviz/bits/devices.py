"""Devices of bit products: the emulator or the GPU for a kernel, the CPU for exact sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.devices import Device, choose
from accelviz.devices.choice import owner
from accelviz.devices.cuda.tensor_maps import TENSOR_MAP, tensor_map
from accelviz.errors import ArgumentError


def chosen(device: str, *arrays: Any) -> Device:
    """Return the device: of "auto", where the arrays lie, or the GPU if there is one.

    Raises
    ------
    ArgumentError
        If there is no such device, or an array lies on the GPU and another device was asked for.
    DeviceUnavailable
        If it cannot be used.
    """
    wanted = choose(device, arrays)
    wanted.require()
    if any(owner(array) not in (None, wanted) for array in arrays):
        problem = f"an operand lies on the GPU, not where {wanted.name!r} reads"
        raise ArgumentError("device", problem, "device='cuda', or the operand on_host()")
    return wanted


def map_of_planes(words: Any, box: tuple[int, int], device: Device) -> Any:
    """Return a tensor map of a BitTensor's words, empty where nothing is copied by one.

    Parameters
    ----------
    words : array of uint32, shape (planes, lines, words)
    box : tuple of two int
        Planes, and groups of eight lines, that are copied at a time, 32 words of each line.
    device : Device
        Only "cuda" has them.
    """
    if device.name != "cuda" or 0 in words.shape:
        return np.zeros((), TENSOR_MAP)
    planes, lines, n = words.shape
    sizes, strides = (n, 8, planes, lines // 8), (4 * n, 4 * n * lines, 32 * n)
    return tensor_map(words, sizes, strides, (32, 8, *box))
