"""The executor `emulator`: a plan's CUDA kernel, run thread by thread on the host."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError, DeviceUnavailable, KernelError
from accelviz.executors.base import Arrays, HostExecutor, HostPlan, kernels_of, no_kernel
from accelviz.executors.emulator import build
from accelviz.executors.emulator.library import Known, Library, load
from accelviz.executors.emulator.problems import kernel_error
from accelviz.executors.emulator.symbols import line_of
from accelviz.plans import KernelSpec, LaunchConfig, Plan
from accelviz.plans.storage import stored

#: Elements of a result whose every access can be checked; each takes 60 bytes.
MAX_ELEMENTS = 1 << 25


class EmulatorExecutor(HostExecutor):
    """Runs kernels compiled for the host, and finds their mistakes.

    Parameters
    ----------
    seed : int
        0 runs blocks, warps and lanes in order; another number in a random order, in which a
        mistake that hides in one order may show.
    checked : bool
        Check every load and store (bounds, races, unwritten memory). Without, the kernel runs some
        ten times as fast and a wrong index crashes the process.
    """

    name = "emulator"
    timed = False

    def __init__(self, *, seed: int = 0, checked: bool = True) -> None:
        self.seed = seed
        self.checked = checked

    def why_not(self, plan: Plan | None = None) -> str | None:
        """Say why there is no usable compiler, or no kernel to emulate, or None."""
        return (plan and no_kernel(plan)) or build.why_not()

    def hardware(self) -> dict[str, str]:
        """Name the compiler that stands in for a GPU."""
        compiler = build.find_compiler()
        return self._named(f"emulator, {compiler.version}" if compiler else "emulator")

    def prepare(self, plan: Plan) -> EmulatorPlan:
        """Compile the plan's kernels for the host; see `Executor`."""
        problem = build.why_not()
        if problem is not None:
            raise DeviceUnavailable("device 'emulator'", problem, "device='cpu', which needs none")
        return EmulatorPlan(plan, seed=self.seed, checked=self.checked)


class EmulatorPlan(HostPlan):
    """A plan with its kernels compiled for the host; `known` is what the last of them touched."""

    def __init__(self, plan: Plan, *, seed: int, checked: bool) -> None:
        super().__init__(plan)
        self.seed = seed
        self.checked = checked
        self.calls = kernels_of(plan, "emulator")
        self.specs = tuple(call.kernel for call in self.calls if call.kernel)  # each has one
        self.libraries = tuple(load(build.build(spec, checked=checked)) for spec in self.specs)
        self.known: list[Known] = []
        self._scratch = plan.scratch
        self._arguments: dict[str, Known | np.generic] = {
            name: Known.copied(name, array) if isinstance(array, np.ndarray) else array
            for name, array in plan.arrays.items()
        }

    def run(self, operands: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> Arrays:
        """Run the kernels on outputs that hold what they should find there; see `ReadyPlan`.

        A KernelError names the source line, block, thread and address of what is wrong on a GPU.
        """
        inputs = self.placed(operands)
        outputs = self._operands.outputs(out, inputs)
        memory = self.memory(inputs, outputs)
        for number, spec in enumerate(self.specs):
            self.launch(number, memory)
            for name in spec.arguments:  # a later call may read what this one has written
                if isinstance(known := memory[name], Known):
                    memory[name] = replace(known, initialised=True)
        for name in self._scratch:
            if np.any(memory[name].data):
                what = f"it leaves scratch {name!r} other than zero, as it found it"
                fix = "clear what was used before the kernel ends"
                raise KernelError(self.specs[-1].entry, what, fix)
        for name, array in outputs.items():
            array[...] = memory[name].data
        return outputs

    def memory(self, inputs: Arrays, outputs: Arrays) -> dict[str, Known | np.generic]:
        """Put all that kernels may touch where they find it; parts of one launch share it."""
        given = self._operands.walked(inputs)
        found = dict(self._arguments)
        for each in self._operands.operation.inputs:
            storage = self._operands.storage if each.gathered else "float32"
            found[each.name] = Known.copied(each.name, stored(given[each.name], storage))
        for name, array in outputs.items():
            if self.checked and array.size > MAX_ELEMENTS:
                most = f"at most {MAX_ELEMENTS:,}, as the emulator keeps a record of each"
                right = f"{most}; a smaller graph, or device='cpu'"
                raise ArgumentError("graph", f"a result of {array.size:,} elements", right)
            cleared = name in self._operands.cleared
            made = Known.copied(name, array, writable=True, initialised=cleared)
            if cleared:
                made.data[...] = 0
            found[name] = made
        for name, (size, dtype) in self._scratch.items():
            found[name] = Known.copied(name, np.zeros(size, dtype), writable=True)
        return found

    def launch(self, number: int, memory: dict[str, Known | np.generic], **options: Any) -> None:
        """Run the kernel of one of the plan's calls, or some blocks of it."""
        spec, launch = self.specs[number], self.calls[number].launch
        if 0 not in launch.grid:
            arguments = [memory[name] for name in spec.arguments]
            options |= {"seed": self.seed, "checked": self.checked}
            self.known = run_checked(self.libraries[number], spec, launch, arguments, **options)

    def seconds(
        self, operands: Mapping[str, Any], repeats: int = 3, warmup: int = 1, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Time runs by the host's clock, which says nothing about a GPU; see `ReadyPlan`."""
        inputs, outputs = self.placed(operands), self.outputs()
        return self._timed(lambda: self.run(inputs, outputs), repeats, warmup, cold=cold)


def emulate(
    spec: KernelSpec,
    launch: LaunchConfig,
    arguments: Mapping[str, npt.NDArray[Any] | np.generic],
    *,
    outputs: Collection[str] = (),
    unwritten: Collection[str] = (),
    seed: int = 0,
) -> dict[str, npt.NDArray[Any]]:
    """Run any CUDA kernel, not only a plan's.

    Parameters
    ----------
    spec : KernelSpec
        `arguments` names its parameters in order.
    launch : LaunchConfig
    arguments : mapping of str to array or NumPy scalar
        What the kernel is called with; left as they are.
    outputs : collection of str
        Arrays that the kernel may write; it gets a copy.
    unwritten : collection of str
        Those of them whose content the kernel may not read before it has written it.
    seed : int
        See `EmulatorExecutor`.

    Returns
    -------
    dict of str to array
        The outputs.

    Raises
    ------
    DeviceUnavailable, KernelError
        As the executor does.
    """
    library = load(build.build(spec, checked=True))
    given: dict[str, Known | np.generic] = {}
    for name in spec.arguments:
        argument = arguments[name]
        if isinstance(argument, np.ndarray):
            writable, initialised = name in outputs, name not in unwritten
            given[name] = Known.copied(name, argument, writable, initialised)
        else:
            given[name] = argument
    run_checked(library, spec, launch, list(given.values()), seed=seed)
    known = [each for each in given.values() if isinstance(each, Known)]
    return {each.name: each.data for each in known if each.name in outputs}


def run_checked(
    library: Library,
    spec: KernelSpec,
    launch: LaunchConfig,
    arguments: Sequence[Known | np.generic],
    **options: Any,
) -> list[Known]:
    """Run a kernel and raise what the runtime finds; return the arrays it counts."""
    problem, error, known = library.run(launch, arguments, **options)
    found = kernel_error(problem, error, known, partial(line_of, library.path), spec.entry)
    if found is not None:
        raise found
    return known
