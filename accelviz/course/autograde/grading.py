"""Grades a class, one submission at a time, so that none can spoil another's points."""

from __future__ import annotations

import copy
import glob
import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import pandas as pd

from accelviz.course.autograde.assignments import Assignment, choose, read_notebook
from accelviz.course.autograde.folder import Course, first_line
from accelviz.course.autograde.needs import need
from accelviz.course.autograde.outputs import extra_points
from accelviz.course.autograde.preflight import examine
from accelviz.course.autograde.problems import Checked
from accelviz.course.autograde.sandbox import copy_files
from accelviz.errors import AccelvizError, ArgumentError


class Row(NamedTuple):
    """A line of a submission's grades; None where there is nothing to say."""

    question: str
    points: float | None = None
    max: float | None = None
    seconds: float | None = None
    problem: str = ""


#: Columns of the table of grades.
COLUMNS = ("student", "assignment", *Row._fields)
#: The problem of a question that nobody has graded yet.
BY_HAND = "to be graded by hand"


@dataclass
class Graded:
    """What came of a submission.

    Attributes
    ----------
    student, assignment : str
    rows : list of Row
    remarks : list of str
        What an instructor may want to know beside failed tests.
    set_aside : str
        Why it was not graded, "" if it was.
    """

    student: str
    assignment: str
    rows: list[Row] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    set_aside: str = ""


def grade(
    root: Path,
    assignments: Sequence[str] = (),
    students: Sequence[str] = (),
    *,
    settings: dict[str, Any] | None = None,
    force: bool = False,
    progress: Callable[[str], object] = lambda _: None,
) -> list[Graded]:
    """Grade what is in `submitted/<student>/<assignment>/` of a course folder.

    Each submission is examined first (`examine`), repaired into `checked/` where that is safe, and
    graded by nbgrader alone, its cells in the sandbox. One that cannot be graded is set aside. What
    was graded before and has not changed since is not run again, unless now it may have the GPU for
    the first time; its points, those given by hand included, are read from the gradebook.

    Parameters
    ----------
    root : Path
        A course folder.
    assignments, students : sequence of str
        Which; all if none is named.
    settings : dict, optional
        Limits that replace those of `nbgrader_config.py`, by the names of `SandboxedExecute`.
    force : bool
        Run again also what has not changed.
    progress : callable
        Is told which submission is being graded.

    Returns
    -------
    list of Graded
        By student, then assignment.

    Raises
    ------
    ArgumentError
        If this is no course folder, or there is no such assignment, or no submission.
    DeviceUnavailable
        If nbgrader is not installed.
    """
    need("nbgrader", "course")
    course = Course(root)
    known = course.assignments()
    course.check()
    wanted = {each.name for each in choose(known, list(assignments))}
    found = [*_strays(root / "submitted", students)]
    for student, folder in submissions(root / "submitted", students):
        assignment = known.get(folder.name)
        if assignment is None:
            reason = f"there is no assignment {folder.name!r}, only {', '.join(known)}"
            found.append(Graded(student, folder.name, set_aside=reason))
        elif glob.escape(student) != student:
            reason = "nbgrader takes no folder with [, ], * or ? in its name; rename it"
            found.append(Graded(student, folder.name, set_aside=reason))
        elif assignment.name in wanted:
            progress(f"{student} {assignment.name}")
            found.append(_graded(course, student, assignment, settings or {}, force))
    found.sort(key=lambda each: (each.student, each.assignment))
    if not found:
        whom = f" of {', '.join([*students, *assignments])}" if students or assignments else ""
        raise ArgumentError(
            str(root / "submitted"),
            f"there is no submission{whom}",
            "STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb in it",
        )
    return found


def submissions(folder: Path, students: Sequence[str] = ()) -> Iterator[tuple[str, Path]]:
    """Give each `<student>/<assignment>/` of a folder."""
    for student in sorted(folder.glob("*/")):
        if (not students or student.name in students) and not student.name.startswith("."):
            for assignment in sorted(student.glob("*/")):
                if not assignment.name.startswith("."):
                    yield student.name, assignment


def _strays(folder: Path, students: Sequence[str]) -> Iterator[Graded]:
    """Name notebooks that lie where nothing is graded."""
    for path in sorted([*folder.glob("*.ipynb"), *folder.glob("*/*.ipynb")]):
        inside = path.parent != folder
        student = path.parent.name if inside else path.stem
        if (not students or student in students) and not student.startswith("."):
            right = f"{student if inside else 'STUDENT'}/ASSIGNMENT/ASSIGNMENT.ipynb"
            reason = f"{path.name} does not lie in {right}; move it there"
            yield Graded(student, path.stem if inside else "", set_aside=reason)


def table(found: Sequence[Graded]) -> pd.DataFrame:
    """Return the grades, a row for each question, with the columns `COLUMNS`.

    `points` is missing where they are to be given by hand, and where a submission was set aside.
    """
    rows = [
        (each.student, each.assignment, *row)
        for each in found
        for row in [*each.rows, *([Row("", problem=each.set_aside)] * bool(each.set_aside))]
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    numbers = dict.fromkeys(("points", "max", "seconds"), "float64")
    return frame.astype(numbers).round({"seconds": 2})


def read_table(path: Path) -> pd.DataFrame:
    """Read a table of grades back; an empty one if there is none."""
    words = dict.fromkeys(("student", "assignment", "question", "problem"), str)
    missing = {name: [""] for name in COLUMNS if name not in words}
    try:
        found = pd.read_csv(path, dtype=words, keep_default_na=False, na_values=missing)
    except (OSError, ValueError):
        return table([])
    return found if list(found.columns) == list(COLUMNS) else table([])


def merged(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return a table of grades with the submissions of another one in place of its own.

    Parameters
    ----------
    old, new : DataFrame
        With the columns `COLUMNS`.
    """
    keys = ["student", "assignment"]
    graded = pd.MultiIndex.from_frame(new[keys])
    kept = old[~pd.MultiIndex.from_frame(old[keys]).isin(graded)]
    both = pd.concat([kept, new], ignore_index=True) if len(kept) else new
    return both.sort_values(keys, kind="stable", ignore_index=True)


def examined(folder: Path, assignment: Assignment) -> Checked | str:
    """Find the notebook of a submission and examine it; say why if there is none."""
    notebooks = sorted(
        path for path in folder.glob("*.ipynb") if path.is_file() and not path.is_symlink()
    )
    exact = [path for path in notebooks if path.name == f"{assignment.name}.ipynb"]
    checked = [examine(path, [assignment]) for path in exact or notebooks]
    fitting = [each for each in checked if each.notebook is not None]
    if len(fitting) == 1:
        return fitting[0]
    if len(fitting) > 1:
        names = ", ".join(each.path.name for each in fitting)
        return f"{len(fitting)} notebooks, of which none is named {assignment.name}.ipynb: {names}"
    if checked:
        return " ".join(map(str, checked[0].problems))
    there = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing at all"
    return f"there is no notebook, but {there}"


def _graded(
    course: Course, student: str, assignment: Assignment, settings: dict[str, Any], force: bool
) -> Graded:
    """Grade a submission, or set it aside if anything at all goes wrong with it."""
    result = Graded(student, assignment.name)
    try:
        _grade(course, student, assignment, settings, force, result)
    except AccelvizError:  # of the course or of this machine
        raise
    except Exception as error:  # such as a folder that cannot be read
        result.rows.clear()
        result.set_aside = f"{type(error).__name__}: {first_line(error)}"
    return result


def _grade(
    course: Course,
    student: str,
    assignment: Assignment,
    settings: dict[str, Any],
    force: bool,
    result: Graded,
) -> None:
    submitted = course.step("submitted", student, assignment.name)
    checked = examined(submitted, assignment)
    if isinstance(checked, str):
        result.set_aside = checked
        return
    for problem in checked.problems:
        if not problem.harmless:
            what = f"repaired: {problem.what}" if problem.mended else problem.what
            result.rows.append(Row("", problem=what))
            result.remarks.append(what)
    key = _key(checked.notebook, submitted, assignment, course.seed())
    last = _autograded(course, student, assignment).metadata.get("accelviz", {})
    first_on_gpu = bool(settings.get("gpu")) and not last.get("gpu")
    if force or last.get("key") != key or first_on_gpu:
        _write(course, student, assignment, checked.notebook, submitted, key)
        reason = _autograde(course, student, assignment, settings)
        if reason:
            result.set_aside = reason
            return
    _read_grades(course, assignment, result)


def _key(notebook: Any, folder: Path, assignment: Assignment, seed: int) -> str:
    """Return what changes when the submission, the assignment's source or the seed does."""
    digest = hashlib.sha256(f"{seed} {nbformat.writes(_bare(notebook))}".encode())
    for home in (folder, assignment.folder):
        for path in sorted(home.rglob("*")):
            if path.is_file() and (path.suffix != ".ipynb" or home != folder):
                digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _bare(notebook: Any) -> Any:
    """Return a notebook's cells without what merely opening and saving it changes."""
    bare = nbformat.v4.new_notebook()
    for cell in copy.deepcopy(notebook.cells):
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        cell.id = f"cell-{len(bare.cells)}"
        cell.metadata = {"nbgrader": cell.metadata.get("nbgrader", {})}
        bare.cells.append(cell)
    return bare


def _autograded(course: Course, student: str, assignment: Assignment) -> Any:
    """Return the notebook of the last run, empty if there is none."""
    path = course.step("autograded", student, assignment.name) / f"{assignment.name}.ipynb"
    try:
        return read_notebook(path)
    except (OSError, ValueError):
        return nbformat.v4.new_notebook()


def _write(
    course: Course, student: str, assignment: Assignment, notebook: Any, submitted: Path, key: str
) -> None:
    """Write what is to be graded into `checked/`."""
    target = course.step("checked", student, assignment.name)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    copy_files(submitted, target)
    notebook.metadata["accelviz"] = {**notebook.metadata.get("accelviz", {}), "key": key}
    nbformat.write(notebook, target / f"{assignment.name}.ipynb")


def _autograde(
    course: Course, student: str, assignment: Assignment, settings: dict[str, Any]
) -> str:
    from nbgrader.converters import Autograde

    from accelviz.course.autograde.execute import PREPROCESSORS

    configuration = course.configuration(assignment.name)
    configuration.CourseDirectory.student_id = student
    configuration.CourseDirectory.submitted_directory = "checked"
    configuration.Autograde.force = True
    configuration.Autograde.autograde_preprocessors = PREPROCESSORS
    for name, value in settings.items():
        setattr(configuration.SandboxedExecute, name, value)
    return course.run(Autograde, configuration)


def _read_grades(course: Course, assignment: Assignment, result: Graded) -> None:
    """Read a graded submission's points from the gradebook, its times from the notebook."""
    last = _autograded(course, result.student, assignment)
    runs = {run["question"]: run for run in last.metadata.get("accelviz", {}).get("runs", [])}
    extra = {each.credited: each.question for each in extra_points(last)}
    rows = []
    with course.gradebook() as gradebook:
        submission = gradebook.find_submission(assignment.name, result.student)
        grades = {each.name: each for book in submission.notebooks for each in book.grades}
        for question in assignment.questions:
            run = runs.get(question, {})
            seconds, problem = run.get("seconds"), run.get("problem", "")
            if problem and not run.get("raised"):
                result.remarks.append(f"{question}: {problem}")
            own = grades.get(question)
            if own is not None:
                by_hand = own.manual_score is None and own.auto_score is None
                problem = problem or (BY_HAND if by_hand else "")
                points = None if by_hand else float(own.score)
                if question in extra and points is not None and own.extra_credit:
                    points -= own.extra_credit
                    told = "extra points"
                    rows.append(Row(extra[question], float(own.extra_credit), 0.0, problem=told))
                result.rows.append(Row(question, points, float(own.max_score), seconds, problem))
            elif problem:
                result.rows.append(Row(question, seconds=seconds, problem=problem))
        if penalty := float(submission.late_submission_penalty or 0.0):
            rows.append(Row("late", -penalty, problem="late penalty"))
    result.rows += rows
