"""Attacks of `attacks.py` gain no points, cost other students no points and do not stop grading.

Each run tries one in 36; `--all` tries all.
"""

# ruff: noqa: E402 (what is tested needs what is skipped for)

import sys
import time

import pandas as pd
import pytest

nbformat = pytest.importorskip("nbformat", reason="grading needs nbgrader")
pytest.importorskip("nbgrader", reason="grading needs nbgrader")
psutil = pytest.importorskip("psutil")
if sys.platform == "win32":
    pytest.skip("submissions are not confined on Windows", allow_module_level=True)

from accelviz.course.autograde import sandbox, tables
from accelviz.course.autograde.border import Limits
from accelviz.course.autograde.folder import Course
from accelviz.course.autograde.repair import Problem
from tests.course import tiny
from tests.course.attacks import ATTACKS, STUFFED
from tests.course.honest import HONEST, N_ANSWERS
from tests.course.shipped import COMPILER, SECRETS, SEED, lost_points
from tests.course.wrong import A1, A4, PART, needs_bubblewrap

#: Attacks on other students, which every run tries.
ON_OTHERS = ("kills all", "writes points into the gradebook", "leaves a process that writes points")


def is_on_others(parameters):
    return ATTACKS[parameters["student"]].description.startswith(ON_OTHERS)


pytestmark = [pytest.mark.xdist_group("grader"), needs_bubblewrap]


@pytest.fixture(scope="module")
def grades(shipped):
    return shipped[1]


def test_there_are_enough_attacks_and_unusual_answers():
    assert len(ATTACKS) >= 60
    assert len({attack.kind for attack in ATTACKS.values()}) >= 12
    assert N_ANSWERS >= 60


@pytest.mark.sample(36)
@pytest.mark.parametrize("student", HONEST)
def test_an_unusual_answer_loses_nothing(grades, student):
    if HONEST[student][0] == A4 and not COMPILER:
        pytest.skip("no C++ compiler to emulate kernels with")
    rows = grades[grades["student"] == student]
    assert rows["points"].notna().any()
    assert lost_points(grades, student) == {}, rows[["question", "problem"]].to_string()


@pytest.mark.sample(36, always=is_on_others)
@pytest.mark.parametrize("student", ATTACKS, ids=lambda name: f"{name} {ATTACKS[name].description}")
def test_an_attack_gains_nothing(grades, student):
    attack = ATTACKS[student]
    if attack.assignment == A4 and not COMPILER:
        pytest.skip("no C++ compiler to emulate kernels with")
    rows = grades[grades["student"] == student]
    problems = dict(zip(rows["question"], rows["problem"], strict=True))
    assert rows["points"].notna().any(), problems
    assert lost_points(grades, student) == pytest.approx(dict(attack.lost)), problems


def test_no_submission_shows_what_it_may_not_read(shipped):
    """Outputs of cells that are no tests; tests have the hidden tests in them."""
    root, grades = shipped
    secrets = (*SECRETS, str(SEED), "seed=4106")
    seen = [" ".join(grades["problem"])]
    for path in root.glob("autograded/*/*/*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        if path.parts[-3] != "perfect":
            seen += [str(cell.outputs) for cell in cells if cell.cell_type == "code"]
    assert len(seen) > 10
    assert [secret for secret in secrets for text in seen if secret in text] == []


@pytest.mark.sample(36, always=lambda parameters: parameters["student"] == "claims")
@pytest.mark.parametrize("student", STUFFED, ids=lambda name: STUFFED[name].description)
def test_additional_files_and_cells_do_not_change_the_points(shipped, grades, student):
    rows = grades[grades["student"] == student]
    assert rows["points"].sum() == rows["max"].sum() == 8
    assert STUFFED[student].says in " ".join(rows["problem"])
    home = shipped[0] / "autograded" / student / PART
    assert sum(path.stat().st_size for path in home.rglob("*")) < 11_000_000


def test_html_of_a_submission_is_escaped_or_left_out(shipped):
    notebook = nbformat.read(shipped[0] / "autograded" / "claims" / PART / f"{PART}.ipynb", 4)
    texts = [cell.source for cell in notebook.cells if cell.cell_type != "code"]
    assert sum("alert(1)" in text for text in texts) == 2
    assert not any("<b" in text for text in texts)
    assert "<script" not in nbformat.writes(notebook)


@pytest.mark.parametrize("student", ["linked", "linked-file"])
def test_links_to_another_s_work_are_not_followed(grades, student):
    (row,) = grades[grades["student"] == student].itertuples()
    assert pd.isna(row.points)
    assert "link" in row.problem or "there is no notebook" in row.problem


def test_other_students_keep_their_points(shipped, grades):
    for student in ("perfect", "zoe"):
        rows = grades[(grades["student"] == student) & (grades["assignment"] == A1)]
        assert rows["points"].sum() == 20
    with Course(shipped[0]).gradebook() as gradebook:
        for name, max_points in ((A1, 20), (PART, 8)):
            for submission in gradebook.assignment_submissions(name):
                assert submission.score <= max_points
                books = submission.notebooks
                assert {grade.manual_score for book in books for grade in book.grades} == {None}


def test_no_process_survives_its_submission(shipped):
    assert not (shipped[0] / "left-behind").exists()
    for _ in range(50):  # killed processes disappear with a delay
        children = psutil.Process().children(recursive=True)
        processes = psutil.process_iter(["name"])
        left = [item for item in processes if item in children and item.info["name"] == "bwrap"]
        if not left:
            return
        time.sleep(0.1)
    pytest.fail(f"{left} are still there")


def test_formulas_in_a_table_are_quoted(shipped, grades, tmp_path):
    tables.write_table(grades, tmp_path / "grades.csv")
    lines = (tmp_path / "grades.csv").read_text("utf-8").splitlines()
    assert not [line for line in lines if line.startswith(("=", "+", "-", "@"))]
    assert any(line.startswith("'=1+1,") for line in lines)
    assert set(tables.read_table(tmp_path / "grades.csv")["student"]) == set(grades["student"])


def test_control_characters_and_formulas_are_removed_from_text(tmp_path):
    evil = "\x1b[2J\u202eada\n1 of 1;=1+1"
    assert str(Problem("name", evil, "x")) == "?[2J?ada 1 of 1;=1+1 x"
    frame = pd.DataFrame({"student": [evil], "scheme": ['; "=1+1;'], "problem": [None]})
    tables.write_table(frame.assign(graph="\uff1d1"), tmp_path / "board.csv")
    assert (tmp_path / "board.csv").read_text("utf-8").splitlines() == [
        "student,scheme,problem,graph",
        '?[2J?ada 1 of 1;\'=1+1,"; ""\'=1+1;",,\'\uff1d1',
    ]


def test_no_kernel_is_compiled_by_the_judge():
    """A test of an instructor's own that runs a student's kernel by other ways than `checks`."""
    code = "__global__ void look(int *seen) {}"
    test = f"import accelviz, numpy as np\naccelviz.emulate({code!r}, 1, 1, np.ones(2, np.int32))"
    cell = tiny.marked(nbformat.v4.new_code_cell(test), "test", grade=True, locked=True, points=1)
    (run,) = sandbox.run(nbformat.v4.new_notebook(cells=[cell]), Limits())
    assert "no kernel is compiled where points are given" in run.problem


SORTING = [name for name, attack in ATTACKS.items() if attack.kind == "hidden sorts"]


@pytest.mark.parametrize("student", SORTING[:1])
def test_words_of_sorts_are_remarked(grades, student):
    rows = grades[grades["student"] == student].set_index("question")
    assert "its cells say argsort" in rows.loc["A1-inverse-linear", "problem"]
