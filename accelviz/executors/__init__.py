"""Executors: the devices that plans run on."""

from accelviz.executors.base import Executor, ReadyPlan, ready
from accelviz.executors.cuda import GpuState, gpu_state, trace_gpu
from accelviz.executors.emulator import trace
from accelviz.executors.kernel_call import emulate, trace_kernel
from accelviz.executors.run import (
    EXECUTORS,
    edge_softmax,
    find_executor,
    run_operation,
    sddmm,
    spmm,
)

__all__ = [
    "EXECUTORS",
    "Executor",
    "GpuState",
    "ReadyPlan",
    "edge_softmax",
    "emulate",
    "find_executor",
    "gpu_state",
    "ready",
    "run_operation",
    "sddmm",
    "spmm",
    "trace",
    "trace_gpu",
    "trace_kernel",
]
