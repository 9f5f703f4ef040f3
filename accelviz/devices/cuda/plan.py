"""A plan on the GPU: its kernels launched through CuPy, or a library called."""

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
from accelviz.devices.cuda.compiler import compiled, config_hint
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

#: Alignment of the widest load.
VECTOR_BYTES = 16
_FLOAT32 = np.dtype(np.float32)
#: Owns NumPy's arrays, for outputs on the host.
_HOST = Device()


class KernelLaunch:
    """A launch of a plan's kernel, whose arrays are on the GPU.

    The driver reads arguments from cells. Between launches only the operands' cells change.
    """

    def __init__(self, plan: Plan, call: Call, *options: str) -> None:
        spec, launch = call.kernel, call.launch
        assert spec is not None
        shared, percent = launch.dynamic_shared_bytes, launch.shared_percent
        self.module, self.function = compiled(
            spec, *options, shared_bytes=shared, shared_percent=percent
        )
        self.runs = 0 not in launch.grid
        self._maps = call.tensor_maps
        arrays = plan.arrays.items()
        self._held = {name: on_device(array) for name, array in arrays if name not in self._maps}
        self._names = spec.arguments
        self._sizes = *launch.grid, *launch.block, shared
        self._cells, self._addresses, self._launch = self._prepared(self._held)
        fixed = self._held.keys() | self._maps.keys()
        names = enumerate(spec.arguments)
        self._operands = [(i, name) for i, name in names if name not in fixed]
        self._lock = threading.Lock()

    def _prepared(self, held: Arrays) -> tuple[packed[int], packed[int], Callable[[int], None]]:
        """Return cells that have the held arrays, their addresses, and a launch that reads them."""
        cells = packed("Q", [_cell(held[name]) if name in held else 0 for name in self._names])
        start, _ = cells.buffer_info()
        addresses = packed("Q", [start + 8 * i for i in range(len(cells))])
        sizes, parameters = self._sizes, addresses.buffer_info()[0]
        driver_launch, kernel = import_cupy().cuda.driver.launchKernel, self.function.kernel

        def launch(stream: int, _addresses: packed[int] = addresses) -> None:
            driver_launch(kernel.ptr, *sizes, stream, parameters, 0)

        return cells, addresses, launch

    def bound(self, held: Arrays, source: str, target: str) -> tuple[Any, ...]:
        """Return a separate launch, its cells, the positions of two operands there, and a lock."""
        cells, _, launch = self._prepared(self._held | held)
        sources, targets = (
            [i for i, name in enumerate(self._names) if name == operand]
            for operand in (source, target)
        )
        return launch, cells, sources, targets, threading.Lock()

    def __call__(self, operands: Arrays, stream: int) -> None:
        """Launch the kernel on a stream."""
        if self.runs:
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
    """Return an argument's 8 bytes: an array's address, or a number."""
    if value is None:  # a null pointer
        return 0
    if isinstance(value, np.generic):
        return int.from_bytes(value.tobytes(), "little")
    pointer: int = value.data.ptr
    return pointer


def _address(array: Any, kind: type, shape: tuple[int, ...]) -> int:
    """Return the address of an array that kernels take as it is, else 0."""
    if type(array) is not kind:
        return 0
    ours: Any = array
    if ours.dtype != _FLOAT32 or ours.shape != shape or not ours.flags.c_contiguous:
        return 0
    address: int = ours.data.ptr
    return 0 if address % VECTOR_BYTES else address


@dataclass
class _Single:
    """The data of `run_single`: names and sizes of input and output, launches by stream."""

    names: tuple[str, str]
    inputs: Arrays
    array_type: type
    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    bytes: int
    out_bytes: int
    zero_output: bool
    launches: dict[int, list[Any]] = field(default_factory=dict)


class CudaPlan(ReadyPlan):
    """A plan on the GPU, ready to run.

    The main kernel is compiled with `options`, the others without.
    """

    takes_device_arrays = True

    def __init__(self, plan: Plan, device: CudaDevice, *options: str) -> None:
        self._cupy, self._options, self.errors = import_cupy(), options, _Errors(plan)
        dense = plan.operation.dense
        self._gathered = [operand.name for operand in dense if operand.gathered]
        # Kernels move vectors of whatever has rows.
        self._rows = [one.name for one in dense if one.axes[1:] and not one.gathered]
        self._zeroed_sizes = plan.workspaces("zeroed_workspace")
        self._workspace_sizes = plan.workspaces("workspace")
        self._of_streams: dict[int, Arrays] = {}
        super().__init__(plan, device)

    def _compile(self, plan: Plan) -> None:
        first = plan.calls[0]
        self.calls: tuple[Callable[[Arrays, int], None], ...]
        if isinstance(first, LibraryCall) and first.library == "cusparse":
            shapes = {one.name: self.operands.shapes[one.name] for one in plan.operation.dense}
            dense = {
                name: positive(self._cupy, math.prod(shape)).reshape(shape)
                for name, shape in shapes.items()
            }
            trial = self.inputs(self.placed(dense))
            call = cusparse.CALLS[plan.operation.name](plan, trial, self.outputs())
            self.setup_seconds, self.variant = call.setup_seconds, call.variant
            self.calls = (call,)
            return
        if not isinstance(first, LibraryCall):
            kernels_of(plan, "cuda")  # each call has one
        self.calls = tuple(
            functools.partial(cublas.call, call)
            if isinstance(call, LibraryCall)
            else KernelLaunch(part, call, *(self._options if i == plan.layout.main else ()))
            for i, (part, call) in enumerate(plan.part_calls)
        )

    def inputs(self, placed: Arrays) -> Arrays:
        """Return placed inputs in the kernels' order and storage, aligned for vectors."""
        inputs = dict(self.operands.ordered(placed))
        for name in self._gathered:
            inputs[name] = _aligned(stored(inputs[name], self.operands.storage, self._cupy))
        for name in self._rows:
            inputs[name] = _aligned(inputs[name])
        return inputs

    def launch(self, inputs: Arrays, outputs: Arrays) -> None:
        """Zero outputs, where the plan needs it, and launch the calls, on the current stream."""
        for name in self.operands.zero_outputs:
            if outputs[name].nbytes:
                outputs[name].data.memset_async(0, outputs[name].nbytes)
        stream = self._cupy.cuda.get_current_stream().ptr
        operands = {**inputs, **outputs}
        if self._zeroed_sizes or self._workspace_sizes:
            operands.update(self._workspaces(stream))
        for call in self.calls:
            call(operands, stream)

    def _workspaces(self, stream: int) -> Arrays:
        """Return workspaces that no launch on another stream uses."""
        if stream not in self._of_streams:
            zeroed, others = self._zeroed_sizes.items(), self._workspace_sizes.items()
            workspaces = {name: self._cupy.zeros(*size) for name, size in zeroed}
            workspaces |= {name: self._cupy.empty(*size) for name, size in others}
            self._of_streams[stream] = workspaces
        return self._of_streams[stream]

    def run(self, operands: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> Arrays:
        """Run the plan; the results are on the GPU if a dense input is; see `ReadyPlan`."""
        dense = self.operands.operation.dense
        local = any(is_device_array(operands[operand.name]) for operand in dense)
        with self.errors:
            inputs = self.inputs(self.operands.inputs(operands))
            if local:
                outputs = self.operands.outputs(out, inputs)
                aligned = {name: _aligned(array) for name, array in outputs.items()}
                self.launch(inputs, aligned)
                for name, array in outputs.items():
                    if array is not aligned[name]:
                        array[...] = aligned[name]
                return outputs
            host = self.operands.outputs(out, operands, _HOST)
            # A host output's content goes along, so that an element the kernel misses stays seen.
            copy = self._cupy.asarray if out else self._cupy.empty_like
            outputs = {name: copy(array) for name, array in host.items()}
            self.launch(inputs, outputs)
            return {name: outputs[name].get(out=array) for name, array in host.items()}

    def run_single(self, X: Any, out: Any) -> Any:
        """Run on one input and the graph's weights; return `out`, or a new output.

        Returns None unless both are CuPy arrays as the kernels take them. It is short, as for a
        small graph the host needs longer than the GPU.
        """
        single = self._single
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
    def _single(self) -> _Single | None:
        """Return the data of `run_single`, or None where the plan needs `run`."""
        operation, operands = self.operands.operation, self.operands
        dense, outputs = operation.dense, operation.outputs
        others = [one for one in operation.inputs if one not in dense]
        known = all(one.weights for one in others) and operands.storage == "float32"
        kernels = all(isinstance(call, KernelLaunch) for call in self.calls)
        values = operands.graph_values() if known and kernels else None
        if len(dense) != 1 or len(outputs) != 1 or values is None:
            return None
        source, target = dense[0].name, outputs[0].name
        shape, out_shape = operands.shapes[source], operands.shapes[target]
        return _Single(
            (source, target),
            operands.ordered({one.name: values for one in others}),
            *(self.device.array_type, shape, out_shape),
            *(4 * math.prod(shape), 4 * math.prod(out_shape)),
            zero_output=target in operands.zero_outputs,
        )

    def _bound(self, single: _Single, stream: int) -> list[Any]:
        """Return the launches of `run_single` on a stream, complete but for two pointers."""
        held = {**single.inputs, **self._workspaces(stream)}
        calls = [call for call in self.calls if isinstance(call, KernelLaunch)]
        single.launches[stream] = [call.bound(held, *single.names) for call in calls if call.runs]
        return single.launches[stream]


class _Errors(contextlib.AbstractContextManager[None]):
    """Turns what CuPy raises into the project's own exceptions; a generator takes longer."""

    def __init__(self, plan: Plan) -> None:
        self._name, self._about = plan.name, repr(plan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        cupy, name = import_cupy(), self._name
        if isinstance(error, cupy.cuda.compiler.CompileException):
            problem = f"its kernel does not compile:\n{error}"
            raise KernelError(name, problem, config_hint(str(error))) from error
        if isinstance(error, cupy.cuda.memory.OutOfMemoryError):
            problem = f"{state.one_line(error)} for {self._about}"
            fix = "use fewer columns at a time, or device='cpu'"
            raise DeviceUnavailable("device 'cuda'", problem, fix) from error
        runtime = cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError
        if isinstance(error, runtime):
            raise KernelError(name, f"it failed on the GPU: {error}") from error


def _aligned(array: Any) -> Any:
    """Return an array or a copy of it: kernels move vectors, and a view can begin anywhere."""
    return array.copy() if array.data.ptr % VECTOR_BYTES else array
