"""Folders of compiled kernels in the user's cache, with a bounded size."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
import time
from pathlib import Path

from accelviz.files import cache_folder

#: Above `LIMIT` bytes, the least recently used kernels are deleted until `LEFT` bytes remain.
LIMIT, LEFT = 512 << 20, 384 << 20
#: Seconds after its last use in which a file is not deleted, as a process may be about to load it.
IN_USE = 600.0


def folder() -> Path:
    """Return the emulator's folder, created if missing; a temporary one if it cannot be.

    A temporary folder that another user made is not used: kernels in it could be anything.
    """
    variables = (os.environ.get(name) for name in ("ACCELVIZ_CACHE", "XDG_CACHE_HOME", "HOME"))
    directory = _user_folder(*variables)
    try:
        if not directory.is_dir():
            directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        directory = Path(tempfile.gettempdir()) / f"accelviz-emulator-{os.getuid()}"
        directory.mkdir(mode=0o700, exist_ok=True)
        if directory.is_symlink() or directory.stat().st_uid != os.getuid():
            directory = _private_folder()
    return directory


@functools.lru_cache(maxsize=8)
def _user_folder(*_variables: str | None) -> Path:
    return cache_folder() / "emulator"


@functools.cache
def _private_folder() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="accelviz-emulator-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def mark_used(path: Path) -> bool:
    """Mark a file as used now; return whether it exists."""
    try:
        os.utime(path)
    except OSError:
        return path.exists()  # a file of another user
    return True


def make_room(
    directory: Path, limit: int = LIMIT, left: int = LEFT, in_use: float = IN_USE
) -> None:
    """Delete the least recently used kernels until `left` bytes remain, if over `limit` bytes.

    All files of a kernel are deleted together. Several processes may call it concurrently.
    """
    kernels: dict[str, list[tuple[float, int, Path]]] = {}  # (last use, bytes, path) of each file
    for path in directory.iterdir():
        with contextlib.suppress(OSError):  # deleted by another process
            status = path.lstat()
            files = kernels.setdefault(path.name.lstrip(".").partition(".")[0], [])
            files.append((status.st_mtime, status.st_size, path))
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
