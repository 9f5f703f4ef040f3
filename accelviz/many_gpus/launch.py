"""One process a GPU, on one host or several: started by one command, and ended together."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from accelviz.errors import (
    ArgumentError,
    DeviceUnavailable,
    checked_integer,
    checked_number,
    checked_type,
)

#: Where a process finds what `launch` tells it.
VARIABLE = "ACCELVIZ_PLACE"
#: Seconds: to wait for other hosts, for a process that is to end, between two looks.
PATIENCE, GRACE, LOOK = 60.0, 2.0, 0.05
#: Seconds of waiting for other hosts after which it is said that they are waited for.
QUIET = 10.0
#: A connection that says nothing is asked after so many seconds, every second, three times; what
#: was sent has to be acknowledged within so many milliseconds.
KEEPALIVE = {"TCP_KEEPIDLE": 2, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 5000}
#: Lets the kernel end a process whose launcher has died, then becomes the program.
_TIED = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


@dataclass(frozen=True)
class Process:
    """Which of the processes this is that `accelviz launch` has started.

    Attributes
    ----------
    rank, size : int
        Its number, which is that of its device in splits, and how many there are.
    gpu : int
        The number of its GPU on its host.
    devices_a_host : int
    meet : str
        Host and port at which the processes find each other.
    """

    rank: int
    size: int
    gpu: int
    devices_a_host: int
    meet: str

    def share(self, name: str, word: str | None) -> str:
        """Tell all processes a word, or with None wait for it."""
        if word is not None:
            _ask(self.meet, {"put": name, "word": word})
            return word
        answer = _ask(self.meet, {"get": name})
        if answer is None:
            raise DeviceUnavailable("launch", f"{self.meet} does not answer", "start again")
        return answer


def this_process() -> Process | None:
    """Return which process of `accelviz launch` this is, or None."""
    said = os.environ.get(VARIABLE)
    return Process(**json.loads(said)) if said else None


def launch(
    command: Sequence[str],
    gpus: Sequence[int],
    *,
    hosts: int = 1,
    host: int = 0,
    meet: str | None = None,
    patience: float = PATIENCE,
) -> None:
    """Run a program once for each GPU of this host, until all have ended.

    Parameters
    ----------
    command : sequence of str
        The program's file, or "-m" and a module, and its arguments.
    gpus : sequence of int
        The GPU of each process; as many on each host.
    hosts, host : int
        How many hosts there are, and which this is, from 0. Each runs `launch`.
    meet : str, optional
        "name:port" of host 0, as all see it, and a port that is free there. Whoever reaches it can
        end the run: it is for a network that is trusted. Not needed with one host.
    patience : float
        Seconds to wait for the other hosts.

    Raises
    ------
    ArgumentError
        If the arguments do not fit, or those of the hosts.
    DeviceUnavailable
        If a process ends with an error or by a signal, or a host does not come or is lost: which.
        All other processes of all hosts have been ended then.

    Notes
    -----
    Processes do not watch each other: one that waits for a GPU cannot. Each host's `launch` watches
    its own, and host 0 keeps a connection to the others. A process that has died is known within
    0.1 s, a host that has lost its power by TCP after 5 s, and what does not end by SIGTERM is
    killed after 2 s. If a `launch` is killed, the kernel ends its processes (Linux).
    """
    checked_type("command", command, list | tuple, "a list of words")
    checked_type("gpus", gpus, Sequence, "numbers of GPUs")
    gpus = [checked_integer("gpus", gpu, least=0, error=ArgumentError) for gpu in gpus]
    patience = checked_number("patience", patience, or_zero=True)
    if not command or not gpus:
        raise ArgumentError("launch", "no program or no GPU", "accelviz launch -n 2 program.py")
    hosts = checked_integer("hosts", hosts, error=ArgumentError)
    host = checked_integer("host", host, hosts - 1, least=0, error=ArgumentError)
    if hosts > 1 and meet is None:
        raise ArgumentError("meet", "not given", "name:port of host 0, the same on all hosts")
    with contextlib.ExitStack() as stack:
        board = None
        if host == 0:
            board = Board("" if hosts > 1 else "127.0.0.1", _port(meet) if meet is not None else 0)
            stack.callback(board.close)
        where = meet if meet is not None else f"127.0.0.1:{board.port if board else 0}"
        _port(where)
        line = stack.enter_context(_connected(where, patience))
        about = {"host": host, "hosts": hosts, "gpus": len(gpus)}
        line.sendall(json.dumps(about).encode() + b"\n")
        _Run(list(map(str, command)), gpus, about, where, board).watch(patience)


class Board:
    """Words that processes leave for each other at host 0; each stays as it was first written."""

    def __init__(self, name: str, port: int) -> None:
        try:
            self._server = socket.create_server((name, port))
        except OSError as error:
            right = "a port of this host that is free"
            raise ArgumentError("meet", f"port {port}: {error.strerror}", right) from error
        self.port = int(self._server.getsockname()[1])
        self.words: dict[str, str] = {}
        self._hosts: dict[int, dict[str, int]] = {}
        self._changed, self._waiting = threading.Condition(), 0
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def put(self, name: str, word: str) -> None:
        """Write a word, unless it is there."""
        with self._changed:
            self.words.setdefault(name, word)
            self._changed.notify_all()

    def close(self) -> None:
        """Answer those who wait, then end all connections."""
        self.put("begin", "")
        self.put("end", "")
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, GRACE)
        for connection in (self._server, *self._connections):
            with contextlib.suppress(OSError):  # closing alone wakes nobody up
                connection.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                connection, _ = self._server.accept()
                _keep_alive(connection)
                self._connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        host = None
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError), connection:
            for text in connection.makefile("rb"):
                ask = json.loads(text)
                if "host" in ask:
                    host = ask["host"]
                    self._come(ask)
                elif "put" in ask:
                    self.put(ask["put"], ask["word"])
                    connection.sendall(b'""\n')
                else:
                    self._answer(connection, ask["get"])
        if host is not None and f"done {host}" not in self.words:
            self.put("end", f"host {host} is lost")

    def _answer(self, connection: socket.socket, name: str) -> None:
        """Send a word when it is there."""
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: name in self.words or "end" in self.words)
        try:
            connection.sendall(json.dumps(self.words.get(name)).encode() + b"\n")
        finally:
            with self._changed:
                self._waiting -= 1
                self._changed.notify_all()

    def _come(self, about: dict[str, int]) -> None:
        """Note a host; when all are there, let them begin."""
        with self._changed:
            first = self._hosts.setdefault(about["host"], about)
            alike = {(each["hosts"], each["gpus"]) for each in (*self._hosts.values(), about)}
            if first is not about:
                self.put("end", f"two hosts say that they are host {about['host']}")
            elif len(alike) > 1:
                self.put("end", "hosts were told of different numbers of hosts or GPUs")
            elif len(self._hosts) == about["hosts"]:
                self.put("begin", "")

    def missing(self, hosts: int) -> list[int]:
        """Return the hosts that have not come."""
        return sorted({*range(hosts)} - self._hosts.keys())


class _Run:
    """The processes of one host."""

    def __init__(
        self, command: list[str], gpus: list[int], about: dict[str, int], where: str, board: Any
    ) -> None:
        self.command, self.gpus, self.about, self.where = command, gpus, about, where
        self.board: Board | None = board
        self.first = about["host"] * len(gpus)
        self.end: str | None = None
        self._begun, self._done = threading.Event(), False
        self.children: list[subprocess.Popen[bytes]] = []

    def watch(self, patience: float) -> None:
        """Start the processes, wait for them, and end them all if anything goes wrong."""
        for name in ("begin", "end"):
            threading.Thread(target=self._hear, args=(name,), daemon=True).start()
        try:
            self._wait_for_hosts(patience)
            for place_here, gpu in enumerate(self.gpus):
                if not self.end:
                    self.children.append(self._started(place_here, gpu))
            while not self.end:
                if self._over():
                    return
                time.sleep(LOOK)
        finally:
            self._end_children()
        fix = "start again; all others were ended, and what it wrote above may say more"
        raise DeviceUnavailable("launch", self.end, fix)

    def _hear(self, name: str) -> None:
        word = _ask(self.where, {"get": name})
        if name == "end":
            self.end = self.end or ("host 0 is lost" if word is None else word)
        elif word is not None:
            self._begun.set()

    def _wait_for_hosts(self, patience: float) -> None:
        waiting = _Waiting(patience)
        while not self._begun.is_set() and not self.end:
            missing = self.board.missing(self.about["hosts"]) if self.board else []
            names = " and ".join(f"host {each}" for each in missing) or "other hosts"
            if waiting.over(names):
                self._fail(f"{names} did not come within {patience:g} s")
            time.sleep(LOOK)

    def _started(self, place_here: int, gpu: int) -> subprocess.Popen[bytes]:
        size = self.about["hosts"] * len(self.gpus)
        own = Process(self.first + place_here, size, gpu, len(self.gpus), self.where)
        tie = ["-c", _TIED] if sys.platform == "linux" else []
        environment = {**os.environ, VARIABLE: json.dumps(asdict(own))}
        return subprocess.Popen([sys.executable, *tie, *self.command], env=environment)

    def _over(self) -> bool:
        """Look after the processes; say whether all of this host, and on host 0 of all, ended."""
        for number, child in enumerate(self.children):
            if child.poll():
                of_host = f" of host {self.about['host']}" if self.about["hosts"] > 1 else ""
                which = f"process {self.first + number} (GPU {self.gpus[number]}{of_host})"
                self._fail(f"{which} {_how(child.returncode)}")
        if self.end or any(child.returncode is None for child in self.children):
            return False
        if not self._done:
            _ask(self.where, {"put": f"done {self.about['host']}", "word": ""})
            self._done = True
        if self.board is None:
            return True
        return all(f"done {host}" in self.board.words for host in range(self.about["hosts"]))

    def _fail(self, what: str) -> None:
        if not self.end:
            self.end = what
            _ask(self.where, {"put": "end", "word": what})

    def _end_children(self) -> None:
        living = [child for child in self.children if child.poll() is None]
        for child in living:
            child.terminate()
        until = time.monotonic() + GRACE
        for child in living:
            try:
                child.wait(max(until - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _how(status: int) -> str:
    if status > 0:
        return f"ended with status {status}"
    return f"was ended by signal {-status} ({signal.Signals(-status).name})"


def _port(meet: str) -> int:
    name, _, port = str(meet).rpartition(":")
    if not name or not port.isdigit() or int(port) > 65535:
        raise ArgumentError("meet", f"got {meet!r}", "name:port")
    return int(port)


class _Waiting:
    """A time to wait for other hosts, of which is told when it becomes long."""

    def __init__(self, patience: float) -> None:
        self._patience, self._start, self._told = patience, time.monotonic(), False

    def over(self, what: str) -> bool:
        """Say whether the time is over; if it is long, say what is waited for, once."""
        waited = time.monotonic() - self._start
        if waited > QUIET and not self._told:
            self._told = True
            about = f"waiting for {what}, {self._patience:g} s at most"
            print(f"accelviz: launch: {about}", file=sys.stderr, flush=True)
        return waited > self._patience


@contextlib.contextmanager
def _connected(meet: str, patience: float = 5.0) -> Iterator[socket.socket]:
    """Connect to host 0, which may not be there yet; its name and the way to it have to be."""
    waiting = _Waiting(patience)
    while True:
        try:
            connection = socket.create_connection((meet.rpartition(":")[0], _port(meet)), 5.0)
            break
        except (OSError, UnicodeError) as error:
            number, says = getattr(error, "errno", None), getattr(error, "strerror", None)
            hopeless = isinstance(error, socket.gaierror | UnicodeError)
            hopeless = hopeless or number == errno.ENETUNREACH
            if hopeless or waiting.over(f"host 0 at {meet} ({says or error})"):
                fix = "start launch on host 0, and look at its name and port"
                raise DeviceUnavailable("meet", f"{meet}: {error}", fix) from error
            time.sleep(4 * LOOK)
    connection.settimeout(None)
    _keep_alive(connection)
    with connection:
        yield connection


def _ask(meet: str, what: dict[str, str]) -> str | None:
    """Ask host 0, wait for the answer; None if it is gone."""
    with contextlib.suppress(OSError, ValueError, DeviceUnavailable), _connected(meet) as line:
        line.sendall(json.dumps(what).encode() + b"\n")
        answer: str = json.loads(line.makefile("rb").readline())
        return answer
    return None


def _keep_alive(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
