"""A submission's own process, behind the border."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import psutil

from accelviz.course.autograde.apart import THREADS
from accelviz.course.autograde.border import HOME, WORK, Limits, bubblewrap, confined
from accelviz.course.autograde.wire import Lost

#: Processes and threads of a submission, and the processors that they may take on average after
#: some seconds. Cells and compilers take one.
MOST_TASKS, MOST_PROCESSORS, _BUSY_SECONDS = 128, 1.5, 8.0
#: How often they are counted.
_WATCH_SECONDS = 0.5
#: Why a submission was ended.
GREEDY = "the submission's process died (too many processes, processors or too much memory)"
_STAND_INS = Path(__file__).with_name("stand_ins.py")


class Child:
    """A process that runs a submission's cells and answers, over `connection`, what it is asked.

    Parameters
    ----------
    limits : Limits
    folder : Path
        Holds `work`, copies of the files that were handed in, `home` and `cache`.
    hidden : tuple of str
        Folders that it finds empty.
    bare : bool
        It finds stand-ins for the library's partitions and strategies.
    """

    def __init__(self, limits: Limits, folder: Path, hidden: tuple[str, ...], bare: bool) -> None:
        ours, theirs = socket.socketpair()
        paths = [path for path in sys.path if os.path.isabs(path)]
        program = f"import sys; sys.path[:] = {paths!r}\n"
        if bare:
            program += f"exec({_STAND_INS.read_text('utf-8')!r})\ninstall()\n"
        program += "from accelviz.course.autograde.student import main\n"
        program += f"main({theirs.fileno()}, {limits.output_bytes})"
        command = [sys.executable, "-I", "-c", program]
        with theirs:
            self._process = subprocess.Popen(
                confined(command, limits, folder=folder, hidden=hidden, bare=bare),
                env=_environment(folder),
                cwd=folder / "work",
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=limits.take,  # safe: a judge has one thread
            )
        self.connection = Connection(ours.detach())
        self._tree, self._begin = psutil.Process(self._process.pid), time.monotonic()
        self._most = float("inf") if limits.memory_gib is None else 2 * limits.memory_gib * 2**30

    def processor_seconds(self) -> float:
        """Return the processor time that all its processes have taken."""
        return self._taken()[1]

    def watch(self, connection: Connection, seconds: float) -> None:
        """Wait for an answer, TimeoutError if there is none after `seconds`.

        Lost if the submission takes too many processes, processors or too much memory.
        """
        until = time.monotonic() + seconds
        while not connection.poll(max(0.0, min(_WATCH_SECONDS, until - time.monotonic()))):
            if time.monotonic() >= until:
                raise TimeoutError
            tasks, busy, memory = self._taken()
            allowed = MOST_PROCESSORS * (time.monotonic() - self._begin) + _BUSY_SECONDS
            if tasks > MOST_TASKS or busy > allowed or memory > self._most:
                raise Lost(GREEDY)

    def _taken(self) -> tuple[int, float, int]:
        """Return the threads, processor seconds and resident bytes of its processes."""
        tasks, seconds, memory = 0, 0.0, 0
        with contextlib.suppress(psutil.Error):
            for process in (self._tree, *self._tree.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    tasks += process.num_threads()
                    times = process.cpu_times()
                    seconds += times.user + times.system
                    memory += process.memory_info().rss
        return tasks, seconds, memory

    def end(self) -> None:
        """End it and all that it started."""
        self.connection.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _environment(folder: Path) -> dict[str, str]:
    """Return the whole environment of a submission: nothing of the grader's that it can spare."""
    root = Path(WORK).parent if bubblewrap() else folder
    return {
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), "/usr/local/bin:/usr/bin:/bin"]),
        "HOME": HOME if bubblewrap() else str(folder / "home"),
        "LANG": "C.UTF-8",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "MALLOC_ARENA_MAX": "2",
        "CUDA_VISIBLE_DEVICES": "",
        "ACCELVIZ_CACHE": str(root / "cache"),
        "NUMBA_CACHE_DIR": str(root / "cache" / "numba"),
        **THREADS,
        **({"CXX": os.environ["CXX"]} if "CXX" in os.environ else {}),
    }
