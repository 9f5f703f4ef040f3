"""The process of a launch, which no kernel can end or hang ours from, and common memory."""

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

#: Seconds in which the process reports a timeout before it is killed.
_GRACE = 5.0
#: Most bytes of a kernel's output that are shown.
_PRINTED = 1 << 20
#: Wraps the command that starts the process, such as in a sandbox.
border: Callable[[list[str]], list[str]] = list


def wall_seconds(seconds: float) -> float:
    """Return the limit on the wall clock for so much processor time on a busy machine."""
    return 5 * seconds + 30


def open_memory() -> int:
    """Return a descriptor of an empty file in memory, or of a temporary file."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # a sandbox may forbid it
            return os.memfd_create("accelviz-emulator")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class Common:
    """Memory that the processes of launches map, too; `data` is a view of it."""

    def __init__(self, size: int) -> None:
        self.descriptor = open_memory()
        weakref.finalize(self, os.close, self.descriptor)
        self.size = -(-size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        os.ftruncate(self.descriptor, self.size)
        self.data = mmap.mmap(self.descriptor, self.size)

    def behind(self, size: int) -> bytes:
        """Return bytes that a process has appended, and drop them."""
        with mmap.mmap(self.descriptor, size, offset=self.size) as more:
            content = more[:]
        os.ftruncate(self.descriptor, self.size)
        return content


def launch(program: Path, library: Path, memory: Common, seconds: float) -> tuple[int | None, str]:
    """Run the launch that `memory` describes; return its exit status, None if late, and output."""
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
