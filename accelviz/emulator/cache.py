"""The folder of compiled kernels in the user's cache, which stays of a bounded size."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from pathlib import Path

from accelviz.files import cache_folder

#: Bytes that the folder may have, and what is left of them when it had more.
LIMIT, LEFT = 512 << 20, 384 << 20
#: Seconds for which nothing is dropped that somebody has used, as somebody may be about to load it.
IN_USE = 600.0


def folder() -> Path:
    """Return the folder, which is there; one among temporary files where there can be no cache."""
    directory = cache_folder() / "emulator"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        directory = Path(tempfile.gettempdir()) / f"accelviz-emulator-{os.getuid()}"
        directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def used(path: Path) -> bool:
    """Say whether a file is there; if so, it counts as used now."""
    try:
        os.utime(path)
    except OSError:
        return path.exists()  # of another user
    return True


def make_room(limit: int = LIMIT, left: int = LEFT, in_use: float = IN_USE) -> None:
    """Drop what has not been used for longest, if there is more than `limit` bytes.

    A kernel's files go together. Other processes may do so too, and use files meanwhile.
    """
    kernels: dict[str, list[tuple[float, int, Path]]] = {}
    for path in folder().iterdir():
        with contextlib.suppress(OSError):  # gone meanwhile
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
