"""Runs a submission's cells in a kernel of its own, under limits of time, memory and output.

A cell that hangs, kills its kernel or eats all memory costs itself only: the kernel is replaced,
and the cells before it are run again. What the sandbox does not protect against is in
docs/instructors.md.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError

from accelviz.course.autograde.cells import is_test, question_of
from accelviz.course.autograde.outputs import fail, raised_by, settle
from accelviz.errors import DeviceUnavailable

_JAIL = Path(__file__).with_name("jail.py")
#: Each thread of a BLAS or of OpenMP reserves address space, and a server has many cores.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_MAX_THREADS = 4
#: Letters of an exception's message, and of a line of its traceback, that are kept.
_ERROR_BYTES = 5_000


@dataclass(frozen=True)
class Limits:
    """What a submission may use.

    Parameters
    ----------
    cell_seconds : float
        Wall-clock time of one cell.
    seconds : float
        Wall-clock time of all cells together, those run again included.
    memory_gib : float or None
        Address space of each process, in GiB (with `gpu`, private writable memory); None for no
        limit. Held on Linux only.
    file_mib : int
        Size of a file it writes, in MiB.
    output_bytes : int
        What one cell may print or show; the rest is dropped.
    network : bool
        Leave it the network.
    gpu : bool
        Leave it the GPU.
    """

    cell_seconds: float = 60.0
    seconds: float = 600.0
    memory_gib: float | None = 4.0
    file_mib: int = 256
    output_bytes: int = 1_000_000
    network: bool = False
    gpu: bool = False

    def jail(self) -> str:
        """Return the limits in the words of `jail.py`."""
        return json.dumps(
            {
                "memory": None if self.memory_gib is None else int(self.memory_gib * 2**30),
                "file": self.file_mib * 2**20,
                # The time that counts is the wall clock's; this ends what a submission left behind.
                "cpu": int(self.seconds * _MAX_THREADS * 2) + 60,
                "network": self.network,
                "gpu": self.gpu,
            }
        )


@functools.cache
def held(limits: Limits) -> dict[str, bool]:
    """Say which limits this machine holds: `memory`, `file`, `cpu` and (cut) `network`.

    Raises
    ------
    DeviceUnavailable
        If there is no sandbox on this system at all.
    """
    if sys.platform == "win32":
        raise DeviceUnavailable(
            "sandbox", "student code cannot be confined on Windows", "grade on Linux, macOS or WSL"
        )
    answer = subprocess.run(
        [sys.executable, "-I", str(_JAIL), limits.jail()],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, bool] = json.loads(answer.stdout)
    return found


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


class _Manager(AsyncKernelManager):
    """Starts the kernel of this very environment inside the jail, whatever the notebook names."""

    jail: tuple[str, ...] = ()

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        kernel = [sys.executable, "-m", "ipykernel_launcher", "-f", self.connection_file]
        return [*self.jail, *kernel, *(extra_arguments or [])]


class Run(NotebookClient):
    """One run of a notebook under limits.

    Parameters
    ----------
    notebook : NotebookNode
        Its cells receive their outputs.
    limits : Limits
    folder : Path, optional
        Whose files (notebooks aside) the cells find beside them, as copies.
    environment : mapping of str to str
        Variables beside those of this process.
    """

    def __init__(
        self,
        notebook: Any,
        limits: Limits,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            notebook,
            allow_errors=True,
            interrupt_on_timeout=True,
            error_on_timeout={
                "ename": "CellTimeoutError",
                "evalue": "",
                "traceback": ["CellTimeoutError: stopped, it took too long"],
            },
            raise_on_iopub_timeout=True,
            store_widget_state=False,
            coalesce_streams=True,
            shutdown_kernel="immediate",
            timeout_func=lambda _: self._seconds_left(),
            on_cell_executed=self._note_reply,
            extra_arguments=["--HistoryManager.hist_file=:memory:"],
        )
        self.limits = limits
        self.folder = folder
        self.environment = dict(environment or {})
        self.runs: list[CellRun] = []
        self._lost: set[int] = set()
        self._deadline = 0.0
        self._shown = 0
        self._reply: Mapping[str, Any] = {}

    def run(self) -> list[CellRun]:
        """Run all code cells.

        Returns
        -------
        list of CellRun
            One for each code cell that is not empty, in order.

        Raises
        ------
        DeviceUnavailable
            If the kernel does not even start.
        """
        self.reset_execution_trackers()
        with self._workspace():
            self._start()
            self._deadline = time.monotonic() + self.limits.seconds
            try:
                for index, cell in enumerate(self.nb.cells):
                    if _runs(cell):
                        self._step(index, cell)
            finally:
                self._stop()
        return self.runs

    def _seconds_left(self) -> float:
        left = self._deadline - time.monotonic()
        # nbclient takes 0 for "no limit"
        return max(0.001, min(self.limits.cell_seconds, left))

    def _step(self, index: int, cell: Any) -> None:
        question = question_of(cell)
        if self._deadline <= time.monotonic():
            problem = f"not run: the submission had used its {self.limits.seconds:g} s"
            self.runs.append(CellRun(index, question, 0.0, fail(cell, "NotRun", problem)))
            return
        start = time.perf_counter()
        fatal, problem = self._execute(index, cell)
        seconds = time.perf_counter() - start
        raised = "" if problem else raised_by(cell)
        if is_test(cell):
            problem = settle(cell) or problem
        self.runs.append(CellRun(index, question, seconds, problem or raised, bool(raised)))
        if fatal:
            self._lost.add(index)
            self._replay(index)

    def _execute(self, index: int, cell: Any) -> tuple[bool, str]:
        """Run a cell; say whether the kernel must be replaced, and what went wrong."""
        allowed = self._seconds_left()
        self._shown, self._reply = 0, {}
        try:
            self.execute_cell(cell, index, store_history=True)
        except CellTimeoutError:
            problem = f"stopped after {allowed:.0f} s, and would not be interrupted"
            return True, fail(cell, "CellTimeoutError", problem)
        except DeadKernelError:
            return True, fail(cell, "KernelDied", "the kernel died (a crash, or out of memory)")
        content = self._reply.get("content", {})
        if any(each.get("source") == "ask_exit" for each in content.get("payload", [])):
            return True, fail(cell, "KernelDied", "the cell ended its own kernel (exit or quit)")
        if content.get("ename") == "CellTimeoutError":
            # What an interrupted test holds in memory is not worth keeping; what a cell of the
            # student's own had defined by then may be.
            return is_test(cell), fail(cell, "CellTimeoutError", f"stopped after {allowed:.0f} s")
        if "MemoryError" in raised_by(cell).partition(":")[0]:
            # The traceback holds on to what filled the memory, so the next cell would fail too.
            return True, "out of memory"
        return False, ""

    def _replay(self, upto: int) -> None:
        """Replace the kernel and bring it to where it was, without the cells that were lost."""
        while self._deadline > time.monotonic():
            self._stop()
            self._start()
            for index, cell in enumerate(self.nb.cells[:upto]):
                if index in self._lost or is_test(cell) or not _runs(cell):
                    continue
                fatal, _ = self._execute(index, copy.deepcopy(cell))
                self.nb.cells[index] = cell  # nbclient puts the copy in its place
                if fatal:
                    self._lost.add(index)
                    break
            else:
                return

    @contextlib.contextmanager
    def _workspace(self) -> Iterator[None]:
        folder = functools.partial(tempfile.TemporaryDirectory, ignore_cleanup_errors=True)
        # a socket's path has room for about a hundred letters, so it is not where TMPDIR says
        short = "/tmp" if Path("/tmp").is_dir() else None
        with folder(prefix="grade-") as here, folder(prefix="grade-", dir=short) as sockets:
            self._sockets = Path(sockets)
            if self.folder is not None:
                copy_files(self.folder, Path(here))
            self.resources = {"metadata": {"path": here}}
            yield

    def _start(self) -> None:
        self.km: Any = _Manager(
            kernel_name="python3",
            # a socket in the file system reaches into a network namespace, a port does not
            transport="ipc",
            connection_file=str(self._sockets / f"{time.monotonic_ns():x}.json"),
        )
        self.km.jail = (sys.executable, "-I", str(_JAIL), self.limits.jail(), "--")
        try:
            nowhere = subprocess.DEVNULL  # a kernel's own words are not for the terminal
            self.start_new_kernel(env=self._variables(), stdout=nowhere, stderr=nowhere)
            self.start_new_kernel_client()
        except RuntimeError as error:
            raise DeviceUnavailable(
                "kernel",
                f"it did not start within the limits ({error})",
                "allow more memory, and see that `python -m ipykernel_launcher` works",
            ) from error

    def _stop(self) -> None:
        if self.km is not None:
            self._cleanup_kernel()
            self.km = None

    def _variables(self) -> dict[str, str]:
        variables = {**os.environ, **self.environment, "MALLOC_ARENA_MAX": "2"}
        threads = min(_MAX_THREADS, os.cpu_count() or 1)
        variables |= dict.fromkeys(_THREADS, str(threads))
        if not self.limits.gpu:
            variables["CUDA_VISIBLE_DEVICES"] = ""
        return variables

    def _note_reply(self, execute_reply: Mapping[str, Any], **_: Any) -> None:
        self._reply = execute_reply

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        """Take a message of the kernel, unless the cell has shown more than it may."""
        kind, content = msg["msg_type"], msg["content"]
        if kind == "error":  # which may be long, but says how many points there are
            content["evalue"] = content["evalue"][:_ERROR_BYTES]
            content["traceback"] = [line[:_ERROR_BYTES] for line in content["traceback"][-100:]]
        if kind in ("stream", "display_data", "update_display_data", "execute_result"):
            size = len(content.get("text", "")) + len(str(content.get("data", "")))
            self._shown += size
            if self._shown > self.limits.output_bytes:
                if self._shown - size <= self.limits.output_bytes:
                    note = (
                        f"\n(more than {self.limits.output_bytes:,} bytes; the rest is dropped)\n"
                    )
                    cell.outputs.append(nbformat.v4.new_output("stream", name="stdout", text=note))
                if kind != "execute_result" or size > self.limits.output_bytes:
                    return None
        return super().process_message(msg, cell, cell_index)


def _runs(cell: Any) -> bool:
    return cell.cell_type == "code" and bool(cell.source.strip())


def copy_files(source: Path, target: Path) -> None:
    """Copy a folder's plain files, notebooks and links aside."""
    for path in sorted(source.rglob("*")):
        own = path.relative_to(source)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in own.parts)
        inside = not any(parent.is_symlink() for parent in (path, *path.parents[: len(own.parts)]))
        if path.is_file() and inside and not hidden and path.suffix != ".ipynb":
            (target / own).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / own)
