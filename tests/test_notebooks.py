"""Every lesson runs top to bottom, without warnings, on a machine with no GPU and no network.

Then each exercise's folded solution takes the place of what the learner has to write, and its own
check has to find it right. On each commit every other lesson runs, all of them with `-m long`.
"""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from accelviz.course import compare

# A GPU machine that only runs the kernels need not have Jupyter.
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

#: Takes from a kernel what the lesson before has left there.
AS_NEW = """
from matplotlib import pyplot
pyplot.close("all")
%reset -f
"""
FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS, PUZZLES = sorted(FOLDER.glob("*.ipynb")), sorted(FOLDER.glob("puzzles/*.ipynb"))


def test_there_are_lessons():
    assert NOTEBOOKS
    assert len(PUZZLES) == 6


def checks_of(source):
    """The calls of `compare` in a cell, as text."""
    return [
        ast.get_source_segment(source, line)
        for line in ast.parse(source).body
        if isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Call)
        and getattr(line.value.func, "id", "") == "compare"
    ]


def solved(notebook):
    """Cells that hold the solution of an exercise and its check, for each that has one."""
    for cell, after in zip(notebook.cells, notebook.cells[1:], strict=False):
        checks = checks_of(cell.source) if cell.cell_type == "code" else []
        if checks:
            found = re.search(r"<summary>Solution.*?```python\n(.*?)```", after.source, re.S)
            assert found, f"no solution in Python after: {cell.source}"
            yield nbformat.v4.new_code_cell("\n".join([found[1], *checks]))


@pytest.fixture(scope="module")
def client():
    """A kernel for the lessons of this process: to start one for each takes a quarter longer."""
    folder = {"metadata": {"path": NOTEBOOKS[0].parent}}
    found = nbclient.NotebookClient(nbformat.v4.new_notebook(), timeout=180, resources=folder)
    yield found
    found.nb = nbformat.v4.new_notebook()
    found.execute()  # ends the kernel


def outputs(client, path):
    """Run a notebook as it is and return what its cells show, after their source."""
    notebook = client.nb = nbformat.read(path, as_version=4)
    solutions = [*solved(notebook)]
    notebook.cells = [nbformat.v4.new_code_cell(AS_NEW), *notebook.cells, *solutions]
    client.execute(cleanup_kc=False)
    for cell in solutions:
        said = "".join(output.get("text", "") for output in cell.outputs)
        assert said.startswith("Right"), f"{said}\n{cell.source}"
    found = [(cell.source, each) for cell in notebook.cells for each in cell.get("outputs", [])]
    for _, output in found:
        assert output.get("name") != "stderr", output["text"]
    return found


@pytest.mark.turns(2)
@pytest.mark.parametrize(
    "path",
    # That of graphs, which makes thirty twins, is no lesson.
    [
        pytest.param(path, marks=() if path.stem[0].isdigit() else pytest.mark.long)
        for path in NOTEBOOKS
    ],
    ids=lambda path: path.stem,
)
def test_lesson_runs(client, path):
    shown = [output.get("data", {}) for _, output in outputs(client, path)]
    assert any("image/png" in data or "<img" in data.get("text/html", "") for data in shown)


#: What a student may well write, and a check once took for right: lesson, function, wrong lines.
WRONG = {
    "13 forgets to transpose": """
def backward(A, X, W2, H, dZ):
    return X.T @ (A @ ((A @ dZ) @ W2.T * (H > 0))), H.T @ (A @ dZ)
""",
    "14 counts a column for each of its nonzeros": """
def tiles(columns, width):
    return len({column // width for column in columns}), -(-len(columns) // width)
""",
    "17 takes edges that need the halo for those that do not": """
def ours(one, cut, fetch):
    return max(one / 2 * cut, fetch) + one / 2 * (1 - cut)
""",
}


@pytest.mark.parametrize("called", WRONG)
def test_an_exercise_refuses_what_is_nearly_right(called, capsys):
    wrong, (path,) = WRONG[called], FOLDER.glob(f"{called[:2]}-*.ipynb")
    start = wrong.strip().split("(")[0]
    (cell,) = (c for c in nbformat.read(path, as_version=4).cells if c.source.startswith(start))
    names = {"np": np, "compare": compare}
    for each in (cell.source, wrong, *checks_of(cell.source)):
        exec(each, names)
    not_written, refused = capsys.readouterr().out.split("\n", 1)
    assert not_written.startswith("Not written yet")
    assert refused.startswith("Not yet: ")


@pytest.mark.parametrize("path", PUZZLES, ids=lambda path: path.stem)
def test_puzzles_that_nobody_has_filled_in_say_what_to_do(client, path):
    shown = [
        (source, output["data"]["text/html"])
        for source, output in outputs(client, path)
        if "puzzles.check(" in source
    ]
    assert shown
    for source, html in shown:
        if "// --- your lines\n\n" in source:
            assert "✗ Not yet.</b>" in html
            assert "Write your lines between the two marks" in html
        else:
            assert "<svg" in html


@pytest.mark.parametrize("path", [*NOTEBOOKS, *PUZZLES], ids=lambda path: path.stem)
def test_lesson_is_committed_without_outputs(path):
    for cell in nbformat.read(path, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
