"""MatrixMarket files, with SciPy."""

from __future__ import annotations

import contextlib
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import scipy.io
from scipy import sparse

from accelviz.datasets.convert import check_stated_size, from_scipy
from accelviz.datasets.readers.edge_table import NUMBER
from accelviz.datasets.readers.registry import reader
from accelviz.datasets.readers.text import blocks_of, explained, malformed, quoted, unpacked
from accelviz.errors import GraphError
from accelviz.graph import Graph

Lines = Iterator[tuple[int, bytes]]

#: No entry takes less than two bytes, and gzip packs at most about a thousand into one.
_MOST_ENTRIES_PER_BYTE = 600
_PLACE = r"[0-9]++[ \t]++[0-9]++"
#: What a line of data is, by the kind of file.
_FORMS = {
    "array": (NUMBER, "a finite number"),
    "integer": (rf"{_PLACE}[ \t]++[-+]?+[0-9]++", "row column integer"),
    "pattern": (_PLACE, "row column"),
    "real": (rf"{_PLACE}[ \t]++{NUMBER}", "row column value"),
}
#: Comments and blank lines before the line of sizes.
_HEAD = re.compile(rb"(?:[ \t]*+(?:%[^\n]*+)?\n)*+(?=[^\n])")
_BANNER = re.compile(rb"\A%%?matrixmarket", re.IGNORECASE)
_LINE = re.compile(rb"(?m)^[ \t]*+[^ \t\n]")


@reader(".mtx", ".mtx.gz", ".mtx.bz2", ".tar.gz")
def read_matrix_market(
    path: Path, *, name: str, source: str, progress: bool | None = None
) -> Graph:
    """Read a MatrixMarket file: pattern, integer or real; general or symmetric.

    A symmetric file's other half is filled in. A dense ("array") file becomes sparse. Of an archive
    of the SuiteSparse Matrix Collection (`NAME.tar.gz`), the matrix `NAME/NAME.mtx` is read. A file
    that states more rows or entries than it can mean is refused (see `plausible_nodes`).
    """
    # SciPy and tarfile raise many kinds of errors for malformed text.
    with explained(path, "a valid MatrixMarket file"):
        with _opened(path, name, progress=False) as lines:
            facts = scipy.io.mminfo(_Stream(_bannered(block for _, block in lines)))
        rows, columns, entries, form, field, symmetry = facts
        if field == "complex":
            raise GraphError(str(path), "its values are complex", "real ones")
        # SciPy (1.17) overlooks that a matrix is not square, and a symmetric array's length.
        if symmetry != "general" and rows != columns:
            problem = f"it is {symmetry}, and states {rows} rows and {columns} columns"
            raise GraphError(str(path), problem, "as many, or `general`")
        # It makes room for all that is stated before it looks for it.
        if entries > _MOST_ENTRIES_PER_BYTE * path.stat().st_size:
            raise GraphError(str(path), f"it states {entries} entries", "as many as there are")
        kind = form if form == "array" else field
        if form == "array":
            listed = rows * columns
            if symmetry != "general":  # the lower triangle, without the diagonal if it is skew
                listed = rows * (rows - 1 if symmetry == "skew-symmetric" else rows + 1) // 2
            with _opened(path, name, progress=False) as lines:
                count = sum(len(_LINE.findall(body)) for _, body in _checked(path, lines, kind))
            if count != listed:
                expected = f"{listed}, for {rows} x {columns} {symmetry}"
                raise GraphError(str(path), f"{count} values", expected)
        else:
            check_stated_size(rows, entries)
        with _opened(path, name, progress) as lines:
            checked = _bannered(block for block, _ in _checked(path, lines, kind))
            matrix = sparse.coo_array(scipy.io.mmread(_Stream(checked), spmatrix=False))
        if form != "array" and symmetry != "general":
            _check_half(path, matrix, symmetry)
    return from_scipy(matrix, name, source)


def _check_half(path: Path, matrix: sparse.coo_array, symmetry: str) -> None:
    """Refuse a symmetric file with entries in both triangles, which SciPy would add up."""
    if symmetry == "skew-symmetric" and matrix.diagonal().any():
        raise GraphError(str(path), "its diagonal is not zero", f"zeros, as it is {symmetry}")
    if matrix.tocsr().nnz != matrix.nnz:
        problem = f"it is {symmetry}, and lists an entry twice or in both triangles"
        raise GraphError(str(path), problem, "each entry once, in the lower triangle, or `general`")


def _bannered(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Write the banner as SciPy wants it; the format leaves its case open."""
    for number, block in enumerate(blocks):
        yield _BANNER.sub(rb"%%MatrixMarket", block, count=1) if not number else block


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


def _checked(path: Path, lines: Lines, kind: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield each block, and its entries: with empty lines for all that stands before them.

    Checks each line first, as SciPy takes no notice of what follows a number.
    """
    line, expected = _FORMS[kind if kind in _FORMS else "real"]
    form = re.compile(rf"(?:[ \t]*+(?:{line}[ \t]*+)?+\n)*+".encode())
    head = True
    for first_line, block in lines:
        body = block
        if head and (before := _HEAD.match(block)):
            start, head = block.index(b"\n", before.end()), False
            body = b"\n" * block.count(b"\n", 0, start) + block[start:]
        elif head:
            body = b""
        if not form.fullmatch(body):
            for number, text in enumerate(body.split(b"\n"), first_line):
                if not form.fullmatch(text + b"\n"):
                    comment = text.lstrip().startswith(b"%")
                    expected += "; comments stand before the line of sizes" if comment else ""
                    raise malformed(path, number, quoted(text.strip()), expected)
        yield block, body


@contextlib.contextmanager
def _opened(path: Path, name: str, progress: bool | None) -> Iterator[Lines]:
    with unpacked(path, progress) as stream:
        if not path.name.lower().endswith(".tar.gz"):
            yield blocks_of(stream, path)
            return
        # Read from front to end, so that nothing is unpacked to disk.
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                inside = PurePosixPath(member.name)
                named = inside.stem.lower() in (name.lower(), inside.parent.name.lower())
                if member.isfile() and inside.suffix.lower() == ".mtx" and named:
                    yield blocks_of(archive.extractfile(member), path)
                    return
        raise GraphError(str(path), f"there is no {name}.mtx in it", "an archive from SuiteSparse")
