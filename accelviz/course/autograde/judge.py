"""Runs a notebook: the student's cells in one confined process, each test in a fork of this one.

A test sees what the student's cells define as `checks.remote.Remote`s: it hands over plain data,
gets plain data back, and judges them with its own library. So points are what the test itself makes
of them, and nothing that the student's code does to its process reaches it.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import multiprocessing
import os
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from accelviz.course.autograde.border import Limits, confined
from accelviz.course.autograde.child import GREEDY, Child
from accelviz.course.autograde.outputs import error_output, trimmed
from accelviz.course.autograde.wire import (
    MOST_OF_A_CELL,
    Lost,
    decode,
    encode,
    receive,
    send,
)
from accelviz.course.checks.common import quietly
from accelviz.course.checks.hidden import COURSE_SEED
from accelviz.course.checks.remote import Link, Remote, exception_of, handle_of
from accelviz.emulator import process

#: A cell after one that was stopped has this share of the time of a cell: whoever loops once does
#: so in every test.
_AFTER_A_STOP = 0.25
#: Tests that ask a second process, which ran the same cells, what it makes of the first's answer.
_ASK_A_TWIN = ("checks.schemes", "autograde.board")
#: What an interrupted process has to answer, and one that begins.
_SECONDS_TO_STOP, _SECONDS_TO_START = 2.0, 120.0
#: How often a submission's processes are counted.
_WATCH_SECONDS = 0.5
_OUT_OF_MEMORY = "out of memory"
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Cell:
    """A code cell and who may run it.

    Attributes
    ----------
    kind : {"student", "given", "test"}
        Run by the student's process; by that one and by the tests'; by a test's process alone.
    source : str
    """

    kind: str
    source: str


@dataclass(frozen=True)
class Task:
    """A notebook to run, and under which limits.

    Attributes
    ----------
    cells : tuple of Cell
    limits : Limits
    folder : Path
        See `Child`.
    hidden : tuple of str
        Folders that a submission finds empty.
    cache : str
        The cache of tests.
    seed : int
        The course's.
    library : str
        A folder whose modules given cells and tests may import.
    bare : bool
        The student's process has not the library's own answers; see `stand_ins`.
    """

    cells: tuple[Cell, ...]
    limits: Limits
    folder: Path
    hidden: tuple[str, ...]
    cache: str
    seed: int = 0
    library: str = ""
    bare: bool = False


@dataclass
class Ran:
    """What became of a cell.

    Attributes
    ----------
    seconds : float
        Wall-clock time it took.
    problem : str
        What went wrong, "" if nothing.
    raised : bool
        The problem is an exception that the cell raised, as a failed test does.
    outputs : list
        As notebooks keep them.
    value : object
        The last value of a test; plain data.
    """

    seconds: float = 0.0
    problem: str = ""
    raised: bool = False
    outputs: list[dict[str, Any]] = field(default_factory=list)
    value: Any = None


def judged(task: Task) -> list[Ran]:
    """Run a notebook; one `Ran` for each cell. The main function of a process."""
    os.environ |= {COURSE_SEED: str(task.seed), "ACCELVIZ_CACHE": task.cache}
    if not task.limits.gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.chdir(task.cache)
    if task.library:
        sys.path.append(task.library)
    return _Run(task).run()


class Asking(Link):
    """A submission's process, as a test sees it."""

    def __init__(self, child: Child, cells: tuple[str, ...], twin: Child | None = None) -> None:
        self.cells = cells
        self._child = child
        self._twin = twin

    @property
    def twin(self) -> Asking:
        """The process that ran the same cells and nothing else."""
        assert self._twin is not None
        return Asking(self._twin, self.cells)

    def processor_seconds(self) -> float:
        """Return the processor time that the submission has taken."""
        return self._child.processor_seconds()

    def ask(self, message: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        """Ask for a value."""
        if message["do"] in ("call", "run"):
            data = encode((arguments, options), handle_of)
            message = {**message, "arguments": data}
        send(self._child.connection, message)
        answer = receive(self._child.connection)
        if not isinstance(answer, dict):
            raise Lost("an answer is no plain data")
        if "error" in answer:
            name, text, *_ = [str(part)[:5000] for part in (*answer["error"], "", "")]
            if name in ("SystemExit", "KeyboardInterrupt"):
                raise RuntimeError(f"it ended in {name}")
            raise exception_of(name[:100], text)
        name = message.get("name", "")
        return decode(answer.get("value"), lambda handle: Remote(self, int(handle), name))


class _Run:
    def __init__(self, task: Task) -> None:
        self.task, self.limits = task, task.limits
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.deadline = time.monotonic() + task.limits.seconds
        self.child: Child | None = None
        self.twin: Child | None = None
        self.cells_of_twin = 0
        self.lost: set[int] = set()
        self.allowed = task.limits.cell_seconds

    def run(self) -> list[Ran]:
        results: list[Ran] = []
        try:
            self.child = self._started()
            for index, cell in enumerate(self.task.cells):
                results.append(self._step(index, cell))
        finally:
            self._end()
        return results

    def _seconds(self) -> float:
        return max(1e-3, min(self.allowed, self.deadline - time.monotonic()))

    def _step(self, index: int, cell: Cell) -> Ran:
        if self.deadline <= time.monotonic():
            problem = f"not run: the submission had used its {self.limits.seconds:g} s"
            return _failed("NotRun", problem)
        begin = time.perf_counter()
        if cell.kind == "given":
            self._give(cell)
        if cell.kind == "test":
            if any(name in cell.source for name in _ASK_A_TWIN):
                self._bring_twin(index)
            ran, fatal = self._test(cell)
        else:
            assert self.child is not None
            ran, fatal = self._cell(cell, self.child)
        ran.seconds = time.perf_counter() - begin
        if fatal:
            self.lost.add(index)
            self._replay(index)
        return ran

    def _give(self, cell: Cell) -> None:
        """Run a given cell for the tests."""
        with contextlib.suppress(Exception), quietly():
            exec(compile(cell.source, "<given>", "exec"), self.names)

    def _cell(self, cell: Cell, child: Child) -> tuple[Ran, bool]:
        """Run a cell in a student's process; return whether that has to be replaced, too."""
        allowed, begin = self._seconds(), time.monotonic()
        if cell.kind == "given":  # it imports the library, which may take long on a busy machine
            allowed = max(1e-3, min(_SECONDS_TO_START, self.deadline - begin))
        most = max(MOST_OF_A_CELL, 8 * self.limits.output_bytes)
        try:
            send(child.connection, {"cell": cell.source, "seconds": allowed}, allowed)
            until = allowed + _SECONDS_TO_STOP
            _watch(child, child.connection, until)
            answer = receive(child.connection, until - (time.monotonic() - begin), most)
            outputs = trimmed(answer, self.limits.output_bytes)
        except TimeoutError:
            self.allowed = self.limits.cell_seconds * _AFTER_A_STOP
            problem = f"stopped after {allowed:.0f} s, and would not be interrupted"
            return _failed("CellTimeoutError", problem), True
        except Lost as error:
            return _failed("ProcessDied", str(error)), True
        if isinstance(answer, dict) and answer.get("exited"):
            problem = "the cell ended its own process (exit or quit)"
            return _failed("ProcessDied", problem, outputs), True
        errors = [output for output in outputs if output["output_type"] == "error"]
        if time.monotonic() - begin >= allowed and (not errors or _is_interrupt(errors[-1])):
            self.allowed = self.limits.cell_seconds * _AFTER_A_STOP
            return _failed("CellTimeoutError", f"stopped after {allowed:.0f} s", outputs), False
        if not errors:
            return Ran(outputs=outputs), False
        raised = errors[-1]
        if "MemoryError" in raised["ename"]:
            # The traceback holds on to what filled the memory, so the next cell would fail too.
            return Ran(problem=_OUT_OF_MEMORY, outputs=outputs), True
        problem = _headline(raised["ename"], raised["evalue"])
        return Ran(problem=problem, raised=True, outputs=outputs), False

    def _test(self, cell: Cell) -> tuple[Ran, bool]:
        """Run a test in a fork; return whether the student's process has to be replaced, too."""
        assert self.child is not None
        sources = tuple(cell.source for cell in self.task.cells if cell.kind == "student")
        asking = Asking(self.child, sources, self.twin)
        allowed = self._seconds()
        receiving, sending = _FORK.Pipe(duplex=False)
        test = _FORK.Process(
            target=_run_test, args=(sending, cell.source, self.names, asking, self.task)
        )
        test.start()
        sending.close()
        try:
            _watch(self.child, receiving, allowed)
            answer = receiving.recv()
        except TimeoutError:
            self.allowed = self.limits.cell_seconds * _AFTER_A_STOP
            return _failed("CellTimeoutError", f"stopped after {allowed:.0f} s"), True
        except Lost as error:
            return _failed("ProcessDied", str(error)), True
        except EOFError:
            problem = "the test's process died (a crash, or out of memory)"
            return _failed("ProcessDied", problem), True
        finally:
            receiving.close()
            test.kill()
            test.join()
        if "value" in answer:
            return Ran(value=answer["value"]), False
        name, text, fatal = answer["error"]
        if fatal:
            return _failed(name, text), True
        problem = _headline(name, text)
        return Ran(problem=problem, raised=True, outputs=[error_output(name, text)]), False

    def _started(self) -> Child:
        """Start a student's process."""
        task = self.task
        child = Child(task.limits, task.folder, task.hidden, task.bare)
        try:
            receive(child.connection, _SECONDS_TO_START)
        except (Lost, TimeoutError):
            child.end()
            raise RuntimeError("the submission's process did not start within the limits") from None
        return child

    def _bring_twin(self, upto: int) -> None:
        """Let a second process run the cells up to this one, which never sees a test's input."""
        if self.twin is None:
            self.twin, self.cells_of_twin = self._started(), 0
        for index, cell in enumerate(self.task.cells[:upto]):
            if index >= self.cells_of_twin and index not in self.lost and cell.kind != "test":
                self._cell(cell, self.twin)
        self.cells_of_twin = upto

    def _end(self) -> None:
        for child in (self.child, self.twin):
            if child is not None:
                child.end()
        self.child = self.twin = None

    def _replay(self, upto: int) -> None:
        """Replace the process and bring it to where it was, without the cells that were lost."""
        while self.deadline > time.monotonic():
            self._end()
            self.child = self._started()
            for index, cell in enumerate(self.task.cells[:upto]):
                if index in self.lost or cell.kind == "test":
                    continue
                if self._cell(cell, self.child)[1]:
                    self.lost.add(index)
                    break
            else:
                return


def _watch(child: Child, connection: Connection, seconds: float) -> None:
    """Wait for an answer, and end a submission that takes more of the machine than it may.

    Raises
    ------
    TimeoutError
        If there is no answer after `seconds`.
    Lost
        If the submission was ended.
    """
    until = time.monotonic() + seconds
    while not connection.poll(max(0.0, min(_WATCH_SECONDS, until - time.monotonic()))):
        if time.monotonic() >= until:
            raise TimeoutError
        if child.is_greedy():
            raise Lost(GREEDY)


def _failed(name: str, problem: str, outputs: list[dict[str, Any]] | None = None) -> Ran:
    return Ran(problem=problem, outputs=[*(outputs or []), error_output(name, problem)])


def _is_interrupt(error: dict[str, Any]) -> bool:
    return bool(error["ename"] == "KeyboardInterrupt")


def _headline(name: str, text: str) -> str:
    """Return the first line of an exception, as a table shows it."""
    lines = f"{name}: {text}".strip(": ").splitlines()
    return lines[0][:200] if lines else "an error of no name"


def _run_test(
    sending: Connection, source: str, names: dict[str, Any], asking: Asking, task: Task
) -> None:
    """Run a test and send its last value, or what it raised and whether the submission is lost."""
    limits = task.limits
    limits.take(gpu=limits.gpu)
    process.border = partial(confined, limits=limits, readable=(task.cache,), hidden=task.hidden)
    try:
        with quietly():
            value = _last_value(source, names, asking)
        sending.send({"value": _plain(value)})
    except Lost as error:
        sending.send({"error": ["ProcessDied", str(error), True]})
    except MemoryError:
        sending.send({"error": ["MemoryError", _OUT_OF_MEMORY, True]})
    except BaseException as error:
        notes = "\n".join([str(error), *getattr(error, "__notes__", [])])
        sending.send({"error": [type(error).__name__[:100], notes[:5000], False]})


def _plain(value: Any) -> Any:
    """Return a test's value if JSON can hold it, else what it looks like."""
    tree = encode(value, lambda other: repr(other)[:200])
    if isinstance(tree, dict) and "scalar" in tree:
        return value.item()
    if isinstance(tree, dict) and "list" in tree:  # of dicts: a leaderboard's
        return value
    return repr(value)[:200] if isinstance(tree, dict) else tree


def _last_value(source: str, names: dict[str, Any], asking: Asking) -> Any:
    tree = ast.parse(source)
    names["_submission"] = asking
    for name in sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}):
        if name not in names and not hasattr(builtins, name):
            with contextlib.suppress(NameError):
                names[name] = asking.ask({"do": "get", "name": name})
    last = tree.body[-1] if tree.body else None
    tree.body = tree.body[:-1] if isinstance(last, ast.Expr) else tree.body
    exec(compile(tree, "<test>", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "<test>", "eval"), names)
