"""Grades a class, one submission at a time, so that none can spoil another's points."""

from __future__ import annotations

import copy
import glob
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from accelviz.course.autograde.apart import apart, start_server
from accelviz.course.autograde.assignments import Assignment, choose, read_notebook
from accelviz.course.autograde.border import require_border
from accelviz.course.autograde.cells import is_locked, question_of
from accelviz.course.autograde.files import companions, copy_files
from accelviz.course.autograde.folder import Course, first_line
from accelviz.course.autograde.needs import need
from accelviz.course.autograde.outputs import extra_points
from accelviz.course.autograde.preflight import examine
from accelviz.course.autograde.problems import Checked
from accelviz.course.autograde.tables import BY_HAND, Graded, Row
from accelviz.errors import ArgumentError

#: What examining a notebook may take; an ordinary one takes a tenth of a second.
_SECONDS_TO_EXAMINE = 60.0


def grade(
    root: Path,
    assignments: Sequence[str] = (),
    students: Sequence[str] = (),
    *,
    settings: dict[str, Any] | None = None,
    force: bool = False,
    jobs: int | None = None,
    progress: Callable[[Graded, int], object] = lambda *_: None,
) -> list[Graded]:
    """Grade what is in `submitted/<student>/<assignment>/` of a course folder.

    Each submission is examined first (`examine`), repaired into `checked/` where that is safe, run
    in the sandbox, several side by side, and then given to nbgrader, one by one. One that cannot be
    graded is set aside. What was graded before and has not changed since is not run again, unless
    now it may have the GPU for the first time; its points, those given by hand included, are read
    from the gradebook.

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
    jobs : int, optional
        Submissions at a time; as many as there are processors, if not given.
    progress : callable
        Is told each submission as soon as it is graded, and how many there are.

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
    root = root.resolve()  # submissions are examined by a process that works elsewhere
    course = Course(root)
    known = course.assignments()
    course.check()
    wanted = {graded.name for graded in choose(known, list(assignments))}
    results = misplaced(root, students)
    aside = {(graded.student, graded.assignment) for graded in results}
    tasks = [
        (student, known[folder.name])
        for student, folder in submissions(root / "submitted", students)
        if folder.name in wanted and (student, folder.name) not in aside
    ]
    total = len(results) + len(tasks)
    for graded in results:
        progress(graded, total)
    if tasks:
        for graded in _side_by_side(course, tasks, settings or {}, force, jobs):
            results.append(graded)
            progress(graded, total)
    results.sort(key=lambda graded: (graded.student, graded.assignment))
    if not results:
        whom = f" of {', '.join([*students, *assignments])}" if students or assignments else ""
        raise ArgumentError(
            str(root / "submitted"),
            f"there is no submission{whom}",
            "STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb in it",
        )
    return results


def submissions(folder: Path, students: Sequence[str] = ()) -> Iterator[tuple[str, Path]]:
    """Give each `<student>/<assignment>/` of a folder."""
    for student in _folders(folder):
        if not students or student.name in students:
            for assignment in _folders(student):
                yield student.name, assignment


def misplaced(root: Path, students: Sequence[str] = ()) -> list[Graded]:
    """Name what lies in `submitted/` of a course folder where, or as, nothing is graded."""
    known = Course(root).assignments()
    results = [*_strays(root / "submitted", students)]
    for student, folder in submissions(root / "submitted", students):
        if folder.name not in known:
            reason = f"there is no assignment {folder.name!r}, only {', '.join(known)}"
            results.append(Graded(student, folder.name, set_aside=reason))
        elif glob.escape(student) != student:
            reason = "nbgrader takes no folder with [, ], * or ? in its name; rename it"
            results.append(Graded(student, folder.name, set_aside=reason))
    return results


def _folders(folder: Path) -> list[Path]:
    """Return the folders in a folder; links are not followed."""
    return sorted(
        path
        for path in folder.glob("*/")
        if not path.is_symlink() and not path.name.startswith(".")
    )


def _strays(folder: Path, students: Sequence[str]) -> Iterator[Graded]:
    """Name notebooks that lie where nothing is graded."""
    for path in sorted([*folder.glob("*.ipynb"), *folder.glob("*/*.ipynb")]):
        inside = path.parent != folder
        student = path.parent.name if inside else path.stem
        if (not students or student in students) and not student.startswith("."):
            path_expected = f"{student if inside else 'STUDENT'}/ASSIGNMENT/ASSIGNMENT.ipynb"
            reason = f"{path.name} does not lie in {path_expected}; move it there"
            yield Graded(student, path.stem if inside else "", set_aside=reason)
    for path in sorted([*folder.glob("*"), *folder.glob("*/*")]):
        inside = path.parent != folder
        student = path.parent.name if inside else path.name
        if path.is_symlink() and path.is_dir() and (not students or student in students):
            reason = f"{path.name} is a link, and links are not followed; hand in a folder"
            yield Graded(student, path.name if inside else "", set_aside=reason)


def examined(folder: Path, assignment: Assignment) -> Checked | str:
    """Find the notebook of a submission and examine it; say why if there is none."""
    notebooks = sorted(
        path for path in folder.glob("*.ipynb") if path.is_file() and not path.is_symlink()
    )
    exact = [path for path in notebooks if path.name == f"{assignment.name}.ipynb"]
    checked = [examine(path, [assignment]) for path in exact or notebooks]
    fitting = [candidate for candidate in checked if candidate.notebook is not None]
    if len(fitting) == 1:
        return fitting[0]
    if len(fitting) > 1:
        names = ", ".join(candidate.path.name for candidate in fitting)
        return f"{len(fitting)} notebooks, of which none is named {assignment.name}.ipynb: {names}"
    if checked:
        return " ".join(map(str, checked[0].problems))
    inside = sorted(path.name for path in folder.iterdir())
    names_inside = ", ".join(inside[:10]) + ", ..." * (len(inside) > 10) or "nothing at all"
    return f"there is no notebook, but {names_inside}"


@dataclass
class _Prepared:
    """A submission that was run, or need not be, and is ready for nbgrader."""

    result: Graded
    assignment: Assignment
    notebook: Any = None
    ready: Any = None
    key: str = ""


def _side_by_side(
    course: Course,
    tasks: Sequence[tuple[str, Assignment]],
    settings: dict[str, Any],
    force: bool,
    jobs: int | None,
) -> Iterator[Graded]:
    """Run submissions side by side, and give each to nbgrader when it is done."""
    from accelviz.course.autograde.execute import SandboxedExecute

    course.seed()  # or say at once what is wrong with it
    configuration = course.configuration("")
    for name, value in settings.items():
        setattr(configuration.SandboxedExecute, name, value)
    execution = SandboxedExecute(config=configuration)
    require_border()  # or say at once that there is none
    for _, assignment in tasks:
        assignment.source  # noqa: B018 (read once, and not by each thread)
    start_server()
    pool = ThreadPoolExecutor(jobs or os.cpu_count())
    try:
        waiting = [
            pool.submit(_prepared, course, student, assignment, execution, force)
            for student, assignment in tasks
        ]
        for future in as_completed(waiting):
            yield _recorded(course, future.result(), settings)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _prepared(
    course: Course,
    student: str,
    assignment: Assignment,
    execution: Any,
    force: bool,
) -> _Prepared:
    """Examine and run a submission, or set it aside if anything at all goes wrong with it."""
    prepared = _Prepared(Graded(student, assignment.name), assignment)
    try:
        _prepare(course, prepared, execution, force)
    except Exception as error:  # such as a folder that cannot be read
        prepared.result.rows.clear()
        prepared.result.set_aside = f"{type(error).__name__}: {first_line(error)}"
    return prepared


def _prepare(course: Course, prepared: _Prepared, execution: Any, force: bool) -> None:
    from accelviz.course.autograde.execute import execute

    result, assignment = prepared.result, prepared.assignment
    submitted = course.step("submitted", result.student, assignment.name)
    bare = Assignment(assignment.folder)
    checked = apart(examined, submitted, bare, seconds=_SECONDS_TO_EXAMINE)
    if isinstance(checked, str):
        result.set_aside = checked
        return
    for problem in checked.problems:
        if not problem.harmless:
            remark = f"repaired: {problem.text}" if problem.mended else problem.text
            result.rows.append(Row("", problem=remark))
            result.remarks.append(remark)
    for remark in companions(submitted)[1]:
        result.rows.append(Row("", problem=remark))
        result.remarks.append(remark)
    notebook = checked.notebook
    prepared.key = _key(notebook, submitted, assignment, execution.seed)
    last = _autograded(course, result.student, assignment).metadata.get("accelviz", {})
    first_on_gpu = execution.gpu and not last.get("gpu")
    if not (force or last.get("key") != prepared.key or first_on_gpu):
        return
    notebook.metadata["accelviz"] = {"key": prepared.key}
    prepared.notebook, ready = notebook, copy.deepcopy(notebook)
    tests = {question_of(cell): cell.source for cell in assignment.source.cells}
    for cell in ready.cells:
        if is_locked(cell):
            cell.source = tests.get(question_of(cell), cell.source)
    execute(
        ready,
        execution.limits(),
        submitted,
        seed=execution.seed,
        library=assignment.folder,
        hidden=(str(course.root.resolve()),),
    )
    prepared.ready = ready


def _recorded(course: Course, prepared: _Prepared, settings: dict[str, Any]) -> Graded:
    """Give a submission that was run to nbgrader, and read what it then has."""
    result = prepared.result
    if result.set_aside:
        return result
    try:
        if prepared.ready is not None:
            _write(course, prepared)
            result.set_aside = _autograde(course, prepared, settings)
        if not result.set_aside:
            _read_grades(course, prepared.assignment, result)
    except Exception as error:
        result.set_aside = f"{type(error).__name__}: {first_line(error)}"
    if result.set_aside:
        result.rows.clear()
    return result


def _key(notebook: Any, folder: Path, assignment: Assignment, seed: int) -> str:
    """Return what changes when the submission, the assignment's source or the seed does."""
    digest = hashlib.sha256(f"{seed} {nbformat.writes(_bare(notebook))}".encode())
    files = [folder / path for path in companions(folder)[0]]
    files += sorted(path for path in assignment.folder.rglob("*") if path.is_file())
    for path in files:
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


def _write(course: Course, prepared: _Prepared) -> None:
    """Write what is to be graded into `checked/`."""
    who = prepared.result.student, prepared.assignment.name
    target = course.step("checked", *who)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    copy_files(course.step("submitted", *who), target)
    nbformat.write(prepared.notebook, target / f"{prepared.assignment.name}.ipynb")


def _autograde(course: Course, prepared: _Prepared, settings: dict[str, Any]) -> str:
    from nbgrader.converters import Autograde

    from accelviz.course.autograde.execute import PREPROCESSORS

    configuration = course.configuration(prepared.assignment.name)
    configuration.CourseDirectory.student_id = prepared.result.student
    configuration.CourseDirectory.submitted_directory = "checked"
    configuration.Autograde.force = True
    configuration.Autograde.autograde_preprocessors = PREPROCESSORS
    for name, value in {**settings, "ready": prepared.ready}.items():
        setattr(configuration.SandboxedExecute, name, value)
    return course.run(Autograde, configuration)


def _read_grades(course: Course, assignment: Assignment, result: Graded) -> None:
    """Read a graded submission's points from the gradebook, its times from the notebook."""
    last = _autograded(course, result.student, assignment)
    runs = {run["question"]: run for run in last.metadata.get("accelviz", {}).get("runs", [])}
    extra = {grade.credited: grade.question for grade in extra_points(last)}
    rows = []
    with course.gradebook() as gradebook:
        submission = gradebook.find_submission(assignment.name, result.student)
        grades = {grade.name: grade for book in submission.notebooks for grade in book.grades}
        for question in assignment.questions:
            run = runs.get(question, {})
            seconds, problem = run.get("seconds"), run.get("problem", "")
            if problem and not run.get("raised"):
                result.remarks.append(f"{question}: {problem}")
            question_grade = grades.get(question)
            if question_grade is not None:
                by_hand = question_grade.manual_score is None and question_grade.auto_score is None
                problem = problem or (BY_HAND if by_hand else "")
                points = None if by_hand else float(question_grade.score)
                if question in extra and points is not None and question_grade.extra_credit:
                    points -= question_grade.extra_credit
                    told = "extra points"
                    rows.append(
                        Row(extra[question], float(question_grade.extra_credit), 0.0, problem=told)
                    )
                result.rows.append(
                    Row(question, points, float(question_grade.max_score), seconds, problem)
                )
            elif problem:
                result.rows.append(Row(question, seconds=seconds, problem=problem))
        if penalty := float(submission.late_submission_penalty or 0.0):
            rows.append(Row("late", -penalty, problem="late penalty"))
    result.rows += rows
