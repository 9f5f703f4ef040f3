"""The CUDA executor: a plan's kernel launched through CuPy, or a library called."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.base import Arrays, Operands, is_device_array, kernels_of, no_kernel
from accelviz.devices.cuda import cusparse, state
from accelviz.devices.cuda.arrays import gathered, on_device
from accelviz.devices.cuda.compiler import module_of
from accelviz.devices.cuda.state import gpu_state, import_cupy, one_line
from accelviz.devices.cuda.timing import CudaLimits, event_seconds, positive
from accelviz.errors import DeviceUnavailable, KernelError
from accelviz.plans import Call, LibraryCall, Plan
from accelviz.plans.launch import STATIC_SHARED_BYTES
from accelviz.plans.storage import stored

#: Alignment of the widest load.
VECTOR_BYTES = 16


class CudaDevice:
    """Runs plans on the current CUDA device."""

    name = "cuda"
    timed = True

    def unavailable_reason(self, plan: Plan | None = None) -> str | None:
        """Say why there is no usable GPU, or nothing to run on it, or None."""
        found = gpu_state()
        if not found.ready:
            return f"{found.detail}. {found.fix}"
        if plan is None:
            return None
        if isinstance(plan.calls[0], LibraryCall):
            return cusparse.unavailable_reason()
        wanted = max((call.kernel.capability for call in plan.calls if call.kernel), default=0)
        if wanted > int(import_cupy().cuda.Device().compute_capability):
            return f"{plan.name!r} needs a GPU of compute capability {wanted / 10:.1f} or more"
        return no_kernel(plan)

    def hardware(self) -> dict[str, str]:
        """Name the GPU, its driver, the CUDA version of NVRTC and CuPy's version."""
        cupy = import_cupy()
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        driver = state.ask_nvidia_smi("--query-gpu=driver_version", "--format=csv,noheader")
        return {
            "hardware": properties["name"].decode(),
            "driver": driver.partition("\n")[0],  # a line a GPU, all the same
            "cuda": state.nvrtc_version(cupy),
            "cupy": cupy.__version__,
        }

    def to_device(self, array: npt.NDArray[Any]) -> Any:
        """Copy an array to the GPU."""
        return import_cupy().asarray(array)

    def limits(self) -> CudaLimits:
        """Measure launch time, copy and random-gather bandwidth of this GPU, now."""
        return CudaLimits()

    def prepare(self, plan: Plan) -> CudaPlan:
        """Compile the plan's kernels and put its arrays on the GPU, or describe them to a library.

        See `Device`.
        """
        gpu_state().require("device 'cuda'")
        return CudaPlan(plan)


class KernelLaunch:
    """A compiled kernel with its arrays on the GPU; called with operands, it queues the work."""

    def __init__(self, plan: Plan, call: Call, *options: str) -> None:
        spec = call.kernel
        assert spec is not None
        self.module = module_of(spec, *options)
        self.function = self.module.get_function(spec.entry)
        self._arguments = [on_device(plan.arrays.get(name)) for name in spec.arguments]
        named = enumerate(spec.arguments)
        self._operands = [(place, name) for place, name in named if name not in plan.arrays]
        launch = call.launch
        self._empty = 0 in launch.grid
        self._launch = launch.grid, launch.block
        self._shared = launch.dynamic_shared_bytes
        if self._shared > STATIC_SHARED_BYTES:
            try:
                self.function.max_dynamic_shared_size_bytes = self._shared
            except Exception as error:
                what = f"{self._shared >> 10} KiB of shared memory a block: {one_line(error)}"
                right = "parameters of the strategy that take less"
                raise DeviceUnavailable(spec.file, what, right) from error
        if launch.shared_percent is not None:
            self.function.preferred_shared_memory_carveout = launch.shared_percent

    def __call__(self, operands: Arrays) -> None:
        """Queue the kernel."""
        if self._empty:
            return
        arguments = self._arguments.copy()
        for place, name in self._operands:
            arguments[place] = operands[name]
        self.function(*self._launch, arguments, shared_mem=self._shared)


class CudaPlan:
    """A plan on the GPU, ready to run; a library has its own `setup_seconds` and `variant`.

    The main kernel is compiled with `options`, the others without.
    """

    def __init__(self, plan: Plan, *options: str) -> None:
        self._cupy = import_cupy()
        self._errors = _Errors(plan)
        self.setup_seconds: Mapping[str, float] = {}
        self.variant = ""
        self._operands = Operands(plan, self._cupy, on_device, gathered)
        dense = plan.operation.dense
        self._gathered = [each.name for each in dense if each.gathered]
        # Kernels move vectors of whatever has rows.
        self._rows = [each.name for each in dense if each.axes[1:] and not each.gathered]
        self._zeroed_sizes = plan.workspaces("zeroed_workspace")
        self._of_streams: dict[int, Arrays] = {}
        self._workspace_sizes = plan.workspaces("workspace")
        self.calls: tuple[Callable[[Arrays], None], ...]
        with self._errors:
            if isinstance(plan.calls[0], LibraryCall):
                trial = self.placed(trial_operands(plan, self._cupy))
                library = cusparse.CALLS[plan.operation.name]
                made = library(plan, self.inputs(trial), self._operands.outputs())
                self.setup_seconds, self.variant = made.setup_seconds, made.variant
                self.calls = (made,)
            else:
                calls = kernels_of(plan, "cuda")
                self.calls = tuple(
                    KernelLaunch(part, call, *(options if i == plan.layout.main else ()))
                    for i, (part, call) in enumerate(calls)
                )

    def placed(self, operands: Mapping[str, Any]) -> Arrays:
        """Return the inputs on the GPU; see `ReadyPlan`."""
        with self._errors:
            return self._operands.inputs(operands)

    def outputs(self) -> Arrays:
        """Return new outputs on the GPU; see `ReadyPlan`."""
        with self._errors:
            return self._operands.outputs()

    def inputs(self, operands: Arrays) -> Arrays:
        """Return placed inputs as the kernels find them: in their order, as they keep them."""
        found = dict(self._operands.walked(operands))
        for name in self._gathered:
            found[name] = _aligned(stored(found[name], self._operands.storage, self._cupy))
        for name in self._rows:
            found[name] = _aligned(found[name])
        return found

    def queue(self, inputs: Arrays, outputs: Arrays) -> None:
        """Queue clearing, where the plan needs it, and the calls, on the current stream."""
        for name in self._operands.zero_outputs:
            if outputs[name].nbytes:
                outputs[name].data.memset_async(0, outputs[name].nbytes)
        operands = {**inputs, **outputs}
        if self._zeroed_sizes or self._workspace_sizes:
            operands.update(self._workspaces_of_stream())
        for call in self.calls:
            call(operands)

    def _workspaces_of_stream(self) -> Arrays:
        """Return workspaces that no launch on another stream uses."""
        stream = self._cupy.cuda.get_current_stream().ptr
        if stream not in self._of_streams:
            sizes = self._zeroed_sizes.items()
            self._of_streams[stream] = {name: self._cupy.zeros(*size) for name, size in sizes}
            for name, size in self._workspace_sizes.items():
                self._of_streams[stream][name] = self._cupy.empty(*size)
        return self._of_streams[stream]

    def run(self, operands: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> Arrays:
        """Run the plan; the results are on the GPU if a dense input is; see `ReadyPlan`."""
        known = self._operands
        on_host = not any(is_device_array(operands[each.name]) for each in known.operation.dense)
        with self._errors:
            inputs = self.inputs(known.inputs(operands))
            if not on_host:
                outputs = known.outputs(out, inputs)
                aligned = {name: _aligned(array) for name, array in outputs.items()}
                self.queue(inputs, aligned)
                for name, array in outputs.items():
                    if array is not aligned[name]:
                        array[...] = aligned[name]
                return outputs
            host = known.outputs(out, operands, np)
            # A host output's content goes along, so that an element the kernel misses stays seen.
            copy = self._cupy.asarray if out else self._cupy.empty_like
            outputs = {name: copy(array) for name, array in host.items()}
            self.queue(inputs, outputs)
            return {name: outputs[name].get(out=array) for name, array in host.items()}

    def seconds(
        self, operands: Mapping[str, Any], repeats: int = 20, warmup: int = 3, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Time runs by CUDA events; see `ReadyPlan`."""
        with self._errors:
            inputs, outputs = self.inputs(self.placed(operands)), self.outputs()
            return event_seconds(lambda: self.queue(inputs, outputs), repeats, warmup, cold=cold)


class _Errors:
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
            raise KernelError(name, f"its kernel does not compile:\n{error}") from error
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


def trial_operands(plan: Plan, cupy: Any) -> Arrays:
    """Return dense inputs to choose an algorithm with."""
    shapes = {each.name: each.shape(plan.sizes) for each in plan.operation.dense}
    return {name: positive(cupy, math.prod(s)).reshape(s) for name, s in shapes.items()}
