"""The table of grades: a row a question, its totals, and its file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from accelviz.course.autograde.words import clean
from accelviz.files import written_whole


class Row(NamedTuple):
    """A line of a submission's grades; None where there is nothing to say."""

    question: str
    points: float | None = None
    max: float | None = None
    seconds: float | None = None
    problem: str = ""


#: Columns of the table of grades.
COLUMNS = ("student", "assignment", *Row._fields)
_WORDS = frozenset(("student", "assignment", "question", "problem", "scheme", "graph"))
#: Where a cell begins for a spreadsheet that takes ; for the end of one, too.
_FORMULA = re.compile(r"(^|;\s*)(?=[=+\-@])")
_SAFE = re.compile(r"(^|;\s*)'(?=[=+\-@])")
#: The problem of a question that nobody has graded yet.
BY_HAND = "to be graded by hand"


@dataclass
class Graded:
    """What came of a submission.

    Attributes
    ----------
    student, assignment : str
    rows : list of Row
    remarks : list of str
        What an instructor may want to know beside failed tests.
    set_aside : str
        Why it was not graded, "" if it was.
    """

    student: str
    assignment: str
    rows: list[Row] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    set_aside: str = ""


def table(submissions: Sequence[Graded]) -> pd.DataFrame:
    """Return the grades, a row for each question, with the columns `COLUMNS`.

    `points` is missing where they are to be given by hand, and where a submission was set aside.
    """
    rows = [
        (graded.student, graded.assignment, *row)
        for graded in submissions
        for row in [*graded.rows, *([Row("", problem=graded.set_aside)] * bool(graded.set_aside))]
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    numbers = dict.fromkeys(("points", "max", "seconds"), "float64")
    return frame.astype(numbers).round({"seconds": 2})


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table of grades whole, with no text in it that a spreadsheet takes for a formula."""
    safe = frame.copy()
    for name in _WORDS.intersection(frame.columns):
        safe[name] = [_FORMULA.sub(r"\1'", clean(text)) for text in frame[name].fillna("")]
    with written_whole(path) as temporary:
        safe.to_csv(temporary, index=False)


def totals(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each submission, those set aside included.

    Parameters
    ----------
    frame : DataFrame
        With the columns `COLUMNS`.

    Returns
    -------
    DataFrame
        `student`, `assignment`, `points`, `max`, `by_hand` (points that nobody has given yet, which
        are not among the points) and `problem`.
    """
    rows = []
    for (student, assignment), rows_of_submission in frame.groupby(
        ["student", "assignment"], sort=False
    ):
        graded, pending = (
            rows_of_submission["max"].notna(),
            rows_of_submission["problem"] == BY_HAND,
        )
        told = rows_of_submission.loc[rows_of_submission["question"] == "", "problem"]
        numbers = (
            rows_of_submission["points"].sum() if graded.any() else None,
            rows_of_submission["max"].sum(),
        )
        by_hand = rows_of_submission.loc[pending, "max"].sum()
        rows.append((student, assignment, *numbers, by_hand, "; ".join(told)))
    names = ["student", "assignment", "points", "max", "by_hand", "problem"]
    return pd.DataFrame(rows, columns=names)


def read_table(path: Path) -> pd.DataFrame:
    """Read a table of grades back; an empty one if there is none."""
    words = dict.fromkeys(("student", "assignment", "question", "problem"), str)
    missing = {name: [""] for name in COLUMNS if name not in words}
    try:
        frame = pd.read_csv(path, dtype=words, keep_default_na=False, na_values=missing)
    except (OSError, ValueError):
        return table([])
    if list(frame.columns) != list(COLUMNS):
        return table([])
    for name in words:
        frame[name] = [_SAFE.sub(r"\1", text) for text in frame[name]]
    return frame


def merged(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return a table of grades with the submissions of another one in place of its own.

    Parameters
    ----------
    old, new : DataFrame
        With the columns `COLUMNS`.
    """
    keys = ["student", "assignment"]
    graded = pd.MultiIndex.from_frame(new[keys])
    others = old[~pd.MultiIndex.from_frame(old[keys]).isin(graded)]
    both = pd.concat([others, new], ignore_index=True) if len(others) else new
    return both.sort_values(keys, kind="stable", ignore_index=True)
