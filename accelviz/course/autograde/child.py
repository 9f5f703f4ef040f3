"""Starts a confined process that answers over a line, and ends it with all that it started."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from accelviz.course.autograde import confine
from accelviz.course.autograde.confine import World
from accelviz.course.autograde.server import beside
from accelviz.course.autograde.wire import Line

#: How often the processes of a namespace are counted, in milliseconds.
_WATCHED_MS = 500


@dataclass
class Child:
    """A confined process.

    Attributes
    ----------
    line : Line
        To the process.
    pid : int
        Of the leader of its process group, which waits for it.
    """

    line: Line
    pid: int

    def interrupt(self) -> None:
        """Send it what Ctrl-C sends."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGINT)

    def end(self) -> None:
        """End it and all that it started."""
        self.line.connection.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def start(
    main: Callable[[Line], None], world: World, isolated: bool, keep: tuple[int, ...] = ()
) -> Child:
    """Fork a confined process that has all that this one has in memory, and takes no `interrupt`.

    Parameters
    ----------
    main : callable
        What it does, with its end of the line.
    world : World
    isolated : bool
        In namespaces of its own.
    keep : tuple of int
        Open files that it keeps, beside its end of the line.
    """
    mine, theirs = socket.socketpair()
    pid = os.fork()
    if pid:
        theirs.close()
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        return Child(Line(mine), pid)
    with contextlib.suppress(BaseException):
        become(theirs, main, world, isolated, keep, False)
    os._exit(1)


def start_beside(
    main: Callable[..., None],
    world: World,
    isolated: bool,
    *arguments: Any,
    without_answers: bool = False,
) -> Child:
    """Start a confined process that knows nothing of this one; from within a server's task.

    Parameters
    ----------
    main : callable
        A module's function.
    world, isolated
        See `start`.
    *arguments
        For `main`, after its end of the line.
    without_answers : bool
        See `bare`.
    """
    given = (main, world, isolated, (), True, *arguments)
    pid, connection = beside(become, *given, without_answers=without_answers)
    return Child(Line(connection), pid)


def become(
    connection: socket.socket,
    main: Callable[..., None],
    world: World,
    isolated: bool,
    keep: tuple[int, ...],
    interrupted: bool,
    *arguments: Any,
) -> None:
    """Confine this process, and do what it is for; does not return."""
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    confine.die_with_parent()
    _close_others({connection.fileno(), *keep})
    if isolated:
        _isolate(world, connection, interrupted)
    else:
        os.chdir(world.folder)
    confine.take_limits(world)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(Line(connection), *arguments)
    os._exit(0)


def _isolate(world: World, connection: socket.socket, interrupted: bool) -> None:
    """Go on in new namespaces, as their first process, or as the second if it is interrupted.

    The first process of a namespace is not an ordinary one: signals pass it by. The one that made
    the namespaces stays outside, and ends them also when nobody listens any more, and when they
    take the processors from others.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    confine.leave(world.network)
    if (first := os.fork()) != 0:
        waiting = select.poll()
        waiting.register(os.pidfd_open(first), select.POLLIN)
        waiting.register(connection, select.POLLHUP)
        watch = confine.Watch()
        while not waiting.poll(_WATCHED_MS) and not watch.too_much():
            pass
        os.killpg(0, signal.SIGKILL)
    confine.die_with_parent()
    confine.enter(world)
    if interrupted and (second := os.fork()) != 0:
        connection.close()
        while os.wait()[0] != second:
            pass
        os._exit(0)
    confine.drop_rights(world.gpu)


def _close_others(kept: set[int]) -> None:
    """Let all other open files be /dev/null, so that nothing of the grader's is in reach."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in map(int, os.listdir("/dev/fd")):
        if number not in kept:
            with contextlib.suppress(OSError):  # the one that lists them
                os.dup2(nowhere, number)
