"""Text of any size: unpacked, cut into blocks of whole lines, with a progress bar."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tqdm import tqdm

from accelviz.errors import GraphError

#: Text is read in blocks of about this size, which bounds the memory beside the result.
BLOCK_BYTES = 16 * 2**20
#: A longer line is refused. METIS writes all neighbors of a vertex in one: this is millions.
LONGEST_LINE = 64 * 2**20
#: Files below this size open too soon for a progress bar.
BAR_FROM_BYTES = 20_000_000


class Unpacked:
    """What `unpacked` gives: bytes to read, and the bar that follows them."""

    def __init__(self, path: Path, file: IO[bytes], stream: IO[bytes], bar: Any) -> None:
        self._path, self._file, self._stream, self._bar = path, file, stream, bar

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` unpacked bytes, fewer only at the end.

        Raises
        ------
        GraphError
            If the compressed file is truncated or damaged.
        """
        try:
            data = self._stream.read(size)
        except (EOFError, OSError, zlib.error) as error:
            raise GraphError(
                str(self._path),
                f"it cannot be unpacked: {error}",
                "a complete file; it may be truncated, so copy or download it again",
            ) from error
        self._bar.update(self._file.tell() - self._bar.n)
        return data


@contextlib.contextmanager
def unpacked(path: Path, progress: bool | None = None) -> Iterator[Unpacked]:
    """Open a plain, gzip or bzip2 file; its first bytes say which, whatever its name ends in.

    Parameters
    ----------
    path : Path
    progress : bool, optional
        A progress bar in bytes of the file on disk: always, never, or (None) as `progress_bar`
        has it, from 20 MB on.

    Raises
    ------
    GraphError
        If the file is empty.
    """
    size = path.stat().st_size
    if progress is None and size < BAR_FROM_BYTES:
        progress = False
    with path.open("rb") as file, progress_bar(path.name, size, progress) as bar:
        magic = file.read(3)
        file.seek(0)
        if not magic:
            raise GraphError(str(path), "the file is empty", "a graph")
        stream: Any = file
        if magic.startswith(b"\x1f\x8b"):
            stream = gzip.GzipFile(fileobj=file)
        elif magic == b"BZh":
            stream = bz2.BZ2File(file)
        yield Unpacked(path, file, stream, bar)


def progress_bar(label: str, total: int, progress: bool | None) -> Any:
    """Return a bar in bytes: always, never, or (None) in a terminal or a notebook only."""
    if progress is None:
        progress = sys.stderr.isatty() or _in_a_notebook()
    return tqdm(desc=label, total=total, unit="B", unit_scale=True, disable=not progress)


def _in_a_notebook() -> bool:
    # Some libraries import a kernel's packages without being in one.
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def blocks(path: Path, progress: bool | None = None) -> Iterator[tuple[int, bytes]]:
    r"""Yield a text file in blocks of whole lines, each with the number of its first line.

    Every line ends with `\n`, whatever it ended with in the file; a UTF-8 mark is dropped.

    Raises
    ------
    GraphError
        If the file is binary, UTF-16 or damaged, or has a line longer than `LONGEST_LINE`.
    """
    with unpacked(path, progress) as stream:
        yield from blocks_of(stream, path)


def blocks_of(stream: Any, path: Path) -> Iterator[tuple[int, bytes]]:
    """Do what `blocks` does with bytes to read; `path` is for messages."""
    rest = stream.read(3)
    if rest.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise GraphError(str(path), "it is UTF-16 text", "UTF-8: save it so, and try again")
    held, size = [rest.removeprefix(b"\xef\xbb\xbf")], 0
    line = 1
    while chunk := stream.read(BLOCK_BYTES):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            text = _clean(path, line, b"".join([*held, chunk[:cut]]))
            yield line, text
            line += text.count(b"\n")
            held, size = [], 0
        held.append(chunk[cut:])
        size += len(chunk) - cut
        if size > LONGEST_LINE:
            _clean(path, line, b"".join(held))
            raise malformed(
                path, line, f"it is longer than {LONGEST_LINE:,} bytes", "text in short lines"
            )
    if rest := b"".join(held):
        yield line, _clean(path, line, rest + b"\n")


def _clean(path: Path, line: int, text: bytes) -> bytes:
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if (where := text.find(b"\0")) >= 0:
        raise malformed(
            path,
            line + text.count(b"\n", 0, where),
            "a NUL byte, so the file is binary, or its encoding is not UTF-8",
            "plain text, or text packed with gzip or bzip2",
        )
    return text


def malformed(path: Path, line: int, problem: str, expected: str) -> GraphError:
    """Return the error for a line of a file."""
    return GraphError(f"{path}, line {line}", problem, expected)


def shown(text: bytes, limit: int = 40) -> str:
    """Return a piece of a file as an error message quotes it, shortened."""
    clipped = text[: limit + 1].decode("utf-8", "backslashreplace")
    return repr(clipped if len(text) <= limit else clipped[:limit] + "…")


def said(error: Exception) -> str:
    """Return what a library's exception says, shortened."""
    return str(error)[:200] or type(error).__name__
