"""Compares a submission's cells with its assignment's, names each difference and puts it right."""

from __future__ import annotations

import ast
import copy
import itertools
import re
import warnings
from typing import Any

import nbformat

from accelviz.course.autograde.cells import (
    details,
    is_graded,
    is_locked,
    is_solution,
    is_test,
    question_of,
)
from accelviz.course.autograde.matching import Match, match
from accelviz.course.autograde.problems import Problem

#: What a student without the repaired copy can do when metadata is gone.
_MAGIC_LINE = re.compile(r"^([ \t]*)(?:[%!?].*|\??[\w.%]+\?{1,2}[ \t]*)$", re.M)
_MAGIC_VALUE = re.compile(r"^([\w, \t]+=[ \t]*)[%!].*$", re.M)
_AFRESH = "or copy your answers, cell by cell, into a fresh copy of the assignment"


def repair(original: list[Any], notebook: Any) -> list[Problem]:
    """Compare a submission with its assignment, cell by cell, and put its cells right.

    Parameters
    ----------
    original : list of cells
        The assignment as it was released.
    notebook : NotebookNode
        The submission, which is changed.

    Returns
    -------
    list of Problem
    """
    cells = notebook.cells
    matched = match(original, cells)
    problems, useless = _copies(original, cells, matched)
    problems += _strangers(original, cells, matched) + _metadata(original, cells, matched)
    problems += _changed(original, cells, matched) + _order(original, matched)
    problems += _answers(original, cells, matched)
    missing, added = _missing(original, matched)
    notebook.cells = added.get(-1, [])
    for k, cell in enumerate(cells):
        notebook.cells += [] if k in useless else [cell]
        notebook.cells += added.get(k, [])
    _give_ids(notebook.cells)
    return problems + missing


def _give_ids(cells: list[Any]) -> None:
    """Give each cell an id of its own, where one that was put back brought one that is taken."""
    taken: set[str] = set()
    for cell in cells:
        if cell.get("id") in (None, *taken):
            cell["id"] = nbformat.v4.new_raw_cell().id
        taken.add(cell["id"])


def _at(k: int, cell: Any) -> str:
    """Say which cell, so that a student finds it."""
    line = next((line.strip() for line in cell.source.split("\n") if line.strip()), "")
    return (
        f"cell {k + 1} ({line[:40]}{'...' if len(line) > 40 else ''})" if line else f"cell {k + 1}"
    )


def _copies(
    original: list[Any], cells: list[Any], matched: Match
) -> tuple[list[Problem], set[int]]:
    """Name cells that were copied, take the copies' ids, and say which copies say nothing new."""
    problems, dropped = [], set()
    for i, several in sorted(matched.copies.items()):
        original_index, question = matched.indices[i], question_of(original[i])
        useless = {original[i].source.strip(), cells[original_index].source.strip()}
        ends = []
        for k in several:
            same = cells[k].source.strip() in useless
            # a copy that says something of its own stays, as a cell that nbgrader does not see
            cells[k].metadata.pop("nbgrader", None)
            dropped |= {k} if same else set()
            ends.append("delete" if same else "copy what you need of it elsewhere, then delete")
        listed = " and ".join(_at(k, cells[k]) for k in sorted([original_index, *several]))
        told = "; ".join(f"{end} cell {k + 1}" for k, end in zip(several, ends, strict=True))
        problems.append(
            Problem(
                "duplicate",
                f"The grade id {question!r} is there {len(several) + 1} times: {listed}. "
                "A cell was copied together with its id.",
                f"Keep cell {original_index + 1}; {told}.",
                mended=True,
            )
        )
    return problems, dropped


def _strangers(original: list[Any], cells: list[Any], matched: Match) -> list[Problem]:
    """Name nbgrader metadata that the assignment does not have, and take them off."""
    problems = []
    mine = {k for i, k in matched.indices.items() if question_of(original[i])}
    for k, cell in enumerate(cells):
        if k in mine or "nbgrader" not in cell.metadata:
            continue
        if cell.metadata.pop("nbgrader"):  # nbgrader's own toolbar leaves empty ones behind
            problems.append(
                Problem(
                    "metadata",
                    f"{_at(k, cell).capitalize()} has nbgrader metadata, and no such cell is in "
                    "this assignment.",
                    "Delete the cell, or make a new one with its text.",
                    mended=True,
                )
            )
    return problems


def _metadata(original: list[Any], cells: list[Any], matched: Match) -> list[Problem]:
    """Name lost and changed nbgrader metadata, and restore it."""
    lost, problems = [], []
    for i, k in sorted(matched.indices.items()):
        expected, actual = details(original[i]), details(cells[k])
        if not expected:
            continue
        differing = [key for key in expected if _differs(key, actual.get(key), expected[key])]
        if i in matched.restored:
            lost.append(f"{_at(k, cells[k])} was {question_of(original[i])!r}")
        elif differing:
            problems.append(
                Problem(
                    "metadata",
                    f"The nbgrader metadata of {_at(k, cells[k])}, {question_of(original[i])!r}, "
                    f"was changed: {', '.join(differing)}.",
                    f"Use the repaired copy, {_AFRESH}.",
                    mended=True,
                )
            )
        elif cells[k].cell_type != original[i].cell_type:
            problems.append(
                Problem(
                    "metadata",
                    f"{_at(k, cells[k]).capitalize()} is a {cells[k].cell_type} cell and was a "
                    f"{original[i].cell_type} cell.",
                    f"Choose {original[i].cell_type.capitalize()} for it in the toolbar.",
                    mended=True,
                )
            )
        _retype(cells, k, original[i])
        cells[k].metadata["nbgrader"] = copy.deepcopy(expected)
    if lost:
        problems.append(
            Problem(
                "metadata",
                f"{len(lost)} {'cells have' if len(lost) > 1 else 'cell has'} lost the nbgrader "
                f"metadata, without which no points are given: {'; '.join(lost)}.",
                f"Use the repaired copy, {_AFRESH}.",
                mended=True,
            )
        )
    return problems


def _differs(key: str, actual: Any, expected: Any) -> bool:
    if key in ("checksum", "cell_type"):
        return False  # tools that know nbgrader may leave them out, and the text is compared itself
    return (actual or 0) != (expected or 0)


def _retype(cells: list[Any], k: int, original: Any) -> None:
    if cells[k].cell_type == original.cell_type:
        return
    fresh = copy.deepcopy(original)
    fresh.source, fresh.id = cells[k].source, cells[k].get("id", fresh.get("id"))
    cells[k] = fresh


def _changed(original: list[Any], cells: list[Any], matched: Match) -> list[Problem]:
    """Name locked cells whose text is another, and restore it."""
    changed = []
    for i, k in sorted(matched.indices.items()):
        if is_locked(original[i]) and cells[k].source != original[i].source:
            changed.append(f"{question_of(original[i])!r} (cell {k + 1})")
            cells[k].source = original[i].source
    if not changed:
        return []
    count = "A locked cell was" if len(changed) == 1 else f"{len(changed)} locked cells were"
    return [
        Problem(
            "changed",
            f"{count} changed (the checksum differs): {', '.join(changed)}. Grading puts the "
            "original back.",
            "If part of your answer is in it, move that into a solution cell.",
            mended=True,
        )
    ]


def _order(original: list[Any], matched: Match) -> list[Problem]:
    graded = [(i, k) for i, k in sorted(matched.indices.items()) if question_of(original[i])]
    for (i, k), (j, later) in itertools.pairwise(graded):
        if later < k:
            first, second = question_of(original[i]), question_of(original[j])
            return [
                Problem(
                    "order",
                    f"Cell {later + 1} ({second!r}) stands before cell {k + 1} ({first!r}), and "
                    "the notebook is run from top to bottom.",
                    f"Move cell {later + 1} below cell {k + 1}.",
                )
            ]
    return []


def _answers(original: list[Any], cells: list[Any], matched: Match) -> list[Problem]:
    problems, blank = [], []
    for i, k in sorted(matched.indices.items()):
        cell, question = cells[k], question_of(original[i])
        if not is_solution(original[i]):
            continue
        if cell.source.strip() == original[i].source.strip():
            blank.append(f"cell {k + 1} ({question!r})")
        elif cell.cell_type == "code" and (error := _syntax_error(cell.source)):
            problems.append(
                Problem(
                    "syntax",
                    f"Cell {k + 1} ({question!r}) is not Python, line {error.lineno}: {error.msg}: "
                    f"{(error.text or '').strip()[:60]}",
                    "Run the cell and mend it.",
                )
            )
    answers = sum(is_solution(original[i]) for i in matched.indices)
    if blank:
        text = f"No answer yet in {', '.join(blank)}."
        ending = "Nothing to do, if you meant it."
        nothing = len(blank) == answers
        text, ending = ("There is no answer in it.", "Fill it in.") if nothing else (text, ending)
        problems.append(Problem("blank", text, ending, harmless=not nothing))
    return problems


def _syntax_error(source: str) -> SyntaxError | None:
    if source.lstrip().startswith("%%"):
        return None  # another language, or Python that a magic runs
    try:
        return _python_error(source)
    except (RecursionError, MemoryError):
        return SyntaxError("an expression is nested too deeply", ("", 1, 1, ""))


def _python_error(source: str) -> SyntaxError | None:
    # magics and ! lines are no errors
    plain = _MAGIC_VALUE.sub(r"\1None", source)
    plain = _MAGIC_LINE.sub(r"\1pass", plain)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as of "\d"
            ast.parse(source if _is_python(source) else plain)
    except SyntaxError as error:
        return error
    except ValueError as error:  # null bytes
        return SyntaxError(str(error), ("", 1, 1, ""))
    return None


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


def _missing(original: list[Any], matched: Match) -> tuple[list[Problem], dict[int, list[Any]]]:
    """Name cells that are gone, and say after which cell to put back those that may be."""
    problems: list[Problem] = []
    added: dict[int, list[Any]] = {}
    before = -1
    for i, cell in enumerate(original):
        if i in matched.indices:
            before = matched.indices[i]
            continue
        if not (question := question_of(cell)):
            continue
        # a stub put back could undo an answer that is elsewhere
        back = is_locked(cell) or is_graded(cell)
        if back:
            added.setdefault(before, []).append(copy.deepcopy(cell))
        kind = "test" if is_test(cell) else "answer" if is_solution(cell) else "cell"
        after = f"after cell {before + 1}" if before >= 0 else "at the top"
        problems.append(
            Problem(
                "missing",
                f"The {kind} {question!r} is missing; it should stand {after}.",
                f"Use the repaired copy, {_AFRESH}."
                if back
                else "Nothing to do, if your answer is in another cell.",
                mended=back,
            )
        )
    return problems, added
