"""The folder of compiled kernels in the user's cache, which stays of a bounded size."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from pathlib import Path

from accelviz.files import cache_folder

#: Bytes at which the folder is emptied, and to which.
LIMIT, LEFT = 512 << 20, 384 << 20
#: Seconds after its last use in which a file stays, as a process may be about to load it.
IN_USE = 600.0


def folder() -> Path:
    """Return the folder, created if it is missing; a temporary one where no cache is writable."""
    directory = cache_folder() / "emulator"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        directory = Path(tempfile.gettempdir()) / f"accelviz-emulator-{os.getuid()}"
        directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def used(path: Path) -> bool:
    """Return whether a file exists, and mark it as used now."""
    try:
        os.utime(path)
    except OSError:
        return path.exists()  # another user's
    return True


def make_room(limit: int = LIMIT, left: int = LEFT, in_use: float = IN_USE) -> None:
    """Drop the least recently used kernels, all files of each, if there are over `limit` bytes.

    Other processes may do the same at the same time.
    """
    kernels: dict[str, list[tuple[float, int, Path]]] = {}
    for path in folder().iterdir():
        with contextlib.suppress(OSError):  # dropped meanwhile
            files = kernels.setdefault(path.name.lstrip(".").partition(".")[0], [])
            files.append((path.lstat().st_mtime, path.lstat().st_size, path))
    size = sum(length for files in kernels.values() for _, length, _ in files)
    if size <= limit:
        return
    for files in sorted(kernels.values(), key=max):
        if size <= left:
            break
        for last, length, path in sorted(files, key=lambda file: len(file[2].name)):
            with contextlib.suppress(OSError):
                if max(last, path.lstat().st_mtime) > time.time() - in_use:
                    break
                path.unlink()
                size -= length
