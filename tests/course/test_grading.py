"""Grading of a class from the source to the table of grades, with exact points for each student.

The class is graded once. It has a perfect and a blank submission, wrong ones, and ones that hang,
crash, exhaust memory or are damaged and must not change the points of the others.
"""

# ruff: noqa: E402 (what is tested needs what is skipped for)

import contextlib
import shutil
import subprocess
import sys

import pandas as pd
import pytest

nbformat = pytest.importorskip("nbformat", reason="grading needs nbgrader")
pytest.importorskip("nbgrader", reason="grading needs nbgrader")
if sys.platform == "win32":
    pytest.skip("submissions are not confined on Windows", allow_module_level=True)

from nbgrader.apps.api import NbGraderAPI
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from tornado.log import app_log

from accelviz import cli
from accelviz.course.autograde import grading, tables
from accelviz.course.autograde.folder import Course, quiet
from accelviz.course.autograde.processes import start_server
from accelviz.course.autograde.release import release
from accelviz.errors import ArgumentError
from tests.course import tiny

# The class is graded once, by one worker.
pytestmark = pytest.mark.xdist_group("grader")

QUESTIONS = ["test-double", "test-total", "why"]
LOOP = "def double(x):\n    while True: pass"
CRASH = "import os\ndef double(x): os.abort()"
BOMB = "def total(values):\n    hoard = []\n    while True: hoard.append(bytes(2**26))"
LOUD = """
import sys, warnings
def double(x):
    warnings.warn("doubling")
    print("to stderr", file=sys.stderr)
    print("and more")
    return 2 * x
"""
#: Answers of each student, and the points of the two tests. The third question has no test.
ANSWERS = {
    "perfect": ({}, 3, 4),
    "wrong-sign": ({"double": "def double(x): return abs(2 * x)"}, 0, 4),
    "rounds": ({"total": "def total(values): return sum(values, 0.0)"}, 3, 3),
    "half a sign": ({"double": "def double(x): raise ValueError('\\ud800')"}, 0, 4),
    "gives up": ({"total": "def total(values): raise ValueError('no idea')"}, 3, 0),
    "only-visible": (
        {"total": "def total(values): return len(values) * (len(values) + 1) // 2"},
        3,
        2,
    ),
    "syntax": ({"double": "def double(x):\n    retrun 2 * x"}, 0, 4),
    "renamed": ({"double": "def twice(x): return 2 * x"}, 0, 4),
    "forgets-return": ({"double": "def double(x): 2 * x"}, 0, 4),
    "loud": ({"double": LOUD}, 3, 4),
    "loops": ({"double": LOOP}, 0, 4),
    "crashes": ({"double": CRASH}, 0, 4),
    "hoards": ({"total": BOMB}, 3, 0),
}
#: Students whose file is damaged and whose points are complete.
DAMAGED = ("pasted", "stripped", "misnamed")
SETTINGS = {"cell_seconds": 4.0, "seconds": 120.0, "memory_gib": 1.0}


def hand_in(course, student, notebook, name=f"{tiny.NAME}.ipynb"):
    folder = course / "submitted" / student / tiny.NAME
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / name)
    return folder


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shipped")
    tiny.write_source(folder)
    return folder


@pytest.fixture(scope="module")
def course(tmp_path_factory, shipped):
    root = tmp_path_factory.mktemp("a course") / "spring"
    assert release(root, shipped=shipped) == {"T1": "released"}
    out = nbformat.read(root / "release" / "T1" / "T1.ipynb", as_version=4)
    for student, (answers, *_) in ANSWERS.items():
        hand_in(root, student, tiny.answered(out, **answers))
    hand_in(root, "blank", out)
    whole = tiny.answered(out)
    hand_in(root, "misnamed", whole, "my T1 (2).ipynb")
    hand_in(root, "stripped", tiny.stripped(whole))
    moved = tiny.answered(out, double="double = (lambda add: lambda x: add([x, x]))(total)")
    moved.cells.insert(1, moved.cells.pop(tiny.place_of(moved, "total")))
    moved.cells[1].source = "import math\n" + moved.cells[1].source
    hand_in(root, "moved-up", moved)
    text = nbformat.writes(whole).encode()
    submitted = root / "submitted"
    for path, content in {
        "Zoë van Dyk/T1/T1.ipynb": b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"),
        "twice[2]/T1/T1.ipynb": text,
        "<img src=x onerror=run()>/T1/T1.ipynb": text,
        '";run();"/T1/T1.ipynb': text,
        "perfect /T1/T1.ipynb": text,
        "'=1+1/T1/T1.ipynb": text,
        "stray/T1.ipynb": text,
        "loose.ipynb": text,
        "submissions.zip": b"PK",
        "unsorted/T1.zip": b"PK",
        "packed/T1/T1.zip": b"PK",
        "inside/T1/T1/T1.ipynb": text,
        "short/t1/T1.ipynb": text,
        ".DS_Store": b"x",
        "cut-short/T1/T1.ipynb": text[:900],
        "deep/T1/T1.ipynb": b"[" * 200_000,
        "wordy/T1/T1.ipynb": b'{"nbformat": "%s"}' % (b"x" * 10**6),
        "old/T1/T1.ipynb": b'{"nbformat": 3, "nbformat_minor": 0, "worksheets": []}',
    }.items():
        (submitted / path).parent.mkdir(parents=True, exist_ok=True)
        (submitted / path).write_bytes(content)
    (submitted / "loud" / "T1" / "timestamp.txt").write_text("2026-05-04 11:59:59 UTC")
    for folder in ("nothing/T1", "elsewhere/T9"):
        (submitted / folder).mkdir(parents=True)
    tiny.pasted(whole, "test-total", after="why")
    hand_in(root, "pasted", whole)
    return root


@pytest.fixture(scope="module")
def results(course):
    return grading.grade(course, settings=SETTINGS)


@pytest.fixture(scope="module")
def grades(results):
    return tables.table(results)


def points(grades, student):
    rows = grades[(grades["student"] == student) & grades["max"].notna()]
    assert list(rows["question"]) == QUESTIONS
    assert list(rows["max"]) == [3, 4, 3]
    return [None if pd.isna(item) else item for item in rows["points"]]


def problems(grades, student):
    rows = grades[grades["student"] == student]
    return dict(zip(rows["question"], rows["problem"], strict=True))


@pytest.mark.parametrize("student", ANSWERS)
def test_each_answer_has_its_points(grades, student):
    _, double, total = ANSWERS[student]
    assert points(grades, student) == [double, total, None]
    assert problems(grades, student)["why"] == "to be graded by hand"


def test_a_blank_submission_has_no_points(grades):
    assert points(grades, "blank") == [0, 0, 0]


def test_unicode_names_and_windows_line_ends_cost_no_points(grades):
    assert points(grades, "Zoë van Dyk") == [3, 4, None]
    assert problems(grades, "Zoë van Dyk")["why"] == "to be graded by hand"
    assert ".DS_Store" not in set(grades["student"])


@pytest.mark.parametrize("student", DAMAGED)
def test_a_damaged_file_costs_no_points(grades, student):
    assert points(grades, student) == [3, 4, None]
    assert "repaired: " in problems(grades, student)[""]


def test_an_answer_that_was_moved_up_stays_there(results, grades):
    assert points(grades, "moved-up") == [3, 4, None]
    assert problems(grades, "moved-up")["why"] == "to be graded by hand"
    assert next(item.remarks for item in results if item.student == "moved-up") == []


@pytest.mark.parametrize(
    ("student", "question", "says"),
    [
        ("wrong-sign", "test-double", "AssertionError"),
        ("gives up", "test-total", "ValueError: no idea"),
        ("syntax", "double", "SyntaxError: invalid syntax"),
        ("renamed", "test-double", "NameError: name 'double' is not defined"),
        ("loops", "test-double", "stopped after 4 s"),
        ("crashes", "test-double", "the submission's process died"),
        ("hoards", "test-total", "out of memory"),
        ("pasted", "", "'test-total' is there 2 times"),
        ("misnamed", "", "The file is named my T1 (2).ipynb"),
    ],
)
def test_problems_are_in_the_table(grades, student, question, says):
    assert says in problems(grades, student)[question]


@pytest.mark.parametrize(
    ("student", "says"),
    [
        ("cut-short", "T1.ipynb cannot be graded: "),
        ("nothing", "there is no notebook, but nothing at all; put T1.ipynb there"),
        ("packed", "there is no notebook, but T1.zip; put T1.ipynb there"),
        ("inside", "there is no notebook, but T1; put T1.ipynb there"),
        (
            "submissions",
            "submissions.zip does not lie in STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb; move or",
        ),
        ("unsorted", "T1.zip does not lie in unsorted/ASSIGNMENT/ASSIGNMENT.ipynb; move or unpack"),
        ("perfect ", "or what is not printable; rename it"),
        ("elsewhere", "there is no assignment 'T9', only T1; rename it"),
        ("short", "there is no assignment 't1', only T1; rename it"),
        ("twice[2]", "nbgrader takes no folder with [, ], *, ?, <,"),
        ("<img src=x onerror=run()>", "nbgrader takes no folder with [, ], *, ?, <,"),
        ('";run();"', "nbgrader takes no folder with [, ], *, ?, <,"),
        ("perfect ", "a table cannot tell its folder's name from another student's"),
        ("'=1+1", "a table cannot tell its folder's name from another student's"),
        ("stray", "T1.ipynb does not lie in stray/ASSIGNMENT/ASSIGNMENT.ipynb"),
        ("loose", "loose.ipynb does not lie in STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb"),
        ("deep", "T1.ipynb cannot be graded: "),
        ("old", "it has the notebook format 3"),
        ("wordy", "it has the notebook format 'xxx"),
    ],
)
def test_submissions_that_cannot_be_graded_are_set_aside(results, grades, student, says):
    (rows,) = [item for item in results if item.student == student]
    assert says in rows.set_aside
    assert not rows.assignment.endswith(".zip")
    (row,) = grades[grades["student"] == student].itertuples()
    assert pd.isna(row.points)
    assert says in row.problem
    assert len(row.problem) < 5_000


def test_remarks_are_problems_other_than_failed_tests(results):
    remarks = {item.student: item.remarks for item in results}
    assert remarks["perfect"] == remarks["wrong-sign"] == []
    assert remarks["blank"] == ["There is no answer in it."]
    assert remarks["loops"] == ["test-double: stopped after 4 s"]
    (remark,) = remarks["pasted"]
    assert remark.startswith("repaired: The grade id 'test-total' is there 2 times")


def test_submitted_files_are_not_changed(course, results):
    pasted = nbformat.read(course / "submitted/pasted/T1/T1.ipynb", as_version=4)
    checked = nbformat.read(course / "autograded/pasted/T1/T1.ipynb", as_version=4)
    assert len(pasted.cells) == len(checked.cells)  # one less, and one of style
    assert not (course / "submitted" / "misnamed" / "T1" / "T1.ipynb").exists()
    assert (course / "autograded" / "misnamed" / "T1" / "T1.ipynb").exists()


def test_seconds_are_those_of_the_tests(grades):
    rows = grades[grades["student"] == "loops"].set_index("question")
    assert rows.loc["test-double", "seconds"] >= 4
    assert 0 <= rows.loc["test-total", "seconds"] < 4


def test_points_given_by_hand_are_kept_without_another_run(course, results, monkeypatch):
    with Course(course).gradebook() as gradebook:
        grade = gradebook.find_grade("why", "T1", "T1", "perfect")
        grade.manual_score = 2.5
        grade.needs_manual_grade = False
        gradebook.db.commit()
    monkeypatch.setattr(grading._Submission, "save_points", None)
    again = tables.table(grading.grade(course, ["T1"], ["perfect", "loops"]))
    assert points(again, "perfect") == [3, 4, 2.5]
    assert points(again, "loops") == [0, 4, None]


def test_only_changed_submissions_are_graded_again(tmp_path, course, results):
    root = tmp_path / "spring"
    shutil.copytree(course, root)
    out = nbformat.read(root / "release" / "T1" / "T1.ipynb", as_version=4)
    hand_in(root, "blank", tiny.answered(out, total=None))
    times = {path: path.stat().st_mtime_ns for path in root.glob("autograded/*/T1/T1.ipynb")}
    again = tables.table(grading.grade(root, [], ["blank", "rounds"], settings=SETTINGS))
    assert points(again, "blank") == [3, 0, None]
    assert points(again, "rounds") == [3, 3, None]
    changed = [path.parts[-3] for path, old in times.items() if path.stat().st_mtime_ns != old]
    assert changed == ["blank"]
    (root / "submitted" / "rounds" / "T1" / "sub").mkdir()
    for name in ("sub/helper.py", "helper.py"):  # it is moved where it should have been
        for path in (root / "submitted" / "rounds" / "T1").rglob("*.py"):
            path.unlink()
        (root / "submitted" / "rounds" / "T1" / name).touch()
        target = root / "autograded" / "rounds" / "T1" / "T1.ipynb"
        target.write_text(before := target.read_text() + "\n")
        grading.grade(root, [], ["rounds"], settings=SETTINGS)
        assert target.read_text() != before


def test_what_becomes_a_link_during_grading_is_not_followed(tmp_path, shipped):
    root = tmp_path / "spring"
    release(root, shipped=shipped)
    out = nbformat.read(root / "release" / "T1" / "T1.ipynb", as_version=4)
    other = hand_in(root, "ada", tiny.answered(out))
    folder, file = (hand_in(root, student, out) for student in ("folder", "file"))

    def swap(_):
        shutil.rmtree(folder)
        folder.symlink_to(other)
        (file / "T1.ipynb").unlink()
        (file / "T1.ipynb").symlink_to(other / "T1.ipynb")

    grades = tables.table(grading.grade(root, settings=SETTINGS, begin=swap))
    assert points(grades, "ada") == [3, 4, None]
    assert "symbolic link" in problems(grades, "folder")[""]
    assert "T1.ipynb is a link" in problems(grades, "file")[""]


def test_tests_that_change_during_grading_are_used_the_next_time(tmp_path, shipped, monkeypatch):
    root = tmp_path / "spring"
    release(root, shipped=shipped)
    out = nbformat.read(root / "release" / "T1" / "T1.ipynb", as_version=4)
    hand_in(root, "ada", tiny.answered(out))
    path = root / "source" / "T1" / "T1.ipynb"

    def start_late():
        start_server()
        path.write_text(path.read_text().replace("double(-3) == -6", "double(-3) == 6"))

    monkeypatch.setattr(grading, "start_server", start_late)
    for expected in (3, 0):
        grades = tables.table(grading.grade(root, settings=SETTINGS))
        assert points(grades, "ada") == [expected, 4, None]


def test_nbgrader_s_configuration_has_the_sandbox(course):
    configuration = Course(course).configuration("T1")
    names = [item.__name__ for item in configuration.Autograde.autograde_preprocessors]
    assert "SandboxedExecute" in names
    assert "Execute" not in names
    assert configuration.SandboxedExecute.cell_seconds == 60


def test_the_formgrader_s_button_grades_in_the_sandbox_too(tmp_path, shipped):
    root = tmp_path / "spring"
    release(root, shipped=shipped)
    out = nbformat.read(root / "release" / "T1" / "T1.ipynb", as_version=4)
    ending = "import os\nos.kill(os.getpid(), 9)"
    hand_in(root, "ada", tiny.answered(out, total=f"{tiny.TOTAL}\n{ending}"))
    configuration = Course(root).configuration("T1")
    configuration.CourseDirectory.student_id = "ada"
    coursedir = CourseDirectory(config=configuration)
    with quiet():
        Autograde(coursedir=coursedir, config=configuration).start()
    with Course(root).gradebook() as gradebook:
        assert gradebook.find_submission("T1", "ada").score == 3
    notebook = nbformat.read(root / "autograded" / "ada" / "T1" / "T1.ipynb", as_version=4)
    problems = [run["problem"] for run in notebook.metadata["accelviz"]["runs"]]
    assert problems[3].startswith("the submission's process died")


def test_the_formgrader_s_lists_show_the_points(course, results):
    # It takes a submission for ungraded whose time in the gradebook is not that of its timestamp.
    coursedir = CourseDirectory(config=Course(course).configuration("T1"))
    with quiet():
        listed = NbGraderAPI(coursedir).get_submissions("T1")
    scores = {row["student"]: row["code_score"] for row in listed if row["autograded"]}
    graded = tables.table([item for item in results if not item.set_aside])
    tests = graded[graded["question"].str.startswith("test")]
    assert scores == tests.groupby("student")["points"].sum().to_dict()


def test_a_stamp_at_which_the_formgrader_stops_is_reported(tmp_path, course, results):
    root = tmp_path / "spring"
    shutil.copytree(course, root)
    (root / "submitted" / "rounds" / "T1" / "timestamp.txt").write_text("soon")
    (result,) = grading.grade(root, [], ["rounds"], settings=SETTINGS)
    assert result.remarks == ["timestamp.txt is no time: the formgrader's list may stop at it"]


def test_the_formgrader_s_button_follows_no_links_either(tmp_path, shipped):
    """nbgrader copies what links lead to."""
    root = tmp_path / "spring"
    release(root, shipped=shipped)
    (tmp_path / "notes.txt").write_text("of the instructor")
    out = nbformat.read(root / "release" / "T1" / "T1.ipynb", as_version=4)
    folder = hand_in(root, "ada", tiny.answered(out, total="print(open('notes.txt').read())"))
    (folder / "notes.txt").symlink_to(tmp_path / "notes.txt")
    other = hand_in(root, "bob", out)
    (other / "T1.ipynb").unlink()
    (other / "T1.ipynb").symlink_to(folder / "T1.ipynb")
    (root / "submitted" / "eve").mkdir()
    (root / "submitted" / "eve" / "T1").symlink_to(folder)
    for student in ("ada", "bob", "eve"):
        configuration = Course(root).configuration("T1")
        configuration.CourseDirectory.student_id = student
        coursedir = CourseDirectory(config=configuration)
        with quiet(), contextlib.suppress(NbGraderException):
            Autograde(coursedir=coursedir, config=configuration).start()
    text = (root / "autograded" / "ada" / "T1" / "T1.ipynb").read_text()
    assert "of the instructor" not in text
    assert "No such file or directory: 'notes.txt'" in text
    for student in ("bob", "eve"):
        assert not (root / "autograded" / student / "T1").exists()


def test_a_source_that_was_edited_is_kept_and_released(tmp_path, shipped):
    root = tmp_path / "course"
    release(root, ["T1"], shipped=shipped)
    path = root / "source" / "T1" / "T1.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source = "# Of our own"
    nbformat.write(notebook, path)
    assert release(root, shipped=shipped) == {"T1": "released from the source that was there"}
    out = root / "release" / "T1" / "T1.ipynb"
    assert "Of our own" in out.read_text()
    before = out.read_bytes()
    notebook.cells[3].source = "### BEGIN SOLUTION\nx = 1"
    nbformat.write(notebook, path)
    with pytest.raises(ArgumentError, match="no end solution statement found"):
        release(root, shipped=shipped)
    assert out.read_bytes() == before  # the last good one
    assert release(root, fresh=True, shipped=shipped) == {"T1": "released"}
    assert "Of our own" not in out.read_text()
    with pytest.raises(ArgumentError, match="there is no such assignment"):
        release(root, ["T2"], shipped=shipped)


def test_a_release_that_would_lose_students_points_is_refused(tmp_path, course, results):
    root = tmp_path / "spring"
    shutil.copytree(course, root)
    path = root / "source" / "T1" / "T1.ipynb"
    notebook = nbformat.read(path, as_version=4)
    tiny.cell_of(notebook, "test-double").metadata["nbgrader"]["grade_id"] = "test-twice"
    nbformat.write(notebook, path)
    with pytest.raises(ArgumentError, match="the gradebook has submissions of it already"):
        release(root, shipped=root / "source")
    assert (root / "release" / "T1" / "T1.ipynb").exists()


def test_an_assignment_that_was_not_released_is_set_aside_with_what_to_do(tmp_path, shipped):
    shutil.copytree(shipped / "T1", tmp_path / "source" / "T1")
    hand_in(tmp_path, "ada", tiny.source())
    (result,) = grading.grade(tmp_path)
    assert result.set_aside.endswith("not released; run `accelviz assignments release`")


def test_what_nbgrader_logs_of_an_error_that_it_raises_is_not_shown(caplog):
    with quiet():
        app_log.error("a traceback of a hundred lines")
    app_log.error("and this is")
    assert caplog.messages == ["and this is"]


@pytest.mark.long
def test_the_commands_grade_a_class(tmp_path, shipped, capsys, monkeypatch):
    for room in ("assignments", "release"):
        name = f"accelviz.course.autograde.{room}.assignments_directory"
        monkeypatch.setattr(name, lambda: shipped)
    root = tmp_path / "c"
    assert cli.main(["assignments", "release", "--course", str(root)]) == 0
    assert "T1          released" in capsys.readouterr().out
    out = nbformat.read(root / "release" / "T1" / "T1.ipynb", as_version=4)
    hand_in(root, "ada", tiny.answered(out))
    folder = hand_in(root, "bob", out)
    (folder / "T1.ipynb").write_text("nothing")
    monkeypatch.chdir(tmp_path)  # a relative path is how people name a course
    options = ["--course", "c", "--assignment", "T1", "--cell-seconds", "20", "--as-root"]
    assert cli.main(["assignments", "grade", *options]) == 1
    printed, told = capsys.readouterr()
    assert "s  0 of 2  compiling takes" in told.splitlines()[0]
    assert "s  2 of 2  " in told.splitlines()[-1]
    assert "ada T1  7 of 7, 3 more by hand\n" in printed
    assert "bob T1  set aside: T1.ipynb cannot be graded: it is damaged, or no" in printed
    assert "sandbox: " in printed
    frame = pd.read_csv(root / "grades-by-question.csv")
    assert list(frame.columns) == list(tables.COLUMNS)
    assert frame["points"].sum() == 7
    by_student = frame.set_index("student")
    assert by_student.loc["ada", "max"].sum() == 10
    assert by_student.loc["bob", "problem"].startswith("T1.ipynb cannot be graded: ")
    hand_in(root, "ada", tiny.answered(out, double=tiny.DOUBLE + "\n1 / 0"))
    zoe = tables.table([tables.Graded("zoe", "T1", set_aside="of another command meanwhile")])

    def start_late():
        start_server()
        table = tables.read_table(root / "grades-by-question.csv")
        tables.write_table(tables.merged(table, zoe), root / "grades-by-question.csv")

    monkeypatch.setattr(grading, "start_server", start_late)
    assert cli.main(["assignments", "grade", *options, "--student", "ada"]) == 0
    capsys.readouterr()
    partly = pd.read_csv(root / "grades-by-question.csv")  # the others' are still there
    assert list(partly["student"]) == ["ada"] * 4 + ["bob", "zoe"]
    assert partly["points"].sum() == 7
    assert partly.set_index("question").loc["double", "problem"].startswith("ZeroDivisionError")
    assert cli.main(["assignments", "grade", "--course", str(tmp_path)]) == 2
    assert "it is no course folder" in capsys.readouterr().err
    assert cli.main(["assignments", "grade", *options, "--student", "nobody"]) == 2
    assert "there is no submission of nobody" in capsys.readouterr().err


def test_the_table_is_not_written_anew_for_each_file_that_lies_elsewhere(
    tmp_path, shipped, monkeypatch
):
    release(tmp_path, shipped=shipped)
    (tmp_path / "submitted" / "ada").mkdir(parents=True)
    for number in range(50):
        (tmp_path / "submitted" / "ada" / f"{number}.zip").touch()
    written, write = [], tables.write_table
    monkeypatch.setattr(
        tables, "write_table", lambda frame, path: (written.append(len(frame)), write(frame, path))
    )
    assert cli.main(["assignments", "grade", "--course", str(tmp_path), "--as-root"]) == 1
    assert written == [50]


def test_a_submission_that_was_moved_away_stays_in_the_table():
    old = tables.table([tables.Graded("ada", "T1", [tables.Row("a", 1.0, 2.0)])])
    new = tables.table([tables.Graded("bob", "T1", [tables.Row("a", 2.0, 2.0)])])
    assert tables.missing(old, new) == [("ada", "T1")]
    assert list(tables.merged(old, new)["student"]) == ["ada", "bob"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("![plan](attachment:my%20plan.png)", "(the picture my plan.png is missing, or above)"),
        ("![plan](attachment:there.png)", "![](attachment:0)"),
        ("![plan](https://b.org/p.png)", "!\u200b[plan](https://b.org/p.png)"),
        ("a <b>", "a <\u200bb>"),
        ("![](attachment:" * 1_333, "!\u200b[](attachment:" * 1_333),
        ("```perl\nx\n```\n~~~~ a b\n~~~~", "```\nx\n```\n~~~~\n~~~~"),
        ("a ```b``` c ~~~~~~\n" + "~" * 20_000, "a ```b``` c ~~~~~~\n" + "~" * 20_000),
        ("- ``` python\n  x\n  ```", "- ``` python\n  x\n  ```"),
        ("a\r~~~&Tab;\rb", "a\n~~~\nb"),
        ("\u202eb\u2066a \x1b[8mhidden", "ba hidden"),
        (r"\(" * 30_000, "(" * 30_000),
        (r"\(a < b\)", r"\(a < b\)"),
        ("- a\n > b\n" * 50, "- a\n > b\n" * 50),
        ("- a\n >>b\n" * 200, "- a\nb\n" * 200),
        ("a|b\n-|-\n1|2\n" * 20, "a|b\n-|-\n1|2\n" * 20),
        ("|-\n" + "|-||\xa0-\n" * 3_000 + "|-|", "\n" * 3_001),
        ("[a](https://b.org/c_(d)) [e][f]", "[a](https://b.org/c_(d)) [e][f]"),
        ("[f]:\n  data:text/html,x", "[f]\u200b:\n  data:text/html,x"),
        ("[f]: http://b.org", "[f]: http://b.org"),
    ],
)
def test_a_text_cell_cannot_stop_or_delay_feedback(text, expected):
    from accelviz.course.autograde.execute import PlainText

    cell = nbformat.v4.new_markdown_cell(text, attachments={"there.png": {"image/png": "AAAA"}})
    assert PlainText().preprocess_cell(cell, {}, 0)[0].source == expected


@pytest.mark.parametrize(("code", "colored"), [("x = 1", True), ("*" * 30_000, False)])
def test_long_code_is_not_colored_for_which_a_page_takes_quadratic_time(code, colored):
    from nbconvert import HTMLExporter

    from accelviz.course.autograde.execute import PlainText

    cell = nbformat.v4.new_code_cell(code)
    metadata = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata=metadata)
    notebook = PlainText().preprocess(notebook, {})[0]
    page = HTMLExporter(template_name="basic").from_notebook_node(notebook)[0]
    assert ('<span class="o">' in page) == colored
    assert code[:1000] in page or colored


def test_a_page_shows_each_attached_picture_once_whatever_its_name():
    from nbconvert import HTMLExporter

    from accelviz.course.autograde.execute import PlainText

    names = {"a b": "a%20b", "ä": "%C3%A4", "a(b": "a(b)", "a&amp;b": "a&amp;b", r"a\_b": r"a\_b"}
    texts = [f"![x](attachment:{name})" for name in names.values()] * 2
    attachments = {name: {"image/png": "AAAA"} for name in names}
    texts += [f"![x](attachment:{name})" for name in ("empty", "page", "%21[](attachment:9%29")]
    attachments |= {"empty": {}, "page": {"text/html": "<b>"}}
    texts += ["![x](attachment:%3Cimg%20src=x%20onerror=alert%281%29%3E)"]
    texts += [
        "![x](attachment:%5Ba%5D%28javascript:alert%281%29%29)",
        f"![{'x' * 1000}]{texts[0][4:]}",
    ]
    cell = nbformat.v4.new_markdown_cell("\n\n".join(texts), attachments=attachments)
    notebook = PlainText().preprocess(nbformat.v4.new_notebook(cells=[cell]), {})[0]
    page = HTMLExporter(template_name="basic").from_notebook_node(notebook)[0]
    assert page.count("<img") == page.count('src="data:image/png;base64,AAAA"') == len(names)
    assert "<b>" not in page
    assert "javascript:" not in page


def test_no_link_of_a_text_cell_is_a_script_and_no_picture_is_fetched():
    from nbconvert import HTMLExporter

    from accelviz.course.autograde.execute import PlainText

    script = "javascript:alert(1)"
    texts = [f"[a]({script})", f"[a]( <{script}>)", "[a](java&#115;cript:alert(1))", f"<{script}>"]
    texts += [f"[a][f]\n\n[f]: {script}", f"[f]\n\n[f]:\n{script}", f"[a\nb]({script})"]
    texts += [f"![a]({script})", f"[^1]\n\n[^1]: [a]({script})", f"[[a]({script})](http://b.org)"]
    texts += [f"$\\href{{{script}}}{{x}}$", "[a](&#x68;ttp://b.org)", "[a](data:text/html,x)"]
    pictures = ["![a](http://b.org)", "![a][f]\n\n[f]: http://b.org", "![f]\n\n[f]: http://b.org"]
    pictures += ["![a\nb](http://b.org)", "![a[b]c](http://b.org)", r"![a\]](http://b.org)"]
    texts += [*pictures, "[a](http://b.org)"]
    cells = [nbformat.v4.new_markdown_cell(text) for text in texts]
    notebook = PlainText().preprocess(nbformat.v4.new_notebook(cells=cells), {})[0]
    page = HTMLExporter(template_name="basic").from_notebook_node(notebook)[0]
    assert page.count("<a href=") == page.count('<a href="http://b.org"') == 8
    assert "<img" not in page
    assert "\\href" not in page


@pytest.mark.parametrize(
    ("missing", "verb", "extra"),
    [
        ("nbgrader", "release", "course"),
        ("nbgrader", "grade", "course"),
        ("nbformat", "preflight", "lab"),
        ("nbformat", "leaderboard", "lab"),
    ],
)
def test_a_missing_package_is_reported(missing, verb, extra, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    arguments = ["--course", str(tmp_path / "c")] if extra == "course" else [str(tmp_path / "c")]
    assert cli.main(["assignments", verb, *arguments]) == 2
    assert f"pip install 'accelviz[{extra}]'" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


def test_preflight_and_the_other_commands_need_no_nbgrader(shipped):
    path = shipped / "T1" / "T1.ipynb"
    code = (
        "import sys; sys.modules['nbgrader'] = None\n"
        "from accelviz import cli\n"
        f"sys.exit(cli.main(['assignments', 'preflight', {str(path)!r}]))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.returncode == 1
    assert "it is no notebook of A1-counting-sort, " in answer.stdout
    assert answer.stderr == ""
    light = "import sys; from accelviz import cli; print([m for m in sys.modules if m[:2] == 'nb'])"
    answer = subprocess.run([sys.executable, "-c", light], capture_output=True, text=True)
    assert answer.stdout.strip() == "[]"
