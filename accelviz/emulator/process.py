"""The process of a launch, so that no kernel can end or hang this one, and memory in common."""

from __future__ import annotations

import contextlib
import mmap
import os
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path

#: Seconds that a process has, beyond what a kernel may take, to say that it took too long.
_GRACE = 5.0
#: Bytes of what a kernel prints that are shown.
_PRINTED = 1 << 20
#: Returns the command that starts a program which runs kernels, such as one behind a border.
border: Callable[[list[str]], list[str]] = list


def wall_seconds(seconds: float) -> float:
    """Return what the wall clock may show for so much processor time, on a busy machine too."""
    return 5 * seconds + 30


def open_memory() -> int:
    """Return a descriptor of an empty file in memory, or of a temporary one."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # a sandbox may forbid it
            return os.memfd_create("accelviz-emulator")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class Common:
    """Memory that kernels' processes map too; `data` are its bytes."""

    def __init__(self, size: int) -> None:
        self.descriptor = open_memory()
        weakref.finalize(self, os.close, self.descriptor)
        self.size = -(-size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        os.ftruncate(self.descriptor, self.size)
        self.data = mmap.mmap(self.descriptor, self.size)

    def behind(self, size: int) -> bytes:
        """Return what a process has written behind the data, and drop it."""
        with mmap.mmap(self.descriptor, size, offset=self.size) as more:
            content = more[:]
        os.ftruncate(self.descriptor, self.size)
        return content


def launch(program: Path, library: Path, memory: Common, seconds: float) -> tuple[int | None, str]:
    """Run what `memory` describes; return the process's exit status and what it has printed.

    The status is None if the process did not end in time.
    """
    with subprocess.Popen(
        border([str(program), str(library)]),
        stdin=memory.descriptor,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C is for the caller, who then kills
    ) as process:
        try:
            printed, _ = process.communicate(timeout=wall_seconds(seconds) + _GRACE)
        except BaseException as error:
            process.kill()
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                return None, ""
            raise
    return process.returncode, printed[:_PRINTED].decode("utf-8", "replace")
