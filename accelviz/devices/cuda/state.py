"""Diagnosis of CuPy, the NVIDIA driver and NVRTC, with advice on what to install."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from accelviz.errors import DeviceUnavailable, pip_install
from accelviz.files import is_checkout

NO_PACKAGE, NO_DRIVER, NO_TOOLKIT, READY = "no package", "no driver", "no toolkit", "ready"

_NO_GPU = (
    "nothing to do without an NVIDIA GPU: device='cpu' does everything but time a GPU. "
    "With one, install its driver"
)


@dataclass(frozen=True)
class GpuState:
    """Whether kernels can run on a GPU of this machine, and what to do if not.

    Attributes
    ----------
    state : {"no package", "no driver", "no toolkit", "ready"}
    detail : str
        The GPU and versions if ready, else the problem.
    fix : str
        Advice to solve the problem; empty if ready.
    """

    state: str
    detail: str
    fix: str = ""

    @property
    def ready(self) -> bool:
        """Whether kernels can run."""
        return self.state == READY

    def require(self, component: str) -> None:
        """Raise DeviceUnavailable for a component, such as a device, unless kernels can run."""
        if not self.ready:
            raise DeviceUnavailable(component, self.detail, self.fix)


@functools.cache
def gpu_state() -> GpuState:
    """Diagnose this machine; the result is cached."""
    return diagnose(import_cupy, driver_cuda_version)


def diagnose(import_cupy: Callable[[], Any], driver_version: Callable[[], str | None]) -> GpuState:
    """Return the state of a machine on which these two functions run."""
    try:
        cupy = import_cupy()
    except Exception as error:  # a broken installation can raise anything on import
        return _without_package(error, driver_version())
    about = f"CuPy {cupy.__version__}"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        detail = f"{about} is installed but finds no usable GPU: {one_line(error)}"
        return _without_driver(detail, driver_version())
    if count == 0:
        return GpuState(NO_DRIVER, "the driver lists no GPU", "check that nvidia-smi shows one")
    try:
        version = nvrtc_version(cupy)
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    except Exception as error:
        detail = f"{about} sees a GPU but no NVRTC to compile with: {one_line(error)}"
        major = cupy.cuda.runtime.runtimeGetVersion() // 1000
        return GpuState(NO_TOOLKIT, detail, pip_install(f"cupy-cuda{major}x[ctk]"))
    name, memory = properties["name"].decode(), properties["totalGlobalMem"] / 2**30
    capability = f"compute capability {properties['major']}.{properties['minor']}"
    return GpuState(READY, f"{name}, {capability}, {memory:.0f} GiB, {about}, NVRTC {version}")


def _without_package(error: Exception, driver: str | None) -> GpuState:
    if sys.platform == "darwin":
        return GpuState(NO_PACKAGE, "CUDA does not exist on macOS", "use device='cpu' here")
    missing = isinstance(error, ModuleNotFoundError)
    finding = "CuPy is not installed" if missing else f"CuPy does not import: {one_line(error)}"
    if driver is None:
        fix = f"{_NO_GPU}, then {_install(13)}"
        return GpuState(NO_PACKAGE, f"{finding}, and nvidia-smi finds no NVIDIA driver", fix)
    fix = _install(13 if int(driver.partition(".")[0]) >= 13 else 12)
    return GpuState(NO_PACKAGE, f"{finding}; the driver supports CUDA {driver}", fix)


def _without_driver(detail: str, driver: str | None) -> GpuState:
    if driver is None:
        return GpuState(NO_DRIVER, detail, f"{_NO_GPU} and check that nvidia-smi lists it")
    if driver.startswith("12."):
        detail += f"; the driver supports CUDA {driver} only"
        return GpuState(NO_DRIVER, detail, _install(12))
    return GpuState(NO_DRIVER, detail, "check that nvidia-smi lists a GPU and restart")


def _install(major: int) -> str:
    make = f"`make install CUDA={major}`, or " if is_checkout() else ""
    return f"run {make}`{pip_install(f'accelviz[cuda{major}]')}`"


def one_line(error: Exception) -> str:
    """Return an exception's message on one line of at most 200 characters."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def nvrtc_version(cupy: Any) -> str:
    """Return the version of NVRTC, such as "13.0"."""
    return ".".join(str(part) for part in cupy.cuda.nvrtc.getVersion())


@functools.cache  # called in every run of a plan
def import_cupy() -> Any:
    """Return the module CuPy; raise ImportError if it is not installed."""
    with warnings.catch_warnings():
        # CuPy warns about missing CUDA paths that it does not need.
        warnings.simplefilter("ignore")
        import cupy
    return cupy


def driver_cuda_version() -> str | None:
    """Return the CUDA version that the NVIDIA driver supports ("13.0"); None without a driver."""
    _, label, version = run_nvidia_smi().partition("CUDA Version:")
    return version.split()[0] if label else None


def run_nvidia_smi(*options: str) -> str:
    """Return the output of nvidia-smi; empty if it is missing or fails."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    try:
        process = subprocess.run(
            [tool, *options], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return process.stdout.strip()
