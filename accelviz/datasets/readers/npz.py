"""Archives of NumPy arrays: SciPy's matrices, an `edge_index`, GNNAdvisor's data sets."""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz.datasets import convert
from accelviz.datasets.readers.columns import role
from accelviz.datasets.readers.registry import reader
from accelviz.datasets.readers.text import check_unpacked, explained
from accelviz.errors import ArgumentError, GraphError
from accelviz.graph import Graph

#: What beside an `edge_index` may be as long as there are edges, by chance, if it is of nodes.
_OF_NODES = re.compile("x|y|z|pos|batch|.*mask")


@reader(".npz")
def read_npz(path: Path, *, name: str, source: str, weights: bool | str | None = None) -> Graph:
    """Read an archive of arrays; the names of its members say what it is.

    - `indptr`, `indices`, `shape` and perhaps `data`: what `scipy.sparse.save_npz` writes, in any
      of its formats.
    - `edge_index` of shape 2 x E and perhaps `num_nodes`: as PyTorch Geometric has it; column `e`
      is an edge from `edge_index[0, e]` to `edge_index[1, e]`, which is its row. Its weight is in
      `edge_weight`, or in `edge_attr` if that has one column. `weights` names another member, or
      says that there are none (False). Without `num_nodes`, the rows of `x` count the nodes.
    - `src_li`, `dst_li` and `num_nodes`: GNNAdvisor's. Its rows are `src_li` and its columns
      `dst_li`, as GNNAdvisor builds its CSR.

    Pickled content is never loaded, nor what claims to hold more than it can.
    """
    with explained(path, "a complete .npz of plain arrays"):
        with path.open("rb") as file:
            if file.read(6) == np.lib.format.MAGIC_PREFIX:
                raise GraphError(str(path), "a single array, not an archive", "the ending .npy")
        with zipfile.ZipFile(path) as archive:
            # A member may claim more than it can hold: this is before NumPy believes it.
            members = archive.infolist()
            check_unpacked(path, sum(member.file_size for member in members))
            for member in members:
                if member.filename.endswith(".npy"):
                    with archive.open(member) as file:
                        _check_array(file, member.file_size)
        with np.load(path, allow_pickle=False) as archive:
            fields = {**archive}
        edges = {"edge_index", "src_li"} & fields.keys()
        if weights is not None and not edges:
            raise ArgumentError("weights", "it chooses those of an edge_index", "no options")
        if not edges and fields.get("format", np.array("csr")).item() not in (b"csr", "csr"):
            rows, _ = _integers("shape", fields["shape"], 2)
            convert.check_stated_size(rows, fields["data"].size)
            return convert.from_scipy(sparse.load_npz(path), name, source)
    if {"src_li", "dst_li", "num_nodes"} <= fields.keys() and "edge_index" not in fields:
        rows, columns = fields["src_li"], fields["dst_li"]
        if rows.ndim != 1 or rows.shape != columns.shape:
            shapes = f"shapes {rows.shape} and {columns.shape}"
            raise GraphError("src_li, dst_li", shapes, "equal lengths")
        fields["edge_index"] = np.stack([columns, rows])
    if "edge_index" in fields:
        return _from_edge_index(fields, weights, name, source)
    missing = {"indptr", "indices", "shape"} - fields.keys()
    if missing:
        expected = "what scipy.sparse.save_npz writes (indptr, indices, data, shape, format), or "
        expected += "edge_index, or GNNAdvisor's src_li, dst_li and num_nodes"
        raise GraphError(str(path), f"the archive lacks {', '.join(sorted(missing))}", expected)
    shape = _integers("shape", fields["shape"], 2)
    data = fields.get("data")
    return convert.from_csr_arrays(fields["indptr"], fields["indices"], data, shape, name, source)


def _integers(name: str, array: npt.NDArray[Any], count: int) -> list[int]:
    if array.size != count or array.dtype.kind not in "iu":
        problem = f"got shape {array.shape} of {array.dtype}"
        raise GraphError(name, problem, "two integers" if count == 2 else "one integer")
    return [int(number) for number in array.ravel()]


def _from_edge_index(
    fields: Mapping[str, npt.NDArray[Any]], weights: bool | str | None, name: str, source: str
) -> Graph:
    nodes, edges = fields.get("num_nodes"), convert.whole_if_empty(fields["edge_index"])
    n_nodes = None if nodes is None else _integers("num_nodes", nodes, 1)[0]
    if nodes is None and fields.get("x", np.empty(0)).ndim > 1:  # features, a row for each node
        n_nodes = len(fields["x"])
    if edges.ndim == 2 and edges.dtype.kind in "iu":
        convert.check_stated_size(n_nodes or int(edges.max(initial=0)) + 1, edges.shape[1])
    numbers, member = None, _weights_of(fields, math.prod(edges.shape[-1:]), n_nodes, weights)
    if member:
        numbers = fields[member]
        numbers = numbers[:, 0] if numbers.ndim == 2 and numbers.shape[1] == 1 else numbers
        source = f"{source}, weights in {member}"
    return convert.from_edge_index(edges, name, source, n_nodes=n_nodes, weights=numbers)


def _weights_of(
    fields: Mapping[str, npt.NDArray[Any]],
    count: int,
    n_nodes: int | None,
    weights: bool | str | None,
) -> str:
    """Return the name of the member that holds the weights of `count` edges, "" if none does."""
    if isinstance(weights, str):
        if weights not in fields:
            raise ArgumentError("weights", f"there is no {weights!r}", ", ".join(sorted(fields)))
        return weights
    if weights is False:
        return ""
    named = [key for key in fields if role(key) == "weight"]
    # Whatever else has an entry for each edge may be a weight, a time or a type.
    others = [
        key
        for key, array in fields.items()
        if key not in ("edge_index", "src_li", "dst_li", *named)
        and (array.shape[:1] == (count,) and count)
        and not (_OF_NODES.fullmatch(key) and n_nodes in (None, count))
    ]
    if not named and others == ["edge_attr"] and fields["edge_attr"].size == count:
        named = others
    if len(named) > 1 or (not named and (others or weights)):
        choice = " or ".join(f"weights={key!r}" for key in named or others) or "an edge_weight"
        problem = f"{len(named) or 'none'} of {', '.join(sorted(fields))} is called edge_weight"
        raise GraphError("weights", problem, f"{choice}, or weights=False for none")
    return named[0] if named else ""


def _check_array(file: IO[bytes], size: int) -> None:
    """Refuse an array that is pickled, or claims more elements than its file can hold."""
    headers = np.lib.format
    first = headers.read_magic(file) == (1, 0)
    read_header = headers.read_array_header_1_0 if first else headers.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("it holds pickled objects, which are never loaded")
    claimed = math.prod(shape) * dtype.itemsize
    if claimed > size - file.tell():
        raise ValueError(f"an array claims {claimed} bytes of {size - file.tell()}")
