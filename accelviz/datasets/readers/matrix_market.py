"""Reader of MatrixMarket files, with SciPy."""

from __future__ import annotations

import contextlib
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import scipy
from scipy import sparse

from accelviz.datasets.convert import check_stated_size, from_scipy
from accelviz.datasets.readers.columns import NUMBER
from accelviz.datasets.readers.registry import reader
from accelviz.datasets.readers.text import blocks_of, explained, malformed, quoted, unpacked
from accelviz.errors import GraphError
from accelviz.graph import Graph

Lines = Iterator[tuple[int, bytes]]

#: Largest number of entries per byte of a file: an entry has at least two bytes, and gzip packs at
#: most about a thousand bytes into one.
_MAX_ENTRIES_PER_BYTE = 600
_POSITION = r"[0-9]++[ \t]++[0-9]++"
#: Regular expression and description of a data line, by the type of values.
_FORMS = {
    "integer": (rf"{_POSITION}[ \t]++[-+]?+[0-9]++", "row column integer"),
    "pattern": (_POSITION, "row column"),
    "real": (rf"{_POSITION}[ \t]++{NUMBER}", "row column value"),
}
#: Comments, blank lines and the size line.
_HEAD = re.compile(rb"(?:[ \t]*+(?:%[^\n]*+)?\n)*(?![ \t]*+[%\n])[^\n]++\n")
_BANNER = re.compile(rb"\A%%?matrixmarket", re.IGNORECASE)


@reader(".mtx", ".mtx.gz", ".mtx.bz2", ".tar.gz")
def read_matrix_market(
    path: Path, *, name: str, source: str, progress: bool | None = None
) -> Graph:
    """Read a sparse MatrixMarket file: pattern, integer or real; general or symmetric.

    The other triangle of a symmetric file is filled in. From an archive of the SuiteSparse Matrix
    Collection (`NAME.tar.gz`), the matrix `NAME/NAME.mtx` is read. Raises a GraphError for an
    implausible number of rows or entries (see `plausible_nodes`) and for a dense ("array") file.
    """
    # SciPy and tarfile raise many kinds of errors for malformed text.
    with explained(path, "a valid MatrixMarket file"):
        with _opened(path, name, progress=False) as lines:
            facts = scipy.io.mminfo(_Stream(block for _, block in lines))
        rows, columns, entries, form, field, symmetry = facts
        if field == "complex":
            raise GraphError(str(path), "its values are complex", "real ones")
        if form == "array":
            expected = "load_graph(scipy.sparse.csr_array(scipy.io.mmread(path)))"
            raise GraphError(str(path), "it is a dense matrix", expected)
        # SciPy (1.17) does not check that symmetric matrices are square.
        if symmetry != "general" and rows != columns:
            problem = f"it is {symmetry}, and states {rows} rows and {columns} columns"
            raise GraphError(str(path), problem, "as many, or `general`")
        # SciPy allocates memory for the stated number of entries before it reads them.
        if entries > _MAX_ENTRIES_PER_BYTE * path.stat().st_size:
            raise GraphError(str(path), f"it states {entries} entries", "as many as there are")
        check_stated_size(rows, entries)
        with _opened(path, name, progress) as lines:
            stream = _Stream(_checked(path, lines, field))
            matrix = sparse.coo_array(scipy.io.mmread(stream, spmatrix=False))
        # SciPy adds up entries that are in both triangles of a symmetric file.
        if symmetry == "skew-symmetric" and matrix.diagonal().any():
            raise GraphError(str(path), "its diagonal is not zero", f"zeros, as it is {symmetry}")
        if symmetry != "general" and matrix.tocsr().nnz != matrix.nnz:
            problem = f"it is {symmetry}, and lists an entry twice or in both triangles"
            expected = "each entry once, in the lower triangle, or `general`"
            raise GraphError(str(path), problem, expected)
    return from_scipy(matrix, name, source)


class _Stream:
    """A file object for SciPy that reads from blocks of whole lines.

    SciPy (1.17) crashes on a NUL byte, on a last line without a line end, and on a file whose
    method `seek` fails.
    """

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._unread = blocks, memoryview(b"")

    def read(self, size: int) -> bytes:
        if not self._unread:
            self._unread = memoryview(next(self._blocks, b""))
        data, self._unread = self._unread[:size], self._unread[size:]
        return bytes(data)


def _checked(path: Path, lines: Lines, field: str) -> Iterator[bytes]:
    """Check the lines of each block and yield it: SciPy ignores text after a number."""
    line, expected = _FORMS.get(field, _FORMS["real"])
    wrong = re.compile(rf"^(?![ \t]*+(?:{line}[ \t]*+)?$)".encode(), re.MULTILINE)
    in_head = True
    for first_line, block in lines:
        start = 0
        if in_head:
            head = _HEAD.match(block)
            start, in_head = head.end() if head else len(block), head is None
        if line_start := wrong.search(block, start):
            number = first_line + block.count(b"\n", 0, line_start.start())
            text = block[line_start.start() :].partition(b"\n")[0]
            expected += "; comments stand before the line of sizes" * text.lstrip().startswith(b"%")
            raise malformed(path, number, quoted(text.strip()), expected)
        yield block


@contextlib.contextmanager
def _opened(path: Path, name: str, progress: bool | None) -> Iterator[Lines]:
    with unpacked(path, progress) as stream:
        if not path.name.lower().endswith(".tar.gz"):
            yield _normalized(stream, path)
            return
        # Sequential mode, which unpacks nothing to disk.
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                file = PurePosixPath(member.name)
                is_named = file.stem.lower() in (name.lower(), file.parent.name.lower())
                if member.isfile() and file.suffix.lower() == ".mtx" and is_named:
                    yield _normalized(archive.extractfile(member), path)
                    return
        raise GraphError(str(path), f"there is no {name}.mtx in it", "an archive from SuiteSparse")


def _normalized(stream: Any, path: Path) -> Lines:
    """Yield blocks of lines with a normalized banner, which SciPy compares case-sensitively."""
    for line, block in blocks_of(stream, path):
        yield line, _BANNER.sub(rb"%%MatrixMarket", block, count=1) if line == 1 else block
