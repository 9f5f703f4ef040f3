"""Reader of `.npz` archives: SciPy's matrices, an `edge_index`, GNNAdvisor's data sets."""

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
from accelviz.datasets.readers.columns import DIRECTION, role
from accelviz.datasets.readers.registry import reader
from accelviz.datasets.readers.text import check_unpacked, explained
from accelviz.errors import ArgumentError, GraphError
from accelviz.graph import Graph

#: Names of node arrays, whose length may equal the number of edges by chance.
_NODE_ARRAYS = re.compile("x|y|z|pos|batch|.*mask")


@reader(".npz")
def read_npz(
    path: Path,
    *,
    name: str,
    source: str,
    weights: bool | str | None = None,
    symmetric: bool | None = None,
) -> Graph:
    """Read an archive of arrays, whose names determine the format.

    - `indptr`, `indices`, `shape` and optionally `data`: any format of `scipy.sparse.save_npz`.
    - `edge_index` of shape 2 x E and optionally `num_nodes`, as in PyTorch Geometric. Column `e` is
      an edge from `edge_index[0, e]` to `edge_index[1, e]`, a nonzero in the row of the latter. Its
      weight is in `edge_weight`, or in `edge_attr` if that has one column. `weights` is the name of
      another member, or False for no weights. Without `num_nodes`, the number of nodes is the
      number of rows of `x`. `symmetric` states whether each edge stands for both directions; it is
      required if a member's name is about directions, such as `directed`.
    - `src_li`, `dst_li` and `num_nodes`: GNNAdvisor's format. Rows are `src_li`, columns `dst_li`,
      as in GNNAdvisor's CSR.

    Pickled arrays, and arrays with a stated size beyond the size of the file, raise a GraphError.
    """
    with explained(path, "a complete .npz of plain arrays"):
        with path.open("rb") as file:
            if file.read(6) == np.lib.format.MAGIC_PREFIX:
                raise GraphError(str(path), "a single array, not an archive", "the ending .npy")
        with zipfile.ZipFile(path) as archive:
            # Check stated sizes before NumPy allocates memory for them.
            members = archive.infolist()
            check_unpacked(path, sum(member.file_size for member in members))
            for member in members:
                if member.filename.endswith(".npy"):
                    with archive.open(member) as file:
                        _check_array(file, member.file_size)
        with np.load(path, allow_pickle=False) as archive:
            fields = {**archive}
        edges = {"edge_index", "src_li"} & fields.keys()
        for option, value in {"weights": weights, "symmetric": symmetric}.items():
            if value is not None and not edges:
                raise ArgumentError(option, "it is about an edge_index", "no options")
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
        about_direction = [*filter(DIRECTION.search, fields)]
        if about_direction and symmetric is None:
            member = about_direction[0]
            text = f" = {fields[member].item()!r}" if fields[member].size == 1 else ""
            expected = "symmetric=True if each edge stands for both directions, or symmetric=False"
            raise GraphError(
                "symmetric", f"the member {member}{text} is about directions", expected
            )
        return _from_edge_index(fields, weights, bool(symmetric), name, source)
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
    fields: Mapping[str, npt.NDArray[Any]],
    weights: bool | str | None,
    symmetric: bool,
    name: str,
    source: str,
) -> Graph:
    nodes, edges = fields.get("num_nodes"), convert.whole_if_empty(fields["edge_index"])
    n_nodes = None if nodes is None else _integers("num_nodes", nodes, 1)[0]
    if nodes is None and fields.get("x", np.empty(0)).ndim > 1:  # features, one row per node
        n_nodes = len(fields["x"])
    if edges.ndim == 2 and edges.dtype.kind in "iu":
        convert.check_stated_size(n_nodes or int(edges.max(initial=0)) + 1, edges.shape[1])
    values, member = None, _weights_member(fields, math.prod(edges.shape[-1:]), n_nodes, weights)
    if member:
        values = fields[member]
        values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        source = f"{source}, weights in {member}"
    source += ", in both directions" * symmetric
    return convert.from_edge_index(
        edges, name, source, n_nodes=n_nodes, weights=values, symmetric=symmetric
    )


def _weights_member(
    fields: Mapping[str, npt.NDArray[Any]],
    count: int,
    n_nodes: int | None,
    weights: bool | str | None,
) -> str:
    """Return the name of the member with the weights of `count` edges, or ""."""
    if isinstance(weights, str):
        if weights not in fields:
            raise ArgumentError("weights", f"there is no {weights!r}", ", ".join(sorted(fields)))
        return weights
    if weights is False:
        return ""
    weight_names = [key for key in fields if role(key) == "weight"]
    # Other members with one entry per edge may be weights, times or types.
    others = [
        key
        for key, array in fields.items()
        if key not in ("edge_index", "src_li", "dst_li", *weight_names)
        and (array.shape[:1] == (count,) and count)
        and not (_NODE_ARRAYS.fullmatch(key) and n_nodes in (None, count))
    ]
    if not weight_names and others == ["edge_attr"] and fields["edge_attr"].size == count:
        weight_names = others
    if len(weight_names) > 1 or (not weight_names and (others or weights)):
        choices = [f"weights={key!r}" for key in weight_names or others]
        expected = f"{' or '.join(choices) or 'an edge_weight'}, or weights=False for none"
        number = len(weight_names) or "none"
        problem = f"{number} of {', '.join(sorted(fields))} is called edge_weight"
        raise GraphError("weights", problem, expected)
    return weight_names[0] if weight_names else ""


def _check_array(file: IO[bytes], size: int) -> None:
    """Raise a ValueError for a pickled array, or a stated size beyond the size of its file."""
    headers = np.lib.format
    first = headers.read_magic(file) == (1, 0)
    read_header = headers.read_array_header_1_0 if first else headers.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("it holds pickled objects, which are never loaded")
    claimed = math.prod(shape) * dtype.itemsize
    if claimed > size - file.tell():
        raise ValueError(f"an array claims {claimed} bytes of {size - file.tell()}")
