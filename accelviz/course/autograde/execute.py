"""nbgrader's step that executes a submission, put into the sandbox."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    DeduplicateIds,
    IgnorePattern,
    LimitOutput,
    NbGraderPreprocessor,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
)
from traitlets import Float, Integer

from accelviz.course.autograde.border import Limits
from accelviz.course.autograde.cells import is_locked
from accelviz.course.autograde.sandbox import run


class SandboxedExecute(NbGraderPreprocessor):
    """Executes a submission under limits, in place of `nbgrader.preprocessors.Execute`.

    What became of each cell is kept in the notebook's metadata, under `accelviz`.
    """

    cell_seconds = Float(Limits.cell_seconds, help="Wall-clock time of one cell").tag(config=True)
    seconds = Float(Limits.seconds, help="Wall-clock time of a submission").tag(config=True)
    memory_gib = Float(
        Limits.memory_gib, allow_none=True, help="Address space in GiB; None for no limit"
    ).tag(config=True)
    seed = Integer(0, min=0, help="The course's seed of all hidden graphs").tag(config=True)

    def limits(self) -> Limits:
        """Return what a submission may use."""
        names = ("cell_seconds", "seconds", "memory_gib")
        return Limits(**{name: getattr(self, name) for name in names})

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Run all cells of a notebook."""
        options: dict[str, Any] = {"seed": self.seed}
        folder = None
        if path := resources.get("metadata", {}).get("path"):
            folder = Path(path).resolve()
            root = folder.parents[2]
            options |= {"library": root / "source" / folder.name, "hidden": (str(root),)}
        execute(nb, self.limits(), folder, **options)
        return nb, resources


def execute(nb: Any, limits: Limits, folder: Path | None, **options: Any) -> None:
    """Run a notebook, and keep what became of each cell in its metadata, under `accelviz`."""
    runs = [
        {name: getattr(ran, name) for name in ("question", "seconds", "problem", "raised")}
        for ran in run(nb, limits, folder, **options)
    ]
    nb.metadata["accelviz"] = {"key": nb.metadata.get("accelviz", {}).get("key", ""), "runs": runs}


class PlainText(NbGraderPreprocessor):
    """Lets text cells of a student's hold no HTML, which nbgrader's pages would show as it is.

    A space of no width follows each `<` that could begin a tag, so that the text looks the same.
    """

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> tuple[Any, Any]:
        """Change a cell."""
        if cell.cell_type != "code" and not is_locked(cell):
            cell.source = re.sub(r"<(?=[A-Za-z/!?])", "<\u200b", cell.source)
        return cell, resources


#: For `c.Autograde.autograde_preprocessors`.
PREPROCESSORS = [
    SandboxedExecute,
    IgnorePattern,
    LimitOutput,
    SaveAutoGrades,
    AssignLatePenalties,
    CheckCellMetadata,
    PlainText,
]
#: For `c.Autograde.sanitize_preprocessors` where a submission was run already: outputs stay.
RESTORING = [DeduplicateIds, OverwriteKernelspec, OverwriteCells, CheckCellMetadata]
