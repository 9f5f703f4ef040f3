"""The commands `accelviz assignments ...`: arguments, actions, output."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accelviz.course.autograde import border
from accelviz.course.autograde.common import clean, need
from accelviz.errors import DeviceUnavailable

#: Beginning of a page, without which a web server's page shows umlauts as other letters.
_HEAD = """<!doctype html>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Leaderboard</title>
"""
#: Text to print, and exit status.
Result = tuple[str, int]
Action = Callable[[argparse.Namespace], Result]


def add_to(commands: Any) -> None:
    """Add the command `assignments` to the subparsers of `accelviz`."""
    assignments = commands.add_parser(
        "assignments", help="release, examine and grade the course's assignments"
    )
    verbs = assignments.add_subparsers(required=True, metavar="verb")
    course: dict[str, Any] = {"type": Path, "metavar": "FOLDER"}
    name: dict[str, Any] = {"metavar": "NAME"}

    release = _add(verbs, "release", _release, "make or renew a course folder")
    release.add_argument("names", nargs="*", **name, help="assignments, such as A1 (all)")
    release.add_argument("--course", required=True, **course)
    fresh = "replace sources that are in the folder already"
    release.add_argument("--fresh", action="store_true", help=fresh)

    preflight = _add(verbs, "preflight", _preflight, "say what is wrong with a submission")
    preflight.add_argument("submissions", nargs="+", type=Path, metavar="SUBMISSION")
    preflight.add_argument("--course", **course, help="the assignments of a course folder")
    only = "look at the file only"
    preflight.add_argument("--no-run", dest="run_cells", action="store_false", help=only)

    grade = _add(verbs, "grade", _grade, "grade submitted/<student>/<assignment>/")
    grade.add_argument("--course", required=True, **course)
    for option in ("--assignment", "--student"):
        grade.add_argument(option, action="append", default=[], **name)
    grade.add_argument("--force", action="store_true", help="run again what has not changed")

    sums = _add(verbs, "totals", _totals, "the points of all assignments, less late days")
    sums.add_argument("course", **course)
    helps = "late days of each student that cost nothing (0)"
    sums.add_argument("--free-days", type=_at_least(0), default=0, metavar="N", help=helps)
    percent: dict[str, Any] = {"type": _positive, "default": 0.0, "metavar": "PERCENT"}
    sums.add_argument("--penalty", **percent, help="of each further late day (0)")
    helps = "a grade book exported from Canvas or Moodle, to fill in"
    sums.add_argument("--fill", type=Path, metavar="EXPORT.csv", help=helps)

    board = _add(verbs, "leaderboard", _leaderboard, "the class's schemes on hidden graphs")
    board.add_argument("course", **course)
    board.add_argument("--assignment", default="A3", **name, help="(%(default)s)")

    helps = "take the time of a timestamp.txt also where the notebook in the folder is newer"
    for parser in (grade, sums):
        parser.add_argument("--trust-stamps", action="store_true", help=helps)

    seconds: dict[str, Any] = {"type": _positive, "metavar": "S"}
    grade.add_argument("--cell-seconds", **seconds, help="time of a cell (60)")
    grade.add_argument("--seconds", **seconds, help="time of a submission (600)")
    memory: dict[str, Any] = {"dest": "memory_gib", "metavar": "GIB"}
    grade.add_argument("--memory", type=_positive, **memory, help="address space (4)")
    jobs = "submissions at a time (all cores)"
    grade.add_argument("--jobs", type=_at_least(1), metavar="N", help=jobs)
    as_root = "grade as root; student code runs as nobody"
    grade.add_argument("--as-root", action="store_true", help=as_root)


def _add(parsers: Any, name: str, action: Action, text: str) -> Any:
    """Add a command and return its parser."""
    parser = parsers.add_parser(name, help=text)
    parser.set_defaults(run=action)
    return parser


def _positive(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0.0 < float(text) < 1e9:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text} is not a number above 0 and below a billion")


def _at_least(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is not an integer of at least {least}")
        return int(text)

    return parse


def _release(options: argparse.Namespace) -> Result:
    need("nbgrader", "course")
    from accelviz.course.autograde.release import release

    messages = release(options.course, options.names, fresh=options.fresh)
    messages["hand out"] = f"{options.course / 'release'}/NAME/, without solutions"
    messages["collect in"] = f"{options.course / 'submitted'}/STUDENT/NAME/NAME.ipynb"
    width = max(map(len, messages))
    return "\n".join(f"{name:<{width}}  {message}" for name, message in messages.items()), 0


def _preflight(options: argparse.Namespace) -> Result:
    need("nbformat", "lab")
    from accelviz.course.autograde.assignments import find_assignments
    from accelviz.course.autograde.folder import Course
    from accelviz.course.autograde.preflight import examine, run_visible_tests

    known = Course(options.course).assignments() if options.course else find_assignments()
    log, lines, fine = _progress_log(), list[str](), True
    for path in _notebooks(options.submissions):
        checked = examine(path, known.values())
        if options.run_cells and checked.notebook is not None:
            log("running", str(path))
            checked = run_visible_tests(checked)
        fine = fine and checked.fine
        count = sum(not problem.harmless for problem in checked.problems)
        verdict = f"{count} problem{'s' * (count > 1)}" if count else "ready to hand in"
        lines.append(f"{clean(path)}: {verdict}")
        for problem in checked.problems:
            lines.append(f"  {'note' if problem.harmless else problem.kind}: {problem.text}")
            lines.append(f"    {problem.repair}")
    return "\n".join(lines), 0 if fine else 1


def _notebooks(paths: list[Path]) -> list[Path]:
    """Return the paths, folders replaced by the notebooks in them."""
    notebooks = []
    for path in paths:
        books = path.rglob("*.ipynb")
        in_folder = sorted(book for book in books if ".ipynb_checkpoints" not in book.parts)
        notebooks += in_folder if path.is_dir() and in_folder else [path]
    return notebooks


def _grade(options: argparse.Namespace) -> Result:
    from accelviz.course.autograde.processes import start_server

    start_server()  # first: it imports the library while nbgrader is imported here
    need("nbgrader", "course", import_now=False)
    need("nbformat", "course")
    from accelviz.course.autograde import grading, tables

    keys = "cell_seconds", "seconds", "memory_gib"
    limits = {key: value for key in keys if (value := getattr(options, key)) is not None}
    output = options.course / "grades-by-question.csv"
    previous, done = tables.read_table(output), list[tables.Graded]()
    log = _progress_log()

    def begin(total: int) -> None:
        if border.is_root() and not options.as_root:
            raise DeviceUnavailable(
                "grading as root",
                "a way out of the sandbox would be a way to everything",
                "grade as an ordinary user, or add --as-root; student code runs as nobody then",
            )
        log(f"0 of {total}", "compiling takes a minute more the first time, and after an update")

    def progress(graded: tables.Graded, total: int) -> None:
        done.append(graded)
        if graded.rows or len(done) == total:  # a student may misplace thousands of files
            others = tables.read_table(output)  # of another `grade` at the same time, too
            tables.write_table(tables.merged(others, tables.table(done)), output)
        name = f"{graded.student} {graded.assignment}"
        log(f"{len(done)} of {total}", name, tables.points_line(graded))

    results = grading.grade(
        options.course,
        options.assignment,
        options.student,
        settings=limits,
        force=options.force,
        jobs=options.jobs,
        trust_stamps=options.trust_stamps,
        begin=begin,
        progress=progress,
    )
    names = [clean(f"{graded.student} {graded.assignment}") for graded in results]
    lines = []
    for name, graded in zip(names, results, strict=True):
        lines.append(f"{name.ljust(max(map(len, names)))}  {tables.points_line(graded)}")
        lines += [f"    {clean(remark)}" for remark in graded.remarks]
    if not options.assignment and not options.student:
        for student, assignment in tables.missing(previous, tables.table(results)):
            lines.append(
                clean(f"{student} {assignment}  not in submitted/ any more; its rows stay")
            )
    lines.append(f"sandbox: {border.summary()}")
    lines.append(f"submissions: {len(results)}, grades in {output}")
    return "\n".join(lines), 1 if any(graded.set_aside for graded in results) else 0


def _totals(options: argparse.Namespace) -> Result:
    need("nbformat", "lab")
    from accelviz.course.autograde import tables, totals

    output = options.course / "totals.csv"
    frame = totals.totals(
        options.course,
        free_days=options.free_days,
        penalty=options.penalty,
        trust_stamps=options.trust_stamps,
    )
    tables.write_table(frame, output)
    lines = [frame.drop(columns="remarks").to_string(index=False)]
    lines += [f"{row.student}: {row.remarks}" for row in frame.itertuples() if row.remarks]
    lines.append(f"students: {len(frame)}, totals in {output}")
    if options.fill:
        target = options.fill.parent / f"filled-{options.fill.name}"
        left, filled = totals.fill(options.fill, frame, target)
        lines.append(f"{', '.join(filled)} filled in {target}")
        lines += [f"{clean(student)} is not in the grade book" for student in left]
    return "\n".join(lines), 0


def _leaderboard(options: argparse.Namespace) -> Result:
    need("nbformat", "lab")
    from accelviz.course.autograde.leaderboard import leaderboard, standings
    from accelviz.course.autograde.tables import write_table

    output = options.course / "leaderboard.csv"
    frame = leaderboard(options.course, options.assignment)
    write_table(frame, output)
    ranking, page = standings(frame), output.with_suffix(".html")
    ranking = ranking.astype({"rank": object}).fillna({"rank": ""})
    style: dict[str, Any] = {"index": False, "float_format": "{:.4g}".format}
    page.write_text(_HEAD + ranking.to_html(**style), "utf-8")
    lines = [ranking.to_string(**style)]
    problems = frame[frame["problem"] != ""][["student", "graph", "problem"]]
    lines += [clean(f"{student} {graph}: {text}") for student, graph, text in problems.to_numpy()]
    lines.append(f"written to {output} and {page}")
    return "\n".join(lines), 0


def _progress_log() -> Callable[..., None]:
    """Return a function that prints its arguments to stderr, after the seconds since this call."""
    begin = time.monotonic()

    def log(*texts: str) -> None:
        seconds = f"{time.monotonic() - begin:6.1f} s"
        print("  ".join((seconds, *map(clean, texts))), file=sys.stderr, flush=True)

    return log
