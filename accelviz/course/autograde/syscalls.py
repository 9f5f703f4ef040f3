"""A filter of system calls by which a submission could leave traces outside its namespaces.

Locks, leases and watches belong to files, and two sandboxes share the files of the system; memory
files, System V objects and keys are counted by no limit; some kinds of sockets and the kernel's
log belong to no namespace. libseccomp makes the program that bubblewrap's option `--seccomp` takes.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import tempfile

#: Refused calls; by number where libseccomp is older than the call (the same on all machines).
_REFUSED: tuple[str | int, ...] = (
    *("add_key", "bpf", "fanotify_init", "flock", "inotify_init", "inotify_init1"),
    *("io_uring_setup", "keyctl", "memfd_create", "mincore", "mount", "mq_open", "msgget"),
    *("perf_event_open", "request_key", "semget", "setns", "shmget", "syslog", "unshare"),
    *("fadvise64", "readahead", "userfaultfd"),
    *(447, 451),  # memfd_secret, cachestat
)
#: Commands of `fcntl`: locks, also of open files; leases; notes on folders.
_REFUSED_COMMANDS = (6, 7, 37, 38, 1024, 1026)
#: Flag of `clone` for a namespace of users, in which every right would be had.
_NEW_USERS = 0x10000000
#: Flag of `preadv2` by which it tells what others have read lately.
_ONLY_CACHED = 8
#: Families of sockets that may be made: of files, IPv4, IPv6. VSOCK and others have no namespace.
_FAMILIES, _N_FAMILIES = (1, 2, 10), 64


@functools.cache
def refused_calls() -> bytes:
    """Return the filter for this machine, empty where libseccomp is missing."""
    try:
        import pyseccomp
    except (ImportError, RuntimeError):  # RuntimeError: of Python's package without the library
        return b""
    refused, masked = pyseccomp.ERRNO(errno.EPERM), pyseccomp.MASKED_EQ
    calls = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for name in _REFUSED:
        with contextlib.suppress(OSError):  # a call that this machine lacks
            calls.add_rule(refused, name)
    for command in _REFUSED_COMMANDS:  # the kernel reads the lower half of the argument only
        calls.add_rule(refused, "fcntl", pyseccomp.Arg(1, masked, 0xFFFFFFFF, command))
    calls.add_rule(refused, "clone", pyseccomp.Arg(0, masked, _NEW_USERS, _NEW_USERS))
    calls.add_rule(refused, "preadv2", pyseccomp.Arg(5, masked, _ONLY_CACHED, _ONLY_CACHED))
    calls.add_rule(refused, "socket", pyseccomp.Arg(0, pyseccomp.GE, _N_FAMILIES))
    for family in {*range(_N_FAMILIES)} - {*_FAMILIES}:
        calls.add_rule(refused, "socket", pyseccomp.Arg(0, pyseccomp.EQ, family))
    # The flags of `clone3` cannot be seen; without it, the C library calls `clone`.
    calls.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    with tempfile.TemporaryFile() as file:
        calls.export_bpf(file)
        file.seek(0)
        return file.read()
