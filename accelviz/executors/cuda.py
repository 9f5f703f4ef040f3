"""The CUDA executor: compiles a plan's kernel with NVRTC and launches it through CuPy.

The only file that imports CuPy, and it does so only when a GPU is asked for.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import DeviceUnavailable, KernelError
from accelviz.executors.base import checked_features, checked_output, is_device_array, kernel_of
from accelviz.files import kernel_directory
from accelviz.strategies import KernelSpec, Plan

NO_PACKAGE, NO_DRIVER, NO_TOOLKIT, READY = "no package", "no driver", "no toolkit", "ready"

_INSTALL = "run `make install CUDA={0}` in a checkout, or `pip install 'accelviz[cuda{0}]'`"


@dataclass(frozen=True)
class GpuState:
    """Whether kernels can run here, and what to do if not.

    Attributes
    ----------
    state : str
        `"no package"`, `"no driver"`, `"no toolkit"` or `"ready"`.
    detail : str
        What was found.
    fix : str
        What to do; empty if ready.
    """

    state: str
    detail: str
    fix: str = ""

    @property
    def ready(self) -> bool:
        """Whether kernels can run."""
        return self.state == READY


@functools.cache
def gpu_state() -> GpuState:
    """Look for a usable GPU once; later calls get the same answer."""
    return diagnose(_import_cupy, driver_cuda_version)


def diagnose(import_cupy: Callable[[], Any], driver_version: Callable[[], str | None]) -> GpuState:
    """Find out which of the four states this machine is in.

    Parameters
    ----------
    import_cupy : callable
        Gives the module or raises ImportError.
    driver_version : callable
        Gives the CUDA version of the NVIDIA driver, such as "13.0", or None without one.
    """
    try:
        cupy = import_cupy()
    except Exception as error:  # a broken installation can raise anything on import
        return _without_package(error, driver_version())
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        return _without_driver(cupy, error, driver_version())
    if count == 0:
        return GpuState(NO_DRIVER, "the driver lists no GPU", "check that nvidia-smi shows one")
    try:
        version = _nvrtc_version(cupy)
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    except Exception as error:
        major = cupy.cuda.runtime.runtimeGetVersion() // 1000
        return GpuState(
            NO_TOOLKIT,
            f"CuPy {cupy.__version__} sees a GPU but no NVRTC to compile with: {_one_line(error)}",
            f"pip install 'cupy-cuda{major}x[ctk]'",
        )
    name = properties["name"].decode()
    capability = f"{properties['major']}.{properties['minor']}"
    memory = properties["totalGlobalMem"] / 2**30
    return GpuState(
        READY,
        f"{name}, compute capability {capability}, {memory:.0f} GiB, CuPy {cupy.__version__}, "
        f"NVRTC {version}",
    )


def _without_package(error: Exception, driver: str | None) -> GpuState:
    if sys.platform == "darwin":
        return GpuState(NO_PACKAGE, "CUDA does not exist on macOS", "use device='cpu' here")
    missing = isinstance(error, ModuleNotFoundError)
    found = "CuPy is not installed" if missing else f"CuPy does not import: {_one_line(error)}"
    if driver is None:
        return GpuState(
            NO_PACKAGE,
            f"{found}, and nvidia-smi finds no NVIDIA driver",
            "nothing to do without an NVIDIA GPU: device='cpu' does everything but time a GPU. "
            f"With one, install its driver, then {_INSTALL.format(13)}",
        )
    major = 13 if int(driver.partition(".")[0]) >= 13 else 12
    return GpuState(
        NO_PACKAGE, f"{found}; the driver supports CUDA {driver}", _INSTALL.format(major)
    )


def _without_driver(cupy: Any, error: Exception, driver: str | None) -> GpuState:
    detail = f"CuPy {cupy.__version__} is installed but finds no usable GPU: {_one_line(error)}"
    if driver is None:
        return GpuState(
            NO_DRIVER,
            detail,
            "nothing to do without an NVIDIA GPU: device='cpu' does everything but time a GPU. "
            "With one, install its driver and check that nvidia-smi lists it",
        )
    if driver.startswith("12."):
        return GpuState(
            NO_DRIVER, f"{detail}; the driver supports CUDA {driver} only", _INSTALL.format(12)
        )
    return GpuState(NO_DRIVER, detail, "check that nvidia-smi lists a GPU and restart")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _nvrtc_version(cupy: Any) -> str:
    return ".".join(str(part) for part in cupy.cuda.nvrtc.getVersion())


def _import_cupy() -> Any:
    with warnings.catch_warnings():
        # CuPy warns about missing CUDA paths that it can do without.
        warnings.simplefilter("ignore")
        import cupy
    return cupy


def driver_cuda_version() -> str | None:
    """Return the CUDA version that the NVIDIA driver supports ("13.0"), or None without one."""
    _, found, rest = _ask_nvidia_smi().partition("CUDA Version:")
    return rest.split()[0] if found else None


def _ask_nvidia_smi(*options: str) -> str:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    try:
        answer = subprocess.run(
            [tool, *options], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip()


def compile_options(spec: KernelSpec) -> tuple[str, ...]:
    """Return the NVRTC options of a kernel: language, include path, line numbers, constants."""
    folder = kernel_directory()
    headers = b"".join(path.read_bytes() for path in sorted(folder.glob("*.cuh")))
    return (
        "--std=c++17",
        "-lineinfo",
        f"-I{folder}",
        # CuPy's cache of compiled kernels does not look into headers; this makes it.
        f"-DHEADERS_{hashlib.sha256(headers).hexdigest()[:16]}",
        *(f"-D{name}={value}" for name, value in spec.defines.items()),
    )


def compile_cubin(spec: KernelSpec, arch: str) -> bytes:
    """Compile a kernel to machine code for one architecture; needs CuPy but no GPU.

    Parameters
    ----------
    spec : KernelSpec
    arch : str
        Such as "sm_90".

    Returns
    -------
    bytes
        The cubin.

    Raises
    ------
    DeviceUnavailable
        If CuPy or NVRTC is not installed.
    KernelError
        If the source does not compile; the message holds the compiler's log.
    """
    try:
        nvrtc = _import_cupy().cuda.nvrtc
        nvrtc.getVersion()
    except Exception as error:
        raise DeviceUnavailable(
            "NVRTC", _one_line(error), "pip install 'accelviz[nvrtc]'"
        ) from error
    program = nvrtc.createProgram(spec.source(), spec.file, [], [])
    try:
        nvrtc.compileProgram(program, [f"-arch={arch}", *compile_options(spec)])
        # CuPy takes off the last byte, as if it ended text; disassemblers want it.
        return bytes(nvrtc.getCUBIN(program)) + b"\0"
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise KernelError(spec.file, f"it does not compile for {arch}:\n{log}") from error
    finally:
        nvrtc.destroyProgram(program)


class CudaExecutor:
    """Runs plans on the current CUDA device."""

    name = "cuda"
    timed = True

    def why_not(self) -> str | None:
        """Say why there is no usable GPU, or None if there is one."""
        state = gpu_state()
        return None if state.ready else f"{state.detail}. {state.fix}"

    def hardware(self) -> dict[str, str]:
        """Name the GPU, its driver, the CUDA version of NVRTC and CuPy's version."""
        cupy = _import_cupy()
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        return {
            "hardware": properties["name"].decode(),
            "driver": _ask_nvidia_smi("--query-gpu=driver_version", "--format=csv,noheader"),
            "cuda": _nvrtc_version(cupy),
            "cupy": cupy.__version__,
        }

    def prepare(self, plan: Plan) -> CudaPlan:
        """Compile the plan's kernel and put its arrays on the GPU.

        Raises
        ------
        DeviceUnavailable
            If there is no usable GPU.
        KernelError
            If the plan has no kernel, or it does not compile.
        """
        state = gpu_state()
        if not state.ready:
            raise DeviceUnavailable("device 'cuda'", state.detail, state.fix)
        return CudaPlan(plan, kernel_of(plan))


class CudaPlan:
    """A plan on the GPU: compiled kernel, arrays in place."""

    def __init__(self, plan: Plan, spec: KernelSpec) -> None:
        self.plan = plan
        self._cupy = cupy = _import_cupy()
        with _cuda_errors(cupy, plan):
            self._kernel = _loaded_kernel(spec.source(), compile_options(spec), spec.entry)
            arrays = {
                name: cupy.asarray(array) if isinstance(array, np.ndarray) else array
                for name, array in plan.arrays.items()
            }
        self._arguments = [arrays.get(name) for name in spec.arguments]
        self._x, self._y = spec.arguments.index("X"), spec.arguments.index("Y")

    def multiply(self, X: Any, out: Any = None) -> Any:
        """Return `A @ X`, on the GPU if `X` is there, else on the host; see `ReadyPlan`."""
        cupy = self._cupy
        with _cuda_errors(cupy, self.plan):
            features = checked_features(X, self.plan, cupy)
            if is_device_array(X):
                result = checked_output(out, self.plan, cupy)
                self._launch(features, result)
                return result
            host = checked_output(out, self.plan)
            # A host output's content goes along, so that an element the kernel misses stays seen.
            result = cupy.empty(host.shape, cupy.float32) if out is None else cupy.asarray(host)
            self._launch(features, result)
            return result.get(out=host)

    def seconds(self, X: Any, repeats: int = 20, warmup: int = 3) -> npt.NDArray[np.float64]:
        """Time runs by CUDA events; see `ReadyPlan`."""
        cupy = self._cupy
        with _cuda_errors(cupy, self.plan):
            features = checked_features(X, self.plan, cupy)
            out = checked_output(None, self.plan, cupy)
            for _ in range(warmup):
                self._launch(features, out)
            events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(repeats)]
            for start, stop in events:
                start.record()
                self._launch(features, out)
                stop.record()
            cupy.cuda.Device().synchronize()
            pairs = [cupy.cuda.get_elapsed_time(start, stop) for start, stop in events]
        return np.array(pairs) * 1e-3

    def _launch(self, X: Any, Y: Any) -> None:
        launch = self.plan.launch
        if self.plan.zero_output and Y.nbytes:
            Y.data.memset_async(0, Y.nbytes)
        if launch.n_blocks == 0:
            return
        arguments = list(self._arguments)
        arguments[self._x], arguments[self._y] = X, Y
        self._kernel(launch.grid, launch.block, arguments, shared_mem=launch.dynamic_shared_bytes)


@functools.lru_cache(maxsize=64)
def _loaded_kernel(source: str, options: tuple[str, ...], entry: str) -> Any:
    return _import_cupy().RawModule(code=source, options=options).get_function(entry)


@contextlib.contextmanager
def _cuda_errors(cupy: Any, plan: Plan) -> Iterator[None]:
    """Turn what CuPy raises into the project's own exceptions."""
    try:
        yield
    except cupy.cuda.compiler.CompileException as error:
        raise KernelError(plan.strategy, f"its kernel does not compile:\n{error}") from error
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise DeviceUnavailable(
            "device 'cuda'",
            f"{_one_line(error)} for {plan!r}",
            "use fewer columns at a time, or device='cpu'",
        ) from error
    except (cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError) as error:
        raise KernelError(plan.strategy, f"it failed on the GPU: {error}") from error
