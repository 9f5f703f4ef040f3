"""Ranks a class's partition schemes by their mean score over hidden graphs.

A leaderboard is a table with a row for each student and graph, which grading has measured. The
schemes of the papers are measured in the same way and appended without a rank.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pandas as pd

from accelviz.course.autograde.assignments import choose
from accelviz.course.autograde.common import clean
from accelviz.course.autograde.folder import Course
from accelviz.course.autograde.grading import graded_before, submissions
from accelviz.course.checks.metrics import Metrics
from accelviz.errors import ArgumentError

#: Value of the column `student` for the papers' schemes.
PAPERS = "(the papers)"
_METRICS = [field.name for field in dataclasses.fields(Metrics)]
#: Columns that identify a scheme, and all columns.
_SCHEME = ["student", "scheme"]
_COLUMNS = [*_SCHEME, "graph", "exact_cover", *_METRICS, "score", "total", "problem"]


def leaderboard(folder: Path, assignment: str = "A3") -> pd.DataFrame:
    """Collect what grading has measured of each submission's scheme.

    Parameters
    ----------
    folder : Path
        A course folder.
    assignment : str
        The assignment in which students define a scheme (whose tests call `schemes.earned`).

    Returns
    -------
    DataFrame
        A row for each student and graph, best total first, then the papers' schemes: `student`,
        `scheme`, `graph`, `exact_cover`, the metrics, `score` (0 to 1, on this graph), `total` (100
        times the mean score over the graphs) and `problem`.

    Raises
    ------
    ArgumentError
        If this is no course folder, or there is no such assignment, or no graded submission of a
        scheme.
    """
    course = Course(folder.resolve())
    (chosen,) = choose(course.assignments(), [assignment])
    rows, papers = list[dict[str, Any]](), dict[tuple[str, str], dict[str, Any]]()
    for student, path, problem in submissions(course):
        if path.name != chosen.name or problem:
            continue
        by_graph, problems = {}, ["it is not graded"]
        for run in graded_before(course, student, chosen.name).get("runs", []):
            problems.append(run["problem"])
            for row in run.get("measurements", []):
                if row["paper"]:
                    papers[row["scheme"], row["graph"]] = {**row, "student": PAPERS}
                else:
                    by_graph[row["graph"]] = {**row, "student": student}
        problem = next(filter(None, reversed(problems)))
        nothing = {"student": student, "scheme": "", "graph": "", "exact_cover": False}
        # one name for all graphs: a scheme may have others, and none where it fails
        names = [row["scheme"] for row in by_graph.values() if row["scheme"]]
        measured = [{**row, "scheme": names[0] if names else ""} for row in by_graph.values()]
        rows += measured or [{**nothing, "score": 0.0, "problem": problem}]
    if not papers:
        reason, expected = f"it has no graded scheme in {assignment}", "accelviz assignments grade"
        raise ArgumentError(str(folder), reason, f"submissions of A3 after `{expected}`")
    frame = pd.DataFrame([*rows, *papers.values()]).reindex(columns=_COLUMNS)
    n_graphs = len({graph for _, graph in papers})  # a process that ended has measured fewer
    frame["total"] = (100 / n_graphs * frame.groupby(_SCHEME)["score"].transform("sum")).round(1)
    by = frame.assign(is_paper=frame["student"] == PAPERS)
    order = by.sort_values(["is_paper", "total", *_SCHEME], ascending=[True, False, True, True])
    return frame.loc[order.index].reset_index(drop=True)


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
