"""MatrixMarket files, with SciPy."""

from __future__ import annotations

import contextlib
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt
import scipy.io
from scipy import sparse

from accelviz.datasets.convert import check_stated_size, from_scipy
from accelviz.datasets.readers.edge_lines import NUMBER
from accelviz.datasets.readers.registry import reader
from accelviz.datasets.readers.text import blocks_of, malformed, said, shown, unpacked
from accelviz.errors import GraphError
from accelviz.graph import Graph

Lines = Iterator[tuple[int, bytes]]

#: No entry takes less than two bytes, and gzip packs at most about a thousand into one.
_MOST_ENTRIES_PER_BYTE = 600
_COMMENTS = re.compile(rb"(?m)^[ \t]*+%[^\n]*+")
_LINES = rb"(?:[ \t]*+(?:%b[ \t]*+)?+\n)*+"
_VALUES = re.compile(_LINES % NUMBER)
_PLACES = re.compile(_LINES % rb"[0-9]++[ \t]++[0-9]++")
_ENTRIES = re.compile(_LINES % (rb"[0-9]++[ \t]++[0-9]++[ \t]++" + NUMBER))


@reader(".mtx", ".mtx.gz", ".mtx.bz2", ".tar.gz")
def read_matrix_market(
    path: Path, *, name: str, source: str, progress: bool | None = None
) -> Graph:
    """Read a MatrixMarket file: pattern, integer or real; general or symmetric.

    A symmetric file's other half is filled in. A dense ("array") file becomes sparse. Of an archive
    of the SuiteSparse Matrix Collection (`NAME.tar.gz`), the matrix `NAME/NAME.mtx` is read.

    Raises
    ------
    GraphError
        If the file is malformed, naming the line where SciPy does; or if it states more rows or
        entries than it can mean (see `plausible_nodes`).
    """
    try:
        with _opened(path, name, progress=False) as lines:
            facts = scipy.io.mminfo(_Stream(block for _, block in lines))
        rows, columns, entries, form, field, symmetry = facts
        if field == "complex":
            raise GraphError(str(path), "its values are complex", "real ones")
        # SciPy makes room for all that is stated before it looks for it.
        if entries > _MOST_ENTRIES_PER_BYTE * path.stat().st_size:
            raise GraphError(str(path), f"it states {entries} entries", "as many as there are")
        with _opened(path, name, progress) as lines:
            if form == "array":
                matrix = _read_array(path, lines, (rows, columns), symmetry)
            else:
                check_stated_size(rows, entries)
                matrix = scipy.io.mmread(_Stream(_checked(path, lines, field)), spmatrix=False)
    except GraphError:
        raise
    except Exception as error:  # SciPy and tarfile raise many kinds for malformed text
        raise GraphError(str(path), said(error), "a valid MatrixMarket file") from error
    return from_scipy(sparse.coo_array(matrix), name, source)


def _read_array(
    path: Path, lines: Lines, shape: tuple[int, int], symmetry: str
) -> npt.NDArray[np.float64]:
    """Read a dense file; SciPy (1.17) overlooks that a symmetric one is too short or too long."""
    parts = [np.empty(0)]
    for first_line, _, body in _bodies(lines):
        _check(path, first_line, body, _VALUES, "a finite number")
        if body.strip():  # NumPy makes a number of no text
            parts.append(np.fromstring(body, np.float64, sep=" "))
    values = np.concatenate(parts)
    # Of a symmetric matrix, the lower triangle is listed by columns: the upper one by rows.
    rows, columns = shape
    skew = symmetry == "skew-symmetric"
    listed = rows * columns if symmetry == "general" else rows * (rows + 1) // 2 - rows * skew
    if len(values) != listed or (symmetry != "general" and rows != columns):
        raise GraphError(
            str(path), f"{len(values)} values", f"{listed}, for {rows} x {columns} {symmetry}"
        )
    if symmetry == "general":
        return values.reshape(shape, order="F")
    matrix = np.zeros(shape)
    matrix[np.triu(np.ones(shape, dtype=bool), int(skew))] = values
    return matrix.T - matrix if skew else matrix + np.triu(matrix, 1).T


class _Stream:
    """Blocks of whole lines as a file for SciPy (1.17).

    SciPy crashes on a NUL byte, on a last line that has no end, and on a file that has `seek` but
    cannot do it.
    """

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._left = blocks, memoryview(b"")

    def read(self, size: int) -> bytes:
        if not self._left:
            self._left = memoryview(next(self._blocks, b""))
        data, self._left = self._left[:size], self._left[size:]
        return bytes(data)


def _checked(path: Path, lines: Lines, field: str) -> Iterator[bytes]:
    """Yield the blocks of a coordinate file; SciPy takes no notice of what follows a number."""
    pattern = field == "pattern"
    form, expected = (_PLACES, "row column") if pattern else (_ENTRIES, "row column value")
    for first_line, block, body in _bodies(lines):
        _check(path, first_line, body, form, expected)
        yield block


def _bodies(lines: Lines) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield number, block, and the block with empty lines for comments and the line of sizes."""
    sized = False
    for first_line, block in lines:
        body = _COMMENTS.sub(b"", block) if b"%" in block else block
        if not sized and (start := len(body) - len(body.lstrip())) < len(body):
            end = body.index(b"\n", start)
            body = body[:start] + body[end:]
            sized = True
        yield first_line, block, body


def _check(
    path: Path, first_line: int, body: bytes, form: re.Pattern[bytes], expected: str
) -> None:
    if form.fullmatch(body):
        return
    for number, line in enumerate(body.split(b"\n"), first_line):
        if not form.fullmatch(line + b"\n"):
            raise malformed(path, number, shown(line.strip()), expected)


@contextlib.contextmanager
def _opened(path: Path, name: str, progress: bool | None) -> Iterator[Lines]:
    with unpacked(path, progress) as stream:
        if not path.name.lower().endswith(".tar.gz"):
            yield blocks_of(stream, path)
            return
        # Read from front to end, so that nothing is unpacked to disk.
        with tarfile.open(fileobj=stream, mode="r|") as archive:  # type: ignore[call-overload]
            for member in archive:
                inside = PurePosixPath(member.name)
                own = inside.stem.lower() in (name.lower(), inside.parent.name.lower())
                if member.isfile() and inside.suffix.lower() == ".mtx" and own:
                    yield blocks_of(archive.extractfile(member), path)
                    return
        raise GraphError(str(path), f"there is no {name}.mtx in it", "an archive from SuiteSparse")
