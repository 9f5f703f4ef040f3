"""The sandbox of a submission's processes: bubblewrap if it works, else limits alone.

Bubblewrap gives a process its own file system and network (namespaces of Linux). Without it a
submission reads what the grader can read. Graded as root, it runs as the user nobody in both cases.
Where systemd makes a cgroup for it, the system bounds memory and processes of the submission as a
whole; elsewhere the judge watches them. docs/instructors.md describes what is open.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import accelviz
from accelviz import files
from accelviz.course.autograde.common import first_line
from accelviz.course.autograde.stand_ins import ANSWERS, HARMLESS
from accelviz.course.autograde.syscalls import refused_calls
from accelviz.errors import DeviceUnavailable

PACKAGE = Path(accelviz.__file__).parent
#: Folders inside bubblewrap: `Confinement.folder` (read-only), and that of its copy.
GIVEN, ROOT = "/tmp/given", "/tmp"
_NAMESPACES = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session"),
)
#: /proc, without the system's settings, and without the first process, with which all others end.
_PROC = (
    *("--proc", "/proc", "--size", "4096", "--tmpfs", "/proc/sys", "--remount-ro", "/proc/sys"),
    *("--size", "4096", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1"),
)
#: The user and the group "nobody", who own no file. A submission that root grades runs as another
#: such user, no other submission's: the system counts processes, pipes and signals by user.
_NOBODY, _USERS = 65534, range(61184, 65520)
_next_user = itertools.count(secrets.randbelow(len(_USERS)))
#: Most processes and threads of a submission.
MAX_TASKS = 128
#: Environment variables by which `systemd-run` finds the manager of an ordinary user.
_MANAGER = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store"),
    *(f"/etc/{name}" for name in ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives")),
    *(f"/etc/{name}" for name in ("nsswitch.conf", "localtime", "fonts")),
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
            resource.RLIMIT_CORE: 1,  # at 0, a program of the system still gets each crash
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


@dataclass(frozen=True)
class Confinement:
    """What the processes of a submission may use and read."""

    limits: Limits
    #: Folder with `work` (copies of the files that were handed in), `home` and `cache`.
    folder: Path
    #: Folders that they may read, and folders that appear empty to them.
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    #: Whether the library's partitions and strategies, which contain answers of assignments, are
    #: replaced by `stand_ins`, which raise an error when used.
    bare: bool = False
    #: The user that its processes run as; 0: the grader.
    user: int = field(default_factory=lambda: _NOBODY if is_root() else 0)


def is_root() -> bool:
    """Whether this process is root's."""
    return sys.platform != "win32" and os.geteuid() == 0


def _namespaces(user: int) -> tuple[list[str], list[str]]:
    """Return bubblewrap's options, and a command that runs another one as its user.

    Bubblewrap needs a namespace of users where the caller is not root. Root's own number would be
    that of the system's root in it, so root needs none and becomes another user.
    """
    if not user:
        return ["--unshare-user", "--disable-userns", "--cap-drop", "ALL", *_NAMESPACES], []
    caps = [f"CAP_SET{kind}" for kind in ("UID", "GID", "PCAP")]
    options = ["--cap-drop", "ALL", *(word for cap in caps for word in ("--cap-add", cap))]
    drop = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return [*options, *_NAMESPACES], [*drop, "--bounding-set=-all"]


def _identity(user: int = _NOBODY) -> dict[str, Any]:
    """Return the arguments of Popen for a process without bubblewrap."""
    other = {"user": user, "group": user, "extra_groups": []}
    return other if is_root() and not bubblewrap() else {}


def hand_over(folder: Path, shared: Path | None = None) -> int:
    """Give a new folder and its files to a user that no other submission has; return the user.

    All users may read `shared`, also where those of the grader's umask may not.
    """
    if not is_root():
        return 0
    user = _USERS[next(_next_user) % len(_USERS)]
    folder.parent.chmod(0o711)
    folder.chmod(0o700)  # without bubblewrap, other submissions see it
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)
    for path in (shared, *shared.iterdir()) if shared else ():
        path.chmod(0o755)
    return user


def end_all(user: int) -> None:
    """Kill what a submission has left behind without bubblewrap, if root runs it as this user."""
    if user and (identity := _identity(user)):
        subprocess.run(["/bin/sh", "-c", "kill -9 -1"], cwd="/", capture_output=True, **identity)


def bubblewrap() -> str:
    """Return the path of bubblewrap if it works on this machine, else ""."""
    return _bubblewrap()[0]


@functools.cache
def _bubblewrap() -> tuple[str, str]:
    """Return the path of bubblewrap, "" if it does not work, and the reason why."""
    path = shutil.which("bwrap")
    if not path:
        return "", "it is not installed"
    options, as_user = _namespaces(_NOBODY if is_root() else 0)
    trial = [path, *options, "--ro-bind", "/", "/", *_PROC, *as_user, "true"]
    process = subprocess.run(trial, capture_output=True, text=True, errors="replace")
    if process.returncode == 0:
        return path, ""
    return "", f"{first_line(process.stderr)}; docs/instructors.md says what a container needs"


@functools.cache
def _scope() -> tuple[str, ...]:
    """Return a command that starts another one in a cgroup of its own, empty if there is none."""
    path = None if _identity() else shutil.which("systemd-run")
    manager = () if is_root() else ("--user",)
    command = (path or "", *manager, "--scope", "--quiet", "--collect")
    trial = [*command, "--property=TasksMax=64", "true"]
    try:
        works = path and subprocess.run(trial, capture_output=True, timeout=10).returncode == 0
    except (OSError, subprocess.SubprocessError):
        works = False
    return command if works else ()


def _in_cgroup(limits: Limits) -> list[str]:
    """Return the words before a command that runs it in a cgroup with the limits of a whole."""
    if not _scope():
        return []
    properties = [f"TasksMax={2 * MAX_TASKS}", "MemorySwapMax=0"]
    if limits.memory_gib is not None:
        properties.append(f"MemoryMax={int(2 * limits.memory_gib * 2**30)}")
    words = [f"--property={item}" for item in properties]
    return [*_scope(), *words, "env", *(f"--unset={name}" for name in _MANAGER)]


@functools.cache
def require_border() -> None:
    """Raise DeviceUnavailable where submissions cannot be limited, or root's cannot run."""
    if sys.platform == "win32":
        raise DeviceUnavailable(
            "sandbox", "student code cannot be confined on Windows", "grade on Linux, macOS or WSL"
        )
    if identity := _identity():
        command = [sys.executable, "-I", "-c", f"open({accelviz.__file__!r})"]
        try:
            subprocess.run(command, capture_output=True, check=True, cwd="/", **identity)
        except (OSError, subprocess.SubprocessError):
            raise DeviceUnavailable(
                "grading as root",
                "without bubblewrap, student code would run as nobody, who cannot read Python "
                f"({_bubblewrap()[1]})",
                "grade as an ordinary user, or let bubblewrap work",
            ) from None


def summary() -> str:
    """Describe the confinement on this machine, and what it leaves open."""
    try:
        require_border()
    except DeviceUnavailable as error:
        return str(error)
    user = ", as nobody" if is_root() else ""
    user += ", in a cgroup" if _scope() else ""
    if bubblewrap():
        unfiltered = "" if refused_calls() else "; system calls are not filtered"
        return f"closed by bubblewrap{user}: files, processes, network, memory{unfiltered}"
    unlimited = "" if sys.platform == "linux" else "; their memory is not limited"
    reads = "what all users can read" if user else "and write what you can, your grades too"
    leaves = "files" if user else "some"
    return (
        f"limits only{user}: submissions read {reads}, reach the network, see other "
        f"processes, and may leave {leaves} behind (no bubblewrap: {_bubblewrap()[1]}){unlimited}"
    )


def start(
    command: Sequence[str], bounds: Confinement, descriptor: int, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    """Start a process in the sandbox, in `work` of its folder, which bubblewrap makes read-only.

    Of open files it has only `descriptor`. With bubblewrap it may read the system, Python, accelviz
    and `readable`, and finds its folder at `GIVEN`; the assignments appear empty, with `bare` also
    the modules that `stand_ins` replaces.
    """
    options: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    manager = {name: os.environ[name] for name in _MANAGER if name in os.environ and _scope()}
    options |= {
        "env": environment | manager,
        "cwd": bounds.folder / "work",
        "start_new_session": True,
    }
    options |= _identity(bounds.user)
    with tempfile.TemporaryFile() as calls:
        calls.write(refused_calls())
        calls.seek(0)
        if bubblewrap():
            read_filter = ["--seccomp", str(calls.fileno())] if refused_calls() else []
            command = [*_sandbox(bounds), *read_filter, *_namespaces(bounds.user)[1], *command]
        return subprocess.Popen(
            [*_in_cgroup(bounds.limits), *command],
            pass_fds=[descriptor, calls.fileno()],
            preexec_fn=bounds.limits.apply,  # safe: the judge, this process, has one thread
            **options,
        )


def _sandbox(bounds: Confinement) -> list[str]:
    """Return bubblewrap and its options; see `start`."""
    #: A checkout's tests and history contain the solutions. It may be in /opt.
    checkout = [
        str(path) for path in [PACKAGE.parent.resolve()] if (path / "pyproject.toml").exists()
    ]
    options = [
        bubblewrap(),
        *_namespaces(bounds.user)[0],
        *_PROC,
        *("--dev", "/dev", "--remount-ro", "/dev"),
        *("--dev-bind", "/dev/null", "/dev/zero"),  # memory that maps it is counted by no limit
    ]
    for name, mebibytes in (("/tmp", bounds.limits.disk_mib), ("/dev/shm", 64)):
        options += ["--perms", "1777", "--size", str(mebibytes << 20), "--tmpfs", name]
    for path in (*_SYSTEM, *checkout, *_libraries(), *bounds.readable):
        for parent in reversed(Path(path).parents[:-1]):
            options += ["--perms", "0755", "--dir", str(parent)]  # also below the folder /root
        options += ["--tmpfs", path] if path in checkout else ["--ro-bind-try", path, path]
    packages, modules = _replaced_by_stand_ins() if bounds.bare else ([], [])
    empty_folders = [*bounds.hidden, str(files.assignments_directory()), *map(str, packages)]
    if bounds.bare:
        caches = (f"{path.parent}/__pycache__" for path in modules)
        empty_folders += [str(files.kernel_directory()), *caches]
    for name in filter(os.path.isdir, empty_folders):
        options += ["--size", "4096", "--tmpfs", name]
    for package in packages:
        for name in ("__init__", *HARMLESS):
            options += ["--ro-bind-try", f"{package}/{name}.py", f"{package}/{name}.py"]
    for module in modules:
        options += ["--ro-bind", "/dev/null", str(module)]
    options += ["--ro-bind", str(bounds.folder), GIVEN]
    for name in ("work", "home"):
        options += ["--perms", "0777", "--dir", f"{ROOT}/{name}"]
    for name in ("/", *checkout, *filter(os.path.isdir, empty_folders)):
        options += ["--remount-ro", name]
    return [*options, "--chdir", f"{ROOT}/work"]


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
    # not the folder of a script or the current one, which `python -m accelviz` searches
    paths += [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    resolved = {str(Path(path).resolve()) for path in paths}
    return sorted(path for path in resolved if not Path(path, ".git").exists())
