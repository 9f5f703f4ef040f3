"""Runs a function in a process of its own, forked from one that has imported the library."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import multiprocessing.forkserver
import os
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import Any, TypeVar

from accelviz.errors import AccelvizError, DeviceUnavailable
from accelviz.files import cache_folder

_Answer = TypeVar("_Answer")
#: Each thread of a BLAS or of OpenMP reserves address space, and a server has many cores.
THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
_IMPORTED = tuple(f"accelviz.course.autograde.{name}" for name in ("judge", "leaderboard", "warm"))


def numba_cache() -> str:
    """Return the folder of functions that tests have compiled; submissions get copies."""
    return str(cache_folder() / "numba")


@functools.cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED))
    before = dict(os.environ)
    os.environ |= {**THREADS, "MALLOC_ARENA_MAX": "2", "NUMBA_CACHE_DIR": numba_cache()}
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ |= before
    return context


def start_server() -> None:
    """Start the process that others are forked from; call it before threads do."""
    _context()


@contextlib.contextmanager
def process(context: Any, function: Callable[..., None], *arguments: Any) -> Iterator[Connection]:
    """Call `function(connection, *arguments)` in a process that ends with the block.

    The block gets the connection at which its messages arrive.
    """
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(target=function, args=(sending, *arguments))
    child.start()
    sending.close()
    try:
        yield receiving
    finally:
        receiving.close()
        child.kill()
        child.join()


def apart(function: Callable[..., _Answer], *arguments: Any, seconds: float) -> _Answer:
    """Call a module's function in a process of its own; threads may do so side by side.

    TimeoutError if it takes longer than `seconds`, DeviceUnavailable if the process dies.
    """
    with process(_context(), _call, function, arguments) as connection:
        if not connection.poll(seconds):
            raise TimeoutError(f"it took longer than {seconds:g} s")
        try:
            answer, error = connection.recv()
        except EOFError as ended:
            raise DeviceUnavailable(
                "grading", "a process of the grader died", "free memory, and try again"
            ) from ended
    if error is not None:
        raise error
    result: _Answer = answer
    return result


def _call(sending: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        sending.send((function(*arguments), None))
    except AccelvizError as error:
        sending.send((None, error))
    except BaseException as error:
        reason = "".join(traceback.format_exception_only(error)).strip()
        sending.send((None, RuntimeError(reason)))
