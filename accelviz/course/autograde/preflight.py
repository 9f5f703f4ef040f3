"""Examines a submission before it is handed in or graded: reports its problems and repairs cells.

nbgrader identifies cells by their metadata alone. A cell pasted twice makes it stop grading the
whole class with a message about schema versions; a notebook without metadata gets 0 points without
a message.
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
from accelviz.course.autograde.cells import is_locked, is_test, question_of
from accelviz.course.autograde.common import first_line
from accelviz.course.autograde.repair import Checked, Problem, repair
from accelviz.errors import AccelvizError

_FRESH = "Open it in Jupyter and save it again; if that fails, start from a fresh copy."
#: Largest file of a notebook, outputs included.
_MAX_BYTES = 50_000_000
#: Most cells of a notebook and characters of a cell: comparing and parsing more takes too long.
_MAX_CELLS, _MAX_CHARACTERS = 500, 100_000
#: What is read of a notebook, and most outputs of its cells: grading makes its own, and checking
#: half a million takes minutes.
_PARTS, _MAX_OUTPUTS = ("cells", "metadata", "nbformat", "nbformat_minor"), 2_000
#: Metadata of cells that are kept.
_METADATA = {"nbgrader", "deletable", "editable"}
#: Most characters of a text cell, and of ten of them: brackets take a page quadratic time.
_MAX_TEXT = 20_000


class _UnreadableError(Exception):
    """The file cannot be graded; the arguments are those of `Problem`."""


def examine(path: Path, known: Iterable[Assignment]) -> Checked:
    """Examine a submission and repair it in memory.

    Parameters
    ----------
    path : Path
        The notebook that is to be handed in.
    known : iterable of Assignment
        The possible assignments. The submission's is recognized by its grade ids, else by its file
        or folder name, else by its text.
    """
    try:
        return _examine(path, list(known))
    except _UnreadableError as problem:
        return Checked(path, None, (Problem(*problem.args),))
    except AccelvizError:  # an assignment cannot be read
        raise
    except Exception as error:  # a damaged file may cause any error
        reason = first_line(error) or type(error).__name__
        text = f"{path.name} is a damaged notebook: {reason}."
        return Checked(path, None, (Problem("unreadable", text, _FRESH),))


def run_visible_tests(checked: Checked) -> Checked:
    """Run an examined submission in the sandbox, with the tests that students see.

    Returns
    -------
    Checked
        The submission with a further problem for each cell that fails.
    """
    from accelviz.course.autograde.border import Limits
    from accelviz.course.autograde.sandbox import run

    blank = any(problem.kind == "blank" and not problem.harmless for problem in checked.problems)
    if checked.notebook is None or checked.assignment is None or blank:
        return checked
    notebook, problems = copy.deepcopy(checked.notebook), list(checked.problems)
    try:
        library = checked.assignment.folder
        tests = "\n".join(cell.source for cell in filter(is_test, checked.assignment.source.cells))
        runs = run(notebook, Limits(), checked.path.parent, library=library, tests=tests)
    except AccelvizError as error:
        problems.append(Problem("test", f"It could not be run: {error}", "", harmless=True))
        runs = []
    comparing = []
    for result in filter(lambda result: result.problem, runs):
        if not result.question and any(item.get("ename") == "NotYours" for item in result.outputs):
            comparing.append(str(result.index + 1))
            continue
        question = f" ({result.question!r})" if result.question else ""
        text = f"Cell {result.index + 1}{question} fails: {result.problem}"
        says = is_locked(notebook.cells[result.index])
        ending = "A test says so; look at what it tests." if says else "Mend it."
        problems.append(Problem("test", text, ending))
    if comparing:
        numbers = f"Cell{'s' * (len(comparing) > 1)} {', '.join(comparing)}"
        text = f"{numbers}: what is used of the library is not there while this is graded."
        ending = "That costs nothing, unless an answer needs what such a cell defines."
        problems.append(Problem("hidden", text, ending, harmless=True))
    return dataclasses.replace(checked, problems=tuple(problems))


def _examine(path: Path, known: list[Assignment]) -> Checked:
    notebook = _read(path)
    assignment = _identify(path, notebook, known)
    if assignment is None:
        names = ", ".join(assignment.name for assignment in known)
        text = f"No cell carries a grade id, and the text is that of no assignment ({names})."
        raise _UnreadableError("unknown", text, "Check that it is the right file.")
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
    left = 10 * _MAX_TEXT
    for k, cell in enumerate(notebook.cells):
        is_code = cell.cell_type == "code"
        most = _MAX_CHARACTERS if is_code else min(_MAX_TEXT, left)
        if len(cell.source) > most:
            text = f"Cell {k + 1} has {len(cell.source):,} letters; "
            text += "it is taken for an empty one." if is_code else "the rest is left out."
            problems.append(Problem("size", text, f"At most {most:,} are read."))
            cell.source = "raise ValueError('too long')" if is_code else cell.source[:most]
        left -= 0 if is_code else len(cell.source)
    problems += repair(original.cells, notebook)
    # of a student's metadata no more is needed, and tools obey them: exporters hide what they say
    notebook.metadata = copy.deepcopy(original.metadata)
    for cell in notebook.cells:
        keys = cell.metadata.keys() & _METADATA
        cell.metadata = nbformat.from_dict({key: cell.metadata[key] for key in sorted(keys)})
    nbformat.writes(notebook).encode("utf-8")  # raises an error now instead of in grading
    return Checked(path, assignment, tuple(problems), notebook)


def _read(path: Path) -> Any:
    """Read a notebook of format 4 and give ids to its cells, or raise _UnreadableError."""
    name, kind = path.name, "unreadable"
    try:
        if path.is_dir():
            raise _UnreadableError(kind, f"{path} is a folder without a notebook.", "Add it.")
        if path.exists() and not path.is_file():
            raise _UnreadableError(kind, f"{name} is no file.", "Hand in a notebook.")
        if (size := path.stat().st_size) > _MAX_BYTES:
            text = f"{name} has {size / 1e6:,.0f} MB, and at most {_MAX_BYTES / 1e6:g} are read."
            raise _UnreadableError(kind, text, "Clear all outputs, and save it again.")
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"{name} is not UTF-8 (byte {error.start})."
        raise _UnreadableError(kind, problem, _FRESH) from None
    except OSError as error:
        problem = f"{name} cannot be read: {error.strerror or error}."
        raise _UnreadableError(kind, problem, "See that it can be opened.") from None
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        ending = _FRESH
        if "\n<<<<<<<" in text or "\n>>>>>>>" in text:
            ending = "Lines with <<<<<<< and >>>>>>> are from a merge in git; keep one of each two."
        elif path.suffix != ".ipynb":
            ending = "Hand in the .ipynb file itself, not a script, a print or an archive of it."
        problem = f"{name} is no notebook ({error.msg} in line {error.lineno})."
        raise _UnreadableError(kind, problem, ending) from None
    version = content.get("nbformat") if isinstance(content, dict) else None
    if version != 4:
        problem = f"{name} has the notebook format {version}, and only 4 can be graded."
        raise _UnreadableError("format", problem, "Save it from a present JupyterLab.")
    cells = content.get("cells")
    if isinstance(cells, list) and len(cells) > _MAX_CELLS:
        problem = f"{name} has {len(cells):,} cells, and at most {_MAX_CELLS} are read."
        raise _UnreadableError(kind, problem, "Delete what is not needed.")
    notebook = parse_notebook(json.dumps(_without_excess(content)))
    nbformat.validate(notebook)
    notebook.nbformat_minor = 5
    for cell in notebook.cells:  # line ends of Windows
        cell.source = cell.source.replace("\r\n", "\n")
    return notebook


def _without_excess(content: dict[str, Any]) -> dict[str, Any]:
    """Return a notebook's content without unknown parts and metadata, and with few outputs."""
    left = _MAX_OUTPUTS
    cells = content.get("cells")
    for cell in filter(lambda cell: isinstance(cell, dict), cells if type(cells) is list else []):
        if isinstance(cell.get("outputs"), list):
            cell["outputs"] = cell["outputs"][:left]
            left -= len(cell["outputs"])
        if isinstance(metadata := cell.get("metadata"), dict):
            keys = metadata.keys() & (_METADATA | {"id"})  # `id`: of older notebooks
            cell["metadata"] = {key: metadata[key] for key in sorted(keys)}
    return {name: content[name] for name in _PARTS if name in content}


def _identify(path: Path, notebook: Any, known: list[Assignment]) -> Assignment | None:
    """Return the assignment with most common grade ids, else by name, else by equal cells."""
    ids = {question_of(cell) for cell in notebook.cells} - {""}
    best = max(known, key=lambda assignment: len(ids & set(assignment.questions)), default=None)
    if best is not None and ids & set(best.questions):
        return best
    stem, folder = path.stem.lower(), path.parent.name
    for assignment in known:
        if stem.startswith(assignment.name.lower()) or folder == assignment.name:
            return assignment
    texts = {cell.source.strip() for cell in notebook.cells} - {""}

    def n_equal_cells(assignment: Assignment) -> int:
        return len(texts & {cell.source.strip() for cell in assignment.released.cells})

    likely = max(known, key=n_equal_cells, default=None)
    return likely if likely is not None and n_equal_cells(likely) > 1 else None
