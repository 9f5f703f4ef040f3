"""Wrong input of the commands: an error message in one line, and the right exit status."""

# ruff: noqa: E402 (what is tested needs what is skipped for)

import json
import os
import sys

import pytest

nbformat = pytest.importorskip("nbformat", reason="examining submissions needs nbformat")

from accelviz import cli
from accelviz.course.autograde import grading, preflight
from accelviz.course.autograde.common import need
from accelviz.course.autograde.folder import Course
from accelviz.course.autograde.preflight import examine
from accelviz.errors import DeviceUnavailable
from tests.course import tiny


@pytest.fixture(scope="module")
def released_text(assignment):
    return nbformat.writes(tiny.answered(assignment.released))


@pytest.fixture
def course(tmp_path):
    root = tmp_path / "spring"
    tiny.write_source(root / "source")
    (root / "submitted").mkdir()
    return root


def test_a_package_whose_import_fails_is_named_with_how_to_install_it(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("raise ImportError('no libbroken.so')")
    monkeypatch.syspath_prepend(tmp_path)
    need("broken_package", "lab", import_now=False)
    with pytest.raises(DeviceUnavailable, match=r"no libbroken.so.*accelviz\[lab\]"):
        need("broken_package", "lab")


def test_nbgrader_is_needed_where_grading_first_imports_it(course, monkeypatch):
    monkeypatch.setitem(sys.modules, "nbgrader", None)
    (course / "gradebook.db").touch()
    with pytest.raises(DeviceUnavailable, match=r"accelviz\[course\]"):
        Course(course).check()
    with pytest.raises(DeviceUnavailable, match=r"accelviz\[course\]"):
        next(grading._grade_in_parallel(Course(course), [], {}, False, 1))


def examined(folder, assignment, content, name="T1.ipynb"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return examine(path, [assignment])


# Damaged notebooks, and changes by editors


@pytest.mark.parametrize(
    "written",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.replace("\\n", "\\r\\n").encode(),
        lambda text: text.replace("\\n", "\\r").encode(),
        lambda text: json.dumps(json.loads(text), ensure_ascii=True).encode(),
        lambda text: text.encode("utf-16"),
    ],
    ids=[
        "a byte order mark",
        "lines that end as on Windows",
        "in its cells too",
        "of old Macs",
        "in one line",
        "UTF-16",
    ],
)
def test_other_encodings_of_the_same_notebook_have_no_problem(
    assignment, released_text, tmp_path, written
):
    checked = examined(tmp_path, assignment, written(released_text))
    assert checked.problems == ()
    assert [cell.source for cell in checked.notebook.cells] == [
        cell.source for cell in nbformat.reads(released_text, as_version=4).cells
    ]


def test_half_a_character_is_a_question_mark(assignment, released_text, tmp_path):
    """Some editors cut a sign of two halves in the middle, and store one of them."""
    notebook = tiny.answered(nbformat.reads(released_text, as_version=4))
    cell = tiny.cell_of(notebook, "double")
    cell.source = "# \ud83d\n" + cell.source
    checked = examined(tmp_path, assignment, json.dumps(notebook))
    assert checked.problems == ()
    assert tiny.cell_of(checked.notebook, "double").source.startswith("# ?\n")


CELL = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None}
WHOLE = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "it is damaged, or no notebook at all (Expecting value: line 1 column 1"),
        ('{"cells": [', "it is damaged, or no notebook at all (Expecting value: line 1 column 12"),
        (
            '{\n<<<<<<< HEAD\n"a": 1\n}',
            "it is damaged, or no notebook at all (Expecting property name",
        ),
        ("[]", "the notebook format None, and only 4"),
        (json.dumps(WHOLE), "cannot be graded: "),
        ('{"nbformat": 5, "nbformat_minor": 0}', "the notebook format 5, and only 4"),
        ("\x00" * 64, "cannot be graded: "),
        ("PK\x03\x04", "cannot be graded: "),
        ("[" * 200_000, "cannot be graded: "),
        ('{"nbformat": 4, "x": ' + "9" * 10_000 + "}", "cannot be graded: "),
        ("{}".encode("utf-16"), "the notebook format None, and only 4"),
        (b'{"nbformat": 4}' + b"\xe9", "can't decode byte 0xe9 in position 15"),
        (json.dumps({**WHOLE, "cells": None}), "cannot be graded: "),
        (json.dumps({**WHOLE, "cells": [1]}), "cannot be graded: "),
        (json.dumps({**WHOLE, "cells": [{**CELL, "source": [1]}]}), "cannot be graded: "),
        (json.dumps({**WHOLE, "cells": [{**CELL, "source": [[]] * 200_000}]}), "200,000 lines"),
        (
            json.dumps({"nbformat": 3, "nbformat_minor": 0, "worksheets": []}),
            "format 3, and only 4",
        ),
    ],
)
def test_a_file_that_cannot_be_graded_is_reported(assignment, tmp_path, content, says):
    checked = examined(tmp_path, assignment, content)
    (problem,) = checked.problems
    assert says in str(problem)
    assert "\n" not in str(problem)
    assert len(str(problem)) < 400
    assert checked.notebook is None
    assert not checked.fine


def test_a_file_that_is_too_large_is_not_read(assignment, released_text, tmp_path, monkeypatch):
    monkeypatch.setattr(preflight, "_MAX_BYTES", 1_000)
    (problem,) = examined(tmp_path, assignment, released_text).problems
    assert "at most 0.001 are read; clear all outputs" in str(problem)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_is_not_opened(assignment, tmp_path):
    os.mkfifo(tmp_path / "T1.ipynb")
    (problem,) = examine(tmp_path / "T1.ipynb", [assignment]).problems
    assert "T1.ipynb cannot be graded: it is no file" in problem.text


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_a_file_without_read_permission_is_reported(assignment, released_text, tmp_path):
    path = tmp_path / "T1.ipynb"
    path.write_text(released_text)
    path.chmod(0)
    user = os.geteuid()
    if user == 0:  # root may read any file
        os.seteuid(65534)
    try:
        (problem,) = examine(path, [assignment]).problems
    finally:
        os.seteuid(user)
    assert "T1.ipynb cannot be graded: [Errno 13] Permission denied" in problem.text


# Folders


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["release", "--course", "file"], 2, "file: File exists"),
        (["release", "--course", "file/x"], 2, "file/x: Not a directory"),
        (["release", "T9", "--course", "new"], 2, "T9: there is no such assignment"),
        (
            ["preflight", "missing.ipynb"],
            1,
            "missing.ipynb cannot be graded: [Errno 2] No such file or directory: "
            "'missing.ipynb'.\n    Give the path of your notebook",
        ),
        (
            ["preflight", "file"],
            1,
            "file cannot be graded: it is damaged, or no notebook at all (Expecting value",
        ),
        (
            ["preflight", "empty"],
            1,
            "empty cannot be graded: it is a folder without a notebook.\n    Give the path of your",
        ),
        (["preflight", "file", "--course", "empty"], 2, "empty: it is no course folder"),
        (["preflight", "file", "--course", "missing"], 2, "missing: it is no course folder"),
        (["grade", "--course", "missing"], 2, "missing: it is no course folder"),
        (["grade", "--course", "file"], 2, "file: it is no course folder"),
        (["grade", "--course", "empty"], 2, "empty: it is no course folder"),
        (["grade", "--course", "spring"], 2, "spring/submitted: there is no submission"),
        (["grade", "--course", "spring", "--assignment", "T9"], 2, "T9: there is no such"),
        (["grade", "--course", "spring", "--student", "eve"], 2, "there is no submission of eve"),
        (["leaderboard", "missing"], 2, "missing: it is no course folder"),
        (["leaderboard", "spring"], 2, "A3: there is no such assignment. Expected: T1"),
        (["leaderboard", "spring", "--assignment", "T1"], 2, "it has no graded scheme in T1"),
    ],
)
def test_a_wrong_path_is_reported_in_one_line(course, capsys, monkeypatch, arguments, status, says):
    pytest.importorskip("nbgrader")
    monkeypatch.chdir(course.parent)
    (course.parent / "empty").mkdir()
    (course.parent / "file").write_text("hi\n")
    assert cli.main(["assignments", *arguments]) == status
    printed = capsys.readouterr()
    assert says in printed.err + printed.out
    assert len(printed.err.splitlines()) == (status == 2)


@pytest.mark.parametrize(
    "option",
    [
        ["--seconds", "0"],
        ["--seconds", "1e308"],
        ["--cell-seconds", "-1"],
        ["--memory", "nan"],
        ["--memory", "much"],
    ],
)
def test_limits_are_numbers_above_0(option, capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["assignments", "grade", "--course", "x", *option])
    assert f"{option[1]} is not a number above 0 and below a billion" in capsys.readouterr().err


# A course that was damaged


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("c = ", "SyntaxError: "),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("c = get_config()\nc.SandboxedExecute.seed = -1", "the seed is -1"),
        ("c = get_config()\nc.SandboxedExecute.seed = '7'", "the seed is '7'"),
    ],
)
def test_invalid_settings_are_reported(course, capsys, text, says):
    pytest.importorskip("nbgrader")
    (course / "nbgrader_config.py").write_text(text)
    folder = course / "submitted" / "ada" / "T1"
    folder.mkdir(parents=True)
    nbformat.write(tiny.source(), folder / "T1.ipynb")
    assert cli.main(["assignments", "grade", "--course", str(course), "--as-root"]) == 2
    error = capsys.readouterr().err
    assert "nbgrader_config.py: " in error
    assert says in error


def test_an_invalid_gradebook_is_reported(course, capsys):
    pytest.importorskip("nbgrader")
    (course / "gradebook.db").write_text("nothing of the kind")
    for verb in ("release", "grade"):
        assert cli.main(["assignments", verb, "--course", str(course)]) == 2
        error = capsys.readouterr().err
        assert "gradebook.db: file is not a database" in error
        assert len(error.splitlines()) == 1


def test_a_path_with_glob_characters_is_refused(tmp_path, capsys):
    pytest.importorskip("nbgrader")
    assert cli.main(["assignments", "release", "--course", str(tmp_path / "cs[1]")]) == 2
    assert "nbgrader takes no path with [, ], * or ?" in capsys.readouterr().err
    assert not (tmp_path / "cs[1]").exists()


def test_an_unreadable_source_is_reported(course, released_text, capsys):
    pytest.importorskip("nbgrader")
    (course / "T1.ipynb").write_text(released_text)
    (course / "source" / "T1" / "T1.ipynb").write_text("[]")
    for arguments in (
        ["preflight", str(course / "T1.ipynb"), "--course", str(course)],
        ["release", "T1", "--course", str(course)],
    ):
        assert cli.main(["assignments", *arguments]) == 2
        error = capsys.readouterr().err
        assert "T1" in error
        assert len(error.splitlines()) == 1
