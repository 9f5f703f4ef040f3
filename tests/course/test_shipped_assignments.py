"""The shipped assignments with nbgrader: released, handed in, graded, exported.

`conftest.py` grades a class of right, blank and hostile submissions once.
"""

# ruff: noqa: E402 (what is tested needs what is skipped for)

import json
import subprocess
import sys

import pandas as pd
import pytest

nbformat = pytest.importorskip("nbformat", reason="grading needs nbgrader")
pytest.importorskip("nbgrader", reason="grading needs nbgrader")
if sys.platform == "win32":
    pytest.skip("submissions are not confined on Windows", allow_module_level=True)

from accelviz.course.autograde import tables
from accelviz.course.autograde.cells import is_graded, question_of
from accelviz.course.autograde.folder import Course
from accelviz.course.autograde.release import release
from tests.course.shipped import COMPILER
from tests.course.wrong import A2, A3, A5, ASSIGNMENTS, PART

pytestmark = pytest.mark.xdist_group("grader")

POINTS = {
    name: sum(cell.metadata["nbgrader"]["points"] for cell in item.source.cells if is_graded(cell))
    for name, item in ASSIGNMENTS.items()
}


@pytest.fixture(scope="module")
def course(shipped):
    return shipped[0]


@pytest.fixture(scope="module")
def grades(shipped):
    return shipped[1]


def test_only_links_are_set_aside(shipped):
    graded = shipped[1].groupby("student")["max"].count()
    assert {*graded[graded == 0].index} == {"linked", "linked-file"}


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_our_release_is_nbgrader_s_own(course, name):
    path = course / "release" / name / f"{name}.ipynb"
    assert json.loads(path.read_text("utf-8")) == json.loads(
        nbformat.writes(ASSIGNMENTS[name].released)
    )


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_the_right_answers_have_all_points(grades, name):
    if not COMPILER and name == "A4-cuda-kernel":
        pytest.skip("no C++ compiler to emulate kernels with")
    rows = grades[(grades["student"] == "perfect") & (grades["assignment"] == name)]
    tested = rows[rows["problem"] == ""]
    graded = [cell for cell in ASSIGNMENTS[name].released.cells if is_graded(cell)]
    assert set(tested["question"]) <= {question_of(cell) for cell in graded}
    assert list(tested["points"]) == list(tested["max"])
    assert len(rows) == len(graded)
    untested = rows[rows["problem"] != ""]
    assert set(untested["problem"]) <= {tables.BY_HAND}
    assert untested.empty or name == "A5-report"


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_cells_of_right_answers_run_unless_they_use_hidden_modules(course, name):
    if not COMPILER and name == "A4-cuda-kernel":
        pytest.skip("no C++ compiler to emulate kernels with")
    path = course / "autograded" / "perfect" / name / f"{name}.ipynb"
    for cell in nbformat.read(path, as_version=4).cells:
        outputs = cell.get("outputs", [])
        refused = name in (A2, A3) and any(item.get("ename") == "NotYours" for item in outputs)
        for output in outputs:
            assert output.output_type != "error" or refused, output
            assert output.get("name") != "stderr", output["text"]


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_blank_submissions_have_no_points(grades, name):
    rows = grades[(grades["student"] == "blank") & (grades["assignment"] == name)]
    rows = rows[rows["max"].notna()]
    assert rows["points"].sum() == 0
    by_hand = rows[rows["points"].isna()]
    assert rows["max"].sum() == POINTS[name]
    assert by_hand["max"].sum() == (26 if name == A5 else 0)


def test_nbgrader_exports_the_same_totals(course, grades, tmp_path):
    target = tmp_path / "totals.csv"
    command = [sys.executable, "-m", "nbgrader", "export", "--to", str(target)]
    subprocess.run(command, cwd=course, check=True, capture_output=True)
    totals = pd.read_csv(target).set_index(["student_id", "assignment"])
    grades = grades[~grades["student"].str.startswith(("linked", "="))]
    ours = grades.groupby(["student", "assignment"])["points"].sum()
    for key, points in ours.items():
        assert totals.loc[key, "score"] == pytest.approx(points), key
        assert totals.loc[key, "max_score"] == {**POINTS, PART: 8}.get(key[1], 10)
    assert len(ours) >= 11


def test_the_course_s_seed_is_its_own(tmp_path):
    release(tmp_path, ["A5"])
    text = (tmp_path / "nbgrader_config.py").read_text()
    seed = Course(tmp_path).seed()
    assert int(text.split("SandboxedExecute.seed = ")[1]) == seed
    assert seed.bit_length() > 64, "a submission sees one drawn input, and can try all small seeds"
