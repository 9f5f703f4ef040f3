"""What can be wrong with a submission."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelviz.course.autograde.assignments import Assignment
from accelviz.course.autograde.words import clean


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a submission.

    Attributes
    ----------
    kind : str
        `unreadable`, `unknown`, `name`, `format`, `kernel`, `duplicate`, `metadata`, `missing`,
        `changed`, `order`, `size`, `syntax`, `blank`, `place` or `test`.
    text : str
        What was found, in one or two sentences.
    repair : str
        What the student does about it.
    mended : bool
        The repaired copy is free of it.
    harmless : bool
        It costs no points.
    """

    kind: str
    text: str
    repair: str
    mended: bool = False
    harmless: bool = False

    def __post_init__(self) -> None:
        """Let nothing that a submission wrote into it reach a terminal as it is."""
        for name in ("text", "repair"):
            object.__setattr__(self, name, clean(getattr(self, name)))

    def __str__(self) -> str:
        return f"{self.text} {self.repair}".strip()


@dataclass(frozen=True)
class Checked:
    """A submission, examined.

    Attributes
    ----------
    path : Path
        The file.
    assignment : Assignment or None
        What it answers, as far as it could be told.
    problems : tuple of Problem
    notebook : NotebookNode or None
        The repaired notebook; None if there is no grading it.
    """

    path: Path
    assignment: Assignment | None
    problems: tuple[Problem, ...]
    notebook: Any = None

    @property
    def fine(self) -> bool:
        """Whether nothing of what was found costs points."""
        return all(problem.harmless for problem in self.problems)
