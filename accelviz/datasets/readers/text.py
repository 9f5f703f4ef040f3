"""Text files of any size: decompression, blocks of whole lines, a progress bar."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm
from tqdm.utils import CallbackIOWrapper

from accelviz.errors import AccelvizError, GraphError

#: Size of a block in bytes, which bounds the memory in addition to the result.
BLOCK_BYTES = 16 * 2**20
#: Largest number of bytes in a line.
LONGEST_LINE = 64 * 2**20
#: A packed file may unpack to this many bytes, or to this many times its size.
MOST_BYTES = 2**30
MOST_RATIO = 100
#: Smallest file with a progress bar by default.
BAR_FROM_BYTES = 20_000_000


@contextlib.contextmanager
def unpacked(path: Path, progress: bool | None = None) -> Iterator[Any]:
    """Open a plain, gzip or bzip2 file, which its first bytes identify.

    Yields a file object that has only `read(size)`. `progress` shows a bar of the bytes on disk:
    always (True), never (False), or as in `progress_bar` for files from 20 MB on (None). Raises a
    GraphError if the file is empty or, while it is read, truncated or damaged.
    """
    size = path.stat().st_size
    if progress is None and size < BAR_FROM_BYTES:
        progress = False
    with path.open("rb") as file, progress_bar(path.name, size, progress) as bar:
        magic = file.read(3)
        file.seek(0)
        if not magic:
            raise GraphError(str(path), "the file is empty", "a graph")
        counted = CallbackIOWrapper(bar.update, file, "read")
        try:
            if magic.startswith(b"\x1f\x8b"):
                yield gzip.GzipFile(fileobj=counted)
            elif magic == b"BZh":
                yield bz2.BZ2File(counted)
            else:
                yield counted
        except (EOFError, OSError, zlib.error) as error:
            expected = "a complete file; it may be truncated, so copy or download it again"
            raise GraphError(str(path), f"it cannot be unpacked: {error}", expected) from error


def check_unpacked(path: Path, size: int) -> None:
    """Raise a GraphError if a file unpacks to `size` bytes and that is out of proportion."""
    packed = path.stat().st_size
    if size > max(MOST_BYTES, MOST_RATIO * packed):
        problem = f"it unpacks from {packed} to {size} bytes or more"
        expected = f"at most {MOST_RATIO} times its size; if it is right, unpack it first"
        raise GraphError(str(path), problem, expected)


def progress_bar(label: str, total: int, progress: bool | None) -> Any:
    """Return a progress bar in bytes. None shows it only in a terminal or a notebook."""
    if progress is None:
        # Outside of a notebook, IPython may be imported but has no kernel.
        ipython = sys.modules.get("IPython")
        in_a_notebook = ipython is not None and hasattr(ipython.get_ipython(), "kernel")
        progress = sys.stderr.isatty() or in_a_notebook
    return tqdm(desc=label, total=total, unit="B", unit_scale=True, disable=not progress)


def blocks(path: Path, progress: bool | None = None) -> Iterator[tuple[int, bytes]]:
    r"""Yield a text file in blocks of whole lines, each with the number of its first line.

    Every line end becomes `\n`, and a UTF-8 byte order mark is dropped. Raises a GraphError for a
    file that is binary, UTF-16 or damaged, or has a line longer than `LONGEST_LINE`.
    """
    with unpacked(path, progress) as stream:
        yield from blocks_of(stream, path)


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers of the lines of a text file, and the lines without line ends."""
    for first, block in blocks(path, progress=False):
        for number, line in enumerate(io.BytesIO(block), first):
            yield number, line[:-1]


def blocks_of(stream: Any, path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield blocks as `blocks` does, from a binary stream; `path` is for error messages."""
    start = stream.read(3)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise GraphError(str(path), "it is UTF-16 text", "UTF-8: save it so, and try again")
    pending, pending_bytes = [start.removeprefix(b"\xef\xbb\xbf")], 0  # of an unfinished line
    line, unpacked_bytes = 1, 0
    while chunk := stream.read(BLOCK_BYTES):
        unpacked_bytes += len(chunk)
        check_unpacked(path, unpacked_bytes)
        end = chunk.rfind(b"\n") + 1
        if end:
            text = _clean(path, line, b"".join([*pending, chunk[:end]]))
            yield line, text
            line += text.count(b"\n")
            pending, pending_bytes = [], 0
        pending.append(chunk[end:])
        pending_bytes += len(chunk) - end
        if pending_bytes > LONGEST_LINE:
            _clean(path, line, b"".join(pending))
            problem = f"it is longer than {LONGEST_LINE:,} bytes"
            raise malformed(path, line, problem, "text in short lines")
    if last_line := b"".join(pending):
        yield line, _clean(path, line, last_line + b"\n")


def _clean(path: Path, line: int, text: bytes) -> bytes:
    r"""Replace line ends by `\n`; raise a GraphError for a NUL byte."""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if (position := text.find(b"\0")) >= 0:
        problem = "a NUL byte, so the file is binary, or its encoding is not UTF-8"
        expected = "plain text, or text packed with gzip or bzip2"
        raise malformed(path, line + text.count(b"\n", 0, position), problem, expected)
    return text


def malformed(path: Path, line: int, problem: str, expected: str) -> GraphError:
    """Return a GraphError about a line of a file."""
    return GraphError(f"{path}, line {line}", problem, expected)


def quoted(text: bytes | str, limit: int = 40) -> str:
    """Return text of a file in quotes, shortened to `limit` characters, for an error message."""
    clipped = text[: limit + 1]
    if isinstance(clipped, bytes):
        clipped = clipped.decode("utf-8", "backslashreplace")
    return repr(clipped if len(text) <= limit else clipped[:limit] + "…")


@contextlib.contextmanager
def explained(path: Path, expected: str) -> Iterator[None]:
    """Convert any exception of a library into a GraphError about the file."""
    try:
        yield
    except AccelvizError:
        raise
    except Exception as error:
        problem = " ".join(str(error).split())[:200]
        if not problem or isinstance(error, LookupError):  # its text is only a key
            problem = f"{type(error).__name__} {problem}".strip()
        raise GraphError(str(path), problem, expected) from error
