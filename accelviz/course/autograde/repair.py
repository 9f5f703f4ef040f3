"""Compares a submission's cells with the assignment's, reports differences and repairs them.

Cells of the assignment are matched with cells of the submission (`matching.match`). nbgrader finds
cells by their metadata, so `repair` restores lost and changed metadata, removes duplicates and
restores locked cells. Each difference becomes a `Problem` with a hint for the student.
"""

from __future__ import annotations

import ast
import copy
import itertools
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from accelviz.course.autograde.assignments import Assignment
from accelviz.course.autograde.cells import (
    checksum,
    details,
    is_graded,
    is_locked,
    is_solution,
    is_test,
    question_of,
)
from accelviz.course.autograde.common import clean
from accelviz.course.autograde.matching import match

#: Lines of IPython that are not Python: `%timeit x`, `!ls`, `x?`; and `y = %timeit x`, `y = !ls`.
_MAGIC_LINE = re.compile(r"^([ \t]*)(?:[%!?].*|\??[\w.%]+\?{1,2}[ \t]*)$", re.M)
_MAGIC_VALUE = re.compile(r"^([\w, \t]+=[ \t]*)[%!].*$", re.M)
#: Advice to a student whose notebook has lost metadata.
_USE_COPY = (
    "Use the repaired copy, or copy your answers, cell by cell, into a fresh copy of the "
    "assignment."
)


@dataclass(frozen=True)
class Problem:
    """A fault of a submission."""

    #: `unreadable`, `unknown`, `name`, `format`, `kernel`, `duplicate`, `metadata`, `missing`,
    #: `changed`, `renewed`, `order`, `size`, `syntax`, `blank` or `test`.
    kind: str
    #: Description in one or two sentences, and advice to the student.
    text: str
    repair: str
    #: Whether the repaired copy is free of it.
    mended: bool = False
    #: Whether it costs no points.
    harmless: bool = False

    def __post_init__(self) -> None:
        """Remove control characters, which a submission may have put into the texts."""
        for name in ("text", "repair"):
            object.__setattr__(self, name, clean(getattr(self, name)))

    def __str__(self) -> str:
        return f"{self.text} {self.repair}".strip()


@dataclass(frozen=True)
class Checked:
    """An examined submission."""

    path: Path
    #: The assignment that it answers; None if it was not recognized.
    assignment: Assignment | None
    problems: tuple[Problem, ...]
    #: The repaired notebook; None if it cannot be graded.
    notebook: Any = None

    @property
    def fine(self) -> bool:
        """Whether no problem costs points."""
        return all(problem.harmless for problem in self.problems)


def repair(original: list[Any], notebook: Any) -> list[Problem]:
    """Compare a submission's cells with its assignment's, repair them, and return the problems.

    Parameters
    ----------
    original : list of cells
        The assignment as it was released.
    notebook : NotebookNode
        The submission, which is changed.
    """
    repairing = _Repair(original, notebook.cells)
    repairing.remove_copies()
    repairing.remove_unknown_metadata()
    repairing.restore_metadata()
    repairing.restore_locked_cells()
    repairing.check_order()
    repairing.check_answers()
    repairing.restore_missing_cells()
    notebook.cells = repairing.repaired_cells()
    used_ids: set[str] = set()
    for cell in notebook.cells:  # a restored cell may have the id of another cell
        if cell.get("id") in (None, *used_ids):
            cell["id"] = nbformat.v4.new_raw_cell().id
        used_ids.add(cell["id"])
    return repairing.problems


class _Repair:
    """Cells of a submission (index k), matched with cells of the assignment (index i)."""

    def __init__(self, original: list[Any], cells: list[Any]) -> None:
        self.original, self.cells = original, cells
        self.match = match(original, cells)
        self.pairs = sorted(self.match.indices.items())
        self.problems: list[Problem] = []
        #: Indices k of cells whose text is the one that was released with their metadata.
        self.as_released = {k for k, cell in enumerate(cells) if _is_as_released(cell)}
        #: Indices k of cells to remove; copies of missing cells i.
        self.removed: set[int] = set()
        self.inserted: dict[int, Any] = {}

    def repaired_cells(self) -> list[Any]:
        """Return the cells in the assignment's order; others stay behind the one that they follow.

        In another order a test would take from the submission what a locked cell behind it defines.
        """
        index, groups = -1, {i: [cell] for i, cell in self.inserted.items()}
        indices = {k: i for i, k in self.pairs}
        for k, cell in enumerate(self.cells):
            index = indices.get(k, index)
            groups.setdefault(index, []).extend([] if k in self.removed else [cell])
        return [cell for i in sorted(groups) for cell in groups[i]]

    def report(self, kind: str, text: str, repair: str, **flags: bool) -> None:
        self.problems.append(Problem(kind, text, repair, **flags))

    def describe(self, k: int) -> str:
        """Return the number and the first line of a cell."""
        line = next(filter(None, map(str.strip, self.cells[k].source.split("\n"))), "")
        if not line:
            return f"cell {k + 1}"
        return f"cell {k + 1} ({line[:40]}{'...' if len(line) > 40 else ''})"

    def remove_copies(self) -> None:
        """Remove further cells with the same grade id.

        A copy with a text of its own is kept, without its nbgrader metadata.
        """
        for i, copies in sorted(self.match.copies.items()):
            matched, question = self.match.indices[i], question_of(self.original[i])
            known = {self.original[i].source.strip(), self.cells[matched].source.strip()}
            advice = []
            for k in copies:
                self.cells[k].metadata.pop("nbgrader", None)
                action = "copy what you need of it elsewhere, then delete"
                if self.cells[k].source.strip() in known:
                    self.removed.add(k)
                    action = "delete"
                advice.append(f"{action} cell {k + 1}")
            cells = " and ".join(map(self.describe, sorted([matched, *copies])))
            text = f"The grade id {question!r} is there {len(copies) + 1} times: {cells}. "
            text += "A cell was copied together with its id."
            ending = f"Keep cell {matched + 1}; {'; '.join(advice)}."
            self.report("duplicate", text, ending, mended=True)

    def remove_unknown_metadata(self) -> None:
        """Remove nbgrader metadata of cells that the assignment does not have."""
        known = {k for i, k in self.pairs if question_of(self.original[i])}
        for k, cell in enumerate(self.cells):
            # nbgrader's own toolbar leaves empty metadata behind
            if k not in known and cell.metadata.pop("nbgrader", None):
                text = f"{self.describe(k).capitalize()} has nbgrader metadata, and no such cell "
                text += "is in this assignment."
                ending = "Delete the cell, or make a new one with its text."
                self.report("metadata", text, ending, mended=True)

    def restore_metadata(self) -> None:
        """Restore nbgrader metadata and cell types that were lost or changed."""
        lost, changed = [], []
        for i, k in self.pairs:
            original, cell = self.original[i], self.cells[k]
            expected, actual, question = details(original), details(cell), question_of(original)
            if not expected:
                continue
            # some tools leave out these two, and `restore_locked_cells` compares the text itself
            compared = [key for key in expected if key not in ("checksum", "cell_type")]
            differing = [key for key in compared if (actual.get(key) or 0) != (expected[key] or 0)]
            if cell.cell_type != original.cell_type:
                differing.append(f"a {cell.cell_type} cell that was a {original.cell_type} cell")
                self.cells[k] = copy.deepcopy(original)
                self.cells[k].update(source=cell.source, id=cell.get("id", original.get("id")))
            if i in self.match.restored:
                lost.append(f"{self.describe(k)} was {question!r}")
            elif differing:
                changed.append(f"{self.describe(k)}, {question!r}: {', '.join(differing)}")
            self.cells[k].metadata["nbgrader"] = copy.deepcopy(expected)
        if changed:
            text = f"The nbgrader metadata were changed: {'; '.join(changed)}."
            self.report("metadata", text, _USE_COPY, mended=True)
        if lost:
            text = f"{len(lost)} {'cells have' if len(lost) > 1 else 'cell has'} lost the nbgrader "
            text += f"metadata, without which no points are given: {'; '.join(lost)}."
            self.report("metadata", text, _USE_COPY, mended=True)

    def restore_locked_cells(self) -> None:
        changed, renewed = list[str](), list[str]()
        for i, k in self.pairs:
            source = self.original[i].source
            if is_locked(self.original[i]) and self.cells[k].source != source:
                name = f"{question_of(self.original[i])!r} (cell {k + 1})"
                (renewed if k in self.as_released else changed).append(name)
                self.cells[k].source = source
        if renewed:
            text = (
                f"Locked cells were renewed since this copy was handed out: {', '.join(renewed)}."
            )
            self.report("renewed", text, "Grading uses the new ones.", mended=True, harmless=True)
        if changed:
            text = f"Locked cells were changed (the checksum differs): {', '.join(changed)}. "
            text += "Grading puts the original back."
            ending = "If part of your answer is in it, move that into a solution cell."
            self.report("changed", text, ending, mended=True)

    def check_order(self) -> None:
        """Report the first cell that precedes the cell that it should follow."""
        questions = [(question_of(self.original[i]), k) for i, k in self.pairs]
        graded = [(question, k) for question, k in questions if question]
        for (first, k), (second, later) in itertools.pairwise(graded):
            if later < k:
                text = f"Cell {later + 1} ({second!r}) stands before cell {k + 1} ({first!r}), and "
                text += "the notebook is run from top to bottom."
                self.report(
                    "order", text, f"Move cell {later + 1} below cell {k + 1}.", mended=True
                )
                return

    def check_answers(self) -> None:
        """Report answers that are not Python, and questions without an answer."""
        blank = []
        answers = [(i, k) for i, k in self.pairs if is_solution(self.original[i])]
        for i, k in answers:
            cell, where = self.cells[k], f"{k + 1} ({question_of(self.original[i])!r})"
            if cell.source.strip() == self.original[i].source.strip():
                blank.append(f"cell {where}")
            elif cell.cell_type == "code" and (error := _syntax_error(cell.source)):
                text = f"Cell {where} is not Python, line {error.lineno or 1}: {error.msg}: "
                text += (error.text or "").strip()[:60]
                self.report("syntax", text, "Run the cell and mend it.")
        if blank and len(blank) == len(answers):
            self.report("blank", "There is no answer in it.", "Fill it in.")
        elif blank:
            text = f"No answer yet in {', '.join(blank)}."
            self.report("blank", text, "Nothing to do, if you meant it.", harmless=True)

    def restore_missing_cells(self) -> None:
        """Report missing cells, and restore them unless they are stubs of an answer.

        A restored stub could redefine a function that the student defines in another cell.
        """
        previous = -1
        for i, cell in enumerate(self.original):
            question = question_of(cell)
            if i in self.match.indices:
                previous = self.match.indices[i]
            elif question:
                is_restored = is_locked(cell) or is_graded(cell)
                if is_restored:
                    self.inserted[i] = copy.deepcopy(cell)
                kind = "test" if is_test(cell) else "answer" if is_solution(cell) else "cell"
                position = f"after cell {previous + 1}" if previous >= 0 else "at the top"
                text = f"The {kind} {question!r} is missing; it should stand {position}."
                advice = "Nothing to do, if your answer is in another cell."
                advice = _USE_COPY if is_restored else advice
                self.report("missing", text, advice, mended=is_restored)


def _is_as_released(cell: Any) -> bool:
    try:
        return bool(details(cell).get("checksum") == checksum(cell))
    except (KeyError, TypeError, ValueError):  # other metadata than nbgrader's
        return False


def _syntax_error(source: str) -> SyntaxError | None:
    """Return the syntax error of a cell of Python and IPython magics, None if there is none."""
    if source.lstrip().startswith("%%"):
        return None  # another language, or Python that a magic runs
    without_magics = _MAGIC_LINE.sub(r"\1pass", _MAGIC_VALUE.sub(r"\1None", source))
    error = None
    for text in (source, without_magics):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # such as of "\d"
                ast.parse(text)
            return None
        except SyntaxError as problem:
            error = problem
        except ValueError as problem:  # null bytes
            error = SyntaxError(str(problem), ("", 1, 1, ""))
        except (RecursionError, MemoryError):
            return SyntaxError("an expression is nested too deeply", ("", 1, 1, ""))
    return error
