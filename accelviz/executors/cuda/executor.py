"""The CUDA executor: a plan's kernel launched through CuPy, or a library called."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import DeviceUnavailable, KernelError
from accelviz.executors.base import checked_features, checked_output, is_device_array, kernel_of
from accelviz.executors.cuda.arrays import on_device
from accelviz.executors.cuda.compiler import compile_options, loaded_module
from accelviz.executors.cuda.cusparse import CusparseCall
from accelviz.executors.cuda.state import (
    ask_nvidia_smi,
    gpu_state,
    import_cupy,
    nvrtc_version,
    one_line,
)
from accelviz.executors.cuda.timing import CudaLimits, event_seconds
from accelviz.executors.storage import stored
from accelviz.strategies import KernelSpec, Plan
from accelviz.strategies.plans import STATIC_SHARED_BYTES

#: Alignment of the widest load.
VECTOR_BYTES = 16


class CudaExecutor:
    """Runs plans on the current CUDA device."""

    name = "cuda"
    timed = True

    def why_not(self, plan: Plan | None = None) -> str | None:
        """Say why there is no usable GPU, or nothing to run on it, or None."""
        state = gpu_state()
        if not state.ready:
            return f"{state.detail}. {state.fix}"
        if plan is not None and plan.kernel is None and plan.library is None:
            return f"{plan.strategy!r} has no CUDA kernel"
        return None

    def hardware(self) -> dict[str, str]:
        """Name the GPU, its driver, the CUDA version of NVRTC and CuPy's version."""
        cupy = import_cupy()
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        return {
            "hardware": properties["name"].decode(),
            "driver": ask_nvidia_smi("--query-gpu=driver_version", "--format=csv,noheader"),
            "cuda": nvrtc_version(cupy),
            "cupy": cupy.__version__,
        }

    def to_device(self, array: npt.NDArray[Any]) -> Any:
        """Copy an array to the GPU."""
        return import_cupy().asarray(array)

    def limits(self) -> CudaLimits:
        """Measure launch time, copy and random-gather bandwidth of this GPU, now."""
        return CudaLimits()

    def prepare(self, plan: Plan) -> CudaPlan:
        """Compile the plan's kernel and put its arrays on the GPU, or describe them to the library.

        Raises
        ------
        DeviceUnavailable
            If there is no usable GPU.
        KernelError
            If the plan has neither kernel nor library, or the kernel does not compile.
        """
        state = gpu_state()
        if not state.ready:
            raise DeviceUnavailable("device 'cuda'", state.detail, state.fix)
        return CudaPlan(plan)


class KernelLaunch:
    """A compiled kernel with its arrays on the GPU; called with X and Y, it queues the work."""

    def __init__(self, plan: Plan, spec: KernelSpec, *options: str) -> None:
        self.module = loaded_module(spec.source(), (*compile_options(spec), *options))
        self.function = self.module.get_function(spec.entry)
        scratch = {
            name: import_cupy().zeros(size, dtype) for name, (size, dtype) in plan.scratch.items()
        }
        self._arguments = [
            scratch[name] if name in scratch else on_device(plan.arrays.get(name))
            for name in spec.arguments
        ]
        self._x, self._y = spec.arguments.index("X"), spec.arguments.index("Y")
        self._clear, self._empty = plan.zero_output, 0 in plan.launch.grid
        launch = plan.launch
        self._launch = launch.grid, launch.block
        self._shared = launch.dynamic_shared_bytes
        if self._shared > STATIC_SHARED_BYTES:
            self.function.max_dynamic_shared_size_bytes = self._shared
        if launch.shared_percent is not None:
            self.function.preferred_shared_memory_carveout = launch.shared_percent

    def __call__(self, X: Any, Y: Any) -> None:
        """Queue clearing, where the plan needs it, and the kernel."""
        if self._clear and Y.nbytes:
            Y.data.memset_async(0, Y.nbytes)
        if self._empty:
            return
        arguments = self._arguments.copy()
        arguments[self._x], arguments[self._y] = X, Y
        self.function(*self._launch, arguments, shared_mem=self._shared)


class CudaPlan:
    """A plan on the GPU, ready to run.

    Attributes
    ----------
    setup_seconds : mapping of str to float
        What a library did beforehand, beside the plan's own preprocessing.
    variant : str
        What a library chose.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._cupy = import_cupy()
        with cuda_errors(plan):
            self._work: Callable[[Any, Any], None]
            self.setup_seconds: Mapping[str, float] = {}
            self.variant = ""
            if plan.library is None:
                self._work = KernelLaunch(plan, kernel_of(plan))
            else:
                self._work = call = CusparseCall(plan)
                self.setup_seconds, self.variant = call.setup_seconds, call.variant

    def features(self, X: Any) -> Any:
        """Return the features on the GPU; see `ReadyPlan`."""
        with cuda_errors(self.plan):
            return checked_features(self._cupy.asarray(X), self.plan, self._cupy)

    def _features(self, X: Any) -> Any:
        features = checked_features(X, self.plan, self._cupy)
        features = stored(features, self.plan.storage, self._cupy)
        # Kernels may read and write by vectors; a caller's view can begin anywhere.
        return features if features.data.ptr % VECTOR_BYTES == 0 else features.copy()

    def output(self) -> Any:
        """Return a new result on the GPU; see `ReadyPlan`."""
        with cuda_errors(self.plan):
            return checked_output(None, self.plan, self._cupy)

    def multiply(self, X: Any, out: Any = None) -> Any:
        """Return `A @ X`, on the GPU if `X` is there, else on the host; see `ReadyPlan`."""
        cupy = self._cupy
        with cuda_errors(self.plan):
            features = self._features(X)
            if is_device_array(X):
                result = checked_output(out, self.plan, cupy)
                if result.data.ptr % VECTOR_BYTES:
                    result[...] = self.multiply(X)
                else:
                    self._work(features, result)
                return result
            host = checked_output(out, self.plan)
            # A host output's content goes along, so that an element the kernel misses stays seen.
            result = cupy.empty(host.shape, cupy.float32) if out is None else cupy.asarray(host)
            self._work(features, result)
            return result.get(out=host)

    def seconds(
        self, X: Any, repeats: int = 20, warmup: int = 3, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Time runs by CUDA events; see `ReadyPlan`."""
        cupy = self._cupy
        with cuda_errors(self.plan):
            features = self._features(X)
            out = checked_output(None, self.plan, cupy)
            return event_seconds(lambda: self._work(features, out), repeats, warmup, cold=cold)


@contextlib.contextmanager
def cuda_errors(plan: Plan) -> Iterator[None]:
    """Turn what CuPy raises into the project's own exceptions."""
    cupy = import_cupy()
    try:
        yield
    except cupy.cuda.compiler.CompileException as error:
        raise KernelError(plan.strategy, f"its kernel does not compile:\n{error}") from error
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise DeviceUnavailable(
            "device 'cuda'",
            f"{one_line(error)} for {plan!r}",
            "use fewer columns at a time, or device='cpu'",
        ) from error
    except (cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError) as error:
        raise KernelError(plan.strategy, f"it failed on the GPU: {error}") from error
