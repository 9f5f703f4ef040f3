"""A table of a class's own partition schemes over hidden graphs, the papers' beside them."""

from __future__ import annotations

import html
import math
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd

from accelviz.course.autograde.apart import start_server
from accelviz.course.autograde.assignments import Assignment, choose, find_assignments
from accelviz.course.autograde.board import references
from accelviz.course.autograde.border import Limits, require_border
from accelviz.course.autograde.cells import is_locked, is_solution, is_test
from accelviz.course.autograde.common import clean
from accelviz.course.autograde.folder import Course
from accelviz.course.autograde.grading import examined, submissions
from accelviz.course.autograde.matching import defined
from accelviz.course.autograde.preflight import examine
from accelviz.course.autograde.repair import Checked
from accelviz.course.autograde.sandbox import run
from accelviz.errors import ArgumentError

#: Who stands beside the papers' schemes.
PAPERS = "(the papers)"
_FIRST = ("student", "scheme", "graph", "exact_cover")
_LAST = ("score", "total", "problem")


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
        A course folder; or a folder with `<student>/<assignment>/`, with `<student>/A3.ipynb`, or
        with `<student>.ipynb`.
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
        If there is no such folder or assignment, or no submission of it.
    """
    if not folder.is_dir():
        raise ArgumentError(str(folder), "there is no such folder", "a course, or submissions")
    course = (folder / "source").is_dir()
    (wanted,) = choose(find_assignments(folder / "source" if course else None), [assignment])
    if seed is None:
        seed = Course(folder).seed() if course else 0
    candidates = _submitted(folder / "submitted" if course else folder, wanted)
    if not candidates:
        raise ArgumentError(
            str(folder),
            f"there is no submission of {assignment} in it",
            f"<student>/{assignment}/{assignment}.ipynb",
        )
    limits = limits or Limits()
    require_border()
    start_server()

    def measured(student: str) -> list[dict[str, Any]]:
        rows = _run(candidates[student], seed, limits, folder)
        progress(student)
        return [{"student": student, **row} for row in rows]

    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        lines = [row for rows in pool.map(measured, sorted(candidates)) for row in rows]
    lines += [{"student": PAPERS, **row} for row in references(seed)]
    return _ranked(pd.DataFrame(lines))


def _submitted(folder: Path, wanted: Assignment) -> dict[str, Checked | str]:
    """Return each student's submission, examined, or why there is none."""
    candidates: dict[str, Checked | str] = {
        student: examined(path, wanted)
        for student, path in submissions(folder)
        if path.name == wanted.name
    }
    loose = [(path.parent.name, path) for path in folder.glob(f"*/{wanted.name}.ipynb")]
    loose += [(path.stem, path) for path in folder.glob("*.ipynb")]
    for student, path in loose:
        if student not in candidates:
            candidates[student] = examine(path, [wanted])
    return candidates


def _run(checked: Checked | str, seed: int, limits: Limits, root: Path) -> list[dict[str, Any]]:
    """Return a submission's rows, or one that says why it has none."""
    if isinstance(checked, str) or checked.notebook is None:
        problem = checked if isinstance(checked, str) else " ".join(map(str, checked.problems))
    else:
        notebook, assignment = checked.notebook, checked.assignment
        # the classes that the assignment has students write
        cells = filter(is_solution, assignment.released.cells if assignment else [])
        names = sorted({name for cell in cells for name in defined(cell.source)})
        notebook.cells = [
            cell for cell in notebook.cells if not is_locked(cell) or not is_test(cell)
        ]
        ask = "from accelviz.course.autograde.board import rows\n"
        ask += f"rows(_submission, {names!r}, {seed})"
        options: Any = {"hidden": (str(root.resolve()),), "last_test": ask}
        try:
            answer = run(notebook, limits, checked.path.parent, **options)[1]
            if answer.value and isinstance(answer.value, list):
                return answer.value
            problem = answer.problem or "it showed no result"
            if isinstance(answer.value, list):
                problem = " ".join(["no class", *names]) + " derived from Strategy was found"
        except Exception as error:  # whatever a submission leads to
            problem = f"{type(error).__name__}: {error}"[:300]
    return [{"scheme": "", "graph": "", "exact_cover": False, "score": 0.0, "problem": problem}]


def _metrics(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame.columns if name not in (*_FIRST, *_LAST)]


def _ranked(frame: pd.DataFrame) -> pd.DataFrame:
    means = frame.groupby(["student", "scheme"])["score"].transform("mean")
    frame["total"] = (100 * means).round(1)
    keys = {"papers": frame["student"] == PAPERS, "lost": -frame["total"]}
    frame = frame.assign(**keys).sort_values(["papers", "lost", "student", "scheme"], kind="stable")
    frame = frame.drop(columns=[*keys])
    return frame[[*_FIRST, *_metrics(frame), *_LAST]].reset_index(drop=True)


def markdown(frame: pd.DataFrame) -> str:
    """Return a leaderboard as a Markdown table, a line for each scheme.

    Metrics are means over the graphs; a graph's own column holds the score there, in percent.
    """
    metrics = _metrics(frame)
    graphs = [name for name in dict.fromkeys(frame["graph"]) if name]
    lines = [["rank", "student", "scheme", "exact cover", *metrics, *graphs, "total"]]
    rank = 0
    for (student, scheme), rows in frame.groupby(["student", "scheme"], sort=False):
        rank += student != PAPERS
        scores = dict(zip(rows["graph"], 100 * rows["score"], strict=True))
        numbers = [*(rows[name].mean() for name in metrics)]
        numbers += [*(scores.get(graph, math.nan) for graph in graphs), rows["total"].iloc[0]]
        covered = f"{int(rows['exact_cover'].sum())} of {len(graphs)}"
        names = ["" if student == PAPERS else str(rank), _plain(student), _plain(scheme), covered]
        lines.append([*names, *map(_number, numbers)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    text = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    problems = frame[frame["problem"].fillna("") != ""]
    told = [
        f"- {_plain(row.student)}{f', {row.graph}' if row.graph else ''}: {_plain(row.problem)}"
        for row in problems.itertuples()
    ]
    return "\n".join([*text, *([""] if told else []), *told])


def _plain(text: object) -> str:
    """Return a text that is no Markdown and no HTML, in one line."""
    return re.sub(r"([\\`\[\]|])", r"\\\1", html.escape(clean(text), quote=False))


def _number(value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
