"""The shipped assignments through nbgrader itself: released, handed in, graded, with exact points.

`test_assignments_content.py` has many more wrong answers, run without a kernel; here are some of
them on the way that a class's answers take.
"""

# ruff: noqa: E402 (what is tested needs what is skipped for)

import json
import sys

import pandas as pd
import pytest

nbformat = pytest.importorskip("nbformat", reason="grading needs nbgrader")
pytest.importorskip("nbgrader", reason="grading needs nbgrader")
if sys.platform == "win32":
    pytest.skip("submissions are not confined on Windows", allow_module_level=True)

from accelviz.course import grading
from accelviz.course.assignments import find_assignments
from accelviz.course.cells import is_graded, is_solution, question_of
from accelviz.course.release import release
from accelviz.executors import find_executor
from tests.course.known_wrong import WRONG

pytestmark = pytest.mark.xdist_group("shipped")

ASSIGNMENTS = find_assignments()
COMPILER = find_executor("emulator").why_not() is None
#: How many of the known wrong answers to each assignment are handed in.
CHOSEN = {"A1-counting-sort": 2, "A2-block-partition": 1, "A3-your-own-scheme": 1}


def chosen():
    for name, count in CHOSEN.items():
        wrong = [each for each in WRONG if each.assignment == name]
        yield from wrong[:: max(1, len(wrong) // count)][:count]


HANDED_IN = {f"wrong-{k}": each for k, each in enumerate(chosen())}


def filled_in(assignment, solutions=None):
    """A release with the given solutions, by the ids' last parts, else with the right ones."""
    notebook = nbformat.from_dict(json.loads(nbformat.writes(assignment.released)))
    for cell, right in zip(notebook.cells, assignment.source.cells, strict=True):
        if is_solution(cell):
            lines = [line for line in right.source.split("\n") if "SOLUTION" not in line]
            key = question_of(cell).partition("-")[2]
            cell.source = (solutions or {}).get(key, "\n".join(lines))
    return notebook


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    root = tmp_path_factory.mktemp("course")
    release(root)
    for name, assignment in ASSIGNMENTS.items():
        if COMPILER or name != "A4-cuda-kernel":
            hand_in(root, "perfect", name, filled_in(assignment))
    hand_in(root, "blank", "A1-counting-sort", ASSIGNMENTS["A1-counting-sort"].released)
    for student, each in HANDED_IN.items():
        notebook = filled_in(ASSIGNMENTS[each.assignment], each.solutions)
        hand_in(root, student, each.assignment, notebook)
    return root


def hand_in(root, student, name, notebook):
    folder = root / "submitted" / student / name
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{name}.ipynb")


@pytest.fixture(scope="module")
def grades(course):
    # what a wrong answer costs depends on the hidden graphs; what a right one is worth does not
    found = grading.grade(course, settings={"seed": 0})
    assert not [each.set_aside for each in found if each.set_aside]
    assert not [each.remarks for each in found if each.remarks]
    return grading.table(found)


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
    own = grades[(grades["student"] == "perfect") & (grades["assignment"] == name)]
    tested = own[own["problem"] == ""]
    graded = [cell for cell in ASSIGNMENTS[name].released.cells if is_graded(cell)]
    assert set(tested["question"]) <= {question_of(cell) for cell in graded}
    assert list(tested["points"]) == list(tested["max"])
    assert len(own) == len(graded)
    rest = own[own["problem"] != ""]
    assert set(rest["problem"]) <= {grading.BY_HAND}
    assert rest.empty or name == "A5-report"


def test_no_answers_have_no_points(grades):
    own = grades[(grades["student"] == "blank") & grades["max"].notna()]
    assert list(own["points"]) == [0] * len(own)
    assert own["max"].sum() == 20


@pytest.mark.parametrize("student", HANDED_IN)
def test_wrong_answers_have_the_points_they_are_worth(grades, student):
    wrong = HANDED_IN[student]
    own = grades[(grades["student"] == student) & grades["max"].notna()]
    left = own[own["points"] != own["max"]]
    lost = dict(zip(left["question"].str.partition("-")[2], left["points"], strict=True))
    assert lost == pytest.approx(dict(wrong.lost)), wrong.what
    assert own["points"].sum() == pytest.approx(wrong.total), wrong.what


def test_the_course_s_seed_reaches_the_hidden_tests(course, tmp_path):
    """Other graphs than the public ones: a scheme that knows their sizes by heart would fail."""
    name = "A1-counting-sort"
    mine = tmp_path / "mine"
    release(mine, [name])
    text = (mine / "nbgrader_config.py").read_text()
    seed = int(text.split("SandboxedExecute.seed = ")[1])
    assert seed > 0
    notebook = filled_in(ASSIGNMENTS[name])
    telling = "import os\nassert os.environ['ACCELVIZ_COURSE_SEED'] == " + repr(str(seed))
    told = nbformat.v4.new_code_cell(telling + "\nopen('/dev/null')\nprint('seen')")
    notebook.cells.insert(0, told)
    hand_in(mine, "spy", name, notebook)
    grading.grade(mine)
    path = mine / "autograded" / "spy" / name / f"{name}.ipynb"
    assert nbformat.read(path, as_version=4).cells[0].outputs[0].text == "seen\n"


def test_extra_points_stand_beside_the_others(course, tmp_path):
    name = "A4-cuda-kernel"
    if not COMPILER:
        pytest.skip("no C++ compiler to emulate kernels with")
    path = course / "autograded" / "perfect" / name / f"{name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    assert grading._bonus(notebook) == []  # no GPU, no extra points
    (cell,) = [each for each in notebook.cells if question_of(each) == "A4-bonus"]
    cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "3.25"})]
    (row,) = grading._bonus(notebook)
    assert (row.question, row.points, row.max) == ("A4-bonus", 3.25, 0)
    assert pd.isna(row.seconds) or row.seconds is None
