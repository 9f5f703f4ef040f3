"""The CPU: replays any plan's workload on all cores, whatever strategy made it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from accelviz.devices.base import Device


class CpuDevice(Device):
    """Runs plans in Numba on all cores; always available."""

    name = "cpu"
    timed = True

    def hardware(self) -> dict[str, str]:
        """Name the processor and the threads in use."""
        return super().hardware() | {"hardware": f"{_processor()}, {os.cpu_count()} threads"}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
