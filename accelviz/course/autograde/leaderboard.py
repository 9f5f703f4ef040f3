"""A table of a class's own partition schemes over hidden graphs, the papers' beside them."""

from __future__ import annotations

import html
import math
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd

from accelviz.course.autograde.apart import start_server
from accelviz.course.autograde.assignments import Assignment, choose, find_assignments
from accelviz.course.autograde.board import references
from accelviz.course.autograde.border import Limits, require_border
from accelviz.course.autograde.cells import is_locked, is_solution, is_test
from accelviz.course.autograde.folder import Course
from accelviz.course.autograde.grading import examined, submissions
from accelviz.course.autograde.matching import defined
from accelviz.course.autograde.preflight import examine
from accelviz.course.autograde.problems import Checked
from accelviz.course.autograde.sandbox import run
from accelviz.course.autograde.words import clean
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
    home = folder / "source"
    known = find_assignments(home if home.is_dir() else None)
    (wanted,) = choose(known, [assignment])
    if seed is None:
        seed = Course(folder).seed() if home.is_dir() else 0
    lines: list[dict[str, Any]] = []
    candidates = list(_submitted(folder / "submitted" if home.is_dir() else folder, wanted))
    if not candidates:
        raise ArgumentError(
            str(folder),
            f"there is no submission of {assignment} in it",
            f"<student>/{assignment}/{assignment}.ipynb",
        )
    limits = limits or Limits()
    require_border()
    start_server()
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:

        def run(student: str, checked: Checked | str) -> list[dict[str, Any]]:
            rows = _run(checked, seed, limits, folder)
            progress(student)
            return [{"student": student, **row} for row in rows]

        for rows in pool.map(run, *zip(*candidates, strict=True)):
            lines += rows
    lines += [{"student": PAPERS, **row} for row in references(seed)]
    return _ranked(pd.DataFrame(lines))


def _submitted(folder: Path, wanted: Assignment) -> list[tuple[str, Checked | str]]:
    candidates: dict[str, Checked | str] = {}
    for student, folder_of_student in submissions(folder):
        if folder_of_student.name == wanted.name:
            candidates[student] = examined(folder_of_student, wanted)
    for path in sorted(folder.glob("*/*.ipynb")):
        if path.stem == wanted.name and path.parent.name not in candidates:
            candidates[path.parent.name] = examine(path, [wanted])
    for path in sorted(folder.glob("*.ipynb")):
        candidates.setdefault(path.stem, examine(path, [wanted]))
    return sorted(candidates.items())


def _run(checked: Checked | str, seed: int, limits: Limits, root: Path) -> list[dict[str, Any]]:
    blank: dict[str, Any] = {"scheme": "", "graph": "", "exact_cover": False, "score": 0.0}
    if isinstance(checked, str) or checked.notebook is None:
        reason = checked if isinstance(checked, str) else " ".join(map(str, checked.problems))
        return [{**blank, "problem": reason}]
    notebook = checked.notebook
    names = _asked_for(checked.assignment)
    notebook.cells = [cell for cell in notebook.cells if not is_locked(cell) or not is_test(cell)]
    ask = "from accelviz.course.autograde.board import rows\n"
    ask += f"rows(_submission, {names!r}, {seed})"
    hidden = (str(root.resolve()),)
    try:
        _, answer = run(notebook, limits, checked.path.parent, hidden=hidden, last_test=ask)
    except Exception as error:  # whatever a submission leads to
        return [{**blank, "problem": f"{type(error).__name__}: {error}"[:300]}]
    if not isinstance(answer.value, list):
        return [{**blank, "problem": answer.problem or "it showed no result"}]
    problem = " ".join(["no class", *names]) + " derived from Strategy was found"
    return answer.value or [{**blank, "problem": problem}]


def _asked_for(assignment: Assignment | None) -> list[str]:
    """Return the classes that an assignment has students write."""
    cells = [] if assignment is None else assignment.released.cells
    return sorted({name for cell in cells if is_solution(cell) for name in defined(cell.source)})


def _ranked(frame: pd.DataFrame) -> pd.DataFrame:
    frame["total"] = (100 * frame.groupby(["student", "scheme"])["score"].transform("mean")).round(
        1
    )
    metrics = [name for name in frame.columns if name not in (*_FIRST, *_LAST)]
    frame = frame[[*_FIRST, *metrics, *_LAST]]
    ours = frame["student"] == PAPERS
    keys = pd.DataFrame({"ours": ours, "total": -frame["total"], "who": frame["student"]})
    keys["scheme"] = frame["scheme"]
    order = keys.sort_values([*keys.columns], kind="stable").index
    return frame.loc[order].reset_index(drop=True)


def markdown(frame: pd.DataFrame) -> str:
    """Return a leaderboard as a Markdown table, a line for each scheme.

    Metrics are means over the graphs; a graph's own column holds the score there, in percent.
    """
    metrics = [name for name in frame.columns if name not in (*_FIRST, *_LAST)]
    graphs = [name for name in dict.fromkeys(frame["graph"]) if name]
    head = ["rank", "student", "scheme", "exact cover", *metrics, *graphs, "total"]
    lines = [head, ["---"] * len(head)]
    rank = 0
    for (student, scheme), scheme_rows in frame.groupby(["student", "scheme"], sort=False):
        rank += student != PAPERS
        scores = dict(zip(scheme_rows["graph"], scheme_rows["score"], strict=True))
        lines.append(
            [
                str(rank) if student != PAPERS else "",
                _plain(student),
                _plain(scheme),
                f"{int(scheme_rows['exact_cover'].sum())} of {len(graphs)}",
                *(_number(scheme_rows[name].mean()) for name in metrics),
                *(_number(100 * scores.get(graph, math.nan)) for graph in graphs),
                _number(scheme_rows["total"].iloc[0]),
            ]
        )
    text = _lined(lines)
    problems = frame[frame["problem"].fillna("") != ""]
    told = [
        f"- {_plain(row.student)}{f', {row.graph}' if row.graph else ''}: {_plain(row.problem)}"
        for row in problems.itertuples()
    ]
    return "\n".join([text, *([""] if told else []), *told])


def _plain(text: object) -> str:
    """Return a text that is no Markdown and no HTML, in one line."""
    return re.sub(r"([\\`\[\]|])", r"\\\1", html.escape(clean(text), quote=False))


def _number(value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _lined(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    return "\n".join(
        "| "
        + " | ".join(
            "-" * width if cell == "---" else cell.ljust(width)
            for cell, width in zip(line, widths, strict=True)
        )
        + " |"
        for line in lines
    )
