"""The table of grades, one row for each question of a submission, and its CSV file."""

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
    """Grade of one question, or a remark on the submission (question ""); None if not known."""

    question: str
    points: float | None = None
    max: float | None = None
    seconds: float | None = None
    problem: str = ""


_KEYS = ["student", "assignment"]
#: Columns of the table of grades.
COLUMNS = (*_KEYS, *Row._fields)
_NUMBERS = ("points", "max", "seconds")
#: Beginning of a formula in a spreadsheet, which may also separate cells by ";", quote nothing in
#: front of one, and take signs of full width for plain ones.
_SIGNS = r"(?=[=+\-@\uff1d\uff0b\uff0d\uff20])"
_FORMULA, _QUOTED_FORMULA = (re.compile(rf'(^|;[\s"]*){quote}{_SIGNS}') for quote in ("", "'"))
#: Problem of a question without points so far.
BY_HAND = "to be graded by hand"


@dataclass
class Graded:
    """Result of grading a submission."""

    student: str
    assignment: str
    rows: list[Row] = field(default_factory=list)
    #: Messages for the instructor, other than failed tests.
    remarks: list[str] = field(default_factory=list)
    #: Reason why it was not graded, "" if it was.
    set_aside: str = ""


def table(submissions: Sequence[Graded]) -> pd.DataFrame:
    """Return the grades with the columns `COLUMNS`, one row for each question and remark.

    `points` is missing for questions to be graded by hand and for submissions that were set aside.
    """
    rows = []
    for graded in submissions:
        set_aside = [Row("", problem=graded.set_aside)] if graded.set_aside else []
        keys = (graded.student, graded.assignment)
        rows += [(*keys, *row) for row in (*graded.rows, *set_aside)]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype(dict.fromkeys(_NUMBERS, "float64")).round({"seconds": 2})


def as_cell(text: object) -> str:
    """Return a text in one line, quoted where a spreadsheet would execute it as a formula."""
    return _FORMULA.sub(r"\1'", clean(text))


def from_cell(cell: str) -> str:
    """Return the text of a cell, without the quotes of `as_cell`."""
    return _QUOTED_FORMULA.sub(r"\1", cell)


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table to a CSV file; text that a spreadsheet would execute as a formula is quoted."""
    quoted = frame.copy()
    for name in frame.select_dtypes(["object", "string"]):
        quoted[name] = [as_cell(text) for text in frame[name].fillna("")]
    with written_whole(path) as temporary:
        quoted.to_csv(temporary, index=False)


def read_table(path: Path) -> pd.DataFrame:
    """Read a table of grades from a file; return an empty one if it has none."""
    text_columns = {name: str for name in COLUMNS if name not in _NUMBERS}
    missing = {name: [""] for name in _NUMBERS}
    try:
        frame = pd.read_csv(path, dtype=text_columns, keep_default_na=False, na_values=missing)
    except (OSError, ValueError):
        return table([])
    if list(frame.columns) != list(COLUMNS):
        return table([])
    for name in text_columns:
        frame[name] = list(map(from_cell, frame[name]))
    return frame


def merged(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return `old` with its rows of the submissions in `new` replaced by those of `new`."""
    graded = pd.MultiIndex.from_frame(new[_KEYS])
    unchanged = old[~pd.MultiIndex.from_frame(old[_KEYS]).isin(graded)]
    rows = pd.concat([unchanged, new], ignore_index=True) if len(unchanged) else new
    return rows.sort_values(_KEYS, kind="stable", ignore_index=True)


def missing(old: pd.DataFrame, new: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the student and the assignment of each submission in `old` that is not in `new`."""
    pairs, present = (frame[_KEYS].itertuples(index=False, name=None) for frame in (old, new))
    return sorted({*pairs} - {*present})


def points_line(graded: Graded) -> str:
    """Return a submission's points as text, or the reason why it has none."""
    if graded.set_aside:
        return f"set aside: {clean(graded.set_aside)}"
    rows = table([graded])
    by_hand = rows.loc[rows["points"].isna(), "max"].sum()
    points = f"{rows['points'].sum():g} of {rows['max'].sum() - by_hand:g}"
    return points + (f", {by_hand:g} more by hand" if by_hand else "")
