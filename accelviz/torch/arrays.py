"""Devices and arrays of PyTorch's tensors, on PyTorch's current stream, without a copy."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from accelviz.devices import Device, find_device


@contextlib.contextmanager
def device_of(tensor: Any) -> Iterator[Device]:
    """Yield the device that has a tensor; launches in the `with` block are on PyTorch's stream."""
    device = find_device(tensor.device.type)
    if not tensor.is_cuda:
        yield device
        return
    with torch.cuda.device(tensor.device), device.on_stream(torch.cuda.current_stream()):
        yield device


def as_array(tensor: Any, device: Device) -> Any:
    """Return a tensor's memory as an array of the device; int32 as int32."""
    return device.xp.from_dlpack(tensor.detach())


def as_tensor(array: Any) -> Any:
    """Return an array's memory as a tensor; uint32 becomes int32, which PyTorch computes with."""
    return torch.from_dlpack(array.view(np.int32) if array.dtype == np.uint32 else array)


def stream_of(address: int, device: Any = None) -> torch.cuda.Stream:
    """Return the stream at an address, at 0 the default one: PyTorch would take one of a pool."""
    if address:
        return torch.cuda.ExternalStream(address, device)
    return torch.cuda.default_stream(device)
