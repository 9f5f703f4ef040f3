"""The list of devices, and the choice of the device for a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from accelviz.devices.base import Device
from accelviz.devices.cpu import CpuDevice
from accelviz.devices.cuda import CudaDevice
from accelviz.devices.emulator import EmulatorDevice
from accelviz.devices.operands import on_host
from accelviz.errors import ArgumentError
from accelviz.plans import Plan

#: All devices in order of preference. Append further devices.
DEVICES: list[Device] = [CudaDevice(), CpuDevice(), EmulatorDevice()]


def find_device(device: str) -> Device:
    """Look a device up by name.

    Raises
    ------
    ArgumentError
        If there is no device of that name.
    """
    for candidate in DEVICES:
        if candidate.name == device:
            return candidate
    names = ", ".join(candidate.name for candidate in DEVICES)
    raise ArgumentError("device", f"there is no {device!r}", f"auto, {names}")


def owner(array: Any) -> Device | None:
    """Return the device that has an array, or None for an array on the host."""
    if type(array) is np.ndarray:
        return None
    candidates = (device for device in DEVICES if device.array_type is not np.ndarray)
    return next((device for device in candidates if device.owns(array)), None)


def choose(
    device: str = "auto",
    arrays: Iterable[Any] = (),
    plan: Plan | None = None,
    *,
    timed: bool = False,
) -> Device:
    """Choose the device for a run.

    Parameters
    ----------
    device : str
        Name of a device. "auto" is the device that has one of `arrays`, else the first usable one.
    arrays : iterable of array
        Inputs of the run.
    plan : Plan, optional
        The plan to run.
    timed : bool
        Whether "auto" is limited to devices whose times are times of real hardware.

    Raises
    ------
    ArgumentError
        If there is no device of that name.

    Notes
    -----
    The device may be unavailable: `Device.require` and `Device.prepare` check that.
    """
    if device != "auto":
        return find_device(device)
    for array in arrays:
        if (array_owner := owner(array)) is not None:
            return array_owner
    for candidate in DEVICES:
        if (candidate.timed or not timed) and candidate.unavailable_reason(plan) is None:
            return candidate
    return DEVICES[0]  # its `prepare` raises an error with the reason


def as_operand(name: str, array: Any) -> Any:
    """Return an array on a device unchanged, and any other as a NumPy array (`on_host`)."""
    return array if owner(array) is not None else on_host(name, array)
