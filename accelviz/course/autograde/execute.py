"""nbgrader's preprocessors for a course: execute submissions in the sandbox, and escape HTML.

A preprocessor of nbgrader changes a notebook in one step of grading.
"""

from __future__ import annotations

import re
import urllib.parse
from pathlib import Path
from typing import Any

from nbgrader import preprocessors
from traitlets import Float, Integer

from accelviz.course.autograde.border import Limits
from accelviz.course.autograde.cells import is_locked
from accelviz.course.autograde.sandbox import run

#: Beginnings of formulas in a text cell; each one without an end is sought to the end of the text.
_MAX_FORMULAS = 400
#: The end of a link's text before a target that is not of the web, or is beside the notebook.
_OTHER_LINK = re.compile(r"\](?=[(:])(?![(:]\s*(?:https?://|mailto:|attachment:))")


class SandboxedExecute(preprocessors.NbGraderPreprocessor):
    """Executes a submission in the sandbox; replaces `nbgrader.preprocessors.Execute`.

    The results of the cells are stored in the notebook's metadata, under `accelviz`.
    """

    cell_seconds = Float(Limits.cell_seconds, help="Wall-clock time of one cell").tag(config=True)
    seconds = Float(Limits.seconds, help="Wall-clock time of a submission").tag(config=True)
    memory_gib = Float(
        Limits.memory_gib, allow_none=True, help="Address space in GiB; None for no limit"
    ).tag(config=True)
    seed = Integer(0, min=0, help="The course's seed of all hidden graphs").tag(config=True)

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Run all cells of a notebook in `resources["metadata"]["path"]`."""
        options: dict[str, Any] = {"seed": self.seed}
        folder = None
        if path := resources.get("metadata", {}).get("path"):
            folder = Path(path).resolve()
            root = folder.parents[2]
            options |= {"library": root / "source" / folder.name, "hidden": (str(root),)}
        limits = Limits(self.cell_seconds, self.seconds, self.memory_gib)
        runs = [
            {name: getattr(result, name) for name in ("question", "seconds", "problem", "raised")}
            for result in run(nb, limits, folder, **options)
        ]
        key = nb.metadata.get("accelviz", {}).get("key", "")
        nb.metadata["accelviz"] = {"key": key, "runs": runs}
        return nb, resources


class PlainText(preprocessors.NbGraderPreprocessor):
    """Makes a student's text cells safe for nbgrader's pages.

    Disables HTML by a zero-width space after each `<` that could begin a tag, and links that are
    not to the web, which may be scripts, by one before their target. Replaces pictures that were
    pasted without their file, and formulas without an end, which stop or delay a page.
    """

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> tuple[Any, Any]:
        """Change a text cell."""
        if cell.cell_type != "code" and not is_locked(cell):
            text = re.sub(r"<(?=[A-Za-z/!?])", "<\u200b", cell.source)
            text = re.sub(r"\\(?=href)", "\\\\\u200b", _OTHER_LINK.sub("]\u200b", text))
            known = cell.get("attachments") or {}

            def picture(match: re.Match[str]) -> str:
                name = urllib.parse.unquote(match[1])
                return match[0] if name in known else f"(the picture {name} is missing)"

            text = re.sub(r"!\[[^\]\n]{,999}\]\(attachment:([^)\s]*)[^)\n]*\)", picture, text)
            if len(re.findall(r"\\[(\[]|\$\$", text)) > _MAX_FORMULAS:
                text = re.sub(r"\\(?=[(\[])|\$\$", "", text)
            cell.source = text
        return cell, resources


#: Value of `c.Autograde.autograde_preprocessors`; `grading` calls those behind the first two.
PREPROCESSORS = [
    SandboxedExecute,
    preprocessors.CheckCellMetadata,
    preprocessors.IgnorePattern,
    preprocessors.LimitOutput,
    preprocessors.SaveAutoGrades,
    preprocessors.AssignLatePenalties,
    PlainText,
]
