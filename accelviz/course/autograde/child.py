"""The judge's view of a process in the sandbox: starts, watches, pauses and ends it."""

from __future__ import annotations

import contextlib
import math
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from accelviz.course.autograde.border import GIVEN, MAX_TASKS, ROOT, Confinement, bubblewrap, start
from accelviz.course.autograde.processes import environment
from accelviz.course.autograde.wire import MAX_BYTES, Line, SubmissionLostError

#: The processor time of a submission may be at most `MAX_PROCESSORS` times the time since its start
#: plus `_BURST_SECONDS`. Cells and compilers are meant to use one processor.
MAX_PROCESSORS, _BURST_SECONDS = 1.5, 8.0
#: Seconds between two checks of these limits; most files and sockets that it may have in memory.
_WATCH_SECONDS, _MAX_FILES, _MAX_SOCKETS = 0.5, 20_000, 1_000
#: Seconds until its processes have to stand still.
_STOP_SECONDS = 20.0
GREEDY = "the submission was ended (too many processes, processors or files, or too much memory)"
_AT_REST = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE)
#: Bytes that each process of the submission, and those that it started, had at the last look.
_memory: dict[Child, int] = {}
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
        #: The folder that it works in; "" with bubblewrap, which makes one.
        self._folder = "" if bubblewrap() else tempfile.mkdtemp(dir=bounds.folder.parent)
        if self._folder and bounds.user:
            os.chown(self._folder, bounds.user, bounds.user)
        source, root = (str(bounds.folder), self._folder) if self._folder else (GIVEN, ROOT)
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
        arguments = theirs.fileno(), bounds.limits.output_bytes, reads_files, source, root
        program += f"main(*{arguments!r})"
        with theirs:
            command = [sys.executable, "-I", "-c", program]
            self._process = start(command, bounds, theirs.fileno(), _environment(Path(root)))
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
        # `memory_gib` limits the address space of one process; all together may use twice as much,
        # also those of a submission's other `Child`.
        gib = bounds.limits.memory_gib
        self._max_memory = float("inf") if gib is None else 2 * gib * 2**30

    def processor_seconds(self) -> float:
        """Return the processor time that all its processes have used, also those that ended."""
        return self._usage(self._processes())[1]

    def send(self, message: Any, seconds: float = math.inf) -> None:
        """Send a message, and let its processes work.

        Raises TimeoutError if it is not read within `seconds`. See `receive`.
        """
        self._resume()
        self._deadline = time.monotonic() + seconds
        self._line.send(message)

    def receive(self, seconds: float = math.inf, limit: int = MAX_BYTES) -> Any:
        """Receive a message, and stop its processes: they work only while somebody watches them.

        Raises TimeoutError if the message has not arrived whole within `seconds`. Raises
        SubmissionLostError if the process is gone or violates the protocol, or meanwhile uses too
        many processes or processors or too much memory.
        """
        self._deadline = time.monotonic() + seconds
        message = self._line.receive(limit)
        self._pause()
        return message

    def _watch(self, event: int) -> None:
        """Wait for an event of the socket, and look at the processes from time to time."""
        self._poll.register(self._socket, event)
        is_ready = False
        while not is_ready:
            seconds = min(_WATCH_SECONDS, self._deadline - time.monotonic())
            is_ready = bool(self._poll.poll(1000 * max(0.0, seconds)))
            now = time.monotonic()
            if now >= self._next_look:
                self._look()
                self._next_look = time.monotonic() + _WATCH_SECONDS
            if now >= self._deadline:
                raise TimeoutError

    def _look(self) -> None:
        """Raise SubmissionLostError if its processes together use too much."""
        processes = self._processes()
        tasks, busy, memory = self._usage(processes)
        max_busy = MAX_PROCESSORS * (time.monotonic() - self._begin) + _BURST_SECONDS
        _memory[self] = memory
        too_large = sum(_memory.values()) > self._max_memory
        is_greedy = tasks > MAX_TASKS or busy > max_busy or too_large
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
                    with contextlib.suppress(OSError):  # it has ended
                        state = Path(folder, number, "stat").read_text("utf-8", "replace")
                        numbers.add((number, state.rpartition(")")[2].split()[19]))
                return numbers
        return set()

    def _usage(self, processes: list[psutil.Process]) -> tuple[int, float, int]:
        """Return the number of threads, processor seconds and resident bytes of its processes."""
        tasks, seconds, memory = 0, 0.0, 0
        for process in processes:
            with contextlib.suppress(psutil.Error):
                threads = _threads(process)
                tasks += len(threads)
                seconds += sum(process.cpu_times()[:4])  # with children that it has waited for
                resident = process.memory_info().rss
                memory += resident or max(map(_resident_bytes, threads), default=0)
        return tasks, seconds, memory

    def _n_files_and_sockets(self, processes: list[psutil.Process]) -> tuple[int, int]:
        """Return the number of files that it has in memory, and of sockets and terminals.

        0 if it is not seen.

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
                sockets += len(os.listdir(root / "dev" / "pts"))  # the machine has 4,096
        return files, sockets

    def _pause(self) -> None:
        """Stop all its processes, so that it can neither work nor watch.

        On a busy machine a process stops once it has a processor again. One that ends may wake one
        that was looked at before, so two looks have to agree.
        """
        end, states = time.monotonic() + _STOP_SECONDS, dict[psutil.Process, tuple[str, int]]()
        while not self._is_paused:
            before, states = states, self._states()
            is_running = any(state not in _AT_REST for state, _ in states.values())
            for process in self._processes() if is_running else ():
                with contextlib.suppress(psutil.Error):
                    process.suspend()
            self._is_paused = states == before and not is_running
            if time.monotonic() > end:
                raise SubmissionLostError("the submission's processes cannot be stopped")
            time.sleep(0.001 * is_running)

    def _states(self) -> dict[psutil.Process, tuple[str, int]]:
        """Return the state of each thread, and how often it has stopped to work."""
        states = {}
        for thread in (thread for process in self._processes() for thread in _threads(process)):
            with contextlib.suppress(psutil.Error):  # it has ended
                states[thread] = thread.status(), sum(thread.num_ctx_switches())
        return states

    def _resume(self) -> None:
        for process in self._processes() if self._is_paused else ():
            with contextlib.suppress(psutil.Error):
                process.resume()
        self._is_paused = False

    def end(self) -> None:
        """Kill the process and all processes that it started."""
        self._socket.close()
        _memory.pop(self, None)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _threads(process: psutil.Process) -> list[psutil.Process]:
    """Return a process for each thread, as each has a state of its own.

    A process whose first thread has ended is a zombie without memory, while its others work. What
    the system writes of a process begins with a name that it may give itself, so threads are not
    counted from that text.
    """
    if sys.platform != "linux":
        return [process] * process.num_threads()
    threads = []
    with contextlib.suppress(OSError):  # it has ended
        for number in os.listdir(f"/proc/{process.pid}/task"):
            with contextlib.suppress(psutil.Error):
                threads.append(psutil.Process(int(number)))
    return threads


def _resident_bytes(thread: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(thread.memory_info().rss)
    return 0


def _environment(root: Path) -> dict[str, str]:
    """Return the environment variables of a submission; of the grader's it has only `CXX`."""
    return {
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), "/usr/local/bin:/usr/bin:/bin"]),
        "HOME": str(root / "home"),
        "USER": "nobody",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "CUDA_VISIBLE_DEVICES": "",
        "ACCELVIZ_CACHE": str(root / "cache"),
        **environment(root / "cache"),
        **({"CXX": os.environ["CXX"]} if "CXX" in os.environ else {}),
    }
