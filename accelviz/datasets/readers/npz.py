"""NumPy archives: what SciPy saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from accelviz.datasets.convert import from_csr_arrays, from_scipy
from accelviz.datasets.readers.registry import reader
from accelviz.errors import GraphError
from accelviz.graph import Graph


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
