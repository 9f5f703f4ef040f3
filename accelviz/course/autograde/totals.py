"""Totals of a course: points of all assignments, late days, grade books of Canvas and Moodle."""

from __future__ import annotations

import csv
import datetime
import io
import math
import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from accelviz.course.autograde.assignments import full_name
from accelviz.course.autograde.common import clean
from accelviz.course.autograde.files import open_file
from accelviz.course.autograde.folder import Course
from accelviz.course.autograde.tables import read_table
from accelviz.errors import ArgumentError

_DAY = datetime.timedelta(days=1)
#: Largest `timestamp.txt` that is read.
_STAMP_BYTES = 200
#: Latest time of a file, in the year 2106.
_LATEST = 1 << 32


def totals(
    root: Path, *, free_days: int = 0, penalty: float = 0.0, trust_stamps: bool = False
) -> pd.DataFrame:
    """Add up the points of `grades-by-question.csv`, less what was handed in late.

    Parameters
    ----------
    root : Path
        A course folder. Its `due.csv`, if there is one, has the columns `assignment`, `due` (ISO
        8601, local time without a zone) and `student` (empty: all). A student's own date counts.
    free_days : int
        Late days that each student has for nothing, over all assignments in order of their dates.
    penalty : float
        Percent of the points earned in the assignment that each further late day costs.
    trust_stamps : bool
        Whether nbgrader's stamps count where a notebook is newer; see `handed_in`.

    Returns
    -------
    DataFrame
        A row for each student: `student`, a column for each assignment that somebody has handed in
        (0 if it is missing or was set aside), `total`, `max`, `late_days`, and `remarks`: what is
        late, missing, set aside or not yet graded by hand.

    Raises
    ------
    ArgumentError
        If there are no grades yet, or `due.csv` cannot be read.
    """
    grades, known = read_table(root / "grades-by-question.csv"), Course(root).assignments()
    if grades.empty:
        path, expected = (
            str(root / "grades-by-question.csv"),
            "that of `accelviz assignments grade`",
        )
        raise ArgumentError(path, "it has no grades", expected)
    due = _due_dates(root / "due.csv", known)
    known = {name: known[name] for name in known if name in {*grades["assignment"]}}
    general = {name: due.get((name, ""), datetime.datetime.max) for name in known}
    submitted = {clean(path.name) for path in (root / "submitted").glob("[!.]*") if path.is_dir()}
    maxima = grades.groupby(["assignment", "student"])["max"].sum().groupby("assignment").max()
    rows = []
    with_own_date = {student for _, student in due} - {""}  # a row shows that one was misspelt
    for student in sorted({*grades["student"], *submitted, *with_own_date}):
        row: dict[str, object] = {"student": student}
        late_days, total, remarks = 0, 0.0, list[str]()
        for name in sorted(known, key=lambda name: (general[name], name)):
            of_both = grades[(grades["student"] == student) & (grades["assignment"] == name)]
            points = float(of_both["points"].sum())
            if of_both.empty:
                remarks.append(f"{name}: missing")
            elif of_both["max"].isna().all():
                remarks.append(f"{name}: set aside")
            elif (of_both["max"].notna() & of_both["points"].isna()).any():
                remarks.append(f"{name}: not all graded by hand")
            date = due.get((name, student), general[name])
            folder = root / "submitted" / student / name
            time = None if of_both.empty else handed_in(folder, trust_stamps=trust_stamps)
            days = _days_late(time, date)
            if days:
                charged = max(0, late_days + days - free_days) - max(0, late_days - free_days)
                late_days += days
                lost = round(min(1.0, charged * penalty / 100) * points, 2)
                late = f"{days} day{'s' * (days > 1)} late"
                remarks.append(f"{name}: {late}, {lost:g} points less")
                stamp = stamped(folder)
                if stamp is not None and _days_late(stamp, date) < days:
                    remarks.append(f"{name}: its timestamp.txt, which is not trusted, is earlier")
                points -= lost
            row[name] = round(points, 2)
            total += points
        row |= {"total": round(total, 2), "max": float(maxima.sum()), "late_days": late_days}
        rows.append({**row, "remarks": "; ".join(remarks)})
    columns = ["student", *sorted(known), "total", "max", "late_days", "remarks"]
    return pd.DataFrame(rows)[columns]


def _due_dates(path: Path, known: Mapping[str, object]) -> dict[tuple[str, str], datetime.datetime]:
    """Return the dates by assignment and student ("" for all)."""
    dates = {}
    header, *rows = (_csv_rows(path) if path.exists() else []) or [[]]
    for line, cells in enumerate(rows, start=2):
        row = dict(zip(header, map(str.strip, cells), strict=False))
        assignment = full_name(row.get("assignment", ""), known)
        try:
            date = datetime.datetime.fromisoformat(row.get("due", ""))
        except ValueError:
            date = None
        if cells and (not assignment or date is None or date.tzinfo is not None):
            expected = "assignment,due,student with lines such as A1,2026-05-04 23:59,"
            raise ArgumentError(f"{path}:{line}", f"it has {row}", expected)
        if date is not None:
            dates[assignment, row.get("student", "")] = date
    return dates


def _csv_rows(path: Path) -> list[list[str]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
        separator = max(",;\t", key=text.partition("\n")[0].count)
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except (UnicodeDecodeError, csv.Error) as error:
        reason = f"it cannot be read: {error}"
        raise ArgumentError(str(path), reason, "a table saved as CSV in UTF-8") from error


def handed_in(folder: Path, *, trust_stamps: bool = False) -> datetime.datetime | None:
    """Return when a submission was handed in, with a zone; None if nothing says so.

    That is the time of its notebook in the instructor's folder, or nbgrader's stamp if it is later:
    a student can pack a stamp too, and gains nothing by it. A trusted stamp counts alone.
    """
    stamp = stamped(folder)
    if stamp is not None and trust_stamps:
        return stamp
    seconds = (path.lstat().st_mtime for path in folder.glob("*.ipynb"))
    within = (min(max(0, time), _LATEST) for time in seconds)  # an archive may name any year
    times = [datetime.datetime.fromtimestamp(time).astimezone() for time in within]
    return max([*times, *([] if stamp is None else [stamp])], default=None)


def stamped(folder: Path) -> datetime.datetime | None:
    """Return the time in nbgrader's `timestamp.txt`, UTC if it names no zone; None without one."""
    try:
        with open(open_file(folder / "timestamp.txt"), "rb", buffering=0) as stamp:
            data = stamp.read(_STAMP_BYTES + 1) or b""  # None of a pipe that waits
        text = data.decode().strip().removesuffix("UTC").strip()
        if len(data) > _STAMP_BYTES or not re.match(r"\d{4}-\d\d-\d\d", text):
            return None  # such as "now"
        time = pd.Timestamp(text)
        aware = time if time.tzinfo else time.tz_localize("UTC")
        return None if aware is pd.NaT else aware.to_pydatetime().astimezone()
    except (OSError, ValueError, OverflowError):  # OverflowError: of the years 1 and 9999
        return None


def _days_late(time: datetime.datetime | None, due: datetime.datetime) -> int:
    """Return the days, rounded up; 0 if no time is known."""
    if time is None or due == datetime.datetime.max:
        return 0
    return max(0, math.ceil((time.replace(tzinfo=None) - due) / _DAY))


def fill(export: Path, frame: pd.DataFrame, target: Path) -> tuple[list[str], list[str]]:
    """Write points into a grade book that was exported from Canvas or Moodle, to be imported there.

    Students are found by the column that names most of them (the first of equal ones), also by the
    part of an address before the @, or by the first two (first and last name of Moodle); one whom
    several rows name is not found.
    Columns are filled that begin with an assignment's name, or the part of it before the first
    dash, such as "A1 (4711)" of Canvas, or have it behind a colon; "total" fills the total.

    Returns
    -------
    list of str, list of str
        Students without a row in the grade book, and columns that were filled.

    Raises
    ------
    ArgumentError
        If the export has no column for an assignment.
    """
    header, *rows = _csv_rows(export) or [[]]
    names = [
        name for name in frame.columns if name not in ("student", "max", "late_days", "remarks")
    ]
    names_by_index = {}
    for index, title in enumerate(header):
        texts = title.split("(")[0].split(":")  # "Assignment: A1 (Real)" of Moodle in any language
        full_names = [full_name(word, names) for text in texts for word in text.split()[:1]]
        if any(full_names):
            names_by_index[index] = next(filter(None, full_names))
    if not names_by_index:
        reason = f"it has the columns {', '.join(header)[:300]}"
        raise ArgumentError(str(export), reason, "one such as A1 (4711)")
    points = frame.set_index("student")

    def students_of_rows(columns: list[int]) -> list[str]:
        whole = [row if len(row) == len(header) else [""] * len(header) for row in rows]
        texts = [" ".join(row[index] for index in columns).strip() for row in whole]
        students = [text if text in points.index else text.split("@")[0] for text in texts]
        known = {name for name in points.index if students.count(name) == 1}
        return [student if student in known else "" for student in students]

    columns = [[index] for index in range(len(header)) if index not in names_by_index]
    by_column = map(students_of_rows, [*columns, [0, 1][: len(header)]])
    students = max(by_column, key=lambda students: sum(map(bool, students)))
    for row, student in zip(rows, students, strict=True):
        if student:
            for index, name in names_by_index.items():
                row[index] = f"{points.loc[student, name]:g}"
    with target.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    left = sorted({*points.index} - {*students})
    return left, [header[index] for index in names_by_index]
