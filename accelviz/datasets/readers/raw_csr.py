"""The raw CSR arrays that Accel-GCN's scripts write: two files of 32-bit integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from accelviz.arrays import Ints
from accelviz.datasets.convert import from_csr_arrays
from accelviz.datasets.readers.registry import reader
from accelviz.errors import GraphError
from accelviz.graph import Graph

#: Ending of the row pointers to that of the column indices.
_PARTNERS = {".graph.ptrdump": ".graph.edgedump", ".new_indptr": ".new_indices"}


@reader(*_PARTNERS, *_PARTNERS.values())
def read_raw_csr(path: Path, *, name: str, source: str, n_cols: int | None = None) -> Graph:
    """Read a pair of files of little-endian int32: row pointers and column indices.

    Either of the two may be given (`X.graph.ptrdump` and `X.graph.edgedump`, or `X.new_indptr` and
    `X.new_indices`); the other must be in the same folder. All values are one.

    Parameters
    ----------
    path : Path
    name, source : str
    n_cols : int, optional
        Number of columns; by default as many as rows.

    Raises
    ------
    GraphError
        If the other file is missing, a file's length is no multiple of 4, or they are no CSR.
    """
    pointers, indices = next(
        (path.with_name(path.name[: -len(ending)] + other) for other in pair)
        for pair in _PARTNERS.items()
        for ending in pair
        if path.name.lower().endswith(ending)
    )
    row_pointers, column_indices = _integers(pointers), _integers(indices)
    if not row_pointers.size:
        raise GraphError(str(pointers), "the file is empty", "at least one row pointer")
    n_rows = row_pointers.size - 1
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    return from_csr_arrays(row_pointers, column_indices, None, shape, name, source)


def _integers(path: Path) -> Ints:
    if not path.is_file():
        raise GraphError(str(path), "there is no such file", "both files of the pair in one folder")
    if path.stat().st_size % 4:
        raise GraphError(
            str(path), f"its length of {path.stat().st_size} bytes", "a multiple of 4: int32 each"
        )
    return np.fromfile(path, "<i4")
