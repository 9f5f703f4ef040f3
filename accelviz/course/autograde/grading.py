"""Grades the submissions of a course folder.

A submission is a student's folder for one assignment. It is examined and repaired, executed in the
sandbox, and passed to nbgrader, which keeps the points in its gradebook. A submission that fails on
the way is set aside and does not affect the others.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from accelviz.course.autograde.assignments import Assignment, choose, parse_notebook
from accelviz.course.autograde.border import Limits, require_border
from accelviz.course.autograde.cells import details, is_locked, question_of
from accelviz.course.autograde.common import first_line, need
from accelviz.course.autograde.files import copy_files
from accelviz.course.autograde.folder import Course
from accelviz.course.autograde.preflight import examine
from accelviz.course.autograde.processes import call_in_process, start_server
from accelviz.course.autograde.repair import Checked
from accelviz.course.autograde.tables import BY_HAND, Graded, Row, as_cell, from_cell
from accelviz.course.autograde.totals import handed_in, stamped
from accelviz.errors import ArgumentError

#: Time limit for examining a notebook, which usually takes a tenth of a second.
_SECONDS_TO_EXAMINE = 60.0


def grade(
    root: Path,
    assignments: Sequence[str] = (),
    students: Sequence[str] = (),
    *,
    settings: dict[str, Any] | None = None,
    force: bool = False,
    jobs: int | None = None,
    trust_stamps: bool = False,
    begin: Callable[[int], object] = lambda _: None,
    progress: Callable[[Graded, int], object] = lambda *_: None,
) -> list[Graded]:
    """Grade the submissions in `submitted/<student>/<assignment>/` of a course folder.

    Each submission is examined (`examine`), repaired where that is safe, and run in
    the sandbox, several in parallel; then nbgrader grades them one by one. A submission that cannot
    be graded is set aside. One that has not changed since it was graded is not run again; its
    points, including those given by hand, are read from the gradebook.

    Parameters
    ----------
    root : Path
        A course folder.
    assignments, students : sequence of str
        Names of assignments and students to grade; default: all.
    settings : dict, optional
        Limits that replace those of `nbgrader_config.py`, by the names of `SandboxedExecute`.
    force : bool
        Also run submissions that have not changed.
    jobs : int, optional
        Number of submissions that run in parallel; default: the number of processors.
    trust_stamps : bool
        See `totals.handed_in`, whose time nbgrader's own late penalties get.
    begin : callable
        Called with the number of submissions before any is run.
    progress : callable
        Called after each submission with its `Graded` and the total number of submissions.

    Returns
    -------
    list of Graded
        Sorted by student, then assignment.

    Raises
    ------
    ArgumentError
        If this is no course folder, or there is no such assignment, or no submission.
    DeviceUnavailable
        If nbgrader is not installed.
    """
    need("nbgrader", "course", import_now=False)
    root = root.resolve()  # submissions are examined by a process that works elsewhere
    course = Course(root)
    known = course.assignments()
    course.check()
    chosen = {assignment.name for assignment in choose(known, list(assignments))}
    results, tasks = list[Graded](), list[_Submission]()
    for student, path, problem in submissions(course, students):
        if problem:
            name = path.name.removesuffix(".ipynb").removesuffix(".zip")
            in_folder = path.parent.name == student
            results.append(Graded(student, name if in_folder else "", set_aside=problem))
        elif path.name in chosen:
            blank = Graded(student, path.name)
            tasks.append(_Submission(course, known[path.name], blank, trust_stamps))
    total = len(results) + len(tasks)
    for graded in results:
        progress(graded, total)
    if tasks:
        begin(total)
        for graded in _grade_in_parallel(course, tasks, settings or {}, force, jobs):
            results.append(graded)
            progress(graded, total)
    if not results:
        names = ", ".join([*students, *assignments])
        raise ArgumentError(
            str(root / "submitted"),
            "there is no submission" + (f" of {names}" if names else ""),
            "STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb in it",
        )
    return sorted(results, key=lambda graded: (graded.student, graded.assignment))


def submissions(course: Course, students: Sequence[str] = ()) -> Iterator[tuple[str, Path, str]]:
    """List the submissions in `submitted/` of a course folder; links are not followed.

    Yields
    ------
    str, Path, str
        The student's name; the submission's folder, or a misplaced notebook or link; the reason why
        it cannot be graded, "" for a submission in its proper place.
    """
    known, folder = course.assignments(), course.step("submitted")
    for path in sorted([*folder.glob("*"), *folder.glob("*/*")]):
        in_folder = path.parent.parent == folder
        student = path.parent.name if in_folder else path.stem
        if path.name.startswith(".") or student.startswith("."):
            continue
        if path.suffix in (".ipynb", ".zip"):
            expected = f"{student if in_folder else 'STUDENT'}/ASSIGNMENT/ASSIGNMENT.ipynb"
            problem = f"{path.name} does not lie in {expected}; move or unpack it there"
        elif path.is_symlink() and path.is_dir():
            student = student if in_folder else path.name
            problem = f"{path.name} is a link, and links are not followed; hand in a folder"
        elif not in_folder or path.parent.is_symlink() or not path.is_dir():
            continue
        elif path.name not in known:
            problem = f"there is no assignment {path.name!r}, only {', '.join(known)}; rename it"
        elif from_cell(as_cell(student)) != student:
            problem = "a table cannot tell its folder's name from another student's: it begins or "
            problem += "ends with a space, or has two in a row, or quotes, or what is not "
            problem += "printable; rename it"
        elif re.search(r'[][*?<"\\]', student):
            problem = 'nbgrader takes no folder with [, ], *, ?, <, " or \\ in its name; rename it'
        else:
            problem = ""
        if not students or student in students:
            yield student, path, problem


def _examine(folder: Path, copied: Path, assignment: Assignment) -> tuple[list[str], Checked | str]:
    """Copy a submission, which its student may still change, and examine the copy.

    Return messages on files left out, and the examined notebook, or the reason if none or more than
    one can be graded.
    """
    Limits().apply()  # a file of 50 MB can be of a hundred million objects
    problems = copy_files(folder, copied, notebooks=True)
    notebooks = sorted(copied.glob("*.ipynb"))
    exact = [path for path in notebooks if path.name == f"{assignment.name}.ipynb"]
    results = [examine(path, [assignment]) for path in exact or notebooks]
    gradable = [checked for checked in results if checked.notebook is not None]
    if len(gradable) == 1:
        return problems, gradable[0]
    if gradable:
        names = ", ".join(checked.path.name for checked in gradable)
        expected = f"{assignment.name}.ipynb; rename the one that counts"
        return problems, f"{len(gradable)} notebooks, {names}, and none of them is {expected}"
    if results:
        return problems, " ".join(map(str, results[0].problems))
    files = sorted(path.name for path in folder.iterdir())
    names = ", ".join(files[:10]) + ", ..." * (len(files) > 10) or "nothing at all"
    reason = f"there is no notebook, but {names}; put {assignment.name}.ipynb there"
    return problems, "; ".join([*problems[:3], reason])


def _grade_in_parallel(
    course: Course,
    tasks: Sequence[_Submission],
    settings: dict[str, Any],
    force: bool,
    jobs: int | None,
) -> Iterator[Graded]:
    """Run submissions in parallel, and pass each to nbgrader when it is done."""
    need("nbgrader", "course")
    from accelviz.course.autograde.execute import SandboxedExecute

    course.seed()  # raises an error before any submission runs
    require_border()
    configuration = course.configuration("")
    configuration.SandboxedExecute.update(settings)
    execution = SandboxedExecute(config=configuration)
    with course.gradebook() as gradebook:
        released = {assignment.name for assignment in gradebook.assignments}
    for submission in tasks:
        submission.assignment.questions  # noqa: B018 (cached: read once, and not by each thread)
        if submission.assignment.name not in released:
            problem = "the assignment was not released; run `accelviz assignments release`"
            submission.result.set_aside = problem
    start_server()
    pool = ThreadPoolExecutor(jobs or os.cpu_count())
    try:
        futures = [
            pool.submit(submission.attempt, submission.run_if_changed, execution, force)
            for submission in tasks
        ]
        for future in as_completed(futures):
            submission = future.result()
            yield submission.attempt(submission.record).result
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@dataclass
class _Submission:
    """A submission and its result so far."""

    course: Course
    assignment: Assignment
    result: Graded
    trust_stamps: bool
    #: The executed notebook for nbgrader; None if it was graded before and has not changed.
    notebook: Any = None

    def folder(self, step: str) -> Path:
        return self.course.step(step, self.result.student, self.assignment.name)

    def attempt(self, step: Callable[..., None], *arguments: Any) -> _Submission:
        """Run a step, and set the submission aside if it raises any exception."""
        try:
            if not self.result.set_aside:
                step(*arguments)
        except Exception as error:  # such as a folder that cannot be read
            self.result.set_aside = f"{type(error).__name__}: {first_line(error)}"
        if self.result.set_aside:
            self.result.rows.clear()
        return self

    def run_if_changed(self, execution: Any, force: bool) -> None:
        """Examine the submission, and run it unless it was graded and has not changed."""
        result, assignment, submitted = self.result, self.assignment, self.folder("submitted")
        with tempfile.TemporaryDirectory(prefix="grade-") as scratch:
            copied = Path(scratch, assignment.name)
            copied.mkdir()
            left_out, checked = call_in_process(
                _examine, submitted, copied, assignment, seconds=_SECONDS_TO_EXAMINE
            )
            if isinstance(checked, str):
                result.set_aside = checked
                return
            problems = [problem for problem in checked.problems if not problem.harmless]
            remarks = ["repaired: " * problem.mended + problem.text for problem in problems]
            if (copied / "timestamp.txt").exists() and stamped(copied) is None:
                remarks.append("timestamp.txt is no time: the formgrader's list may stop at it")
            result.remarks += remarks + left_out
            result.rows += [Row("", problem=remark) for remark in result.remarks]
            notebook = checked.notebook
            key = _key(notebook, copied, assignment, execution.seed)
            if self.graded_before().get("key") == key and not force:
                return
            notebook.metadata["accelviz"] = {"key": key}
            tests = {question_of(cell): cell.source for cell in assignment.source.cells}
            for cell in filter(is_locked, notebook.cells):
                cell.source = tests.get(question_of(cell), cell.source)
            resources = {"metadata": {"path": str(copied)}}
            self.notebook, _ = execution.preprocess(notebook, resources)

    def record(self) -> None:
        """Let nbgrader give the points if the submission was executed, and read its grades."""
        if self.notebook is not None:
            target = self.folder("autograded")
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            self.save_points()
            nbformat.write(self.notebook, target / f"{self.assignment.name}.ipynb")
        self.read_grades()

    def save_points(self) -> None:
        """Let nbgrader read the points from the notebook's outputs."""
        from accelviz.course.autograde.execute import PREPROCESSORS

        name, student = self.assignment.name, self.result.student
        with self.course.gradebook() as gradebook:
            gradebook.update_or_create_student(student)
            time = handed_in(self.folder("submitted"), trust_stamps=self.trust_stamps)
            gradebook.update_or_create_submission(name, student, timestamp=time)
        self.notebook = self.course.preprocess(PREPROCESSORS[2:], self.notebook, name, student)
        time = stamped(self.folder("submitted"))  # with another one the formgrader shows no points
        with self.course.gradebook() as gradebook:
            gradebook.update_or_create_submission(name, student, timestamp=time)

    def graded_before(self) -> dict[str, Any]:
        """Return what `graded_before` returns for this submission."""
        return graded_before(self.course, self.result.student, self.assignment.name)

    def read_grades(self) -> None:
        """Read the points from the gradebook, and times and problems from the notebook."""
        result = self.result
        runs = {run["question"]: run for run in self.graded_before().get("runs", [])}
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
                max_points = float(grade.max_score)
                result.rows.append(Row(question, points, max_points, seconds, problem))
            if penalty := float(submission.late_submission_penalty or 0.0):
                result.rows.append(Row("late", -penalty, problem="late penalty"))


def graded_before(course: Course, student: str, assignment: str) -> dict[str, Any]:
    """Return `key` and `runs` of a submission's last run, nothing if there is none."""
    try:
        path = course.step("autograded", student, assignment) / f"{assignment}.ipynb"
        return dict(parse_notebook(path.read_text("utf-8")).metadata.get("accelviz", {}))
    except (OSError, ValueError):
        return {}


def _key(notebook: Any, folder: Path, assignment: Assignment, seed: int) -> str:
    """Return a digest of the submission's cells and files, the assignment's files and the seed."""
    cells = [
        (cell.cell_type, cell.source, details(cell), cell.get("attachments"))
        for cell in notebook.cells
    ]
    digest = hashlib.sha256(json.dumps([seed, cells], sort_keys=True).encode())
    files = [(path, folder) for path in sorted(folder.rglob("*")) if path.suffix != ".ipynb"]
    files += [(path, assignment.folder) for path in sorted(assignment.folder.rglob("*"))]
    for path, top in files:
        if path.is_file():  # the tests are those that were read at the beginning
            content = assignment.text.encode() if path == assignment.path else path.read_bytes()
            digest.update(os.fsencode(path.relative_to(top)) + b"\0" + content)
    return digest.hexdigest()
