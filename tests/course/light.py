"""Runs a submission's cells and tests without a sandbox, without nbgrader, and without a process
for each test: what checks make of an answer is the same, in a fraction of the time.
"""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
from pathlib import Path
from typing import Any

from numba.core.dispatcher import Dispatcher

from accelviz.course.autograde import judge, sandbox, student
from accelviz.course.autograde.cells import is_locked, is_test, question_of
from accelviz.course.autograde.child import start_beside
from accelviz.course.autograde.confine import World
from accelviz.course.autograde.server import one_server
from accelviz.course.checks.common import quietly
from accelviz.course.checks.hidden import COURSE_SEED
from accelviz.files import cache_folder


def points_of(
    notebook: Any, source: Any, seed: int = 0, compiled: set[str] | None = None
) -> dict[str, float]:
    """The points of each graded code cell of a submission, with the tests as in the source.

    Into `compiled` go the functions that the tests had compiled, or loaded, for themselves.
    """
    right = {question_of(cell): cell.source for cell in source.cells}
    cells, most = [], []
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source.strip():
            question = question_of(cell)
            text = right[question] if is_locked(cell) else cell.source
            cells.append((is_locked(cell), is_test(cell), text))
            most.append((question, cell.metadata.get("nbgrader", {}).get("points")))
    found, own = one_server().run(_outcomes, cells, str(cache_folder()), seed, seconds=120)
    if compiled is not None:
        compiled |= own
    points = {}
    for (question, maximum), outcome in zip(most, found, strict=True):
        if outcome is not None:
            value = outcome.get("value") if "value" in outcome else 0.0
            points[question] = float(maximum) if value is None else value
    return points


def _compiled() -> set[tuple[str, tuple[Any, ...]]]:
    """The library's functions that this process has compiled, and for what."""
    return {
        (each.py_func.__name__, signature)
        for each in gc.get_objects()
        if isinstance(each, Dispatcher) and each.py_func.__module__.startswith("accelviz")
        for signature in each.signatures
    }


def _outcomes(
    cells: list[tuple[bool, bool, str]], cache: str, seed: int
) -> tuple[list[dict[str, Any] | None], set[str]]:
    """Carry out the cells; a server's task."""
    before = _compiled()
    os.environ |= {COURSE_SEED: str(seed), "ACCELVIZ_CACHE": cache}
    sources = tuple(source for locked, _, source in cells if not locked)
    names: dict[str, Any] = {"__name__": "__main__"}
    found: list[dict[str, Any] | None] = []
    tests = "".join(source for _, test, source in cells if test)
    bare = any(name in tests for name in sandbox._ANSWERED)
    with tempfile.TemporaryDirectory() as folder:
        children = [
            start_beside(student.main, World(Path(folder)), False, 10**6, without_answers=bare)
            for _ in range(1 + any(name in tests for name in judge._ASK_A_TWIN))
        ]
        for child in children:
            child.line.receive(60.0)
        asking = judge._Asking(children[0].line, sources)
        asking.twin = judge._Asking(children[-1].line, sources)
        for locked, test, source in cells:
            if test:
                found.append(judge._outcome(source, dict(names), asking))
                continue
            for child in children:
                child.line.send({"cell": source})
                child.line.receive(60.0)
            found.append(None)
            if locked:
                with contextlib.suppress(Exception), quietly():  # it may show what is the student's
                    exec(source, names)
        for child in children:
            child.end()
    return found, {name for name, _ in _compiled() - before}
