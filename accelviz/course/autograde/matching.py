"""Finds which cell of a submission is which cell of the assignment, whatever happened to them."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from accelviz.course.autograde.cells import STUB, details, is_locked, is_solution, question_of

#: Shares of equal text from which on a cell is taken for an edited copy of another.
_SAME_TEST, _SAME_FRAME = 0.8, 0.6
#: Letters of two texts that are compared letter by letter.
_LONGEST = 20_000


@dataclass
class Match:
    """Which cell is which, by index.

    Attributes
    ----------
    indices : dict of int to int
        Index of a cell of the assignment to index of that cell in the submission.
    copies : dict of int to list of int
        Further cells of the submission that carry the same grade id.
    restored : set of int
        Cells of the assignment found by other means than their grade id.
    """

    indices: dict[int, int] = field(default_factory=dict)
    copies: dict[int, list[int]] = field(default_factory=dict)
    restored: set[int] = field(default_factory=set)

    def taken(self) -> set[int]:
        """Return the cells of the submission that are spoken for."""
        return {*self.indices.values(), *(i for several in self.copies.values() for i in several)}


def match(release: list[Any], submission: list[Any]) -> Match:
    """Find each cell of an assignment in a submission.

    By grade id; what is then left, by the cell's own id, by its text, and by its text or its place
    between its neighbors.

    Parameters
    ----------
    release, submission : list of cells

    Returns
    -------
    Match
        Cells that were not found are not in `indices`.
    """
    matched = Match()
    wanted = {question: i for i, cell in enumerate(release) if (question := question_of(cell))}
    groups: dict[int, list[int]] = {}
    for k, cell in enumerate(submission):
        if (i := wanted.get(str(details(cell).get("grade_id", "")))) is not None:
            groups.setdefault(i, []).append(k)
    owners = {cell.get("id"): i for i, cell in enumerate(release) if question_of(cell)}
    # a cell that has its own id, but another's grade id, is not that other one
    for i in list(groups):
        groups[i] = [k for k in groups[i] if owners.get(submission[k].get("id"), i) == i]
    groups = {i: several for i, several in groups.items() if several}
    for i, several in groups.items():
        original_index = _meant(release[i], several, submission)
        matched.indices[i] = original_index
        if len(several) > 1:
            matched.copies[i] = [k for k in several if k != original_index]
    for same in (_same_id, _same_text):
        for i, cell in enumerate(release):
            if i not in matched.indices:
                _claim_first(
                    matched,
                    i,
                    (
                        k
                        for k, candidates in _unclaimed(matched, submission)
                        if same(cell, candidates)
                    ),
                )
    released_texts = {cell.source.strip() for cell in release} - set(STUB.values()) | {""}
    before = -1
    while before < len(matched.indices):  # what was found may be what hid another
        before = len(matched.indices)
        for i, cell in enumerate(release):
            if i not in matched.indices and question_of(cell):
                near = _unclaimed_between(matched, i, submission)
                near = (
                    (k, cell_near)
                    for k, cell_near in near
                    if owners.get(cell_near.get("id"), i) == i
                )
                candidates = [
                    (k, cell_near)
                    for k, cell_near in near
                    if cell_near.source.strip() not in released_texts
                ]
                if not is_locked(cell):  # an edited copy of a test is no answer
                    candidates = [
                        (k, cell_near)
                        for k, cell_near in candidates
                        if not _is_test_of(release, cell_near)
                    ]
                _claim_first(matched, i, _alike(cell, candidates))
    matched.restored = {i for i in matched.indices if i not in groups and question_of(release[i])}
    return matched


def _meant(original: Any, several: list[int], submission: list[Any]) -> int:
    """Choose which of several cells with one grade id is meant."""
    if is_solution(original):  # the last answer is the one that counts when the notebook runs
        answered = [k for k in several if submission[k].source.strip() != original.source.strip()]
        return (answered or several)[-1]
    intact = [k for k in several if submission[k].source == original.source]
    return (intact or several)[0]


def _unclaimed(matched: Match, submission: list[Any]) -> Iterator[tuple[int, Any]]:
    taken = matched.taken()
    return ((k, cell) for k, cell in enumerate(submission) if k not in taken)


def _unclaimed_between(matched: Match, i: int, submission: list[Any]) -> Iterator[tuple[int, Any]]:
    """Give the free cells between the nearest neighbors of cell `i` that were found."""
    # a cell of text that was pasted to the end comes before none of the answers
    nearest = max((j for j in matched.indices if j < i), default=None)
    before = -1 if nearest is None else matched.indices[nearest]
    after = min((k for j, k in matched.indices.items() if j > i and k > before), default=None)
    stop = len(submission) if after is None else after
    return ((k, cell) for k, cell in _unclaimed(matched, submission) if before < k < stop)


def _claim_first(matched: Match, i: int, candidates: Iterator[int]) -> None:
    for k in candidates:
        matched.indices[i] = k
        return


def _same_id(original: Any, cell: Any) -> bool:
    cell_id = original.get("id")
    return cell_id is not None and cell_id in (cell.get("id"), cell.metadata.get("id"))


def _same_text(original: Any, cell: Any) -> bool:
    text = original.source.strip()
    return bool(text) and text not in STUB.values() and text == cell.source.strip()


def _alike(original: Any, candidates: list[tuple[int, Any]]) -> Iterator[int]:
    """Give the candidates that look like a cell, the most alike first."""
    fitting = [(k, cell) for k, cell in candidates if cell.cell_type == original.cell_type]
    if is_locked(original):
        scored = [(_ratio(original.source, cell.source), -k) for k, cell in fitting]
        yield from (-k for score, k in sorted(scored, reverse=True) if score >= _SAME_TEST)
        return
    names = defined(original.source)
    if names:
        yield from (k for k, cell in fitting if names <= defined(cell.source))
    frame = _frame(original)
    shares = [(_share(frame, cell.source), -k) for k, cell in fitting]
    yield from (-k for share, k in sorted(shares, reverse=True) if share >= _SAME_FRAME)
    if len(fitting) == 1 and not names:
        yield fitting[0][0]


def _is_test_of(release: list[Any], cell: Any) -> bool:
    return any(
        is_locked(released_cell) and _ratio(released_cell.source, cell.source) >= _SAME_TEST
        for released_cell in release
    )


def _ratio(one: str, other: str) -> float:
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    # bounds from above, which cost nothing where two texts have little in common
    if (
        len(one) + len(other) > _LONGEST
        or min(matcher.real_quick_ratio(), matcher.quick_ratio()) < 0.5
    ):
        return 0.0
    return matcher.ratio()


def _frame(cell: Any) -> list[str]:
    """Return the lines of a released solution cell that students are to keep."""
    stub = set(STUB[cell.cell_type].split("\n")) if cell.cell_type in STUB else set()
    lines = [line.strip() for line in cell.source.split("\n")]
    return [line for line in lines if line and line not in stub]


def _share(frame: list[str], text: str) -> float:
    lines = {line.strip() for line in text.split("\n")}
    return sum(line in lines for line in frame) / len(frame) if frame else 0.0


def defined(text: str) -> set[str]:
    """Return the functions and classes that a cell defines at its top level."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in body if isinstance(node, kinds)}
