"""A filter of system calls by which a submission could leave traces outside its namespaces.

Locks, leases, watches and marks belong to files, and two sandboxes share the files of the system;
memory files, System V objects, keys, shared memory without a file, huge pages, pages given to
pipes, rules of Landlock and buffers of TCP are counted by no limit; asynchronous reads are limited
for the whole machine, what epoll watches and files on their way through sockets for a user; some
kinds of sockets and the kernel's log belong to no namespace, and `sync` writes what all have
changed. A process that traces the first one of its namespace may outlive it, and a timer wakes a
process that was stopped. libseccomp makes the program that bubblewrap's option `--seccomp` takes.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import signal
import tempfile

#: Refused calls; by number where libseccomp is older than the call (the same on all machines).
_REFUSED: tuple[str | int, ...] = (
    *("add_key", "bpf", "fanotify_init", "flock", "inotify_init", "inotify_init1"),
    *("io_uring_setup", "keyctl", "memfd_create", "mincore", "mount", "mq_open", "msgget"),
    *("perf_event_open", "request_key", "semget", "setns", "shmget", "syslog", "unshare"),
    *("epoll_create", "epoll_create1", "fadvise64", "io_setup", "process_vm_writev", "ptrace"),
    *("readahead", "sendmmsg", "sendmsg", "sync", "syncfs", "timer_create", "userfaultfd"),
    "vmsplice",
    *(440, 444, 447, 451),  # process_madvise, landlock_create_ruleset, memfd_secret, cachestat
)
#: Commands of `fcntl`: locks, also of open files; leases; notes on folders; hints about files.
_REFUSED_COMMANDS = (6, 7, 37, 38, 1024, 1026, 1036)
#: The only kind of `ioctl`, of terminals. File systems have some that mark a file for all to see.
_TERMINALS = ord("T")
#: Flag of `clone` for a namespace of users, in which every right would be had.
_NEW_USERS = 0x10000000
#: Flag of `preadv2` by which it tells what others have read lately.
_ONLY_CACHED = 8
#: Advice of `madvise` that takes pages of files out of memory, or marks them as cold.
_EVICTING = (20, 21)
#: Flags of `mmap` for shared memory of no file, which stays when it is unmapped in part, and for
#: huge pages that were reserved for the machine.
_REFUSED_MEMORY = (0x21, 0x40000)
#: Family of sockets that may be made, that of files; and a number that all are below.
_UNIX, _N_FAMILIES = 1, 64


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
    for kind in {*range(256)} - {_TERMINALS}:
        calls.add_rule(refused, "ioctl", pyseccomp.Arg(1, masked, 0xFF00, kind << 8))
    calls.add_rule(refused, "clone", pyseccomp.Arg(0, masked, _NEW_USERS, _NEW_USERS))
    for flags in _REFUSED_MEMORY:
        calls.add_rule(refused, "mmap", pyseccomp.Arg(3, masked, flags, flags))
    for advice in _EVICTING:
        calls.add_rule(refused, "madvise", pyseccomp.Arg(2, masked, 0xFFFFFFFF, advice))
    calls.add_rule(refused, "preadv2", pyseccomp.Arg(5, masked, _ONLY_CACHED, _ONLY_CACHED))
    for name in ("socket", "socketpair"):
        calls.add_rule(refused, name, pyseccomp.Arg(0, pyseccomp.GE, _N_FAMILIES))
        for family in {*range(_N_FAMILIES)} - {_UNIX}:
            calls.add_rule(refused, name, pyseccomp.Arg(0, pyseccomp.EQ, family))
    # The system forgets the processor time of a process whose parent ignores its end.
    ended = pyseccomp.Arg(0, masked, 0xFFFFFFFF, signal.SIGCHLD)
    calls.add_rule(refused, "rt_sigaction", ended, pyseccomp.Arg(1, pyseccomp.NE, 0))
    # The flags of `clone3` cannot be seen; without it, the C library calls `clone`.
    calls.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    with tempfile.TemporaryFile() as file:
        calls.export_bpf(file)
        file.seek(0)
        return file.read()
