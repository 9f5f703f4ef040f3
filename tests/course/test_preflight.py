"""Problems of a submission are reported with their cell, and repaired where that is safe."""

# ruff: noqa: E402 (what is tested needs what is skipped for)

import copy
import functools
import json
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="examining submissions needs nbformat")

from accelviz import cli
from accelviz.course.autograde.assignments import choose, find_assignments
from accelviz.course.autograde.cells import checksum, is_test, question_of
from accelviz.course.autograde.preflight import examine, run_visible_tests
from accelviz.course.autograde.repair import Checked
from accelviz.errors import ArgumentError
from tests.course import tiny


@pytest.fixture
def check(assignment, tmp_path):
    def examined(notebook, name=f"{tiny.NAME}.ipynb"):
        path = tmp_path / name
        nbformat.write(notebook, path)
        return examine(path, [assignment])

    return examined


def kinds(checked):
    return [problem.kind for problem in checked.problems]


def problem_of(checked, kind):
    (problem,) = [problem for problem in checked.problems if problem.kind == kind]
    return problem


def assert_same_questions(notebook, expected):
    """Require equal cells with grade ids, in the same order."""
    actual_cells = [cell for cell in notebook.cells if question_of(cell)]
    expected_cells = [cell for cell in expected.cells if question_of(cell)]
    for cell, original in zip(actual_cells, expected_cells, strict=True):
        assert cell.metadata["nbgrader"] == original.metadata["nbgrader"]
        assert (cell.cell_type, cell.source) == (original.cell_type, original.source)


def test_a_release_has_no_solutions_and_no_hidden_tests(assignment):
    text = nbformat.writes(assignment.released)
    for secret in ("return 2 * x", "fsum", "-6", "0.1", "SOLUTION", "HIDDEN", "Rounding"):
        assert secret not in text
    double = tiny.cell_of(assignment.released, "double")
    assert double.source.endswith("    # YOUR CODE HERE\n    raise NotImplementedError()")
    assert tiny.cell_of(assignment.released, "why").source == "YOUR ANSWER HERE"
    for cell in assignment.released.cells:
        if question_of(cell):
            assert cell.metadata["nbgrader"]["checksum"] == checksum(cell)


def test_a_right_submission_has_no_problem(assignment, check):
    notebook = tiny.answered(assignment.released)
    checked = check(notebook)
    assert checked.problems == ()
    assert checked.assignment is assignment
    assert_same_questions(checked.notebook, notebook)


@pytest.mark.parametrize(
    ("blank", "fine", "says"),
    [
        (("total", "why"), True, "No answer yet in cell 7 ('total'), cell 9 ('why')."),
        (("double", "total", "why"), False, "There is no answer in it."),
    ],
)
def test_unanswered_cells_are_harmless_unless_all_are(assignment, check, blank, fine, says):
    checked = check(tiny.answered(assignment.released, **dict.fromkeys(blank)))
    assert kinds(checked) == ["blank"]
    assert checked.fine == fine
    assert problem_of(checked, "blank").text == says


@pytest.mark.parametrize("text", ["![a](plot.png)", "<img src='plot.png'>", "![](https://a.b/c)"])
def test_a_picture_that_is_not_in_the_notebook_is_reported(assignment, check, text):
    notebook = tiny.answered(assignment.released, why=f"See ![here](attachment:a.png). {text}")
    problem = problem_of(check(notebook), "picture")
    assert problem.harmless
    assert problem.text.startswith("Cell 9 shows a picture of a file")
    assert kinds(check(tiny.answered(assignment.released, why="![here](attachment:a.png)"))) == []


@pytest.mark.skipif(sys.platform == "win32", reason="submissions are not confined on Windows")
def test_a_blank_answer_is_not_to_be_mended_too(assignment, check):
    checked = run_visible_tests(check(tiny.answered(assignment.released, total=None)))
    texts = [problem.text for problem in checked.problems]
    assert texts[0] == "No answer yet in cell 7 ('total')."
    assert [text.partition(":")[0] for text in texts[1:]] == ["Cell 8 ('test-total') fails"]


@pytest.mark.skipif(sys.platform == "win32", reason="submissions are not confined on Windows")
def test_failing_cells_are_reported(assignment, check):
    wrong = tiny.answered(assignment.released, double="def double(x): return x")
    wrong.cells.append(nbformat.v4.new_code_cell("1 / 0"))
    checked = run_visible_tests(check(wrong))
    problems = [problem.text for problem in checked.problems]
    assert problems[0].startswith("Cell 5 ('test-double') fails: AssertionError")
    assert problems[1].startswith("Cell 10 fails: ")
    assert not checked.fine
    answered = tiny.answered(assignment.released)
    answered.cells.append(nbformat.v4.new_code_cell("1 / 0"))
    assert run_visible_tests(check(answered)).fine  # a student's scratch cell costs nothing


def paste_test(notebook):
    tiny.pasted(notebook, "test-double", after="total")


def paste_stub(notebook):
    stub = 'def double(x):\n    """Return twice x."""\n    # YOUR CODE HERE\n'
    stub += "    raise NotImplementedError()"
    tiny.pasted(notebook, "double", after="test-double", source=stub)


def strip(notebook, ids=()):
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
        cell["id"] = f"other-{cell['id']}" if ids else cell["id"]


def strip_answers(notebook):
    """Remove metadata and ids of two answers, and move the title to the end."""
    for answer in ("total", "why"):
        cell = tiny.cell_of(notebook, answer)
        del cell.metadata["nbgrader"]
        cell["id"] = f"{answer}-renamed"
    notebook.cells.append(notebook.cells.pop(0))


def strip_and_edit(notebook):
    cell = tiny.cell_of(notebook, "test-total")
    del cell.metadata["nbgrader"]
    cell["id"], cell.source = "other", cell.source.replace("len(cases)", "len( cases )")


def edit_test(notebook):
    tiny.cell_of(notebook, "test-double").source = "assert True"


def edit_two(notebook):
    edit_test(notebook)
    tiny.cell_of(notebook, "setup").source += "\nimport os"


def claim(notebook):
    mine = tiny.marked(nbformat.v4.new_code_cell("1 + 1"), "mine", solution=True)
    notebook.cells.append(mine)


def change(key, value):
    return lambda notebook: (
        tiny.cell_of(notebook, "test-total").metadata["nbgrader"].update({key: value})
    )


CHANGED = "1 cell has lost the nbgrader metadata, without which no points are given, or has others"


@pytest.mark.parametrize(
    ("damage", "expected", "says"),
    [
        (paste_test, "duplicate", "is there 2 times: cell 5 (assert double(2) == 4) and cell 8"),
        (paste_test, "duplicate", "Keep cell 5; delete cell 8."),
        (paste_stub, "duplicate", "Keep cell 4; delete cell 6."),
        (strip, "metadata", "6 cells have lost the nbgrader metadata"),
        (strip, "metadata", "cell 5 (assert double(2) == 4) is 'test-double'"),
        (functools.partial(strip, ids=True), "metadata", "6 cells have lost"),
        (strip_answers, "metadata", "2 cells have lost"),
        (strip_and_edit, "missing", "The cell 'test-total' is missing"),
        (edit_test, "changed", "Locked cells were changed (the checksum differs): 'test-double'"),
        (edit_two, "changed", "(the checksum differs): 'setup' (cell 2), 'test-double' (cell 5)"),
        (claim, "metadata", "Cell 10 (1 + 1) has nbgrader metadata, and no such"),
        (change("grade", False), "metadata", CHANGED),
        (change("locked", False), "metadata", CHANGED),
        (change("schema_version", 1), "metadata", CHANGED),
        (change("solution", True), "metadata", CHANGED),
    ],
)
def test_damage_is_reported_and_repaired(assignment, check, damage, expected, says):
    notebook = tiny.answered(assignment.released)
    damage(notebook)
    checked = check(notebook)
    assert kinds(checked) == expected.split()
    assert says in " ".join(map(str, checked.problems))
    assert all(problem.mended for problem in checked.problems)
    assert not checked.fine
    assert_same_questions(checked.notebook, tiny.answered(assignment.released))
    copies = ("NotImplementedError", "double(2)", "1 + 1")
    counts = [sum(text in cell.source for cell in checked.notebook.cells) for text in copies]
    assert counts == [0, 1, damage is claim]


def test_cells_of_no_question_are_named_in_one_line(assignment, check):
    notebook = tiny.answered(assignment.released)
    for k in range(400):
        cell = nbformat.v4.new_code_cell(f"X = {k}")
        notebook.cells.append(tiny.marked(cell, f"claim-{k}", grade=True, points=1))
    problem = problem_of(check(notebook), "metadata")
    assert problem.text.startswith("Cell 10 (X = 0), cell 11 (X = 1), ")
    assert problem.text.endswith(
        "cell 19 (X = 9), ... have nbgrader metadata, and no such cell is in this assignment."
    )


def test_the_last_of_two_answers_counts_and_both_are_kept(assignment, check):
    notebook = tiny.answered(assignment.released)
    tiny.pasted(notebook, "why", after="why", source="On second thought.")
    first = tiny.pasted(
        notebook, "double", after="setup", source="def double(x):\n    return 3 * x"
    )
    checked = check(notebook)
    assert kinds(checked) == ["duplicate", "duplicate"]
    assert tiny.cell_of(checked.notebook, "why").source == "On second thought."
    assert tiny.cell_of(checked.notebook, "double").source == tiny.DOUBLE
    sources = [cell.source for cell in checked.notebook.cells]
    assert first.source in sources
    assert tiny.WHY in sources


def test_an_assignment_is_recognized_by_its_name_alone(assignment, check):
    whole = tiny.answered(assignment.released)
    checked = check(tiny.stripped(whole, keep_ids=False), "t1 (copy).ipynb")
    assert sorted(kinds(checked)) == ["metadata", "name"]
    assert_same_questions(checked.notebook, whole)


@pytest.mark.parametrize("question", ["setup", "test-double", "test-total", "why"])
def test_a_deleted_cell_is_reported_and_restored(assignment, check, question):
    notebook = tiny.answered(assignment.released, why=None)
    before = copy.deepcopy(notebook)
    index = tiny.place_of(notebook, question)
    del notebook.cells[index]
    checked = check(notebook)
    problem = problem_of(checked, "missing")
    assert f"{question!r} is missing; it should stand after cell {index}." in problem.text
    assert problem.mended
    assert_same_questions(checked.notebook, before)


def test_a_deleted_stub_is_not_restored(assignment, check):
    notebook = tiny.answered(assignment.released)
    del notebook.cells[tiny.place_of(notebook, "double")]
    notebook.cells.insert(0, nbformat.v4.new_code_cell("from mine import double", id="mine"))
    del notebook.cells[1:3]
    checked = check(notebook)
    assert kinds(checked) == ["missing", "missing"]
    assert [problem.mended for problem in checked.problems] == [True, False]
    assert all("NotImplementedError" not in cell.source for cell in checked.notebook.cells)


def test_an_answer_in_a_cell_of_one_s_own_is_known_by_what_it_defines(assignment, check):
    notebook = tiny.answered(assignment.released)
    del notebook.cells[tiny.place_of(notebook, "double")]
    text = "def half(x): return x / 2\ndef double(x): return 2 * x"
    notebook.cells.append(nbformat.v4.new_code_cell(text))
    checked = check(notebook)
    assert kinds(checked) == ["metadata", "order"]
    assert_same_questions(checked.notebook, tiny.answered(assignment.released, double=text))


def test_an_answer_without_a_name_is_not_taken_for_a_blank_one(tmp_path):
    """A5 has two code cells with the same stub."""
    a5 = find_assignments()["A5-report"]
    notebook = tiny.stripped(a5.released, keep_ids=False)
    originals = {question_of(cell): k for k, cell in enumerate(a5.released.cells)}
    notebook.cells[originals["A5-sweep"]].source = "sweep_table = 7"
    nbformat.write(notebook, tmp_path / "A5-report.ipynb")
    repaired = examine(tmp_path / "A5-report.ipynb", [a5]).notebook
    assert tiny.cell_of(repaired, "A5-sweep").source == "sweep_table = 7"
    assert tiny.cell_of(repaired, "A5-picture").source.startswith("# YOUR CODE HERE")


def test_a_test_before_its_answer_is_put_behind_it(assignment, check):
    notebook = tiny.answered(assignment.released)
    index = tiny.place_of(notebook, "test-double")
    notebook.cells.insert(1, notebook.cells.pop(index))
    checked = check(notebook)
    problem = problem_of(checked, "order")
    assert "Cell 2 (assert double(2) == 4) stands before cell 5 (def double(x):)" in problem.text
    assert problem.mended
    questions = [question_of(cell) for cell in checked.notebook.cells]
    assert questions == [question_of(cell) for cell in assignment.released.cells]


def test_name_and_format(assignment, check):
    notebook = tiny.answered(assignment.released)
    notebook.metadata["kernelspec"] = {"name": "mine", "display_name": "Mine", "language": "python"}
    notebook.metadata["title"] = "</title><script>"
    notebook.cells[0].metadata["transient"] = {"remove_source": True}
    notebook.metadata["language_info"] = {"name": "python", "nbconvert_exporter": "antigravity.x"}
    notebook.nbformat_minor = 4
    for cell in notebook.cells:
        del cell["id"]
    checked = check(notebook, f"{tiny.NAME} (1).ipynb")
    assert kinds(checked) == ["name"]
    assert problem_of(checked, "name").repair == "Rename it to T1.ipynb."
    assert checked.notebook.metadata["kernelspec"]["name"] == "python3"
    assert "title" not in checked.notebook.metadata
    assert not any("transient" in cell.metadata for cell in checked.notebook.cells)
    assert "nbconvert_exporter" not in checked.notebook.metadata["language_info"]
    assert checked.notebook.nbformat_minor == 5


def test_long_texts_are_cut(assignment, check):
    """Brackets take quadratic time when a page is made of them."""
    notebook = tiny.answered(assignment.released, why="![" * 20_000)
    notebook.cells += [nbformat.v4.new_markdown_cell("[" * 19_000) for _ in range(15)]
    checked = check(notebook)
    texts = [cell.source for cell in checked.notebook.cells if cell.cell_type != "code"]
    assert max(map(len, texts)) == 20_000
    assert sum(map(len, texts)) == 200_000
    assert set(kinds(checked)) == {"size"}
    assert "40,000 letters; the rest is left out" in checked.problems[0].text


def test_what_grading_needs_no_part_of_is_left_unread(assignment, tmp_path):
    """Outputs, metadata and unknown parts, also those that no version of the format has."""
    path = tmp_path / f"{tiny.NAME}.ipynb"
    nbformat.write(tiny.answered(assignment.released), path)
    content = json.loads(path.read_text())
    (double,) = [cell for cell in content["cells"] if cell["id"] == "double"]
    double["outputs"] = [{"output_type": "pyout", "text": "\ud83d"}] * 300_000
    double |= {"execution_count": float("nan"), "attachments": {}, "mine": [[]] * 3_000}
    double["metadata"]["mine"] = [[]] * 3_000
    content["cells"][0]["metadata"] = None
    content |= {"nbformat_minor": "3", "unknown": [[]] * 3_000}
    content["metadata"] = {"kernelspec": {"name": None}, "mine": "\ud83d"}
    path.write_text(json.dumps(content))
    checked = examine(path, [assignment])
    assert checked.problems == ()
    assert tiny.cell_of(checked.notebook, "double").outputs == []
    assert "mine" not in str(checked.notebook)
    assert "unknown" not in checked.notebook


def test_a_notebook_without_an_assignment_is_reported(assignment, check):
    other = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    checked = check(other, "holidays.ipynb")
    assert kinds(checked) == ["unreadable"]
    assert (
        "by its grade ids or, without them, by its name it is no notebook of T1."
        in checked.problems[0].text
    )


def test_the_notebook_of_another_assignment_is_no_answer(assignment, check):
    """Its cells were reported one by one, and it was graded with 0 points."""
    other = tiny.answered(assignment.released)
    for cell in other.cells:
        if question_of(cell):
            cell.metadata["nbgrader"]["grade_id"] = f"T2-{cell.id}"
    (problem,) = check(other).problems
    assert "by its grade ids or, without them, by its name it is no notebook of T1" in problem.text
    assert problem.repair == "Hand in that notebook."


def test_the_command_reports_problems_of_files_and_folders(assignment, tmp_path, capsys):
    course = tmp_path / "course"
    (course / "source").mkdir(parents=True)
    tiny.write_source(course / "source")
    notebook = tiny.answered(assignment.released)
    path = tmp_path / "mine" / "T1.ipynb"
    path.parent.mkdir()
    nbformat.write(notebook, path)
    options = ["assignments", "preflight", "--course", str(course)]
    assert cli.main([*options, str(path)]) == 0
    printed = capsys.readouterr()
    assert "ready to hand in" in printed.out
    assert "running" in printed.err  # it takes ten seconds, and a class as often as it has students
    tiny.pasted(notebook, "test-double", after="test-double")
    mine = path.rename(path.with_name("T1-final.ipynb"))
    nbformat.write(notebook, mine)
    before = mine.read_bytes()
    for options_of_run in ([], ["--no-run"]):
        assert cli.main([*options, str(mine.parent), *options_of_run]) == 1
        printed = capsys.readouterr().out
        assert printed.count(".ipynb: ") == 1
        assert "T1-final.ipynb: 2 problems" in printed
        assert "name: The file is named T1-final.ipynb" in printed
        assert "duplicate: The grade id 'test-double' is there 2 times" in printed
    assert mine.read_bytes() == before


def test_assignments_are_found_by_folder_and_short_name(tmp_path):
    tiny.write_source(tmp_path)
    (tmp_path / "T1").rename(tmp_path / "T2-long-name")
    with pytest.raises(ArgumentError, match="there is no assignment"):
        find_assignments(tmp_path)
    (tmp_path / "T2-long-name" / "T1.ipynb").rename(tmp_path / "T2-long-name/T2-long-name.ipynb")
    known = find_assignments(tmp_path)
    assert list(known) == ["T2-long-name"]
    assert choose(known, ["T2"]) == choose(known, ["T2-long-name"]) == choose(known, [])
    assert [is_test(cell) for cell in known["T2-long-name"].released.cells].count(True) == 2


def test_a_test_that_the_teacher_mended_is_no_accusation(assignment, check):
    notebook = tiny.answered(assignment.released)
    cell = tiny.cell_of(notebook, "test-double")
    cell.source = "assert double(2) == 5"  # as it was when this copy was handed out
    for name in ("test-double", "why"):
        tiny.cell_of(notebook, name).metadata["nbgrader"]["points"] = 9
    cell.metadata["nbgrader"]["checksum"] = checksum(cell)
    checked = check(notebook)
    assert checked.fine
    assert kinds(checked) == ["renewed"]
    mended = tiny.cell_of(checked.notebook, "test-double")
    assert mended.source == tiny.cell_of(assignment.released, "test-double").source
    assert mended.metadata["nbgrader"]["points"] == 3
    cell.source = "pass"  # changed by the student, with the old checksum
    assert kinds(check(notebook)) == ["changed"]


def test_preflight_hides_what_grading_hides():
    """`BlockSetting` has the answer of A2; only the hidden tests tell that it is not there."""
    a2 = find_assignments()["A2-block-partition"]
    notebook = copy.deepcopy(a2.released)
    *_, comparing = (cell for cell in notebook.cells if "block_level_records" in cell.source)
    notebook.cells = [
        *(cell for cell in notebook.cells if question_of(cell) in ("A2-imports", "A2-pattern")),
        comparing,
        nbformat.v4.new_code_cell(f"{comparing.source}\n# once more"),
    ]
    _, answer, _, _ = notebook.cells
    answer.source = (
        "from accelviz.partition.block_level import BlockSetting\nbound = BlockSetting().deg_bound"
    )
    checked = run_visible_tests(Checked(Path("A2.ipynb"), a2, (), notebook))
    answer, scratch = checked.problems
    assert "NotYours" in answer.text
    assert scratch.text.startswith("Cell 4 fails: ")
    assert (answer.harmless, scratch.harmless) == (False, True)
