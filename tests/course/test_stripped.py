"""Notebooks are committed without outputs, and removing outputs keeps nbgrader's metadata."""

import copy
import json
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="reading notebooks needs nbformat")
nbstripout = pytest.importorskip("nbstripout", reason="it comes with `make check`")

from accelviz.course.autograde.assignments import find_assignments  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def stripped(notebook):
    """Return the notebook after `nbstripout --keep-id`, as the Makefile calls it."""
    return nbstripout.strip_output(copy.deepcopy(notebook), False, False, keep_id=True)


def test_every_notebook_is_stripped():
    notebooks = [
        *ROOT.glob("notebooks/*.ipynb"),
        *ROOT.glob("notebooks/electives/*.ipynb"),
        *ROOT.glob("notebooks/puzzles/*.ipynb"),
        *ROOT.glob("accelviz/course/assignments/*/*.ipynb"),
    ]
    assert len(notebooks) >= 15
    for path in notebooks:
        notebook = nbformat.from_dict(json.loads(path.read_text("utf-8")))
        assert stripped(notebook) == notebook, path


def test_stripping_keeps_what_nbgrader_needs():
    for assignment in find_assignments().values():
        before = copy.deepcopy(assignment.released)
        for cell in before.cells:
            if cell.cell_type == "code":
                cell.outputs = [nbformat.v4.new_output("stream", text="1")]
                cell.execution_count = 1
        after = stripped(before)
        assert not any(cell.get("outputs") for cell in after.cells)
        for old, new in zip(before.cells, after.cells, strict=True):
            assert (old.id, old.source) == (new.id, new.source)
            assert old.metadata.get("nbgrader") == new.metadata.get("nbgrader")
