"""The SM and the start and stop time of each warp of a launch, from an instrumented kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from accelviz.devices.cuda.device import CudaDevice
from accelviz.devices.cuda.plan import CudaPlan, KernelLaunch
from accelviz.devices.cuda.state import gpu_state, import_cupy
from accelviz.devices.ready_plan import kernels_of
from accelviz.errors import KernelError
from accelviz.plans import Plan

#: The macro at the beginning of a kernel, and the macro that enables it; see `kernels/common.cuh`.
MARK, SWITCH = "RECORD_WARP", "RECORD_TIMELINE"
#: The struct `WarpTime` of `kernels/common.cuh`.
_WARP_TIME = np.dtype([("start", "u8"), ("stop", "u8"), ("sm", "u4"), ("unused", "u4")])
_WARMUP = 3


def trace_gpu(plan: Plan, *dense: Any, values: Any = None) -> pd.DataFrame:
    """Run a plan on the GPU and record the SM, start and stop of each of its warps.

    Parameters
    ----------
    plan : Plan
        A plan with a kernel whose first line is `RECORD_WARP;`, as in all kernels of this project.
    *dense : array
        The dense inputs of the plan's operation, in order: X for an SpMM.
    values : array, shape (nnz,), optional
        Weights, by default the graph's.

    Returns
    -------
    DataFrame
        One row per launched warp, in order of block and warp:

        - `tile`, `block`, `warp`: blockIdx.y, blockIdx.x, and the index of the warp in the block;
        - `sm`: the number of its streaming multiprocessor;
        - `start_ns`, `stop_ns`: nanoseconds since the first warp began, by the GPU's global timer,
          which all SMs share. Its resolution, often 32 ns or more, is `attrs["step_ns"]`.

        `attrs` also has `sms`, the number of SMs, and `blocks_per_sm`, the number of blocks that
        are resident on an SM at a time.

    Raises
    ------
    DeviceUnavailable
        If there is no usable GPU.
    KernelError
        If the plan has no kernel, the kernel has no `RECORD_WARP;`, or it does not compile.
    ArgumentError
        If an input is invalid.

    Notes
    -----
    Only the main call of a plan is recorded. The instrumentation adds a few instructions at the
    start and the end of each warp; use `benchmark` to time plans.
    """
    gpu_state().require("trace_gpu")
    spec = kernels_of(plan, "cuda")[plan.layout.main][1].kernel
    assert spec is not None
    if MARK not in spec.source():
        raise KernelError(
            spec.file, "it does not record its warps", f"'{MARK};' as the kernel's first line"
        )
    cupy = import_cupy()
    recording = CudaPlan(plan, CudaDevice(), f"-D{SWITCH}")
    launch = recording.calls[plan.layout.main]
    assert isinstance(launch, KernelLaunch)
    inputs = recording.inputs(recording.placed(plan.operation.named(*dense, values=values)))
    outputs = recording.outputs()
    columns, rows, layers = plan.launch.grid
    warps = columns * rows * layers * plan.launch.warps_per_block
    times = np.zeros(warps, _WARP_TIME)
    times["start"] = np.iinfo(np.uint64).max
    on_gpu = cupy.asarray(times.view(np.uint8))
    pointer = cupy.ndarray(1, np.uint64, launch.module.get_global("warp_times"))
    pointer.fill(on_gpu.data.ptr)
    for _ in range(_WARMUP):
        recording.launch(inputs, outputs)
    on_gpu.set(times.view(np.uint8))
    recording.launch(inputs, outputs)
    resident = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
        launch.function.kernel.ptr, plan.launch.block[0], plan.launch.dynamic_shared_bytes
    )
    sms = cupy.cuda.Device().attributes["MultiProcessorCount"]
    table = _table(on_gpu.get().view(_WARP_TIME), plan)
    table.attrs |= {"sms": int(sms), "blocks_per_sm": int(resident)}
    return table


def _table(times: Any, plan: Plan) -> pd.DataFrame:
    block, warp = np.divmod(np.arange(times.size), max(plan.launch.warps_per_block, 1))
    tile, block = np.divmod(block, max(plan.launch.grid[0], 1))
    first = times["start"].min(initial=np.iinfo(np.uint64).max)
    start, stop = ((times[name] - first).astype(np.int64) for name in ("start", "stop"))
    columns = {"tile": tile, "block": block, "warp": warp, "sm": times["sm"].astype(np.int64)}
    table = pd.DataFrame({**columns, "start_ns": start, "stop_ns": stop})
    moments = np.unique(np.concatenate([start, stop]))
    table.attrs["step_ns"] = int(np.diff(moments).min(initial=np.iinfo(np.int64).max))
    return table
