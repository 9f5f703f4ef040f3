"""What an executor is: it makes a plan ready once, then runs it on features as often as asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError, KernelError
from accelviz.strategies import KernelSpec, Plan

#: Larger than the last cache of most processors.
HOST_FLUSH_BYTES = 256 << 20


class ReadyPlan(Protocol):
    """A plan whose arrays are where the device wants them and whose code is compiled.

    Attributes
    ----------
    plan : Plan
    setup_seconds : mapping of str to float
        Preprocessing that the device did, beside the plan's own; compiling is not part of it.
    variant : str
        What the device chose where the plan leaves a choice.
    """

    plan: Plan
    setup_seconds: Mapping[str, float]
    variant: str

    def features(self, X: Any) -> Any:
        """Return `X` as the plan wants it: float32, contiguous, where the device reads it."""

    def output(self) -> Any:
        """Return a new, uninitialised result where the device writes it."""

    def multiply(self, X: Any, out: Any = None) -> Any:
        """Return `A @ X`; float32, shape (rows of A, columns of X), in the caller's row order."""

    def seconds(
        self, X: Any, repeats: int, warmup: int, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Time `repeats` runs by the device's own clock, shape (repeats,), after warming up.

        A run is all that `multiply` does between input and output in place: clearing included,
        allocation and transfers excluded. With `cold`, the last cache before memory is flushed
        before each of them.
        """


class Limits(Protocol):
    """What a device can do, measured in the same run as the plans it is held against.

    Attributes
    ----------
    launch_seconds : float
        Time of a launch that does nothing.
    copy_bandwidth : float
        Bytes per second of a large copy, read plus written.
    """

    launch_seconds: float
    copy_bandwidth: float

    def gather_bandwidth(self, rows: int, n_cols: int) -> float:
        """Bytes per second of reading random whole rows of a float32 matrix of that shape."""


class Executor(Protocol):
    """A device that plans run on.

    Attributes
    ----------
    name : str
        What `device=` calls it.
    timed : bool
        Whether its times say something about its hardware.
    """

    name: str
    timed: bool

    def why_not(self, plan: Plan | None = None) -> str | None:
        """Say in one sentence why this device cannot be used here (for a plan), or None."""

    def hardware(self) -> dict[str, str]:
        """Name what runs: `hardware`, `driver`, `cuda`, `cupy`; what does not apply is empty."""

    def to_device(self, array: npt.NDArray[Any]) -> Any:
        """Return an array where the device's plans read it."""

    def limits(self) -> Limits | None:
        """Measure what the device can do, or None where that says nothing about its plans."""

    def prepare(self, plan: Plan) -> ReadyPlan:
        """Compile and move what `plan` needs; raises DeviceUnavailable or KernelError."""


def kernel_of(plan: Plan) -> KernelSpec:
    """Return the plan's kernel.

    Raises
    ------
    KernelError
        If it has none.
    """
    if plan.kernel is None:
        raise KernelError(
            plan.strategy,
            "this strategy has no CUDA kernel",
            "device='cpu', which needs none"
            if plan.has_workload
            else "device='cuda', as it is a library's",
        )
    return plan.kernel


def refuse_device_arrays(plan: Plan) -> None:
    """Refuse to run a plan on the host whose arrays lie on the GPU.

    Raises
    ------
    ArgumentError
    """
    if any(is_device_array(array) for array in plan.arrays.values()):
        raise ArgumentError(
            "plan", f"the arrays of {plan.strategy!r} lie on the GPU", "device='cuda', or `plan`"
        )


def seconds_on_host(
    run: Callable[[], object], repeats: int, warmup: int, *, cold: bool = False
) -> npt.NDArray[np.float64]:
    """Time `run` by the host's clock; see `ReadyPlan.seconds`."""
    times = np.empty(warmup + repeats)
    flush = np.empty(HOST_FLUSH_BYTES if cold else 0, np.uint8)
    for i in range(times.size):
        flush.fill(i)
        start = time.perf_counter()
        run()
        times[i] = time.perf_counter() - start
    return times[warmup:]


def is_device_array(array: Any) -> bool:
    """Tell whether an array lives on a CUDA device (CuPy, PyTorch, Numba)."""
    return hasattr(array, "__cuda_array_interface__")


def checked_features(X: Any, plan: Plan, xp: Any = np) -> Any:
    """Return the features as a contiguous float32 array that fits the plan.

    Parameters
    ----------
    X : array
        Boolean, integer or real; rounded to float32. NaN and infinity pass through, as in SciPy.
    plan : Plan
    xp : module
        NumPy or CuPy, whichever `X` should be an array of.

    Raises
    ------
    ArgumentError
        If the shape or the dtype does not fit, or a GPU's array is to be used on the host.
    """
    on_device = is_device_array(X)
    if on_device and xp is np:
        raise ArgumentError("X", "it lies on the GPU", "an array on the host, as from X.get()")
    X = xp.asarray(X) if on_device else np.asarray(X)
    if X.dtype.kind not in "biuf":
        raise ArgumentError("X", f"dtype {X.dtype}", "boolean, integer or real floating point")
    if X.ndim != 2:
        raise ArgumentError(
            "X", f"{X.ndim}-D, of shape {X.shape}", "2-D; write X[:, None] for a vector"
        )
    wanted = (plan.graph.shape[1], plan.n_cols)
    if X.shape != wanted:
        raise ArgumentError(
            "X",
            f"shape {X.shape} for a graph of {plan.graph.shape[0]} x {plan.graph.shape[1]} "
            f"planned for {plan.n_cols} columns",
            f"shape {wanted}",
        )
    return xp.ascontiguousarray(xp.asarray(X), dtype=np.float32)


def checked_output(out: Any, plan: Plan, xp: Any = np) -> Any:
    """Return `out`, or a new uninitialised array if None, after checking that the result fits it.

    Raises
    ------
    ArgumentError
        If it is not a contiguous float32 array of the result's shape.
    """
    shape = (plan.graph.shape[0], plan.n_cols)
    if out is None:
        return xp.empty(shape, dtype=np.float32)
    if (
        not isinstance(out, xp.ndarray)
        or out.shape != shape
        or out.dtype != np.float32
        or not out.flags.c_contiguous
    ):
        raise ArgumentError(
            "out",
            f"a {type(out).__name__} of shape {getattr(out, 'shape', None)}, "
            f"dtype {getattr(out, 'dtype', None)}",
            f"a C-contiguous float32 {xp.__name__} array of shape {shape}",
        )
    return out


class HostPlan:
    """What ready plans share whose features and results are the host's."""

    plan: Plan

    def features(self, X: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Return the features as float32; see `ReadyPlan`."""
        checked: npt.NDArray[np.float32] = checked_features(X, self.plan)
        return checked

    def output(self) -> npt.NDArray[np.float32]:
        """Return a new result; see `ReadyPlan`."""
        made: npt.NDArray[np.float32] = checked_output(None, self.plan)
        return made
