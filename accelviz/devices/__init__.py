"""Executors: the devices that plans run on."""

from accelviz.devices.base import Device, ReadyPlan, ready
from accelviz.devices.cuda import GpuState, gpu_state, trace_gpu
from accelviz.devices.emulate import emulate, trace_kernel
from accelviz.devices.run import (
    DEVICES,
    edge_softmax,
    find_device,
    run_operation,
    sddmm,
    spmm,
)
from accelviz.devices.trace import trace

__all__ = [
    "DEVICES",
    "Device",
    "GpuState",
    "ReadyPlan",
    "edge_softmax",
    "emulate",
    "find_device",
    "gpu_state",
    "ready",
    "run_operation",
    "sddmm",
    "spmm",
    "trace",
    "trace_gpu",
    "trace_kernel",
]
