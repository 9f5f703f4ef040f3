"""Names what is wrong with a submission before it is graded, and repairs what can be repaired.

nbgrader finds a grade id by the cell's metadata alone: one cell pasted twice ends the grading of a
whole class with a message about schema versions, and a notebook whose metadata was stripped gets 0
points without a word.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat

from accelviz.course.autograde.assignments import Assignment, parse_notebook
from accelviz.course.autograde.cells import is_locked, question_of
from accelviz.course.autograde.common import first_line
from accelviz.course.autograde.repair import Checked, Problem, repair
from accelviz.errors import AccelvizError

_FRESH = "Open it in Jupyter and save it again; if that fails, start from a fresh copy."
#: A notebook with larger outputs than these is held to be an accident.
_MOST_BYTES = 50_000_000
#: Cells of a notebook, letters of a cell: more would take long to compare and to parse.
_MOST_CELLS, _MOST_LETTERS = 500, 100_000


class _Unreadable(Exception):  # noqa: N818
    """The file cannot be graded; the arguments are those of a problem."""


def examine(path: Path, known: Iterable[Assignment]) -> Checked:
    """Examine a submission and repair it in memory.

    Parameters
    ----------
    path : Path
        The notebook that is to be handed in.
    known : iterable of Assignment
        The assignments it can be; which of them, its grade ids tell, else its name.
    """
    try:
        return _examined(path, list(known))
    except _Unreadable as problem:
        return Checked(path, None, (Problem(*problem.args),))
    except AccelvizError:  # of the assignments
        raise
    except Exception as error:  # whatever a damaged file leads to
        reason = first_line(error) or type(error).__name__
        text = f"{path.name} is a damaged notebook: {reason}."
        return Checked(path, None, (Problem("unreadable", text, _FRESH),))


def tried(checked: Checked) -> Checked:
    """Run an examined submission as grading does, with the tests that students see.

    Returns
    -------
    Checked
        With a problem for each cell that fails.
    """
    from accelviz.course.autograde.border import Limits
    from accelviz.course.autograde.sandbox import run

    blank = any(problem.kind == "blank" and not problem.harmless for problem in checked.problems)
    if checked.notebook is None or checked.assignment is None or blank:
        return checked
    notebook, problems = copy.deepcopy(checked.notebook), list(checked.problems)
    try:
        library = checked.assignment.folder
        runs = run(notebook, Limits(), checked.path.parent, library=library)
    except AccelvizError as error:
        problems.append(Problem("test", f"It could not be run: {error}", "", harmless=True))
        runs = []
    for ran in runs:
        if ran.problem:
            where = f"Cell {ran.index + 1}" + (f" ({ran.question!r})" if ran.question else "")
            test = is_locked(notebook.cells[ran.index])
            ending = "A test says so; look at what it tests." if test else "Mend it."
            problems.append(Problem("test", f"{where} fails: {ran.problem}", ending))
    return dataclasses.replace(checked, problems=tuple(problems))


def _examined(path: Path, known: list[Assignment]) -> Checked:
    notebook = _read(path)
    assignment = _identify(path, notebook, known)
    if assignment is None:
        names = ", ".join(assignment.name for assignment in known)
        text = f"No cell carries a grade id, and the text is that of no assignment ({names})."
        raise _Unreadable("unknown", text, "Check that it is the right file.")
    problems: list[Problem] = []
    original, expected = assignment.released, f"{assignment.name}.ipynb"
    if path.name != expected:
        text = f"The file is named {path.name}, and the grader looks for {expected}."
        problems.append(Problem("name", text, f"Rename it to {expected}.", mended=True))
    metadata = notebook.metadata
    language = metadata.get("kernelspec", {}).get("language")
    language = language or metadata.get("language_info", {}).get("name", "python")
    if language != "python":
        text = f"The notebook's kernel is for {language}."
        ending = "Choose Kernel > Change Kernel > Python 3 and run all cells once more."
        problems.append(Problem("kernel", text, ending, mended=True))
    for k, cell in enumerate(notebook.cells):
        if len(cell.source) > _MOST_LETTERS:
            text = f"Cell {k + 1} has {len(cell.source):,} letters; it is taken for an empty one."
            problems.append(Problem("size", text, f"At most {_MOST_LETTERS:,} are read."))
            cell.source = "" if cell.cell_type != "code" else "raise ValueError('too long')"
    problems += repair(original.cells, notebook)
    notebook.metadata["kernelspec"] = copy.deepcopy(original.metadata.get("kernelspec", {}))
    nbformat.writes(notebook).encode("utf-8")  # as it will have to be
    return Checked(path, assignment, tuple(problems), notebook)


def _read(path: Path) -> Any:
    """Read a notebook of format 4, whose cells get ids, or say why it cannot be read."""
    name, kind = path.name, "unreadable"
    try:
        if path.is_dir():
            raise _Unreadable(kind, f"{path} is a folder without a notebook.", "Add it.")
        if path.exists() and not path.is_file():
            raise _Unreadable(kind, f"{name} is no file.", "Hand in a notebook.")
        if (size := path.stat().st_size) > _MOST_BYTES:
            text = f"{name} has {size / 1e6:,.0f} MB, and at most {_MOST_BYTES / 1e6:g} are read."
            raise _Unreadable(kind, text, "Clear all outputs, and save it again.")
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"{name} is not UTF-8 (byte {error.start})."
        raise _Unreadable(kind, problem, _FRESH) from None
    except OSError as error:
        problem = f"{name} cannot be read: {error.strerror or error}."
        raise _Unreadable(kind, problem, "See that it can be opened.") from None
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        ending = _FRESH
        if "\n<<<<<<<" in text or "\n>>>>>>>" in text:
            ending = "Lines with <<<<<<< and >>>>>>> are from a merge in git; keep one of each two."
        elif path.suffix != ".ipynb":
            ending = "Hand in the .ipynb file itself, not a script, a print or an archive of it."
        problem = f"{name} is no notebook ({error.msg} in line {error.lineno})."
        raise _Unreadable(kind, problem, ending) from None
    version = content.get("nbformat") if isinstance(content, dict) else None
    if version != 4:
        problem = f"{name} has the notebook format {version}, and only 4 can be graded."
        raise _Unreadable("format", problem, "Save it from a present JupyterLab.")
    notebook = parse_notebook(text)
    nbformat.validate(notebook)
    notebook.nbformat_minor = 5
    if len(notebook.cells) > _MOST_CELLS:
        problem = f"{name} has {len(notebook.cells):,} cells, and at most {_MOST_CELLS} are read."
        raise _Unreadable(kind, problem, "Delete what is not needed.")
    for cell in notebook.cells:  # editors on Windows may have ended its lines their way
        cell.source = cell.source.replace("\r\n", "\n")
    return notebook


def _identify(path: Path, notebook: Any, known: list[Assignment]) -> Assignment | None:
    ids = {question_of(cell) for cell in notebook.cells} - {""}
    best = max(known, key=lambda assignment: len(ids & set(assignment.questions)), default=None)
    if best is not None and ids & set(best.questions):
        return best
    stem, folder = path.stem.lower(), path.parent.name
    for assignment in known:
        if stem.startswith(assignment.name.lower()) or folder == assignment.name:
            return assignment
    # every trace of nbgrader is gone; the text still tells
    texts = {cell.source.strip() for cell in notebook.cells} - {""}
    scores = {
        assignment.name: len(texts & {cell.source.strip() for cell in assignment.released.cells})
        for assignment in known
    }
    likely = max(known, key=lambda assignment: scores[assignment.name], default=None)
    return likely if likely is not None and scores[likely.name] > 1 else None
