"""The process of a launch, separate so that a kernel cannot end or block the caller's process."""

from __future__ import annotations

import contextlib
import mmap
import os
import selectors
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Seconds after a timeout in which the process may report it before it is killed.
_GRACE = 5.0
#: Seconds before a line shows how many blocks have run.
_PATIENCE = 2.0
#: Largest number of bytes of a kernel's output that are returned.
_PRINTED = 1 << 20


def wall_seconds(seconds: float) -> float:
    """Return a limit on the wall-clock time that allows `seconds` of processor time when busy."""
    return 5 * seconds + 30


def open_memory() -> int:
    """Return a descriptor of an empty file in memory, or of a temporary file."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # a sandbox may forbid it
            return os.memfd_create("accelviz-emulator")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class Common:
    """Memory shared with the processes of launches; `data` is a view of it."""

    def __init__(self, size: int) -> None:
        self.descriptor = open_memory()
        weakref.finalize(self, os.close, self.descriptor)
        self.size = -(-size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        os.ftruncate(self.descriptor, self.size)
        self.data = mmap.mmap(self.descriptor, self.size)

    def take_appended(self, size: int) -> bytes:
        """Return and remove `size` bytes that a process has appended."""
        with mmap.mmap(self.descriptor, size, offset=self.size) as appended:
            content = appended[:]
        os.ftruncate(self.descriptor, self.size)
        return content


class Progress:
    """A line that counts the blocks that have run, from two seconds on.

    It is for a terminal or a notebook, where there is tqdm. `done` returns the count.
    """

    def __init__(self, total: int, done: Callable[[], int]) -> None:
        ipython = sys.modules.get("IPython")
        in_a_notebook = ipython is not None and hasattr(ipython.get_ipython(), "kernel")
        self._stream = sys.stdout if in_a_notebook else sys.stderr
        self._total, self._done = total, done
        self._bar: Any = None
        self._start = time.monotonic()
        self.wanted = total > 1 and (in_a_notebook or self._stream.isatty())

    def update(self) -> None:
        """Show the line, if it is time."""
        if not self.wanted or time.monotonic() < self._start + _PATIENCE:
            return
        if self._bar is None:
            try:
                from tqdm import tqdm
            except ImportError:
                self.wanted = False
                return
            self._bar = tqdm(total=self._total, unit=" blocks", file=self._stream, leave=False)
        self._bar.update(self._done() - self._bar.n)

    def close(self) -> None:
        """Remove the line."""
        if self._bar is not None:
            self._bar.close()


def launch(
    program: Path, library: Path, memory: Common, seconds: float, progress: Progress
) -> tuple[int | None, str]:
    """Run the launch described in `memory`; return (exit status, output), status None if killed."""
    with subprocess.Popen(
        [str(program), str(library)],
        stdin=memory.descriptor,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # only the caller receives Ctrl-C, and kills the process
    ) as process:
        try:
            printed = _output(process, time.monotonic() + wall_seconds(seconds) + _GRACE, progress)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            progress.close()
        if printed is None:
            process.kill()
            process.wait()
            return None, ""
    return process.returncode, printed.decode("utf-8", "replace")


def _output(process: subprocess.Popen[bytes], deadline: float, progress: Progress) -> bytes | None:
    """Wait until a process has ended; return its output, None at the deadline.

    `Popen.communicate` with a time limit looks only every half millisecond whether it has ended.
    """
    assert process.stdout is not None
    output, printed = process.stdout.fileno(), bytearray()
    with contextlib.ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        selector.register(output, selectors.EVENT_READ)
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):  # a sandbox may forbid it
                ended = os.pidfd_open(process.pid)
                stack.callback(os.close, ended)
                selector.register(ended, selectors.EVENT_READ)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            progress.update()
            for key, _ in selector.select(min(left, 0.2) if progress.wanted else left):
                content = os.read(output, 1 << 16) if key.fd == output else b""
                printed += content[: _PRINTED - len(printed)]
                if not content:
                    selector.unregister(key.fd)
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None
    return bytes(printed)
