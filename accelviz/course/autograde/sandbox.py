"""Runs a submission under limits of time, memory and output, apart from all others.

A cell that hangs, kills its process or eats all memory costs itself only: the process is replaced,
and the cells before it are run again. What is held where, and what is not, is in
docs/instructors.md.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import nbformat

from accelviz.course.autograde import confine
from accelviz.course.autograde.cells import is_locked, is_test, question_of
from accelviz.course.autograde.confine import World
from accelviz.course.autograde.files import copy_files
from accelviz.course.autograde.judge import Cell, Ran, Task, judged
from accelviz.course.autograde.outputs import show_points, told
from accelviz.course.autograde.server import Server, TaskTimeout, one_server
from accelviz.course.autograde.student import CACHE
from accelviz.course.checks.warm import copy_runtime
from accelviz.errors import DeviceUnavailable
from accelviz.files import (
    assignments_directory,
    kernel_directory,
    notebooks_directory,
    results_directory,
)

_PACKAGE = Path(confine.__file__).parents[2]
#: Letters of a code cell that is run; anything that parses it would take long with more.
MOST_LETTERS = 100_000
#: Tests of work that the library does too, and what a submission then finds without a file.
_ANSWERED = ("checks.blocks", "checks.schemes", "autograde.board")
_ANSWERS = ("partition", "strategies")
#: What a run may take beyond its own limit, to start and to end.
_MARGIN = 120.0


@dataclass(frozen=True)
class Limits:
    """What a submission may use.

    Parameters
    ----------
    cell_seconds : float
        Wall-clock time of one cell; after one that was stopped, a quarter of it.
    seconds : float
        Wall-clock time of all cells together, those run again included.
    memory_gib : float or None
        Address space of each process, in GiB (with `gpu`, private writable memory); None for no
        limit. Held on Linux only.
    file_mib : int
        Size of a file it writes, in MiB.
    disk_mib : int
        Size of all its files at a time, in MiB. Held where it is isolated.
    output_bytes : int
        What one cell may print or show; the rest is dropped.
    network : bool
        Leave it the network.
    gpu : bool
        Leave tests the GPU.
    """

    cell_seconds: float = 60.0
    seconds: float = 600.0
    memory_gib: float | None = 4.0
    file_mib: int = 256
    disk_mib: int = 512
    output_bytes: int = 1_000_000
    network: bool = False
    gpu: bool = False

    def amounts(self) -> dict[str, Any]:
        """Return the limits in the words of `confine.World`."""
        return {
            "memory": None if self.memory_gib is None else int(self.memory_gib * 2**30),
            "file": self.file_mib * 2**20,
            "disk": self.disk_mib * 2**20,
            # The time that counts is the wall clock's; this ends what a submission left behind.
            "cpu": int(self.seconds * 8) + 60,
            "network": self.network,
            "seen": _seen(),
        }


@functools.cache
def held(limits: Limits) -> dict[str, bool]:
    """Say what this machine holds: `isolated`, `network` (cut), `memory`, `file` and `cpu`.

    Raises
    ------
    DeviceUnavailable
        If there is no sandbox on this system at all.
    """
    if sys.platform == "win32":
        raise DeviceUnavailable(
            "sandbox", "student code cannot be confined on Windows", "grade on Linux, macOS or WSL"
        )
    command = [sys.executable, "-I", confine.__file__, json.dumps(limits.amounts())]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, bool] = json.loads(answer.stdout)
    return found


def open_doors(limits: Limits) -> list[str]:
    """Say what a submission can do on this machine that it should not, a sentence each."""
    found, told = held(limits), []
    if not found["isolated"]:
        told += [
            "submissions read what you can read, reach the network, see other processes, and may "
            "leave some behind (this system lets nobody make namespaces)"
        ]
    elif limits.network:
        told.append("submissions reach the network")
    if not found["memory"]:
        told.append("their memory is not limited")
    return told


@dataclass
class CellRun:
    """What became of a code cell.

    Attributes
    ----------
    index : int
        The cell's place in the notebook.
    question : str
        Its grade id; "" for a cell of the student's own.
    seconds : float
        Wall-clock time it took.
    problem : str
        What went wrong, "" if nothing.
    raised : bool
        The problem is an exception that the cell raised, as a failed test does.
    """

    index: int
    question: str
    seconds: float
    problem: str
    raised: bool = False


def run(
    notebook: Any,
    limits: Limits,
    folder: Path | None = None,
    *,
    seed: int = 0,
    library: Path | None = None,
    hidden: tuple[str, ...] = (),
    ask: str = "",
    server: Server | None = None,
) -> list[CellRun]:
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
    ask : str
        A test to run at the end; its value is put into the notebook's metadata, `accelviz.answer`.
    server : Server, optional

    Returns
    -------
    list of CellRun
        One for each code cell that is not empty, in order.

    Raises
    ------
    DeviceUnavailable
        If a submission's process does not even start.
    """
    places = [index for index, cell in enumerate(notebook.cells) if _runs(cell)]
    cells = [Cell(_kind(notebook.cells[i]), notebook.cells[i].source) for i in places]
    for index, cell in enumerate(cells):
        if len(cell.source) > MOST_LETTERS:
            cells[index] = Cell(cell.kind, f"raise ValueError('more than {MOST_LETTERS} letters')")
    if ask:
        cells.append(Cell("test", ask))
    isolated = held(limits)["isolated"]
    # a mount point's path, and a socket's, should be short
    scratch = tempfile.TemporaryDirectory(prefix="grade-", ignore_cleanup_errors=True)
    with scratch as room:
        here, cache = Path(room) / "work", Path(room) / "cache"
        here.mkdir()
        (cache / "emulator").mkdir(parents=True)
        if any("checks.kernels" in cell.source for cell in cells if cell.kind != "student"):
            own = here / CACHE / "emulator"  # compiling it would take a cell's seconds
            own.mkdir(parents=True)
            for each in (cache / "emulator", own):  # no submission wrote the first one
                copy_runtime(each)
        if folder is not None:
            copy_files(folder, here)
        solutions = (str(assignments_directory()),)
        tests = [cell.source for cell in cells if cell.kind == "test"]
        bare = any(name in source for name in _ANSWERED for source in tests)
        answers = [str(_PACKAGE / name) for name in _ANSWERS] + [str(kernel_directory())]
        unseen = (*hidden, *solutions, *(answers if bare else ()))
        world = World(here, hidden=unseen, **limits.amounts())
        amounts = limits.amounts()
        # a test needs an assignment's modules, and not its notebook, which has the solutions
        modules = tuple(map(str, library.rglob("*.py"))) if library else ()
        amounts["seen"] += modules
        test = World(
            here,
            hidden=() if modules else solutions,
            written=(str(cache),),
            gpu=limits.gpu,
            **amounts,
        )
        task = Task(
            tuple(cells),
            world,
            test,
            isolated,
            limits.cell_seconds,
            limits.seconds,
            limits.output_bytes,
            seed,
            str(library or ""),
            bare,
        )
        try:
            done = one_server(server, limits.gpu).run(
                judged, task, seconds=limits.seconds + _MARGIN
            )
        except TaskTimeout:
            problem = f"not graded: it had used its {limits.seconds:g} s"
            done = [Ran(problem=problem, outputs=[told("NotGraded", problem)]) for _ in cells]
        except RuntimeError as error:
            if isinstance(error, DeviceUnavailable):
                raise
            raise DeviceUnavailable("sandbox", str(error), "allow more memory") from error
    if ask:
        notebook.metadata.setdefault("accelviz", {})["answer"] = asdict(done.pop())
    runs = []
    for index, ran in zip(places, done, strict=True):
        cell = notebook.cells[index]
        cell.outputs, cell.execution_count = list(map(nbformat.from_dict, ran.outputs)), None
        if is_locked(cell) and _kind(cell) == "test" and not ran.problem:
            ran.problem = show_points(cell, ran.value)
        question = question_of(cell)
        runs.append(CellRun(index, question, ran.seconds, ran.problem, ran.raised))
    return runs


def _runs(cell: Any) -> bool:
    return cell.cell_type == "code" and bool(cell.source.strip())


def _kind(cell: Any) -> str:
    if is_test(cell) or (is_locked(cell) and question_of(cell).endswith("-bonus")):
        return "test"
    return "given" if is_locked(cell) else "student"


def _seen() -> tuple[str, ...]:
    """Return where Python, its libraries and accelviz's own files are: never a repository's root.

    A checkout's history has the solutions, whatever is hidden of its files.
    """
    files = (_PACKAGE, kernel_directory(), results_directory(), notebooks_directory())
    homes = (sys.prefix, sys.base_prefix, sys.exec_prefix)
    paths = [path for path in sys.path if os.path.isabs(path)]
    found = {str(Path(each).resolve()) for each in (*homes, *files)} | set(paths)
    return tuple(sorted(each for each in found if not Path(each, ".git").exists()))
