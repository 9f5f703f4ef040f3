"""The parent's view of a submission's process: starts it in the sandbox, watches and ends it."""

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

from accelviz.course.autograde.border import HOME, WORK, Limits, bubblewrap, confined_command
from accelviz.course.autograde.processes import THREADS
from accelviz.course.autograde.wire import SubmissionLostError

#: Most processes and threads of a submission. Its processor time may be at most `MAX_PROCESSORS`
#: times the time since its start plus `_BURST_SECONDS`. Cells and compilers are meant to use one
#: processor.
MAX_TASKS, MAX_PROCESSORS, _BURST_SECONDS = 128, 1.5, 8.0
#: Seconds between two checks of these limits.
_WATCH_SECONDS = 0.5
GREEDY = "the submission's process was ended (too many processes, processors or too much memory)"
_STAND_INS = Path(__file__).with_name("stand_ins.py")


class Child:
    """A process that runs `autograde.student.main` and replies to messages over `connection`.

    Parameters
    ----------
    limits : Limits
    folder : Path
        Folder with `work` (copies of the files that were handed in), `home` and `cache`.
    hidden : tuple of str
        Folders that appear empty to the process.
    bare : bool
        Whether the library's partitions and strategies, which contain answers of assignments, are
        replaced by `stand_ins`, which raise an error when used.
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
                confined_command(command, limits, folder=folder, hidden=hidden, bare=bare),
                env=_environment(folder),
                cwd=folder / "work",
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=limits.apply,  # safe: the judge, this process, has one thread
            )
        self.connection = Connection(ours.detach())
        self._root, self._begin = psutil.Process(self._process.pid), time.monotonic()
        # `memory_gib` limits the address space of one process; all together may use twice as much.
        gib = limits.memory_gib
        self._max_memory = float("inf") if gib is None else 2 * gib * 2**30

    def processor_seconds(self) -> float:
        """Return the processor time that all its processes have used."""
        return self._usage()[1]

    def watch(self, connection: Connection, seconds: float) -> None:
        """Wait until `connection` has a message, at most `seconds`, then raise TimeoutError.

        Raises SubmissionLostError if the submission uses too many processes or processors or too
        much memory.
        """
        deadline = time.monotonic() + seconds
        while not connection.poll(max(0.0, min(_WATCH_SECONDS, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                raise TimeoutError
            tasks, busy, memory = self._usage()
            max_busy = MAX_PROCESSORS * (time.monotonic() - self._begin) + _BURST_SECONDS
            if tasks > MAX_TASKS or busy > max_busy or memory > self._max_memory:
                raise SubmissionLostError(GREEDY)

    def _usage(self) -> tuple[int, float, int]:
        """Return the number of threads, processor seconds and resident bytes of its processes."""
        tasks, seconds, memory = 0, 0.0, 0
        with contextlib.suppress(psutil.Error):
            for process in (self._root, *self._root.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    tasks += process.num_threads()
                    times = process.cpu_times()
                    seconds += times.user + times.system
                    memory += process.memory_info().rss
        return tasks, seconds, memory

    def end(self) -> None:
        """Kill the process and all processes that it started."""
        self.connection.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment variables of a submission; of the grader's it has only `CXX`."""
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
