"""MatrixMarket files, with SciPy."""

from __future__ import annotations

from pathlib import Path

import scipy.io
from scipy import sparse

from accelviz.datasets.convert import from_scipy
from accelviz.datasets.readers.registry import reader
from accelviz.errors import GraphError
from accelviz.graph import Graph


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
