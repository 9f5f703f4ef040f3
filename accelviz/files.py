"""Folders of data files, inside the package or in a checkout; atomic replacement of files."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from accelviz.errors import ArgumentError

_PACKAGE = Path(__file__).resolve().parent


def kernel_directory() -> Path:
    """Return the folder of the CUDA sources."""
    return _shipped("kernels", "kernels")


def kernel_names(pattern: str = "*.cu") -> list[str]:
    """Return the sorted paths of matching CUDA sources, relative to `kernel_directory()`."""
    folder = kernel_directory()
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob(pattern))


def results_directory() -> Path:
    """Return the folder of recorded measurements."""
    return _shipped("results", "benchmarks/results")


def is_checkout() -> bool:
    """Return whether the package runs from a checkout of the project, not from a wheel."""
    return not (_PACKAGE / "notebooks").is_dir()


def notebooks_directory() -> Path:
    """Return the folder of lessons and released assignments."""
    return _shipped("notebooks", "notebooks")


def assignments_directory() -> Path:
    """Return the folder of the course's assignments, with their solutions and hidden tests."""
    return _PACKAGE / "course" / "assignments"


def _shipped(installed: str, checkout: str) -> Path:
    in_wheel = _PACKAGE / installed
    return in_wheel if in_wheel.is_dir() else _PACKAGE.parent / checkout


def cache_folder() -> Path:
    """Return the folder for downloads and generated graphs, which may not exist yet.

    It is the environment variable `ACCELVIZ_CACHE`, or `accelviz` in the user's cache folder.
    """
    if folder := os.environ.get("ACCELVIZ_CACHE"):
        return Path(folder).expanduser()
    try:
        import pooch
    except ImportError:  # the emulator alone needs NumPy and pyelftools
        return Path(os.path.expanduser("~/.cache/accelviz"))
    return Path(pooch.os_cache("accelviz"))


@contextlib.contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` when the `with` block ends without an error.

    Parameters
    ----------
    path : str or PathLike
        The file to write, in an existing folder.

    Yields
    ------
    Path
        Path of the temporary file, with the same folder and ending.

    Raises
    ------
    ArgumentError
        If the folder does not exist or cannot be written to.
    """
    target = Path(path)
    temporary = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
    try:
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise ArgumentError(
            str(target), error.strerror or str(error), "a folder that exists and can be written to"
        ) from error
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
