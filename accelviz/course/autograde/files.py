"""Copies the files that were handed in with a notebook, within limits, without following links."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

#: Most files that are copied, their total size in bytes, and the depth of nested folders.
MAX_FILES, MAX_BYTES, MAX_DEPTH = 200, 100_000_000, 8


def companions(source: Path) -> tuple[list[Path], list[str]]:
    """Return a folder's regular files (relative paths), and messages on files that are left out.

    Notebooks, hidden files and caches are left out without a message. Links, sockets and devices
    are never opened.
    """
    files: list[Path] = []
    problems: list[str] = []
    total = 0
    folders = [source]
    while folders:
        folder = folders.pop(0)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            path = Path(entry.path).relative_to(source)
            if entry.name.startswith(".") or entry.name == "__pycache__":
                continue
            state = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(state.st_mode):
                if len(path.parts) < MAX_DEPTH:
                    folders.append(Path(entry.path))
                continue
            if not stat.S_ISREG(state.st_mode):
                problems.append(f"{path} is a link or no plain file; it was left out")
            elif entry.name.endswith(".ipynb"):
                continue
            elif len(files) >= MAX_FILES or total + state.st_size > MAX_BYTES:
                problems.append(
                    f"{path} was left out: {MAX_FILES} files and {MAX_BYTES // 10**6} MB are "
                    "taken at most"
                )
                return files, problems
            else:
                files.append(path)
                total += state.st_size
    return files, problems


def copy_files(source: Path, target: Path) -> list[str]:
    """Copy a folder's regular files; return messages on files that are left out."""
    files, problems = companions(source)
    for path in files:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(source / path, flags), "rb") as read, open(target / path, "wb") as write:
            shutil.copyfileobj(read, write)
    return problems
