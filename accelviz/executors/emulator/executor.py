"""The executor `emulator`: a plan's CUDA kernel, run thread by thread on the host."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError, DeviceUnavailable, KernelError
from accelviz.executors.base import (
    HostPlan,
    checked_features,
    checked_output,
    kernel_of,
    refuse_device_arrays,
    seconds_on_host,
)
from accelviz.executors.emulator import build
from accelviz.executors.emulator.library import Known, Library, guarded, load
from accelviz.executors.emulator.problems import kernel_error
from accelviz.executors.emulator.symbols import line_table
from accelviz.executors.storage import stored
from accelviz.strategies import KernelSpec, LaunchConfig, Plan

#: Elements of a result whose every access can be checked; each takes 60 bytes.
MAX_ELEMENTS = 1 << 25


class EmulatorExecutor:
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
        if plan is not None and plan.kernel is None:
            return f"{plan.strategy!r} has no CUDA kernel"
        return build.why_not()

    def hardware(self) -> dict[str, str]:
        """Name the compiler that stands in for a GPU."""
        compiler = build.find_compiler()
        name = f"emulator, {compiler.version}" if compiler else "emulator"
        return {"hardware": name, "driver": "", "cuda": "", "cupy": ""}

    def to_device(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the array itself."""
        return array

    def limits(self) -> None:
        """Return None: an emulator's time says nothing."""

    def prepare(self, plan: Plan) -> EmulatorPlan:
        """Compile the plan's kernel for the host.

        Raises
        ------
        DeviceUnavailable
            If there is no C++ compiler.
        KernelError
            If the plan has no kernel, or it does not compile.
        """
        problem = build.why_not()
        if problem is not None:
            raise DeviceUnavailable("device 'emulator'", problem, "device='cpu', which needs none")
        refuse_device_arrays(plan)
        return EmulatorPlan(plan, kernel_of(plan), seed=self.seed, checked=self.checked)


class EmulatorPlan(HostPlan):
    """A plan with its kernel compiled for the host."""

    variant = ""

    def __init__(self, plan: Plan, spec: KernelSpec, *, seed: int, checked: bool) -> None:
        self.plan = plan
        self.setup_seconds: Mapping[str, float] = {}
        self.seed = seed
        self.checked = checked
        self.library = load(build.build(spec, checked=checked))
        self._spec = spec
        self.known: list[Known] = []
        self._arguments: dict[str, Known | np.generic] = {
            name: known_array(name, array) if isinstance(array, np.ndarray) else array
            for name, array in plan.arrays.items()
        }

    def multiply(
        self, X: npt.ArrayLike, out: npt.NDArray[np.float32] | None = None
    ) -> npt.NDArray[np.float32]:
        """Return `A @ X`; see `ReadyPlan`.

        Raises
        ------
        KernelError
            If the kernel does something that is wrong on a GPU, naming source line, block, thread
            and address.
        """
        features = checked_features(X, self.plan)
        out = checked_output(out, self.plan)
        out[...] = self.run(features, out)
        return out

    def scratch(self) -> dict[str, Known]:
        """Return new scratch buffers, as a kernel finds them before its first launch: zero."""
        return {
            name: known_array(name, np.zeros(size, dtype), writable=True)
            for name, (size, dtype) in self.plan.scratch.items()
        }

    def run(
        self,
        X: npt.NDArray[np.float32],
        out: npt.NDArray[np.float32],
        scratch: dict[str, Known] | None = None,
        **options: Any,
    ) -> npt.NDArray[Any]:
        """Run the kernel on an output that holds what it should find there; return the result.

        Runs that are parts of one launch share their `scratch`.
        """
        plan = self.plan
        if self.checked and out.size > MAX_ELEMENTS:
            raise ArgumentError(
                "graph",
                f"a result of {out.size:,} elements",
                f"at most {MAX_ELEMENTS:,}, as the emulator keeps a record of each; a smaller "
                "graph, or device='cpu'",
            )
        result = known_array("Y", out, writable=True, initialised=plan.zero_output)
        if plan.zero_output:
            result.data[...] = 0
        if plan.launch.n_blocks == 0 or out.size == 0:
            return result.data
        scratch = self.scratch() if scratch is None else scratch
        there = {
            **self._arguments,
            **scratch,
            "X": known_array("X", stored(X, plan.storage)),
            "Y": result,
        }
        arguments = [there[name] for name in self._spec.arguments]
        self.known = run_checked(
            self.library,
            self._spec,
            plan.launch,
            arguments,
            seed=self.seed,
            checked=self.checked,
            **options,
        )
        whole = options.get("n_blocks") is None
        for name, known in scratch.items():
            if whole and known.data.any():
                raise KernelError(
                    self._spec.entry,
                    f"it leaves scratch {name!r} other than zero, as it found it",
                    "clear what was used before the kernel ends",
                )
        return result.data

    def seconds(
        self, X: npt.ArrayLike, repeats: int = 3, warmup: int = 1, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Time runs by the host's clock, which says nothing about a GPU; see `ReadyPlan`."""
        features = checked_features(X, self.plan)
        out = checked_output(None, self.plan)
        return seconds_on_host(lambda: self.run(features, out), repeats, warmup, cold=cold)


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
            given[name] = known_array(name, argument, writable=writable, initialised=initialised)
        else:
            given[name] = argument
    run_checked(library, spec, launch, list(given.values()), seed=seed)
    return {
        n: known.data for n, known in given.items() if isinstance(known, Known) and n in outputs
    }


def run_checked(
    library: Library,
    spec: KernelSpec,
    launch: LaunchConfig,
    arguments: Sequence[Known | np.generic],
    **options: Any,
) -> list[Known]:
    """Run a kernel and raise what the runtime finds; return the arrays it counts."""
    error, known = library.run(launch, arguments, **options)
    found = kernel_error(error, known, line_table(library.path).find, spec.entry)
    if found is not None:
        raise found
    return known


def known_array(
    name: str, array: npt.NDArray[Any], *, writable: bool = False, initialised: bool = True
) -> Known:
    """Copy an array to where the kernel finds it, and describe it to the runtime."""
    array = guarded(array)
    address, size = array.ctypes.data, array.nbytes
    return Known(name, array, address, size, array.itemsize, False, writable, initialised)
