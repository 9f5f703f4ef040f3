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
from typing import Any, NamedTuple

import numpy as np

from accelviz.course.autograde.apart import process
from accelviz.course.autograde.border import Limits, confined
from accelviz.course.autograde.child import Child
from accelviz.course.autograde.outputs import error_output, trimmed
from accelviz.course.autograde.wire import MOST_OF_A_CELL, Lost, encode, receive, send
from accelviz.course.checks.common import quietly
from accelviz.course.checks.hidden import COURSE_SEED
from accelviz.course.checks.remote import Link
from accelviz.emulator import process as emulator_process

#: A cell after one that was stopped has this share of the time of a cell: whoever loops once does
#: so in every test.
_AFTER_A_STOP = 0.25
#: Tests that ask a second process, which ran the same cells, what it makes of the first's answer.
_ASK_A_TWIN = ("checks.schemes", "autograde.board")
#: What an interrupted process has to answer, and one that begins.
_SECONDS_TO_STOP, _SECONDS_TO_START = 2.0, 120.0
_OUT_OF_MEMORY = "out of memory"
_FORK = multiprocessing.get_context("fork")


class Cell(NamedTuple):
    """A code cell, and who runs it: "student" (their process), "test" (its own), "given" (both)."""

    kind: str
    source: str


@dataclass(frozen=True)
class Task:
    """A notebook to run, and under which limits."""

    cells: tuple[Cell, ...]
    limits: Limits
    #: Holds what the submission's process finds; see `Child`, also for `hidden` and `bare`.
    folder: Path
    hidden: tuple[str, ...]
    bare: bool
    #: The folder of the tests' cache.
    cache: str
    #: The course's seed.
    seed: int
    #: A folder whose modules given cells and tests may import, or "".
    library: str


@dataclass
class Ran:
    """What became of a cell."""

    #: Wall-clock time that it took.
    seconds: float = 0.0
    #: What went wrong, "" if nothing.
    problem: str = ""
    #: The problem is an exception that the cell raised, as a failed test does.
    raised: bool = False
    #: As notebooks keep them.
    outputs: list[dict[str, Any]] = field(default_factory=list)
    #: The last value of a test; plain data.
    value: Any = None
    #: The submission's process has to be replaced.
    fatal: bool = False
    #: The cell's index in the notebook, and its grade id ("" for a cell of the student's own).
    index: int = -1
    question: str = ""


def judged(task: Task) -> list[Ran]:
    """Run a notebook; one `Ran` for each cell. The main function of a process."""
    os.environ |= {COURSE_SEED: str(task.seed), "ACCELVIZ_CACHE": task.cache}
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.chdir(task.cache)
    if task.library:
        sys.path.append(task.library)
    run = _Run(task)
    try:
        return [run.step(index, cell) for index, cell in enumerate(task.cells)]
    finally:
        run.end()


class _Run:
    def __init__(self, task: Task) -> None:
        self.task, self.limits = task, task.limits
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.deadline = time.monotonic() + task.limits.seconds
        self.allowed = task.limits.cell_seconds
        #: The student's process and its twin, and how many cells each has run.
        self.children: dict[str, Child] = {}
        self.done: dict[str, int] = {}
        self.lost: set[int] = set()

    def end(self) -> None:
        for child in self.children.values():
            child.end()
        self.children.clear()

    def _seconds(self) -> float:
        return max(1e-3, min(self.allowed, self.deadline - time.monotonic()))

    def step(self, index: int, cell: Cell) -> Ran:
        child = self._child("student", index)
        asks_twin = cell.kind == "test" and any(name in cell.source for name in _ASK_A_TWIN)
        twin = self._child("twin", index) if asks_twin else None
        if child is None or (asks_twin and twin is None):
            problem = f"not run: the submission had used its {self.limits.seconds:g} s"
            return _failed("NotRun", problem)
        begin = time.perf_counter()
        if cell.kind == "given":  # for the tests
            with contextlib.suppress(Exception), quietly():
                exec(compile(cell.source, "<given>", "exec"), self.names)
        if cell.kind == "test":
            ran = self._test(cell, child, twin)
        else:
            ran = self._cell(cell, child)
            self.done["student"] = index + 1
        ran.seconds = time.perf_counter() - begin
        if ran.fatal:
            self.lost.add(index)
            self.end()
        return ran

    def _child(self, role: str, upto: int) -> Child | None:
        """Return a process that has run the cells before `upto`, but those that were lost.

        The twin never sees a test's input. None if the submission's time is over.
        """
        while self.deadline > time.monotonic():
            if role not in self.children:
                self.children[role], self.done[role] = self._started(), 0
            child, index = self.children[role], self.done[role]
            if index == upto:
                return child
            cell = self.task.cells[index]
            if index not in self.lost and cell.kind != "test" and self._cell(cell, child).fatal:
                self.lost.add(index)
                self.children.pop(role).end()
            else:
                self.done[role] += 1
        return None

    def _cell(self, cell: Cell, child: Child) -> Ran:
        """Run a cell in a student's process."""
        allowed, begin = self._seconds(), time.monotonic()
        if cell.kind == "given":  # it imports the library, which may take long on a busy machine
            allowed = max(1e-3, min(_SECONDS_TO_START, self.deadline - begin))
        most = max(MOST_OF_A_CELL, 8 * self.limits.output_bytes)
        try:
            send(child.connection, {"cell": cell.source, "seconds": allowed}, allowed)
            until = allowed + _SECONDS_TO_STOP
            child.watch(child.connection, until)
            answer = receive(child.connection, until - (time.monotonic() - begin), most)
            outputs = trimmed(answer, self.limits.output_bytes)
        except TimeoutError:
            return self._stopped(allowed, ", and would not be interrupted", fatal=True)
        except Lost as error:
            return _failed("ProcessDied", str(error), fatal=True)
        if isinstance(answer, dict) and answer.get("exited"):
            problem = "the cell ended its own process (exit or quit)"
            return _failed("ProcessDied", problem, outputs, fatal=True)
        errors = [output for output in outputs if output["output_type"] == "error"]
        name, text = (errors[-1]["ename"], errors[-1]["evalue"]) if errors else ("", "")
        if time.monotonic() - begin >= allowed and name in ("", "KeyboardInterrupt"):
            return self._stopped(allowed, outputs=outputs)
        if not errors:
            return Ran(outputs=outputs)
        if "MemoryError" in name:
            # The traceback holds on to what filled the memory, so the next cell would fail too.
            return Ran(problem=_OUT_OF_MEMORY, outputs=outputs, fatal=True)
        return Ran(problem=_headline(name, text), raised=True, outputs=outputs)

    def _test(self, cell: Cell, child: Child, twin: Child | None) -> Ran:
        """Run a test in a fork."""
        sources = tuple(cell.source for cell in self.task.cells if cell.kind == "student")
        link, allowed = Link(child, sources, twin), self._seconds()
        with process(_FORK, _run_test, cell.source, self.names, link, self.task) as connection:
            try:
                child.watch(connection, allowed)
                ran: Ran = connection.recv()
            except TimeoutError:
                return self._stopped(allowed, fatal=True)
            except Lost as error:
                return _failed("ProcessDied", str(error), fatal=True)
            except EOFError:
                problem = "the test's process died (a crash, or out of memory)"
                return _failed("ProcessDied", problem, fatal=True)
        return ran

    def _stopped(self, seconds: float, ending: str = "", **options: Any) -> Ran:
        """Say that a cell took too long, and give those after it less time."""
        self.allowed = self.limits.cell_seconds * _AFTER_A_STOP
        return _failed("CellTimeoutError", f"stopped after {seconds:.0f} s{ending}", **options)

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


def _failed(
    name: str, problem: str, outputs: list[dict[str, Any]] | None = None, *, fatal: bool = False
) -> Ran:
    outputs = [*(outputs or []), error_output(name, problem)]
    return Ran(problem=problem, outputs=outputs, fatal=fatal)


def _headline(name: str, text: str) -> str:
    """Return the first line of an exception, as a table shows it."""
    lines = f"{name}: {text}".strip(": ").splitlines()
    return lines[0][:200] if lines else "an error of no name"


def _run_test(
    sending: Connection, source: str, names: dict[str, Any], link: Link, task: Task
) -> None:
    """Run a test and send what became of it."""
    limits = task.limits
    limits.take()
    emulator_process.border = partial(
        confined, limits=limits, readable=(task.cache,), hidden=task.hidden
    )
    try:
        with quietly():
            value = _last_value(source, names, link)
        ran = Ran(value=_plain(value))
    except Lost as error:
        ran = _failed("ProcessDied", str(error), fatal=True)
    except MemoryError:
        ran = _failed("MemoryError", _OUT_OF_MEMORY, fatal=True)
    except BaseException as error:
        text = "\n".join([str(error), *getattr(error, "__notes__", [])])[:5000]
        name = type(error).__name__[:100]
        ran = Ran(problem=_headline(name, text), raised=True, outputs=[error_output(name, text)])
    sending.send(ran)


def _plain(value: Any) -> Any:
    """Return a test's value if JSON can hold it, else what it looks like."""
    tree = encode(value, lambda other: repr(other)[:200])
    if isinstance(value, np.generic) and "numbers" in tree:
        return value.item()
    if isinstance(tree, dict) and "list" in tree:  # of dicts: a leaderboard's
        return value
    return repr(value)[:200] if isinstance(tree, dict) else tree


def _last_value(source: str, names: dict[str, Any], link: Link) -> Any:
    tree = ast.parse(source)
    for name in sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}):
        if name not in names and not hasattr(builtins, name):
            with contextlib.suppress(NameError):
                names[name] = link.ask({"do": "get", "name": name})
    last = tree.body[-1] if tree.body else None
    tree.body = tree.body[:-1] if isinstance(last, ast.Expr) else tree.body
    exec(compile(tree, "<test>", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "<test>", "eval"), names)
