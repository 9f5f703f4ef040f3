"""What a submission with one mistake is, and the perfect solutions to put the mistake into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.course.assignments import marked, read

A1, A2, A3 = "A1-counting-sort", "A2-block-partition", "A3-your-own-scheme"
A4, A5 = "A4-cuda-kernel", "A5-report"
#: The questions of A1 that attacks are made on, as an assignment of its own.
PART = "A0-part"


@dataclass(frozen=True)
class Wrong:
    """A submission that is not perfect.

    `lost` names the cells that do not get all of their points, and what they get instead.
    """

    description: str
    assignment: str
    solutions: Mapping[str, str]
    total: float
    lost: Mapping[str, float]


def solution(assignment: str, cell: str) -> str:
    """The perfect solution of a cell."""
    for notebook_cell, known in marked(read(assignment)):
        if known["grade_id"].partition("-")[2] == cell:
            return notebook_cell.source
    raise KeyError(cell)


def changed(assignment: str, cell: str, *pairs: tuple[str, str]) -> dict[str, str]:
    """The perfect solution of a cell with some of its text replaced."""
    source = solution(assignment, cell)
    for old, new in pairs:
        assert old in source, f"{old!r} is not in the solution of {cell}"
        source = source.replace(old, new)
    return {cell: source}


def every(value: float, *cells: str) -> dict[str, float]:
    """The same points for each of some cells."""
    return dict.fromkeys(cells, value)
