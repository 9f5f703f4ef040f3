"""Notebooks are committed without results, and taking results off leaves nbgrader's metadata."""

import subprocess
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="reading notebooks needs nbformat")
pytest.importorskip("nbstripout", reason="it comes with `make check`")

from accelviz.course.autograde.assignments import find_assignments  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
#: As the Makefile calls it.
NBSTRIPOUT = [sys.executable, "-m", "nbstripout", "--keep-id"]


def test_every_notebook_is_stripped():
    notebooks = [
        *ROOT.glob("notebooks/*.ipynb"),
        *ROOT.glob("accelviz/course/assignments/*/*.ipynb"),
    ]
    assert len(notebooks) >= 15
    answer = subprocess.run([*NBSTRIPOUT, "--verify", *notebooks], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout


def test_what_was_run_is_not_taken_for_stripped(tmp_path):
    cell = nbformat.v4.new_code_cell("1", outputs=[nbformat.v4.new_output("stream", text="1")])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "x.ipynb")
    answer = subprocess.run([*NBSTRIPOUT, "--verify", tmp_path / "x.ipynb"], capture_output=True)
    assert answer.returncode == 1


def test_stripping_keeps_what_nbgrader_needs(tmp_path):
    for name, assignment in find_assignments().items():
        before = assignment.released
        for cell in before.cells:
            if cell.cell_type == "code":
                cell.outputs = [nbformat.v4.new_output("stream", text="1")]
                cell.execution_count = 1
        nbformat.write(before, tmp_path / f"{name}.ipynb")
    subprocess.run([*NBSTRIPOUT, *tmp_path.glob("*.ipynb")], check=True)
    for name, assignment in find_assignments().items():
        before = assignment.released
        after = nbformat.read(tmp_path / f"{name}.ipynb", as_version=4)
        assert not any(cell.get("outputs") for cell in after.cells)
        for old, new in zip(before.cells, after.cells, strict=True):
            assert (old.id, old.source) == (new.id, new.source)
            assert old.metadata.get("nbgrader") == new.metadata.get("nbgrader")
