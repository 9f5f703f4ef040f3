"""Runs a submission under limits of time, memory and output, apart from all others.

A cell that hangs, kills its process or eats all memory costs itself only: the process is replaced,
and the cells before it are run again. What is held where, and what is not, is in
docs/instructors.md.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import nbformat

from accelviz.course.autograde.apart import apart, numba_cache
from accelviz.course.autograde.border import Limits, require_border
from accelviz.course.autograde.cells import is_locked, is_test, question_of
from accelviz.course.autograde.files import copy_files
from accelviz.course.autograde.judge import Cell, Ran, Task, judged
from accelviz.course.autograde.outputs import error_output, show_points
from accelviz.emulator import build
from accelviz.errors import DeviceUnavailable

#: Tests of work that the library does too.
_ANSWERED = ("checks.blocks", "checks.schemes", "autograde.board")
#: What a run may take beyond its own limit, to start and to end.
_MARGIN = 120.0
#: Compiling the emulator's program takes seconds, and submissions side by side need it once.
_compiling = threading.Lock()


def run(
    notebook: Any,
    limits: Limits,
    folder: Path | None = None,
    *,
    seed: int = 0,
    library: Path | None = None,
    hidden: tuple[str, ...] = (),
) -> list[Ran]:
    """Run a notebook; its cells receive their outputs, and tests the points that they gave.

    Parameters
    ----------
    notebook : NotebookNode
        With the tests as they are in the source: they are believed.
    limits : Limits
    folder : Path, optional
        Whose files (notebooks aside) the cells find beside them, as copies.
    seed : int
        The course's.
    library : Path, optional
        A folder whose modules the tests may import.
    hidden : tuple of str
        Folders that are not for submissions' eyes.

    Returns
    -------
    list of Ran
        One for each code cell that is not empty, in order.

    Raises
    ------
    DeviceUnavailable
        If a submission's process does not even start.
    """
    require_border()
    code = [
        (index, cell)
        for index, cell in enumerate(notebook.cells)
        if cell.cell_type == "code" and cell.source.strip()
    ]
    cells = [Cell(_kind(cell), cell.source) for _, cell in code]
    tests = "\n".join(cell.source for cell in cells if cell.kind == "test")
    with tempfile.TemporaryDirectory(prefix="grade-", ignore_cleanup_errors=True) as scratch:
        handed_in, cache = Path(scratch) / "given", Path(scratch) / "cache"
        _fill_caches(handed_in / "cache", cache, emulator="checks.kernels" in tests)
        for name in ("work", "home"):
            (handed_in / name).mkdir()
        if folder is not None:
            copy_files(folder, handed_in / "work")
        bare = any(name in tests for name in _ANSWERED)
        task = Task(
            tuple(cells), limits, handed_in, hidden, bare, str(cache), seed, str(library or "")
        )
        try:
            results = apart(judged, task, seconds=limits.seconds + _MARGIN)
        except TimeoutError:
            problem = f"not graded: it had used its {limits.seconds:g} s"
            output = error_output("NotGraded", problem)
            results = [Ran(problem=problem, outputs=[output]) for _ in cells]
        except DeviceUnavailable:
            raise
        except RuntimeError as error:
            raise DeviceUnavailable("sandbox", str(error), "allow more memory") from error
    for (index, cell), ran in zip(code, results, strict=True):
        ran.index, ran.question = index, question_of(cell)
        cell.outputs, cell.execution_count = list(map(nbformat.from_dict, ran.outputs)), None
        if is_locked(cell) and _kind(cell) == "test" and not ran.problem:
            ran.problem = show_points(cell, ran.value)
    return results


def _fill_caches(submission: Path, tests: Path, *, emulator: bool) -> None:
    """Make the caches of a submission and its tests, with what takes long to compile."""
    for folder in (submission, tests):
        (folder / "emulator").mkdir(parents=True)
    if os.path.isdir(numba_cache()):
        shutil.copytree(numba_cache(), submission / "numba")
    if emulator and build.unavailable_reason() is None:
        with _compiling:
            program = build.runtime()
        for folder in (submission, tests):
            shutil.copy(program, folder / "emulator")
        for header in program.parent.glob("words-*"):  # for the compiler, which tests call
            (tests / "emulator" / header.name).symlink_to(header)


def _kind(cell: Any) -> str:
    # nbgrader takes the grade id off cells that the assignment does not have
    if not question_of(cell) or not is_locked(cell):
        return "student"
    return "test" if is_test(cell) else "given"
