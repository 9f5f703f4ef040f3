"""Runs a notebook: the student's cells in one confined process, each test in another one.

A test sees what the student's cells define as `checks.remote.Remote`s: it hands over plain data,
gets plain data back, and judges them with its own library. So points are what the test itself makes
of them, and nothing that the student's code does to its process reaches it.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelviz.course.autograde import student
from accelviz.course.autograde.child import Child, start, start_beside
from accelviz.course.autograde.confine import HOME, World, hide_memory
from accelviz.course.autograde.outputs import told, trimmed
from accelviz.course.autograde.wire import MOST_OF_A_CELL, Line, Lost, decode, encode
from accelviz.course.checks.common import quietly
from accelviz.course.checks.hidden import COURSE_SEED
from accelviz.course.checks.remote import Remote, exception_of

#: A cell after one that was stopped has this share of the time of a cell: whoever loops once does
#: so in every test.
_AFTER_A_STOP = 0.25
#: Tests that ask a second process, which ran the same cells, what it makes of the first's answer.
_ASK_A_TWIN = ("checks.schemes", "autograde.board")
#: What an interrupted process has to answer.
_SECONDS_TO_STOP = 2.0
_OUT_OF_MEMORY = "out of memory"


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
    world, tests_world : World
        Of the student's process, and of a test's.
    isolated : bool
        Whether this system allows namespaces.
    cell_seconds, seconds : float
    most_shown : int
        Letters of outputs of a cell.
    seed : int
        The course's.
    library : str
        A folder whose modules given cells and tests may import.
    bare : bool
        The student's process has not the library's own answers; see `bare`.
    """

    cells: tuple[Cell, ...]
    world: World
    tests_world: World
    isolated: bool
    cell_seconds: float
    seconds: float
    most_shown: int
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
    """Run a notebook; one `Ran` for each cell."""
    os.environ[COURSE_SEED] = str(task.seed)
    (os.environ["ACCELVIZ_CACHE"],) = task.tests_world.written
    if task.library:
        sys.path.append(task.library)
    return _Run(task).run()


class _Asking:
    """The student's process, as a test sees it."""

    twin: _Asking

    def __init__(self, line: Line, cells: tuple[str, ...]) -> None:
        self.line, self.cells = line, cells

    def ask(self, message: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        if message["do"] in ("call", "run"):
            given = encode((arguments, options), self._number)
            message = {**message, "given": given}
        self.line.send(message)
        answer = self.line.receive()
        if not isinstance(answer, dict):
            raise Lost("an answer is no plain data")
        if "error" in answer:
            name, text, *_ = [str(each)[:5000] for each in (*answer["error"], "", "")]
            if name in ("SystemExit", "KeyboardInterrupt"):
                raise RuntimeError(f"it ended in {name}")
            raise exception_of(name[:100], text)
        name = message.get("name", "")
        return decode(answer.get("value"), lambda handle: Remote(self, int(handle), name))

    def _number(self, value: Any) -> int:
        if isinstance(value, Remote):
            return value._handle
        raise TypeError(f"a {type(value).__name__} cannot be handed to a submission")


class _Run:
    def __init__(self, task: Task) -> None:
        self.task = task
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.deadline = time.monotonic() + task.seconds
        self.child: Child | None = None
        self.twin: Child | None = None
        self.twins_cells = 0
        self.lost: set[int] = set()
        self.allowed = task.cell_seconds

    def run(self) -> list[Ran]:
        done: list[Ran] = []
        try:
            self.child = self._begun()
            for index, cell in enumerate(self.task.cells):
                done.append(self._step(index, cell))
        finally:
            self._end()
        return done

    def _seconds(self) -> float:
        return max(1e-3, min(self.allowed, self.deadline - time.monotonic()))

    def _step(self, index: int, cell: Cell) -> Ran:
        if self.deadline <= time.monotonic():
            problem = f"not run: the submission had used its {self.task.seconds:g} s"
            return Ran(problem=problem, outputs=[told("NotRun", problem)])
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
        """Run a cell in a student's process; say whether that has to be replaced."""
        line, allowed = child.line, self._seconds()
        stopped = False
        most = max(MOST_OF_A_CELL, 8 * self.task.most_shown)
        try:
            line.send({"cell": cell.source}, allowed)
            try:
                answer = line.receive(allowed, most)
            except TimeoutError:
                stopped, self.allowed = True, self.task.cell_seconds * _AFTER_A_STOP
                child.interrupt()
                answer = line.receive(_SECONDS_TO_STOP, most)
            outputs = trimmed(answer, self.task.most_shown)
        except TimeoutError:
            problem = f"stopped after {allowed:.0f} s, and would not be interrupted"
            return _failed("CellTimeoutError", problem), True
        except Lost as error:
            return _failed("ProcessDied", str(error)), True
        if isinstance(answer, dict) and answer.get("exited"):
            problem = "the cell ended its own process (exit or quit)"
            return _failed("ProcessDied", problem, outputs), True
        if stopped:
            problem = f"stopped after {allowed:.0f} s"
            return _failed("CellTimeoutError", problem, outputs), False
        errors = [each for each in outputs if each["output_type"] == "error"]
        if not errors:
            return Ran(outputs=outputs), False
        raised = errors[-1]
        if "MemoryError" in raised["ename"]:
            # The traceback holds on to what filled the memory, so the next cell would fail too.
            return Ran(problem=_OUT_OF_MEMORY, outputs=outputs), True
        text = f"{raised['ename']}: {raised['evalue']}".strip(": ").splitlines()
        problem = text[0][:200] if text else "an error of no name"
        return Ran(problem=problem, raised=True, outputs=outputs), False

    def _test(self, cell: Cell) -> tuple[Ran, bool]:
        """Run a test in a process of its own; say whether the student's has to be replaced."""
        assert self.child is not None
        theirs = self.child.line
        cells = tuple(each.source for each in self.task.cells if each.kind == "student")
        asking, keep = _Asking(theirs, cells), [theirs.connection.fileno()]
        if self.twin is not None:
            asking.twin = _Asking(self.twin.line, cells)
            keep.append(self.twin.line.connection.fileno())
        allowed = self._seconds()

        def main(line: Line) -> None:
            hide_memory()  # from a student's kernel, which runs in a child of this process
            line.send(_outcome(cell.source, self.names, asking))

        test = start(main, self.task.tests_world, self.task.isolated, tuple(keep))
        try:
            answer = test.line.receive(allowed)
        except TimeoutError:
            self.allowed = self.task.cell_seconds * _AFTER_A_STOP
            return _failed("CellTimeoutError", f"stopped after {allowed:.0f} s"), True
        except Lost:
            return _failed(
                "ProcessDied", "the test's process died (a crash, or out of memory)"
            ), True
        finally:
            test.end()
        if "value" in answer:  # of a trusted test
            return Ran(value=answer["value"]), False
        name, text, fatal = answer["error"]
        if fatal:
            return _failed(name, text), True
        lines = f"{name}: {text}".strip(": ").splitlines()
        problem = lines[0][:200] if lines else "an error of no name"
        return Ran(problem=problem, raised=True, outputs=[told(name, text)]), False

    def _begun(self) -> Child:
        """Start a student's process."""
        task = self.task
        given = (student.main, task.world, task.isolated, task.most_shown)
        child = start_beside(*given, without_answers=task.bare)
        try:
            child.line.receive(60.0)
        except (Lost, TimeoutError):
            child.end()
            raise RuntimeError("the submission's process did not start within the limits") from None
        return child

    def _bring_twin(self, upto: int) -> None:
        """Let a second process run the cells up to this one, which never sees a test's input."""
        if self.twin is None:
            self.twin, self.twins_cells = self._begun(), 0
        for index, cell in enumerate(self.task.cells[:upto]):
            if index >= self.twins_cells and index not in self.lost and cell.kind != "test":
                self._cell(cell, self.twin)
        self.twins_cells = upto

    def _end(self) -> None:
        for child in (self.child, self.twin):
            if child is not None:
                child.end()
        self.child = self.twin = None

    def _replay(self, upto: int) -> None:
        """Replace the process and bring it to where it was, without the cells that were lost."""
        while self.deadline > time.monotonic():
            self._end()
            self.child = self._begun()
            for index, cell in enumerate(self.task.cells[:upto]):
                if index in self.lost or cell.kind == "test":
                    continue
                if self._cell(cell, self.child)[1]:
                    self.lost.add(index)
                    break
            else:
                return


def _failed(name: str, problem: str, outputs: list[dict[str, Any]] | None = None) -> Ran:
    return Ran(problem=problem, outputs=[*(outputs or []), told(name, problem)])


def _outcome(source: str, names: dict[str, Any], asking: _Asking) -> dict[str, Any]:
    """Run a test; return its last value, or what it raised and whether the submission is lost."""
    if Path(HOME).is_dir():  # where the process is isolated
        os.environ["HOME"] = HOME
    try:
        with quietly():
            return {"value": _plain(_last_value(source, names, asking))}
    except Lost as error:
        return {"error": ["ProcessDied", str(error), True]}
    except MemoryError:
        return {"error": ["MemoryError", _OUT_OF_MEMORY, True]}
    except BaseException as error:
        notes = "\n".join([str(error), *getattr(error, "__notes__", [])])
        return {"error": [type(error).__name__[:100], notes[:5000], False]}


def _plain(value: Any) -> Any:
    """Return a test's value if JSON can hold it, else what it looks like."""
    tree = encode(value, lambda other: repr(other)[:200])
    if isinstance(tree, dict) and "scalar" in tree:
        return value.item()
    if isinstance(tree, dict) and "list" in tree:  # of dicts: a leaderboard's
        return value
    return repr(value)[:200] if isinstance(tree, dict) else tree


def _last_value(source: str, names: dict[str, Any], asking: _Asking) -> Any:
    tree = ast.parse(source)
    names["_submission"] = asking
    for name in sorted({each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}):
        if name not in names and not hasattr(builtins, name):
            with contextlib.suppress(NameError):
                names[name] = asking.ask({"do": "get", "name": name})
    last = tree.body[-1] if tree.body else None
    tree.body = tree.body[:-1] if isinstance(last, ast.Expr) else tree.body
    exec(compile(tree, "<test>", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "<test>", "eval"), names)
