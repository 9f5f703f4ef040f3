"""The device "emulator": runs the CUDA kernels of plans on the host, thread by thread, checked."""

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

#: Largest number of elements of a checked output; the checks store 80 bytes per element.
MAX_ELEMENTS = 1 << 25
#: Largest number of blocks of one traced launch, to bound the memory of the trace.
MAX_TRACED_BLOCKS = 64


class EmulatorDevice(Device):
    """Runs kernels compiled for the host, and reports their mistakes.

    Parameters
    ----------
    seed : int
        0 runs blocks, warps and lanes in order. Any other seed runs them in a random order, which
        may reveal a mistake that one order hides.
    checked : bool
        Check every load and store (bounds, races, unwritten memory). Unchecked kernels run several
        times faster, but may read or write out of bounds unnoticed.
    timeout : float
        Limit on the processor time of a launch, in seconds.
    """

    name = "emulator"
    alternative = "device='cpu', which needs none"
    every_load = True  # see `Kernel`

    def __init__(self, *, seed: int = 0, checked: bool = True, timeout: float = 60.0) -> None:
        self.seed = seed
        self.checked = checked
        self.timeout = timeout

    def unavailable_reason(self, plan: Plan | None = None) -> str | None:
        """Return why there is no usable compiler, or no kernel to emulate, or None."""
        return (plan and no_kernel(plan)) or unavailable_reason()

    def hardware(self) -> dict[str, str]:
        """Return the C++ compiler's version as `hardware`."""
        compiler = find_compiler()
        version = f"emulator, {compiler.version}" if compiler else "emulator"
        return super().hardware() | {"hardware": version}

    def prepare(self, plan: Plan) -> EmulatorPlan:
        """Compile the plan's kernels for the host; see `Device`."""
        self.require()
        return EmulatorPlan(plan, self)

    def launch(self, call: Call, arguments: Mapping[str, Any]) -> None:
        """Run a kernel without a plan, checked; see `Device`."""
        spec, config = call.kernel, call.launch
        assert spec is not None
        if 0 not in config.grid:
            launch = Launch(config.grid, config.block, config.dynamic_shared_bytes)
            kernel_call = KernelCall.of(as_kernel(spec), launch, (), arguments)
            kernel_call.run(seed=self.seed, timeout=self.timeout)

    def step_order(self, program: Program) -> list[int]:
        """Return a valid order of the steps; for a seed other than 0 a random one."""
        return program.order(self.seed)

    def run_program(self, program: Program, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run the kernels of a program for one or several devices, checked; see `Device`.

        The steps run in the order of `step_order`. Buffers are NumPy arrays.

        Raises
        ------
        KernelError
            If a kernel has a mistake; also if it writes a buffer that is not in `Step.writes`, such
            as a buffer of another device, or reads memory that no step has written.
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
            run = compiled(as_kernel(spec)).run_checked
            try:
                run(launch, names, memory, seed=self.seed, timeout=self.timeout)
            except KernelError as error:
                raise KernelError(step.label, error.problem, error.expected) from error
            memory.written(sorted(step.writes))
        for name, buffer in buffers.items():
            if buffer.kind == "zero" and np.any(memory.known[name].data):
                raise KernelError(name, "it is left other than zero", "clear what was used")
        return {name: np.array(memory.known[name].data) for name in buffers}


def as_kernel(spec: KernelSpec) -> Kernel:
    """Convert a KernelSpec to the emulator's Kernel; the package's own are trusted."""
    fields = spec.file, spec.configured_source(), spec.entry, spec.arguments, dict(spec.defines)
    return Kernel(*fields, tracks_undefined=bool(spec.code))


class _TracingDevice(EmulatorDevice):
    """Runs kernels whose loads are those of a GPU's compiler."""

    every_load = False


class EmulatorPlan(ReadyPlan):
    """A plan with its kernels compiled for the host."""

    device: EmulatorDevice

    def _compile(self, plan: Plan) -> None:
        self.calls = tuple(call for _, call in kernels_of(plan, "emulator"))
        self.specs = tuple(call.kernel for call in self.calls if call.kernel)  # all have a kernel
        self.names: list[tuple[str, ...]] = []  # of the arguments of each call
        self._arrays: dict[str, Any] = {}
        for number, part in enumerate(plan.parts):
            # Names of arrays of further parts get a prefix, since they may repeat.
            names = {name: f"{number}:{name}" if number else name for name in part.arrays}
            self._arrays |= {names[name]: array for name, array in part.arrays.items()}
            kernels = [call.kernel for call in part.calls if call.kernel]
            self.names += [tuple(names.get(a, a) for a in spec.arguments) for spec in kernels]
        checked, every_load = self.device.checked, self.device.every_load
        sources = (replace(as_kernel(spec), every_load=every_load) for spec in self.specs)
        self.libraries = tuple(compiled(source, checked=checked) for source in sources)
        self._zeroed = plan.workspaces("zeroed_workspace")
        self._workspace = plan.workspaces("workspace")

    def inputs(self, placed: Arrays) -> Arrays:
        """Return placed inputs in the kernels' order of nonzeros; see `ReadyPlan`."""
        return self.operands.ordered(placed)

    def launch(self, inputs: Arrays, outputs: Arrays) -> None:
        """Run all kernels of the plan; see `ReadyPlan`.

        A KernelError has the source line, block, thread and address of a mistake.
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
        """Copy arrays, operands and workspaces to emulator memory that all calls share."""
        arguments, operands = dict(self._arrays), self.operands
        for operand in operands.operation.inputs:
            storage = operands.storage if operand.gathered else "float32"
            arguments[operand.name] = stored(inputs[operand.name], storage)
        for name, array in outputs.items():
            if self.device.checked and array.size > MAX_ELEMENTS:
                expected = f"at most {MAX_ELEMENTS:,}, as the emulator keeps a record of each"
                expected += "; a smaller graph, or device='cpu'"
                raise ArgumentError("graph", f"a result of {array.size:,} elements", expected)
            arguments[name] = np.zeros_like(array) if name in operands.zero_outputs else array
        for name, (size, dtype) in {**self._zeroed, **self._workspace}.items():
            arguments[name] = np.zeros(size, dtype)
        unwritten = [name for name in outputs if name not in operands.zero_outputs]
        writable = [*outputs, *self._zeroed, *self._workspace]
        return Memory.of(arguments, writable, [*unwritten, *self._workspace])

    def run_calls(self, count: int, memory: Memory) -> None:
        """Run the first `count` calls of the plan, each on the results of those before it."""
        for number in range(count):
            self.run_call(number, memory)
            memory.written(self.names[number])

    def run_call(self, number: int, memory: Memory, **options: Any) -> tuple[list[Known], Any]:
        """Run the kernel of call `number`; `options` are those of `Library.run`."""
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
    timeout: float = 60.0,
) -> pd.DataFrame:
    """Run blocks of a plan's kernel in the emulator and record every access of every lane.

    Parameters
    ----------
    plan : Plan
        A plan with a kernel.
    *dense : array
        The dense inputs of the plan's operation, in order: X for an SpMM, U and V for an SDDMM.
    block : int or iterable of int
        The blocks to trace, numbered over the whole grid with x fastest: block b of the workload in
        column tile t is block b + t * `plan.launch.n_blocks`.
    values : array, shape (nnz,), optional
        Weights, by default the graph's.
    into : dict, optional
        Receives the outputs by name, as these blocks wrote them.
    waits : list, optional
        Receives a dict for each wait of a warp at a barrier, with `block`, `warp`, `file`, `line`,
        `arrived` and `left`: the numbers of the next step when the warp's last lane arrived, and
        when the block continued.

    Returns
    -------
    DataFrame
        One row per access of a lane: `block`, `warp` (in its block), `lane`, `step`, `file`,
        `line`, `kind` ("load", "store" or "atomic"), `space` ("global" or "shared"), `array`,
        `index` (element of the array), `bytes` and `offset` (bytes from the array's beginning).
        Rows of equal block and step are one request: an instruction of a warp, executed by its
        active lanes. Steps are numbered in the order of the requests; the warps of a block take
        turns.

    Raises
    ------
    ArgumentError
        If there is no such block, or an input does not fit.
    KernelError, DeviceUnavailable
        As `spmm` on the device "emulator" does.

    Notes
    -----
    Only the main call of a plan is traced, after the calls before it. Blocks run in the order of
    `block`, on workspaces as earlier blocks left them.
    The lanes of a warp run in lockstep. When they diverge, lanes at the lowest instruction address
    continue and the others wait, so that they reconverge where the paths join.
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
    ready = _TracingDevice(timeout=timeout).prepare(plan)
    operands = plan.operation.named(*dense, values=values)
    memory = ready.memory(ready.inputs(ready.placed(operands)), ready.outputs())
    main = plan.layout.main
    ready.run_calls(main, memory)
    library, tables = ready.libraries[main], []
    for first, count in _runs(blocks):
        options = {"first_block": first, "n_blocks": count, "traced": True}
        known, answer = ready.run_call(main, memory, **options)
        records = library.trace(memory, answer)
        tables.append(tracing.table(records, library.path, known))
        if waits is not None:
            waits += tracing.waits(records, library.path)
    if into is not None:
        for output in plan.operation.outputs:
            into[output.name] = np.asarray(memory.known[output.name].data)
    if not tables:
        return tracing.table(np.empty(0, dtype=RECORD), library.path, [])
    return pd.concat(tables, ignore_index=True)


def _runs(blocks: Sequence[int]) -> list[tuple[int, int]]:
    """Return (first, count) of runs of consecutive blocks, each for one launch."""
    runs: list[tuple[int, int]] = []
    for block in map(int, blocks):
        first, count = runs[-1] if runs else (0, MAX_TRACED_BLOCKS)
        if block == first + count and count < MAX_TRACED_BLOCKS:
            runs[-1] = first, count + 1
        else:
            runs.append((block, 1))
    return runs
