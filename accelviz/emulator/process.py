"""The processes that run kernels, so that none can end or hang this one, and memory in common."""

from __future__ import annotations

import atexit
import contextlib
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

from accelviz.errors import KernelError

#: Seconds that a process has, beyond what a kernel may take, to say that it took too long.
_GRACE = 5.0


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


#: Returns the command that starts a program which runs kernels, such as one behind a border.
border: Callable[[list[str]], list[str]] = list


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


class Worker:
    """A process that forks for each launch; see process.h."""

    def __init__(self, program: Path) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                border([str(program)]),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the caller, who then kills
            )
        self._socket = ours

    def launch(self, library: Path, memory: Common, seconds: float) -> tuple[int | None, str]:
        """Run what `memory` describes; return the process's status and what it has printed.

        The status is as `os.wait` gives it, and None if the process did not answer in time.
        """
        output = open_memory()
        try:
            files = [memory.descriptor, output]
            socket.send_fds(self._socket, [os.fsencode(library)], files)
            self._socket.settimeout(wall_seconds(seconds) + _GRACE)
            try:
                answer = self._socket.recv(4)
            except TimeoutError:
                self.kill()
                return None, ""
            if len(answer) < 4:
                self.kill()
                raise KernelError("emulator", "its process has ended", "try again")
            printed = os.pread(output, 1 << 20, 0).decode("utf-8", "replace")
            return int.from_bytes(answer, sys.byteorder, signed=True), printed
        finally:
            os.close(output)

    def kill(self) -> None:
        """End the process and the launch that it is at."""
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._socket.close()

    @property
    def killed(self) -> bool:
        """Whether it is of no more use."""
        return self._socket.fileno() < 0

    def close(self) -> None:
        """Let the process end."""
        self._socket.close()
        self._process.wait()


#: Idle workers of this process, by its number: a fork of it needs its own.
_idle: dict[int, list[tuple[Path, Worker]]] = {}


def _close_idle() -> None:
    for _, idle in _idle.pop(os.getpid(), []):
        idle.close()


atexit.register(_close_idle)


@contextlib.contextmanager
def worker(program: Path) -> Iterator[Worker]:
    """Lend a worker to one launch; several threads get several."""
    mine = _idle.setdefault(os.getpid(), [])
    idle = None
    while mine and idle is None:
        known, idle = mine.pop()
        if known != program:  # another compiler's
            idle.close()
            idle = None
    idle = idle or Worker(program)
    try:
        yield idle
    except BaseException:
        idle.kill()
        raise
    if not idle.killed:
        mine.append((program, idle))
