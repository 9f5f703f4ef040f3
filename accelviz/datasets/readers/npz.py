"""NumPy files: what SciPy saves, edge_index arrays, and GNNAdvisor's archives."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz.datasets.convert import (
    check_stated_size,
    from_csr_arrays,
    from_edge_index,
    from_scipy,
)
from accelviz.datasets.readers.registry import reader
from accelviz.datasets.readers.text import said
from accelviz.errors import GraphError
from accelviz.graph import Graph

#: An archive that unpacks to more than this and to more than this many times its size is refused.
MOST_BYTES = 2**30
MOST_RATIO = 100

Arrays = dict[str, npt.NDArray[Any]]


@reader(".npz")
def read_npz(path: Path, *, name: str, source: str) -> Graph:
    """Read an archive of arrays; the names of its members say what it is.

    - `indptr`, `indices`, `shape` and perhaps `data`: what `scipy.sparse.save_npz` writes, in any
      of its formats.
    - `edge_index` of shape 2 x E and perhaps `num_nodes`: as PyTorch Geometric has it; column `e`
      is an edge from `edge_index[0, e]` to `edge_index[1, e]`, which is its row.
    - `src_li`, `dst_li` and `num_nodes`: GNNAdvisor's. Its rows are `src_li` and its columns
      `dst_li`, as GNNAdvisor builds its CSR.

    Pickled content is never loaded.

    Raises
    ------
    GraphError
        If the file is no `.npz`, is truncated, holds pickles, claims to hold more than it can, or
        holds none of the above.
    """
    try:
        with path.open("rb") as file:
            if file.read(6) == np.lib.format.MAGIC_PREFIX:
                raise GraphError(str(path), "a single array, not an archive", "the ending .npy")
        with zipfile.ZipFile(path) as archive:
            _check_archive(archive, path.stat().st_size)
        with np.load(path, allow_pickle=False) as members:
            if "format" in members and members["format"].item() not in (b"csr", "csr"):
                rows, _ = _two_integers(members["shape"])
                check_stated_size(rows, members["data"].size)
                return from_scipy(sparse.load_npz(path), name, source)
            wanted = {"indptr", "indices", "data", "shape", "edge_index", "num_nodes"}
            wanted |= {"src_li", "dst_li"}
            fields = {key: members[key] for key in wanted & set(members)}
    except GraphError:
        raise
    except Exception as error:  # a damaged archive can raise anything on the way through zipfile
        raise GraphError(str(path), said(error), "a complete .npz of plain arrays") from error
    if "edge_index" in fields:
        return _from_edge_index(fields["edge_index"], fields.get("num_nodes"), name, source)
    if {"src_li", "dst_li", "num_nodes"} <= fields.keys():
        edges = _stacked(fields["dst_li"], fields["src_li"])
        return _from_edge_index(edges, fields["num_nodes"], name, source)
    missing = {"indptr", "indices", "shape"} - fields.keys()
    if missing:
        raise GraphError(
            str(path),
            f"the archive lacks {', '.join(sorted(missing))}",
            "what scipy.sparse.save_npz writes (indptr, indices, data, shape, format), or "
            "edge_index, or GNNAdvisor's src_li, dst_li and num_nodes",
        )
    return from_csr_arrays(
        fields["indptr"],
        fields["indices"],
        fields.get("data"),
        _two_integers(fields["shape"]),
        name,
        source,
    )


@reader(".npy")
def read_npy(path: Path, *, name: str, source: str) -> Graph:
    """Read an `edge_index` of shape 2 x E that `numpy.save` wrote.

    Raises
    ------
    GraphError
        If the file is truncated, holds pickles or any other array.
    """
    try:
        with path.open("rb") as file:
            _check_array(file, path.stat().st_size)
        edges = np.load(path, allow_pickle=False)
    except GraphError:
        raise
    except Exception as error:
        raise GraphError(str(path), said(error), "what numpy.save writes") from error
    return _from_edge_index(edges, None, name, source)


def _two_integers(shape: npt.NDArray[Any]) -> tuple[int, int]:
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise GraphError("shape", f"got shape {shape.shape} of {shape.dtype}", "two integers")
    rows, columns = shape.tolist()
    return rows, columns


def _from_edge_index(
    edges: npt.NDArray[Any], num_nodes: npt.NDArray[Any] | None, name: str, source: str
) -> Graph:
    n_nodes = None
    if num_nodes is not None:
        if num_nodes.size != 1 or num_nodes.dtype.kind not in "iu":
            raise GraphError(
                "num_nodes", f"got shape {num_nodes.shape} of {num_nodes.dtype}", "one whole number"
            )
        n_nodes = int(num_nodes.item())
    if edges.ndim == 2 and edges.dtype.kind in "iu":
        check_stated_size(n_nodes or int(edges.max(initial=0)) + 1, edges.shape[1])
    return from_edge_index(edges, name, source, n_nodes)


def _stacked(sender: npt.NDArray[Any], receiver: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if sender.ndim != 1 or sender.shape != receiver.shape:
        raise GraphError(
            "src_li, dst_li", f"shapes {receiver.shape} and {sender.shape}", "equal lengths"
        )
    return np.stack([sender, receiver])


def _check_archive(archive: zipfile.ZipFile, packed: int) -> None:
    """Refuse an archive whose members claim more than they can hold, before NumPy believes them."""
    size = sum(member.file_size for member in archive.infolist())
    if size > max(MOST_BYTES, MOST_RATIO * packed):
        raise GraphError(
            str(archive.filename),
            f"it unpacks from {packed} to {size} bytes",
            f"at most {MOST_RATIO} times its size",
        )
    for member in archive.infolist():
        if member.filename.endswith(".npy"):
            with archive.open(member) as file:
                _check_array(file, member.file_size)


def _check_array(file: IO[bytes], size: int) -> None:
    """Refuse an array that is pickled, or claims more elements than its file can hold."""
    version = np.lib.format.read_magic(file)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read_header is None:
        raise ValueError(f"version {version} of the .npy format is not for plain arrays")
    shape, _, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("it holds pickled objects, which are never loaded")
    claimed = math.prod(shape) * dtype.itemsize
    if claimed > size - file.tell():
        raise ValueError(f"an array claims {claimed} bytes of {size - file.tell()}")
