"""Grades a class, one submission at a time, so that none can spoil another's points."""

from __future__ import annotations

import glob
import hashlib
import json
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
from accelviz.course.autograde.cells import details, is_locked, question_of
from accelviz.course.autograde.common import first_line, need
from accelviz.course.autograde.files import companions, copy_files
from accelviz.course.autograde.folder import Course
from accelviz.course.autograde.preflight import examine
from accelviz.course.autograde.repair import Checked
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
    graded is set aside. What was graded before and has not changed since is not run again; its
    points, those given by hand included, are read from the gradebook.

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
    wanted = {assignment.name for assignment in choose(known, list(assignments))}
    results, tasks = [], []
    for student, path, problem in submissions(course, students):
        if problem:
            name = path.stem if path.suffix == ".ipynb" else path.name
            in_folder = path.parent.name == student
            results.append(Graded(student, name if in_folder else "", set_aside=problem))
        elif path.name in wanted:
            tasks.append((student, known[path.name]))
    total = len(results) + len(tasks)
    for graded in results:
        progress(graded, total)
    if tasks:
        for graded in _side_by_side(course, tasks, settings or {}, force, jobs):
            results.append(graded)
            progress(graded, total)
    if not results:
        whom = f" of {', '.join([*students, *assignments])}" if students or assignments else ""
        raise ArgumentError(
            str(root / "submitted"),
            f"there is no submission{whom}",
            "STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb in it",
        )
    return sorted(results, key=lambda graded: (graded.student, graded.assignment))


def submissions(course: Course, students: Sequence[str] = ()) -> Iterator[tuple[str, Path, str]]:
    """Give what lies in `submitted/` of a course folder; links are not followed.

    Yields
    ------
    str, Path, str
        The student; a submission's folder, or whatever lies there in its place; why it is not
        graded, "" if it is.
    """
    known, folder = course.assignments(), course.step("submitted")
    for path in sorted([*folder.glob("*"), *folder.glob("*/*")]):
        in_folder = path.parent.parent == folder
        student = path.parent.name if in_folder else path.stem
        if path.name.startswith(".") or student.startswith("."):
            continue
        if path.suffix == ".ipynb":
            expected = f"{student if in_folder else 'STUDENT'}/ASSIGNMENT/ASSIGNMENT.ipynb"
            problem = f"{path.name} does not lie in {expected}; move it there"
        elif path.is_symlink() and path.is_dir():
            student = student if in_folder else path.name
            problem = f"{path.name} is a link, and links are not followed; hand in a folder"
        elif not in_folder or path.parent.is_symlink() or not path.is_dir():
            continue
        elif path.name not in known:
            problem = f"there is no assignment {path.name!r}, only {', '.join(known)}"
        elif glob.escape(student) != student:
            problem = "nbgrader takes no folder with [, ], * or ? in its name; rename it"
        else:
            problem = ""
        if not students or student in students:
            yield student, path, problem


def examined(folder: Path, assignment: Assignment) -> Checked | str:
    """Find the notebook of a submission and examine it apart; say why if there is none.

    Raises
    ------
    TimeoutError
        If that takes too long.
    """
    return apart(_examined, folder, Assignment(assignment.folder), seconds=_SECONDS_TO_EXAMINE)


def _examined(folder: Path, assignment: Assignment) -> Checked | str:
    notebooks = sorted(
        path for path in folder.glob("*.ipynb") if path.is_file() and not path.is_symlink()
    )
    exact = [path for path in notebooks if path.name == f"{assignment.name}.ipynb"]
    checked = [examine(path, [assignment]) for path in exact or notebooks]
    fitting = [candidate for candidate in checked if candidate.notebook is not None]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = ", ".join(candidate.path.name for candidate in fitting)
        return f"{len(fitting)} notebooks, of which none is named {assignment.name}.ipynb: {names}"
    if checked:
        return " ".join(map(str, checked[0].problems))
    inside = sorted(path.name for path in folder.iterdir())
    names = ", ".join(inside[:10]) + ", ..." * (len(inside) > 10) or "nothing at all"
    return f"there is no notebook, but {names}"


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
    require_border()  # or say at once that there is none
    configuration = course.configuration("")
    configuration.SandboxedExecute.update(settings)
    execution = SandboxedExecute(config=configuration)
    for _, assignment in tasks:
        assignment.source  # noqa: B018 (read once, and not by each thread)
    start_server()
    pool = ThreadPoolExecutor(jobs or os.cpu_count())
    try:
        waiting = []
        for student, assignment in tasks:
            submission = _Submission(course, assignment, Graded(student, assignment.name))
            waiting.append(pool.submit(submission.attempt, submission.prepare, execution, force))
        for future in as_completed(waiting):
            submission = future.result()
            yield submission.attempt(submission.record).result
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@dataclass
class _Submission:
    """A submission on its way to its grades."""

    course: Course
    assignment: Assignment
    result: Graded
    #: What nbgrader gets, after it was run; None if it was graded before.
    notebook: Any = None

    def folder(self, step: str) -> Path:
        return self.course.step(step, self.result.student, self.assignment.name)

    def attempt(self, step: Callable[..., None], *arguments: Any) -> _Submission:
        """Do a step, or set the submission aside if anything at all goes wrong with it."""
        try:
            if not self.result.set_aside:
                step(*arguments)
        except Exception as error:  # such as a folder that cannot be read
            self.result.set_aside = f"{type(error).__name__}: {first_line(error)}"
        if self.result.set_aside:
            self.result.rows.clear()
        return self

    def prepare(self, execution: Any, force: bool) -> None:
        """Examine the submission, and run it unless it was graded and has not changed."""
        from accelviz.course.autograde.execute import execute

        result, assignment, submitted = self.result, self.assignment, self.folder("submitted")
        checked = examined(submitted, assignment)
        if isinstance(checked, str):
            result.set_aside = checked
            return
        told = [problem for problem in checked.problems if not problem.harmless]
        remarks = ["repaired: " * problem.mended + problem.text for problem in told]
        result.remarks += remarks + companions(submitted)[1]
        result.rows += [Row("", problem=remark) for remark in result.remarks]
        notebook = checked.notebook
        key = _key(notebook, submitted, assignment, execution.seed)
        last = self.graded_before().metadata.get("accelviz", {})
        if last.get("key") == key and not force:
            return
        notebook.metadata["accelviz"] = {"key": key}
        tests = {question_of(cell): cell.source for cell in assignment.source.cells}
        for cell in filter(is_locked, notebook.cells):
            cell.source = tests.get(question_of(cell), cell.source)
        hidden = (str(self.course.root.resolve()),)
        options = {"seed": execution.seed, "library": assignment.folder, "hidden": hidden}
        execute(notebook, execution.limits(), submitted, **options)
        self.notebook = notebook

    def record(self) -> None:
        """Give the submission to nbgrader if it was run, and read what nbgrader then has."""
        if self.notebook is not None:
            target = self.folder("checked")
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            copy_files(self.folder("submitted"), target)
            nbformat.write(self.notebook, target / f"{self.assignment.name}.ipynb")
            self.result.set_aside = self.autograde()
        if not self.result.set_aside:
            self.read_grades()

    def autograde(self) -> str:
        """Let nbgrader grade what is in `checked/`; return what went wrong, "" if nothing."""
        from nbgrader.converters import Autograde

        from accelviz.course.autograde.execute import PREPROCESSORS, RESTORING

        configuration = self.course.configuration(self.assignment.name)
        configuration.CourseDirectory.student_id = self.result.student
        configuration.CourseDirectory.submitted_directory = "checked"
        configuration.Autograde.force = True
        configuration.Autograde.sanitize_preprocessors = RESTORING
        configuration.Autograde.autograde_preprocessors = PREPROCESSORS[1:]
        return self.course.run(Autograde, configuration)

    def graded_before(self) -> Any:
        """Return the notebook of the last run, empty if there is none."""
        try:
            return read_notebook(self.folder("autograded") / f"{self.assignment.name}.ipynb")
        except (OSError, ValueError):
            return nbformat.v4.new_notebook()

    def read_grades(self) -> None:
        """Read the points from the gradebook, and times and problems from the notebook."""
        result, last = self.result, self.graded_before()
        runs = {run["question"]: run for run in last.metadata.get("accelviz", {}).get("runs", [])}
        with self.course.gradebook() as gradebook:
            submission = gradebook.find_submission(self.assignment.name, result.student)
            grades = {grade.name: grade for book in submission.notebooks for grade in book.grades}
            for question in self.assignment.questions:
                run, grade = runs.get(question, {}), grades.get(question)
                seconds, problem = run.get("seconds"), run.get("problem", "")
                if problem and not run.get("raised"):
                    result.remarks.append(f"{question}: {problem}")
                if grade is None:
                    if problem:
                        result.rows.append(Row(question, seconds=seconds, problem=problem))
                    continue
                by_hand = grade.manual_score is None and grade.auto_score is None
                problem = problem or (BY_HAND if by_hand else "")
                points = None if by_hand else float(grade.score)
                most = float(grade.max_score)
                result.rows.append(Row(question, points, most, seconds, problem))
            if penalty := float(submission.late_submission_penalty or 0.0):
                result.rows.append(Row("late", -penalty, problem="late penalty"))


def _key(notebook: Any, folder: Path, assignment: Assignment, seed: int) -> str:
    """Return what changes when the submission, the assignment's source or the seed does.

    Merely opening and saving a notebook does not change it.
    """
    cells = [
        (cell.cell_type, cell.source, details(cell), cell.get("attachments"))
        for cell in notebook.cells
    ]
    digest = hashlib.sha256(json.dumps([seed, cells], sort_keys=True).encode())
    files = [folder / path for path in companions(folder)[0]]
    files += sorted(path for path in assignment.folder.rglob("*") if path.is_file())
    for path in files:
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
