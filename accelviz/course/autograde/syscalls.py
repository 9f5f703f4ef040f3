"""A filter of system calls by which a submission could leave traces outside its namespaces.

Locks, leases and watches belong to files, and two sandboxes share the files of the system; memory
files, System V objects and keys are counted by no limit. The program is classic BPF, as
bubblewrap's option `--seccomp` takes it.
"""

from __future__ import annotations

import platform
import struct

#: Numbers of refused calls on x86-64 and AArch64; None where the architecture lacks the call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "add_key": (248, 217),
    "bpf": (321, 280),
    "cachestat": (451, 451),
    "fanotify_init": (300, 262),
    "flock": (73, 32),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "io_uring_setup": (425, 425),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mincore": (27, 232),
    "mount": (165, 40),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "perf_event_open": (298, 241),
    "request_key": (249, 218),
    "semget": (64, 190),
    "setns": (308, 268),
    "shmget": (29, 194),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
_FCNTL, _CLONE, _CLONE3 = (72, 25), (56, 220), (435, 435)
#: Flag of `clone` for a namespace of users, in which every right would be had.
_NEW_USERS = 0x10000000
#: Commands of `fcntl`: locks, also of open files; leases; notes on folders.
_REFUSED_COMMANDS = (6, 7, 37, 38, 1024, 1026)
#: `AUDIT_ARCH_*` of the machines, and the column of the tables above.
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
#: Results of the filter: errors, go on, end the process. `clone3` does not exist, as its flags
#: cannot be seen; the C library then calls `clone`.
_EPERM, _ENOSYS, _ALLOW, _KILL = 0x00050001, 0x00050026, 0x7FFF0000, 0x80000000
_LOAD, _EQUAL, _ABOVE, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06


def refused_calls() -> bytes:
    """Return the filter for this machine, empty on an architecture without a table."""
    if platform.machine() not in _MACHINES:
        return b""
    architecture, column = _MACHINES[platform.machine()]
    numbers = [number for row in _REFUSED.values() if (number := row[column]) is not None]
    lines = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL)]
    lines += [(_LOAD, 0, 0, 0), (_ABOVE, 0, 1, 1 << 30), (_RETURN, 0, 0, _KILL)]  # the x32 calls
    for number in numbers:
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _EPERM)]
    lines += [(_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _ENOSYS)]
    lines += [(_EQUAL, 0, 4, _CLONE[column]), (_LOAD, 0, 0, 16)]
    lines += [(_HAS_BITS, 0, 1, _NEW_USERS), (_RETURN, 0, 0, _EPERM), (_RETURN, 0, 0, _ALLOW)]
    lines += [(_EQUAL, 0, 1 + 2 * len(_REFUSED_COMMANDS), _FCNTL[column]), (_LOAD, 0, 0, 24)]
    for command in _REFUSED_COMMANDS:
        lines += [(_EQUAL, 0, 1, command), (_RETURN, 0, 0, _EPERM)]
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
