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
NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


def test_there_are_lessons():
    assert NOTEBOOKS


@pytest.fixture(scope="module")
def client():
    """A kernel for the lessons of this process: to start one for each takes a quarter longer."""
    folder = {"metadata": {"path": NOTEBOOKS[0].parent}}
    found = nbclient.NotebookClient(nbformat.v4.new_notebook(), timeout=180, resources=folder)
    yield found
    found.nb = nbformat.v4.new_notebook()
    found.execute()  # ends the kernel


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_lesson_runs(client, path):
    notebook = client.nb = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(AS_NEW))
    client.execute(cleanup_kc=False)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output.get("name") != "stderr", output["text"]
    pictures = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert pictures


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_lesson_is_committed_without_outputs(path):
    for cell in nbformat.read(path, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
