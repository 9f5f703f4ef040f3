"""The shipped assignments' sources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import nbformat

from accelviz.files import assignments_directory

FOLDER = assignments_directory()
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/*.ipynb"))


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
