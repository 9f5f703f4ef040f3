"""The device "cpu": replays the workload of any plan on all cores."""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

from accelviz.devices.base import Device
from accelviz.devices.operands import Arrays
from accelviz.devices.ready_plan import ReadyPlan


class CpuPlan(ReadyPlan):
    """A plan that the processor replays."""

    def run_single(self, X: Any, out: Any) -> Any:
        """Run on the graph's weights and one dense input; return a new output.

        Returns None, without a run, if there is an `out` or X needs a conversion; `run` works for
        all. On small graphs the checks of `run` take a quarter of the time.
        """
        single = self._single
        if out is not None or single is None or type(X) is not np.ndarray:
            return None
        source, target, weights = single
        shapes = self.operands.shapes
        if X.shape != shapes[source] or X.dtype != np.float32 or not X.flags.c_contiguous:
            return None
        Y = np.empty(shapes[target], np.float32)
        self._replay({**weights, source: X}, {target: Y})
        return Y

    @functools.cached_property
    def _single(self) -> tuple[str, str, Arrays] | None:
        return self.operands.single() if self.operands.arithmetic == "float32" else None


class CpuDevice(Device):
    """Runs plans on all cores with Numba. Always available."""

    name = "cpu"
    timed = True
    plan_type = CpuPlan

    def hardware(self) -> dict[str, str]:
        """Return the processor's name and the number of threads as `hardware`."""
        return super().hardware() | {"hardware": f"{_processor()}, {os.cpu_count()} threads"}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
