"""Wrong submissions: the perfect solutions of the assignments with one mistake in each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pytest

from accelviz.course.autograde.assignments import find_assignments
from accelviz.course.autograde.border import bubblewrap

#: Skips tests of confinement that only bubblewrap provides.
needs_bubblewrap = pytest.mark.skipif(not bubblewrap(), reason="bubblewrap does not work here")
A1, A2, A3 = "A1-counting-sort", "A2-block-partition", "A3-your-own-scheme"
A4, A5 = "A4-cuda-kernel", "A5-report"
#: An assignment with some questions of A1, which attacks are submitted to.
PART = "A0-part"


@dataclass(frozen=True)
class Wrong:
    """A wrong submission.

    `solutions` replace solution cells. `lost` maps the cells that get fewer points to these points.
    """

    assignment: str
    description: str
    lost: Mapping[str, float]
    solutions: Mapping[str, str]
    #: Kind of an attack.
    kind: str = ""
    #: Files beside the notebook; cells that come behind all others; a cell before all others.
    files: Mapping[str, str] = field(default_factory=dict)
    moved: tuple[str, ...] = ()
    first: str = ""


ASSIGNMENTS = find_assignments()


def marked(notebook: Any) -> Iterable[tuple[Any, Any]]:
    """Yield the cells with nbgrader metadata, and these metadata."""
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            yield cell, cell.metadata["nbgrader"]


def most_points(notebook: Any) -> dict[str, float]:
    """Return the maximum points of each test cell."""
    return {
        known["grade_id"]: float(known["points"])
        for cell, known in marked(notebook)
        if known["grade"] and cell.cell_type == "code"
    }


def solution(assignment: str, cell: str) -> str:
    """Return the perfect solution of a cell, without the lines that mark the solution."""
    for notebook_cell, known in marked(ASSIGNMENTS[assignment].source):
        if known["grade_id"].partition("-")[2] == cell:
            lines = notebook_cell.source.split("\n")
            return "\n".join(line for line in lines if "SOLUTION" not in line)
    raise KeyError(cell)


def table(
    assignment: str, text: str, known: Mapping[str, str] = MappingProxyType({})
) -> list[Wrong]:
    """Parse wrong answers of an assignment, written as changes of its solutions or of `known`.

    An answer begins with `# cell: description`. A line `= ` has the cells that lose points
    (`cell=points` if not all), lines `- ` have text of the solution and lines `+ ` its replacement.
    Without `- ` the text replaces the whole cell, and three dots in it stand for the solution.
    """
    answers = []
    for entry in text.strip("\n").removeprefix("# ").split("\n# "):
        head, *lines = entry.split("\n")
        cell, _, description = head.partition(": ")
        source, lost = known.get(cell) or solution(assignment, cell), dict[str, float]()
        changes = [line for line in lines if line[0] != "="]
        for word in " ".join(line[2:] for line in lines if line[0] == "=").split():
            name, _, points = word.partition("=")
            lost[name] = float(points or 0)
        groups = itertools.groupby(changes, key=lambda line: line[0])
        pieces = ["\n".join(line[2:] for line in group) for _, group in groups]
        if len(pieces) == 1:
            source = pieces[0].replace("...", source)
        for old, new in zip(pieces[:-1:2], pieces[1::2], strict=True):
            assert old in source, f"{old!r} is not in the solution of {cell}"
            source = source.replace(old, new)
        answers.append(Wrong(assignment, description, lost, {cell: source}))
    return answers
