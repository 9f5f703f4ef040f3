"""Copies the files that were handed in, within limits, without following links."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

#: Most files that are copied, their total size in bytes, and the depth of nested folders.
MAX_FILES, MAX_BYTES, MAX_DEPTH = 200, 100_000_000, 8
_NO_FILE = "is a link or no plain file"


def copy_files(source: Path, target: Path, *, notebooks: bool = False) -> list[str]:
    """Copy regular files that `target` does not have; return messages on files left out.

    Hidden files, caches and notebooks, but with `notebooks` not those in `source` itself, are left
    out without a message. A student may replace files and folders meanwhile, by links too, so each
    is opened once, in its opened folder. Raises OSError if `source` itself is a link.
    """
    problems: list[str] = []
    n_files = total = 0
    top = open_file(source)
    try:
        for path, file, problem in _files(top, Path()):
            is_wanted = path.suffix != ".ipynb" or (notebooks and len(path.parts) == 1)
            if not problem and not is_wanted:
                continue
            total += 0 if problem else os.fstat(file).st_size
            if max(n_files, len(problems)) >= MAX_FILES or total > MAX_BYTES:
                most = f"{MAX_FILES} files and {MAX_BYTES // 10**6} MB"
                return [*problems, f"{path} was left out: {most} are taken at most"]
            if problem:
                problems.append(f"{path} {problem}; it was left out")
                continue
            n_files += 1
            with contextlib.suppress(FileExistsError, NotADirectoryError):
                (target / path).parent.mkdir(parents=True, exist_ok=True)
                with open(target / path, "xb") as write, open(file, "rb", closefd=False) as read:
                    shutil.copyfileobj(read, write)
    finally:
        os.close(top)
    return problems


def open_file(name: Path | str, folder: int | None = None) -> int:
    """Open a file or folder, no link, and without waiting for a pipe."""
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)


def _files(folder: int, prefix: Path) -> Iterator[tuple[Path, int, str]]:
    """Yield path, descriptor and problem, "" for none, of each file in and below an open folder."""
    with os.scandir(folder) as entries:  # notebooks first, folders last
        names = sorted(
            (entry.is_dir(follow_symlinks=False), not entry.name.endswith(".ipynb"), entry.name)
            for entry in entries
        )
    for *_, name in names:
        path, file = prefix / name, -1
        if name.startswith(".") or name == "__pycache__":
            continue
        try:
            file = open_file(name, folder)
            mode = os.fstat(file).st_mode
            if not stat.S_ISDIR(mode):
                yield path, file, "" if stat.S_ISREG(mode) else _NO_FILE
            elif len(path.parts) < MAX_DEPTH:
                yield from _files(file, path)
        except OSError as error:
            is_other = error.errno in (errno.ELOOP, errno.ENXIO)  # a link, a socket
            yield path, -1, _NO_FILE if is_other else "cannot be read"
        finally:
            if file >= 0:
                os.close(file)
