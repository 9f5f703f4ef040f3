"""Finds which cell of a submission is which cell of the assignment, whatever happened to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from accelviz.course.autograde.cells import STUB, details, is_locked, is_solution, question_of

#: Share of a cell's lines from which on another cell that has them is taken for an edited copy.
_SAME = 0.5
#: A cell of the submission, with its index.
_Candidate = tuple[int, Any]


@dataclass
class Match:
    """Which cell is which, by index."""

    #: Index of a cell of the assignment to index of that cell in the submission.
    indices: dict[int, int] = field(default_factory=dict)
    #: Further cells of the submission that carry the same grade id.
    copies: dict[int, list[int]] = field(default_factory=dict)
    #: Cells of the assignment that were recognised by other means than their grade id.
    restored: set[int] = field(default_factory=set)

    def free(self, submission: list[Any]) -> list[_Candidate]:
        """Return the cells of the submission that are not spoken for."""
        taken = {*self.indices.values(), *(k for several in self.copies.values() for k in several)}
        return [(k, cell) for k, cell in enumerate(submission) if k not in taken]

    def free_beside(self, i: int, submission: list[Any]) -> list[_Candidate]:
        """Return the free cells between the nearest matched neighbors of cell `i`."""
        # a cell of text that was pasted to the end comes before none of the answers
        nearest = max((j for j in self.indices if j < i), default=None)
        begin = -1 if nearest is None else self.indices[nearest]
        later = (k for j, k in self.indices.items() if j > i and k > begin)
        end = min(later, default=len(submission))
        return [(k, cell) for k, cell in self.free(submission) if begin < k < end]

    def take_first(self, i: int, candidates: Iterator[int]) -> None:
        """Match cell `i` with the first candidate, if there is one."""
        if (k := next(candidates, None)) is not None:
            self.indices[i] = k


def match(release: list[Any], submission: list[Any]) -> Match:
    """Find each cell of an assignment in a submission.

    By grade id; what is then left, by the cell's own id, by its text, and by its text or its place
    between its neighbors. Cells that are nowhere are not in `indices`.
    """
    matched = Match()
    questions = {question: i for i, cell in enumerate(release) if (question := question_of(cell))}
    owners = {release[i].get("id"): i for i in questions.values()}

    def may_be(i: int, cell: Any) -> bool:
        """Whether a cell has not the own id of another cell."""
        return owners.get(cell.get("id"), i) == i

    groups: dict[int, list[int]] = {}
    for k, cell in enumerate(submission):
        i = questions.get(str(details(cell).get("grade_id", "")), -1)
        if i >= 0 and may_be(i, cell):
            groups.setdefault(i, []).append(k)
    for i, several in groups.items():
        matched.indices[i] = meant = _meant(release[i], several, submission)
        if len(several) > 1:
            matched.copies[i] = [k for k in several if k != meant]
    for same in (_same_id, _same_text):
        for i, cell in enumerate(release):
            if i not in matched.indices:
                free = matched.free(submission)
                matched.take_first(i, (k for k, other in free if same(cell, other)))
    texts = {cell.source.strip() for cell in release} - set(STUB.values()) | {""}
    tests = [cell for cell in release if is_locked(cell)]
    before = -1
    while before < len(matched.indices):  # what was matched may be what hid another
        before = len(matched.indices)
        for i in sorted(questions.values()):
            if i in matched.indices:
                continue
            candidates = [
                (k, cell)
                for k, cell in matched.free_beside(i, submission)
                if may_be(i, cell)
                and cell.source.strip() not in texts
                # an edited copy of a test is no answer
                and (
                    is_locked(release[i]) or not any(_share(test, cell) >= _SAME for test in tests)
                )
            ]
            matched.take_first(i, _alike(release[i], candidates))
    matched.restored = {i for i in matched.indices if i not in groups and question_of(release[i])}
    return matched


def _meant(original: Any, several: list[int], submission: list[Any]) -> int:
    """Choose which of several cells with one grade id is meant."""
    if is_solution(original):  # the last answer is the one that counts when the notebook runs
        answered = [k for k in several if submission[k].source.strip() != original.source.strip()]
        return (answered or several)[-1]
    intact = [k for k in several if submission[k].source == original.source]
    return (intact or several)[0]


def _same_id(original: Any, cell: Any) -> bool:
    cell_id = original.get("id")
    return cell_id is not None and cell_id in (cell.get("id"), cell.metadata.get("id"))


def _same_text(original: Any, cell: Any) -> bool:
    text = original.source.strip()
    return bool(text) and text not in STUB.values() and text == cell.source.strip()


def _alike(original: Any, candidates: list[_Candidate]) -> Iterator[int]:
    """Give the candidates that look like a cell, the most alike first."""
    fitting = [(k, cell) for k, cell in candidates if cell.cell_type == original.cell_type]
    names = set() if is_locked(original) else defined(original.source)
    if names:
        yield from (k for k, cell in fitting if names <= defined(cell.source))
    shares = [(_share(original, cell), -k) for k, cell in fitting]
    yield from (-k for share, k in sorted(shares, reverse=True) if share >= _SAME)
    if len(fitting) == 1 and not names and not is_locked(original):
        yield fitting[0][0]


def _share(original: Any, cell: Any) -> float:
    """Return the share of a cell's lines, those of a stub aside, that another cell has."""
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
