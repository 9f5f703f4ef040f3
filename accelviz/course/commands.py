"""`accelviz assignments ...` and `accelviz html`: what they take, do and print."""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from accelviz.course.autograde.needs import need
from accelviz.course.autograde.words import clean
from accelviz.errors import ArgumentError, DeviceUnavailable

#: What a verb prints, and its exit status.
Answer = tuple[str, int]


def add_to(commands: Any) -> None:
    """Add the commands `assignments` and `html` to a parser's commands."""
    html = commands.add_parser("html", help="run lessons without a GPU and write them as web pages")
    html.add_argument("folder", nargs="?", type=Path, default=Path("notebooks"), metavar="FOLDER")
    html.add_argument("--output", type=Path, default=Path("build/course"), help="(%(default)s)")
    html.add_argument("--no-run", dest="run_cells", action="store_false", help="without results")
    html.add_argument("--cell-seconds", type=_positive, default=600.0, metavar="S", help="(600)")
    html.set_defaults(run=_plainly(_html))

    assignments = commands.add_parser(
        "assignments", help="release, examine and grade the course's assignments"
    )
    verbs = assignments.add_subparsers(required=True, metavar="verb")

    release = verbs.add_parser("release", help="make or renew a course folder")
    release.add_argument("names", nargs="*", metavar="NAME", help="assignments, such as A1 (all)")
    release.add_argument("--course", type=Path, required=True, metavar="FOLDER")
    release.add_argument(
        "--fresh", action="store_true", help="replace sources that are in the folder already"
    )
    release.set_defaults(run=_plainly(_release))

    preflight = verbs.add_parser("preflight", help="say what is wrong with a submission")
    preflight.add_argument("submissions", nargs="+", type=Path, metavar="SUBMISSION")
    preflight.add_argument(
        "--course", type=Path, metavar="FOLDER", help="the assignments of a course folder"
    )
    preflight.add_argument("--assignment", metavar="NAME", help="what it answers, if it is unclear")
    preflight.add_argument(
        "--repair", action="store_true", help="write a repaired copy into repaired/ beside it"
    )
    preflight.add_argument(
        "--no-run", dest="run_cells", action="store_false", help="look at the file only"
    )
    preflight.set_defaults(run=_plainly(_preflight))

    grade = verbs.add_parser("grade", help="grade submitted/<student>/<assignment>/")
    grade.add_argument("--course", type=Path, required=True, metavar="FOLDER")
    grade.add_argument("--assignment", action="append", default=[], metavar="NAME")
    grade.add_argument("--student", action="append", default=[], metavar="NAME")
    grade.add_argument("--force", action="store_true", help="run again what has not changed")
    grade.add_argument("--output", type=Path, help="the table (FOLDER/grades-by-question.csv)")
    _add_limits(grade)
    grade.set_defaults(run=_plainly(_grade))

    board = verbs.add_parser("leaderboard", help="the class's schemes on hidden graphs")
    board.add_argument("folder", type=Path, metavar="FOLDER", help="a course, or submissions")
    board.add_argument("--assignment", default="A3", metavar="NAME", help="(%(default)s)")
    board.add_argument("--seed", type=_seed, help="of the hidden graphs (the course's)")
    board.add_argument("--output", type=Path, help="the table (FOLDER/leaderboard.csv, and .md)")
    _add_limits(board)
    board.set_defaults(run=_plainly(_leaderboard))


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cell-seconds", type=_positive, metavar="S", help="time of a cell (60)")
    parser.add_argument("--seconds", type=_positive, metavar="S", help="time of a submission (600)")
    parser.add_argument("--memory", type=_positive, metavar="GIB", help="address space (4)")
    parser.add_argument("--jobs", type=_jobs, metavar="N", help="submissions at a time (all cores)")
    parser.add_argument("--network", action="store_true", default=None, help="leave it the network")
    parser.add_argument("--gpu", action="store_true", default=None, help="leave it the GPU")


def _positive(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0.0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text} is not a number above 0")


def _jobs(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not an integer of at least 1")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not an integer of at least 0")
    return int(text)


def _plainly(
    verb: Callable[[argparse.Namespace], Answer],
) -> Callable[[argparse.Namespace], Answer]:
    """Let a verb say in one line which file it could not read or write."""

    @functools.wraps(verb)
    def run(options: argparse.Namespace) -> Answer:
        try:
            return verb(options)
        except OSError as error:
            reason = error.strerror or str(error)
            expected = "a place that exists, and that can be read and written"
            raise ArgumentError(str(error.filename or "files"), reason, expected) from error

    return run


def _table(path: Path) -> Path:
    """Return where a table goes, if it can: long before it is written."""
    if not path.parent.is_dir() or path.is_dir() or path.suffix == ".md":
        raise ArgumentError(str(path), "no table can be written there", "such as grades.csv")
    return path


def _limits(options: argparse.Namespace) -> dict[str, Any]:
    names = {"memory_gib": "memory"}
    keys = ("cell_seconds", "seconds", "memory_gib", "network", "gpu")
    values = {key: getattr(options, names.get(key, key)) for key in keys}
    return {key: value for key, value in values.items() if value is not None}


def _html(options: argparse.Namespace) -> Answer:
    need("nbconvert", "lab")
    from accelviz.course.pages import write

    with tqdm(unit=" notebooks", leave=False, disable=None) as bar:

        def progress(name: str) -> None:
            bar.set_description(name)
            bar.update()

        pages, failed = write(
            options.folder,
            options.output,
            run=options.run_cells,
            seconds=options.cell_seconds,
            progress=progress,
        )
    lines = [f"{name} has no page: {reason}" for name, reason in failed.items()]
    lines.append(f"{len(pages)} pages; begin with {pages[0]}")
    return "\n".join(lines), 1 if failed else 0


def _need_gpu(options: argparse.Namespace) -> None:
    """Refuse `--gpu` where there is none: extra points would be missing without a word."""
    from accelviz.devices import gpu_state

    if options.gpu and not (state := gpu_state()).ready:
        raise DeviceUnavailable("--gpu", state.detail, state.fix or "leave out --gpu")


def _release(options: argparse.Namespace) -> Answer:
    need("nbgrader", "course")
    from accelviz.course.autograde.release import release

    done = release(options.course, options.names, fresh=options.fresh)
    done["hand out"] = f"{options.course / 'release'}/NAME/, without solutions"
    done["collect in"] = f"{options.course / 'submitted'}/STUDENT/NAME/NAME.ipynb"
    width = max(map(len, done))
    lines = [f"{name:<{width}}  {outcome}" for name, outcome in done.items()]
    return "\n".join(lines), 0


def _preflight(options: argparse.Namespace) -> Answer:
    need("nbformat", "lab")
    import nbformat

    from accelviz.course.autograde.assignments import choose, find_assignments
    from accelviz.course.autograde.folder import Course
    from accelviz.course.autograde.preflight import examine

    known = Course(options.course).assignments() if options.course else find_assignments()
    chosen = choose(known, [options.assignment] if options.assignment else [])
    lines, fine = [], True
    for where, reason in _misplaced(options):
        fine = False
        lines += [
            f"{clean(where)}: 1 problem",
            f"  place: {clean(reason)}",
            "    Grading sets it aside.",
        ]
    checks = [(path, examine(path, chosen)) for path in _notebooks(options.submissions)]
    if options.run_cells:
        checks = _tried(checks)
    for path, checked in checks:
        fine = fine and checked.fine
        count = sum(not problem.harmless for problem in checked.problems)
        verdict = "ready to hand in" if checked.fine else f"{count} problem{'s' * (count > 1)}"
        lines.append(f"{clean(path)}: {verdict}")
        for problem in checked.problems:
            lines.append(f"  {'note' if problem.harmless else problem.kind}: {problem.text}")
            lines.append(f"    {problem.repair}")
        if options.repair and checked.notebook is not None and checked.assignment is not None:
            target = path.parent / "repaired" / f"{checked.assignment.name}.ipynb"
            target.parent.mkdir(exist_ok=True)
            nbformat.write(checked.notebook, target)
            left = [
                problem
                for problem in checked.problems
                if not problem.mended and not problem.harmless
            ]
            rest = f"; {len(left)} left to you" if left else ""
            lines.append(f"  repaired copy: {target}{rest}")
    return "\n".join(lines), 0 if fine else 1


def _misplaced(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Name what grading would set aside in a course's `submitted/`."""
    if not options.course:
        return []
    from accelviz.course.autograde.grading import misplaced

    submitted = (options.course / "submitted").resolve()
    asked = [path.resolve() for path in options.submissions]
    results = misplaced(options.course)
    return [
        (f"{result.student}/{result.assignment}".rstrip("/"), result.set_aside)
        for result in results
        if any(path in (submitted, submitted / result.student) for path in asked)
    ]


def _tried(checks: list[tuple[Path, Any]]) -> list[tuple[Path, Any]]:
    """Run what was examined as grading does, with the tests that students see."""
    try:
        need("IPython", "lab")
        from accelviz.course.autograde.border import require_border
        from accelviz.course.autograde.preflight import tried

        require_border()
    except DeviceUnavailable:
        return checks
    if all(checked.notebook is None for _, checked in checks):
        return checks
    return [(path, tried(checked)) for path, checked in checks]


def _notebooks(paths: list[Path]) -> list[Path]:
    paths_found = []
    for path in paths:
        inside = sorted(
            notebook
            for notebook in path.rglob("*.ipynb")
            if not {"repaired", ".ipynb_checkpoints"} & set(notebook.parts)
        )
        paths_found += inside if path.is_dir() and inside else [path]
    return paths_found


def _grade(options: argparse.Namespace) -> Answer:
    need("nbgrader", "course")
    from accelviz.course.autograde import grading, tables

    _need_gpu(options)
    output: Path = options.course / "grades-by-question.csv"
    output = _table(options.output) if options.output else output
    partly = bool(options.assignment or options.student)
    before = tables.read_table(output) if partly else tables.table([])
    done: list[tables.Graded] = []
    told = _Told()

    def progress(graded: tables.Graded, total: int) -> None:
        done.append(graded)
        tables.write_table(tables.merged(before, tables.table(done)), output)
        told.line(
            f"{len(done)} of {total}", f"{graded.student} {graded.assignment}", _points(graded)
        )

    results = grading.grade(
        options.course,
        options.assignment,
        options.student,
        settings=_limits(options),
        force=options.force,
        jobs=options.jobs,
        progress=progress,
    )
    whole = tables.merged(before, tables.table(results))
    tables.write_table(whole, output)
    sums = output.with_name("totals.csv")
    tables.write_table(tables.totals(whole), sums)
    width = max((len(f"{graded.student} {graded.assignment}") for graded in results), default=0)
    lines = []
    for graded in results:
        lines.append(
            f"{clean(f'{graded.student} {graded.assignment}').ljust(width)}  {_points(graded)}"
        )
        lines += [f"    {clean(remark)}" for remark in graded.remarks]
    lines.append(f"{_sandbox(options)}\n{len(results)} submissions, grades in {output} and {sums}")
    return "\n".join(lines), 1 if any(graded.set_aside for graded in results) else 0


def _points(graded: Any) -> str:
    """Say a submission's points, or why it has none."""
    from accelviz.course.autograde.tables import BY_HAND, table

    if graded.set_aside:
        return f"set aside: {clean(graded.set_aside)}"
    rows = table([graded])
    open_ = rows.loc[rows["problem"] == BY_HAND, "max"].sum()
    points = f"{rows['points'].sum():g} of {rows['max'].sum() - open_:g}"
    return points + (f", {open_:g} more by hand" if open_ else "")


def _leaderboard(options: argparse.Namespace) -> Answer:
    need("IPython", "lab")
    from accelviz.course.autograde import tables
    from accelviz.course.autograde.border import Limits
    from accelviz.course.autograde.leaderboard import leaderboard, markdown

    _need_gpu(options)
    output = _table(options.output) if options.output else None
    told = _Told()
    frame = leaderboard(
        options.folder,
        options.assignment,
        seed=options.seed,
        limits=Limits(**_limits(options)),
        jobs=options.jobs,
        progress=lambda student: told.line(student),
    )
    output = output or options.folder / "leaderboard.csv"
    tables.write_table(frame, output)
    text = markdown(frame)
    output.with_suffix(".md").write_text(text + "\n", encoding="utf-8")
    where = f"{output} and {output.with_suffix('.md')}"
    return f"{text}\n\n{_sandbox(options)}\nwritten to {where}", 0


class _Told:
    """Says on stderr what is done, a line each, also where that is a file."""

    def __init__(self) -> None:
        self._begin = time.monotonic()

    def line(self, *words: str) -> None:
        """Write a line, with the seconds since the beginning in front."""
        seconds = f"{time.monotonic() - self._begin:6.1f} s"
        print("  ".join((seconds, *map(clean, words))), file=sys.stderr, flush=True)


def _sandbox(options: argparse.Namespace) -> str:
    """Return which border was in force, and what is open."""
    from accelviz.course.autograde.border import Limits, open_doors

    doors = open_doors(Limits(**_limits(options)))
    return f"sandbox: {'; '.join(doors) or 'closed by bubblewrap'}"


def sandbox_line() -> str:
    """Return for `accelviz doctor` which border is in force on this machine."""
    from accelviz.course.autograde.border import Limits, open_doors, require_border

    try:
        require_border()
    except DeviceUnavailable as error:
        return str(error)
    closed = "closed by bubblewrap: files, processes, network, memory"
    return "; ".join(open_doors(Limits())) or closed
