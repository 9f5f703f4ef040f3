"""The list of devices, and the one decision which of them runs something."""

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

#: The devices, the one to prefer first. A further one is appended.
DEVICES: list[Device] = [CudaDevice(), CpuDevice(), EmulatorDevice()]


def find_device(device: str) -> Device:
    """Look a device up by name.

    Raises
    ------
    ArgumentError
        If there is none of that name.
    """
    for known in DEVICES:
        if known.name == device:
            return known
    names = ", ".join(known.name for known in DEVICES)
    raise ArgumentError("device", f"there is no {device!r}", f"auto, {names}")


def owner(array: Any) -> Device | None:
    """Return the device on which an array lies, None for the host."""
    if type(array) is np.ndarray:
        return None
    others = (device for device in DEVICES if device.array_type is not np.ndarray)
    return next((device for device in others if device.owns(array)), None)


def choose(
    device: str = "auto",
    arrays: Iterable[Any] = (),
    plan: Plan | None = None,
    *,
    timed: bool = False,
) -> Device:
    """Choose the device that runs a plan, or anything else, on arrays.

    Parameters
    ----------
    device : str
        A name; "auto" takes the device on which an array lies, or else the first that can be used.
    arrays : iterable of array
        Inputs of the run.
    plan : Plan, optional
        The plan to run.
    timed : bool
        Whether the times have to be those of hardware.

    Raises
    ------
    ArgumentError
        If there is no device of that name.

    Notes
    -----
    Whether the device can be used is for `Device.require` and `Device.prepare` to say.
    """
    if device != "auto":
        return find_device(device)
    for array in arrays:
        if (holder := owner(array)) is not None:
            return holder
    for known in DEVICES:
        if (known.timed or not timed) and known.unavailable_reason(plan) is None:
            return known
    return DEVICES[0]  # which says what is missing when it prepares the plan


def as_operand(name: str, array: Any) -> Any:
    """Return an array of a device as it is, and any other as `operands.on_host` does."""
    return array if owner(array) is not None else on_host(name, array)
