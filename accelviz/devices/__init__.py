"""Devices: the CPU, the emulator and the GPU, which run plans and kernels."""

from accelviz.devices.base import Device
from accelviz.devices.choice import DEVICES, choose, find_device
from accelviz.devices.cuda import GpuState, gpu_state, trace_gpu
from accelviz.devices.emulator import trace
from accelviz.devices.planning import device_plan
from accelviz.devices.ready_plan import ReadyPlan, ready
from accelviz.devices.run import edge_softmax, run_operation, sddmm, spmm
from accelviz.emulator import emulate

__all__ = [
    "DEVICES",
    "Device",
    "GpuState",
    "ReadyPlan",
    "choose",
    "device_plan",
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
]
