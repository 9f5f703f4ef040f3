"""The device "cuda": compiles kernels with NVRTC and launches them through CuPy.

Only this folder imports CuPy, and only when a GPU is used or accelviz.torch finds one.
"""

from accelviz.devices.cuda.cubins import warm
from accelviz.devices.cuda.device import CudaDevice
from accelviz.devices.cuda.launch import BoundKernel, PointerKernel, preload, zero
from accelviz.devices.cuda.nvrtc import compile_cubin
from accelviz.devices.cuda.patterns import device_pattern, transposed, uploaded
from accelviz.devices.cuda.state import GpuState, gpu_state
from accelviz.devices.cuda.timeline import trace_gpu

__all__ = [
    "BoundKernel",
    "CudaDevice",
    "GpuState",
    "PointerKernel",
    "compile_cubin",
    "device_pattern",
    "gpu_state",
    "preload",
    "trace_gpu",
    "transposed",
    "uploaded",
    "warm",
    "zero",
]
