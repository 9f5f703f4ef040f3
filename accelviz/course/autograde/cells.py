"""nbgrader's metadata of a notebook's cells: grade ids, kinds and checksums (schema version 3).

Reimplemented so that students can examine a submission without nbgrader installed. A test compares
the results with nbgrader's own.
"""

from __future__ import annotations

import copy
import hashlib
from typing import Any

STUB = {"code": "# YOUR CODE HERE\nraise NotImplementedError()", "markdown": "YOUR ANSWER HERE"}


def details(cell: Any) -> dict[str, Any]:
    """Return a cell's nbgrader metadata, empty where it has none."""
    metadata = cell.metadata.get("nbgrader")
    return metadata if isinstance(metadata, dict) else {}


def question_of(cell: Any) -> str:
    """Return a cell's grade id, "" if it has none."""
    metadata = details(cell)
    counts = any(metadata.get(kind) for kind in ("grade", "solution", "locked", "task"))
    return str(metadata.get("grade_id", "")) if counts else ""


def is_graded(cell: Any) -> bool:
    """Whether the cell has points, given by its test or by hand."""
    return bool(details(cell).get("grade") or details(cell).get("task"))


def is_solution(cell: Any) -> bool:
    """Whether the cell is for a student's answer."""
    return bool(details(cell).get("solution"))


def is_test(cell: Any) -> bool:
    """Whether the cell is a test with points."""
    metadata = details(cell)
    return cell.cell_type == "code" and bool(metadata.get("grade")) and not metadata.get("solution")


def is_locked(cell: Any) -> bool:
    """Whether the cell is the instructor's; nbgrader restores its text before grading."""
    metadata = details(cell)
    return not metadata.get("solution") and bool(metadata.get("grade") or metadata.get("locked"))


def checksum(cell: Any) -> str:
    """Return nbgrader's checksum of a cell that has a grade id."""
    metadata = details(cell)
    parts = [cell.source, cell.cell_type, bool(metadata.get("grade", False))]
    parts += [is_solution(cell), is_locked(cell), metadata["grade_id"]]
    if metadata.get("grade"):
        parts.append(float(metadata["points"]))
    return hashlib.md5("".join(map(str, parts)).encode(), usedforsecurity=False).hexdigest()


def released(source: Any) -> Any:
    """Return a copy of an instructor's notebook without solutions, hidden tests and outputs."""
    notebook = copy.deepcopy(source)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            for key in ("collapsed", "scrolled"):
                cell.metadata.pop(key, None)
        if is_solution(cell) or is_locked(cell):
            cell.metadata["deletable"] = False
        if is_locked(cell):
            cell.metadata["editable"] = False
        with_stubs = _replace_regions(cell.source, "SOLUTION", STUB.get(cell.cell_type, ""))
        if is_solution(cell):
            cell.source = STUB[cell.cell_type] if with_stubs == cell.source else with_stubs
        for region in ("HIDDEN TESTS", "MARK SCHEME"):
            cell.source = _replace_regions(cell.source, region)
        if question_of(cell):
            cell.metadata["nbgrader"]["checksum"] = checksum(cell)
            cell.metadata["nbgrader"]["cell_type"] = cell.cell_type
    return notebook


def _replace_regions(text: str, region: str, stub: str = "") -> str:
    """Replace each region from the line `BEGIN ...` to the line `END ...` by a stub."""
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        if f"BEGIN {region}" in line:
            inside, indent = True, line[: len(line) - len(line.lstrip())]
            lines += [indent + stub_line for stub_line in stub.split("\n") if stub]
        elif f"END {region}" in line:
            inside = False
        elif not inside:
            lines.append(line)
    return "\n".join(lines)
