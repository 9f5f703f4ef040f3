"""Creates and renews a course folder: copies the assignments and generates students' versions."""

from __future__ import annotations

import contextlib
import copy
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

import nbformat

from accelviz.course.autograde.assignments import (
    Assignment,
    assignments_directory,
    choose,
    find_assignments,
)
from accelviz.course.autograde.common import first_line, need
from accelviz.course.autograde.folder import CONFIGURATION, Course
from accelviz.errors import ArgumentError

#: Markers that must not occur in a release.
_SECRETS = ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "MARK SCHEME")


def release(
    root: Path, names: Sequence[str] = (), *, fresh: bool = False, shipped: Path | None = None
) -> dict[str, str]:
    """Create or renew a course folder.

    Parameters
    ----------
    root : Path
        The course folder; created if it does not exist.
    names : sequence of str
        Names of the assignments; default: all.
    fresh : bool
        Replace sources in the course folder by the shipped ones. By default they are kept, as they
        may have been edited.
    shipped : Path, optional
        Folder of the shipped sources; default: accelviz's own.

    Returns
    -------
    dict of str to str
        A message for each assignment.

    Raises
    ------
    ArgumentError
        If there is no such assignment, or nbgrader refuses the folder or the source.
    """
    need("nbgrader", "course")
    course = Course(root)
    known = find_assignments(shipped or assignments_directory())
    with contextlib.suppress(ArgumentError):  # the course may have assignments of its own
        known = dict(sorted((course.assignments() | known).items()))
    chosen = choose(known, list(names))
    course.check()
    root.mkdir(parents=True, exist_ok=True)
    if not (root / "nbgrader_config.py").exists():
        text = CONFIGURATION.format(seed=1 + secrets.randbits(120))
        (root / "nbgrader_config.py").write_text(text, encoding="utf-8")
    messages = {}
    for assignment in chosen:
        source = course.step("source", ".", assignment.name)
        keeps_source = source.exists() and not fresh
        if not keeps_source and assignment.folder != source:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(source)
            ignored = shutil.ignore_patterns(".*", "__pycache__")
            shutil.copytree(assignment.folder, source, ignore=ignored)
        _generate(course, assignment.name)
        ending = " from the source that was there" if keeps_source else ""
        messages[assignment.name] = f"released{ending}"
    course.step("submitted").mkdir(exist_ok=True)
    return messages


def _generate(course: Course, name: str) -> None:
    """Let nbgrader generate a release; replace the old one only if it succeeds."""
    from nbgrader.converters import GenerateAssignment

    source, target = (course.step(step, ".", name) for step in ("source", "release"))
    notebook, problem = copy.deepcopy(Assignment(source).source), ""
    expected = "a notebook in nbgrader's source format"
    try:
        with course.gradebook() as gradebook:
            gradebook.update_or_create_assignment(name)
        kinds = GenerateAssignment(config=course.configuration(name)).preprocessors
        notebook = course.preprocess(kinds, notebook, name)
    except ArgumentError:
        raise
    except Exception as error:  # nbgrader raises any
        problem = first_line(error)
        if "submissions associated" in str(error):
            problem = "its cells changed, and the gradebook has submissions of it already"
            expected = "the cells and grade ids as they were, or a new course folder"
    text = "\n".join(cell.source for cell in notebook.cells)
    if not problem and (markers := [secret for secret in _SECRETS if secret in text]):
        problem = f"the release would show a line with {markers[0]!r}"
        expected = "each BEGIN with its END, in a cell of nbgrader's kind solution or test"
    if problem:
        raise ArgumentError(f"source/{name}", problem, expected)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(target)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.ipynb"))
    nbformat.write(notebook, target / f"{name}.ipynb")
