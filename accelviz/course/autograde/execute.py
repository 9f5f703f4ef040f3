"""nbgrader's step that executes a submission, put into the sandbox."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    IgnorePattern,
    LimitOutput,
    NbGraderPreprocessor,
    SaveAutoGrades,
)
from traitlets import Bool, Float, Integer

from accelviz.course.autograde.outputs import extra_points
from accelviz.course.autograde.sandbox import Limits, Run
from accelviz.course.checks.hidden import COURSE_SEED


class SandboxedExecute(NbGraderPreprocessor):
    """Executes a submission under limits, in place of `nbgrader.preprocessors.Execute`.

    What became of each cell is kept in the notebook's metadata, under `accelviz`.
    """

    cell_seconds = Float(Limits.cell_seconds, help="Wall-clock time of one cell").tag(config=True)
    seconds = Float(Limits.seconds, help="Wall-clock time of a submission").tag(config=True)
    memory_gib = Float(
        Limits.memory_gib, allow_none=True, help="Address space in GiB; None for no limit"
    ).tag(config=True)
    network = Bool(Limits.network, help="Leave it the network").tag(config=True)
    gpu = Bool(Limits.gpu, help="Leave it the GPU").tag(config=True)
    seed = Integer(0, min=0, help="The course's seed of all hidden graphs").tag(config=True)

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Run all cells of a notebook."""
        limits = Limits(
            cell_seconds=self.cell_seconds,
            seconds=self.seconds,
            memory_gib=self.memory_gib,
            network=self.network,
            gpu=self.gpu,
        )
        path = resources.get("metadata", {}).get("path")
        seed = {COURSE_SEED: str(self.seed)}
        runs = Run(nb, limits, Path(path) if path else None, seed).run()
        nb.metadata.setdefault("accelviz", {})["runs"] = [asdict(run) for run in runs]
        nb.metadata["accelviz"]["gpu"] = self.gpu
        return nb, resources


class SaveExtraPoints(NbGraderPreprocessor):
    """Saves extra points into the gradebook, as the extra credit of the graded cell above them."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Save those of a notebook that was run."""
        own = resources["nbgrader"]
        if extra := extra_points(nb):
            with Gradebook(own["db_url"]) as gradebook:
                for each in extra:
                    names = (own["notebook"], own["assignment"], own["student"])
                    grade = gradebook.find_grade(each.credited, *names)
                    grade.extra_credit = each.points or None
                gradebook.db.commit()
        return nb, resources


#: For `c.Autograde.autograde_preprocessors`.
PREPROCESSORS = [
    SandboxedExecute,
    IgnorePattern,
    LimitOutput,
    SaveAutoGrades,
    SaveExtraPoints,
    AssignLatePenalties,
    CheckCellMetadata,
]
