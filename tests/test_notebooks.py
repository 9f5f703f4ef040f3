"""Every lesson runs top to bottom, without warnings, on a machine with no GPU and no network."""

from pathlib import Path

import pytest

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
    assert len(PUZZLES) == 3


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
    notebook.cells.insert(0, nbformat.v4.new_code_cell(AS_NEW))
    client.execute(cleanup_kc=False)
    found = [(cell.source, each) for cell in notebook.cells for each in cell.get("outputs", [])]
    for _, output in found:
        assert output.get("name") != "stderr", output["text"]
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_lesson_runs(client, path):
    assert any("image/png" in output.get("data", {}) for _, output in outputs(client, path))


@pytest.mark.parametrize("path", PUZZLES, ids=lambda path: path.stem)
def test_puzzles_that_nobody_has_filled_in_say_what_to_do(client, path):
    shown = [
        (source, output["data"]["text/html"])
        for source, output in outputs(client, path)
        if "puzzles.check(" in source
    ]
    assert len(shown) >= 5
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
