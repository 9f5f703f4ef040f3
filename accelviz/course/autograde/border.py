"""The border that confines a submission's processes: bubblewrap if it works, else limits alone.

Bubblewrap gives a process its own file system and network (namespaces of Linux). Without it a
submission reads what the grader can read. docs/instructors.md describes both cases.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import accelviz
from accelviz import files
from accelviz.course.autograde.stand_ins import ANSWERS, HARMLESS
from accelviz.errors import DeviceUnavailable

PACKAGE = Path(accelviz.__file__).parent
#: Folders inside bubblewrap: the files that were handed in (read-only), the working directory of
#: the cells, and their home.
GIVEN, WORK, HOME = "/tmp/given", "/tmp/work", "/tmp/home"
_NAMESPACES = (
    *("--unshare-user", "--unshare-all", "--disable-userns", "--cap-drop", "ALL"),
    *("--die-with-parent", "--new-session"),
)
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store"),
    *(f"/etc/{name}" for name in ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives")),
    *(f"/etc/{name}" for name in ("passwd", "group", "nsswitch.conf", "localtime", "fonts")),
)


@dataclass(frozen=True)
class Limits:
    """Resources that a submission may use."""

    #: Wall-clock seconds of one cell; a quarter of them after a cell that was stopped.
    cell_seconds: float = 60.0
    #: Wall-clock seconds of all cells together, including cells that run again.
    seconds: float = 600.0
    #: Address space of each process in GiB; None for no limit. All processes together may use twice
    #: as much memory. Effective on Linux only.
    memory_gib: float | None = 4.0
    #: Size of a file that it writes, in MiB.
    file_mib: int = 256
    #: Size of all its files together, in MiB. Effective with bubblewrap only.
    disk_mib: int = 512
    #: Output of one cell; the rest is dropped.
    output_bytes: int = 1_000_000

    def apply(self) -> None:
        """Lower the resource limits of this process and of its future children."""
        import resource

        limits = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_NOFILE: 512,
            resource.RLIMIT_FSIZE: self.file_mib << 20,
            # Generous: the wall clock ends a cell, this ends processes that it left behind.
            resource.RLIMIT_CPU: int(self.seconds * 8) + 60,
        }
        if self.memory_gib is not None and sys.platform == "linux":
            limits[resource.RLIMIT_AS] = int(self.memory_gib * 2**30)
        for kind, limit in limits.items():
            hard = resource.getrlimit(kind)[1]
            with contextlib.suppress(OSError, ValueError):
                limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
                resource.setrlimit(kind, (limit, limit))


@functools.cache
def bubblewrap() -> str:
    """Return the path of bubblewrap if it works on this machine, else ""."""
    path = shutil.which("bwrap")
    if not path:
        return ""
    trial = [path, *_NAMESPACES, "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    return path if subprocess.run(trial, capture_output=True).returncode == 0 else ""


def require_border() -> None:
    """Raise DeviceUnavailable on Windows, where submissions cannot be limited."""
    if sys.platform == "win32":
        raise DeviceUnavailable(
            "sandbox", "student code cannot be confined on Windows", "grade on Linux, macOS or WSL"
        )


def summary() -> str:
    """Describe the confinement on this machine, and what it leaves open."""
    try:
        require_border()
    except DeviceUnavailable as error:
        return str(error)
    if bubblewrap():
        return "closed by bubblewrap: files, processes, network, memory"
    reason = "does not work here" if shutil.which("bwrap") else "is not installed"
    unlimited = "" if sys.platform == "linux" else "; their memory is not limited"
    return (
        "limits only: submissions read what you can read, reach the network, see other "
        f"processes, and may leave some behind (bubblewrap {reason}){unlimited}"
    )


def confined_command(
    command: Sequence[str],
    limits: Limits,
    *,
    folder: Path | None = None,
    readable: Iterable[str] = (),
    hidden: Iterable[str] = (),
    bare: bool = False,
) -> list[str]:
    """Return a command that runs `command` in bubblewrap, or `command` itself without bubblewrap.

    The process may read the system, Python, accelviz and `readable`, and finds `folder` at `GIVEN`.
    The assignments and the folders in `hidden` appear empty, with `bare` also the modules that
    `stand_ins` replaces.
    """
    if not bubblewrap():
        return [*command]
    options = [bubblewrap(), *_NAMESPACES, "--proc", "/proc"]
    options += ["--size", str(limits.disk_mib << 20), "--tmpfs", "/tmp"]
    options += ["--dev", "/dev", "--remount-ro", "/dev"]
    options += ["--size", str(64 << 20), "--tmpfs", "/dev/shm"]
    for path in (*_SYSTEM, *_libraries(), *readable):
        options += ["--ro-bind-try", path, path]
    packages, modules = _replaced_by_stand_ins() if bare else ([], [])
    empty_folders = [*hidden, str(files.assignments_directory()), *map(str, packages)]
    if bare:
        caches = (f"{path.parent}/__pycache__" for path in modules)
        empty_folders += [str(files.kernel_directory()), *caches]
    for name in filter(os.path.isdir, empty_folders):
        options += ["--size", "4096", "--tmpfs", name]
    for package in packages:
        for name in ("__init__", *HARMLESS):
            options += ["--ro-bind-try", f"{package}/{name}.py", f"{package}/{name}.py"]
    for module in modules:
        options += ["--ro-bind", "/dev/null", str(module)]
    if folder is not None:
        options += ["--ro-bind", str(folder), GIVEN]
    options += ["--dir", WORK, "--dir", HOME, "--remount-ro", "/", "--chdir", WORK]
    return [*options, *command]


def _replaced_by_stand_ins() -> tuple[list[Path], list[Path]]:
    """Return the packages and the modules that `stand_ins` replaces."""
    paths = [PACKAGE.parent / name.replace(".", "/") for name in ANSWERS]
    modules = [path.with_suffix(".py") for path in paths]
    return [*filter(Path.is_dir, paths)], [*filter(Path.is_file, modules)]


def _libraries() -> list[str]:
    """Return the folders of Python, its libraries and accelviz, but no root of a git repository.

    The history of a repository contains the solutions.
    """
    folders = [files.kernel_directory(), files.results_directory(), files.notebooks_directory()]
    paths = [*map(str, (PACKAGE, *folders)), sys.prefix, sys.base_prefix, sys.exec_prefix]
    paths += [path for path in sys.path if os.path.isabs(path)]
    resolved = {str(Path(path).resolve()) for path in paths}
    return sorted(path for path in resolved if not Path(path, ".git").exists())
