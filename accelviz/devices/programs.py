"""Preparation of a program for one device: allocated buffers and a function that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from accelviz.plans.program import Program, Step

if TYPE_CHECKING:
    from accelviz.devices.base import Device


def prepared_program(
    program: Program, inputs: Mapping[str, Any], device: Device
) -> tuple[Callable[[], dict[str, Any]], dict[str, Any]]:
    """Allocate the buffers of a program for one device and prepare its launches.

    Parameters
    ----------
    program : Program
    inputs : mapping of str to array
        The input buffers by name, as flat arrays on the host or on the device.
    device : Device
        The device; it must launch kernels if a step has a call.

    Returns
    -------
    run : callable
        Launches the steps in the device's order and returns the outputs by name.
    buffers : dict of str to array
        All buffers as flat arrays, except those that only steps with `work` access: such steps
        create them in each run.
    """
    device.require()
    used_by_calls = {name for step in program.steps if step.call for name in step.touched}
    used_by_work = {name for step in program.steps if step.work for name in step.touched}
    buffers: dict[str, Any] = {}
    for name, buffer in program.buffers.items():
        if name in used_by_work - used_by_calls:
            continue
        if buffer.kind == "input":
            buffers[name] = device.as_device_array(inputs[name])
        else:
            allocate = device.zeros if buffer.starts_zero else device.empty
            buffers[name] = allocate(buffer.size, buffer.dtype)
    zeroed = [buffers[name] for name, buffer in program.buffers.items() if buffer.zeroed]
    outputs = [name for name, buffer in program.buffers.items() if buffer.kind == "output"]
    steps = (program.steps[number] for number in device.step_order(program))
    launches = [_step_launch(step, buffers, device) for step in steps]

    def run() -> dict[str, Any]:
        for array in zeroed:
            array.fill(0)
        values = {**buffers}  # a copy, so that arrays created by steps are freed after the run
        for launch in launches:
            launch(values)
        return {name: values[name] for name in outputs}

    return run, buffers


def _step_launch(
    step: Step, buffers: Mapping[str, Any], device: Device
) -> Callable[[dict[str, Any]], None]:
    call = step.call
    if call is None:
        assert step.work is not None
        return step.work
    assert call.kernel is not None
    values = {**step.arrays, **{name: buffers[key] for name, key in step.buffers.items()}}
    arguments = device.arguments(call, {name: values[name] for name in call.kernel.arguments})
    return lambda _: device.launch(call, arguments)
