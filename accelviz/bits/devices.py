"""One kernel of kernels/bits on a device: the emulator, or the GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from accelviz.devices import emulate
from accelviz.devices.base import is_device_array
from accelviz.devices.cuda import gpu_state
from accelviz.devices.cuda.queued import queue
from accelviz.devices.cuda.state import import_cupy
from accelviz.devices.cuda.tensor_maps import TENSOR_MAP, tensor_map
from accelviz.errors import ArgumentError
from accelviz.plans import Call

DEVICES = ("cuda", "cpu", "emulator")


def chosen(device: str, *arrays: Any) -> str:
    """Return the device: of "auto", where the arrays lie, or the GPU if there is one.

    Raises
    ------
    ArgumentError
        If there is no such device, or an array lies on the GPU and another device was asked for.
    DeviceUnavailable
        If it is "cuda" and there is none.
    """
    on_gpu = any(is_device_array(array) for array in arrays)
    if device == "auto":
        device = "cuda" if on_gpu or gpu_state().ready else "cpu"
    if device not in DEVICES:
        raise ArgumentError("device", f"there is no {device!r}", f"auto, {', '.join(DEVICES)}")
    if device == "cuda":
        gpu_state().require("device 'cuda'")
    elif on_gpu:
        what = f"an operand lies on the GPU, not where {device!r} reads"
        raise ArgumentError("device", what, "device='cuda', or the operand on_host()")
    return device


def run(call: Call, arguments: Mapping[str, Any], outputs: Sequence[str], device: str) -> list[Any]:
    """Run a kernel; return some of its arguments afterwards, where the device has them.

    Parameters
    ----------
    call : Call
    arguments : mapping of str to array or number
        In the order of the kernel's parameters, integers and floats of Python as 32-bit ones. On
        the GPU, arrays of the host are copied there.
    outputs : sequence of str
    device : {"cuda", "emulator"}
    """
    spec, launch = call.kernel, call.launch
    assert spec is not None
    if device == "emulator":
        given = dict(arguments)
        if 0 not in launch.grid:
            emulate(
                spec.configured_source(),
                *(launch.grid, launch.block),
                kernel=spec.entry,
                shared_bytes=launch.dynamic_shared_bytes,
                **given,
            )
    else:
        given = placed(arguments)
        queue(call, list(given.values()))
    return [given[name] for name in outputs]


def placed(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as a GPU's kernel takes them."""
    cupy = import_cupy()
    return {
        name: np.int32(value)
        if isinstance(value, int | np.integer)
        else np.float32(value)
        if isinstance(value, float | np.floating)
        else value
        if isinstance(value, np.ndarray) and value.dtype.fields  # a structure, by value
        else cupy.asarray(value)
        for name, value in arguments.items()
    }


def map_of_planes(words: Any, box: tuple[int, int], device: str) -> Any:
    """Return a tensor map of a BitTensor's words, empty where nothing is copied by one.

    Parameters
    ----------
    words : array of uint32, shape (planes, lines, words)
    box : tuple of two int
        Planes, and groups of eight lines, that are copied at a time, 32 words of each line.
    device : {"cuda", "emulator"}
    """
    if device != "cuda" or 0 in words.shape:
        return np.zeros((), TENSOR_MAP)
    planes, lines, n = words.shape
    sizes, strides = (n, 8, planes, lines // 8), (4 * n, 4 * n * lines, 32 * n)
    return tensor_map(words, sizes, strides, (32, 8, *box))
