"""Plans prepared on the GPU: launches of their kernels through CuPy, or calls of a library."""

from __future__ import annotations

import contextlib
import functools
import math
import threading
from array import array as packed
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from accelviz.devices.base import Device
from accelviz.devices.cuda import cublas, cusparse, state
from accelviz.devices.cuda.arrays import on_device
from accelviz.devices.cuda.compiler import compiled
from accelviz.devices.cuda.state import import_cupy
from accelviz.devices.cuda.tensor_maps import tensor_map
from accelviz.devices.cuda.timing import positive
from accelviz.devices.operands import Arrays, is_device_array
from accelviz.devices.ready_plan import ReadyPlan, kernels_of
from accelviz.errors import DeviceUnavailable, KernelError
from accelviz.plans import Call, LibraryCall, Plan
from accelviz.plans.storage import stored

if TYPE_CHECKING:
    from accelviz.devices.cuda.device import CudaDevice

#: Alignment in bytes that the widest load requires.
VECTOR_BYTES = 16
_FLOAT32 = np.dtype(np.float32)
#: Device of NumPy arrays, for outputs on the host.
_HOST = Device()


class KernelLaunch:
    """A launch of one kernel of a plan, with the plan's arrays on the GPU.

    The driver reads the arguments from 8-byte cells, through an array of the cells' addresses. Both
    are allocated once; between launches only the cells of the operands change.
    """

    def __init__(self, plan: Plan, call: Call, *options: str) -> None:
        spec, launch = call.kernel, call.launch
        assert spec is not None
        shared, percent = launch.dynamic_shared_bytes, launch.shared_percent
        self.module, self.function = compiled(
            spec, *options, shared_bytes=shared, shared_percent=percent
        )
        self.is_empty = 0 in launch.grid
        self._maps = call.tensor_maps
        arrays = plan.arrays.items()
        self._arrays = {name: on_device(array) for name, array in arrays if name not in self._maps}
        self._names = spec.arguments
        self._sizes = *launch.grid, *launch.block, shared
        self._cells, self._addresses, self._launch = self._prepared(self._arrays)
        constant = self._arrays.keys() | self._maps.keys()
        names = enumerate(spec.arguments)
        self._operands = [(i, name) for i, name in names if name not in constant]
        self._lock = threading.Lock()

    def _prepared(self, values: Arrays) -> tuple[packed[int], packed[int], Callable[[int], None]]:
        """Return (cells filled from `values`, their addresses, function that launches)."""
        cells = packed("Q", [_cell(values[name]) if name in values else 0 for name in self._names])
        start, _ = cells.buffer_info()
        addresses = packed("Q", [start + 8 * i for i in range(len(cells))])
        sizes, parameters = self._sizes, addresses.buffer_info()[0]
        driver_launch, kernel = import_cupy().cuda.driver.launchKernel, self.function.kernel

        # The default argument keeps `addresses` alive.
        def launch(stream: int, _addresses: packed[int] = addresses) -> None:
            driver_launch(kernel.ptr, *sizes, stream, parameters, 0)

        return cells, addresses, launch

    def bound(self, operands: Arrays, source: str, target: str) -> tuple[Any, ...]:
        """Bind all operands but two; return (launch, cells, cells of source, of target, lock)."""
        cells, _, launch = self._prepared(self._arrays | operands)
        sources, targets = (
            [i for i, name in enumerate(self._names) if name == operand]
            for operand in (source, target)
        )
        return launch, cells, sources, targets, threading.Lock()

    def __call__(self, operands: Arrays, stream: int) -> None:
        """Launch the kernel on a stream."""
        if self.is_empty:
            return
        with self._lock:
            for position, name in self._operands:
                self._cells[position] = _cell(operands[name])
            maps = {
                name: tensor_map(operands[described.operand], described)
                for name, described in self._maps.items()
            }
            for name, value in maps.items():
                self._addresses[self._names.index(name)] = value.ctypes.data
            self._launch(stream)


def _cell(value: Any) -> int:
    """Return an argument as 8 bytes: the address of an array, or the bytes of a number."""
    if value is None:  # a null pointer
        return 0
    if isinstance(value, np.generic):
        return int.from_bytes(value.tobytes(), "little")
    pointer: int = value.data.ptr
    return pointer


def _address(array: Any, array_type: type, shape: tuple[int, ...]) -> int:
    """Return the address of an array that kernels can use without conversion, else 0."""
    if type(array) is not array_type:
        return 0
    typed: Any = array
    if typed.dtype != _FLOAT32 or typed.shape != shape or not typed.flags.c_contiguous:
        return 0
    address: int = typed.data.ptr
    return 0 if address % VECTOR_BYTES else address


@dataclass
class _SingleInput:
    """Precomputed data of `CudaPlan.run_single`, for plans with one dense input and one output."""

    names: tuple[str, str]  # of the dense input and the output
    weights: Arrays
    array_type: type
    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    bytes: int
    out_bytes: int
    zero_output: bool
    launches: dict[int, list[Any]] = field(default_factory=dict)  # `KernelLaunch.bound` by stream


class CudaPlan(ReadyPlan):
    """A plan prepared on the GPU. The main kernel is compiled with further NVRTC `options`."""

    takes_device_arrays = True

    def __init__(self, plan: Plan, device: CudaDevice, *options: str) -> None:
        self._cupy, self._options, self.errors = import_cupy(), options, _Errors(plan)
        dense = plan.operation.dense
        self._gathered = [operand.name for operand in dense if operand.gathered]
        # Other matrices; kernels load their rows as vectors, which must be aligned.
        self._matrices = [one.name for one in dense if one.axes[1:] and not one.gathered]
        self._zeroed_sizes = plan.workspaces("zeroed_workspace")
        self._workspace_sizes = plan.workspaces("workspace")
        self._workspaces_by_stream: dict[int, Arrays] = {}
        super().__init__(plan, device)

    def _compile(self, plan: Plan) -> None:
        first = plan.calls[0]
        self.calls: tuple[Callable[[Arrays, int], None], ...]
        if isinstance(first, LibraryCall) and first.library == "cusparse":
            dense: Arrays = {}
            for operand in plan.operation.dense:
                shape = self.operands.shapes[operand.name]
                dense[operand.name] = positive(self._cupy, math.prod(shape)).reshape(shape)
            trial = self.inputs(self.placed(dense))
            call = cusparse.CALLS[plan.operation.name](plan, trial, self.outputs())
            self.setup_seconds, self.variant = call.setup_seconds, call.variant
            self.calls = (call,)
            return
        if not isinstance(first, LibraryCall):
            kernels_of(plan, "cuda")  # raises an error if a call has no kernel
        self.calls = tuple(
            functools.partial(cublas.call, call)
            if isinstance(call, LibraryCall)
            else KernelLaunch(part, call, *(self._options if i == plan.layout.main else ()))
            for i, (part, call) in enumerate(plan.part_calls)
        )

    def inputs(self, placed: Arrays) -> Arrays:
        """Return placed inputs in the kernels' order and storage type, aligned for vector loads."""
        inputs = dict(self.operands.ordered(placed))
        for name in self._gathered:
            inputs[name] = _aligned(stored(inputs[name], self.operands.storage, self._cupy))
        for name in self._matrices:
            inputs[name] = _aligned(inputs[name])
        return inputs

    def launch(self, inputs: Arrays, outputs: Arrays) -> None:
        """Zero the plan's `zero_outputs` and launch its calls on the current stream."""
        for name in self.operands.zero_outputs:
            if outputs[name].nbytes:
                outputs[name].data.memset_async(0, outputs[name].nbytes)
        self.launch_on(self._cupy.cuda.get_current_stream().ptr, {**inputs, **outputs})

    def launch_on(self, stream: int, operands: Arrays) -> None:
        """Launch the plan's calls; `operands` also has the outputs, zeroed where that is needed."""
        if self._zeroed_sizes or self._workspace_sizes:
            operands = operands | self._workspaces(stream)
        for call in self.calls:
            call(operands, stream)

    def _workspaces(self, stream: int) -> Arrays:
        """Return the workspaces of a stream; streams do not share them."""
        if stream not in self._workspaces_by_stream:
            zeroed, uninitialised = self._zeroed_sizes.items(), self._workspace_sizes.items()
            workspaces = {name: self._cupy.zeros(*size) for name, size in zeroed}
            workspaces |= {name: self._cupy.empty(*size) for name, size in uninitialised}
            self._workspaces_by_stream[stream] = workspaces
        return self._workspaces_by_stream[stream]

    def run(self, operands: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> Arrays:
        """Run the plan; results are on the GPU if a dense input is, else on the host."""
        dense = self.operands.operation.dense
        on_gpu = any(is_device_array(operands[operand.name]) for operand in dense)
        with self.errors:
            inputs = self.inputs(self.operands.inputs(operands))
            if on_gpu:
                outputs = self.operands.outputs(out, inputs)
                aligned = {name: _aligned(array) for name, array in outputs.items()}
                self.launch(inputs, aligned)
                for name, array in outputs.items():
                    if array is not aligned[name]:
                        array[...] = aligned[name]
                return outputs
            host = self.operands.outputs(out, operands, _HOST)
            # The content of `out` is copied, too: elements that the kernel misses keep it.
            copy = self._cupy.asarray if out else self._cupy.empty_like
            outputs = {name: copy(array) for name, array in host.items()}
            self.launch(inputs, outputs)
            return {name: outputs[name].get(out=array) for name, array in host.items()}

    def run_single(self, X: Any, out: Any) -> Any:
        """Run on the graph's weights and one dense input; return `out`, or a new output.

        Returns None, without a run, if an array needs a conversion or the arrays overlap; `run`
        works for all. Minimal host time matters: on small graphs it exceeds the GPU's time.
        """
        single = self._single_input
        source = _address(X, single.array_type, single.shape) if single is not None else 0
        if single is None or not source:
            return None
        if out is None:
            out = self._cupy.empty(single.out_shape, _FLOAT32)
            target = out.data.ptr
        else:
            target = _address(out, single.array_type, single.out_shape)
            if source < target + single.out_bytes and target < source + single.bytes:
                return None
        if not target:
            return None
        stream = self._cupy.cuda.get_current_stream().ptr
        try:
            launches = single.launches.get(stream) or self._bound(single, stream)
            if single.zero_output and single.out_bytes:
                out.data.memset_async(0, single.out_bytes)
            for launch, cells, sources, targets, lock in launches:
                with lock:
                    for position in sources:
                        cells[position] = source
                    for position in targets:
                        cells[position] = target
                    launch(stream)
        except Exception:
            with self.errors:
                raise
        return out

    @functools.cached_property
    def _single_input(self) -> _SingleInput | None:
        """Return the data of `run_single`, or None if the plan requires `run`."""
        operands = self.operands
        only_kernels = all(isinstance(call, KernelLaunch) for call in self.calls)
        single = operands.single() if only_kernels else None
        if single is None:
            return None
        source, target, weights = single
        shape, out_shape = operands.shapes[source], operands.shapes[target]
        return _SingleInput(
            (source, target),
            weights,
            *(self.device.array_type, shape, out_shape),
            *(4 * math.prod(shape), 4 * math.prod(out_shape)),
            zero_output=target in operands.zero_outputs,
        )

    def _bound(self, single: _SingleInput, stream: int) -> list[Any]:
        """Return the launches of `run_single` on a stream, with all but two operands bound."""
        operands = {**single.weights, **self._workspaces(stream)}
        kernels = (call for call in self.calls if isinstance(call, KernelLaunch))
        calls = [call for call in kernels if not call.is_empty]
        single.launches[stream] = [call.bound(operands, *single.names) for call in calls]
        return single.launches[stream]


class _Errors(contextlib.AbstractContextManager[None]):
    """Converts CuPy's exceptions to the package's; faster than a generator-based manager."""

    def __init__(self, plan: Plan) -> None:
        self._name, self._about = plan.name, repr(plan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        cupy, name = import_cupy(), self._name
        if isinstance(error, cupy.cuda.memory.OutOfMemoryError):
            problem = f"{state.one_line(error)} for {self._about}"
            fix = "use fewer columns at a time, or device='cpu'"
            raise DeviceUnavailable("device 'cuda'", problem, fix) from error
        runtime = cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError
        if isinstance(error, runtime):
            raise KernelError(name, f"it failed on the GPU: {error}") from error


def _aligned(array: Any) -> Any:
    """Return the array, or a copy if its address is not aligned for vector loads."""
    return array.copy() if array.data.ptr % VECTOR_BYTES else array
