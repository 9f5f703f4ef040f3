"""Makes what students get: a course folder with sources, releases and a gradebook."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accelviz.course.autograde.assignments import (
    Assignment,
    assignments_directory,
    choose,
    find_assignments,
    read_notebook,
)
from accelviz.course.autograde.folder import CONFIGURATION, Course
from accelviz.course.autograde.needs import need
from accelviz.errors import ArgumentError

#: What must not be found in a release.
_SECRETS = ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "MARK SCHEME")


def release(
    root: Path,
    names: Sequence[str] = (),
    *,
    fresh: bool = False,
    shipped: Path | None = None,
) -> dict[str, str]:
    """Make or renew a course folder.

    Parameters
    ----------
    root : Path
        The course folder; made if it does not exist.
    names : sequence of str
        Which assignments; all if none is named.
    fresh : bool
        Replace the sources in the course folder by the shipped ones. Without it, a source that is
        there already, and may have been edited, is kept.
    shipped : Path, optional
        The folder to take the sources from, if not accelviz's own.

    Returns
    -------
    dict of str to str
        What was done, by assignment.

    Raises
    ------
    ArgumentError
        If there is no such assignment, or nbgrader refuses the folder or the source.
    DeviceUnavailable
        If nbgrader is not installed.
    """
    need("nbgrader", "course")
    course = Course(root)
    known = find_assignments(shipped or assignments_directory())
    if (root / "source").is_dir():  # an assignment of the course's own is released too
        paths = [path for path in root.glob("source/*/*.ipynb") if path.stem == path.parent.name]
        known = {**{path.stem: Assignment(path.parent) for path in paths}, **known}
        known = dict(sorted(known.items()))
    chosen = choose(known, list(names))
    course.check()
    root.mkdir(parents=True, exist_ok=True)
    if not (root / "nbgrader_config.py").exists():
        text = CONFIGURATION.format(seed=1 + secrets.randbelow(10**6))
        (root / "nbgrader_config.py").write_text(text, encoding="utf-8")
    done = {}
    for assignment in chosen:
        source = course.step("source", ".", assignment.name)
        keeps_source = source.exists() and not fresh
        if not keeps_source and assignment.folder != source:
            _replace(source, assignment.folder)
        _generate(course, assignment.name)
        done[assignment.name] = "released" + (
            " from the source that was there" if keeps_source else ""
        )
    course.step("submitted").mkdir(exist_ok=True)
    return done


def _replace(target: Path, source: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    ignored = shutil.ignore_patterns(".*", "__pycache__")
    shutil.copytree(source, target, ignore=ignored)


def _generate(course: Course, name: str) -> None:
    """Let nbgrader make a release beside the old one, and put it in its place if it succeeded."""
    from nbgrader.converters import GenerateAssignment

    configuration = course.configuration(name)
    configuration.CourseDirectory.release_directory = ".release"
    configuration.GenerateAssignment.force = True
    folder = course.step(".release", ".", name)
    try:
        problem = course.run(GenerateAssignment, configuration)
        if problem:
            raise ArgumentError(f"source/{name}", *_explained(problem))
        _look_for_secrets(read_notebook(folder / f"{name}.ipynb"), name)
        target = course.step("release", ".", name)
        if target.exists():
            shutil.rmtree(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(target)
    finally:
        shutil.rmtree(course.root / ".release", ignore_errors=True)


def _explained(problem: str) -> tuple[str, str]:
    if "submissions associated" in problem:
        return (
            "its cells changed, and the gradebook has submissions of it already",
            "the cells and grade ids as they were, or a new course folder",
        )
    return problem, "a notebook in nbgrader's source format"


def _look_for_secrets(notebook: Any, name: str) -> None:
    for cell in notebook.cells:
        for secret in _SECRETS:
            if secret in cell.source:
                raise ArgumentError(
                    f"source/{name}",
                    f"the release would show a line with {secret!r}",
                    "each BEGIN with its END, in a cell that nbgrader knows as solution or test",
                )
