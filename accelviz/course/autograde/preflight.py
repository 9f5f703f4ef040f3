"""Names what is wrong with a submission before it is graded, and repairs what can be repaired.

nbgrader finds a grade id by the cell's metadata alone: one cell pasted twice ends the grading of a
whole class with a message about schema versions, and a notebook whose metadata was stripped gets 0
points without a word.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat

from accelviz.course.autograde.assignments import Assignment
from accelviz.course.autograde.cells import is_locked, question_of
from accelviz.course.autograde.problems import Checked, Problem
from accelviz.course.autograde.repair import repair
from accelviz.errors import AccelvizError

_FRESH = "Open it in Jupyter and save it again; if that fails, start from a fresh copy."
#: A notebook with larger outputs than these is held to be an accident.
_MOST_BYTES = 50_000_000
#: Cells of a notebook, letters of a cell: more would take long to compare and to parse.
_MOST_CELLS, _MOST_LETTERS = 500, 100_000


def examine(path: Path, known: Iterable[Assignment]) -> Checked:
    """Examine a submission and repair it in memory.

    Parameters
    ----------
    path : Path
        The notebook that is to be handed in.
    known : iterable of Assignment
        The assignments it can be; which of them, its grade ids tell, else its name.

    Returns
    -------
    Checked
    """
    try:
        return _examined(path, list(known))
    except AccelvizError:  # of the assignments
        raise
    except Exception as error:  # whatever a damaged file leads to
        return Checked(path, None, (_damaged(path, error),))


def tried(checked: Checked) -> Checked:
    """Run an examined submission as grading does, with the tests that students see.

    Parameters
    ----------
    checked : Checked

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
    notebook = copy.deepcopy(checked.notebook)
    library = checked.assignment.folder
    problems = list(checked.problems)
    try:
        runs, _ = run(notebook, Limits(), checked.path.parent, library=library)
    except AccelvizError as error:
        problems.append(Problem("test", f"It could not be run: {error}", "", harmless=True))
        runs = []
    for cell_run in runs:
        if cell_run.problem:
            cell = notebook.cells[cell_run.index]
            where = f"Cell {cell_run.index + 1}" + f" ({cell_run.question!r})" * bool(
                cell_run.question
            )
            told = f"{where} fails: {cell_run.problem}"
            ending = "A test says so; look at what it tests." if is_locked(cell) else "Mend it."
            problems.append(Problem("test", told, ending))
    return dataclasses.replace(checked, problems=tuple(problems))


def _examined(path: Path, known: list[Assignment]) -> Checked:
    notebook, problem = _read(path)
    if problem is not None:
        return Checked(path, None, (problem,))
    problems = [] if notebook.nbformat_minor >= 5 else [_old_format(notebook)]
    assignment = _identify(path, notebook, known)
    if assignment is None:
        return Checked(path, None, (*problems, _unknown(known)))
    original = assignment.released
    problems += _name(path, assignment) + _kernel(notebook, original)
    problems += _sizes(notebook) + repair(original.cells, notebook)
    notebook.metadata["kernelspec"] = copy.deepcopy(original.metadata.get("kernelspec", {}))
    notebook.nbformat_minor = max(notebook.nbformat_minor, 5)
    nbformat.writes(notebook).encode("utf-8")  # as it will have to be
    return Checked(path, assignment, tuple(problems), notebook)


def _read(path: Path) -> tuple[Any, Problem | None]:
    fresh = _FRESH
    try:
        if path.is_dir():
            return None, Problem("unreadable", f"{path} is a folder without a notebook.", "Add it.")
        if path.exists() and not path.is_file():
            return None, Problem("unreadable", f"{path.name} is no file.", "Hand in a notebook.")
        if (size := path.stat().st_size) > _MOST_BYTES:
            problem = (
                f"{path.name} has {size / 1e6:,.0f} MB, and at most {_MOST_BYTES / 1e6:g} are read."
            )
            return None, Problem("unreadable", problem, "Clear all outputs, and save it again.")
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        return None, Problem("unreadable", f"There is no file {path.name}.", "Check its name.")
    except UnicodeDecodeError as error:
        problem = f"{path.name} is not UTF-8 (byte {error.start})."
        return None, Problem("unreadable", problem, fresh)
    except OSError as error:
        problem = f"{path.name} cannot be read: {error.strerror or error}."
        return None, Problem("unreadable", problem, "See that it can be opened.")
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        if "\n<<<<<<<" in text or "\n>>>>>>>" in text:
            fresh = "Lines with <<<<<<< and >>>>>>> are from a merge in git; keep one of each two."
        elif path.suffix != ".ipynb":
            fresh = "Hand in the .ipynb file itself, not a script, a print or an archive of it."
        return None, Problem(
            "unreadable", f"{path.name} is no notebook ({error.msg} in line {error.lineno}).", fresh
        )
    version = content.get("nbformat") if isinstance(content, dict) else None
    if version != 4:
        return None, Problem(
            "format",
            f"{path.name} has the notebook format {version}, and only 4 can be graded.",
            "Save it from a present JupyterLab.",
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of missing and doubled ids, which are given here
            notebook = nbformat.reads(text, as_version=4)
            minor = min(notebook.nbformat_minor, 5)
            notebook = nbformat.validator.normalize(notebook)[1]
            nbformat.validate(notebook)
            notebook.nbformat_minor = minor
    except Exception as error:  # whatever a damaged file makes nbformat raise
        return None, _damaged(path, error)
    if len(notebook.cells) > _MOST_CELLS:
        problem = (
            f"{path.name} has {len(notebook.cells):,} cells, and at most {_MOST_CELLS} are read."
        )
        return None, Problem("unreadable", problem, "Delete what is not needed.")
    for cell in notebook.cells:  # editors on Windows may have ended its lines their way
        cell.source = cell.source.replace("\r\n", "\n")
    return notebook, None


def _sizes(notebook: Any) -> list[Problem]:
    """Empty cells that are too long to be looked at."""
    problems = []
    for k, cell in enumerate(notebook.cells):
        if len(cell.source) > _MOST_LETTERS:
            problem = (
                f"Cell {k + 1} has {len(cell.source):,} letters; it is taken for an empty one."
            )
            problems.append(Problem("size", problem, f"At most {_MOST_LETTERS:,} are read."))
            cell.source = "" if cell.cell_type != "code" else "raise ValueError('too long')"
    return problems


def _damaged(path: Path, error: Exception) -> Problem:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return Problem("unreadable", f"{path.name} is a damaged notebook: {reason}.", _FRESH)


def _old_format(notebook: Any) -> Problem:
    return Problem(
        "format",
        f"The notebook has format 4.{notebook.nbformat_minor}, the assignment 4.5.",
        "Nothing to do; a present Jupyter saves it so.",
        mended=True,
        harmless=True,
    )


def _identify(path: Path, notebook: Any, known: list[Assignment]) -> Assignment | None:
    ids = {question_of(cell) for cell in notebook.cells} - {""}
    best = max(known, key=lambda assignment: len(ids & set(assignment.questions)), default=None)
    if best is not None and ids & set(best.questions):
        return best
    named = [
        assignment for assignment in known if path.stem.lower().startswith(assignment.name.lower())
    ]
    named += [assignment for assignment in known if path.parent.name == assignment.name]
    if named:
        return named[0]
    # every trace of nbgrader is gone; the text still tells
    texts = {cell.source.strip() for cell in notebook.cells} - {""}
    scored = [
        (
            len(texts & {cell.source.strip() for cell in assignment.released.cells}),
            assignment.name,
            assignment,
        )
        for assignment in known
    ]
    score, _, likely = max(scored, default=(0, "", None), key=lambda assignment: assignment[:2])
    return likely if score > 1 else None


def _unknown(known: list[Assignment]) -> Problem:
    return Problem(
        "unknown",
        "No cell carries a grade id, and the text is that of no assignment "
        f"({', '.join(assignment.name for assignment in known)}).",
        "Check that it is the right file.",
    )


def _name(path: Path, assignment: Assignment) -> list[Problem]:
    expected = f"{assignment.name}.ipynb"
    if path.name == expected:
        return []
    return [
        Problem(
            "name",
            f"The file is named {path.name}, and the grader looks for {expected}.",
            f"Rename it to {expected}.",
            mended=True,
        )
    ]


def _kernel(notebook: Any, original: Any) -> list[Problem]:
    actual, expected = (
        document.metadata.get("kernelspec", {}) for document in (notebook, original)
    )
    language = actual.get("language") or notebook.metadata.get("language_info", {}).get("name")
    if language not in (None, "python"):
        return [
            Problem(
                "kernel",
                f"The notebook's kernel is for {language}.",
                "Choose Kernel > Change Kernel > Python 3 and run all cells once more.",
                mended=True,
            )
        ]
    if actual.get("name") == expected.get("name"):
        return []
    return [
        Problem(
            "kernel",
            f"The notebook asks for the kernel {actual.get('name', 'of no name')!r}; the grader "
            f"uses {expected.get('name')!r}.",
            "Nothing to do, if all you import is what the assignment imports.",
            mended=True,
            harmless=True,
        )
    ]
