"""Where assignments are: those that ship with accelviz, and those of a course folder."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
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
    """An assignment's source: a folder with a notebook of its name, and whatever else it needs."""

    #: `A1/`, with `A1.ipynb` in it.
    folder: Path

    @property
    def name(self) -> str:
        """Its name, which is the folder's and the notebook's."""
        return self.folder.name

    @property
    def path(self) -> Path:
        """The notebook, with solutions and hidden tests."""
        return self.folder / f"{self.name}.ipynb"

    @functools.cached_property
    def source(self) -> Any:
        """The notebook's content; ArgumentError if it cannot be read."""
        try:
            return read_notebook(self.path)
        except (OSError, ValueError, AttributeError) as error:
            reason = f"it cannot be read: {first_line(error) or type(error).__name__}"
            raise ArgumentError(str(self.path), reason, "a notebook") from error

    @functools.cached_property
    def released(self) -> Any:
        """The notebook as students get it."""
        return released(self.source)

    @functools.cached_property
    def questions(self) -> tuple[str, ...]:
        """The grade ids of its cells, in order."""
        return tuple(filter(None, map(question_of, self.released.cells)))


def read_notebook(path: Path) -> Any:
    """Read a notebook of any format 4, quietly giving ids to cells that have none."""
    return parse_notebook(path.read_text("utf-8"))


def parse_notebook(text: str) -> Any:
    """Return the notebook that a text is; see `read_notebook`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of missing and doubled ids, which are given here
        return nbformat.validator.normalize(nbformat.reads(text, as_version=4))[1]


def find_assignments(folder: Path | None = None) -> dict[str, Assignment]:
    """Return the assignments of a folder (the shipped ones if not given) by name.

    Raises ArgumentError if there are none.
    """
    folder = assignments_directory() if folder is None else folder
    assignments = [Assignment(path.parent) for path in sorted(folder.glob("*/*.ipynb"))]
    named = {assignment.name: assignment for assignment in assignments if assignment.path.is_file()}
    if not named:
        raise ArgumentError(
            str(folder), "there is no assignment", "folders such as A1, with A1.ipynb in it"
        )
    return named


def choose(known: dict[str, Assignment], names: Sequence[str]) -> list[Assignment]:
    """Return the assignments of these names, all of them if there is no name.

    A name is the whole one, or what comes before the first dash: "A1" for "A1-counting-sort".
    ArgumentError if there is no assignment of it.
    """
    short = {name.split("-")[0]: name for name in reversed(known)}
    for name in names:
        if name not in known and name not in short:
            raise ArgumentError(name, "there is no such assignment", ", ".join(known))
    return [known.get(name) or known[short[name]] for name in names or known]
