"""A table of a class's own partition schemes over hidden graphs, the papers' beside them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd

from accelviz.course.autograde.apart import start_server
from accelviz.course.autograde.assignments import Assignment, choose
from accelviz.course.autograde.board import references
from accelviz.course.autograde.border import Limits, require_border
from accelviz.course.autograde.cells import is_solution, is_test
from accelviz.course.autograde.common import clean
from accelviz.course.autograde.folder import Course
from accelviz.course.autograde.grading import examined, submissions
from accelviz.course.autograde.sandbox import run
from accelviz.errors import ArgumentError

#: Who stands beside the papers' schemes.
PAPERS = "(the papers)"
_SCHEME = ["student", "scheme"]
_FIRST = [*_SCHEME, "graph", "exact_cover"]
_LAST = ["score", "total", "problem"]


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
        Of the hidden graphs (`hidden.graphs`); the course's, if not given.
    limits : Limits, optional
        For each submission.
    jobs : int, optional
        Submissions at a time; as many as there are processors, if not given.
    progress : callable
        Is told whose submission was run.

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
    (wanted,) = choose(course.assignments(), [assignment])
    hidden_seed = course.seed() if seed is None else seed
    candidates = {
        student: path
        for student, path, problem in submissions(course)
        if path.name == wanted.name and not problem
    }
    if not candidates:
        reason, expected = f"there is no submission of {assignment} in it", wanted.name
        raise ArgumentError(str(folder), reason, f"submitted/STUDENT/{expected}/{expected}.ipynb")
    # the class that students write
    cells = filter(is_solution, wanted.released.cells)
    names = re.findall(r"^class (\w+)", "\n".join(cell.source for cell in cells), re.M)
    if not names:
        reason = "its solution cells have no class"
        raise ArgumentError(wanted.name, reason, "an assignment that asks for a scheme, such as A3")
    test = f"from accelviz.course.autograde.board import rows\nrows({names[-1]}(), {hidden_seed})"
    require_border()
    start_server()

    def measured(student: str) -> list[dict[str, Any]]:
        rows = _run(candidates[student], wanted, test, limits or Limits())
        progress(student)
        return [{"student": student, **row} for row in rows]

    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        rows = [row for rows in pool.map(measured, sorted(candidates)) for row in rows]
    rows += [{"student": PAPERS, **row} for row in references(hidden_seed)]
    frame = pd.DataFrame(rows)
    frame["problem"] = frame["problem"].fillna("")
    frame["total"] = (100 * frame.groupby(_SCHEME)["score"].transform("mean")).round(1)
    keys = {"papers": frame["student"] == PAPERS, "lost": -frame["total"]}
    frame = frame.assign(**keys).sort_values([*keys, *_SCHEME], kind="stable", ignore_index=True)
    return frame[[*_FIRST, *frame.columns.difference([*_FIRST, *_LAST, *keys], sort=False), *_LAST]]


def _run(folder: Path, wanted: Assignment, test: str, limits: Limits) -> list[dict[str, Any]]:
    """Return a submission's rows, or one that says why it has none."""
    try:
        checked = examined(folder, wanted)
        if isinstance(checked, str):
            problem = checked
        else:
            notebook, marks = checked.notebook, {"grade": True, "locked": True, "grade_id": "board"}
            last = nbformat.v4.new_code_cell(test, metadata={"nbgrader": marks})
            notebook.cells = [*(cell for cell in notebook.cells if not is_test(cell)), last]
            ran = run(notebook, limits, folder, hidden=(str(folder.parents[2]),))[-1]
            if isinstance(ran.value, list):
                return ran.value
            problem = ran.problem or "it showed no result"
    except Exception as error:  # whatever a submission leads to
        problem = f"{type(error).__name__}: {error}"[:300]
    return [{"scheme": "", "graph": "", "exact_cover": False, "score": 0.0, "problem": problem}]


def standings(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a leaderboard with a row for each scheme, in one line and for a terminal.

    Metrics are means over the graphs; a graph's own column holds the score there, in percent.
    """
    schemes = frame.groupby(_SCHEME, sort=False)
    metrics = frame.columns.difference([*_FIRST, *_LAST], sort=False)
    ran = frame[frame["graph"] != ""]
    scores = 100 * ran.pivot_table("score", _SCHEME, "graph", sort=False)
    columns = [schemes["exact_cover"].sum(), schemes[list(metrics)].mean(), scores]
    lines = pd.concat([*columns, schemes["total"].first()], axis=1).reset_index()
    of_class = lines["student"] != PAPERS
    lines.insert(0, "rank", of_class.cumsum().where(of_class).astype("Int64"))
    return lines.assign(**{name: lines[name].map(clean) for name in _SCHEME})
