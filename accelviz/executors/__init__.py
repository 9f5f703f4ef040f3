"""Executors: the devices that plans run on."""

from accelviz.executors.base import Executor, ReadyPlan, ready
from accelviz.executors.cuda import GpuState, gpu_state, trace_gpu
from accelviz.executors.emulator import trace
from accelviz.executors.kernel_call import emulate, trace_kernel
from accelviz.executors.run import EXECUTORS, find_executor, sddmm, spmm

__all__ = [
    "EXECUTORS",
    "Executor",
    "GpuState",
    "ReadyPlan",
    "emulate",
    "find_executor",
    "gpu_state",
    "ready",
    "sddmm",
    "spmm",
    "trace",
    "trace_gpu",
    "trace_kernel",
]
