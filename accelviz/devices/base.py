"""What a device is: it owns arrays, launches kernels and runs plans."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError, DeviceUnavailable
from accelviz.plans import Call, LibraryCall, Operand, Plan
from accelviz.plans.arithmetic import to_f16, to_tf32

#: Larger than the last cache of most processors.
HOST_FLUSH_BYTES = 256 << 20
_FLOAT32 = np.dtype(np.float32)
#: How kernels of other arithmetic than float32 round their inputs.
_ROUNDING = {"tf32": to_tf32, "float16": to_f16}

Arrays = dict[str, Any]


class Limits(Protocol):
    """What a device can do, measured in the same run as the plans it is held against.

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
        """Wait for what is still to be timed."""


class Device:
    """What plans and kernels run on, and the only one who knows where arrays lie.

    A new device says which arrays it owns and how they come from the host and go back. The rest is
    here: plans are replayed on the host. A device that runs kernels itself brings its own `launch`
    and its own `prepare`.

    Attributes
    ----------
    name : str
        What `device=` calls it.
    timed : bool
        Whether its times are those of hardware.
    array_type : type
        Of its arrays. They have a shape and a dtype of NumPy.
    xp : module
        NumPy, or what computes on arrays here as NumPy does. Where `array_type` is none of its
        arrays, a device only runs plans, and the host does the arithmetic between them.
    multiprocessors : int
        SMs of a GPU: at least so many blocks run at the same time.
    """

    name: str
    timed = False
    array_type: type = np.ndarray
    xp: Any = np
    multiprocessors = 1

    def unavailable_reason(self, plan: Plan | None = None) -> str | None:
        """Say in one sentence why this device cannot be used here (for a plan), or None."""
        if plan is not None and not plan.has_workload:
            return f"{plan.name!r} does not say which warp does what, so there is nothing to replay"
        return None

    def require(self, plan: Plan | None = None) -> None:
        """Raise DeviceUnavailable if this device cannot be used here (for a plan)."""
        problem = self.unavailable_reason(plan)
        if problem is not None:
            raise DeviceUnavailable(f"device {self.name!r}", problem, "device='auto'")

    def hardware(self) -> dict[str, str]:
        """Name what runs: `hardware`, `driver`, `cuda`, `cupy`; what does not apply is empty."""
        return {"hardware": self.name, "driver": "", "cuda": "", "cupy": ""}

    # Arrays.

    def owns(self, array: Any) -> bool:
        """Tell whether an array lies here."""
        return isinstance(array, self.array_type)

    def adopt(self, array: Any) -> Any:
        """Return an array that lies here as one of `array_type`, without a copy."""
        return array

    def to_device(self, array: npt.NDArray[Any]) -> Any:
        """Return a host array here."""
        return array

    def shared(self, array: Any) -> Any:
        """Return a host array here that nobody writes to; a device may keep the copy."""
        return self.to_device(array)

    def place(self, array: Any) -> Any:
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
        return self.to_device(np.empty(shape, dtype))

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> Any:
        """Return a new array of zeros."""
        return self.to_device(np.zeros(shape, dtype))

    def contiguous(self, array: Any, dtype: np.dtype[Any] = _FLOAT32) -> Any:
        """Return an array of this device as float32, or another dtype, in C order."""
        flags = getattr(array, "flags", None)
        if array.dtype == dtype and (flags is None or flags.c_contiguous):
            return array
        with np.errstate(over="ignore"):  # what float32 cannot hold passes as infinity
            return self.to_device(np.ascontiguousarray(self.to_host(array), dtype))

    def take(self, array: Any, order: Any) -> Any:
        """Return `array[order]`."""
        return self.to_device(np.take(self.to_host(array), self.to_host(order), axis=0))

    def overlap(self, one: Any, other: Any) -> bool:
        """Tell whether two arrays have memory in common, or lie inside each other."""
        return np.may_share_memory(self.to_host(one), self.to_host(other))

    def free_bytes(self) -> int:
        """Return the memory there is: what is free of a GPU's, all of the host's."""
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def used_bytes(self) -> int:
        """Return the memory of arrays that are held; on the host, of those that were traced."""
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
        """Return arguments of `launch` in place, so that launches of them copy nothing."""
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

    def captured(self, work: Callable[[], Any], clock: Any) -> Callable[[], Any]:
        """Return a function that does the same work, in one launch where a device can do so."""
        return work

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
        """Measure what the device can do, or None where that says nothing about its plans."""
        return None


class ReadyPlan:
    """A plan made ready on a device: placed once, then run on operands as often as asked.

    It refers to the plan's arrays and not to the plan, which holds it. Here the workload is
    replayed on the host; see `Device`.

    Attributes
    ----------
    setup_seconds : mapping of str to float
        What the device's own preprocessing took, without compiling.
    variant : str
        What the device chose where the plan leaves a choice.

    Raises
    ------
    ArgumentError
        If the plan's arrays lie on the GPU.
    """

    variant = ""

    def __init__(self, plan: Plan, device: Device) -> None:
        if any(is_device_array(array) for array in plan.arrays.values()):
            problem = f"the arrays of {plan.name!r} lie on the GPU"
            raise ArgumentError("plan", problem, "device='cuda'")
        self.device = device
        self.setup_seconds: Mapping[str, float] = {}
        self.operands = Operands(plan, device)
        self._compile(plan)

    def _compile(self, plan: Plan) -> None:
        self._replay = plan.operation.replay(plan)

    def placed(self, operands: Mapping[str, Any]) -> Arrays:
        """Return inputs as the plan wants them: float32, contiguous, where the device reads."""
        return self.operands.inputs(operands)

    def outputs(self) -> Arrays:
        """Return new, uninitialised outputs where the device writes them."""
        return self.operands.outputs()

    def inputs(self, placed: Arrays) -> Arrays:
        """Return placed inputs as the device reads them: in its order, rounded as stored."""
        ordered = self.operands.ordered(placed)
        return self.operands.rounded({name: self._on_host(ordered[name]) for name in ordered})

    def _on_host(self, array: Any) -> Any:
        return self.device.to_host(array) if self.device.owns(array) else array

    def launch(self, inputs: Arrays, outputs: Arrays) -> None:
        """Run once, from what `inputs` returns."""
        host = {name: self.device.to_host(array) for name, array in outputs.items()}
        self._replay(inputs, host)
        for name, array in host.items():
            if array is not outputs[name]:
                self.device.write(outputs[name], array)

    def run(self, operands: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> Arrays:
        """Run the plan, and return its outputs by name, in the caller's order.

        `operands` has the inputs by name; weights that are missing or None are the graph's own. The
        outputs lie where the dense inputs do.
        """
        placed = self.placed(operands)
        outputs = self.operands.outputs(out, placed)
        self.launch(self.inputs(placed), outputs)
        return outputs

    def seconds(
        self, operands: Mapping[str, Any], repeats: int = 20, warmup: int = 3, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Time `repeats` runs by the device's own clock, shape (repeats,), after warming up.

        A run is all that `run` does between inputs and outputs in place: zeroing outputs included,
        allocation and transfers excluded. With `cold`, the last cache before memory is flushed
        before each of them.
        """
        inputs, outputs = self.inputs(self.placed(operands)), self.outputs()
        run = self.device.seconds
        return run(lambda: self.launch(inputs, outputs), repeats, warmup, cold=cold)


def ready(plan: Plan, device: Device) -> ReadyPlan:
    """Return the plan made ready on a device, which the plan keeps."""
    return plan.ready.get(device.name, lambda: device.prepare(plan))


def no_kernel(plan: Plan) -> str | None:
    """Say why there is no CUDA kernel to run or emulate, or None."""
    calls = [call for part in plan.parts for call in part.calls]
    if any(isinstance(call, LibraryCall) for call in calls):
        return f"{plan.name!r} is a library's, whose kernels are closed"
    if any(call.kernel is None for call in calls):
        return f"{plan.name!r} has no CUDA kernel"
    return None


def kernels_of(plan: Plan, device: str) -> tuple[tuple[Plan, Call], ...]:
    """Return the kernels of a plan and of those that follow it, with their launches.

    Raises
    ------
    DeviceUnavailable
        If a call of it has none.
    """
    problem = no_kernel(plan)
    if problem is not None:
        other = "device='cpu', which replays the workload" if plan.has_workload else "device='cuda'"
        raise DeviceUnavailable(f"device {device!r}", problem, other)
    calls = [(part, call) for part in plan.parts for call in part.calls]
    return tuple((part, call) for part, call in calls if isinstance(call, Call))


def is_device_array(array: Any) -> bool:
    """Tell whether an array lives on a CUDA device (CuPy, PyTorch, Numba)."""
    if type(array) is np.ndarray:
        return False
    cupy = sys.modules.get("cupy")  # whose interface takes microseconds to ask for
    known = cupy is not None and type(array) is getattr(cupy, "ndarray", None)
    try:
        return known or hasattr(array, "__cuda_array_interface__")
    except RuntimeError as error:  # PyTorch's, of a tensor on the GPU that requires gradients
        raise ArgumentError("array", str(error), "a tensor without gradients: X.detach()") from None


def on_host(name: str, array: Any) -> npt.NDArray[Any]:
    """Return what a caller gives as a NumPy array.

    Raises
    ------
    ArgumentError
        If it is none and cannot be one, or is a masked array. A sparse matrix is none, nor is a
        table with a column of objects.
    """
    if isinstance(array, np.ma.MaskedArray):
        expected = f"an array without one, such as {name}.filled(0)"
        raise ArgumentError(name, "a masked array, whose mask would be ignored", expected)
    try:
        host = np.asarray(array)
    except (TypeError, ValueError, RuntimeError) as error:
        expected = f"an array of numbers; of a tensor {name}.detach().float()"
        raise ArgumentError(name, f"a {type(array).__name__}: {error}", expected) from error
    if host.dtype == object and not isinstance(array, np.ndarray):
        expected = f"an array of numbers: {name}.toarray() of a sparse matrix, "
        expected += f"{name}.to_numpy('float32') of a table"
        raise ArgumentError(name, f"a {type(array).__name__}, of dtype object to NumPy", expected)
    return host


class Operands:
    """What a plan takes and gives, checked by name; it knows sizes, not the plan."""

    def __init__(self, plan: Plan, device: Device) -> None:
        self.operation, self.sizes = plan.operation, plan.sizes
        self.storage, self.zero_outputs = plan.storage, plan.zero_outputs
        self.arithmetic = plan.arithmetic
        self._device, self.array_type = device, device.array_type
        self._values, self._order = plan.provenance.values, plan.layout.nonzero_order
        self._placed_values: Any = None
        self._ordered_values: Any = None
        self._defaults: dict[str, Any] = {}
        operands = self.operation.operands.items()
        self.shapes = {name: operand.shape(self.sizes) for name, operand in operands}
        self._of_nonzeros = [one.name for one in self.operation.inputs if one.of_nonzeros]
        self._about = f"a matrix of {plan.pattern.shape[0]} x {plan.pattern.shape[1]}"

    def inputs(self, operands: Mapping[str, Any]) -> Arrays:
        """Return the inputs as contiguous arrays of the operands' shapes and dtypes.

        Weights stay in the caller's order; see `ordered`. NaN and infinity in dense inputs pass
        through, as in SciPy.

        Raises
        ------
        ArgumentError
            If a shape or a dtype does not fit, another device's array is given, an input with an
            entry for each nonzero is on the host and not finite, or a number is out of range.
        """
        inputs = self.operation.inputs
        return {one.name: self._input(one, operands.get(one.name)) for one in inputs}

    def _input(self, operand: Operand, array: Any) -> Any:
        device, name = self._device, operand.name
        if operand.default is not None:
            return self._setting(operand, array)
        graphs = array is None or array is self._values or array is self._placed_values
        if operand.weights and self._values is not None and graphs:
            return self.graph_values()
        exact: Any = array if type(array) is self.array_type else None
        dtype = operand.dtype
        fits = exact is not None and exact.dtype == dtype and exact.shape == self.shapes[name]
        on_host_here = self.array_type is np.ndarray
        if fits and not (operand.of_nonzeros and on_host_here):
            return device.contiguous(array, dtype)
        if array is None:
            raise ArgumentError(name, "it is missing", f"an array: {', '.join(operand.axes)}")
        local = not on_host_here and device.owns(array)
        if not local and is_device_array(array):
            raise ArgumentError(name, "it lies on the GPU", "an array on the host, as from X.get()")
        array = device.adopt(array) if local else on_host(name, array)
        real = dtype == _FLOAT32
        if array.dtype.kind not in "biuf" or not (real or array.dtype == dtype):
            expected = "boolean, integer or real floating point" if real else str(dtype)
            raise ArgumentError(name, f"dtype {array.dtype}", expected)
        shape = self.shapes[name]
        if array.shape != shape:
            sizes = zip(operand.axes, shape, strict=True)
            expected = ", ".join(f"{axis} = {size}" for axis, size in sizes)
            problem = f"shape {array.shape} for {self._about}"
            raise ArgumentError(name, problem, f"shape {shape}: {expected}")
        if local:
            return device.contiguous(array, dtype)
        with np.errstate(over="ignore"):  # what float32 cannot hold passes as infinity
            array = np.ascontiguousarray(array, dtype)
        if operand.of_nonzeros and not np.isfinite(array).all():
            raise ArgumentError(name, "some are NaN or infinite", "finite ones only")
        return device.shared(array)

    def graph_values(self) -> Any:
        """Return the graph's own weights where the device reads them; None if there are none."""
        if self._placed_values is None and self._values is not None:
            self._placed_values = self._device.shared(self._values)
        return self._placed_values

    def _setting(self, operand: Operand, value: Any) -> Any:
        """Return a number, or device scalars as an array, which are not read here."""
        device, name = self._device, operand.name
        if operand.axes and self.array_type is not np.ndarray and device.owns(value):
            array = device.adopt(value)
            if array.shape != self.shapes[name] or array.dtype != operand.dtype:
                problem = f"an array of shape {array.shape}, dtype {array.dtype}"
                expected = f"shape {self.shapes[name]}, dtype {operand.dtype}"
                raise ArgumentError(name, problem, expected)
            return array
        setting = operand.setting(value)
        if not operand.axes:
            return setting
        if value is not None:
            return device.to_device(setting)
        if name not in self._defaults:  # placed once: a captured run may not copy it
            self._defaults[name] = device.to_device(setting)
        return self._defaults[name]

    def ordered(self, inputs: Arrays) -> Arrays:
        """Bring what has an entry for each nonzero into the order in which kernels walk."""
        if self._order is None or not self._of_nonzeros:
            return inputs
        return {**inputs, **{name: self._in_order(inputs[name]) for name in self._of_nonzeros}}

    def _in_order(self, array: Any) -> Any:
        device = self._device
        if self._placed_values is None or array is not self._placed_values:
            return device.take(array, device.shared(self._order))
        if self._ordered_values is None:  # the graph's own weights never change
            self._ordered_values = device.take(array, device.shared(self._order))
        return self._ordered_values

    def rounded(self, inputs: Arrays) -> Arrays:
        """Return host inputs rounded as kernels store them and as their arithmetic does."""
        inputs = self.operation.rounded(inputs, self.storage)
        rounding = _ROUNDING.get(self.arithmetic)
        return {name: rounding(array) for name, array in inputs.items()} if rounding else inputs

    def outputs(
        self,
        out: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
        device: Device | None = None,
    ) -> Arrays:
        """Return the outputs, those that are missing new and uninitialised.

        `device` is where they are to be, if not where the plan runs.

        Raises
        ------
        ArgumentError
            If one is not a contiguous, writable array of the result's shape and dtype, or overlaps
            an input.
        """
        device, outputs = device or self._device, {}
        for operand in self.operation.outputs:
            shape = self.shapes[operand.name]
            array = (out or {}).get(operand.name)
            if array is None:
                outputs[operand.name] = device.empty(shape, operand.dtype)
                continue
            own_shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
            flags = getattr(array, "flags", None)
            readonly = not getattr(flags, "writeable", True)
            fits = own_shape == shape and dtype == operand.dtype and not readonly
            fits = fits and not isinstance(array, np.ma.MaskedArray)
            fits = fits and isinstance(array, device.array_type)
            if not (fits and getattr(flags, "c_contiguous", True)):
                problem = f"a {'read-only ' * readonly}{type(array).__name__} of shape {own_shape}"
                library = device.array_type.__module__.partition(".")[0]
                kind = f"{operand.dtype} {library} array of shape {shape}"
                expected = f"a writable, C-contiguous {kind}"
                raise ArgumentError("out", f"{problem}, dtype {dtype}", expected)
            for name, other in (inputs or {}).items():
                if isinstance(other, device.array_type) and device.overlap(array, other):
                    raise ArgumentError("out", f"it overlaps {name}", "memory of its own")
            outputs[operand.name] = array
        return outputs
