"""Readers of graph files, by the file's ending. To add one, write a function and register it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from scipy import sparse

from accelviz.datasets.convert import from_csr_arrays, from_scipy
from accelviz.errors import GraphError
from accelviz.graph import Graph

Reader = Callable[..., Graph]

#: Ending of a file name to the function that reads it; the longest ending that matches counts.
READERS: dict[str, Reader] = {}


def reader(*endings: str) -> Callable[[Reader], Reader]:
    """Register a function `(path, *, name, source) -> Graph` for files with these endings."""

    def register(function: Reader) -> Reader:
        READERS.update(dict.fromkeys(endings, function))
        return function

    return register


def read_file(path: Path) -> Graph:
    """Read a graph file with the reader that its ending asks for.

    Raises
    ------
    GraphError
        If there is no such file, no reader for it, or it is malformed.
    """
    lowered = path.name.lower()
    endings = [ending for ending in READERS if lowered.endswith(ending)]
    if not endings:
        raise GraphError(str(path), "no reader for this ending", ", ".join(sorted(READERS)))
    if not path.is_file():
        raise GraphError(str(path), "there is no such file", "a path to a graph file")
    ending = max(endings, key=len)
    name = path.name[: -len(ending)] or path.name
    return READERS[ending](path, name=name, source=f"file {path.name}")


@reader(".npz")
def read_npz(path: Path, *, name: str, source: str) -> Graph:
    """Read a matrix that `scipy.sparse.save_npz` wrote, or CSR arrays named as SciPy names them.

    Pickled content is never loaded.

    Raises
    ------
    GraphError
        If the file is no `.npz`, is truncated, holds pickles, or holds no sparse matrix.
    """
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise GraphError(str(path), "a single array, not an archive", "a SciPy .npz file")
            if "format" in archive and archive["format"].item() not in (b"csr", "csr"):
                file.seek(0)
                return from_scipy(sparse.load_npz(file), name, source)
            names = {"indptr", "indices", "data", "shape"} & set(archive)
            fields: dict[str, Any] = {key: archive[key] for key in names}
    except GraphError:
        raise
    except Exception as error:  # a damaged archive can raise anything on the way through zipfile
        pickled = "allow_pickle" in str(error)
        problem = "it holds pickled objects, which are never loaded" if pickled else str(error)
        raise GraphError(
            str(path), problem or "it is truncated", "a complete .npz of plain arrays"
        ) from error
    missing = {"indptr", "indices", "shape"} - fields.keys()
    if missing:
        raise GraphError(
            str(path),
            f"the archive lacks {', '.join(sorted(missing))}",
            "what scipy.sparse.save_npz writes: indptr, indices, data, shape, format",
        )
    return from_csr_arrays(
        fields["indptr"],
        fields["indices"],
        fields.get("data"),
        fields["shape"],
        name,
        source,
    )


@reader(".mtx", ".mtx.gz", ".mtx.bz2")
def read_matrix_market(path: Path, *, name: str, source: str) -> Graph:
    """Read a MatrixMarket file: pattern, integer or real; general or symmetric.

    A symmetric file's other half is filled in. A dense ("array") file becomes sparse.

    Raises
    ------
    GraphError
        If the file is malformed, naming the line where the reader does.
    """
    try:
        matrix = scipy.io.mmread(path, spmatrix=False)
    except Exception as error:  # malformed text, a truncated gzip, sizes beyond memory
        raise GraphError(str(path), str(error), "a valid MatrixMarket file") from error
    return from_scipy(sparse.coo_array(matrix), name, source)
