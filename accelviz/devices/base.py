"""The base class of devices. A device owns arrays, launches kernels and runs plans."""

from __future__ import annotations

import contextlib
import functools
import time
import tracemalloc
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from accelviz.devices.programs import prepared_program
from accelviz.devices.ready_plan import ReadyPlan, no_kernel
from accelviz.errors import DeviceUnavailable, memory_bytes
from accelviz.plans import Call, Plan
from accelviz.plans.program import Program

#: Bytes written to flush the processor's caches; more than the last-level cache of most.
HOST_FLUSH_BYTES = 256 << 20
_FLOAT32 = np.dtype(np.float32)


class Limits(Protocol):
    """Measured limits of a device, for comparison with plans timed in the same run.

    `launch_seconds` is the time of an empty kernel; `copy_bandwidth` is the rate of a large copy in
    bytes per second, where each copied byte counts twice (read and written).
    """

    launch_seconds: float
    copy_bandwidth: float

    def gather_bandwidth(self, rows: int, n_cols: int) -> float:
        """Return the rate of reading random rows of a (rows, n_cols) float32 matrix in bytes/s."""


class HostClock:
    """Sums up wall-clock seconds by name."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time a `with` block and add its seconds to `name`."""
        start = time.perf_counter()
        yield
        self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - start

    def settle(self) -> None:
        """Wait until all times are added. Nothing to wait for on the host."""


class Device:
    """A device that owns arrays and runs plans and kernels.

    A derived class defines its array type and the copies from and to the host; it then replays
    plans on the host. A device that runs kernels also overrides `launch` and `prepare`.

    Attributes
    ----------
    name : str
        Value of `device=` that selects it.
    alternative : str
        Advice in the error message if the device cannot be used.
    timed : bool
        Whether its times are times of real hardware.
    array_type : type
        Type of its arrays, which have NumPy's `shape` and `dtype`.
    xp : module
        Module with NumPy's interface that computes on its arrays, such as CuPy; see `computes`.
        Without one, the device only runs plans, and other arithmetic runs on the host.
    multiprocessors : int
        Number of SMs of a GPU. At least this many blocks run concurrently.
    plan_type : type
        Class of its prepared plans.
    """

    name: str
    alternative = "device='auto'"
    timed = False
    array_type: type = np.ndarray
    xp: Any = np
    multiprocessors = 1
    plan_type: type[ReadyPlan] = ReadyPlan

    @functools.cached_property
    def computes(self) -> bool:
        """Whether `xp` computes on the device's arrays."""
        return issubclass(self.array_type, self.xp.ndarray)

    @property
    def key(self) -> Hashable:
        """Key of prepared plans in a store: the name, and for a GPU also its number."""
        return self.name

    def unavailable_reason(self, plan: Plan | None = None) -> str | None:
        """Return in one sentence why the device cannot be used (for a plan); None if it can."""
        if plan is not None and not plan.has_workload:
            return f"{plan.name!r} does not say which warp does what, so there is nothing to replay"
        return None

    def require(self, plan: Plan | None = None) -> None:
        """Raise DeviceUnavailable if the device cannot be used (for a plan)."""
        problem = self.unavailable_reason(plan)
        if problem is not None:
            raise DeviceUnavailable(f"device {self.name!r}", problem, self.alternative)

    def hardware(self) -> dict[str, str]:
        """Return the name of the `hardware`, and versions of `driver`, `cuda` and `cupy` or ""."""
        return {"hardware": self.name, "driver": "", "cuda": "", "cupy": ""}

    # Arrays.

    def owns(self, array: Any) -> bool:
        """Return whether an array is on this device."""
        return isinstance(array, self.array_type)

    def adopt(self, array: Any) -> Any:
        """Return an array on this device, of any library, as `array_type`, without a copy."""
        return self.xp.asarray(array) if self.computes else array

    def to_device(self, array: npt.NDArray[Any]) -> Any:
        """Copy a host array to the device."""
        return self.xp.asarray(array) if self.computes else array

    def shared(self, array: Any) -> Any:
        """Copy a read-only host array to the device; the copy may be cached and shared."""
        return self.to_device(array)

    def as_device_array(self, array: Any) -> Any:
        """Return an array on the device; only host arrays are copied."""
        return self.adopt(array) if self.owns(array) else self.shared(array)

    def to_host(self, array: Any) -> npt.NDArray[Any]:
        """Copy an array of the device to the host."""
        host: npt.NDArray[Any] = array
        return host

    def write(self, array: Any, values: npt.NDArray[Any]) -> None:
        """Copy a host array's values into an array of the device."""
        array[...] = values

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> Any:
        """Return a new uninitialised array."""
        array = (self.xp if self.computes else np).empty(shape, dtype)
        return array if self.computes else self.to_device(array)

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> Any:
        """Return a new array of zeros."""
        array = (self.xp if self.computes else np).zeros(shape, dtype)
        return array if self.computes else self.to_device(array)

    def contiguous(self, array: Any, dtype: np.dtype[Any] = _FLOAT32) -> Any:
        """Convert an array of the device to a dtype and to C order, copied only if necessary."""
        flags = getattr(array, "flags", None)
        if array.dtype == dtype and (flags is None or flags.c_contiguous):
            return array
        with np.errstate(over="ignore"):  # numbers out of float32's range become infinite
            if self.computes:
                return self.xp.ascontiguousarray(array, dtype=dtype)
            return self.to_device(np.ascontiguousarray(self.to_host(array), dtype))

    def take(self, array: Any, order: Any) -> Any:
        """Return `array[order]`."""
        return self.to_device(np.take(self.to_host(array), self.to_host(order), axis=0))

    def overlap(self, first: Any, second: Any) -> bool:
        """Return whether the address ranges of two arrays overlap."""
        return np.may_share_memory(self.to_host(first), self.to_host(second))

    def matmul(self, A: Any, B: Any, transposed: str = "", onto: Any = None) -> Any:
        """Return `A @ B`, plus `onto` if given; `transposed` is "A", "B" or ""."""
        product = (A.T if transposed == "A" else A) @ (B.T if transposed == "B" else B)
        return product if onto is None else onto + product

    def free_bytes(self) -> int:
        """Return the free memory of a GPU, or the total memory of the host."""
        return memory_bytes()

    def used_bytes(self) -> int:
        """Return the bytes of allocated arrays; on the host, those that `tracemalloc` traced."""
        return tracemalloc.get_traced_memory()[0]

    # Work.

    @property
    def launches(self) -> bool:
        """Whether the device runs kernels."""
        return type(self).launch is not Device.launch

    def launch(self, call: Call, arguments: Mapping[str, Any]) -> None:
        """Launch a kernel without a plan.

        Parameters
        ----------
        call : Call
            A call with a kernel. An empty grid launches nothing.
        arguments : mapping of str to array or number
            Arguments in the order of the kernel's parameters. Arrays are on this device; those that
            the kernel only reads may be on the host. Python's int and float are passed as 32 bits.
        """
        raise DeviceUnavailable(f"device {self.name!r}", "it runs no kernel", "device='emulator'")

    def arguments(self, call: Call, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Copy a call's arguments to the device, so that `launch` copies nothing."""
        return dict(arguments)

    def stream(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context manager that launches on a stream which can be captured."""
        return contextlib.nullcontext()

    def on_stream(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        """Return a context manager that launches on a stream of another library."""
        return contextlib.nullcontext()

    def prepare(self, plan: Plan) -> ReadyPlan:
        """Compile a plan's kernels for this device and copy the plan's arrays to it.

        Raises
        ------
        DeviceUnavailable
            If the device cannot be used, or cannot run this plan.
        KernelError
            If a kernel does not compile.
        """
        problem = self.unavailable_reason(plan)
        if problem is not None:
            emulated = "" if no_kernel(plan) else "device='emulator', which runs its kernel, or "
            fix = f"{emulated}device='cuda', on a GPU"
            raise DeviceUnavailable(f"device {self.name!r}", problem, fix)
        return self.plan_type(plan, self)

    def run_program(self, program: Program, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run a program for one device; return all its buffers as flat arrays on the device.

        Parameters
        ----------
        program : Program
        inputs : mapping of str to array
            The input buffers by name, as flat arrays on the host or on the device.

        Raises
        ------
        KernelError, DeviceUnavailable
            If a kernel fails, or the device cannot be used.
        """
        if self.launches:
            run, buffers = prepared_program(program, inputs, self)
            run()
            return buffers
        host = {name: self.to_host(self.as_device_array(array)) for name, array in inputs.items()}
        return {name: self.to_device(array) for name, array in program.replay(host).items()}

    def step_order(self, program: Program) -> list[int]:
        """Return the numbers of a program's steps in the order of their launches."""
        return program.order()

    def captured(
        self, program: Program, inputs: Mapping[str, Any], clock: Any
    ) -> Callable[[], dict[str, Any]]:
        """Return a function that runs a program, as one captured CUDA graph if possible.

        Parameters
        ----------
        program : Program
            A program for one device.
        inputs : mapping of str to array
            As in `run_program`. All runs read the same arrays.
        clock : clock
            Result of `clock` that times the steps.

        Returns
        -------
        callable
            Runs the program and returns its outputs by name.
        """
        return prepared_program(program, inputs, self)[0]

    def clock(self, seconds: dict[str, float]) -> Any:
        """Return a clock that adds times to a dict by name; see `HostClock`."""
        return HostClock(seconds)

    def seconds(
        self, run: Callable[[], object], repeats: int, warmup: int, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Return the times of `repeats` runs in seconds by the device's clock, shape (repeats,).

        `warmup` untimed runs come first. With `cold`, the last-level cache is flushed before each.
        """
        times = np.empty(warmup + repeats)
        flush = np.empty(HOST_FLUSH_BYTES if cold else 0, np.uint8)
        for i in range(times.size):
            flush.fill(i)
            start = time.perf_counter()
            run()
            times[i] = time.perf_counter() - start
        return times[warmup:]

    def limits(self) -> Limits | None:
        """Measure the device's limits; None if its plans are not limited by them."""
        return None
