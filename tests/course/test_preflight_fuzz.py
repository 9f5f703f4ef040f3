"""Random damage of a notebook: preflight never fails, and a repaired notebook can be graded."""

# ruff: noqa: E402 (what is tested needs what is skipped for)

import copy

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

nbformat = pytest.importorskip("nbformat", reason="examining submissions needs nbformat")

from accelviz.course.autograde.cells import details, is_locked, is_test, question_of
from accelviz.course.autograde.preflight import examine
from tests.course import tiny


def paste(notebook, cell, index):
    twin = copy.deepcopy(cell)
    twin["id"] = nbformat.v4.new_raw_cell().id
    notebook.cells.insert(index, twin)


def strip(notebook, cell, index):
    cell.metadata.pop("nbgrader", None)


def strip_and_rename(notebook, cell, index):
    cell.metadata.pop("nbgrader", None)
    cell["id"] = nbformat.v4.new_raw_cell().id


def delete(notebook, cell, index):
    notebook.cells.remove(cell)


def move(notebook, cell, index):
    notebook.cells.remove(cell)
    notebook.cells.insert(index, cell)


def edit(notebook, cell, index):
    cell.source += "\n# and more"


def empty(notebook, cell, index):
    cell.source = ""


def retype(notebook, cell, index):
    fresh = nbformat.v4.new_markdown_cell(cell.source, metadata=cell.metadata)
    if cell.cell_type == "markdown":
        fresh = nbformat.v4.new_code_cell(cell.source, metadata=cell.metadata)
    notebook.cells[notebook.cells.index(cell)] = fresh


def insert(notebook, cell, index):
    notebook.cells.insert(index, nbformat.v4.new_code_cell("print('mine')"))


def rename(notebook, cell, index):
    if isinstance(cell.metadata.get("nbgrader"), dict):
        cell.metadata["nbgrader"]["grade_id"] = ["mine", "test-double", "", 7, None][index % 5]


def damage(notebook, cell, index):
    cell.metadata["nbgrader"] = [None, [], "text", {"grade": True}, {"grade_id": "why"}][index % 5]


DOINGS = (paste, strip, strip_and_rename, delete, move, edit, empty, retype, insert, rename, damage)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("submissions")


# a cell without any text to know it by is found once the cell beside it is
@pytest.mark.long
@example(doings=[(strip_and_rename, 6, 0), (strip_and_rename, 7, 0), (edit, 7, 0)])
# no answer is left, which only the student can change
@example(doings=[(delete, 3, 0), (delete, 5, 0), (delete, 6, 0)])
@settings(max_examples=150)
@given(
    doings=st.lists(
        st.tuples(st.sampled_from(DOINGS), st.integers(0, 30), st.integers(0, 30)), max_size=8
    )
)
def test_a_repaired_notebook_has_each_original_test_once(assignment, folder, doings):
    notebook = tiny.answered(assignment.released)
    for doing, which, index in doings:
        if notebook.cells:
            doing(notebook, notebook.cells[which % len(notebook.cells)], index)
    written = [cell.source for cell in notebook.cells]
    path = folder / "T1.ipynb"
    nbformat.write(notebook, path)
    checked = examine(path, [assignment])
    assert all(problem.text and problem.repair for problem in checked.problems)
    if checked.notebook is None:
        assert [problem.kind for problem in checked.problems][-1] == "unreadable"
        return
    nbformat.validate(checked.notebook)
    questions = [question_of(cell) for cell in checked.notebook.cells if question_of(cell)]
    assert len(questions) == len(set(questions))
    released = {question_of(cell): cell for cell in assignment.released.cells if question_of(cell)}
    assert set(questions) <= set(released)
    for cell in checked.notebook.cells:
        if question := question_of(cell):
            assert cell.metadata["nbgrader"] == released[question].metadata["nbgrader"]
            assert cell.cell_type == released[question].cell_type
            assert not is_locked(cell) or cell.source == released[question].source
        else:
            assert not cell.metadata.get("nbgrader")
    assert {question for question in released if is_test(released[question])} <= set(questions)
    # nothing that was written is lost, but what grading overwrites
    locked = [cell.source for cell in released.values() if is_locked(cell)]
    sources = [cell.source for cell in checked.notebook.cells]
    ids = {question for question in released if is_locked(released[question])}
    named = [cell.source for cell in notebook.cells if str(details(cell).get("grade_id")) in ids]
    for text in set(written) - {*sources, *named}:
        text_before = text.replace("\n# and more", "")
        assert not text_before or any(
            text_before.startswith(original[:8]) for original in locked
        ), text
    # what was repaired is in order, but for what was left to the student; where one mistake hid
    # another, it may take a second time
    left, open_ = {"missing", "blank"}, checked.problems
    for _ in range(3):
        nbformat.write(checked.notebook, path)
        checked = examine(path, [assignment])
        open_ = [
            problem
            for problem in checked.problems
            if not problem.harmless and problem.kind not in left
        ]
        if not open_:
            break
    assert not open_
    MetadataValidator = pytest.importorskip("nbgrader.nbgraderformat").MetadataValidator
    MetadataValidator().validate_nb(checked.notebook)
