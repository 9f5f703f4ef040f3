"""Where the project's own files are, and how a file is replaced only when it is complete."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from accelviz.errors import ArgumentError

_PACKAGE = Path(__file__).resolve().parent


def kernel_directory() -> Path:
    """Return the folder of the CUDA sources: inside the package, or beside it in a checkout."""
    return _shipped("kernels", "kernels")


def kernel_names(pattern: str = "*.cu") -> list[str]:
    """Return the paths of the CUDA sources in `kernel_directory()` that match, sorted."""
    folder = kernel_directory()
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob(pattern))


def results_directory() -> Path:
    """Return the folder of recorded measurements: inside the package, or in a checkout."""
    return _shipped("results", "benchmarks/results")


def is_checkout() -> bool:
    """Tell whether this is the project's checkout, where `make` does what pip does elsewhere."""
    return not (_PACKAGE / "notebooks").is_dir()


def notebooks_directory() -> Path:
    """Return the folder of lessons and released assignments: inside the package, or a checkout."""
    return _shipped("notebooks", "notebooks")


def assignments_directory() -> Path:
    """Return the folder of the course's assignments, with their solutions and hidden tests."""
    return _PACKAGE / "course" / "assignments"


def _shipped(installed: str, checkout: str) -> Path:
    inside = _PACKAGE / installed
    return inside if inside.is_dir() else _PACKAGE.parent / checkout


def cache_folder() -> Path:
    """Return the folder for downloads and made-up graphs; it need not exist.

    `ACCELVIZ_CACHE` if that variable is set, else `accelviz` in the user's cache folder.
    """
    if named := os.environ.get("ACCELVIZ_CACHE"):
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("accelviz"))


@contextlib.contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path that replaces `path` only when the block ends without an error.

    Parameters
    ----------
    path : str or PathLike
        The file to write. Its folder must exist.

    Yields
    ------
    Path
        A path in the same folder, with the same ending, to write to.

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
