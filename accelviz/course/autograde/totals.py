"""Totals of a course: points of all assignments, late days, grade books of Canvas and Moodle."""

from __future__ import annotations

import csv
import datetime
import math
import stat
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from accelviz.course.autograde.folder import Course
from accelviz.course.autograde.tables import read_table
from accelviz.errors import ArgumentError

#: Columns of grade books that name a student, in order of preference (Canvas, then Moodle).
IDENTIFIERS = ("SIS Login ID", "SIS User ID", "Username", "ID number", "Email address", "ID")
_DAY = datetime.timedelta(days=1)
#: Largest `timestamp.txt` that is read.
_STAMP_BYTES = 200


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
        A row for each student: `student`, a column for each assignment (0 if it is missing or was
        set aside), `total`, `max`, `late_days`, and `remarks`: what is late, missing, set aside or
        not yet graded by hand.

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
    general = {name: due.get((name, ""), datetime.datetime.max) for name in known}
    submitted = {path.name for path in (root / "submitted").glob("[!.]*") if path.is_dir()}
    maxima = grades.groupby(["assignment", "student"])["max"].sum().groupby("assignment").max()
    rows = []
    for student in sorted({*grades["student"], *submitted}):
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
                stamp = _stamped(folder)
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
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            name = (row.get("assignment") or "").strip()
            full_name = next((item for item in known if _is(item, name)), "")
            try:
                date = datetime.datetime.fromisoformat((row.get("due") or "").strip())
            except ValueError:
                date = None
            if not full_name or date is None or date.tzinfo is not None:
                expected = "assignment,due,student with lines such as A1,2026-05-04 23:59,"
                raise ArgumentError(f"{path}:{line}", f"it has {dict(row)}", expected)
            dates[full_name, (row.get("student") or "").strip()] = date
    return dates


def _is(full_name: str, name: str) -> bool:
    """Whether a name is that of an assignment, or its part before the first dash."""
    return name in (full_name, full_name.split("-")[0])


def handed_in(folder: Path, *, trust_stamps: bool = False) -> datetime.datetime | None:
    """Return when a submission was handed in, with a zone; None if nothing says so.

    That is the time of its notebook in the instructor's folder, or nbgrader's stamp if it is later:
    a student can pack a stamp too, and gains nothing by it. A trusted stamp counts alone.
    """
    stamp = _stamped(folder)
    if stamp is not None and trust_stamps:
        return stamp
    notebooks = (path.lstat() for path in folder.glob("*.ipynb"))
    times = [datetime.datetime.fromtimestamp(book.st_mtime).astimezone() for book in notebooks]
    return max([*times, *([] if stamp is None else [stamp])], default=None)


def _stamped(folder: Path) -> datetime.datetime | None:
    """Return the time in nbgrader's `timestamp.txt`, UTC if it names no zone; None without one."""
    stamp = folder / "timestamp.txt"
    try:
        if not stat.S_ISREG(stamp.lstat().st_mode) or stamp.stat().st_size > _STAMP_BYTES:
            return None  # a pipe would never end
        time = pd.Timestamp(stamp.read_text("utf-8").strip().removesuffix("UTC").strip())
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

    Students are found by the first column of `IDENTIFIERS` that the export has, also by the part of
    an address before the @. Columns are filled that begin with an assignment's name, or the part of
    it before the first dash, such as "A1 (4711)" of Canvas; "total" fills the total.

    Returns
    -------
    list of str, list of str
        Students without a row in the grade book, and columns that were filled.

    Raises
    ------
    ArgumentError
        If the export has no column of `IDENTIFIERS`, or none for an assignment.
    """
    with export.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = list(csv.reader(file)) or [[]]
    identifier = next((name for name in IDENTIFIERS if name in header), "")
    names = [
        name for name in frame.columns if name not in ("student", "max", "late_days", "remarks")
    ]
    names_by_index = {}
    for index, title in enumerate(header):
        word = title.split("(")[0].removeprefix("Assignment:").strip()
        if name := next((name for name in names if word and _is(name, word.split()[0])), ""):
            names_by_index[index] = name
    if not identifier or not names_by_index:
        expected = f"a column of {', '.join(IDENTIFIERS)}, and one such as A1 (4711)"
        raise ArgumentError(str(export), f"it has the columns {', '.join(header)[:300]}", expected)
    points, left = frame.set_index("student"), {*frame["student"]}
    for row in rows:
        student = row[header.index(identifier)].strip() if len(row) == len(header) else ""
        student = student if student in points.index else student.split("@")[0]
        if student in points.index:
            left.discard(student)
            for index, name in names_by_index.items():
                row[index] = f"{points.loc[student, name]:g}"
    with target.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return sorted(left), [header[index] for index in names_by_index]
