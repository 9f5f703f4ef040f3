"""nbgrader's preprocessors for a course: execute submissions in the sandbox, and escape HTML.

A preprocessor of nbgrader changes a notebook in one step of grading.
"""

from __future__ import annotations

import re
import urllib.parse
from pathlib import Path
from typing import Any

import nbformat
from nbgrader import preprocessors
from traitlets import Float, Integer

from accelviz.course.autograde.border import Limits
from accelviz.course.autograde.cells import is_locked
from accelviz.course.autograde.outputs import valid_text
from accelviz.course.autograde.sandbox import run

#: Most beginnings of formulas, lines of quotes and rules of tables in a text cell. What follows one
#: is read to the end of the text, and again for the next one; lists and quotes lie in one another.
_MOST = {
    r"\\(?=[(\[])|\$\$": 400,
    r"(?m)^[ \t>]*>": 60,
    r"(?m)^(?=[^\n]*\|)(?:[-:|]|[^\S\n])+$": 50,
}
#: Most letters of code that a page colors: lexers take a time that grows as the square of them, and
#: those of languages other than Python, which a fence may name, any.
_MAX_COLORED = 20_000
_OTHER_LANGUAGE = re.compile(
    r"(?m)^([^\n`~]*(?:`{3,}|~{3,}))(?![`~])(?![ \t]*python\b)[ \t]*[^\s`~][^\n`]*$"
)
#: A last cell, which fits pictures, without nbgrader's red frame, and long words into its pages.
_STYLE = "<style>img {max-width: 100%; border: 0} p, li {overflow-wrap: anywhere} "
_STYLE += "td, th {padding: 0 1ex}</style>"
#: A picture that is attached to the cell; the sign before a link that makes it another picture.
_ATTACHED = re.compile(r"!\[[^\]\n]{,999}\]\(attachment:([^)\s]*+)[^)\n]*+\)")
_OTHER_PICTURE = re.compile(r"!(?=\[)(?!\[\]\(attachment:\d+\))")
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
        """Run a notebook in `resources["metadata"]["path"]`, a folder named as the assignment."""
        folder = Path(resources["metadata"]["path"]).resolve()
        root = Path(self.config.CourseDirectory.root).resolve()
        # Of a submission, nbgrader has made the folder, of links' targets too.
        if names := resources.get("nbgrader"):
            folder = root / "submitted" / names["student"] / names["assignment"]
            if folder.is_symlink() or (folder / f"{names['notebook']}.ipynb").is_symlink():
                raise ValueError("it is a link, and links are not followed; hand in a folder")
        limits = Limits(self.cell_seconds, self.seconds, self.memory_gib)
        library, hidden = root / "source" / folder.name, (str(root),)
        results = run(nb, limits, folder, seed=self.seed, library=library, hidden=hidden)
        names = "question", "seconds", "problem", "raised", "measurements"
        runs = [{name: getattr(result, name) for name in names} for result in results]
        nb.metadata["accelviz"] = {**nb.metadata.get("accelviz", {}), "runs": runs}
        return nb, resources


class PlainText(preprocessors.NbGraderPreprocessor):
    """Makes a student's cells, text cells above all, safe for nbgrader's pages.

    Disables HTML by a zero-width space after each `<` that could begin a tag, and links that are
    not to the web, which may be scripts, by one before their target. Pictures of the web become
    links, as a browser that fetches one tells when the page is read. Attached ones get a number for
    a name and are shown once: a name that is not found stops a page. So do formulas and tables that
    have no end, and quotes of lists of quotes.
    """

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Change all text cells, and let a page color code as Python if it is short, else not."""
        length = sum(len(cell.source) for cell in nb.cells if cell.cell_type == "code")
        lexer = "python3" if length <= _MAX_COLORED else "text"
        nb.metadata["language_info"] = {"name": "python", "pygments_lexer": lexer}
        nb, resources = super().preprocess(nb, resources)
        nb.cells.append(nbformat.v4.new_markdown_cell(_STYLE))
        return nb, resources

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> tuple[Any, Any]:
        """Change a student's cell."""
        if not is_locked(cell):
            cell.source = valid_text(cell.source)
        if cell.cell_type != "code" and not is_locked(cell):
            attached, pictures = cell.get("attachments") or {}, dict[str, Any]()

            def picture(match: re.Match[str]) -> str:
                name = urllib.parse.unquote(match[1])
                data = {
                    mime: text
                    for mime, text in attached.pop(name, {}).items()
                    if re.fullmatch(r"image/[\w.+-]+", mime) and type(text) is str
                }
                if not data:
                    name = re.sub(r"[^\w. -]", "", name)
                    return f"(the picture {name} is missing, or above)"
                pictures[str(len(pictures))] = data
                return f"![](attachment:{len(pictures) - 1})"

            text = cell.source.replace("\r", "\n")  # which begins a line of a page too
            text = _ATTACHED.sub(picture, _OTHER_LANGUAGE.sub(r"\1", text))
            cell.attachments = nbformat.from_dict(pictures)
            text = re.sub(r"<(?=[A-Za-z/!?])", "<\u200b", text)
            text = re.sub(r"\\(?=href)", "\\\\\u200b", _OTHER_LINK.sub("]\u200b", text))
            text = _OTHER_PICTURE.sub("!\u200b", text)
            for pattern, most in _MOST.items():
                if len(re.findall(pattern, text)) > most:
                    text = re.sub(pattern, "", text)
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
