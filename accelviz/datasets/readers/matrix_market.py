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
from accelviz.datasets.readers.edge_lines import NUMBER
from accelviz.datasets.readers.registry import reader
from accelviz.datasets.readers.text import blocks_of, explained, malformed, shown, unpacked
from accelviz.errors import GraphError
from accelviz.graph import Graph

Lines = Iterator[tuple[int, bytes]]

#: No entry takes less than two bytes, and gzip packs at most about a thousand into one.
_MOST_ENTRIES_PER_BYTE = 600
_COMMENTS = re.compile(rb"(?m)^[ \t]*+%[^\n]*+")
_LINES = rb"(?:[ \t]*+(?:%b[ \t]*+)?+\n)*+"
_ENTRIES = re.compile(_LINES % (rb"[0-9]++[ \t]++[0-9]++[ \t]++" + NUMBER))
#: What the lines of data may be, by the kind of file; `_ENTRIES` in all others.
_FORMS = {
    "array": (re.compile(_LINES % NUMBER), "a finite number"),
    "integer": (
        re.compile(_LINES % rb"[0-9]++[ \t]++[0-9]++[ \t]++[-+]?+[0-9]++"),
        "row column integer",
    ),
    "pattern": (re.compile(_LINES % rb"[0-9]++[ \t]++[0-9]++"), "row column"),
}
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
        # SciPy makes room for all that is stated before it looks for it.
        if entries > _MOST_ENTRIES_PER_BYTE * path.stat().st_size:
            raise GraphError(str(path), f"it states {entries} entries", "as many as there are")
        kind = form if form == "array" else field
        if form == "array":
            listed = rows * columns
            if symmetry != "general":  # the lower triangle, without the diagonal if it is skew
                listed = rows * (rows - 1 if symmetry == "skew-symmetric" else rows + 1) // 2
            with _opened(path, name, progress=False) as lines:
                found = sum(len(_LINE.findall(body)) for _, body in _checked(path, lines, kind))
            # SciPy (1.17) overlooks that a symmetric array is too short, too long or not square.
            if found != listed or (symmetry != "general" and rows != columns):
                expected = f"{listed}, for {rows} x {columns} {symmetry}"
                raise GraphError(str(path), f"{found} values", expected)
        else:
            check_stated_size(rows, entries)
        with _opened(path, name, progress) as lines:
            checked = _bannered(block for block, _ in _checked(path, lines, kind))
            matrix = scipy.io.mmread(_Stream(checked), spmatrix=False)
        found = sparse.coo_array(matrix)
        if form != "array" and symmetry != "general":
            _check_half(path, found, symmetry)
    return from_scipy(found, name, source)


def _check_half(path: Path, found: sparse.coo_array, symmetry: str) -> None:
    """Refuse a symmetric file with entries in both triangles, which SciPy would add up."""
    if symmetry == "skew-symmetric" and found.diagonal().any():
        raise GraphError(str(path), "its diagonal is not zero", f"zeros, as it is {symmetry}")
    stored = found.nnz
    found = found.copy()
    found.sum_duplicates()
    if found.nnz != stored:
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
    """Yield each block, and its data: with empty lines for the comments and the line of sizes.

    Checks each line first, as SciPy takes no notice of what follows a number.
    """
    form, expected = _FORMS.get(kind, (_ENTRIES, "row column value"))
    sized = False
    for first_line, block in lines:
        body = _COMMENTS.sub(b"", block) if b"%" in block else block
        if not sized and (start := len(body) - len(body.lstrip())) < len(body):
            body = body[:start] + body[body.index(b"\n", start) :]
            sized = True
        if not form.fullmatch(body):
            for number, line in enumerate(body.split(b"\n"), first_line):
                if not form.fullmatch(line + b"\n"):
                    raise malformed(path, number, shown(line.strip()), expected)
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
                own = inside.stem.lower() in (name.lower(), inside.parent.name.lower())
                if member.isfile() and inside.suffix.lower() == ".mtx" and own:
                    yield blocks_of(archive.extractfile(member), path)
                    return
        raise GraphError(str(path), f"there is no {name}.mtx in it", "an archive from SuiteSparse")
