"""A process that has imported everything once, and forks for each task.

Importing accelviz takes seconds, a fork milliseconds; and what a task does to its memory is gone
with it. The server itself never runs a task, starts with an empty environment, and ends with the
process that made it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from accelviz.course.autograde import bare
from accelviz.course.autograde.confine import adopt_orphans, die_with_parent
from accelviz.errors import AccelvizError, DeviceUnavailable

_Answer = TypeVar("_Answer")
#: What is imported before the first task, as far as it is installed.
_WARM = (
    *("accelviz.course.checks", "accelviz.plots", "accelviz.course.autograde.student"),
    *("accelviz.course.autograde.child", "accelviz.course.checks.export"),
)
#: And by the server that may have all answers.
_WARM_JUDGE = ("accelviz.course.autograde.judge", "accelviz.course.autograde.grading")
#: Each thread of a BLAS or of OpenMP reserves address space, and a server has many cores.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class TaskTimeout(Exception):  # noqa: N818
    """A task did not end in its time."""


class Server:
    """Starts the process at the first task, ends it with `close` or at the end of a `with`.

    Parameters
    ----------
    gpu : bool
        Leave tasks what they need of the environment to find a GPU.
    """

    def __init__(self, gpu: bool = False) -> None:
        self._gpu = gpu
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._home: Any = None
        self._line: Any = None
        self._bare: Any = None

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and all tasks."""
        if self._process is not None:
            self._line.close()
            self._bare.close()
            self._process.kill()
            self._process.wait()
            self._process = None
            self._home.cleanup()

    def run(self, task: Callable[..., _Answer], *arguments: Any, seconds: float) -> _Answer:
        """Carry out a module's function in a fork of its own; threads may do so side by side.

        Raises
        ------
        TaskTimeout
            If it takes longer than `seconds`.
        DeviceUnavailable
            If it dies.
        """
        mine, theirs = socket.socketpair()
        with mine, mine.makefile("rwb") as stream:
            with theirs, self._lock:
                self._start()
                files = [theirs.fileno(), self._line.fileno(), self._bare.fileno()]
                socket.send_fds(self._line, [b"t"], files)
            deadline, pid = time.monotonic() + seconds, 0
            try:
                mine.settimeout(seconds + 60)  # a busy machine may take its time to fork
                pid = pickle.load(stream)
                pickle.dump((task.__module__, task.__qualname__, arguments), stream)
                stream.flush()
                mine.settimeout(max(0.01, deadline - time.monotonic()))
                kind, answer = pickle.load(stream)
            except TimeoutError as error:
                if pid:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                raise TaskTimeout(f"it took longer than {seconds:g} s") from error
            except (EOFError, OSError, pickle.UnpicklingError) as error:
                raise DeviceUnavailable(
                    "grading", "a process of the grader died", "free memory, and try again"
                ) from error
        if kind == "error":
            raise answer
        return answer

    def _start(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self._home = tempfile.TemporaryDirectory(prefix="accelviz-", ignore_cleanup_errors=True)
        self._line, theirs = socket.socketpair()
        self._bare, bares = socket.socketpair()
        paths = [path for path in sys.path if os.path.isabs(path)]
        program = f"import sys; sys.path[:] = {paths!r}\n"
        program += "from importlib.util import module_from_spec, spec_from_file_location\n"
        program += f"spec = spec_from_file_location('bare', {bare.__file__!r})\n"
        program += "module = sys.modules['bare'] = module_from_spec(spec)\n"
        program += "spec.loader.exec_module(module)\n"
        program += f"module.boot({theirs.fileno()}, {bares.fileno()})"
        with theirs, bares:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", program],
                env=_environment(self._home.name, self._gpu),
                cwd="/",
                pass_fds=[theirs.fileno(), bares.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )


def _environment(home: str, gpu: bool) -> dict[str, str]:
    """Return the whole environment of tasks: nothing of the caller's that they do not need."""
    kept = ("CUDA_PATH", "CUDA_HOME", "LD_LIBRARY_PATH") if gpu else ()
    return {
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), "/usr/local/bin:/usr/bin:/bin"]),
        "HOME": home,
        "LANG": "C.UTF-8",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "MALLOC_ARENA_MAX": "2",
        **dict.fromkeys(_THREADS, "1"),
        **({} if gpu else {"CUDA_VISIBLE_DEVICES": ""}),
        **{name: os.environ[name] for name in (*kept, "CXX") if name in os.environ},
    }


#: Within a task: where it asks the server, and the bare one, for a process apart from the task.
_servers: list[socket.socket] = []


def beside(
    process: Callable[..., Any], *arguments: Any, without_answers: bool = False
) -> tuple[int, socket.socket]:
    """From within a task, let a server fork a process that knows nothing of the task.

    Parameters
    ----------
    process : callable
        A module's function; it gets its end of a connection, and does not return.
    without_answers : bool
        Nor of A2's and A3's answers; see `bare`.
    *arguments
        For it, after that.

    Returns
    -------
    int
        Its process id.
    socket
        Connected to it.
    """
    assert _servers, "only within a task"
    mine, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(_servers[without_answers], [b"t"], [theirs.fileno()])
    with mine.makefile("rwb") as stream:
        pid = pickle.load(stream)
        pickle.dump((process.__module__, process.__qualname__, arguments), stream)
    return pid, mine


def serve(number: int, without_answers: bool) -> None:
    """Fork for each task that comes in; the server's own main function."""
    adopt_orphans()
    if without_answers:
        die_with_parent()
    for name in _WARM if without_answers else (*_WARM, *_WARM_JUDGE):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    _compile(without_answers)
    # ends of tasks, and of what they leave behind, are not waited for
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=number) as line:
        while True:
            try:
                _, (task, *back), *_ = socket.recv_fds(line, 1, 3)
            except (OSError, ValueError):  # the other side is gone
                return
            if os.fork() == 0:
                line.close()
                die_with_parent()
                adopt_orphans()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                with contextlib.suppress(BaseException):
                    connection = socket.socket(fileno=task)
                    _servers.extend(socket.socket(fileno=each) for each in back)
                    _carry_out(connection, answers=bool(back))
                os._exit(0)
            for each in (task, *back):
                os.close(each)


def _compile(without_answers: bool) -> None:
    """Let Numba compile what tests run, once for all of them, which may not write its cache."""
    from numba.core.caching import FunctionCache

    from accelviz.course.checks import warm

    save = FunctionCache.save_overload

    def save_if_it_can(*arguments: Any) -> None:
        with contextlib.suppress(OSError):
            save(*arguments)

    FunctionCache.save_overload = save_if_it_can  # type: ignore[method-assign]
    with contextlib.suppress(Exception):
        warm.run_bare() if without_answers else warm.run_once()
    if without_answers:
        # the module that this process began with, and not the package's of the same name
        sys.modules["bare"].StandIn.importing = False


def _carry_out(connection: socket.socket, answers: bool) -> None:
    """Carry out one task."""
    with connection.makefile("rwb") as stream:
        pickle.dump(os.getpid(), stream)
        stream.flush()
        module, name, arguments = pickle.load(stream)
        task = getattr(importlib.import_module(module), name)
        if answers:
            try:
                answer = ("answer", task(*arguments))
            except AccelvizError as error:
                answer = ("error", error)
            except BaseException as error:
                told = "".join(traceback.format_exception_only(error)).strip()
                answer = ("error", RuntimeError(told))
            pickle.dump(answer, stream)
    if not answers:
        task(connection, *arguments)


def one_server(server: Server | None = None, gpu: bool = False) -> Server:
    """Return the server that is given, or the one that this process keeps until it ends."""
    return server or _kept(gpu)


@functools.cache
def _kept(gpu: bool) -> Server:
    server = Server(gpu)
    atexit.register(server.close)
    return server
