"""Compares a submission's cells with its assignment's, names each difference and puts it right."""

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
    details,
    is_graded,
    is_locked,
    is_solution,
    is_test,
    question_of,
)
from accelviz.course.autograde.common import clean
from accelviz.course.autograde.matching import match

_MAGIC_LINE = re.compile(r"^([ \t]*)(?:[%!?].*|\??[\w.%]+\?{1,2}[ \t]*)$", re.M)
_MAGIC_VALUE = re.compile(r"^([\w, \t]+=[ \t]*)[%!].*$", re.M)
#: What a student without the repaired copy can do when metadata is gone.
_USE_COPY = (
    "Use the repaired copy, or copy your answers, cell by cell, into a fresh copy of the "
    "assignment."
)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a submission."""

    #: `unreadable`, `unknown`, `name`, `format`, `kernel`, `duplicate`, `metadata`, `missing`,
    #: `changed`, `order`, `size`, `syntax`, `blank`, `place` or `test`.
    kind: str
    #: What was found, in one or two sentences, and what the student does about it.
    text: str
    repair: str
    #: The repaired copy is free of it.
    mended: bool = False
    #: It costs no points.
    harmless: bool = False

    def __post_init__(self) -> None:
        """Let nothing that a submission wrote into it reach a terminal as it is."""
        for name in ("text", "repair"):
            object.__setattr__(self, name, clean(getattr(self, name)))

    def __str__(self) -> str:
        return f"{self.text} {self.repair}".strip()


@dataclass(frozen=True)
class Checked:
    """A submission, examined."""

    path: Path
    #: What it answers, as far as it could be told.
    assignment: Assignment | None
    problems: tuple[Problem, ...]
    #: The repaired notebook; None if there is no grading it.
    notebook: Any = None

    @property
    def fine(self) -> bool:
        """Whether nothing of what was found costs points."""
        return all(problem.harmless for problem in self.problems)


def repair(original: list[Any], notebook: Any) -> list[Problem]:
    """Compare a submission with its assignment, cell by cell, and put its cells right.

    Parameters
    ----------
    original : list of cells
        The assignment as it was released.
    notebook : NotebookNode
        The submission, which is changed.
    """
    repairing = _Repair(original, notebook.cells)
    for step in ("copies", "strangers", "metadata", "changed", "order", "answers", "missing"):
        getattr(repairing, step)()
    notebook.cells = repairing.cells_left()
    taken: set[str] = set()
    for cell in notebook.cells:  # one that was put back may have brought an id that is taken
        if cell.get("id") in (None, *taken):
            cell["id"] = nbformat.v4.new_raw_cell().id
        taken.add(cell["id"])
    return repairing.problems


class _Repair:
    """A submission's cells (k) beside those of its assignment (i), and what is wrong with them."""

    def __init__(self, original: list[Any], cells: list[Any]) -> None:
        self.original, self.cells = original, cells
        self.match = match(original, cells)
        self.pairs = sorted(self.match.indices.items())
        self.problems: list[Problem] = []
        self.useless: set[int] = set()
        self.added: dict[int, list[Any]] = {}

    def cells_left(self) -> list[Any]:
        """Return the cells without useless copies, and with those that are put back."""
        cells = list(self.added.get(-1, []))
        for k, cell in enumerate(self.cells):
            cells += [] if k in self.useless else [cell]
            cells += self.added.get(k, [])
        return cells

    def tell(self, kind: str, text: str, repair: str, **marks: bool) -> None:
        """Note a problem."""
        self.problems.append(Problem(kind, text, repair, **marks))

    def at(self, k: int) -> str:
        """Say which cell, so that a student finds it."""
        line = next(filter(None, map(str.strip, self.cells[k].source.split("\n"))), "")
        if not line:
            return f"cell {k + 1}"
        return f"cell {k + 1} ({line[:40]}{'...' if len(line) > 40 else ''})"

    def copies(self) -> None:
        """Name cells that were copied, take the copies' ids, and drop copies that add nothing."""
        for i, several in sorted(self.match.copies.items()):
            first, question = self.match.indices[i], question_of(self.original[i])
            known = {self.original[i].source.strip(), self.cells[first].source.strip()}
            endings = []
            for k in several:
                # a copy that says something of its own stays, as a cell that nbgrader does not see
                self.cells[k].metadata.pop("nbgrader", None)
                ending = "copy what you need of it elsewhere, then delete"
                if self.cells[k].source.strip() in known:
                    self.useless.add(k)
                    ending = "delete"
                endings.append(f"{ending} cell {k + 1}")
            listed = " and ".join(map(self.at, sorted([first, *several])))
            text = f"The grade id {question!r} is there {len(several) + 1} times: {listed}. "
            text += "A cell was copied together with its id."
            ending = f"Keep cell {first + 1}; {'; '.join(endings)}."
            self.tell("duplicate", text, ending, mended=True)

    def strangers(self) -> None:
        """Name nbgrader metadata that the assignment does not have, and take them off."""
        known = {k for i, k in self.pairs if question_of(self.original[i])}
        for k, cell in enumerate(self.cells):
            # nbgrader's own toolbar leaves empty metadata behind
            if k not in known and cell.metadata.pop("nbgrader", None):
                text = f"{self.at(k).capitalize()} has nbgrader metadata, and no such cell is in "
                text += "this assignment."
                ending = "Delete the cell, or make a new one with its text."
                self.tell("metadata", text, ending, mended=True)

    def metadata(self) -> None:
        """Name lost and changed nbgrader metadata, and restore it."""
        lost, changed = [], []
        for i, k in self.pairs:
            original, cell = self.original[i], self.cells[k]
            expected, actual, question = details(original), details(cell), question_of(original)
            if not expected:
                continue
            # tools that know nbgrader may leave out the first two, and the text is compared itself
            compared = [key for key in expected if key not in ("checksum", "cell_type")]
            differing = [key for key in compared if (actual.get(key) or 0) != (expected[key] or 0)]
            if cell.cell_type != original.cell_type:
                differing.append(f"a {cell.cell_type} cell that was a {original.cell_type} cell")
                self.cells[k] = copy.deepcopy(original)
                self.cells[k].update(source=cell.source, id=cell.get("id", original.get("id")))
            if i in self.match.restored:
                lost.append(f"{self.at(k)} was {question!r}")
            elif differing:
                changed.append(f"{self.at(k)}, {question!r}: {', '.join(differing)}")
            self.cells[k].metadata["nbgrader"] = copy.deepcopy(expected)
        if changed:
            text = f"The nbgrader metadata were changed: {'; '.join(changed)}."
            self.tell("metadata", text, _USE_COPY, mended=True)
        if lost:
            text = f"{len(lost)} {'cells have' if len(lost) > 1 else 'cell has'} lost the nbgrader "
            text += f"metadata, without which no points are given: {'; '.join(lost)}."
            self.tell("metadata", text, _USE_COPY, mended=True)

    def changed(self) -> None:
        """Name locked cells whose text is another, and restore it."""
        changed = []
        for i, k in self.pairs:
            source = self.original[i].source
            if is_locked(self.original[i]) and self.cells[k].source != source:
                changed.append(f"{question_of(self.original[i])!r} (cell {k + 1})")
                self.cells[k].source = source
        if changed:
            text = f"Locked cells were changed (the checksum differs): {', '.join(changed)}. "
            text += "Grading puts the original back."
            ending = "If part of your answer is in it, move that into a solution cell."
            self.tell("changed", text, ending, mended=True)

    def order(self) -> None:
        """Name the first cell that stands before one that it should follow."""
        graded = [(question_of(self.original[i]), k) for i, k in self.pairs]
        for (first, k), (second, later) in itertools.pairwise(pair for pair in graded if pair[0]):
            if later < k:
                text = f"Cell {later + 1} ({second!r}) stands before cell {k + 1} ({first!r}), and "
                text += "the notebook is run from top to bottom."
                self.tell("order", text, f"Move cell {later + 1} below cell {k + 1}.")
                return

    def answers(self) -> None:
        """Name answers that are no Python, and those that are not there."""
        blank = []
        answers = [(i, k) for i, k in self.pairs if is_solution(self.original[i])]
        for i, k in answers:
            cell, where = self.cells[k], f"{k + 1} ({question_of(self.original[i])!r})"
            if cell.source.strip() == self.original[i].source.strip():
                blank.append(f"cell {where}")
            elif cell.cell_type == "code" and (error := _syntax_error(cell.source)):
                text = f"Cell {where} is not Python, line {error.lineno}: {error.msg}: "
                text += (error.text or "").strip()[:60]
                self.tell("syntax", text, "Run the cell and mend it.")
        if blank and len(blank) == len(answers):
            self.tell("blank", "There is no answer in it.", "Fill it in.")
        elif blank:
            text = f"No answer yet in {', '.join(blank)}."
            self.tell("blank", text, "Nothing to do, if you meant it.", harmless=True)

    def missing(self) -> None:
        """Name cells that are gone, and put back those that may be."""
        before = -1
        for i, cell in enumerate(self.original):
            question = question_of(cell)
            if i in self.match.indices:
                before = self.match.indices[i]
            elif question:
                # a stub put back could undo an answer that is elsewhere
                back = is_locked(cell) or is_graded(cell)
                if back:
                    self.added.setdefault(before, []).append(copy.deepcopy(cell))
                kind = "test" if is_test(cell) else "answer" if is_solution(cell) else "cell"
                after = f"after cell {before + 1}" if before >= 0 else "at the top"
                self.tell(
                    "missing",
                    f"The {kind} {question!r} is missing; it should stand {after}.",
                    _USE_COPY if back else "Nothing to do, if your answer is in another cell.",
                    mended=back,
                )


def _syntax_error(source: str) -> SyntaxError | None:
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
