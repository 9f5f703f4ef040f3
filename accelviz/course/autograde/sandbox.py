"""Runs a submission's notebook under limits of time, memory and output.

A cell that hangs, ends its process or exhausts memory fails alone: the process is replaced and the
cells before it run again. docs/instructors.md describes what is confined on which system.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import nbformat

from accelviz.course.autograde.border import (
    Confinement,
    Limits,
    end_all,
    hand_over,
    require_border,
)
from accelviz.course.autograde.cells import is_locked, is_test, question_of
from accelviz.course.autograde.files import copy_files
from accelviz.course.autograde.judge import Cell, CellResult, run_notebook
from accelviz.course.autograde.outputs import error_output, show_points
from accelviz.course.autograde.processes import CACHES, call_in_process
from accelviz.emulator import build
from accelviz.errors import DeviceUnavailable
from accelviz.files import cache_folder

#: Modules whose tests ask for work that the library contains; see `stand_ins`.
_BARE_MODULES = ("checks.blocks", "checks.schemes")
#: Seconds beyond the limit of a submission for starting and ending its processes.
_MARGIN = 120.0
#: Only one thread compiles the emulator's program, which takes seconds; the others use the result.
_compiling = threading.Lock()


def run(
    notebook: Any,
    limits: Limits,
    folder: Path | None = None,
    *,
    seed: int = 0,
    library: Path | None = None,
    hidden: tuple[str, ...] = (),
    tests: str = "",
) -> list[CellResult]:
    """Run a notebook, and write its outputs and the points of its tests into its cells.

    Parameters
    ----------
    notebook : NotebookNode
        The submission, with the tests of the assignment's source. The tests are trusted.
    limits : Limits
    folder : Path, optional
        Folder whose files, except notebooks, are copied to the cells' working directory.
    seed : int
        The course's seed.
    library : Path, optional
        Folder of the assignment, whose files are copied too, and whose modules tests may import.
    hidden : tuple of str
        Folders that the submission may not read.
    tests : str
        Texts of the tests that it will be graded with, if they are others: what they check is not
        to be found in the library.

    Returns
    -------
    list of CellResult
        One for each code cell that is not empty, in order.

    Raises
    ------
    DeviceUnavailable
        If the submission's process does not start.
    """
    require_border()
    code = [
        (index, cell)
        for index, cell in enumerate(notebook.cells)
        if cell.cell_type == "code" and cell.source.strip()
    ]
    cells = [Cell(_kind(cell), cell.source) for _, cell in code]
    tests = "\n".join([tests, *(cell.source for cell in cells if cell.kind == "test")])
    with tempfile.TemporaryDirectory(prefix="grade-", ignore_cleanup_errors=True) as scratch:
        handed_in, cache, shared = (Path(scratch) / name for name in ("given", "cache", "shared"))
        for path in (handed_in / "work", handed_in / "home", cache, shared):
            path.mkdir(parents=True)
        _fill_cache(handed_in / "cache", shared, emulator="checks.kernels" in tests)
        for source in filter(None, (library, folder)):  # the assignment's files count, not copies
            copy_files(source.resolve(), handed_in / "work")
        user = hand_over(handed_in, shared)
        cache.chmod(0o700)
        bare = any(name in tests for name in _BARE_MODULES)
        bounds = Confinement(limits, handed_in, (str(shared),), hidden, bare, user)
        arguments = cells, bounds, str(cache), seed, str(library or "")
        try:
            results = call_in_process(run_notebook, *arguments, seconds=limits.seconds + _MARGIN)
        except TimeoutError:
            problem = f"not graded: it had used its {limits.seconds:g} s"
            output = error_output("NotGraded", problem)
            results = [CellResult(problem=problem, outputs=[output]) for _ in cells]
        except DeviceUnavailable:
            raise
        except RuntimeError as error:
            raise DeviceUnavailable("sandbox", str(error), "allow more memory") from error
        finally:
            end_all(user)
    for (index, cell), result in zip(code, results, strict=True):
        result.index, result.question = index, question_of(cell)
        cell.outputs, cell.execution_count = list(map(nbformat.from_dict, result.outputs)), None
        if _kind(cell) == "test" and not result.problem:
            result.problem = show_points(cell, result.value) or result.remark
    return results


def _fill_cache(cache: Path, shared: Path, *, emulator: bool) -> None:
    """Create the cache of a submission; the emulator's headers lie in `shared`."""
    (cache / "emulator").mkdir(parents=True)
    for name in CACHES:
        if (cache_folder() / name).is_dir():
            shutil.copytree(cache_folder() / name, cache / name)
    if emulator and build.unavailable_reason() is None:
        with _compiling:
            program = build.runtime()
            for every_load in (True, False):  # of right kernels, and of traced ones
                build.precompile_header(every_load=every_load)
        shutil.copy(program, cache / "emulator")
        for header in program.parent.glob("words-*"):  # headers for kernels that tests compile
            try:
                os.link(header, shared / header.name)
            except OSError:  # on another file system
                shutil.copyfile(header, shared / header.name)
            (cache / "emulator" / header.name).symlink_to(shared / header.name)


def _kind(cell: Any) -> str:
    # nbgrader removes the grade id of cells that the assignment does not have
    if not question_of(cell) or not is_locked(cell):
        return "student"
    return "test" if is_test(cell) else "given"
