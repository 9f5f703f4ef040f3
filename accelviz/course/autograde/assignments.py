"""Assignments: those that ship with accelviz, and those in the `source/` of a course folder."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from accelviz.course.autograde.cells import question_of, released
from accelviz.course.autograde.common import first_line
from accelviz.errors import ArgumentError
from accelviz.files import assignments_directory


@dataclass(frozen=True)
class Assignment:
    """An assignment: a folder with a notebook of the same name, and other files that it needs."""

    #: For example `A1/`, which contains `A1.ipynb`.
    folder: Path

    @property
    def name(self) -> str:
        """Name of the folder and of the notebook."""
        return self.folder.name

    @property
    def path(self) -> Path:
        """Path of the notebook with solutions and hidden tests."""
        return self.folder / f"{self.name}.ipynb"

    @functools.cached_property
    def text(self) -> str:
        """The text of the instructor's notebook."""
        return self.path.read_text("utf-8")

    @functools.cached_property
    def source(self) -> Any:
        """The instructor's notebook; raises ArgumentError if it cannot be read."""
        try:
            return parse_notebook(self.text)
        except (OSError, ValueError, AttributeError) as error:
            reason = f"it cannot be read: {first_line(error) or type(error).__name__}"
            raise ArgumentError(str(self.path), reason, "a notebook") from error

    @functools.cached_property
    def released(self) -> Any:
        """The notebook for students, without solutions and hidden tests."""
        return released(self.source)

    @functools.cached_property
    def questions(self) -> tuple[str, ...]:
        """The grade ids of its cells, in order."""
        return tuple(filter(None, map(question_of, self.released.cells)))


def parse_notebook(text: str) -> Any:
    """Return the notebook of any format 4.x in a text; give ids to cells without one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of missing and duplicate ids
        return nbformat.validator.normalize(nbformat.reads(text, as_version=4))[1]


def find_assignments(folder: Path | None = None) -> dict[str, Assignment]:
    """Return the assignments in a folder (default: the shipped ones) by name.

    Raises ArgumentError if there are none.
    """
    folder = assignments_directory() if folder is None else folder
    assignments = [Assignment(path.parent) for path in sorted(folder.glob("*/*.ipynb"))]
    by_name = {item.name: item for item in assignments if item.path.is_file()}
    if not by_name:
        raise ArgumentError(
            str(folder), "there is no assignment", "folders such as A1, with A1.ipynb in it"
        )
    return by_name


def full_name(name: str, known: Iterable[str]) -> str:
    """Return the one of these names that a name is, also up to the first dash; "" if none is."""
    return next((full for full in known if name in (full, full.split("-")[0])), "")


def choose(known: dict[str, Assignment], names: Sequence[str]) -> list[Assignment]:
    """Return the assignments with these names, or all of them if no name is given.

    A name may be shortened to the part before the first dash: "A1" for "A1-counting-sort". Raises
    ArgumentError for an unknown name.
    """
    for name in names:
        if not full_name(name, known):
            raise ArgumentError(name, "there is no such assignment", ", ".join(known))
    return [known[full_name(name, known)] for name in names or known]
