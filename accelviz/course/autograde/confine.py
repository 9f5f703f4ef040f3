"""Confines a process: limits, and where the system allows it a world of its own.

On Linux, any user may make namespaces, unless the system forbids it (as some containers and some
distributions do). Then a confined process sees no other process and no network, and of the files
only Python, the system's libraries and its own folder: all read-only but for its own folder, which
is in memory, of limited size, and gone with it. With its first process all of its processes end.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import glob
import json
import os
import platform
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: User, mount, process, network, IPC and host name: CLONE_NEW...
_NEW = 0x1000_0000 | 0x2_0000 | 0x2000_0000 | 0x4000_0000 | 0x800_0000 | 0x400_0000
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x4_0000  # MS_...
_NOSUID, _NODEV, _DETACH = 2, 4, 2
_MOUNT_SETATTR = 442
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_READ_ONLY, _AT_FDCWD, _AT_RECURSIVE = 1, -100, 0x8000
_SET_PDEATHSIG, _CAPBSET_DROP, _NO_NEW_PRIVS, _SUBREAPER, _DUMPABLE = 1, 24, 38, 36, 4
_SET_SECCOMP = 22
#: Processes and threads of a confined process; and how many of them may want a processor at a time,
#: on average, after some seconds. Cells, tests and compilers are one.
_MOST_TASKS, _MOST_BUSY, _BUSY_SECONDS = 128, 1.5, 8.0
#: Calls of the system that no cell needs: memory that no limit counts, others' processes, the
#: kernel's own doors; and their numbers on each of `_MACHINES`, which are the kernel's names.
_REFUSED = {
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "pivot_root": (155, 41),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
}
_MACHINES = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
#: What a program needs of the system.
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store"),
    *(f"/etc/{name}" for name in ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives")),
    *(f"/etc/{name}" for name in ("passwd", "group", "nsswitch.conf", "localtime", "fonts")),
    *(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")),
)
#: Where a confined process works; its home is beside it.
WORK, HOME = "/tmp/work", "/tmp/home"


@dataclass(frozen=True)
class World:
    """What a process may see and use.

    Parameters
    ----------
    folder : Path
        On this machine; its files are copied to where the process works.
    seen : tuple of str
        Folders and files that it may read, beside the system's.
    hidden : tuple of str
        Folders within those that it finds empty.
    written : tuple of str
        Folders that it may write, beside its own.
    memory, file, cpu : int or None
        Address space and largest file in bytes, processor time in seconds.
    disk : int
        Bytes of all files it may have at a time.
    network, gpu : bool
        Whether it may have them.
    """

    folder: Path
    seen: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    memory: int | None = None
    file: int | None = None
    cpu: int | None = None
    disk: int = 1 << 30
    network: bool = False
    gpu: bool = False


@functools.cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: Any) -> None:
    """Call a function of the C library; raise OSError if it fails."""
    if getattr(_libc(), name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


def die_with_parent() -> None:
    """Let the kernel end this process when the one that started it ends (on Linux)."""
    if sys.platform == "linux":
        _call("prctl", _SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopt_orphans() -> None:
    """Let what its children leave behind become this process's own (on Linux)."""
    if sys.platform == "linux":
        _call("prctl", _SUBREAPER, 1, 0, 0, 0)


def hide_memory() -> None:
    """Let no process of the same user read or write this one's memory (on Linux)."""
    if sys.platform == "linux":
        _call("prctl", _DUMPABLE, 0, 0, 0, 0)


def limit(name: str, value: int | None) -> bool:
    """Lower a resource limit of this process and all it starts; say whether that worked."""
    if value is None:
        return False
    try:
        import resource

        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    except (ImportError, AttributeError, OSError, ValueError):
        return False
    return True


def take_limits(world: World) -> dict[str, bool]:
    """Take all limits; say which of them hold."""
    limit("RLIMIT_CORE", 0)
    limit("RLIMIT_NOFILE", 512)
    limit("RLIMIT_NPROC", 256)  # of the user in this namespace; the system's root has no limit
    # CUDA reserves tens of GiB of address space for itself, but no such amount of writable memory.
    memory = "RLIMIT_DATA" if world.gpu else "RLIMIT_AS"
    return {
        "cpu": limit("RLIMIT_CPU", world.cpu),
        "file": limit("RLIMIT_FSIZE", world.file),
        # macOS accepts such a limit and does not hold it
        "memory": sys.platform == "linux" and limit(memory, world.memory),
    }


def leave(network: bool) -> None:
    """Leave the machine's namespaces; what is forked next begins in new ones.

    Raises
    ------
    OSError
        If the system forbids it.
    """
    user, group = os.getuid(), os.getgid()
    _call("unshare", _NEW & ~(0x4000_0000 if network else 0))
    lines = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    for name, text in lines.items():
        Path("/proc/self", name).write_text(text)


def enter(world: World) -> None:
    """See nothing but a world; called by the first process in the new namespaces.

    Raises
    ------
    OSError
        If the system forbids it.
    """
    root = world.folder.parent / f"root-{os.urandom(4).hex()}"
    root.mkdir()
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    size = f"size={world.disk},mode=755".encode()
    _mount("tmpfs", root, "tmpfs", _NOSUID | _NODEV, size)
    devices = ("/dev", "/sys") if world.gpu else ()
    for path in _outermost((*_SYSTEM, *world.seen, *devices)):
        if path.is_symlink():
            target = root / path.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(path.readlink())
        else:
            _bind(path, root)
    for name in world.hidden:
        with contextlib.suppress(FileNotFoundError):
            _mount(
                "tmpfs", root / Path(name).relative_to("/"), "tmpfs", _NOSUID | _NODEV, b"size=4k"
            )
    for name in world.written:
        _bind(Path(name), root, read_only=False)
    for name in ("proc", "dev/shm", "tmp", WORK[1:], HOME[1:]):
        (root / name).mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):  # some containers forbid it, and little needs it
        _mount("proc", root / "proc", "proc", _NOSUID | _NODEV)
    shutil.copytree(world.folder, root / WORK[1:], dirs_exist_ok=True)
    os.chdir(root)
    if _libc().syscall(_PIVOT_ROOT[platform.machine()], b".", b".") != 0:
        raise OSError(ctypes.get_errno(), "pivot_root")
    _call("umount2", b".", _DETACH)
    os.chdir(WORK)


def drop_rights(gpu: bool = False) -> None:
    """Give up what the first process of a namespace may do there, for good.

    Where there is a GPU no call is refused: nobody has tried what its driver needs.
    """
    # in a namespace of its own it would have all rights again, and mount what memory it likes
    with contextlib.suppress(OSError):
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    _call("prctl", _NO_NEW_PRIVS, 1, 0, 0, 0)
    for right in range(64):
        _libc().prctl(_CAPBSET_DROP, right, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x2008_0522, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())
    if not gpu:
        _refuse_calls()


def _refuse_calls() -> None:
    """Let the calls in `_REFUSED` fail, here and in all that this process starts."""
    if platform.machine() not in _MACHINES:
        return
    machine, which = _MACHINES[platform.machine()], [*_MACHINES].index(platform.machine())
    calls = [numbers[which] for numbers in _REFUSED.values()]
    count = len(calls)
    lines = [(0x20, 0, 0, 4), (0x15, 0, count + 3, machine)]  # load the machine; go on if ours
    lines += [(0x20, 0, 0, 0), (0x35, count + 1, 0, 1 << 30)]  # load the call; another numbering?
    lines += [(0x15, count - i, 0, call) for i, call in enumerate(calls)]
    lines += [(0x06, 0, 0, 0x7FFF_0000), (0x06, 0, 0, 0x5_0000 | errno.EPERM)]
    program = b"".join(struct.pack("HBBI", *line) for line in lines)
    text = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(text))
    with contextlib.suppress(OSError):  # a kernel without such filters
        _call("prctl", _SET_SECCOMP, 2, ctypes.create_string_buffer(head, len(head)), 0, 0)


class Watch:
    """What the processes of a namespace take, looked at again and again from outside."""

    def __init__(self) -> None:
        self._begin = self._last = time.monotonic()
        self._busy = 0.0

    def too_much(self) -> bool:
        """Say whether there are too many of them, or too many that want a processor.

        `/proc` is theirs from `enter` on, which turns the root of both; before, it is everybody's.
        """
        if os.path.exists("/proc/self"):  # a process outside of theirs has no such place there
            return False
        states = []
        for path in glob.iglob("/proc/[0-9]*/task/*/stat"):
            with contextlib.suppress(OSError):
                states.append(Path(path).read_bytes().rpartition(b")")[2][1:2])
                if len(states) > _MOST_TASKS:
                    return True
        now = time.monotonic()
        self._busy += states.count(b"R") * (now - self._last)
        self._last = now
        return self._busy > _MOST_BUSY * (now - self._begin) + _BUSY_SECONDS


def _outermost(names: Iterable[str]) -> list[Path]:
    """Return the paths that exist and do not lie in another one of them, `WORK`'s parents aside."""
    own = {*Path(WORK).parents, Path("/proc")}
    there = sorted({Path(name) for name in names if os.path.lexists(name)} - own)
    real = [path for path in there if not path.is_symlink()]
    return [
        path for path in there if not any(other != path and other in path.parents for other in real)
    ]


def _bind(path: Path, root: Path, read_only: bool = True) -> None:
    target = root / path.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    _mount(path, target, None, _BIND | _RECURSIVE)
    if read_only and not path.is_char_device():
        attributes = (ctypes.c_uint64 * 4)(_READ_ONLY, 0, 0, 0)
        arguments = (_AT_FDCWD, os.fsencode(target), _AT_RECURSIVE, attributes)
        if _libc().syscall(_MOUNT_SETATTR, *arguments, ctypes.c_size_t(32)) != 0:
            raise OSError(ctypes.get_errno(), "mount_setattr", str(path))


def _mount(
    source: str | Path | None,
    target: str | Path,
    kind: str | None,
    flags: int,
    data: bytes | None = None,
) -> None:
    _call(
        "mount",
        None if source is None else os.fsencode(source),
        os.fsencode(target),
        None if kind is None else kind.encode(),
        ctypes.c_ulong(flags),
        data,
    )


def probe(limits: dict[str, Any]) -> dict[str, bool]:
    """Say which limits this machine holds, and whether a process can be isolated; ends as one."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "work").mkdir()
        world = World(Path(scratch) / "work", **limits)
        if (child := os.fork()) == 0:
            with contextlib.suppress(BaseException):
                leave(world.network)
                if (first := os.fork()) == 0:
                    enter(world)
                    drop_rights()
                    os._exit(0)
                os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) and 1)
            os._exit(1)
        isolated = sys.platform == "linux" and os.waitpid(child, 0)[1] == 0
    found = {"isolated": isolated, "network": isolated and not world.network}
    return {**found, **take_limits(world)}


if __name__ == "__main__":
    print(json.dumps(probe(json.loads(sys.argv[1]))))
