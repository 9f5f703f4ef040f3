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
from accelviz.errors import ArgumentError
from accelviz.files import assignments_directory


@dataclass(frozen=True)
class Assignment:
    """An assignment's source: a folder with a notebook of its name, and whatever else it needs.

    Parameters
    ----------
    folder : Path
        `A1/`, with `A1.ipynb` in it.
    """

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
        """The notebook's content.

        Raises
        ------
        ArgumentError
            If it cannot be read.
        """
        try:
            return read_notebook(self.path)
        except (OSError, ValueError, AttributeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ArgumentError(
                str(self.path), f"it cannot be read: {reason}", "a notebook"
            ) from error

    @functools.cached_property
    def released(self) -> Any:
        """The notebook as students get it."""
        return released(self.source)

    @functools.cached_property
    def questions(self) -> tuple[str, ...]:
        """The grade ids of its cells, in order."""
        return tuple(question for cell in self.released.cells if (question := question_of(cell)))


def read_notebook(path: Path) -> Any:
    """Read a notebook of any format 4, quietly giving ids to cells that have none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of missing ids
        notebook = nbformat.read(path, as_version=4)
        return nbformat.validator.normalize(notebook)[1]


def find_assignments(folder: Path | None = None) -> dict[str, Assignment]:
    """Return the assignments of a folder (the shipped ones if not given) by name.

    Raises
    ------
    ArgumentError
        If there are none.
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
    """Return the named assignments, all of them if none is named.

    Parameters
    ----------
    known : dict of str to Assignment
    names : sequence of str
        Whole names, or what comes before the first dash: "A1" for "A1-counting-sort".

    Raises
    ------
    ArgumentError
        If there is none of a name.
    """
    short = {name.split("-")[0]: name for name in reversed(known)}
    for name in names:
        if name not in known and name not in short:
            raise ArgumentError(name, "there is no such assignment", ", ".join(known))
    return [known.get(name) or known[short[name]] for name in names or known]
