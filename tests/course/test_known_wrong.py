"""Points of the answers in `wrong_answers.py` and of the right answers, question by question."""

import sys

import pytest

pytest.importorskip("nbformat", reason="submissions are notebooks")
pytest.importorskip("IPython", reason="running submissions needs IPython")
if sys.platform == "win32":
    pytest.skip("submissions are not run on Windows", allow_module_level=True)

import nbformat

from accelviz.course.autograde.assignments import Assignment
from tests.course import tiny
from tests.course.shipped import COMPILER, filled_in, points_of
from tests.course.wrong import A4, ASSIGNMENTS, most_points
from tests.course.wrong_answers import WRONG


@pytest.mark.sample(36)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.description)
def test_wrong_answers_lose_the_expected_points(wrong):
    if wrong.assignment == A4 and not COMPILER:
        pytest.skip("no C++ compiler to emulate kernels with")
    assignment = ASSIGNMENTS[wrong.assignment]
    notebook = filled_in(assignment, wrong.solutions)
    points = points_of(notebook, assignment)
    most = most_points(notebook)
    assert points.keys() == most.keys()
    lost = {name.partition("-")[2]: points[name] for name in most if points[name] != most[name]}
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    problems = [output.evalue for output in outputs if output.output_type == "error"]
    assert lost == pytest.approx(dict(wrong.lost)), problems


@pytest.mark.long
@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_right_answers_have_all_points_with_another_seed_too(name):
    """Another seed gives other hidden graphs, so a scheme made for certain sizes would fail."""
    if name == A4 and not COMPILER:
        pytest.skip("no C++ compiler to emulate kernels with")
    assignment = ASSIGNMENTS[name]
    notebook = filled_in(assignment, {})
    assert points_of(notebook, assignment, seed=4711) == most_points(notebook) != {}


def test_a_submission_cannot_end_a_loop_of_a_test(tmp_path):
    """`all(map(even, numbers))` would be true if `even` could raise a StopIteration."""
    new, marks = nbformat.v4.new_code_cell, {"grade": True, "locked": True, "points": 3}
    cells = [
        tiny.marked(new("def even(x):\n    raise StopIteration"), "even", solution=True),
        tiny.marked(new("assert all(map(even, [2, 4]))"), "test-even", **marks),
    ]
    (tmp_path / "T2").mkdir()
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbformat.write(notebook, tmp_path / "T2" / "T2.ipynb")
    assert points_of(notebook, Assignment(tmp_path / "T2")) == {"test-even": 0}
