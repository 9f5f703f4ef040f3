"""What can be wrong with a submission."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelviz.course.autograde.assignments import Assignment
from accelviz.course.autograde.common import clean


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a submission."""

    #: `unreadable`, `unknown`, `name`, `format`, `kernel`, `duplicate`, `metadata`, `missing`,
    #: `changed`, `order`, `size`, `syntax`, `blank`, `place` or `test`.
    kind: str
    #: What was found, in one or two sentences, and what the student does about it.
    text: str
    repair: str
    #: The repaired copy is free of it.
    mended: bool = False
    #: It costs no points.
    harmless: bool = False

    def __post_init__(self) -> None:
        """Let nothing that a submission wrote into it reach a terminal as it is."""
        for name in ("text", "repair"):
            object.__setattr__(self, name, clean(getattr(self, name)))

    def __str__(self) -> str:
        return f"{self.text} {self.repair}".strip()


@dataclass(frozen=True)
class Checked:
    """A submission, examined."""

    path: Path
    #: What it answers, as far as it could be told.
    assignment: Assignment | None
    problems: tuple[Problem, ...]
    #: The repaired notebook; None if there is no grading it.
    notebook: Any = None

    @property
    def fine(self) -> bool:
        """Whether nothing of what was found costs points."""
        return all(problem.harmless for problem in self.problems)
