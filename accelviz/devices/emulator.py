"""The executor `emulator`: a plan's CUDA kernel, run thread by thread on the host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.devices.base import Device
from accelviz.devices.operands import Arrays
from accelviz.devices.ready_plan import ReadyPlan, kernels_of, no_kernel
from accelviz.emulator import tracing
from accelviz.emulator.build import Kernel, find_compiler, unavailable_reason
from accelviz.emulator.call import KernelCall
from accelviz.emulator.library import RECORD, Launch, compiled
from accelviz.emulator.memory import Known, Memory
from accelviz.errors import ArgumentError, KernelError, checked_integer
from accelviz.plans import Call, KernelSpec, Plan
from accelviz.plans.program import Program
from accelviz.plans.storage import stored

#: Most elements of a checked result; the record of an element takes 80 bytes.
MAX_ELEMENTS = 1 << 25
#: Blocks of one traced launch, so that their records fit into memory.
MOST_BLOCKS = 64


class EmulatorDevice(Device):
    """Runs kernels compiled for the host, and finds their mistakes.

    Parameters
    ----------
    seed : int
        0 runs blocks, warps and lanes in order; another number in a random order, in which a
        mistake that hides in one order may show.
    checked : bool
        Check every load and store (bounds, races, unwritten memory). Without, the kernel runs some
        times as fast, and a wrong index may pass.
    timeout : float
        Seconds of the processor's time that a launch may take.
    """

    name = "emulator"
    alternative = "device='cpu', which needs none"

    def __init__(self, *, seed: int = 0, checked: bool = True, timeout: float = 60.0) -> None:
        self.seed = seed
        self.checked = checked
        self.timeout = timeout

    def unavailable_reason(self, plan: Plan | None = None) -> str | None:
        """Return why there is no usable compiler, or no kernel to emulate, or None."""
        return (plan and no_kernel(plan)) or unavailable_reason()

    def hardware(self) -> dict[str, str]:
        """Name the compiler that stands in for a GPU."""
        compiler = find_compiler()
        version = f"emulator, {compiler.version}" if compiler else "emulator"
        return super().hardware() | {"hardware": version}

    def prepare(self, plan: Plan) -> EmulatorPlan:
        """Compile the plan's kernels for the host; see `Device`."""
        self.require()
        return EmulatorPlan(plan, self)

    def launch(self, call: Call, arguments: Mapping[str, Any]) -> None:
        """Run a kernel of no plan, checked; see `Device`."""
        spec, config = call.kernel, call.launch
        assert spec is not None
        if 0 not in config.grid:
            launch = Launch(config.grid, config.block, config.dynamic_shared_bytes)
            kernel_call = KernelCall.of(on_host(spec), launch, (), arguments)
            kernel_call.run(seed=self.seed, timeout=self.timeout)

    def step_order(self, program: Program) -> list[int]:
        """Return an order that the steps' barriers allow: a random one for seeds other than 0."""
        return program.order(self.seed)

    def run_program(self, program: Program, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run the steps' kernels, checked, those of several devices with a memory each.

        With a seed other than 0 the steps come in a random order that their barriers allow.
        Buffers are NumPy arrays; see `Device`.

        Raises
        ------
        KernelError
            If a kernel does what is wrong on a GPU: among much else if it writes memory that is not
            in `Step.writes`, such as another device's, or reads memory that no step has written.
        DeviceUnavailable
            If there is no C++ compiler.
        """
        self.require()
        buffers, arrays = program.buffers, dict[str, Any](program.host_buffers(inputs))
        for number, step in enumerate(program.steps):
            arrays |= {f"{number}:{name}": array for name, array in step.arrays.items()}
        unwritten = [
            name
            for name, buffer in buffers.items()
            if buffer.kind in ("output", "workspace") and not buffer.zeroed
        ]
        memory = Memory.of(arrays, [*buffers], unwritten)
        for number in self.step_order(program):
            step = program.steps[number]
            assert step.call is not None
            spec, launch = step.call.kernel, step.call.launch
            assert spec is not None
            if 0 in launch.grid:
                continue
            names = [step.buffers.get(name, f"{number}:{name}") for name in spec.arguments]
            for name, known in memory.known.items():
                memory.known[name] = replace(known, writable=name in step.writes)
            run = compiled(on_host(spec)).run_checked
            try:
                run(launch, names, memory, seed=self.seed, timeout=self.timeout)
            except KernelError as error:
                raise KernelError(step.label, error.problem, error.expected) from error
            memory.written(sorted(step.writes))
        for name, buffer in buffers.items():
            if buffer.kind == "zero" and np.any(memory.known[name].data):
                raise KernelError(name, "it is left other than zero", "clear what was used")
        return {name: np.array(memory.known[name].data) for name in buffers}


def on_host(spec: KernelSpec) -> Kernel:
    """Return a kernel as the emulator compiles it."""
    about = spec.file, spec.configured_source(), spec.entry, spec.arguments, dict(spec.defines)
    return Kernel(*about, has_twin=bool(spec.code))


class EmulatorPlan(ReadyPlan):
    """A plan with its kernels compiled for the host."""

    device: EmulatorDevice

    def _compile(self, plan: Plan) -> None:
        self.calls = tuple(call for _, call in kernels_of(plan, "emulator"))
        self.specs = tuple(call.kernel for call in self.calls if call.kernel)  # each has one
        self.names: list[tuple[str, ...]] = []
        self._arguments: dict[str, Any] = {}
        for number, part in enumerate(plan.parts):
            # Arrays of further parts may have the same names.
            names = {name: f"{number}:{name}" if number else name for name in part.arrays}
            self._arguments |= {names[name]: array for name, array in part.arrays.items()}
            kernels = [call.kernel for call in part.calls if call.kernel]
            self.names += [tuple(names.get(a, a) for a in spec.arguments) for spec in kernels]
        checked = self.device.checked
        self.libraries = tuple(compiled(on_host(spec), checked=checked) for spec in self.specs)
        self._zeroed = plan.workspaces("zeroed_workspace")
        self._workspace = plan.workspaces("workspace")

    def inputs(self, placed: Arrays) -> Arrays:
        """Return placed inputs in the kernels' order; see `ReadyPlan`."""
        return self.operands.ordered(placed)

    def launch(self, inputs: Arrays, outputs: Arrays) -> None:
        """Run the kernels on outputs that hold what they should find there; see `ReadyPlan`.

        A KernelError names the source line, block, thread and address of what is wrong on a GPU.
        """
        memory = self.memory(inputs, outputs)
        self.run_calls(len(self.calls), memory)
        for name in self._zeroed:
            if np.any(memory.known[name].data):
                problem = f"it leaves {name!r} of the zeroed workspace other than zero"
                fix = "clear what was used before the kernel ends"
                raise KernelError(self.specs[-1].entry, problem, fix)
        for name, array in outputs.items():
            array[...] = memory.known[name].data

    def memory(self, inputs: Arrays, outputs: Arrays) -> Memory:
        """Copy arrays, operands and workspaces to memory of the emulator, shared by all calls."""
        held, operands = dict(self._arguments), self.operands
        for operand in operands.operation.inputs:
            storage = operands.storage if operand.gathered else "float32"
            held[operand.name] = stored(inputs[operand.name], storage)
        for name, array in outputs.items():
            if self.device.checked and array.size > MAX_ELEMENTS:
                most = f"at most {MAX_ELEMENTS:,}, as the emulator keeps a record of each"
                expected = f"{most}; a smaller graph, or device='cpu'"
                raise ArgumentError("graph", f"a result of {array.size:,} elements", expected)
            held[name] = np.zeros_like(array) if name in operands.zero_outputs else array
        for name, (size, dtype) in {**self._zeroed, **self._workspace}.items():
            held[name] = np.zeros(size, dtype)
        unwritten = [name for name in outputs if name not in operands.zero_outputs]
        writable = [*outputs, *self._zeroed, *self._workspace]
        return Memory.of(held, writable, [*unwritten, *self._workspace])

    def run_calls(self, count: int, memory: Memory) -> None:
        """Run the first calls of the plan; a call may read what those before have written."""
        for number in range(count):
            self.run_call(number, memory)
            memory.written(self.names[number])

    def run_call(self, number: int, memory: Memory, **options: Any) -> tuple[list[Known], Any]:
        """Run the kernel of a call, or some of its blocks; see `Library.run`."""
        names, launch = self.names[number], self.calls[number].launch
        if 0 in launch.grid:
            return [], None
        for name in ("seed", "checked", "timeout"):
            options[name] = getattr(self.device, name)
        return self.libraries[number].run_checked(launch, names, memory, **options)


def trace(
    plan: Plan,
    *dense: npt.ArrayLike,
    block: int | Iterable[int] = 0,
    values: Any = None,
    into: dict[str, npt.NDArray[Any]] | None = None,
    waits: list[dict[str, Any]] | None = None,
) -> pd.DataFrame:
    """Run blocks of a plan's kernel in the emulator and record every access of every lane.

    Parameters
    ----------
    plan : Plan
        With a kernel.
    *dense : array
        The dense inputs of the plan's operation, in order: X for an SpMM, U and V for an SDDMM.
    block : int or several
        The blocks to trace, counted over the whole grid with x fastest: block b of the workload is
        block b, and the same for the next tile of columns is block b + `plan.launch.n_blocks`.
    values : array, shape (nnz,), optional
        Weights in place of the graph's own.
    into : dict, optional
        Receives the outputs as these blocks left them, by name.
    waits : list, optional
        Receives what warps waited for at barriers, as dicts of `block`, `warp`, `file`, `line`,
        `arrived` and `left`: the number of the step that came next when the warp's last lane was
        there, and when the block went on.

    Returns
    -------
    DataFrame
        A row for each access of each lane: `block`, `warp` (in its block), `lane`, `step`, `file`,
        `line`, `kind` ("load", "store" or "atomic"), `space` ("global" or "shared"), `array`,
        `index` (element of the array), `bytes` and `offset` (bytes from the array's beginning).
        Rows of equal block and step are one request: the same instruction of one warp, carried out
        by the lanes that are there. Steps count up in the order in which requests are made, with
        the warps of a block taking turns.

    Raises
    ------
    ArgumentError
        If there is no such block, or an input does not fit.
    KernelError, DeviceUnavailable
        As `spmm` on the device "emulator" does.

    Notes
    -----
    Of a plan of several calls, the main one is traced, after those before it. The blocks come in
    the order given, and find in scratch buffers what those before them left.
    Lanes of a warp go through the kernel side by side. Where they part, those at the earliest
    instruction go first and the others wait, so that they meet again where the paths do.
    """
    if not isinstance(plan, Plan):
        raise ArgumentError("plan", f"got a {type(plan).__name__}", "what accelviz.plan returns")
    kernels_of(plan, "emulator")
    blocks: list[Any] = list(block) if isinstance(block, Iterable) else [block]
    total = int(np.prod(plan.launch.grid))
    if not total:
        raise ArgumentError("plan", "it launches no block", "a plan of a graph with rows")
    for number in blocks:
        checked_integer("block", number, total - 1, least=0, error=ArgumentError)
    ready = EmulatorDevice().prepare(plan)
    operands = plan.operation.named(*dense, values=values)
    memory = ready.memory(ready.inputs(ready.placed(operands)), ready.outputs())
    main = plan.layout.main
    ready.run_calls(main, memory)
    library, parts = ready.libraries[main], []
    for first, count in _runs(blocks):
        options = {"first_block": first, "n_blocks": count, "traced": True}
        known, answer = ready.run_call(main, memory, **options)
        records = library.trace(memory, answer)
        parts.append(tracing.table(records, library.path, known))
        if waits is not None:
            waits += tracing.waits(records, library.path)
    if into is not None:
        for output in plan.operation.outputs:
            into[output.name] = np.asarray(memory.known[output.name].data)
    if not parts:
        return tracing.table(np.empty(0, dtype=RECORD), library.path, [])
    return pd.concat(parts, ignore_index=True)


def _runs(blocks: Sequence[int]) -> list[tuple[int, int]]:
    """Return first numbers and counts of blocks that follow each other, for a launch together."""
    runs: list[tuple[int, int]] = []
    for block in map(int, blocks):
        first, count = runs[-1] if runs else (0, MOST_BLOCKS)
        if block == first + count and count < MOST_BLOCKS:
            runs[-1] = first, count + 1
        else:
            runs.append((block, 1))
    return runs
