"""Compares a submission's cells with the assignment's, reports differences and repairs them.

nbgrader finds cells by their metadata, so `repair` restores metadata and locked cells and removes
duplicates. Each difference becomes a `Problem` with a hint for the student.
"""

from __future__ import annotations

import ast
import collections
import copy
import functools
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from accelviz.course.autograde.assignments import Assignment
from accelviz.course.autograde.cells import (
    STUB,
    checksum,
    details,
    is_graded,
    is_locked,
    is_solution,
    question_of,
)
from accelviz.course.autograde.common import clean

#: Advice to a student whose notebook has lost cells or metadata.
_RESTORED = "Grading restores it; a fresh copy of the assignment has it too."


@dataclass(frozen=True)
class Problem:
    """A fault of a submission."""

    #: `unreadable`, `name`, `duplicate`, `metadata`, `missing`, `changed`, `renewed`,
    #: `order`, `size`, `picture`, `blank` or `test`.
    kind: str
    #: Description in one or two sentences, and advice to the student.
    text: str
    repair: str
    #: Whether grading repairs it.
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
    repairing.match_by_grade_id()
    repairing.match_by_text()
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
        self.questions = {question_of(cell): i for i, cell in enumerate(original)}
        self.questions.pop("", None)
        #: Maps i to k; a missing cell is not in it.
        self.indices: dict[int, int] = {}
        #: Maps k of further cells with the same grade id to i.
        self.copies: dict[int, int] = {}
        #: Missing cells that are inserted, by i.
        self.inserted: dict[int, Any] = {}
        self.problems: list[Problem] = []

    def report(self, kind: str, text: str, repair: str, **flags: bool) -> None:
        self.problems.append(Problem(kind, text, repair, **flags))

    def describe(self, k: int) -> str:
        """Return the number and the first line of a cell."""
        line = next(filter(None, map(str.strip, self.cells[k].source.split("\n"))), "")
        if not line:
            return f"cell {k + 1}"
        return f"cell {k + 1} ({line[:40]}{'...' if len(line) > 40 else ''})"

    def match_by_grade_id(self) -> None:
        """Match cells by grade id; of several, the last answer or the first intact other cell."""
        with_grade_id = collections.defaultdict[int, list[int]](list)
        for k, cell in enumerate(self.cells):
            if (i := self.questions.get(str(details(cell).get("grade_id")))) is not None:
                with_grade_id[i].append(k)
        for i, same in sorted(with_grade_id.items()):
            changed = [k for k in same if not _same_text(self.original[i], self.cells[k])]
            if is_solution(self.original[i]):  # the last counts when the notebook runs
                chosen = (changed or same)[-1]
            else:
                chosen = next((k for k in same if k not in changed), same[0])
            self.indices[i] = chosen
            if copies := [k for k in same if k != chosen]:
                self.copies |= dict.fromkeys(copies, i)
                cells = " and ".join(map(self.describe, same))
                question = question_of(self.original[i])
                text = f"The grade id {question!r} is there {len(same)} times: {cells}. "
                text += "A cell was copied together with its id."
                others = ", ".join(str(k + 1) for k in copies)
                ending = f"Keep cell {chosen + 1}; delete cell {others}."
                self.report("duplicate", text, ending, mended=True)

    def match_by_text(self) -> None:
        """Match cells that lost their grade id by their own ids, by equal text, or as answers."""
        for is_same in (_same_id, _same_given, self.may_answer):
            for i, original in enumerate(self.original):
                if i not in self.indices:
                    free = self.free_cells()
                    same = [k for k in free if is_same(original, self.cells[k])]
                    if is_same == self.may_answer and not _defined(original.source):
                        same = self.between_neighbors(i, same)
                    self.indices |= {i: same[0]} if same else {}

    def free_cells(self) -> list[int]:
        matched = {*self.indices.values(), *self.copies}
        return [k for k in range(len(self.cells)) if k not in matched]

    def may_answer(self, original: Any, cell: Any) -> bool:
        """Whether a cell may be an edited version of an answer: it defines the same names."""
        if not is_solution(original) or cell.cell_type != original.cell_type:
            return False
        is_given = any(_same_given(other, cell) for other in self.original)
        if is_given or not cell.source.strip():
            return False
        return _defined(original.source) <= _defined(cell.source)

    def between_neighbors(self, i: int, same: list[int]) -> list[int]:
        """Return the single one of these cells between the matched neighbors of a cell."""
        begin = self.indices.get(max((j for j in self.indices if j < i), default=-1), -1)
        # k > begin: an earlier cell that was moved to the end does not make the range empty
        later = (k for j, k in self.indices.items() if j > i and k > begin)
        end = min(later, default=len(self.cells))
        inside = [k for k in same if begin < k < end]
        return inside if len(inside) == 1 else []

    def restore_metadata(self) -> None:
        """Restore nbgrader metadata and cell types; remove those that are not the assignment's."""
        changed = []
        for i, k in sorted(self.indices.items()):
            original, cell = self.original[i], self.cells[k]
            expected, actual = details(original), details(cell)
            if not expected:
                continue
            # some tools leave out the first two, and an instructor may change the points
            compared = expected.keys() - {"checksum", "cell_type", "points"}
            is_changed = any((actual.get(key) or 0) != (expected[key] or 0) for key in compared)
            if is_changed or cell.cell_type != original.cell_type:
                changed.append(f"{self.describe(k)} is {question_of(original)!r}")
            if cell.cell_type != original.cell_type:
                restored = copy.deepcopy(original)
                restored.update(source=cell.source, id=cell.get("id", original.get("id")))
                self.cells[k] = restored
        if changed:
            text = f"{len(changed)} {'cells have' if len(changed) > 1 else 'cell has'} lost the "
            text += "nbgrader metadata, without which no points are given, or has others: "
            self.report("metadata", text + "; ".join(changed) + ".", _RESTORED, mended=True)
        # nbgrader's own toolbar leaves empty metadata behind
        other = [self.describe(k) for k in self.free_cells() if details(self.cells[k])]
        if other:
            names = ", ".join(other[:10]) + ", ..." * (len(other) > 10)
            text = f"C{names[1:]} ha{'ve' if len(other) > 1 else 's'} nbgrader metadata, "
            text += "and no such cell is in this assignment."
            ending = "Delete the cell, or make a new one with its text."
            self.report("metadata", text, ending, mended=True)

    def restore_locked_cells(self) -> None:
        changed, renewed = list[str](), list[str]()
        for i, k in sorted(self.indices.items()):
            source = self.original[i].source
            if is_locked(self.original[i]) and self.cells[k].source != source:
                name = f"{question_of(self.original[i])!r} (cell {k + 1})"
                (renewed if _is_as_released(self.cells[k]) else changed).append(name)
                self.cells[k].source = source
        if renewed:
            names = ", ".join(renewed)
            text = f"Locked cells were renewed since this copy was handed out: {names}."
            self.report("renewed", text, "Grading uses the new ones.", mended=True, harmless=True)
        if changed:
            text = f"Locked cells were changed (the checksum differs): {', '.join(changed)}. "
            text += "Grading puts the original back."
            ending = "If part of your answer is in it, move that into a solution cell."
            self.report("changed", text, ending, mended=True)

    def early_answers(self) -> set[int]:
        """Return the answers that were moved up: cells between may call what they define."""
        locked = [(i, k) for i, k in self.indices.items() if is_locked(self.original[i])]
        answers = ((i, k) for i, k in self.indices.items() if is_solution(self.original[i]))
        return {k for i, k in answers if any(j < i and after > k for j, after in locked)}

    def check_order(self) -> None:
        """Report the first cell that precedes the cell that it should follow."""
        early = self.early_answers()
        graded = [self.indices[i] for i in self.questions.values() if i in self.indices]
        graded = [k for k in graded if k not in early]
        for first, second in itertools.pairwise(graded):
            if second < first:
                cell, before = self.describe(second), self.describe(first)
                text = f"C{cell[1:]} stands before {before}, and cells are run from top to bottom."
                ending = f"Move cell {second + 1} below cell {first + 1}."
                self.report("order", text, ending, mended=True)
                return

    def check_answers(self) -> None:
        """Report questions without an answer."""
        blank, answers = [], 0
        for i, k in sorted(self.indices.items()):
            if is_solution(self.original[i]):
                answers += 1
                if _same_text(self.original[i], self.cells[k]):
                    blank.append(f"cell {k + 1} ({question_of(self.original[i])!r})")
        if blank and len(blank) == answers:
            self.report("blank", "There is no answer in it.", "Fill it in.")
        elif blank:
            text = f"No answer yet in {', '.join(blank)}."
            self.report("blank", text, "Nothing to do, if you meant it.", harmless=True)

    def restore_missing_cells(self) -> None:
        """Report missing cells, and restore them unless they are stubs of an answer.

        A restored stub could redefine a function that the student defines in another cell.
        """
        for question, i in self.questions.items():
            cell = self.original[i]
            if i not in self.indices:
                is_restored = is_locked(cell) or is_graded(cell)
                if is_restored:
                    self.inserted[i] = copy.deepcopy(cell)
                previous = max((j for j in self.indices if j < i), default=None)
                position = "at the top"
                if previous is not None:
                    position = f"after cell {self.indices[previous] + 1}"
                text = f"The cell {question!r} is missing; it should stand {position}."
                advice = "Nothing to do, if your answer is in another cell."
                advice = _RESTORED if is_restored else advice
                self.report("missing", text, advice, mended=is_restored)

    def repaired_cells(self) -> list[Any]:
        """Return the cells in the assignment's order; others stay behind the one that they follow.

        In another order a test would take from the submission what a locked cell behind it defines.
        A copy with a text of its own stays, without its metadata.
        """
        by_k, early = {k: i for i, k in self.indices.items()}, self.early_answers()
        index, groups = -1, {i: [cell] for i, cell in self.inserted.items()}
        for k, cell in enumerate(self.cells):
            index = index if k in early else by_k.get(k, index)
            expected = details(self.original[by_k[k]]) if k in by_k else {}
            cell.metadata.pop("nbgrader", None)
            if expected:
                cell.metadata["nbgrader"] = copy.deepcopy(expected)
            if k not in self.copies or not _same_text(self.original[self.copies[k]], cell):
                groups.setdefault(index, []).append(cell)
        return [cell for i in sorted(groups) for cell in groups[i]]


def _is_as_released(cell: Any) -> bool:
    """Whether the cell's text is the one that was released with its metadata."""
    try:
        return bool(details(cell).get("checksum") == checksum(cell))
    except (KeyError, TypeError, ValueError):  # other metadata than nbgrader's
        return False


def _same_id(original: Any, cell: Any) -> bool:
    cell_id = original.get("id")
    return cell_id is not None and cell_id in (cell.get("id"), cell.metadata.get("id"))


def _same_text(original: Any, cell: Any) -> bool:
    return bool(original.source.strip() == cell.source.strip())


def _same_given(original: Any, cell: Any) -> bool:
    text = original.source.strip()
    return bool(text) and text not in STUB.values() and _same_text(original, cell)


@functools.cache
def _defined(text: str) -> set[str]:
    """Return the names that a cell defines or assigns at its top level."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    nodes = [node for part in body for node in (part, *getattr(part, "targets", ()))]
    names = (getattr(node, "name", getattr(node, "id", None)) for node in nodes)
    return {name for name in names if name is not None}
