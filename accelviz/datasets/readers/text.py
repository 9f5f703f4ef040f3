"""Text of any size: unpacked, cut into blocks of whole lines, with a progress bar."""

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

#: Text is read in blocks of about this size, which bounds the memory beside the result.
BLOCK_BYTES = 16 * 2**20
#: A longer line is refused. METIS writes all neighbors of a vertex in one: this is millions.
LONGEST_LINE = 64 * 2**20
#: What unpacks to more than this and to more than this many times its size is refused.
MOST_BYTES = 2**30
MOST_RATIO = 100
#: Files below this size open too soon for a progress bar.
BAR_FROM_BYTES = 20_000_000


@contextlib.contextmanager
def unpacked(path: Path, progress: bool | None = None) -> Iterator[Any]:
    """Open a plain, gzip or bzip2 file; its first bytes say which, not its name.

    Yields a file object with `read(size)` alone. `progress` asks for a bar in bytes of the file on
    disk: always, never, or (None) as `progress_bar` has it, from 20 MB on. Raises a GraphError if
    the file is empty; or, while it is read, if it is truncated or damaged.
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
    """Raise a GraphError if what a file unpacks to, in bytes, is out of proportion to it."""
    packed = path.stat().st_size
    if size > max(MOST_BYTES, MOST_RATIO * packed):
        problem = f"it unpacks from {packed} to {size} bytes or more"
        expected = f"at most {MOST_RATIO} times its size; if it is right, unpack it first"
        raise GraphError(str(path), problem, expected)


def progress_bar(label: str, total: int, progress: bool | None) -> Any:
    """Return a bar in bytes: always, never, or (None) in a terminal or a notebook only."""
    if progress is None:
        # Some libraries import IPython outside of a notebook, where it has no kernel.
        ipython = sys.modules.get("IPython")
        in_a_notebook = ipython is not None and hasattr(ipython.get_ipython(), "kernel")
        progress = sys.stderr.isatty() or in_a_notebook
    return tqdm(desc=label, total=total, unit="B", unit_scale=True, disable=not progress)


def blocks(path: Path, progress: bool | None = None) -> Iterator[tuple[int, bytes]]:
    r"""Yield a text file in blocks of whole lines, each with the number of its first line.

    Every line end becomes `\n`; a UTF-8 mark at the start is dropped. What is binary, UTF-16 or
    damaged, or has a line longer than `LONGEST_LINE`, is a GraphError.
    """
    with unpacked(path, progress) as stream:
        yield from blocks_of(stream, path)


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a text file with their numbers, without line ends."""
    for first, block in blocks(path, progress=False):
        for number, line in enumerate(io.BytesIO(block), first):
            yield number, line[:-1]


def blocks_of(stream: Any, path: Path) -> Iterator[tuple[int, bytes]]:
    """Do what `blocks` does with bytes to read; `path` is for messages."""
    rest = stream.read(3)
    if rest.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise GraphError(str(path), "it is UTF-16 text", "UTF-8: save it so, and try again")
    held, size = [rest.removeprefix(b"\xef\xbb\xbf")], 0
    line, unpacked_bytes = 1, 0
    while chunk := stream.read(BLOCK_BYTES):
        unpacked_bytes += len(chunk)
        check_unpacked(path, unpacked_bytes)
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
            problem = f"it is longer than {LONGEST_LINE:,} bytes"
            raise malformed(path, line, problem, "text in short lines")
    if rest := b"".join(held):
        yield line, _clean(path, line, rest + b"\n")


def _clean(path: Path, line: int, text: bytes) -> bytes:
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if (where := text.find(b"\0")) >= 0:
        problem = "a NUL byte, so the file is binary, or its encoding is not UTF-8"
        expected = "plain text, or text packed with gzip or bzip2"
        raise malformed(path, line + text.count(b"\n", 0, where), problem, expected)
    return text


def malformed(path: Path, line: int, problem: str, expected: str) -> GraphError:
    """Return the error for a line of a file."""
    return GraphError(f"{path}, line {line}", problem, expected)


def quoted(text: bytes | str, limit: int = 40) -> str:
    """Return a piece of a file as an error message quotes it, shortened."""
    clipped = text[: limit + 1]
    if isinstance(clipped, bytes):
        clipped = clipped.decode("utf-8", "backslashreplace")
    return repr(clipped if len(text) <= limit else clipped[:limit] + "…")


@contextlib.contextmanager
def explained(path: Path, expected: str) -> Iterator[None]:
    """Turn any error that a library raises for a damaged file into a GraphError."""
    try:
        yield
    except AccelvizError:
        raise
    except Exception as error:
        problem = " ".join(str(error).split())[:200]
        if not problem or isinstance(error, LookupError):  # its text is a key alone
            problem = f"{type(error).__name__} {problem}".strip()
        raise GraphError(str(path), problem, expected) from error
