"""Copies the files that were handed in with a notebook, within limits, without following links."""

from __future__ import annotations

import contextlib
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
        if not os.access(folder, os.R_OK | os.X_OK):
            problems.append(f"{folder.relative_to(source)}/ cannot be read; it was left out")
            continue
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            path = Path(entry.path).relative_to(source)
            if entry.name.startswith(".") or entry.name == "__pycache__":
                continue
            state = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(state.st_mode):
                if len(path.parts) < MAX_DEPTH:
                    folders.append(Path(entry.path))
                continue
            size = total + state.st_size
            if entry.name.endswith(".ipynb") and stat.S_ISREG(state.st_mode):
                continue
            if max(len(files), len(problems)) >= MAX_FILES or size > MAX_BYTES:
                most = f"{MAX_FILES} files and {MAX_BYTES // 10**6} MB"
                problems.append(f"{path} was left out: {most} are taken at most")
                return files, problems
            if not stat.S_ISREG(state.st_mode):
                problems.append(f"{path} is a link or no plain file; it was left out")
            elif not os.access(entry.path, os.R_OK):
                problems.append(f"{path} cannot be read; it was left out")
            else:
                files.append(path)
                total = size
    return files, problems


def copy_files(source: Path, target: Path) -> list[str]:
    """Copy regular files that `target` does not have; return messages on files left out."""
    files, problems = companions(source)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    for path in files:
        with contextlib.suppress(FileExistsError, NotADirectoryError):
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            with (
                open(target / path, "xb") as write,
                open(os.open(source / path, flags), "rb") as read,
            ):
                shutil.copyfileobj(read, write)
    return problems
