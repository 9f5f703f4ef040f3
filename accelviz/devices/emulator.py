"""The executor `emulator`: a plan's CUDA kernel, run thread by thread on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.base import Arrays, HostDevice, HostPlan, kernels_of, no_kernel
from accelviz.emulator import build
from accelviz.emulator.build import unwritten_locals
from accelviz.emulator.library import Library, load
from accelviz.emulator.memory import Known, Memory
from accelviz.emulator.problems import kernel_error
from accelviz.emulator.symbols import line_of
from accelviz.errors import ArgumentError, DeviceUnavailable, KernelError
from accelviz.plans import Plan
from accelviz.plans.storage import stored

#: Elements of a result whose every access can be checked; each takes 80 bytes.
MAX_ELEMENTS = 1 << 25


class EmulatorDevice(HostDevice):
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
        Seconds that a launch may take.
    """

    name = "emulator"
    timed = False

    def __init__(self, *, seed: int = 0, checked: bool = True, timeout: float = 60.0) -> None:
        self.seed = seed
        self.checked = checked
        self.timeout = timeout

    def why_not(self, plan: Plan | None = None) -> str | None:
        """Say why there is no usable compiler, or no kernel to emulate, or None."""
        return (plan and no_kernel(plan)) or build.why_not()

    def hardware(self) -> dict[str, str]:
        """Name the compiler that stands in for a GPU."""
        compiler = build.find_compiler()
        return self._named(f"emulator, {compiler.version}" if compiler else "emulator")

    def prepare(self, plan: Plan) -> EmulatorPlan:
        """Compile the plan's kernels for the host; see `Device`."""
        problem = build.why_not()
        if problem is not None:
            raise DeviceUnavailable("device 'emulator'", problem, "device='cpu', which needs none")
        return EmulatorPlan(plan, seed=self.seed, checked=self.checked, timeout=self.timeout)


class EmulatorPlan(HostPlan):
    """A plan with its kernels compiled for the host."""

    def __init__(self, plan: Plan, *, seed: int, checked: bool, timeout: float) -> None:
        super().__init__(plan)
        self.checked = checked
        calls = kernels_of(plan, "emulator")
        self.calls = tuple(call for _, call in calls)
        self.specs = tuple(call.kernel for call in self.calls if call.kernel)  # each has one
        # Parts of a plan have arrays of one name each.
        parts = [plan.parts.index(part) for part, _ in calls]
        self.names = tuple(
            tuple(_name(part, name, plan) for name in spec.arguments)
            for part, spec in zip(parts, self.specs, strict=True)
        )
        program = build.runtime()
        self.libraries = tuple(
            load(build.build(spec, checked=checked), program, spec.entry, spec.arguments)
            for spec in self.specs
        )
        self._options = {"seed": seed, "checked": checked, "timeout": timeout}
        self._scratch, self._workspace = plan.buffers("scratch"), plan.buffers("workspace")
        self._arguments = {
            _name(part, name, plan): array
            for part, each in enumerate(plan.parts)
            for name, array in each.arrays.items()
        }

    def run(self, operands: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> Arrays:
        """Run the kernels on outputs that hold what they should find there; see `ReadyPlan`.

        A KernelError names the source line, block, thread and address of what is wrong on a GPU.
        """
        inputs = self.placed(operands)
        outputs = self._operands.outputs(out, inputs)
        memory = self.memory(inputs, outputs)
        for number, names in enumerate(self.names):
            self.launch(number, memory)
            memory.written(names)  # a later call may read what this one has written
        for name in self._scratch:
            if np.any(memory.known[name].data):
                what = f"it leaves scratch {name!r} other than zero, as it found it"
                fix = "clear what was used before the kernel ends"
                raise KernelError(self.specs[-1].entry, what, fix)
        for name, array in outputs.items():
            array[...] = memory.known[name].data
        return outputs

    def memory(self, inputs: Arrays, outputs: Arrays) -> Memory:
        """Put all that kernels may touch where they find it; parts of one launch share it."""
        given = self._operands.walked(inputs)
        found = dict(self._arguments)
        for each in self._operands.operation.inputs:
            storage = self._operands.storage if each.gathered else "float32"
            found[each.name] = stored(given[each.name], storage)
        for name, array in outputs.items():
            if self.checked and array.size > MAX_ELEMENTS:
                most = f"at most {MAX_ELEMENTS:,}, as the emulator keeps a record of each"
                right = f"{most}; a smaller graph, or device='cpu'"
                raise ArgumentError("graph", f"a result of {array.size:,} elements", right)
            cleared = name in self._operands.cleared
            found[name] = np.zeros_like(array) if cleared else array
        for name, (size, dtype) in self._scratch.items():
            found[name] = np.zeros(size, dtype)
        for name, (size, dtype) in self._workspace.items():
            found[name] = np.zeros(size, dtype)
        unwritten = [name for name in outputs if name not in self._operands.cleared]
        writable = [*outputs, *self._scratch, *self._workspace]
        return Memory.of(found, writable, [*unwritten, *self._workspace])

    def launch(self, number: int, memory: Memory, **options: Any) -> tuple[list[Known], Any]:
        """Run the kernel of one of the plan's calls, or some blocks of it; see `run_checked`."""
        names, launch = self.names[number], self.calls[number].launch
        if 0 in launch.grid:
            return [], None
        options |= self._options
        return run_checked(self.libraries[number], launch, names, memory, **options)

    def seconds(
        self, operands: Mapping[str, Any], repeats: int = 3, warmup: int = 1, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Time runs by the host's clock, which says nothing about a GPU; see `ReadyPlan`."""
        inputs, outputs = self.placed(operands), self.outputs()
        return self._timed(lambda: self.run(inputs, outputs), repeats, warmup, cold=cold)


def _name(part: int, name: str, plan: Plan) -> str:
    """Return what an argument of a plan's part is called beside those of other parts."""
    return f"{part}:{name}" if part and name in plan.parts[part].arrays else name


def run_checked(
    library: Library, launch: Any, names: Sequence[str], memory: Memory, **options: Any
) -> tuple[list[Known], Any]:
    """Run a kernel and raise what the runtime finds; return the arrays it counts, and its answer.

    What the kernel prints is printed. One that may read local variables before it writes them runs
    a second time, with others in their place, and must come to the same results; not again with
    arguments with which it already has.
    """
    twin = None if options.get("traced") else library.twin
    run = memory.digest((launch, *names, *options.items())) if twin else b""
    if run in library.independent:
        twin = None
    before = memory.contents() if twin else []
    answer, known, printed = library.run(launch, names, memory, **options)
    if printed:
        print(printed, end="")
    raise_problem(library, answer, known, options)
    if twin:
        after = memory.contents()
        memory.restore(before)
        other, *_ = twin.run(launch, names, memory, **options | {"checked": False})
        raise_problem(twin, other, known, options)
        for number, (one, two) in enumerate(zip(after, memory.contents(), strict=True)):
            if np.array_equal(one, two):
                continue
            memory.restore(before)
            options["writer_of"] = number, int(np.argmax(one != two))
            answer, *_ = library.run(launch, names, memory, **options)
            answer["text"] = unwritten_locals(library.path).read_bytes()
            raise_problem(library, answer, known, options)
        memory.restore(after)
        library.independent.add(run)
    return known, answer


def raise_problem(
    library: Library, answer: Any, known: Sequence[Known], options: Mapping[str, Any]
) -> None:
    """Raise a KernelError for what `Library.run`, called with `options`, has found."""
    where, seconds = partial(line_of, library.path), options.get("timeout", 0.0)
    found = kernel_error(answer, known, library.parameters, where, library.kernel, seconds)
    if found is not None:
        raise found
