"""The base of devices: a device owns arrays, launches kernels and runs plans."""

from __future__ import annotations

import contextlib
import functools
import os
import time
import tracemalloc
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from accelviz.devices.programs import prepared_program
from accelviz.devices.ready_plan import ReadyPlan, no_kernel
from accelviz.errors import DeviceUnavailable
from accelviz.plans import Call, Plan
from accelviz.plans.program import Program

#: Larger than the last cache of most processors.
HOST_FLUSH_BYTES = 256 << 20
_FLOAT32 = np.dtype(np.float32)


class Limits(Protocol):
    """Limits of a device, measured in the same run as the plans that are compared with them.

    `launch_seconds` is the time of a launch that does nothing, and `copy_bandwidth` the bytes per
    second of a large copy, read plus written.
    """

    launch_seconds: float
    copy_bandwidth: float

    def gather_bandwidth(self, rows: int, n_cols: int) -> float:
        """Bytes per second of reading random whole rows of a float32 matrix of that shape."""


class HostClock:
    """Adds up seconds by name on the host's clock."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time a block."""
        start = time.perf_counter()
        yield
        self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - start

    def settle(self) -> None:
        """Wait for blocks that are still to be timed."""


class Device:
    """A place where plans and kernels run and arrays lie.

    A derived class says which arrays it owns and copies them from and to the host; plans are
    replayed on the host. One that runs kernels overrides `launch` and `prepare`.

    Attributes
    ----------
    name : str
        Its name in `device=`.
    alternative : str
        What to use where this device cannot be used.
    timed : bool
        Whether its times are those of hardware.
    array_type : type
        Of its arrays. They have a shape and a dtype of NumPy.
    xp : module
        Computes on its arrays as NumPy does; see `computes`. A device without such a module only
        runs plans, and the host does the arithmetic between them.
    multiprocessors : int
        SMs of a GPU: at least so many blocks run at the same time.
    """

    name: str
    alternative = "device='auto'"
    timed = False
    array_type: type = np.ndarray
    xp: Any = np
    multiprocessors = 1

    @functools.cached_property
    def computes(self) -> bool:
        """Whether `xp` computes on its arrays."""
        return issubclass(self.array_type, self.xp.ndarray)

    @property
    def key(self) -> Hashable:
        """The key of plans that are ready here: the name, and the number of a GPU."""
        return self.name

    def unavailable_reason(self, plan: Plan | None = None) -> str | None:
        """Say in one sentence why this device cannot be used here (for a plan), or None."""
        if plan is not None and not plan.has_workload:
            return f"{plan.name!r} does not say which warp does what, so there is nothing to replay"
        return None

    def require(self, plan: Plan | None = None) -> None:
        """Raise DeviceUnavailable if this device cannot be used here (for a plan)."""
        problem = self.unavailable_reason(plan)
        if problem is not None:
            raise DeviceUnavailable(f"device {self.name!r}", problem, self.alternative)

    def hardware(self) -> dict[str, str]:
        """Return the names of `hardware`, `driver`, `cuda` and `cupy`, empty where none applies."""
        return {"hardware": self.name, "driver": "", "cuda": "", "cupy": ""}

    # Arrays.

    def owns(self, array: Any) -> bool:
        """Tell whether an array lies here."""
        return isinstance(array, self.array_type)

    def adopt(self, array: Any) -> Any:
        """Return an array that lies here as one of `array_type`, without a copy."""
        return self.xp.asarray(array) if self.computes else array

    def to_device(self, array: npt.NDArray[Any]) -> Any:
        """Return a host array here."""
        return self.xp.asarray(array) if self.computes else array

    def shared(self, array: Any) -> Any:
        """Return a read-only host array here; a device may keep the copy."""
        return self.to_device(array)

    def as_device_array(self, array: Any) -> Any:
        """Return an array of this device or of the host here, copied only from the host."""
        return self.adopt(array) if self.owns(array) else self.shared(array)

    def to_host(self, array: Any) -> npt.NDArray[Any]:
        """Return an array of this device on the host."""
        host: npt.NDArray[Any] = array
        return host

    def write(self, array: Any, values: npt.NDArray[Any]) -> None:
        """Write a host array's values to an array of this device."""
        array[...] = values

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> Any:
        """Return a new array, uninitialised."""
        array = (self.xp if self.computes else np).empty(shape, dtype)
        return array if self.computes else self.to_device(array)

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> Any:
        """Return a new array of zeros."""
        array = (self.xp if self.computes else np).zeros(shape, dtype)
        return array if self.computes else self.to_device(array)

    def contiguous(self, array: Any, dtype: np.dtype[Any] = _FLOAT32) -> Any:
        """Return an array of this device as float32, or another dtype, in C order."""
        flags = getattr(array, "flags", None)
        if array.dtype == dtype and (flags is None or flags.c_contiguous):
            return array
        with np.errstate(over="ignore"):  # what float32 cannot hold passes as infinity
            if self.computes:
                return self.xp.ascontiguousarray(array, dtype=dtype)
            return self.to_device(np.ascontiguousarray(self.to_host(array), dtype))

    def take(self, array: Any, order: Any) -> Any:
        """Return `array[order]`."""
        return self.to_device(np.take(self.to_host(array), self.to_host(order), axis=0))

    def overlap(self, one: Any, other: Any) -> bool:
        """Tell whether two arrays have memory in common, or lie inside each other."""
        return np.may_share_memory(self.to_host(one), self.to_host(other))

    def matmul(self, A: Any, B: Any, transposed: str = "", onto: Any = None) -> Any:
        """Return `A @ B`, where "A" or "B" may be `transposed`, added to `onto` if there is one."""
        product = (A.T if transposed == "A" else A) @ (B.T if transposed == "B" else B)
        return product if onto is None else onto + product

    def free_bytes(self) -> int:
        """Return the free memory of a GPU, or all memory of the host."""
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def used_bytes(self) -> int:
        """Return the memory of arrays; on the host, of those that `tracemalloc` has traced."""
        return tracemalloc.get_traced_memory()[0]

    # Work.

    @property
    def launches(self) -> bool:
        """Whether it runs kernels itself."""
        return type(self).launch is not Device.launch

    def launch(self, call: Call, arguments: Mapping[str, Any]) -> None:
        """Run a kernel that belongs to no plan.

        Parameters
        ----------
        call : Call
            With a kernel. Nothing happens for a grid without a block.
        arguments : mapping of str to array or number
            In the order of the kernel's parameters: arrays of this device or, where the kernel only
            reads them, of the host; integers and floats of Python are 32-bit ones.
        """
        raise DeviceUnavailable(f"device {self.name!r}", "it runs no kernel", "device='emulator'")

    def arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments placed for `launch`, so that launches copy nothing."""
        return dict(arguments)

    def stream(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which work that is to be captured is launched."""
        return contextlib.nullcontext()

    def on_stream(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which work is launched on a stream of another library."""
        return contextlib.nullcontext()

    def prepare(self, plan: Plan) -> ReadyPlan:
        """Compile and move what a plan needs.

        Raises
        ------
        DeviceUnavailable
            If the device cannot be used here, or the plan has nothing for it.
        KernelError
            If a kernel does not compile.
        """
        problem = self.unavailable_reason(plan)
        if problem is not None:
            emulated = "" if no_kernel(plan) else "device='emulator', which runs its kernel, or "
            fix = f"{emulated}device='cuda', on a GPU"
            raise DeviceUnavailable(f"device {self.name!r}", problem, fix)
        return ReadyPlan(plan, self)

    def run_program(self, program: Program, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run a program of one device; return all buffers, flat, where the device has them.

        Parameters
        ----------
        program : Program
        inputs : mapping of str to array
            The input buffers by name, flat, on the host or on the device.

        Raises
        ------
        KernelError, DeviceUnavailable
            If a kernel is wrong, or the device cannot be used.
        """
        if self.launches:
            run, buffers = prepared_program(program, inputs, self)
            run()
            return buffers
        held = {name: self.to_host(self.as_device_array(array)) for name, array in inputs.items()}
        return {name: self.to_device(array) for name, array in program.replay(held).items()}

    def step_order(self, program: Program) -> list[int]:
        """Return the numbers of a program's steps in the order in which they are launched here."""
        return program.order()

    def captured(
        self, program: Program, inputs: Mapping[str, Any], clock: Any
    ) -> Callable[[], dict[str, Any]]:
        """Return a function that runs a program, in one launch where a device can do so.

        Parameters
        ----------
        program : Program
            Of one device.
        inputs : mapping of str to array
            As of `run_program`; they stay in place from run to run.
        clock : clock
            Of `clock`, which times the steps' work.

        Returns
        -------
        callable
            It returns the program's outputs by name.
        """
        return prepared_program(program, inputs, self)[0]

    def clock(self, seconds: dict[str, float]) -> Any:
        """Return a clock whose blocks add their seconds to a dict by name; see `HostClock`."""
        return HostClock(seconds)

    def seconds(
        self, run: Callable[[], object], repeats: int, warmup: int, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Time runs by the device's own clock, shape (repeats,).

        With `cold`, the last cache before memory is flushed before each of them.
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
        """Measure the device's limits; None where they say nothing about its plans."""
        return None
