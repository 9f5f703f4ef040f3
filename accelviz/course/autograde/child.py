"""The judge's view of a process in the sandbox: starts, watches, pauses and ends it."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from accelviz.course.autograde.border import HOME, MAX_TASKS, WORK, Confinement, bubblewrap, start
from accelviz.course.autograde.processes import CACHES, THREADS
from accelviz.course.autograde.wire import MAX_BYTES, Line, SubmissionLostError

#: The processor time of a submission may be at most `MAX_PROCESSORS` times the time since its start
#: plus `_BURST_SECONDS`. Cells and compilers are meant to use one processor.
MAX_PROCESSORS, _BURST_SECONDS = 1.5, 8.0
#: Seconds between two checks of these limits, and while its processor time is measured, so that
#: processes are seen that end unnoticed; most files and sockets that it may have in memory.
_WATCH_SECONDS, _MEASURE_SECONDS, _MAX_FILES, _MAX_SOCKETS = 0.5, 0.02, 20_000, 1_000
#: Seconds until its processes have to stand still.
_STOP_SECONDS = 20.0
GREEDY = "the submission was ended (too many processes, processors or files, or too much memory)"
_AT_REST = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE)
_STAND_INS = Path(__file__).with_name("stand_ins.py")


class Child:
    """A process that runs `autograde.student.main` and replies to messages.

    Parameters
    ----------
    bounds : Confinement
    reads_files : bool
        Whether it may import what lies beside the notebook.
    """

    def __init__(self, bounds: Confinement, *, reads_files: bool = True) -> None:
        ours, theirs = socket.socketpair()
        paths = [path for path in sys.path if os.path.isabs(path)]
        # Collecting garbage takes a quarter of the time of imports, which create little of it.
        program = f"import gc, sys; gc.set_threshold(50_000); sys.path[:] = {paths!r}\n"
        if bounds.bare:
            program += f"exec({_STAND_INS.read_text('utf-8')!r})\ninstall()\n"
        if bounds.user:  # the user is no other's, so the system counts its processes alone
            program += (
                f"import resource as r; r.setrlimit(r.RLIMIT_NPROC, {(2 * MAX_TASKS,) * 2})\n"
            )
        program += "from accelviz.course.autograde.student import main\n"
        program += f"main({theirs.fileno()}, {bounds.limits.output_bytes}, {reads_files})"
        with theirs:
            command, environment = (
                [sys.executable, "-I", "-c", program],
                _environment(bounds.folder),
            )
            self._process = start(command, bounds, theirs.fileno(), environment)
        ours.setblocking(False)
        self._socket, self._line, self._poll = ours, Line(ours, self._watch), select.poll()
        #: When the message that is being sent or received has to be complete, and the next look at
        #: the submission's processes.
        self._deadline, self._next_look = math.inf, 0.0
        self._root, self._begin = psutil.Process(self._process.pid), time.monotonic()
        #: Its processes at the last search, and what the sandbox's own /proc had then.
        self._known_processes: list[psutil.Process] = []
        self._known_numbers: set[tuple[str, str]] = set()
        self._is_paused = False
        self._watch_seconds = _WATCH_SECONDS
        #: Processor seconds of each process when it was last seen, without its children's.
        self._seen: dict[psutil.Process, float] = {}
        # `memory_gib` limits the address space of one process; all together may use twice as much.
        gib = bounds.limits.memory_gib
        self._max_memory = float("inf") if gib is None else 2 * gib * 2**30

    def processor_seconds(self) -> float:
        """Return the processor time that all its processes have used, also those that ended.

        The system forgets the time of a process whose parent ignores its end, so from the first
        call on the processes are looked at often while a test waits for them.
        """
        self._watch_seconds = _MEASURE_SECONDS
        return self._usage(self._processes())[1]

    def send(self, message: Any, seconds: float = math.inf) -> None:
        """Send a message; raises TimeoutError if it is not read within `seconds`. See `receive`."""
        self._deadline = time.monotonic() + seconds
        self._line.send(message)

    def receive(self, seconds: float = math.inf, limit: int = MAX_BYTES) -> Any:
        """Receive a message; raises TimeoutError if it has not arrived whole within `seconds`.

        Raises SubmissionLostError if the process is gone or violates the protocol, or meanwhile
        uses too many processes or processors or too much memory.
        """
        self._deadline = time.monotonic() + seconds
        return self._line.receive(limit)

    def _watch(self, event: int) -> None:
        """Wait for an event of the socket, and look at the processes from time to time."""
        self._poll.register(self._socket, event)
        interval = self._watch_seconds if self._deadline == math.inf else _WATCH_SECONDS
        is_ready = False
        while not is_ready:
            seconds = min(interval, self._deadline - time.monotonic())
            is_ready = bool(self._poll.poll(1000 * max(0.0, seconds)))
            now = time.monotonic()
            if now >= self._next_look:
                self._look()
                self._next_look = time.monotonic() + interval
            if now >= self._deadline:
                raise TimeoutError

    def _look(self) -> None:
        """Raise SubmissionLostError if its processes together use too much."""
        processes = self._processes()
        tasks, busy, memory = self._usage(processes)
        max_busy = MAX_PROCESSORS * (time.monotonic() - self._begin) + _BURST_SECONDS
        is_greedy = tasks > MAX_TASKS or busy > max_busy or memory > self._max_memory
        files, sockets = self._n_files_and_sockets(processes)
        if is_greedy or files > _MAX_FILES or sockets > _MAX_SOCKETS:
            raise SubmissionLostError(GREEDY)

    def _processes(self) -> list[psutil.Process]:
        """Return its processes; a search among all of the machine's, if the sandbox has others."""
        numbers = self._numbers_inside()
        if not numbers or numbers != self._known_numbers:
            self._known_processes, self._known_numbers = [], numbers
            with contextlib.suppress(psutil.Error):
                self._known_processes = [self._root, *self._root.children(recursive=True)]
        return self._known_processes

    def _numbers_inside(self) -> set[tuple[str, str]]:
        """Return number and start of each process in its /proc; empty if that is not seen."""
        numbers = set()
        for process in self._known_processes[1:2] if bubblewrap() else ():
            folder = f"/proc/{process.pid}/root/proc"
            with contextlib.suppress(OSError):
                if os.stat(folder).st_dev == os.stat("/proc").st_dev:
                    return set()
                for number in filter(str.isdecimal, os.listdir(folder)):
                    state = Path(folder, number, "stat").read_text("utf-8", "replace")
                    numbers.add((number, state.rpartition(")")[2].split()[19]))
                return numbers
        return set()

    def _usage(self, processes: list[psutil.Process]) -> tuple[int, float, int]:
        """Return the number of threads, processor seconds and resident bytes of its processes."""
        tasks, seconds, memory = 0, 0.0, 0
        for process in processes:
            with contextlib.suppress(psutil.Error):
                tasks += process.num_threads()
                times = process.cpu_times()
                self._seen[process] = times.user + times.system
                seconds += sum(times[:4])  # its own, and of children that it has waited for
                memory += process.memory_info().rss
        return tasks, max(seconds, sum(self._seen.values())), memory

    def _n_files_and_sockets(self, processes: list[psutil.Process]) -> tuple[int, int]:
        """Return the number of files that it has in memory, and of sockets; 0 if it is not seen.

        Until bubblewrap has set up its file system, its process sees the machine's files. These
        are not counted.
        """
        files = sockets = 0
        for process in processes[1:2] if bubblewrap() else ():
            root = Path(f"/proc/{process.pid}/root")
            with contextlib.suppress(OSError):
                for folder in ("tmp", "dev/shm"):
                    if (root / folder).stat().st_dev != os.stat(f"/{folder}").st_dev:
                        state = os.statvfs(root / folder)
                        files += state.f_files - state.f_ffree
                sockets = Path(f"/proc/{process.pid}/net/unix").read_bytes().count(b"\n")
        return files, sockets

    def pause(self) -> None:
        """Stop all its processes, so that it can neither work nor watch until `resume`.

        On a busy machine a process stops once it has a processor again.
        """
        end = time.monotonic() + _STOP_SECONDS
        while not self._is_paused:
            running = [process for process in self._processes() if _is_running(process)]
            for process in running:
                with contextlib.suppress(psutil.Error):
                    process.suspend()
            self._is_paused = not running
            if running:
                if time.monotonic() > end:
                    raise SubmissionLostError("the submission's processes cannot be stopped")
                time.sleep(0.001)

    def resume(self) -> None:
        """Let its processes go on after `pause`."""
        for process in self._processes() if self._is_paused else ():
            with contextlib.suppress(psutil.Error):
                process.resume()
        self._is_paused = False

    def end(self) -> None:
        """Kill the process and all processes that it started."""
        self._socket.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _is_running(process: psutil.Process) -> bool:
    try:
        return process.status() not in _AT_REST
    except psutil.Error:  # it has ended
        return False


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment variables of a submission; of the grader's it has only `CXX`."""
    root = Path(WORK).parent if bubblewrap() else folder
    return {
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), "/usr/local/bin:/usr/bin:/bin"]),
        "HOME": HOME if bubblewrap() else str(folder / "home"),
        "USER": "nobody",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "MALLOC_ARENA_MAX": "2",
        "CUDA_VISIBLE_DEVICES": "",
        "ACCELVIZ_CACHE": str(root / "cache"),
        **{variable: str(root / "cache" / name) for variable, name in CACHES.items()},
        **THREADS,
        **({"CXX": os.environ["CXX"]} if "CXX" in os.environ else {}),
    }
