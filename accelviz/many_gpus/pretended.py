"""Devices without a GPU: pretended ones of the emulator, and the CPU's replay of the partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.emulator import on_host
from accelviz.emulator.build import unavailable_reason
from accelviz.emulator.library import compiled
from accelviz.emulator.memory import Memory
from accelviz.errors import DeviceUnavailable, KernelError
from accelviz.many_gpus.steps import Program

Host = Mapping[str, npt.NDArray[np.float32]]


def replayed(program: Program, inputs: Host) -> dict[str, npt.NDArray[Any]]:
    """Do on the CPU what the steps' partitions say; return all buffers, flat."""
    buffers = _buffers(program, inputs)
    for step in program.steps:
        step.replay(buffers)
    return buffers


def emulated(
    program: Program, inputs: Host, *, seed: int = 0, timeout: float = 60.0
) -> dict[str, npt.NDArray[Any]]:
    """Run the steps' kernels in the emulator, each pretended GPU with memory of its own.

    Parameters
    ----------
    program : Program
    inputs : mapping of str to array of float32
        Of `Program.inputs`.
    seed : int
        Other than 0, the devices' steps come in a random order that their barriers allow, and so do
        the blocks, warps and lanes of each.
    timeout : float
        Seconds that a step may take.

    Returns
    -------
    dict of str to array
        All buffers, flat.

    Raises
    ------
    KernelError
        If a kernel does what is wrong on a GPU: among much else if it writes to memory that the
        step does not say it writes, such as another device's, or reads what no step has written.
    DeviceUnavailable
        If there is no C++ compiler.
    """
    problem = unavailable_reason()
    if problem is not None:
        raise DeviceUnavailable("device 'emulator'", problem, "device='cpu', which needs none")
    found: dict[str, Any] = dict(_buffers(program, inputs))
    for number, step in enumerate(program.steps):
        found |= {f"{number}:{name}": array for name, array in step.arrays.items()}
    kinds = program.buffers
    unwritten = [name for name, each in kinds.items() if each.kind in ("output", "workspace")]
    unwritten = [name for name in unwritten if not kinds[name].cleared]
    memory = Memory.of(found, [*kinds], unwritten)
    for number in program.order(seed):
        step = program.steps[number]
        spec = step.call.kernel
        assert spec is not None
        if 0 in step.call.launch.grid:
            continue
        names = [step.buffers.get(name, f"{number}:{name}") for name in spec.arguments]
        # Devices' memory lies apart, and only what the step says it writes may be written.
        for name in memory.known:
            known = memory.known[name]
            memory.known[name] = replace(known, writable=name in step.writes)
        library = compiled(on_host(spec))
        try:
            library.run_checked(step.call.launch, names, memory, seed=seed, timeout=timeout)
        except KernelError as error:
            raise KernelError(step.label, error.problem, error.expected) from error
        memory.written(sorted(step.writes))
    for name, each in kinds.items():
        if each.kind == "zero" and np.any(memory.known[name].data):
            raise KernelError(name, "it is left other than zero", "clear what was used")
    return {name: np.array(memory.known[name].data) for name in kinds}


def _buffers(program: Program, inputs: Host) -> dict[str, npt.NDArray[Any]]:
    found = {}
    for name, each in program.buffers.items():
        if each.kind == "input":
            found[name] = inputs[name]
            continue
        zero = each.cleared or each.kind == "zero"
        # What nobody has written is not to be read: here it would show.
        fill = 0 if zero else np.nan if each.dtype == "float32" else np.iinfo(each.dtype).max
        found[name] = np.full(each.size, fill, each.dtype)
    return found
