"""Matches the cells of an assignment with the cells of a submission.

Usually the grade id in a cell's nbgrader metadata identifies it. If metadata was lost, changed or
copied, the cell's own id, its text and its neighbors are used.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from accelviz.course.autograde.cells import STUB, details, is_locked, is_solution, question_of

#: A cell is an edited copy of another one if it has at least this share of that one's lines.
_MIN_SHARE = 0.5
#: Index of a cell of the submission, and the cell.
_Candidate = tuple[int, Any]


@dataclass
class Match:
    """Matched cells, by index: i in the assignment, k in the submission."""

    #: Maps i to k.
    indices: dict[int, int] = field(default_factory=dict)
    #: Maps i to the k of further cells with the same grade id.
    copies: dict[int, list[int]] = field(default_factory=dict)
    #: The i of cells that were matched by other means than their grade id.
    restored: set[int] = field(default_factory=set)

    def free(self, submission: list[Any]) -> list[_Candidate]:
        """Return the cells of the submission that are not matched."""
        copies = (k for indices in self.copies.values() for k in indices)
        matched = {*self.indices.values(), *copies}
        return [(k, cell) for k, cell in enumerate(submission) if k not in matched]

    def free_beside(self, i: int, submission: list[Any]) -> list[_Candidate]:
        """Return the free cells between the nearest matched neighbors of cell `i`."""
        nearest = max((j for j in self.indices if j < i), default=None)
        begin = -1 if nearest is None else self.indices[nearest]
        # k > begin: an earlier cell that was moved to the end does not make the range empty
        later = (k for j, k in self.indices.items() if j > i and k > begin)
        end = min(later, default=len(submission))
        return [(k, cell) for k, cell in self.free(submission) if begin < k < end]

    def match_first(self, i: int, candidates: Iterator[int]) -> None:
        """Match cell `i` with the first candidate, if there is one."""
        if (k := next(candidates, None)) is not None:
            self.indices[i] = k


def match(release: list[Any], submission: list[Any]) -> Match:
    """Find the cells of an assignment in a submission.

    Cells are matched by grade id first; the remaining ones by the cell's own id, by equal text, and
    by similar text or position between matched neighbors. Missing cells are not in `indices`.
    """
    result = Match()
    questions = {question: i for i, cell in enumerate(release) if (question := question_of(cell))}
    owners = {release[i].get("id"): i for i in questions.values()}

    def may_be(i: int, cell: Any) -> bool:
        """Whether the cell does not have the own id of another question."""
        return owners.get(cell.get("id"), i) == i

    same_grade_id: dict[int, list[int]] = {}
    for k, cell in enumerate(submission):
        i = questions.get(str(details(cell).get("grade_id", "")), -1)
        if i >= 0 and may_be(i, cell):
            same_grade_id.setdefault(i, []).append(k)
    for i, indices in same_grade_id.items():
        result.indices[i] = chosen = _choose(release[i], indices, submission)
        if len(indices) > 1:
            result.copies[i] = [k for k in indices if k != chosen]
    for is_same in (_same_id, _same_text):
        for i, original in enumerate(release):
            if i not in result.indices:
                free = result.free(submission)
                result.match_first(i, (k for k, cell in free if is_same(original, cell)))
    texts = {cell.source.strip() for cell in release} - set(STUB.values()) | {""}
    locked_cells = [cell for cell in release if is_locked(cell)]

    def may_answer(i: int, cell: Any) -> bool:
        """Whether the cell may be an edited version of question `i`."""
        if not may_be(i, cell) or cell.source.strip() in texts:
            return False
        is_edited_test = any(_share(test, cell) >= _MIN_SHARE for test in locked_cells)
        return is_locked(release[i]) or not is_edited_test

    n_matched = -1
    while n_matched < len(result.indices):  # a new match may make another one possible
        n_matched = len(result.indices)
        for i in sorted(set(questions.values()) - set(result.indices)):
            beside = result.free_beside(i, submission)
            candidates = [(k, cell) for k, cell in beside if may_answer(i, cell)]
            result.match_first(i, _most_similar(release[i], candidates))
    result.restored = {
        i for i in result.indices if i not in same_grade_id and question_of(release[i])
    }
    return result


def _choose(original: Any, indices: list[int], submission: list[Any]) -> int:
    """Choose one of several cells with the same grade id."""
    if is_solution(original):  # the last answer is the one that counts when the notebook runs
        answered = [k for k in indices if submission[k].source.strip() != original.source.strip()]
        return (answered or indices)[-1]
    intact = [k for k in indices if submission[k].source == original.source]
    return (intact or indices)[0]


def _same_id(original: Any, cell: Any) -> bool:
    cell_id = original.get("id")
    return cell_id is not None and cell_id in (cell.get("id"), cell.metadata.get("id"))


def _same_text(original: Any, cell: Any) -> bool:
    text = original.source.strip()
    return bool(text) and text not in STUB.values() and text == cell.source.strip()


def _most_similar(original: Any, candidates: list[_Candidate]) -> Iterator[int]:
    """Yield the indices of candidates that resemble a cell, the most similar first.

    A candidate resembles it if it defines the same functions or has enough of its lines. A single
    candidate is accepted for an answer that defines no function.
    """
    same_type = [(k, cell) for k, cell in candidates if cell.cell_type == original.cell_type]
    names = set() if is_locked(original) else defined(original.source)
    if names:
        yield from (k for k, cell in same_type if names <= defined(cell.source))
    shares = [(_share(original, cell), -k) for k, cell in same_type]
    yield from (-k for share, k in sorted(shares, reverse=True) if share >= _MIN_SHARE)
    if len(same_type) == 1 and not names and not is_locked(original):
        yield same_type[0][0]


def _share(original: Any, cell: Any) -> float:
    """Return the share of a cell's lines that another cell has, ignoring lines of a stub."""
    lines = _lines(original.source) - _lines(STUB.get(original.cell_type, ""))
    return len(lines & _lines(cell.source)) / len(lines) if lines else 0.0


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.split("\n")} - {""}


def defined(text: str) -> set[str]:
    """Return the functions and classes that a cell defines at its top level."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in body if isinstance(node, kinds)}
