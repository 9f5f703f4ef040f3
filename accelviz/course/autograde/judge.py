"""Runs a submission's notebook: the student's cells in sandboxed processes, the tests here.

The judge is the process in which `run_notebook` runs, one for each submission. It alone has tests,
seeds and points, and it runs, compiles and unpickles nothing of the student's. A test reaches the
student's functions through `checks.remote.Remote` proxies, which exchange plain data with a
`Child`.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from accelviz.course.autograde.border import Confinement
from accelviz.course.autograde.child import Child
from accelviz.course.autograde.outputs import error_output, trim_outputs, valid_text
from accelviz.course.autograde.wire import MAX_CELL_BYTES, SubmissionLostError, deadline
from accelviz.course.checks import remote
from accelviz.course.checks.common import measurements, quietly, remarks
from accelviz.course.checks.hidden import COURSE_SEED
from accelviz.emulator import build
from accelviz.errors import DeviceUnavailable

#: After a cell that was stopped, later cells get this share of the time limit: a function that
#: never ends would use up the whole limit in every test.
_SHARE_AFTER_STOP = 0.25
#: Roles of further processes that tests of these modules need; see `checks.remote.Link`.
_ROLES = {"checks.schemes": "twin", "checks.kernels": "kernels"}
#: Seconds that an interrupted process has to reply, and that a new one has to start.
_SECONDS_TO_STOP, _SECONDS_TO_START = 2.0, 120.0
#: Outputs of all cells together, in limits of one cell.
MAX_OUTPUTS = 10
_OUT_OF_MEMORY = "out of memory"


class _OutOfTimeError(BaseException):
    """A test has used its time. No Exception, which a test could catch."""


class Cell(NamedTuple):
    """A code cell, of kind "student", "test" or "given" (locked, without points, such as imports).

    A student's cell runs in the student's process, a test in the judge, a given in both.
    """

    kind: str
    source: str


@dataclass
class CellResult:
    """Result of one cell."""

    #: Wall-clock time of the cell.
    seconds: float = 0.0
    #: Description of the error, "" if there was none.
    problem: str = ""
    #: Whether the problem is an exception that the cell raised, such as a test's AssertionError.
    raised: bool = False
    #: Of a test that passed: what a person should look at.
    remark: str = ""
    #: Outputs in the notebook format.
    outputs: list[dict[str, Any]] = field(default_factory=list)
    #: Value of a test's last expression, as plain data.
    value: Any = None
    #: What a test has measured of schemes, for the leaderboard.
    measurements: list[dict[str, Any]] = field(default_factory=list)
    #: Whether the submission's process has to be replaced.
    fatal: bool = False
    #: Index of the cell in the notebook, and its grade id ("" for a cell of the student's own).
    index: int = -1
    question: str = ""


def run_notebook(
    cells: Sequence[Cell], bounds: Confinement, cache: str, seed: int, library: str
) -> list[CellResult]:
    """Run a notebook in this process, the judge; return one result per cell.

    `cache` is the folder of the tests, `seed` the course's; given cells and tests may import the
    modules in `library`, unless it is "".
    """
    os.environ |= {COURSE_SEED: str(seed), "ACCELVIZ_CACHE": cache, "CUDA_VISIBLE_DEVICES": ""}
    os.chdir(cache)
    if library:
        sys.path.append(library)
    build.run = _refuse  # type: ignore[assignment]
    bounds.limits.apply()
    run = _NotebookRun(cells, bounds)
    remote.kernels = run.link.to("kernels")
    try:
        return [run.step(index, cell) for index, cell in enumerate(cells)]
    finally:
        run.end()


def _refuse(*_: Any) -> str:
    problem = "no kernel is compiled where points are given"
    raise DeviceUnavailable("emulator", problem, "checks.kernels, which has a process for it")


class _NotebookRun:
    def __init__(self, cells: Sequence[Cell], bounds: Confinement) -> None:
        self.cells, self.bounds, self.limits = cells, bounds, bounds.limits
        #: Namespace of the tests.
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.deadline = time.monotonic() + self.limits.seconds
        self.cell_seconds = self.limits.cell_seconds
        self.output_left = MAX_OUTPUTS * self.limits.output_bytes
        #: The processes by role, and the number of cells that each has run.
        self.children: dict[str, Child] = {}
        self.done: dict[str, int] = {}
        #: Indices of cells that ended their process; a new process skips them.
        self.fatal_cells: set[int] = set()
        sources = tuple(cell.source for cell in cells if cell.kind == "student")
        self.link = remote.Link(self._child, sources)

    def end(self) -> None:
        for child in self.children.values():
            child.end()
        self.children.clear()

    def _time_limit(self) -> float:
        return max(1e-3, min(self.cell_seconds, self.deadline - time.monotonic()))

    def _child(self, role: str) -> Child:
        if role not in self.children:
            raise SubmissionLostError("the submission's process is gone")
        return self.children[role]

    def step(self, index: int, cell: Cell) -> CellResult:
        result = self._step(index, cell)
        if result.fatal:
            self.fatal_cells.add(index)
            self.end()
        return result

    def _step(self, index: int, cell: Cell) -> CellResult:
        roles = {"student"}
        if cell.kind == "test":
            roles |= {role for module, role in _ROLES.items() if module in cell.source}
        if not all(self._is_ready(role, index) for role in sorted(roles)):
            problem = f"not run: the submission had used its {self.limits.seconds:g} s"
            return _failed("NotRun", problem)
        begin = time.perf_counter()
        if cell.kind == "given":
            with contextlib.suppress(Exception), quietly():
                exec(compile(cell.source, "<given>", "exec"), self.names)
        if cell.kind == "test":
            result = self._run_test(cell)
            result.measurements = [*measurements.values()]
        else:
            result = self._run_cell(cell, self.children["student"])
            result.outputs = self._within_total(result.outputs)
            self.done["student"] = index + 1
        result.seconds = time.perf_counter() - begin
        return result

    def _within_total(self, outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return a cell's outputs, its last error alone if the notebook has shown too much."""
        self.output_left -= len(str(outputs)) + 500 * len(outputs)  # a page takes time for each
        if self.output_left >= 0:
            return outputs
        errors = [output for output in outputs if output["output_type"] == "error"]
        return [error_output(error["ename"], error["evalue"]) for error in errors[-1:]]

    def _is_ready(self, role: str, index: int) -> bool:
        """Start the process of a role, and run the cells before `index` but tests and fatal cells.

        Return False if the submission's time is over before.
        """
        while self.deadline > time.monotonic():
            if role not in self.children:
                self.children[role], self.done[role] = self._start_child(role), 0
            done = self.done[role]
            if done == index or role == "kernels":
                return True
            cell = self.cells[done]
            is_run = done not in self.fatal_cells and cell.kind != "test"
            if is_run and self._run_cell(cell, self.children[role]).fatal:
                self.fatal_cells.add(done)
                self.children.pop(role).end()
            else:
                self.done[role] += 1
        return False

    def _run_cell(self, cell: Cell, child: Child) -> CellResult:
        time_limit, begin = self._time_limit(), time.monotonic()
        if cell.kind == "given":  # it imports the library, which may take long on a busy machine
            time_limit = max(1e-3, min(_SECONDS_TO_START, self.deadline - begin))
        max_bytes = max(MAX_CELL_BYTES, 8 * self.limits.output_bytes)
        try:
            child.send({"cell": cell.source, "seconds": time_limit}, time_limit)
            left = time_limit + _SECONDS_TO_STOP - (time.monotonic() - begin)
            reply = child.receive(left, max_bytes)
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

    def _run_test(self, cell: Cell) -> CellResult:
        seconds = self._time_limit()
        remarks.clear()
        measurements.clear()
        try:
            with deadline(seconds, _OutOfTimeError), quietly():
                value = _last_value(cell.source, _Names(self.names, self.link))
            return CellResult(value=_plain(value), remark="; ".join(remarks))
        except _OutOfTimeError:
            return self._stopped(seconds, fatal=True)
        except SubmissionLostError as error:
            return _failed("ProcessDied", str(error), fatal=True)
        except MemoryError:
            return _failed("MemoryError", _OUT_OF_MEMORY, fatal=True)
        except BaseException as error:
            text = valid_text("\n".join([str(error), *getattr(error, "__notes__", [])]))[:5000]
            name = type(error).__name__[:100]
            outputs = [error_output(name, text)]
            return CellResult(problem=_headline(name, text), raised=True, outputs=outputs)

    def _stopped(self, seconds: float, ending: str = "", **options: Any) -> CellResult:
        """Return the result of a cell that was stopped, and shorten the limit of later cells."""
        self.cell_seconds = self.limits.cell_seconds * _SHARE_AFTER_STOP
        return _failed("CellTimeoutError", f"stopped after {seconds:.0f} s{ending}", **options)

    def _start_child(self, role: str) -> Child:
        bare = self.bounds.bare and role != "kernels"
        child = Child(replace(self.bounds, bare=bare), reads_files=role != "kernels")
        try:
            child.receive(_SECONDS_TO_START)
        except (SubmissionLostError, TimeoutError) as error:
            child.end()
            reason = str(error) or f"it took longer than {_SECONDS_TO_START:g} s"
            raise RuntimeError(f"the submission's process did not start: {reason}") from None
        return child


def _failed(
    name: str, problem: str, outputs: list[dict[str, Any]] | None = None, *, fatal: bool = False
) -> CellResult:
    outputs = [*(outputs or []), error_output(name, problem)]
    return CellResult(problem=problem, outputs=outputs, fatal=fatal)


def _headline(name: str, text: str) -> str:
    """Return the first line of an exception, with its remedy, for a table of grades."""
    lines = f"{name}: {text}".strip(": ").splitlines()
    return lines[0][:500] if lines else "an error of no name"


def _plain(value: Any) -> Any:
    """Return a test's value if it is a number, text or a list, else its `repr`."""
    value = value.item() if isinstance(value, np.generic) else value
    is_plain = value is None or isinstance(value, bool | int | float | str | list)
    return value if is_plain else repr(value)[:200]


class _Names(dict[str, Any]):
    """Names of a test; one that nothing else defines is fetched from the submission when used.

    A text, such as that of a kernel, is fetched once, and is the same for all tests.
    """

    def __init__(self, names: dict[str, Any], link: remote.Link) -> None:
        super().__init__(names)
        self._link = link

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name) or name.startswith("__"):
            raise KeyError(name)
        shared = self._link.shared
        value = shared.get(name) or self._link.request({"do": "get", "name": name})
        self[name] = shared.setdefault(name, value) if type(value) is str else value
        return self[name]


def _last_value(source: str, names: _Names) -> Any:
    """Run a test and return the value of its last expression, None if it ends in a statement."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<test>", "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "<test>", "eval"), names)
    return None
