"""Arrays in files that other libraries own: PyTorch, HDF5, parquet."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from accelviz.datasets.convert import check_stated_size, from_scipy, unambiguous
from accelviz.datasets.readers import columns as columns_of
from accelviz.datasets.readers.columns import Columns
from accelviz.datasets.readers.edge_list import numbered
from accelviz.datasets.readers.npz import from_arrays
from accelviz.datasets.readers.registry import library, reader
from accelviz.datasets.readers.text import check_unpacked, explained
from accelviz.errors import ArgumentError, GraphError
from accelviz.graph import Graph


@reader(".pt")
def read_torch(path: Path, *, name: str, source: str, weights: bool | str | None = None) -> Graph:
    """Read what `torch.save` wrote: an `edge_index`, a sparse tensor, or a dict of tensors.

    A dict has `edge_index` and perhaps `num_nodes` and `edge_weight`, or `edge_attr` of one column;
    `weights` is as of `.npz`. Other objects, such as PyTorch Geometric's `Data`, are never loaded.
    """
    torch = library(path, "torch")
    checked = torch.sparse.check_sparse_tensor_invariants()
    with explained(path, "what torch.save writes"), checked:
        try:
            found = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            expected = "tensors, as torch.save({'edge_index': data.edge_index}, path) writes them"
            problem = "it holds other objects, which are never loaded, or is damaged"
            raise GraphError(str(path), problem, expected) from error
        if isinstance(found, Mapping):
            fields = {str(key): each for key, each in found.items()}
        else:
            fields = {"edge_index": found}
        fields = {key: _array(path, torch, each) for key, each in fields.items()}
        matrices = [each for each in fields.values() if sparse.issparse(each)]
        if matrices:
            if len(fields) > 1 or weights is not None:
                raise GraphError(str(path), "a sparse tensor among others", "that tensor alone")
            return _matrix(matrices[0], name, source)
        if not isinstance(found, Mapping):
            unambiguous(fields["edge_index"])
        return from_arrays(fields, weights, name, source)


def _array(path: Path, torch: Any, tensor: Any) -> Any:
    """Return a tensor as a NumPy array, or a SciPy one if it is sparse; others as they are."""
    if not torch.is_tensor(tensor):
        return np.asarray(tensor) if isinstance(tensor, int | float) else np.empty(0)
    tensor = tensor.detach()
    if tensor.layout is torch.sparse_coo:
        rows, columns = tensor._indices().numpy()
        values = _array(path, torch, tensor._values())
        return sparse.coo_array((values, (rows, columns)), shape=tuple(tensor.shape))
    if tensor.layout is torch.sparse_csr:
        parts = tensor.values(), tensor.col_indices(), tensor.crow_indices()
        arrays = tuple(_array(path, torch, part) for part in parts)
        return sparse.csr_array(arrays, shape=tuple(tensor.shape))
    if tensor.layout is torch.sparse_csc:
        parts = tensor.values(), tensor.row_indices(), tensor.ccol_indices()
        arrays = tuple(_array(path, torch, part) for part in parts)
        return sparse.csc_array(arrays, shape=tuple(tensor.shape))
    # An expanded tensor claims more elements than there are.
    check_unpacked(path, tensor.numel() * tensor.element_size())
    return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()


def _matrix(matrix: Any, name: str, source: str) -> Graph:
    check_stated_size(matrix.shape[0], matrix.nnz)
    return from_scipy(matrix, name, source)


@reader(".h5", ".hdf5", ".h5ad")
def read_hdf5(
    path: Path,
    *,
    name: str,
    source: str,
    key: str | None = None,
    form: str | None = None,
    weights: bool | str | None = None,
) -> Graph:
    """Read a group of an HDF5 file: `edge_index`, or the three arrays of a CSR or CSC matrix.

    Parameters
    ----------
    key : str, optional
        Path of the group in the file, such as "obsp/connectivities" of AnnData. By default the
        only one that holds `edge_index`, or `data`, `indices` and `indptr`.
    form : {"csr", "csc"}, optional
        How a matrix is stored. By default what AnnData's `encoding-type` says; files that say
        nothing, such as those of 10x Genomics (which are CSC), need it.
    weights : bool or str, optional
        As of `.npz`, beside `edge_index`.
    """
    if form not in (None, "csr", "csc"):
        raise ArgumentError("form", f"got {form!r}", "csr, csc")
    h5py = library(path, "h5py")
    with explained(path, "an HDF5 file"), h5py.File(path, "r") as file:
        groups = {"/": file}
        file.visititems(
            lambda at, each: groups.update({at: each} if isinstance(each, h5py.Group) else {})
        )
        matrix = {"data", "indices", "indptr"}
        able = [at for at, each in groups.items() if "edge_index" in each or matrix <= {*each}]
        if key is None and len(able) != 1:
            problem = f"{len(able)} groups hold a graph"
            expected = " or ".join(f"key={at!r}" for at in able[:6])
            expected = expected or "a group with edge_index, or with data, indices and indptr"
            raise GraphError(str(path), problem, expected)
        key = able[0] if key is None else key.strip("/") or "/"
        if key not in able:
            raise ArgumentError("key", f"no graph in {key!r}", ", ".join(able) or "another file")
        group, fields = groups[key], {}
        for label, each in group.items():
            if isinstance(each, h5py.Dataset) and each.dtype.kind in "biuf":
                check_unpacked(path, each.nbytes)
                fields[label] = each[()]
        if "edge_index" in fields:
            return from_arrays(fields, weights, name, source)
        said = str(group.attrs.get("encoding-type", group.attrs.get("h5sparse_format", "")))
        said = said.removesuffix("_matrix")
        shape = fields.get("shape", group.attrs.get("shape", group.attrs.get("h5sparse_shape")))
        if shape is None or not matrix <= fields.keys():
            raise GraphError(str(path), f"{key!r} lacks a shape, or numbers", "data and shape")
        if said not in ("csr", "csc") and form is None:
            problem = f"{key!r} does not say how its matrix is stored"
            raise GraphError(str(path), problem, 'form="csr" or form="csc"')
        kind = sparse.csr_array if (form or said) == "csr" else sparse.csc_array
        arrays = fields["data"], fields["indices"], fields["indptr"]
        return _matrix(kind(arrays, shape=tuple(map(int, shape))), name, source)


@reader(".parquet")
def read_parquet(
    path: Path,
    *,
    name: str,
    source: str,
    base: int | str = "auto",
    n_nodes: int | None = None,
    symmetric: bool | None = None,
    relabel: bool = False,
    weights: bool | str | None = None,
    columns: Columns = None,
) -> Graph:
    """Read a parquet table of edges; its columns' names and the options count as in an edge list.

    pandas' own index is left out.
    """
    parquet = library(path, "pyarrow.parquet")
    with explained(path, "a parquet table"), parquet.ParquetFile(path) as file:
        names = [each for each in file.schema_arrow.names if not each.startswith("__index_level_")]
        rows = file.metadata.num_rows
        check_unpacked(path, rows * 8 * len(names))
        take = [names[at] for at in columns_of.chosen(names, len(names), columns, weights)]
        table = file.read(columns=take)
        arrays = [table.column(each).to_numpy() for each in take]
    for label, array in zip(take[:2], arrays, strict=False):
        if array.dtype.kind not in "iu" or (array.size and array.min() < 0):
            expected = "whole numbers from 0, none missing; pandas.factorize numbers names"
            raise GraphError(f"{path}, column {label!r}", f"dtype {array.dtype}", expected)
    if not rows:
        raise GraphError(str(path), "there is no edge in it", "a line for each edge")
    nodes = np.stack(arrays[:2], axis=1)
    found = arrays[2] if len(take) > 2 else None
    return numbered(
        nodes,
        found,
        name,
        source,
        base=base,
        n_nodes=n_nodes,
        symmetric=symmetric,
        relabel=relabel,
        weights_in=repr(take[-1]),
    )
