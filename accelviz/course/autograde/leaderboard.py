"""Ranks a class's partition schemes by their mean score over hidden graphs.

A leaderboard is a table with a row for each student and graph. The schemes of the papers are
measured in the same way and appended without a rank.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd

from accelviz.course.autograde.assignments import Assignment, choose
from accelviz.course.autograde.border import Limits, require_border
from accelviz.course.autograde.cells import is_solution, is_test
from accelviz.course.autograde.common import clean
from accelviz.course.autograde.folder import Course
from accelviz.course.autograde.grading import examined, submissions
from accelviz.course.autograde.processes import start_server
from accelviz.course.autograde.sandbox import run
from accelviz.course.checks import schemes
from accelviz.course.checks.metrics import Metrics
from accelviz.errors import ArgumentError

#: Value of the column `student` for the papers' schemes, and their names.
PAPERS, _REFERENCES = "(the papers)", ("accel_gcn", "gnnadvisor", "graphblast", "merge_path")
_METRICS = [field.name for field in dataclasses.fields(Metrics)]
#: Columns that identify a scheme, and all columns.
_SCHEME = ["student", "scheme"]
_COLUMNS = [*_SCHEME, "graph", "exact_cover", *_METRICS, "score", "total", "problem"]


def leaderboard(
    folder: Path,
    assignment: str = "A3",
    *,
    seed: int | None = None,
    limits: Limits | None = None,
    jobs: int | None = None,
    progress: Callable[[str], object] = lambda _: None,
) -> pd.DataFrame:
    """Run each submission's scheme on hidden graphs.

    Parameters
    ----------
    folder : Path
        A course folder.
    assignment : str
        The assignment in which students define a scheme.
    seed : int, optional
        Seed of the hidden graphs (`hidden.graphs`); default: the course's.
    limits : Limits, optional
        Limits of each submission.
    jobs : int, optional
        Number of submissions that run in parallel; default: the number of processors.
    progress : callable
        Called with the name of a student after each submission.

    Returns
    -------
    DataFrame
        A row for each student and graph, best total first, then the papers' schemes: `student`,
        `scheme`, `graph`, `exact_cover`, the metrics, `score` (0 to 1, on this graph), `total` (100
        times the mean score over the graphs) and `problem`.

    Raises
    ------
    ArgumentError
        If this is no course folder, or there is no such assignment or no submission of it.
    """
    course = Course(folder.resolve())
    (chosen,) = choose(course.assignments(), [assignment])
    seed = course.seed() if seed is None else seed
    folders = {
        student: path
        for student, path, problem in submissions(course)
        if path.name == chosen.name and not problem
    }
    if not folders:
        reason, expected = f"there is no submission of {assignment} in it", chosen.name
        raise ArgumentError(str(folder), reason, f"submitted/STUDENT/{expected}/{expected}.ipynb")
    solution = "\n".join(cell.source for cell in filter(is_solution, chosen.released.cells))
    classes = re.findall(r"^class (\w+)", solution, re.M)
    if not classes:
        reason = "its solution cells have no class"
        raise ArgumentError(chosen.name, reason, "an assignment that asks for a scheme, such as A3")
    test = f"from accelviz.course.checks.schemes import measures\nmeasures({classes[-1]}(), {seed})"
    require_border()
    start_server()

    def student_rows(student: str) -> list[dict[str, Any]]:
        rows = _run(folders[student], chosen, test, limits or Limits())
        progress(student)
        return [{"student": student, **row} for row in rows]

    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        rows = [row for rows in pool.map(student_rows, sorted(folders)) for row in rows]
    for name in _REFERENCES:
        rows += [{"student": PAPERS, **row} for row in schemes.measures(name, seed)]
    frame = pd.DataFrame(rows).reindex(columns=_COLUMNS)
    frame["total"] = (100 * frame.groupby(_SCHEME)["score"].transform("mean")).round(1)
    by = frame.assign(is_paper=frame["student"] == PAPERS)
    order = by.sort_values(["is_paper", "total", *_SCHEME], ascending=[True, False, True, True])
    return frame.loc[order.index].reset_index(drop=True)


def _run(folder: Path, assignment: Assignment, test: str, limits: Limits) -> list[dict[str, Any]]:
    """Run a submission with `test` as its only test; return its rows, or one with the problem."""
    try:
        with examined(folder, assignment) as (copied, _, checked):
            if isinstance(checked, str):
                problem = checked
            else:
                notebook = checked.notebook
                marks = {"grade": True, "locked": True, "grade_id": "board"}
                test_cell = nbformat.v4.new_code_cell(test, metadata={"nbgrader": marks})
                notebook.cells = [
                    *(cell for cell in notebook.cells if not is_test(cell)),
                    test_cell,
                ]
                result = run(notebook, limits, copied, hidden=(str(folder.parents[2]),))[-1]
                if isinstance(result.value, list):
                    return result.value
                problem = result.problem or "it showed no result"
    except Exception as error:  # a submission may cause any error
        problem = f"{type(error).__name__}: {error}"[:300]
    return [{"scheme": "", "graph": "", "exact_cover": False, "score": 0.0, "problem": problem}]


def standings(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a leaderboard with one row for each scheme, as text for a terminal.

    The columns are `rank`, `student`, `scheme`, `exact_cover` (number of graphs), the metrics
    (means over the graphs), the score on each graph in percent, and `total`.
    """
    rows = frame.groupby(_SCHEME, sort=False)
    measured = frame[frame["graph"] != ""]
    scores = 100 * measured.pivot_table("score", _SCHEME, "graph", sort=False)
    columns = [rows["exact_cover"].sum(), rows[_METRICS].mean(), scores, rows["total"].first()]
    ranking = pd.concat(columns, axis=1).reset_index()
    totals = ranking["total"].where(ranking["student"] != PAPERS)
    ranks = totals.rank(method="min", ascending=False)  # equal ones share a rank
    ranking.insert(0, "rank", ranks.astype("Int64"))
    return ranking.assign(**{name: ranking[name].map(clean) for name in _SCHEME})
