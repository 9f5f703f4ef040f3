"""Runs functions in processes of their own, forked from a server that has imported the library."""

from __future__ import annotations

import compileall
import contextlib
import functools
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, TypeVar

import accelviz
from accelviz.errors import AccelvizError, DeviceUnavailable
from accelviz.files import cache_folder

_Result = TypeVar("_Result")
#: Folders in a cache of what Numba has compiled for tests, and of matplotlib's list of fonts.
#: Submissions get copies.
CACHES = ("numba", "matplotlib")
_PACKAGE = Path(accelviz.__file__).parent
_PRELOADED = [
    *(f"accelviz.course.autograde.{name}" for name in ("judge", "grading", "warm")),
    *(f"accelviz.course.checks.{name}" for name in ("blocks", "reports", "schemes", "sorting")),
]


def environment(cache: Path) -> dict[str, str]:
    """Return variables for a process of one thread: those of BLAS reserve address space."""
    libraries = ("OMP", "OPENBLAS", "MKL", "NUMBA")
    return {
        **{f"{library}_NUM_THREADS": "1" for library in libraries},
        "MALLOC_ARENA_MAX": "2",
        "NUMBA_CACHE_DIR": str(cache / "numba"),
        "MPLCONFIGDIR": str(cache / "matplotlib"),
    }


@functools.cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    before = dict(os.environ)
    os.environ |= environment(cache_folder())
    multiprocessing.resource_tracker.ensure_running()  # which unblocks the signal
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # the server shows no traceback
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        os.environ.clear()
        os.environ |= before
    return context


@functools.cache
def start_server() -> None:
    """Start the server that processes are forked from; call it before starting threads."""
    _context()
    # Submissions cannot write bytecode, and would compile in each sandbox anew what they import.
    compileall.compile_dir(str(_PACKAGE), quiet=2)


def call_in_process(function: Callable[..., _Result], *arguments: Any, seconds: float) -> _Result:
    """Return the result of a module's function, called in a process of its own. Thread-safe.

    Raises the function's exception (RuntimeError for one that is no AccelvizError), TimeoutError
    after `seconds`, or DeviceUnavailable if the process dies.
    """
    receiving, sending = _context().Pipe(duplex=False)
    child = _context().Process(target=_call, args=(sending, function, arguments))
    child.start()
    sending.close()
    try:
        if not receiving.poll(seconds):
            raise TimeoutError(f"it took longer than {seconds:g} s")
        result: _Result
        result, error = receiving.recv()
    except EOFError as ended:
        raise DeviceUnavailable(
            "grading", "a process of the grader died", "free memory, and try again"
        ) from ended
    finally:
        receiving.close()
        child.kill()
        child.join()
    if error is not None:
        raise error
    return result


def _call(connection: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    with contextlib.suppress(BrokenPipeError):  # where the caller was interrupted
        try:
            connection.send((function(*arguments), None))
        except AccelvizError as error:
            connection.send((None, error))
        except BaseException as error:
            reason = "".join(traceback.format_exception_only(error)).strip()
            connection.send((None, RuntimeError(reason)))
