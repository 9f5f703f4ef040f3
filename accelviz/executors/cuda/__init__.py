"""The CUDA executor: compiles a plan's kernel with NVRTC and launches it through CuPy.

The only folder that imports CuPy, and it does so only when a GPU is asked for.
"""

from accelviz.executors.cuda.compiler import compile_cubin
from accelviz.executors.cuda.device_plan import device_pattern, device_plan, transposed, uploaded
from accelviz.executors.cuda.executor import CudaExecutor
from accelviz.executors.cuda.preprocessing import preprocess
from accelviz.executors.cuda.state import GpuState, gpu_state
from accelviz.executors.cuda.timeline import trace_gpu

__all__ = [
    "CudaExecutor",
    "GpuState",
    "compile_cubin",
    "device_pattern",
    "device_plan",
    "gpu_state",
    "preprocess",
    "trace_gpu",
    "transposed",
    "uploaded",
]
