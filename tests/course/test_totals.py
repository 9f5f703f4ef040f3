"""Totals of a course: late days, missing submissions, grade books of Canvas and Moodle."""

# ruff: noqa: E402 (what is tested needs what is skipped for)

import csv
import datetime
import os
import sys
import time

import pytest

nbformat = pytest.importorskip("nbformat", reason="assignments are notebooks")

from accelviz import cli
from accelviz.course.autograde import tables
from accelviz.course.autograde.tables import BY_HAND, Graded, Row
from accelviz.course.autograde.totals import fill, totals
from accelviz.errors import ArgumentError

NAMES = ("A1-counting-sort", "A2-block-partition")
DUE = """assignment,due,student
A1,2026-05-04 12:00,
A2-block-partition,2026-05-11,
A2,2026-05-20,eva
"""


@pytest.fixture
def zone(monkeypatch):
    """Return a function that sets the local time zone until the test ends."""

    def use(name):
        monkeypatch.setenv("TZ", name)
        getattr(time, "tzset", int)()  # Windows has none

    use("UTC")
    yield use
    monkeypatch.undo()
    getattr(time, "tzset", int)()


@pytest.fixture
def course(tmp_path, zone):
    """Return a course: ada in time, bob late, eva with a date of her own, max with nothing."""
    for name in NAMES:
        (tmp_path / "source" / name).mkdir(parents=True)
        nbformat.write(nbformat.v4.new_notebook(), tmp_path / "source" / name / f"{name}.ipynb")
    times = {
        ("ada", 0): "2026-05-04 11:59:59 UTC",
        ("ada", 1): "2026-05-10 08:00",
        ("bob", 0): "2026-05-05 13:00:00",
        ("bob", 1): "2026-05-11 00:00:01",
        ("eva", 1): "2026-05-20 00:00:00",
    }
    graded = []
    for (student, number), text in times.items():
        folder = tmp_path / "submitted" / student / NAMES[number]
        folder.mkdir(parents=True)
        (folder / "timestamp.txt").write_text(text)
        rows = [Row("a", 8.0 + number, 10.0), Row("b", 1.0, 10.0)]
        graded.append(Graded(student, NAMES[number], rows))
    graded[0].rows.append(Row("c", None, 5.0, problem=BY_HAND))
    (tmp_path / "submitted" / "max").mkdir()
    tables.write_table(tables.table(graded), tmp_path / "grades-by-question.csv")
    (tmp_path / "due.csv").write_text(DUE)
    return tmp_path


def test_late_days_cost_what_is_not_free(course):
    frame = totals(course, free_days=1, penalty=10.0).set_index("student")
    assert frame["total"].to_dict() == {"ada": 19.0, "bob": 8.1 + 9.0, "eva": 10.0, "max": 0.0}
    assert frame["late_days"].to_dict() == {"ada": 0, "bob": 3, "eva": 0, "max": 0}
    assert set(frame["max"]) == {45.0}
    assert frame.loc["ada", "remarks"] == "A1-counting-sort: not all graded by hand"
    first, second = frame.loc["bob", "remarks"].split("; ")
    assert first == "A1-counting-sort: 2 days late, 0.9 points less"
    assert second == "A2-block-partition: 1 day late, 1 points less"
    assert frame.loc["max", "remarks"].count("missing") == 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no tzset")
def test_stamps_in_utc_are_compared_with_local_due_dates(course, zone):
    """Bob's of 13:00 UTC is one of 9:00 in New York, and his other one of the evening before."""
    zone("America/New_York")
    assert totals(course)["late_days"].tolist() == [0, 1, 0, 0]
    zone("Asia/Tokyo")
    assert totals(course)["late_days"].tolist() == [1, 3, 1, 0]


@pytest.mark.parametrize(
    "text",
    ["", "NaT", "nonsense", "now", "2026Q4", "9999999-01-01", "0001-01-01", "x" * 10_000, None],
)
def test_a_stamp_that_is_none_gives_way_to_the_notebook_s_time(course, text):
    folder = course / "submitted" / "bob" / NAMES[0]
    (folder / "timestamp.txt").unlink()
    if text is None:
        os.mkfifo(folder / "timestamp.txt")
    else:
        (folder / "timestamp.txt").write_text(text)
    nbformat.write(nbformat.v4.new_notebook(), folder / f"{NAMES[0]}.ipynb")
    os.utime(folder / f"{NAMES[0]}.ipynb", (0, 0))
    assert totals(course)["late_days"].tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("name", [NAMES[0], "renamed"])
def test_a_forged_stamp_gains_nothing(course, name):
    """Ada hands in two days late, with a stamp from before; bob's stamp is the exchange's."""
    for student, text in (("ada", "2026-05-06 11:00"), ("bob", "2026-05-01 11:00")):
        notebook = course / "submitted" / student / NAMES[0] / f"{name}.ipynb"
        nbformat.write(nbformat.v4.new_notebook(), notebook)
        seconds = datetime.datetime.fromisoformat(text).timestamp()
        os.utime(notebook, (seconds, seconds))
    frame = totals(course, penalty=10.0).set_index("student")
    assert frame["late_days"].to_dict() == {"ada": 2, "bob": 3, "eva": 0, "max": 0}
    assert "timestamp.txt, which is not trusted" in frame.loc["ada", "remarks"]
    assert "timestamp.txt" not in frame.loc["bob", "remarks"]
    assert totals(course, trust_stamps=True)["late_days"].tolist() == [0, 3, 0, 0]


def test_without_dates_or_stamps_nothing_is_late(course):
    (course / "due.csv").unlink()
    assert set(totals(course)["late_days"]) == {0}
    (course / "due.csv").write_text(DUE)
    folder = course / "submitted" / "ada" / NAMES[0]
    (folder / "timestamp.txt").unlink()
    assert totals(course)["late_days"][0] == 0
    nbformat.write(nbformat.v4.new_notebook(), folder / f"{NAMES[0]}.ipynb")
    os.utime(folder / f"{NAMES[0]}.ipynb", (4e9, 4e9))  # in the year 2096
    assert totals(course)["late_days"][0] > 25_000


@pytest.mark.parametrize(("seconds", "late"), [(1 << 40, True), (-(1 << 40), False)])
def test_a_time_of_another_age_stops_no_totals(course, monkeypatch, seconds, late):
    folder = course / "submitted" / "bob" / NAMES[0]
    (folder / "timestamp.txt").unlink()
    (folder / "T1.ipynb").touch()
    state = os.stat_result((0, 0, 0, 0, 0, 0, 0, seconds, seconds, seconds))
    monkeypatch.setattr(type(folder), "lstat", lambda _: state)
    assert (totals(course).set_index("student").loc["bob", "late_days"] > 9_000) == late


def test_a_misspelt_name_in_the_dates_shows(course):
    (course / "due.csv").write_text(f"{DUE}A1,2026-05-20,Bob\n")
    frame = totals(course).set_index("student")
    assert frame.loc["Bob", "remarks"].count("missing") == 2
    assert frame.loc["bob", "late_days"] == 3


def test_a_folder_s_name_is_printed_as_in_the_table_of_grades(course, capsys):
    (course / "submitted" / "e\x1b[31mve").mkdir()
    assert cli.main(["assignments", "totals", str(course)]) == 0
    printed = capsys.readouterr().out
    assert "e?[31mve: " in printed
    assert max(map(len, printed.splitlines()[:5])) < 100  # remarks have lines of their own
    assert "\x1b" not in (course / "totals.csv").read_text()


@pytest.mark.parametrize(
    "text", ["A9,2026-05-04,", "A1,tomorrow,", "A1,2026-05-04T12:00+02:00,", ",,"]
)
def test_a_wrong_date_is_refused_with_its_line(course, text):
    (course / "due.csv").write_text(f"assignment,due,student\n{text}\n")
    with pytest.raises(ArgumentError, match="due.csv:2"):
        totals(course)


@pytest.mark.parametrize("name", ["due.csv", "export.csv"])
def test_a_table_that_a_spreadsheet_saved_in_another_encoding_is_refused(course, capsys, name):
    (course / name).write_bytes("assignment,due,student\nA1,2026-05-04,Jörg\n".encode("latin1"))
    options = ["--fill", str(course / "export.csv")] if name == "export.csv" else []
    assert cli.main(["assignments", "totals", str(course), *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{name}: it cannot be read: 'utf-8' codec can't decode byte 0xf6" in line
    assert line.endswith("Expected: a table saved as CSV in UTF-8.")


def test_dates_that_are_a_folder_are_not_taken_for_none(course, capsys):
    (course / "due.csv").unlink()
    (course / "due.csv").mkdir()
    assert cli.main(["assignments", "totals", str(course)]) == 2
    assert "due.csv: Is a directory" in capsys.readouterr().err


CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,A1-counting-sort (77),A2 (78),Homework (79)
    Points Possible,,,,,25,20,5
"Ada, A.",1,u1,ada@school.edu,s,,,4
"Bob, B.",2,u2,bob,s,1,1,3
"Cy, C.",3,u3,cy,s,,,2
"""
MOODLE = """First name,Username,Email address,Assignment: A2 (Real),Course total (Real)
Ada,ada,ada@school.edu,-,-
"""


def test_grade_books_of_canvas_and_moodle_are_filled(course, tmp_path, capsys):
    frame, export = totals(course), tmp_path / "export.csv"
    export.write_text(CANVAS)
    left, filled = fill(export, frame, tmp_path / "out.csv")
    assert (left, filled) == (["eva", "max"], ["A1-counting-sort (77)", "A2 (78)"])
    rows = list(csv.reader((tmp_path / "out.csv").read_text().splitlines()))
    assert rows[1] == next(csv.reader([CANVAS.split("\n")[1]]))
    assert [row[-3:] for row in rows[2:]] == [["9", "10", "4"], ["9", "10", "3"], ["", "", "2"]]
    export.write_text(MOODLE)
    assert cli.main(["assignments", "totals", str(course), "--fill", str(export)]) == 0
    assert "bob is not in the grade book" in capsys.readouterr().out
    assert (
        (tmp_path / "filled-export.csv")
        .read_text()
        .splitlines()[1]
        .startswith("Ada,ada,ada@school.edu,10,-")
    )
    assert (
        (course / "totals.csv")
        .read_text()
        .startswith("student,A1-counting-sort,A2-block-partition,total")
    )
    export.write_text("a,b\n1,2\n")
    with pytest.raises(ArgumentError, match="one such as A1"):
        fill(export, frame, tmp_path / "out.csv")


def test_students_are_found_by_the_column_that_names_most_of_them(course, tmp_path):
    """Folders are named by the second of Canvas's columns; two addresses begin alike."""
    export, out = tmp_path / "export.csv", tmp_path / "out.csv"
    export.write_text(
        "Student,ID,SIS User ID,SIS Login ID,A1 (77)\n"
        "A,1,ada,a1@x.edu,\nB,2,bob,ada,\nM,3,max,m3@x.edu,\n"
    )
    assert fill(export, totals(course), out)[0] == ["eva"]
    assert [row[-1] for row in csv.reader(out.read_text().splitlines()[1:])] == ["9", "9", "0"]
    export.write_text("Email address,A1 (Real)\nada@a.edu,-\nada@b.edu,-\nbob@a.edu,-\n")
    assert fill(export, totals(course), out)[0] == ["ada", "eva", "max"]
    assert [row[-1] for row in csv.reader(out.read_text().splitlines()[1:])] == ["-", "-", "9"]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_tables_may_be_separated_as_spreadsheets_of_other_languages_do(course, capsys, separator):
    for name, text in {"export.csv": MOODLE, "due.csv": DUE}.items():
        (course / name).write_text(text.replace(",", separator))
    command = ["assignments", "totals", str(course), "--fill", str(course / "export.csv")]
    assert cli.main(command) == 0
    assert "ada is not in the grade book" not in capsys.readouterr().out
    (course / "due.csv").write_text(DUE)
    assert (course / "filled-export.csv").read_text().splitlines()[1].endswith("10,-")
    assert cli.main([*command[:-1], "."]) == 2
    assert "directory" in capsys.readouterr().err.lower()


def test_an_assignment_that_nobody_has_handed_in_costs_nobody_points(course):
    (course / "source" / "A3-later").mkdir()
    notebook = course / "source" / NAMES[0] / f"{NAMES[0]}.ipynb"
    (course / "source" / "A3-later" / "A3-later.ipynb").write_bytes(notebook.read_bytes())
    frame = totals(course)
    assert "A3-later" not in frame
    assert not frame["remarks"].str.contains("A3").any()


def test_students_are_found_by_columns_of_any_language_and_by_first_and_last_name(course, tmp_path):
    export, out = tmp_path / "export.csv", tmp_path / "out.csv"
    export.write_text("Vorname,Anmeldename,Gruppe,Aufgabe: A1 (Punkte)\nE,eva,1,-\nB,bob,ada,-\n")
    assert fill(export, totals(course), out)[0] == ["ada", "max"]
    assert [row[-1] for row in csv.reader(out.read_text().splitlines()[1:])] == ["0", "9"]
    frame = totals(course).replace({"student": {"ada": "Ada King"}})
    export.write_text("First name,Last name,ID number,A1 (Real)\nAda,King,7,-\n")
    assert fill(export, frame, out)[0] == ["bob", "eva", "max"]
    assert out.read_text().splitlines()[1] == "Ada,King,7,9"
