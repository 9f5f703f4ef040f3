"""Programs of one device: their buffers placed there, their steps ready to launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from accelviz.plans.program import Program

if TYPE_CHECKING:
    from accelviz.devices.base import Device


def prepared_program(
    program: Program, inputs: Mapping[str, Any], device: Device
) -> tuple[Callable[[], None], dict[str, Any]]:
    """Put the buffers of a program of one device on that device.

    Parameters
    ----------
    program : Program
    inputs : mapping of str to array
        The input buffers by name, flat, on the host or on the device.
    device : Device
        One that launches kernels.

    Returns
    -------
    run : callable
        Launches the steps in their order.
    buffers : dict of str to array
        All buffers, flat.
    """
    device.require()
    buffers: dict[str, Any] = {}
    for name, buffer in program.buffers.items():
        if buffer.kind == "input":
            buffers[name] = device.as_device_array(inputs[name])
        else:
            new = device.zeros if buffer.starts_zero else device.empty
            buffers[name] = new(buffer.size, buffer.dtype)
    calls = []
    for step in program.steps:
        assert step.call is not None
        assert step.call.kernel is not None
        known = {**step.arrays, **{name: buffers[key] for name, key in step.buffers.items()}}
        arguments = {name: known[name] for name in step.call.kernel.arguments}
        calls.append((step.call, device.arguments(arguments)))
    zeroed = [buffers[name] for name, buffer in program.buffers.items() if buffer.zeroed]

    def run() -> None:
        for array in zeroed:
            array.fill(0)
        for call, arguments in calls:
            device.launch(call, arguments)

    return run, buffers
