"""Runs a submission's notebook: the student's cells in a sandboxed process, each test in a fork.

The judge is the process in which `run_task` runs. It starts a `Child` for the student's cells and
forks itself for each test. A test reaches the student's functions through `checks.remote.Remote`
proxies and exchanges plain data only. It computes the points with its own copy of the library, so
the student's code cannot change them.
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

from accelviz.course.autograde.border import Limits, confined_command
from accelviz.course.autograde.child import Child
from accelviz.course.autograde.outputs import error_output, trim_outputs
from accelviz.course.autograde.processes import process
from accelviz.course.autograde.wire import (
    MAX_CELL_BYTES,
    SubmissionLostError,
    encode,
    receive,
    send,
)
from accelviz.course.checks.common import quietly
from accelviz.course.checks.hidden import COURSE_SEED
from accelviz.course.checks.remote import Link
from accelviz.emulator import process as emulator_process

#: After a cell that was stopped, later cells get this share of the time limit: a function that
#: never ends would use up the whole limit in every test.
_SHARE_AFTER_STOP = 0.25
#: Modules whose tests need the twin, a second process that has run the same cells and no test.
_TWIN_MODULES = ("checks.schemes", "autograde.board")
#: Seconds that an interrupted process has to reply, and that a new one has to start.
_SECONDS_TO_STOP, _SECONDS_TO_START = 2.0, 120.0
_OUT_OF_MEMORY = "out of memory"
_FORK = multiprocessing.get_context("fork")


class Cell(NamedTuple):
    """A code cell, of kind "student", "test" or "given" (locked, without points, such as imports).

    A student's cell runs in the student's process, a test in a fork of the judge, a given in both.
    """

    kind: str
    source: str


@dataclass(frozen=True)
class Task:
    """A notebook to run, with its limits, folders and seed."""

    cells: tuple[Cell, ...]
    limits: Limits
    #: Arguments of `Child`.
    folder: Path
    hidden: tuple[str, ...]
    bare: bool
    #: Cache folder of the tests, and the course's seed.
    cache: str
    seed: int
    #: Folder whose modules given cells and tests may import, or "".
    library: str


@dataclass
class CellResult:
    """Result of one cell."""

    #: Wall-clock time of the cell.
    seconds: float = 0.0
    #: Description of the error, "" if there was none.
    problem: str = ""
    #: Whether the problem is an exception that the cell raised, such as a test's AssertionError.
    raised: bool = False
    #: Outputs in the notebook format.
    outputs: list[dict[str, Any]] = field(default_factory=list)
    #: Value of a test's last expression, as plain data.
    value: Any = None
    #: Whether the submission's process has to be replaced.
    fatal: bool = False
    #: Index of the cell in the notebook, and its grade id ("" for a cell of the student's own).
    index: int = -1
    question: str = ""


def run_task(task: Task) -> list[CellResult]:
    """Run a notebook in this process, the judge; return one result per cell."""
    os.environ |= {COURSE_SEED: str(task.seed), "ACCELVIZ_CACHE": task.cache}
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.chdir(task.cache)
    if task.library:
        sys.path.append(task.library)
    run = _NotebookRun(task)
    try:
        return [run.step(index, cell) for index, cell in enumerate(task.cells)]
    finally:
        run.end()


class _NotebookRun:
    def __init__(self, task: Task) -> None:
        self.task, self.limits = task, task.limits
        #: Namespace of the tests.
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.deadline = time.monotonic() + task.limits.seconds
        self.cell_seconds = task.limits.cell_seconds
        #: The processes "student" and "twin", and the number of cells that each has run.
        self.children: dict[str, Child] = {}
        self.done: dict[str, int] = {}
        #: Indices of cells that ended their process; a new process skips them.
        self.fatal_cells: set[int] = set()

    def end(self) -> None:
        for child in self.children.values():
            child.end()
        self.children.clear()

    def _time_limit(self) -> float:
        return max(1e-3, min(self.cell_seconds, self.deadline - time.monotonic()))

    def step(self, index: int, cell: Cell) -> CellResult:
        child = self._child("student", index)
        needs_twin = cell.kind == "test" and any(name in cell.source for name in _TWIN_MODULES)
        twin = self._child("twin", index) if needs_twin else None
        if child is None or (needs_twin and twin is None):
            problem = f"not run: the submission had used its {self.limits.seconds:g} s"
            return _failed("NotRun", problem)
        begin = time.perf_counter()
        if cell.kind == "given":
            with contextlib.suppress(Exception), quietly():
                exec(compile(cell.source, "<given>", "exec"), self.names)
        if cell.kind == "test":
            result = self._run_test(cell, child, twin)
        else:
            result = self._run_cell(cell, child)
            self.done["student"] = index + 1
        result.seconds = time.perf_counter() - begin
        if result.fatal:
            self.fatal_cells.add(index)
            self.end()
        return result

    def _child(self, role: str, index: int) -> Child | None:
        """Return a process that has run the cells before `index`, except tests and fatal cells.

        Start it and run these cells if necessary. None if the submission's time is over.
        """
        while self.deadline > time.monotonic():
            if role not in self.children:
                self.children[role], self.done[role] = self._start_child(), 0
            child, done = self.children[role], self.done[role]
            if done == index:
                return child
            cell = self.task.cells[done]
            is_run = done not in self.fatal_cells and cell.kind != "test"
            if is_run and self._run_cell(cell, child).fatal:
                self.fatal_cells.add(done)
                self.children.pop(role).end()
            else:
                self.done[role] += 1
        return None

    def _run_cell(self, cell: Cell, child: Child) -> CellResult:
        time_limit, begin = self._time_limit(), time.monotonic()
        if cell.kind == "given":  # it imports the library, which may take long on a busy machine
            time_limit = max(1e-3, min(_SECONDS_TO_START, self.deadline - begin))
        max_bytes = max(MAX_CELL_BYTES, 8 * self.limits.output_bytes)
        try:
            send(child.connection, {"cell": cell.source, "seconds": time_limit}, time_limit)
            reply_limit = time_limit + _SECONDS_TO_STOP
            child.watch(child.connection, reply_limit)
            left = reply_limit - (time.monotonic() - begin)
            reply = receive(child.connection, left, max_bytes)
            outputs = trim_outputs(reply, self.limits.output_bytes)
        except TimeoutError:
            return self._stopped(time_limit, ", and would not be interrupted", fatal=True)
        except SubmissionLostError as error:
            return _failed("ProcessDied", str(error), fatal=True)
        if isinstance(reply, dict) and reply.get("exited"):
            problem = "the cell ended its own process (exit or quit)"
            return _failed("ProcessDied", problem, outputs, fatal=True)
        errors = [output for output in outputs if output["output_type"] == "error"]
        name, text = (errors[-1]["ename"], errors[-1]["evalue"]) if errors else ("", "")
        if time.monotonic() - begin >= time_limit and name in ("", "KeyboardInterrupt"):
            return self._stopped(time_limit, outputs=outputs)
        if not errors:
            return CellResult(outputs=outputs)
        if "MemoryError" in name:
            # The traceback keeps the frames' objects alive, so the next cell would fail too.
            return CellResult(problem=_OUT_OF_MEMORY, outputs=outputs, fatal=True)
        return CellResult(problem=_headline(name, text), raised=True, outputs=outputs)

    def _run_test(self, cell: Cell, child: Child, twin: Child | None) -> CellResult:
        sources = tuple(cell.source for cell in self.task.cells if cell.kind == "student")
        link, time_limit = Link(child, sources, twin), self._time_limit()
        with process(_FORK, _test_main, cell.source, self.names, link, self.task) as connection:
            try:
                child.watch(connection, time_limit)
                result: CellResult = connection.recv()
            except TimeoutError:
                return self._stopped(time_limit, fatal=True)
            except SubmissionLostError as error:
                return _failed("ProcessDied", str(error), fatal=True)
            except EOFError:
                problem = "the test's process died (a crash, or out of memory)"
                return _failed("ProcessDied", problem, fatal=True)
        return result

    def _stopped(self, seconds: float, ending: str = "", **options: Any) -> CellResult:
        """Return the result of a cell that was stopped, and shorten the limit of later cells."""
        self.cell_seconds = self.limits.cell_seconds * _SHARE_AFTER_STOP
        return _failed("CellTimeoutError", f"stopped after {seconds:.0f} s{ending}", **options)

    def _start_child(self) -> Child:
        child = Child(self.limits, self.task.folder, self.task.hidden, self.task.bare)
        try:
            receive(child.connection, _SECONDS_TO_START)
        except (SubmissionLostError, TimeoutError):
            child.end()
            raise RuntimeError("the submission's process did not start within the limits") from None
        return child


def _failed(
    name: str, problem: str, outputs: list[dict[str, Any]] | None = None, *, fatal: bool = False
) -> CellResult:
    outputs = [*(outputs or []), error_output(name, problem)]
    return CellResult(problem=problem, outputs=outputs, fatal=fatal)


def _headline(name: str, text: str) -> str:
    """Return the first line of an exception, for a table of grades."""
    lines = f"{name}: {text}".strip(": ").splitlines()
    return lines[0][:200] if lines else "an error of no name"


def _test_main(
    connection: Connection, source: str, names: dict[str, Any], link: Link, task: Task
) -> None:
    """Run a test in its own process and send its result."""
    limits = task.limits
    limits.apply()
    emulator_process.border = partial(
        confined_command, limits=limits, readable=(task.cache,), hidden=task.hidden
    )
    try:
        with quietly():
            value = _last_value(source, names, link)
        result = CellResult(value=_plain(value))
    except SubmissionLostError as error:
        result = _failed("ProcessDied", str(error), fatal=True)
    except MemoryError:
        result = _failed("MemoryError", _OUT_OF_MEMORY, fatal=True)
    except BaseException as error:
        text = "\n".join([str(error), *getattr(error, "__notes__", [])])[:5000]
        name = type(error).__name__[:100]
        outputs = [error_output(name, text)]
        result = CellResult(problem=_headline(name, text), raised=True, outputs=outputs)
    connection.send(result)


def _plain(value: Any) -> Any:
    """Return a test's value if it is a number, text or a list, else its `repr`."""
    tree = encode(value, lambda item: repr(item)[:200])
    if isinstance(value, np.generic) and "numbers" in tree:
        return value.item()
    if isinstance(tree, dict) and "list" in tree:  # the rows of a leaderboard
        return value
    return repr(value)[:200] if isinstance(tree, dict) else tree


def _last_value(source: str, names: dict[str, Any], link: Link) -> Any:
    """Run a test and return the value of its last expression, None if it ends in a statement.

    Names that the test uses and the judge does not define are fetched from the submission.
    """
    tree = ast.parse(source)
    for name in sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}):
        if name not in names and not hasattr(builtins, name):
            with contextlib.suppress(NameError):
                names[name] = link.request({"do": "get", "name": name})
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<test>", "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "<test>", "eval"), names)
    return None
