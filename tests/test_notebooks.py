"""Every lesson runs from top to bottom without warnings, GPU or network.

The folded solution of each exercise then replaces the learner's lines, and the exercise's check
must accept it; wrong answers must be refused with a message. `make test` runs one lesson
in four, `--all` runs all.
"""

import ast
import re
from pathlib import Path

import pytest

from .course.value_answers import EXERCISES

# A machine with a GPU that only runs kernel tests may be without Jupyter.
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

#: Code that removes the previous lesson's names from a kernel. An explanation that begins with a
#: number, or with a range, begins with the prediction's answer.
AS_NEW = """
def checked(original):
    import functools, re

    @functools.wraps(original)
    def predict(*question, because="", **options):
        asked = original(*question, because=because, **options)
        begins = re.match(r"(\\d[\\d,.]*)(?: to (\\d[\\d,.]*))?", because)
        if begins and asked.form == "number":
            texts = [text.strip(".,").replace(",", "") for text in begins.groups() if text]
            half = 0.501 * 10.0 ** -len(texts[0].partition(".")[2])
            low, high = float(texts[0]) - half, float(texts[-1]) + half
            assert low <= asked.answer() <= high, (because, asked.answer())
        return asked

    return predict

from accelviz import widgets
if not hasattr(widgets.predict, "__wrapped__"):
    widgets.predict = checked(widgets.predict)
from matplotlib import pyplot
pyplot.close("all")
%reset -f
"""
FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
ELECTIVES, PUZZLES = (sorted(FOLDER.glob(f"{name}/*.ipynb")) for name in ("electives", "puzzles"))
NOTEBOOKS = [*sorted(FOLDER.glob("*.ipynb")), *ELECTIVES]


def test_there_are_lessons():
    assert len(ELECTIVES) == 14
    assert [path.name[:2] for path in NOTEBOOKS[:10]] == [f"{i:02}" for i in range(1, 11)]
    assert len(PUZZLES) == 6


def checks_of(source):
    """Return the calls of `compare` and `my_spmm.climb` in a cell as text."""
    return [
        ast.get_source_segment(source, line)
        for line in ast.parse(source).body
        if isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Call)
        and ast.unparse(line.value.func) in ("compare", "my_spmm.climb")
    ]


#: First words of a check's output.
WRONG, RIGHT = "Not yet: ", "Right"


def solved(notebook, lesson):
    """Yield cells with an answer to an exercise and its check, and the expected output."""
    for cell, after in zip(notebook.cells, notebook.cells[1:], strict=False):
        checks = checks_of(cell.source) if cell.cell_type == "code" else []
        if checks:
            solution = re.search(r"<summary>Solution.*?```python\n(.*?)```", after.source, re.S)
            assert solution, f"no solution in Python after: {cell.source}"
            exercise = exercise_of(lesson, cell.source)
            answers = [(answer, WRONG) for answer in exercise.refused] if exercise else []
            answers += [(answer, RIGHT) for answer in exercise.accepted] if exercise else []
            answers = [(exercise.pattern.format(answer), said) for answer, said in answers]
            for answer, said in [*answers, (solution[1], RIGHT)]:
                yield nbformat.v4.new_code_cell("\n".join([answer, *checks])), said


def exercise_of(lesson, source):
    """Return the exercise with a check of its own in a cell, or None."""
    for exercise in EXERCISES:
        name = rf"^(class )?{re.escape(exercise.name)}(?!\w)"
        if exercise.notebook == lesson and re.search(name, source, re.M):
            return exercise
    return None


def test_every_check_has_other_cases_or_a_table_of_answers():
    """`known` has cases, `climb` has matrices; other checks have answers in EXERCISES."""
    checked = [
        exercise_of(path.stem, cell.source)
        for path in NOTEBOOKS
        for cell in nbformat.read(path, as_version=4).cells
        for check in (checks_of(cell.source) if cell.cell_type == "code" else [])
        if "known(" not in check and "climb(" not in check
    ]
    assert checked == [*filter(None, checked)]
    assert {exercise.name for exercise in checked} == {exercise.name for exercise in EXERCISES}
    assert min(len(exercise.refused) for exercise in EXERCISES) >= 4
    assert min(len(exercise.accepted) for exercise in EXERCISES) >= 3


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Start one kernel for all lessons of this process, which saves a quarter of the time."""
    folder = {"metadata": {"path": tmp_path_factory.mktemp("lessons")}}  # for my_spmm.cu
    session = nbclient.NotebookClient(nbformat.v4.new_notebook(), timeout=180, resources=folder)
    yield session
    session.nb = nbformat.v4.new_notebook()
    session.execute()  # ends the kernel


def outputs(client, path):
    """Run a notebook and return the outputs of its cells by their source."""
    notebook = client.nb = nbformat.read(path, as_version=4)
    answers = [*solved(notebook, path.stem)]
    added = [cell for cell, _ in answers]
    notebook.cells = [nbformat.v4.new_code_cell(AS_NEW), *notebook.cells, *added]
    client.execute(cleanup_kc=False)
    for cell, verdict in answers:
        printed = "\r".join(output.get("text", "") for output in cell.outputs)
        lines = [line.lstrip() for line in re.split(r"[\r\n]", printed)]  # some of progress bars
        assert any(line.startswith(verdict) for line in lines), f"{printed}\n{cell.source}"
    shown_outputs = [
        (cell.source, output) for cell in notebook.cells for output in cell.get("outputs", [])
    ]
    for _, output in shown_outputs:
        assert output.get("name") != "stderr", output["text"]
    return shown_outputs


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    "path",
    # The document of graphs, which makes thirty twins, is no lesson.
    [
        pytest.param(path, marks=pytest.mark.long if path.stem == "graphs" else ())
        for path in NOTEBOOKS
    ],
    ids=lambda path: path.stem,
)
def test_lesson_runs(client, path):
    contents = [output.get("data", {}) for _, output in outputs(client, path)]
    assert any("image/png" in data or "<img" in data.get("text/html", "") for data in contents)


@pytest.mark.long
@pytest.mark.parametrize("path", PUZZLES, ids=lambda path: path.stem)
def test_puzzles_that_nobody_has_filled_in_say_what_to_do(client, path):
    verdicts = [
        (source, output["data"]["text/html"])
        for source, output in outputs(client, path)
        if "puzzles.check(" in source
    ]
    assert verdicts
    for source, html in verdicts:
        if "// --- your lines\n\n" in source:
            assert "✗ Not yet.</b>" in html
            assert "Write your lines between the two marks" in html
        else:
            assert "accelviz-picture" in html


@pytest.mark.parametrize("path", [*NOTEBOOKS, *PUZZLES], ids=lambda path: path.stem)
def test_lesson_is_committed_without_outputs(path):
    for cell in nbformat.read(path, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
