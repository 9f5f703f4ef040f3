"""Takes limits on itself, then becomes the command it is given: `jail.py LIMITS -- COMMAND...`.

Run by its path, so that it costs a bare interpreter and not an import of accelviz. LIMITS is a JSON
object with `memory`, `file` and `cpu` (bytes, bytes, seconds; null for none), `network` and `gpu`
(whether the command may have them). Without a command it prints which of them this machine can
hold.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Any

_NEW_USER, _NEW_NETWORK = 0x1000_0000, 0x4000_0000  # CLONE_NEWUSER, CLONE_NEWNET


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


def cut_network() -> bool:
    """Move this process into a network of its own, which has no way out; say whether that worked.

    Any user may do so on Linux, unless the system forbids user namespaces (as some containers and
    some distributions do).
    """
    user, group = os.getuid(), os.getgid()
    try:
        unshare = ctypes.CDLL(None, use_errno=True).unshare
    except (OSError, AttributeError):
        return False
    if unshare(_NEW_USER | _NEW_NETWORK) != 0:
        return False
    # Without these lines the process is "nobody" to itself, which surprises getpass and git.
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with contextlib.suppress(OSError):
            Path("/proc/self", name).write_text(text)
    return True


def apply(limits: dict[str, Any]) -> dict[str, bool]:
    """Take all limits; say which of them hold."""
    limit("RLIMIT_CORE", 0)
    held = {
        "cpu": limit("RLIMIT_CPU", limits["cpu"]),
        "file": limit("RLIMIT_FSIZE", limits["file"]),
        "network": not limits["network"] and cut_network(),
    }
    # CUDA reserves tens of GiB of address space for itself, but no such amount of writable memory.
    memory = "RLIMIT_DATA" if limits["gpu"] else "RLIMIT_AS"
    # macOS accepts such a limit and does not hold it.
    held["memory"] = sys.platform == "linux" and limit(memory, limits["memory"])
    return held


if __name__ == "__main__":
    found, command = apply(json.loads(sys.argv[1])), sys.argv[3:]
    if command:
        os.execvp(command[0], command)
    print(json.dumps(found))
