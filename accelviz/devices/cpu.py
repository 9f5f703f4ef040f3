"""The device "cpu": replays the workload of any plan on all cores."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from accelviz.devices.base import Device


class CpuDevice(Device):
    """Runs plans on all cores with Numba. Always available."""

    name = "cpu"
    timed = True

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
