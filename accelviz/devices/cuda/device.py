"""The device "cuda": CuPy's arrays, and kernels compiled by NVRTC."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.base import Device
from accelviz.devices.cuda import cublas, cusparse, state
from accelviz.devices.cuda.arrays import on_device
from accelviz.devices.cuda.captured import CapturedGraph
from accelviz.devices.cuda.compiler import compiled
from accelviz.devices.cuda.plan import CudaPlan
from accelviz.devices.cuda.state import gpu_state, import_cupy
from accelviz.devices.cuda.tensor_maps import tensor_map
from accelviz.devices.cuda.timing import CudaLimits, EventClock, event_seconds
from accelviz.devices.operands import is_device_array
from accelviz.devices.ready_plan import no_kernel
from accelviz.plans import Call, LibraryCall, Plan
from accelviz.plans.program import Program


class CudaDevice(Device):
    """Runs plans on the current CUDA device; its arrays are CuPy's."""

    name = "cuda"
    timed = True
    computes = True

    @functools.cached_property
    def array_type(self) -> type:  # type: ignore[override]
        """CuPy's ndarray; without CuPy, a new class, which has no instances."""
        try:
            array: type = import_cupy().ndarray
        except Exception:  # a broken installation can raise anything on import
            array = type("ndarray", (), {})
        return array

    @property
    def xp(self) -> Any:
        """The module CuPy."""
        return import_cupy()

    @property
    def key(self) -> tuple[str, int]:
        """The name, and the number of the current GPU (-1 if there is none)."""
        return self.name, import_cupy().cuda.Device().id if gpu_state().ready else -1

    @property
    def multiprocessors(self) -> int:  # type: ignore[override]
        """Number of SMs of the current GPU."""
        return _multiprocessors(import_cupy().cuda.Device().id)

    def unavailable_reason(self, plan: Plan | None = None) -> str | None:
        """Return why there is no usable GPU, or why it cannot run a plan; None if it can."""
        gpu = gpu_state()
        if not gpu.ready:
            return f"{gpu.detail}. {gpu.fix}"
        if plan is None:
            return None
        if isinstance(plan.calls[0], LibraryCall):
            return cusparse.unavailable_reason() if plan.calls[0].library == "cusparse" else None
        capability = max((call.kernel.capability for call in plan.calls if call.kernel), default=0)
        if capability > int(import_cupy().cuda.Device().compute_capability):
            return f"{plan.name!r} needs a GPU of compute capability {capability / 10:.1f} or more"
        return no_kernel(plan)

    def require(self, plan: Plan | None = None) -> None:
        """Raise DeviceUnavailable unless there is a usable GPU."""
        gpu_state().require("device 'cuda'")

    def hardware(self) -> dict[str, str]:
        """Return the GPU's name, and the versions of its driver, of NVRTC and of CuPy."""
        cupy = import_cupy()
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        driver = state.run_nvidia_smi("--query-gpu=driver_version", "--format=csv,noheader")
        return {
            "hardware": properties["name"].decode(),
            "driver": driver.partition("\n")[0],  # one equal line per GPU
            "cuda": state.nvrtc_version(cupy),
            "cupy": cupy.__version__,
        }

    def owns(self, array: Any) -> bool:
        """Return whether an array of any library is on a CUDA device."""
        return is_device_array(array)

    def shared(self, array: Any) -> Any:
        """Copy an array to the GPU; the copy of a read-only array is cached (`on_device`)."""
        return on_device(array)

    def to_host(self, array: Any) -> npt.NDArray[Any]:
        """Copy an array on the GPU to the host."""
        host: npt.NDArray[Any] = import_cupy().asnumpy(array)
        return host

    def write(self, array: Any, values: npt.NDArray[Any]) -> None:
        """Copy a host array's values to an array on the GPU."""
        array.set(values)

    def take(self, array: Any, order: Any) -> Any:
        """Return `array[order]`; for a 1-D array, `order` must be in range (unchecked)."""
        return _gather()(array, order) if array.ndim == 1 else array[order]

    def matmul(self, A: Any, B: Any, transposed: str = "", onto: Any = None) -> Any:
        """Multiply by cuBLAS; the sum overwrites `onto` if given."""
        return cublas.matmul(A, B, transposed, onto)

    def overlap(self, first: Any, second: Any) -> bool:
        """Return whether the address ranges of two arrays overlap, or if this is unknown."""
        if not second.flags.c_contiguous:  # its address range is unknown
            return True
        start, other_start = first.data.ptr, second.data.ptr
        return bool(start < other_start + second.nbytes and other_start < start + first.nbytes)

    def free_bytes(self) -> int:
        """Return the GPU's free memory, including free memory in CuPy's pool."""
        cupy = import_cupy()
        free, _ = cupy.cuda.runtime.memGetInfo()
        return int(free + cupy.get_default_memory_pool().free_bytes())

    def used_bytes(self) -> int:
        """Return the bytes of CuPy's arrays."""
        return int(import_cupy().get_default_memory_pool().used_bytes())

    def launch(self, call: Call, arguments: Mapping[str, Any]) -> None:
        """Launch a kernel without a plan on the current stream; see `Device`."""
        spec, launch = call.kernel, call.launch
        assert spec is not None
        if 0 not in launch.grid:
            shared = launch.dynamic_shared_bytes
            _, function = compiled(
                spec,
                shared_bytes=shared,
                shared_percent=launch.shared_percent,
                cooperative=launch.cooperative,
            )
            values = tuple(self.arguments(call, arguments).values())
            function(launch.grid, launch.block, values, shared_mem=shared)

    def arguments(self, call: Call, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments for CuPy's launch: numbers with 32 bits, arrays on the GPU, and maps."""
        on_gpu = {name: _argument(value) for name, value in arguments.items()}
        for name, described in call.tensor_maps.items():
            if not isinstance(on_gpu[name], np.ndarray):  # not yet described
                on_gpu[name] = tensor_map(on_gpu[described.operand], described)
        return on_gpu

    def captured(
        self, program: Program, inputs: Mapping[str, Any], clock: Any
    ) -> Callable[[], dict[str, Any]]:
        """Return a function that runs a program as a captured CUDA graph; see `Device`.

        Without nvmath-python, steps are launched one by one (see `cublas.can_be_captured`).
        """
        run = super().captured(program, inputs, clock)
        return CapturedGraph(run, clock) if cublas.can_be_captured() else run

    def stream(self) -> contextlib.AbstractContextManager[Any]:
        """Wait for the GPU and return the non-blocking stream for captures."""
        cupy = import_cupy()
        cupy.cuda.Device().synchronize()
        stream: contextlib.AbstractContextManager[Any] = _stream(cupy.cuda.Device().id)
        return stream

    def on_stream(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        """Return a stream of another library, such as PyTorch, as CuPy's."""
        cuda = import_cupy().cuda
        if hasattr(stream, "__cuda_stream__") and hasattr(cuda.Stream, "from_external"):
            external: contextlib.AbstractContextManager[Any] = cuda.Stream.from_external(stream)
        else:  # CuPy before 14, or PyTorch without the protocol
            external = cuda.ExternalStream(stream.cuda_stream, stream.device_index)
        return external

    def clock(self, seconds: dict[str, float]) -> EventClock:
        """Return a clock that uses CUDA events."""
        return EventClock(seconds)

    def seconds(
        self, run: Callable[[], object], repeats: int, warmup: int, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Time the launches of `run` by CUDA events; see `event_seconds`."""
        return event_seconds(run, repeats, warmup, cold=cold)

    def limits(self) -> CudaLimits:
        """Measure the launch time and the copy and random-gather bandwidths of this GPU."""
        return CudaLimits()

    def prepare(self, plan: Plan) -> CudaPlan:
        """Compile the plan's kernels, or prepare its library calls; see `Device`."""
        self.require()
        return CudaPlan(plan, self)


@functools.cache
def _multiprocessors(device: int) -> int:
    runtime = import_cupy().cuda.runtime
    return int(runtime.deviceGetAttribute(runtime.cudaDevAttrMultiProcessorCount, device))


@functools.cache
def _gather() -> Any:
    # CuPy's `take` wraps negative and large indices, which makes it half as fast.
    return import_cupy().ElementwiseKernel("raw T x, I k", "T y", "y = x[k]", "accelviz_gather")


@functools.cache
def _stream(device: int) -> Any:
    return import_cupy().cuda.Stream(non_blocking=True)


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.fields:  # a structure passed by value
        return value
    if value is None:  # a null pointer
        return np.uint64(0)
    if isinstance(value, int):
        return np.int32(value)
    return np.float32(value) if isinstance(value, float) else on_device(value)
