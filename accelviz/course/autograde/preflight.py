"""Examines a submission before it is handed in or graded: reports its problems and repairs cells.

nbgrader identifies cells by their metadata alone. A cell pasted twice makes it stop grading the
whole class with a message about schema versions; a notebook without metadata gets 0 points without
a message.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat

from accelviz.course.autograde.assignments import Assignment, parse_notebook
from accelviz.course.autograde.cells import is_locked, is_test, question_of
from accelviz.course.autograde.common import first_line, need
from accelviz.course.autograde.repair import Checked, Problem, repair
from accelviz.errors import AccelvizError

_FRESH = "Open it in Jupyter and save it again; if that fails, start from a fresh copy."
#: Largest file of a notebook, outputs included.
_MAX_BYTES = 50_000_000
#: Most cells of a notebook and characters of a cell: comparing and parsing more takes too long.
_MAX_CELLS, _MAX_CHARACTERS = 500, 100_000
#: Most numbers, texts, lists and objects of JSON in all cells; each takes a kilobyte of memory.
_MAX_PARTS = 200_000
#: Metadata of cells that are read; `id` is of older notebooks.
_METADATA = {"nbgrader", "deletable", "editable", "id"}
#: Pictures that are not in the notebook.
_PICTURE = re.compile(r"!\[[^][]*\]\((?!attachment:)|<img\b", re.I)
#: Most characters of a text cell, and of ten of them: brackets take a page quadratic time.
_MAX_TEXT = 20_000


def examine(path: Path, known: Iterable[Assignment]) -> Checked:
    """Examine a submission and repair it in memory.

    Parameters
    ----------
    path : Path
        The notebook that is to be handed in.
    known : iterable of Assignment
        The possible assignments. The submission's is recognized by its grade ids, else by its file
        or folder name.
    """
    try:
        return _examine(path, list(known))
    except AccelvizError:  # an assignment cannot be read
        raise
    except Exception as error:  # a damaged file may cause any error
        reason = first_line(error) or type(error).__name__
        text = f"{path.name} cannot be graded: {reason}."
        is_missing = isinstance(error, FileNotFoundError)
        repair = "Give the path of your notebook, or of its folder." if is_missing else _FRESH
        return Checked(path, None, (Problem("unreadable", text, repair),))


def run_visible_tests(checked: Checked) -> Checked:
    """Run an examined submission in the sandbox, with the tests that students see.

    Returns
    -------
    Checked
        The submission with a further problem for each cell that fails.
    """
    blank = any(problem.kind == "blank" and not problem.harmless for problem in checked.problems)
    if checked.notebook is None or checked.assignment is None or blank:
        return checked
    notebook, problems = copy.deepcopy(checked.notebook), list(checked.problems)
    try:
        need("IPython", "lab")
        from accelviz.course.autograde.border import Limits
        from accelviz.course.autograde.sandbox import run

        library = checked.assignment.folder
        tests = "\n".join(cell.source for cell in filter(is_test, checked.assignment.source.cells))
        runs = run(notebook, Limits(), checked.path.parent, library=library, tests=tests)
    except AccelvizError as error:
        problems.append(Problem("test", f"It could not be run: {error}", "", harmless=True))
        runs = []
    released = {cell.source for cell in checked.assignment.released.cells}
    for result in filter(lambda result: result.problem, runs):
        question = f" ({result.question!r})" if result.question else ""
        cell = notebook.cells[result.index]
        if not is_locked(cell) and cell.source in released:
            continue  # blank, or it compares with the library, whose answers are not there
        text = f"Cell {result.index + 1}{question} fails: {result.problem}"
        if not question:
            ending = "That costs nothing, unless an answer needs what this cell defines."
        elif is_locked(cell):
            ending = "A test says so; look at what it tests."
        else:
            is_refused = result.problem.startswith("NotYours")
            ending = "Compare in a cell of your own." if is_refused else "Mend it."
        problems.append(Problem("test", text, ending, harmless=not question))
    return dataclasses.replace(checked, problems=tuple(problems))


def _examine(path: Path, known: list[Assignment]) -> Checked:
    notebook = _read(path)
    assignment = _identify(path, notebook, known)
    if assignment is None:
        names = ", ".join(assignment.name for assignment in known)
        reason = f"by its grade ids or, without them, by its name it is no notebook of {names}"
        text = f"{path.name} cannot be graded: {reason}."
        return Checked(path, None, (Problem("unreadable", text, "Hand in that notebook."),))
    problems: list[Problem] = []
    original, expected = assignment.released, f"{assignment.name}.ipynb"
    if path.name != expected:
        text = f"The file is named {path.name}, and the grader looks for {expected}."
        problems.append(Problem("name", text, f"Rename it to {expected}.", mended=True))
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
        if not is_code and _PICTURE.search(cell.source):
            text = (
                f"Cell {k + 1} shows a picture of a file or of the web, and who grades sees none."
            )
            problems.append(Problem("picture", text, "Paste it into the cell.", harmless=True))
    problems += repair(original.cells, notebook)
    # of a student's metadata no more is needed, and tools obey them: exporters hide what they say
    notebook.metadata = copy.deepcopy(original.metadata)
    for cell in notebook.cells:
        cell.metadata.pop("id", None)
    nbformat.writes(notebook).encode("utf-8")  # raises an error now instead of in grading
    return Checked(path, assignment, tuple(problems), notebook)


def _read(path: Path) -> Any:
    """Read a notebook of format 4, and give ids to its cells."""
    if path.exists() and not path.is_file():  # a pipe would never end
        reason = "it is a folder without a notebook" if path.is_dir() else "it is no file"
        raise FileNotFoundError(reason)
    if (size := path.stat().st_size) > _MAX_BYTES:
        most = f"{_MAX_BYTES / 1e6:g} are read; clear all outputs"
        raise ValueError(f"it has {size / 1e6:,.0f} MB, and at most {most}")
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"it is damaged, or no notebook at all ({error})") from error
    version = content.get("nbformat") if isinstance(content, dict) else None
    if version != 4:
        raise ValueError(f"it has the notebook format {version!r}, and only 4 can be graded")
    cells = content.get("cells")
    if not isinstance(cells, list) or len(cells) > _MAX_CELLS:
        number = f"{len(cells):,}" if isinstance(cells, list) else "no list of"
        raise ValueError(f"it has {number} cells, and at most {_MAX_CELLS} are read")
    content = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}}
    content["cells"] = list(map(_needed, cells))
    if _n_parts(content) > _MAX_PARTS:
        raise ValueError(f"its cells have more than {_MAX_PARTS:,} lines, attachments and metadata")
    notebook = parse_notebook(json.dumps(content))
    nbformat.validate(notebook)
    for cell in notebook.cells:  # halves of characters; line ends of Windows and of old Macs
        source = cell.source.encode("utf-8", "replace").decode("utf-8")
        cell.source = source.replace("\r\n", "\n").replace("\r", "\n")
    return notebook


def _n_parts(value: Any) -> int:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_n_parts, items))


def _needed(cell: Any) -> Any:
    """Return the parts of a cell that grading needs; it makes outputs of its own."""
    if not isinstance(cell, dict):
        return cell
    is_code, metadata = cell.get("cell_type") == "code", cell.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    names = {"cell_type", "id", "source", *([] if is_code else ["attachments"])}
    needed: dict[str, Any] = {"outputs": [], "execution_count": None} if is_code else {}
    needed |= {name: cell[name] for name in sorted(names & cell.keys())}
    keys = metadata.keys() & _METADATA
    return needed | {"metadata": {key: metadata[key] for key in sorted(keys)}}


def _identify(path: Path, notebook: Any, known: list[Assignment]) -> Assignment | None:
    """Return the assignment by most common grade ids, or without any by the name."""
    ids = {question_of(cell) for cell in notebook.cells} - {""}

    def likeness(assignment: Assignment) -> int:
        is_named = path.stem.lower().startswith(assignment.name.lower())
        is_in_folder = path.parent.name == assignment.name
        return len(ids & {*assignment.questions}) if ids else is_named or is_in_folder

    likely = max(known, key=likeness, default=None)
    return likely if likely is not None and likeness(likely) else None
