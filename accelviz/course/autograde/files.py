"""Copies what was handed in beside a notebook, within limits and without following links."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

#: Files beside a notebook that are copied, their bytes in all, and how deep folders may lie.
MOST_FILES, MOST_BYTES, MOST_DEPTH = 200, 100_000_000, 8


def companions(source: Path) -> tuple[list[Path], list[str]]:
    """Return a folder's plain files, and say what was left out and why.

    Notebooks, hidden files and caches are left out without a word. Links, sockets, devices and the
    like are never opened.
    """
    files: list[Path] = []
    problems: list[str] = []
    total = 0
    waiting = [source]
    while waiting:
        folder = waiting.pop(0)
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
                if len(path.parts) < MOST_DEPTH:
                    waiting.append(Path(entry.path))
                continue
            if not stat.S_ISREG(state.st_mode):
                problems.append(f"{path} is a link or no plain file; it was left out")
            elif entry.name.endswith(".ipynb"):
                continue
            elif len(files) >= MOST_FILES or total + state.st_size > MOST_BYTES:
                problems.append(
                    f"{path} was left out: {MOST_FILES} files and {MOST_BYTES // 10**6} MB are "
                    "taken at most"
                )
                return files, problems
            else:
                files.append(path)
                total += state.st_size
    return files, problems


def copy_files(source: Path, target: Path) -> list[str]:
    """Copy a folder's plain files; say what was left out and why."""
    files, problems = companions(source)
    for path in files:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(source / path, flags), "rb") as read, open(target / path, "wb") as write:
            shutil.copyfileobj(read, write)
    return problems
