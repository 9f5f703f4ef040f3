"""What a cell's outputs say, to nbgrader and to us."""

from __future__ import annotations

import contextlib
import math
from typing import Any, NamedTuple

import nbformat

from accelviz.course.autograde.cells import is_graded, is_locked, question_of


def raised_by(cell: Any) -> str:
    """Return the exception that a cell ended in, "" if it did not."""
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            lines = f"{output.ename}: {output.evalue}".strip(": ").splitlines()
            return lines[0][:200] if lines else "an error of no name"
    return ""


def fail(cell: Any, name: str, problem: str) -> str:
    """Let a cell end in an error, which nbgrader takes for 0 points."""
    cell.setdefault("outputs", []).append(
        nbformat.v4.new_output(
            "error", ename=name, evalue=problem, traceback=[f"{name}: {problem}"]
        )
    )
    return problem


def settle(cell: Any) -> str:
    """Make a test cell's outputs say what nbgrader should read from them.

    nbgrader takes any text on stderr for a failure, so that a warning in a student's function costs
    all points; the first value shown for the points; and a value that is no number, not a number
    or negative for full points. Here stderr becomes stdout, the last value counts, and a value that
    cannot be points is an error.

    Returns
    -------
    str
        What was wrong with the value, "" if nothing.
    """
    values = [output for output in cell.outputs if output.output_type == "execute_result"]
    cell.outputs = [
        output
        for output in cell.outputs
        if output.output_type != "execute_result" or output is values[-1]
    ]
    for output in cell.outputs:
        if output.output_type == "stream":
            output["name"] = "stdout"
    if not values:
        return ""
    text = "".join(values[-1]["data"].get("text/plain", ""))
    most = float(cell.metadata["nbgrader"]["points"])
    try:
        fine = 0.0 <= float(text) <= most
    except ValueError:
        fine = False
    if fine:
        return ""
    problem = f"the test ended in {text[:60]!r}, which is not a number from 0 to {most:g}"
    return fail(cell, "NotPoints", problem)


class Extra(NamedTuple):
    """Points beyond an assignment's own.

    Attributes
    ----------
    question : str
        The grade id of the cell that gives them.
    credited : str
        The graded cell above it, whose extra credit they are in the gradebook.
    points : float
        0 if there are none.
    """

    question: str
    credited: str
    points: float


def extra_points(notebook: Any) -> list[Extra]:
    """Find extra points: the values of locked cells that give no points, named `...-bonus`."""
    found, above = [], ""
    for cell in notebook.cells:
        question = question_of(cell)
        if is_graded(cell):
            above = question
        elif above and is_locked(cell) and question.endswith("-bonus"):
            found.append(Extra(question, above, _value(cell)))
    return found


def _value(cell: Any) -> float:
    for output in reversed(cell.get("outputs", [])):
        if output.output_type == "execute_result":
            with contextlib.suppress(ValueError):
                points = float("".join(output.data.get("text/plain", "")))
                if 0.0 < points < math.inf:
                    return points
    return 0.0
