"""The table of grades, a row a question, and its file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from accelviz.course.autograde.common import clean
from accelviz.files import written_whole


class Row(NamedTuple):
    """A line of a submission's grades; None where there is nothing to say."""

    question: str
    points: float | None = None
    max: float | None = None
    seconds: float | None = None
    problem: str = ""


_KEYS = ["student", "assignment"]
#: Columns of the table of grades.
COLUMNS = (*_KEYS, *Row._fields)
_NUMBERS = ("points", "max", "seconds")
_WORDS = (*_KEYS, "question", "problem", "scheme", "graph")
#: Where a cell begins for a spreadsheet that takes ; for the end of one, too.
_FORMULA = re.compile(r"(^|;\s*)(?=[=+\-@])")
_SAFE = re.compile(r"(^|;\s*)'(?=[=+\-@])")
#: The problem of a question that nobody has graded yet.
BY_HAND = "to be graded by hand"


@dataclass
class Graded:
    """What came of a submission."""

    student: str
    assignment: str
    rows: list[Row] = field(default_factory=list)
    #: What an instructor may want to know beside failed tests.
    remarks: list[str] = field(default_factory=list)
    #: Why it was not graded, "" if it was.
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
    return frame.astype(dict.fromkeys(_NUMBERS, "float64")).round({"seconds": 2})


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table of grades whole, with no text in it that a spreadsheet takes for a formula."""
    safe = frame.copy()
    for name in frame.columns.intersection(_WORDS):
        safe[name] = [_FORMULA.sub(r"\1'", clean(text)) for text in frame[name].fillna("")]
    with written_whole(path) as temporary:
        safe.to_csv(temporary, index=False)


def read_table(path: Path) -> pd.DataFrame:
    """Read a table of grades back; an empty one if there is none."""
    words = {name: str for name in COLUMNS if name not in _NUMBERS}
    missing = {name: [""] for name in _NUMBERS}
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
    """Return a table of grades with the submissions of another one in place of its own."""
    graded = pd.MultiIndex.from_frame(new[_KEYS])
    others = old[~pd.MultiIndex.from_frame(old[_KEYS]).isin(graded)]
    both = pd.concat([others, new], ignore_index=True) if len(others) else new
    return both.sort_values(_KEYS, kind="stable", ignore_index=True)


def points_line(graded: Graded) -> str:
    """Return a submission's points in words, or why it has none."""
    if graded.set_aside:
        return f"set aside: {clean(graded.set_aside)}"
    rows = table([graded])
    by_hand = rows.loc[rows["problem"] == BY_HAND, "max"].sum()
    points = f"{rows['points'].sum():g} of {rows['max'].sum() - by_hand:g}"
    return points + (f", {by_hand:g} more by hand" if by_hand else "")
