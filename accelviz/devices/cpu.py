"""The CPU executor: replays any plan's workload on all cores, whatever strategy made it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.base import Arrays, HostDevice, HostPlan, no_kernel
from accelviz.errors import DeviceUnavailable
from accelviz.plans import Plan
from accelviz.tensor_cores.rounding import to_f16, to_tf32

#: What kernels round their inputs to, by the plan's arithmetic.
_ROUNDED = {"tf32": to_tf32, "float16": to_f16}


class CpuDevice(HostDevice):
    """Runs plans in Numba on all cores; always available."""

    name = "cpu"
    timed = True

    def unavailable_reason(self, plan: Plan | None = None) -> str | None:
        """Say why a plan cannot be replayed, or None: every machine has a CPU."""
        if plan is not None and not plan.has_workload:
            return f"{plan.name!r} does not say which warp does what, so there is nothing to replay"
        return None

    def hardware(self) -> dict[str, str]:
        """Name the processor and the threads in use."""
        return self._named(f"{_processor()}, {os.cpu_count()} threads")

    def prepare(self, plan: Plan) -> CpuPlan:
        """Read the workload once and group its records by row; see `Device`."""
        problem = self.unavailable_reason(plan)
        if problem is not None:
            emulated = "" if no_kernel(plan) else "device='emulator', which runs its kernel, or "
            raise DeviceUnavailable("device 'cpu'", problem, f"{emulated}device='cuda', on a GPU")
        return CpuPlan(plan)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


class CpuPlan(HostPlan):
    """A plan's workload, ready to be replayed."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._replay = plan.operation.replay(plan)

    def _inputs(self, placed: Arrays) -> Arrays:
        """Return the inputs as a kernel finds them: in its order, rounded as it keeps them."""
        walked, storage = self._operands.walked(placed), self._operands.storage
        found = self._operands.operation.rounded(walked, storage)
        rounded = _ROUNDED.get(self._operands.arithmetic)
        return {name: rounded(array) for name, array in found.items()} if rounded else found

    def run(self, operands: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> Arrays:
        """Replay the workload; see `ReadyPlan`."""
        placed = self.placed(operands)
        outputs = self._operands.outputs(out, placed)
        self._replay(self._inputs(placed), outputs)
        return outputs

    def seconds(
        self, operands: Mapping[str, Any], repeats: int = 20, warmup: int = 3, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Time runs by the host's clock; see `ReadyPlan`."""
        inputs, outputs = self._inputs(self.placed(operands)), self.outputs()
        return self._timed(lambda: self._replay(inputs, outputs), repeats, warmup, cold=cold)
