"""The border around a submission: bubblewrap where it works, elsewhere limits alone."""

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
from accelviz.course.autograde.stand_ins import ANSWERS, HARMLESS
from accelviz.errors import DeviceUnavailable
from accelviz.files import (
    assignments_directory,
    kernel_directory,
    notebooks_directory,
    results_directory,
)

PACKAGE = Path(accelviz.__file__).parent
#: Inside bubblewrap: what was handed in (read-only), where cells run, and their home.
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
    """What a submission may use."""

    #: Wall-clock seconds of one cell; after one that was stopped, a quarter of them.
    cell_seconds: float = 60.0
    #: Wall-clock seconds of all cells together, those run again included.
    seconds: float = 600.0
    #: Address space of each process, in GiB; None for no limit. Held on Linux only. All processes
    #: together have twice as much.
    memory_gib: float | None = 4.0
    #: Size of a file it writes, in MiB, and of all its files at a time, which bubblewrap holds.
    file_mib: int = 256
    disk_mib: int = 512
    #: What one cell may print or show; the rest is dropped.
    output_bytes: int = 1_000_000

    def take(self) -> None:
        """Lower the limits of this process and of all that it starts."""
        import resource

        wanted = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_NOFILE: 512,
            resource.RLIMIT_FSIZE: self.file_mib << 20,
            # The wall clock decides; this ends what a submission left behind.
            resource.RLIMIT_CPU: int(self.seconds * 8) + 60,
        }
        if self.memory_gib is not None and sys.platform == "linux":
            wanted[resource.RLIMIT_AS] = int(self.memory_gib * 2**30)
        for kind, value in wanted.items():
            hard = resource.getrlimit(kind)[1]
            with contextlib.suppress(OSError, ValueError):
                most = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.setrlimit(kind, (most, most))


@functools.cache
def bubblewrap() -> str:
    """Return the path of a bubblewrap that works on this machine, "" if there is none."""
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
    """Return which border is in force on this machine, and what is open."""
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


def confined(
    command: Sequence[str],
    limits: Limits,
    *,
    folder: Path | None = None,
    readable: Iterable[str] = (),
    hidden: Iterable[str] = (),
    bare: bool = False,
) -> list[str]:
    """Return a command that runs another one behind the border.

    The process finds `folder` as `GIVEN` and the folders in `hidden` empty. It may read the system,
    Python, accelviz (with `bare` without partitions and strategies) and what is in `readable`.
    """
    if not bubblewrap():
        return [*command]
    options = [bubblewrap(), *_NAMESPACES, "--proc", "/proc"]
    options += ["--size", str(limits.disk_mib << 20), "--tmpfs", "/tmp"]
    options += ["--dev", "/dev", "--remount-ro", "/dev"]
    options += ["--size", str(64 << 20), "--tmpfs", "/dev/shm"]
    for path in (*_SYSTEM, *_libraries(), *readable):
        options += ["--ro-bind-try", path, path]
    packages, modules = _answers() if bare else ([], [])
    emptied = [*hidden, str(assignments_directory()), *map(str, packages)]
    if bare:
        emptied += [str(kernel_directory()), *(f"{path.parent}/__pycache__" for path in modules)]
    for name in filter(os.path.isdir, emptied):
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


def _answers() -> tuple[list[Path], list[Path]]:
    """Return the packages and the modules that `stand_ins` takes the place of."""
    paths = [PACKAGE.parent / name.replace(".", "/") for name in ANSWERS]
    modules = [path.with_suffix(".py") for path in paths]
    return [*filter(Path.is_dir, paths)], [*filter(Path.is_file, modules)]


def _libraries() -> list[str]:
    """Return the folders of Python, its libraries and accelviz, but no repository's root.

    A repository's history has the solutions, whatever is hidden of its files.
    """
    files = (PACKAGE, kernel_directory(), results_directory(), notebooks_directory())
    paths = [*map(str, files), sys.prefix, sys.base_prefix, sys.exec_prefix]
    paths += [path for path in sys.path if os.path.isabs(path)]
    resolved = {str(Path(path).resolve()) for path in paths}
    return sorted(path for path in resolved if not Path(path, ".git").exists())
