"""Fixtures: a tiny assignment, and a course whose class was graded once per session."""

import os
import re
import shutil
import socket
import sys

import pytest


@pytest.fixture(scope="module")
def assignment(tmp_path_factory):
    """Return the tiny assignment, written to a temporary folder."""
    from accelviz.course.autograde.assignments import Assignment
    from tests.course import tiny

    return Assignment(tiny.write_source(tmp_path_factory.mktemp("assignments")))


@pytest.fixture(scope="session")
def shipped(tmp_path_factory, request):
    """Return the folder of a course whose class was graded by one command, and the grades.

    Students that only one test uses hand in only if that test is selected.
    """
    import nbformat

    from accelviz import cli
    from accelviz.course.autograde import tables
    from accelviz.course.autograde.release import release
    from accelviz.files import assignments_directory
    from tests.course import shipped as handed_in
    from tests.course.wrong import PART

    root = tmp_path_factory.mktemp("course")
    sources = tmp_path_factory.mktemp("sources") / "all"
    shutil.copytree(assignments_directory(), sources)
    (sources / PART).mkdir()
    nbformat.write(handed_in.part(), sources / PART / f"{PART}.ipynb")
    release(root, shipped=sources)
    (root / "notes.txt").write_text(handed_in.SECRETS[1])
    settings = root / "nbgrader_config.py"
    settings.write_text(re.sub(r"seed = \d+", f"seed = {handed_in.SEED}", settings.read_text()))
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as without_file,
        pytest.MonkeyPatch.context() as patch,
    ):
        port = server.getsockname()[1]
        if sys.platform == "linux":
            without_file.bind(f"\0accelviz-grading-{port}")
            without_file.listen()
        tests = [item for item in request.session.items if "shipped" in item.fixturenames]
        asked = {item.callspec.params.get("student") for item in tests if hasattr(item, "callspec")}
        handed_in.hand_in_all(root, port, asked)
        patch.setenv("ACCELVIZ_TEST_SECRET", handed_in.SECRETS[0])
        # Some of the jobs wait, so there are two more than there are processors.
        options = ["--cell-seconds", "40", "--jobs", str((os.cpu_count() or 1) + 2), "--as-root"]
        assert cli.main(["assignments", "grade", "--course", str(root), *options]) == 1
    return root, tables.read_table(root / "grades-by-question.csv")
