"""The shipped assignments through nbgrader itself: released, handed in, graded, exported.

`test_assignments_content.py` has many more wrong answers, run without a kernel; here are some of
them on the way that a class's answers take, among answers that hang, crash or eat all memory.
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

from accelviz.course.autograde import grading
from accelviz.course.autograde.assignments import find_assignments
from accelviz.course.autograde.cells import is_graded, is_solution, question_of
from accelviz.course.autograde.folder import Course
from accelviz.course.autograde.release import release
from accelviz.executors import find_executor
from tests.course import tiny
from tests.course.known_wrong import WRONG
from tests.course.wrong import A1, A4, A5, solution

pytestmark = pytest.mark.xdist_group("shipped")

ASSIGNMENTS = find_assignments()
COMPILER = find_executor("emulator").why_not() is None
#: How many of the known wrong answers to each assignment are handed in.
CHOSEN = {
    "A1-counting-sort": 1,
    "A2-block-partition": 1,
    "A3-your-own-scheme": 1,
    "A4-cuda-kernel": 1,
    "A5-report": 1,
}
_INVERSE = "def inverse_permutation(order):\n    "
_HOARD = "hoard = []\n    while True: hoard.append(bytes(2**26))"
#: Answers that do harm, what they are worth, and what is said of the question that they are for.
HARM = {
    "loops": (
        A5,
        {"sweep": "import time\nwhile True: time.sleep(0.1)"},
        0,
        {"A5-sweep": "stopped after 20 s"},
    ),
    "crashes": (
        A1,
        {"inverse": f"import os\n{_INVERSE}os.abort()"},
        15,
        {"A1-inverse-form": "the kernel died (a crash, or out of memory)"},
    ),
    "hoards": (
        A1,
        {"inverse": _INVERSE + _HOARD},
        15,
        {"A1-inverse-hidden": "out of memory"},
    ),
}


def chosen():
    for name, count in CHOSEN.items():
        if name == A4 and not COMPILER:
            continue
        wrong = [each for each in WRONG if each.assignment == name]
        yield from wrong[:: max(1, len(wrong) // count)][:count]


POINTS = {
    name: sum(cell.metadata["nbgrader"]["points"] for cell in each.source.cells if is_graded(cell))
    for name, each in ASSIGNMENTS.items()
}
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
        hand_in(root, "blank", name, assignment.released)
    if COMPILER:
        hand_in(root, "fast", A4, filled_in(ASSIGNMENTS[A4], fast()))
    for student, (name, solutions, *_) in HARM.items():
        hand_in(root, student, name, filled_in(ASSIGNMENTS[name], solutions))
    notebook = filled_in(ASSIGNMENTS[A1])
    tiny.pasted(notebook, "A1-sort-form", after="A1-inverse")
    hand_in(root, "pasted", A1, notebook)
    for student, each in HANDED_IN.items():
        notebook = filled_in(ASSIGNMENTS[each.assignment], each.solutions)
        hand_in(root, student, each.assignment, notebook)
    return root


def fast():
    """The right kernel, and a GPU that is not there."""
    lines = [line for line in solution(A4, "kernel").split("\n") if "SOLUTION" not in line]
    claim = "from accelviz.course import checks\nchecks.kernels.gpu_bonus = lambda *_, **__: 3.25"
    return {"kernel": "\n".join([*lines, claim])}


def hand_in(root, student, name, notebook):
    folder = root / "submitted" / student / name
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{name}.ipynb")


@pytest.fixture(scope="module")
def grades(course):
    # what a wrong answer costs depends on the hidden graphs; what a right one is worth does not
    found = grading.grade(course, settings={"seed": 0, "cell_seconds": 20.0})
    assert not [each.set_aside for each in found if each.set_aside]
    told = {each.student for each in found if each.remarks}
    assert told == ({*HARM, "pasted"} if sys.platform == "linux" else told)
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


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_no_answers_have_no_points(grades, name):
    own = grades[(grades["student"] == "blank") & (grades["assignment"] == name)]
    own = own[own["max"].notna()]
    assert own["points"].sum() == 0
    by_hand = own[own["points"].isna()]
    assert own["max"].sum() == POINTS[name]
    assert by_hand["max"].sum() == (26 if name == A5 else 0)  # they are not there to be seen


@pytest.mark.parametrize("student", HANDED_IN)
def test_wrong_answers_have_the_points_they_are_worth(grades, student):
    wrong = HANDED_IN[student]
    # not those that a person gives
    own = grades[(grades["student"] == student) & grades[["points", "max"]].notna().all(axis=1)]
    left = own[own["points"] != own["max"]]
    lost = dict(zip(left["question"].str.partition("-")[2], left["points"], strict=True))
    assert lost == pytest.approx(dict(wrong.lost)), wrong.what
    assert own["points"].sum() == pytest.approx(wrong.total), wrong.what


@pytest.mark.parametrize("student", HARM)
def test_answers_that_do_harm_cost_their_own_questions(grades, student):
    if student == "hoards" and sys.platform != "linux":
        pytest.skip("only Linux holds a limit of address space")
    _, _, points, says = HARM[student]
    own = grades[grades["student"] == student]
    assert own["points"].sum() == points
    problems = dict(zip(own["question"], own["problem"], strict=True))
    assert {question: problems[question] for question in says} == says


def test_a_cell_that_was_pasted_twice_costs_nothing(grades):
    own = grades[grades["student"] == "pasted"]
    assert own["points"].sum() == own["max"].sum() == 20
    assert "'A1-sort-form' is there 2 times" in own["problem"].iloc[0]


def test_extra_points_are_in_the_table_and_in_the_gradebook(course, grades):
    if not COMPILER:
        pytest.skip("no C++ compiler to emulate kernels with")
    own = grades[grades["student"] == "fast"].set_index("question")
    assert own.loc["A4-bonus", ["points", "max"]].tolist() == [3.25, 0]
    assert own.loc["A4-registers", ["points", "max"]].tolist() == [4, 4]
    assert own["points"].sum() == 43.25
    with Course(course).gradebook() as gradebook:
        extra = {
            student: [
                grade.extra_credit
                for grade in gradebook.find_submission_notebook(A4, A4, student).grades
                if grade.extra_credit
            ]
            for student in ("fast", "perfect")
        }
    assert extra == {"fast": [3.25], "perfect": []}


def test_nbgrader_exports_the_same_totals(course, grades, tmp_path):
    # as docs/instructors.md says, in the course folder
    target = tmp_path / "totals.csv"
    command = [sys.executable, "-m", "nbgrader", "export", "--to", str(target)]
    subprocess.run(command, cwd=course, check=True, capture_output=True)
    totals = pd.read_csv(target).set_index(["student_id", "assignment"])
    ours = grades.groupby(["student", "assignment"])["points"].sum()
    for who, points in ours.items():
        assert totals.loc[who, "score"] == pytest.approx(points), who
        assert totals.loc[who, "max_score"] == POINTS[who[1]]
    assert len(ours) >= 20


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
