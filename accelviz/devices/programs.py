"""Programs on a device: launched step by step, replayed, or emulated with a memory a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.base import Device
from accelviz.devices.emulator import on_host
from accelviz.emulator.build import unavailable_reason
from accelviz.emulator.library import compiled
from accelviz.emulator.memory import Memory
from accelviz.errors import DeviceUnavailable, KernelError
from accelviz.plans.program import Program


def emulate_program(
    program: Program,
    inputs: Mapping[str, npt.NDArray[Any]],
    *,
    seed: int = 0,
    timeout: float = 60.0,
) -> dict[str, npt.NDArray[Any]]:
    """Run the steps' kernels in the emulator.

    Parameters
    ----------
    program : Program
    inputs : mapping of str to array
        The input buffers by name, flat.
    seed : int
        Other than 0, the steps come in a random order that their barriers allow, and so do the
        blocks, warps and lanes of each.
    timeout : float
        Seconds that a step may take.

    Returns
    -------
    dict of str to array
        All buffers, flat.

    Raises
    ------
    KernelError
        If a kernel does what is wrong on a GPU: among much else if it writes memory that is not in
        `Step.writes`, such as another device's, or reads memory that no step has written.
    DeviceUnavailable
        If there is no C++ compiler.
    """
    problem = unavailable_reason()
    if problem is not None:
        raise DeviceUnavailable("device 'emulator'", problem, "device='cpu', which needs none")
    buffers, arrays = program.buffers, dict[str, Any](program.host_buffers(inputs))
    for number, step in enumerate(program.steps):
        arrays |= {f"{number}:{name}": array for name, array in step.arrays.items()}
    unwritten = [
        name
        for name, buffer in buffers.items()
        if buffer.kind in ("output", "workspace") and not buffer.zeroed
    ]
    memory = Memory.of(arrays, [*buffers], unwritten)
    for number in program.order(seed):
        step = program.steps[number]
        assert step.call is not None
        spec = step.call.kernel
        assert spec is not None
        if 0 in step.call.launch.grid:
            continue
        names = [step.buffers.get(name, f"{number}:{name}") for name in spec.arguments]
        for name, known in memory.known.items():
            memory.known[name] = replace(known, writable=name in step.writes)
        library = compiled(on_host(spec))
        try:
            library.run_checked(step.call.launch, names, memory, seed=seed, timeout=timeout)
        except KernelError as error:
            raise KernelError(step.label, error.problem, error.expected) from error
        memory.written(sorted(step.writes))
    for name, buffer in buffers.items():
        if buffer.kind == "zero" and np.any(memory.known[name].data):
            raise KernelError(name, "it is left other than zero", "clear what was used")
    return {name: np.array(memory.known[name].data) for name in buffers}


def launches(
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


def run_program(program: Program, inputs: Mapping[str, Any], device: Device) -> dict[str, Any]:
    """Run a program of one device; return all buffers, flat, where the device has them.

    Parameters
    ----------
    program : Program
    inputs : mapping of str to array
        The input buffers by name, flat, on the host or on the device.
    device : Device

    Raises
    ------
    KernelError, DeviceUnavailable
        As `emulate_program` does.
    """
    if device.name == "emulator":
        return emulate_program(program, inputs)
    if device.launches:
        run, buffers = launches(program, inputs, device)
        run()
        return buffers
    held = {name: device.to_host(device.as_device_array(array)) for name, array in inputs.items()}
    return {name: device.to_device(array) for name, array in program.replay(held).items()}
