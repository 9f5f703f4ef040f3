"""Assignments carried out in this process, and scored by nbgrader's rules."""

from __future__ import annotations

import ast
import contextlib
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from accelviz.course.autograde.cells import released

FOLDER = Path(__file__).resolve().parents[2] / "notebooks" / "assignments"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/*.ipynb"))


@dataclass
class Graded:
    """Points by grade id, None where a person gives them; and what the cells raised."""

    points: dict[str, float | None] = field(default_factory=dict)
    errors: dict[str, BaseException] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return round(sum(each for each in self.points.values() if each), 2)

    def lost(self, most: Mapping[str, float]) -> dict[str, float]:
        """The points of the cells that do not have all of theirs, by the ids' last parts."""
        return {
            name.partition("-")[2]: found
            for name, found in self.points.items()
            if found is not None and found != most[name]
        }


def read(name: str) -> nbformat.NotebookNode:
    """The source notebook of an assignment."""
    return nbformat.read(FOLDER / name / f"{name}.ipynb", as_version=4)


def marked(notebook: nbformat.NotebookNode) -> Iterable[tuple[Any, Any]]:
    """The cells that nbgrader knows, and what it knows of them."""
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            yield cell, cell.metadata["nbgrader"]


def most_points(name: str) -> dict[str, float]:
    """The most points of each cell that has any."""
    return {
        known["grade_id"]: float(known["points"])
        for _, known in marked(read(name))
        if known["grade"] or known["task"]
    }


def graded(name: str, solutions: Mapping[str, str] | None = None, *, blank: bool = False) -> Graded:
    """Execute an assignment's given, solution and test cells, and score them.

    Parameters
    ----------
    name : str
    solutions : mapping of str to str
        Sources in place of solution cells, by the grade id without the assignment's name.
    blank : bool
        Leave all other solution cells as students get them.
    """
    prefix, found = name.partition("-")[0], Graded(names={"__name__": "__main__"})
    stubs = {known["grade_id"]: cell.source for cell, known in marked(released(read(name)))}
    wanted = {f"{prefix}-{key}": source for key, source in (solutions or {}).items()}
    for cell, known in marked(read(name)):
        grade_id = known["grade_id"]
        if cell.cell_type != "code":
            if known["grade"] or known["task"]:
                found.points[grade_id] = None
            continue
        source = cell.source
        if known["solution"]:
            source = wanted.pop(grade_id, stubs[grade_id] if blank else source)
        shown, error, printed = run(source, found.names)
        if error is not None:
            found.errors[grade_id] = error
        if known["grade"]:
            full = float(known["points"])
            found.points[grade_id] = score(shown, error, printed, full)
    assert not wanted, f"there are no cells {list(wanted)}"
    return found


def score(shown: Any, error: BaseException | None, printed: str, full: float) -> float:
    """What nbgrader 0.9 makes of a test cell's outputs."""
    if error is not None or printed:
        return 0.0
    try:
        partial = full if shown is None else float(repr(shown))
    except ValueError:
        return full
    assert partial <= full, "more than there are, where nbgrader gives up"
    return partial


def run(source: str, names: dict[str, Any]) -> tuple[Any, BaseException | None, str]:
    """Execute a cell; return its last value, what it raised, and what it wrote to stderr."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, shown = io.StringIO(), None
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
        try:
            exec(compile(tree, "<cell>", "exec"), names)
            if last is not None:
                shown = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
        except Exception as error:  # a student's code may raise anything
            return None, error, printed.getvalue()
    return shown, None, printed.getvalue()
