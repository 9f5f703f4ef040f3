"""What an executor is: it makes a plan ready once, then runs it on operands as often as asked."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError, DeviceUnavailable
from accelviz.plans import Call, LibraryCall, Operand, Plan

#: Larger than the last cache of most processors.
HOST_FLUSH_BYTES = 256 << 20

Arrays = dict[str, Any]


class ReadyPlan(Protocol):
    """A plan whose arrays are where the device wants them and whose code is compiled.

    It refers to the plan's arrays and not to the plan, which holds it. `setup_seconds` is what the
    device's own preprocessing took, without compiling, and `variant` what the device chose where
    the plan leaves a choice.
    """

    setup_seconds: Mapping[str, float]
    variant: str

    def placed(self, operands: Mapping[str, Any]) -> Arrays:
        """Return inputs as the plan wants them: float32, contiguous, where the device reads."""

    def outputs(self) -> Arrays:
        """Return new, uninitialised outputs where the device writes them."""

    def run(self, operands: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> Arrays:
        """Run the plan, and return its outputs by name, in the caller's order.

        `operands` has the inputs by name; weights that are missing or None are the graph's own.
        """

    def seconds(
        self, operands: Mapping[str, Any], repeats: int, warmup: int, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Time `repeats` runs by the device's own clock, shape (repeats,), after warming up.

        A run is all that `run` does between inputs and outputs in place: clearing included,
        allocation and transfers excluded. With `cold`, the last cache before memory is flushed
        before each of them.
        """


class Limits(Protocol):
    """What a device can do, measured in the same run as the plans it is held against.

    `launch_seconds` is the time of a launch that does nothing, and `copy_bandwidth` the bytes per
    second of a large copy, read plus written.
    """

    launch_seconds: float
    copy_bandwidth: float

    def gather_bandwidth(self, rows: int, n_cols: int) -> float:
        """Bytes per second of reading random whole rows of a float32 matrix of that shape."""


class Device(Protocol):
    """A device that plans run on.

    `name` is what `device=` calls it; `timed` says whether its times are those of hardware.
    """

    name: str
    timed: bool

    def unavailable_reason(self, plan: Plan | None = None) -> str | None:
        """Say in one sentence why this device cannot be used here (for a plan), or None."""

    def hardware(self) -> dict[str, str]:
        """Name what runs: `hardware`, `driver`, `cuda`, `cupy`; what does not apply is empty."""

    def to_device(self, array: npt.NDArray[Any]) -> Any:
        """Return an array where the device's plans read it."""

    def limits(self) -> Limits | None:
        """Measure what the device can do, or None where that says nothing about its plans."""

    def prepare(self, plan: Plan) -> ReadyPlan:
        """Compile and move what `plan` needs.

        Raises
        ------
        DeviceUnavailable
            If the device cannot be used here, or the plan has nothing for it.
        KernelError
            If a kernel does not compile.
        """


def ready(plan: Plan, executor: Device) -> ReadyPlan:
    """Return the plan made ready on a device, which the plan keeps."""
    return plan.ready.get(executor.name, lambda: executor.prepare(plan))


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
    every = [(part, call) for part in plan.parts for call in part.calls]
    return tuple((part, call) for part, call in every if isinstance(call, Call))


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
        right = f"an array without one, such as {name}.filled(0)"
        raise ArgumentError(name, "a masked array, whose mask would be ignored", right)
    try:
        found = np.asarray(array)
    except (TypeError, ValueError, RuntimeError) as error:
        right = f"an array of numbers; of a tensor {name}.detach().float()"
        raise ArgumentError(name, f"a {type(array).__name__}: {error}", right) from error
    if found.dtype == object and not isinstance(array, np.ndarray):
        right = f"an array of numbers: {name}.toarray() of a sparse matrix, "
        right += f"{name}.to_numpy('float32') of a table"
        raise ArgumentError(name, f"a {type(array).__name__}, of dtype object to NumPy", right)
    return found


def where_it_lies(name: str, array: Any) -> Any:
    """Return an array of a GPU as it is, and any other as `on_host` does."""
    return array if is_device_array(array) else on_host(name, array)


def taken_rows(array: Any, order: Any) -> Any:
    """Return `array[order]` on the host."""
    return np.take(array, order, axis=0)


class Operands:
    """What a plan takes and gives, checked by name; it knows sizes, not the plan.

    `xp` is NumPy or CuPy: where the arrays have to be. `place` brings an array there, of which the
    copy may be kept, and `take(array, order)` gives `array[order]`.
    """

    def __init__(
        self,
        plan: Plan,
        xp: Any = np,
        place: Callable[[Any], Any] = np.asarray,
        take: Callable[[Any, Any], Any] = taken_rows,
    ) -> None:
        self.operation, self.sizes = plan.operation, plan.sizes
        self.storage, self.zero_outputs = plan.storage, plan.zero_outputs
        self.arithmetic = plan.arithmetic
        self._xp, self._place, self._take = xp, place, take
        self._values, self._order = plan.provenance.values, plan.layout.nonzero_order
        self._own: Any = None
        self._own_walked: Any = None
        self._defaults: dict[str, Any] = {}
        operands = self.operation.operands.items()
        self._shapes = {name: operand.shape(self.sizes) for name, operand in operands}
        self._ordered = [each.name for each in self.operation.inputs if each.of_nonzeros]
        self._about = f"a matrix of {plan.pattern.shape[0]} x {plan.pattern.shape[1]}"

    def inputs(self, operands: Mapping[str, Any]) -> Arrays:
        """Return the inputs as contiguous float32 arrays of the right shapes.

        Weights stay in the caller's order; see `walked`. NaN and infinity in dense inputs pass
        through, as in SciPy.

        Raises
        ------
        ArgumentError
            If a shape or a dtype does not fit, a GPU's array is to be used on the host, an input
            with an entry for each nonzero is on the host and not finite, or a number is out of
            range.
        """
        inputs = self.operation.inputs
        return {each.name: self._input(each, operands.get(each.name)) for each in inputs}

    def _input(self, operand: Operand, array: Any) -> Any:
        xp, name = self._xp, operand.name
        if operand.default is not None:
            return self._setting(operand, array)
        given = array is not None and array is not self._values and array is not self._own
        if operand.weights and self._values is not None and not given:
            self._own = self._place(self._values) if self._own is None else self._own
            return self._own
        ready = type(array) is xp.ndarray and array.dtype == np.float32
        ready = ready and array.flags.c_contiguous and array.shape == self._shapes[name]
        if ready and not (operand.of_nonzeros and xp is np):
            return array
        if array is None:
            raise ArgumentError(name, "it is missing", f"an array: {', '.join(operand.axes)}")
        there = is_device_array(array)
        if there and xp is np:
            raise ArgumentError(name, "it lies on the GPU", "an array on the host, as from X.get()")
        array = xp.asarray(array) if there else on_host(name, array)
        if array.dtype.kind not in "biuf":
            right = "boolean, integer or real floating point"
            raise ArgumentError(name, f"dtype {array.dtype}", right)
        wanted = self._shapes[name]
        if array.shape != wanted:
            right = ", ".join(f"{axis} = {self.sizes[axis]}" for axis in operand.axes)
            what = f"shape {array.shape} for {self._about}"
            raise ArgumentError(name, what, f"shape {wanted}: {right}")
        if operand.of_nonzeros and not there:
            with np.errstate(over="ignore"):
                array = array.astype(np.float32, copy=False)
            if not np.isfinite(array).all():
                raise ArgumentError(name, "some are NaN or infinite", "finite ones only")
        if not there and array.dtype == np.float32 and array.flags.c_contiguous:
            return self._place(array)
        with np.errstate(over="ignore"):  # as infinity does, what float32 cannot hold passes
            return xp.ascontiguousarray(xp.asarray(array), dtype=np.float32)

    def _setting(self, operand: Operand, value: Any) -> Any:
        """Return a number, or words as an array; words that lie on the GPU are not read here."""
        if operand.axes and is_device_array(value) and self._xp is not np:
            array = self._xp.asarray(value)
            if array.shape != self._shapes[operand.name] or array.dtype != operand.dtype:
                what = f"an array of shape {array.shape}, dtype {array.dtype}"
                right = f"shape {self._shapes[operand.name]}, dtype {operand.dtype}"
                raise ArgumentError(operand.name, what, right)
            return array
        found = operand.setting(value)
        if not operand.axes:
            return found
        if value is not None:
            return self._place(found)
        if operand.name not in self._defaults:  # placed once: a recorded run may not copy it
            self._defaults[operand.name] = self._place(found)
        return self._defaults[operand.name]

    def walked(self, inputs: Arrays) -> Arrays:
        """Bring what has an entry for each nonzero into the order in which kernels walk."""
        if self._order is None or not self._ordered:
            return inputs
        return {**inputs, **{name: self._in_order(inputs[name]) for name in self._ordered}}

    def _in_order(self, array: Any) -> Any:
        if self._own is None or array is not self._own:
            return self._take(array, self._place(self._order))
        if self._own_walked is None:  # the graph's own weights never change
            self._own_walked = self._take(array, self._place(self._order))
        return self._own_walked

    def outputs(
        self,
        out: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
        xp: Any = None,
    ) -> Arrays:
        """Return the outputs, those that are missing new and uninitialised.

        `xp` is where they are to be, if not where the plan runs.

        Raises
        ------
        ArgumentError
            If one is not a contiguous, writable float32 array of the result's shape, or overlaps
            an input.
        """
        xp, found = xp or self._xp, {}
        for operand in self.operation.outputs:
            shape = self._shapes[operand.name]
            array = (out or {}).get(operand.name)
            if array is None:
                found[operand.name] = xp.empty(shape, dtype=np.float32)
                continue
            found_shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
            readonly = not getattr(getattr(array, "flags", None), "writeable", True)
            fits = found_shape == shape and dtype == np.float32 and not readonly
            fits = fits and not isinstance(array, np.ma.MaskedArray)
            if not (isinstance(array, xp.ndarray) and fits and array.flags.c_contiguous):
                what = f"a {'read-only ' * readonly}{type(array).__name__} of shape {found_shape}"
                right = f"a writable, C-contiguous float32 {xp.__name__} array of shape {shape}"
                raise ArgumentError("out", f"{what}, dtype {dtype}", right)
            for name, other in (inputs or {}).items():
                if isinstance(other, xp.ndarray) and _overlap(array, other):
                    raise ArgumentError("out", f"it overlaps {name}", "memory of its own")
            found[operand.name] = array
        return found


def _overlap(one: Any, other: Any) -> bool:
    """Tell whether two arrays of one device have memory in common, or lie inside each other."""
    if isinstance(one, np.ndarray):
        return np.may_share_memory(one, other)
    if not other.flags.c_contiguous:  # as nothing is that has been placed
        return True
    first, second = one.data.ptr, other.data.ptr
    return bool(first < second + other.nbytes and second < first + one.nbytes)


class HostDevice:
    """What executors on the host share; see `Device`."""

    def to_device(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the array itself."""
        return array

    def limits(self) -> None:
        """Return None: their times are held against no limit of the hardware."""

    def _named(self, hardware: str) -> dict[str, str]:
        return {"hardware": hardware, "driver": "", "cuda": "", "cupy": ""}


class HostPlan:
    """What plans ready on the host share; see `ReadyPlan`.

    Raises
    ------
    ArgumentError
        If the plan's arrays lie on the GPU.
    """

    variant = ""

    def __init__(self, plan: Plan) -> None:
        if any(is_device_array(array) for array in plan.arrays.values()):
            what = f"the arrays of {plan.name!r} lie on the GPU"
            raise ArgumentError("plan", what, "device='cuda'")
        self.setup_seconds: Mapping[str, float] = {}
        self._operands = Operands(plan)
        self.placed, self.outputs = self._operands.inputs, self._operands.outputs

    def _timed(
        self, run: Callable[[], object], repeats: int, warmup: int, *, cold: bool
    ) -> npt.NDArray[np.float64]:
        times = np.empty(warmup + repeats)
        flush = np.empty(HOST_FLUSH_BYTES if cold else 0, np.uint8)
        for i in range(times.size):
            flush.fill(i)
            start = time.perf_counter()
            run()
            times[i] = time.perf_counter() - start
        return times[warmup:]
