"""Fixtures: a tiny assignment, and a course whose class was graded once per session."""

import os
import shutil
import socket

import pytest


@pytest.fixture(scope="module")
def assignment(tmp_path_factory):
    """Return the tiny assignment, written to a temporary folder."""
    from accelviz.course.autograde.assignments import Assignment
    from tests.course import tiny

    return Assignment(tiny.write_source(tmp_path_factory.mktemp("assignments")))


@pytest.fixture(scope="session")
def shipped(tmp_path_factory, request):
    """Return the folder of a course and the results of grading all its submissions.

    Students that only one test uses hand in only if that test is selected.
    """
    import nbformat

    from accelviz.course.autograde import grading
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
    with socket.create_server(("127.0.0.1", 0)) as server:
        tests = [item for item in request.session.items if "shipped" in item.fixturenames]
        asked = {item.callspec.params.get("student") for item in tests if hasattr(item, "callspec")}
        handed_in.hand_in_all(root, server.getsockname()[1], asked)
        os.environ["ACCELVIZ_TEST_SECRET"] = "secret of the course"
        try:
            # The points of wrong answers depend on the hidden graphs, so the seed is fixed. One of
            # the jobs sleeps for 20 s, so there is one more than there are processors.
            jobs = (os.cpu_count() or 1) + 1
            results = grading.grade(root, settings={"seed": 0, "cell_seconds": 20.0}, jobs=jobs)
        finally:
            del os.environ["ACCELVIZ_TEST_SECRET"]
    return root, results
