"""Programs of one device: their buffers placed there, their steps ready to launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from accelviz.plans.program import Program, Step

if TYPE_CHECKING:
    from accelviz.devices.base import Device


def prepared_program(
    program: Program, inputs: Mapping[str, Any], device: Device
) -> tuple[Callable[[], dict[str, Any]], dict[str, Any]]:
    """Put the buffers of a program of one device on that device.

    Parameters
    ----------
    program : Program
    inputs : mapping of str to array
        The input buffers by name, flat, on the host or on the device.
    device : Device
        One that launches kernels, where a step has a call.

    Returns
    -------
    run : callable
        Launches the steps in the device's order; returns the outputs by name.
    buffers : dict of str to array
        All buffers, flat, but those that steps with `work` make in each run.
    """
    device.require()
    of_calls = {name for step in program.steps if step.call for name in step.touched}
    of_work = {name for step in program.steps if step.work for name in step.touched}
    buffers: dict[str, Any] = {}
    for name, buffer in program.buffers.items():
        if name in of_work - of_calls:
            continue
        if buffer.kind == "input":
            buffers[name] = device.as_device_array(inputs[name])
        else:
            new = device.zeros if buffer.starts_zero else device.empty
            buffers[name] = new(buffer.size, buffer.dtype)
    zeroed = [buffers[name] for name, buffer in program.buffers.items() if buffer.zeroed]
    outputs = [name for name, buffer in program.buffers.items() if buffer.kind == "output"]
    steps = (program.steps[number] for number in device.step_order(program))
    works = [_work(step, buffers, device) for step in steps]

    def run() -> dict[str, Any]:
        for array in zeroed:
            array.fill(0)
        values = {**buffers}  # of this run alone: arrays that steps make are freed at its end
        for work in works:
            work(values)
        return {name: values[name] for name in outputs}

    return run, buffers


def _work(
    step: Step, buffers: Mapping[str, Any], device: Device
) -> Callable[[dict[str, Any]], None]:
    """Return a function that launches a step."""
    call = step.call
    if call is None:
        assert step.work is not None
        return step.work
    assert call.kernel is not None
    known = {**step.arrays, **{name: buffers[key] for name, key in step.buffers.items()}}
    arguments = device.arguments({name: known[name] for name in call.kernel.arguments})
    return lambda values: device.launch(call, arguments)
