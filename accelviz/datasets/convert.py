"""Conversion of arrays, and of SciPy, NetworkX and igraph objects, to a Graph.

All functions raise a GraphError if a shape or dtype is wrong, an index is out of range, or a value
is not finite in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz.errors import GraphError, check_fits, checked_integer
from accelviz.graph import MAX_SIDE, Graph, check_csr, checked_shape


def from_scipy(matrix: Any, name: str, source: str) -> Graph:
    """Convert a SciPy sparse matrix or array of any format, without sharing memory."""
    if matrix.ndim != 2:
        raise GraphError("graph", f"a {matrix.ndim}-D sparse array", "a 2-D one")
    matrix = matrix.astype(_sum_dtype(matrix.dtype), copy=False)
    if matrix.format != "csr":
        check_pointers_fit(checked_shape(matrix.shape)[0])
    # SciPy does not check index arrays again that were changed after construction; its conversions
    # would write out of bounds.
    if matrix.format in ("csc", "bsr"):
        compressed_shape = matrix.shape[::-1]
        if matrix.format == "bsr":
            compressed_shape = tuple(np.array(matrix.shape) // np.maximum(matrix.blocksize, 1))
        check_csr(matrix.indptr, matrix.indices, matrix.indices, compressed_shape, canonical=False)
    try:
        if matrix.format == "coo":
            matrix = sparse.coo_array((matrix.data, matrix.coords), shape=matrix.shape)
        csr = matrix if matrix.format == "csr" else matrix.tocsr()
    except (ValueError, IndexError, OverflowError) as error:
        raise GraphError("graph", str(error), "a valid SciPy sparse matrix") from error
    pointers, columns, values = csr.indptr, csr.indices, csr.data
    if csr is matrix:
        pointers, columns, values = pointers.copy(), columns.copy(), values.copy()
    return from_csr_arrays(pointers, columns, values, csr.shape, name, source)


def from_csr_arrays(
    row_pointers: npt.NDArray[Any],
    column_indices: npt.NDArray[Any],
    values: npt.NDArray[Any] | None,
    shape: Any,
    name: str,
    source: str,
) -> Graph:
    """Convert CSR arrays of any integer and real dtypes, which the Graph may keep and modify.

    Rows are sorted by column and duplicate entries are summed. Explicit zeros are kept. By default
    all values are 1.
    """
    for label, array in (("row_pointers", row_pointers), ("column_indices", column_indices)):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            problem = f"a {array.ndim}-D array of {array.dtype}"
            raise GraphError(label, problem, "a 1-D array of integers")
    shape = checked_shape(shape)
    if values is None:
        values = np.ones(column_indices.size, dtype=np.float32)
    values = values.astype(_sum_dtype(values.dtype), copy=False)
    if values.ndim != 1:
        raise GraphError("values", f"a {values.ndim}-D array", "a 1-D one")
    check_csr(row_pointers, column_indices, values, shape, canonical=False)
    csr = sparse.csr_array((values, column_indices, row_pointers), shape=shape, copy=False)
    csr.sum_duplicates()
    with np.errstate(over="ignore"):  # Graph raises an error for infinite values
        values = csr.data.astype(np.float32, copy=False)
    pointers = csr.indptr.astype(np.int64, copy=False)
    columns = csr.indices.astype(np.int32, copy=False)
    return Graph(pointers, columns, values, shape, name, source)


def from_edge_index(
    edge_index: npt.ArrayLike,
    name: str,
    source: str,
    *,
    n_nodes: int | None = None,
    weights: npt.ArrayLike | None = None,
    symmetric: bool = False,
) -> Graph:
    """Convert a 2 x E array of edges, as in PyTorch Geometric, to a square graph.

    Column `e` is the edge from node `edge_index[0, e]` to node `edge_index[1, e]`; it becomes a
    nonzero in the target's row, so that `A @ X` sums over in-neighbors. Its weight is
    `weights[e]`, or 1. The weights of a repeated edge are added. For `symmetric`, see `from_edges`.
    """
    edges = whole_if_empty(host_array("edge_index", edge_index))
    sizes = [size for size in getattr(edge_index, "sparse_size", tuple)() if size is not None]
    if n_nodes is None and sizes:  # PyTorch Geometric's EdgeIndex
        n_nodes = max(sizes)
    if edges.ndim != 2 or edges.shape[0] != 2:
        transposed = edges.ndim == 2 and edges.shape[1] == 2
        expected = "a 2 x E edge_index"
        expected += ": its transpose, .T" if transposed else f"; {_DENSE}"
        raise GraphError("graph", f"an array of shape {edges.shape}", expected)
    if edges.dtype.kind not in "iu":
        raise GraphError("edge_index", f"dtype {edges.dtype}", "integers")
    low, high = (int(edges.min()), int(edges.max())) if edges.size else (0, -1)
    if low < 0:
        raise GraphError("edge_index", f"the negative node {low}", "nodes counted from 0")
    is_guessed, n_nodes = n_nodes is None, high + 1 if n_nodes is None else n_nodes
    last = min(n_nodes, MAX_SIDE) - 1
    if high > last:
        raise GraphError("edge_index", f"node {high} of {n_nodes}", f"nodes 0 to {last}")
    checked_integer("n_nodes", n_nodes, MAX_SIDE, least=0, error=GraphError)
    if is_guessed:
        check_stated_size(n_nodes, edges.shape[1], "n_nodes=... if so many are meant")
    weights = None if weights is None else host_array("weights", weights)
    sources, targets = edges
    return from_edges(sources, targets, weights, n_nodes, name, source, symmetric=symmetric)


def host_array(name: str, array: Any) -> npt.NDArray[Any]:
    """Return an array or tensor, which may be on a GPU, as a NumPy array."""
    try:
        if hasattr(array, "detach"):  # PyTorch
            array = array.detach().cpu()
        return np.asarray(array.get() if hasattr(array, "__cuda_array_interface__") else array)
    except (TypeError, ValueError, RuntimeError) as error:
        raise GraphError(name, f"a {type(array).__name__}: {error}", "an array") from error


def whole_if_empty(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert an empty array to int64, because NumPy converts an empty list to floats."""
    return array if array.size else np.empty(array.shape, np.int64)


def unambiguous(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `array`; raise a GraphError for 2 x 2 integers, an edge_index or a dense matrix."""
    if array.shape == (2, 2) and array.dtype.kind in "iu":
        expected = "the edges as scipy.sparse.coo_array((weights, (targets, sources)), shape); "
        problem = "a 2 x 2 array may be an edge_index of two edges, or a dense matrix"
        raise GraphError("graph", problem, expected + _DENSE)
    return array


def from_edges(
    sources: npt.NDArray[Any],
    targets: npt.NDArray[Any],
    weights: npt.NDArray[Any] | None,
    n_nodes: int,
    name: str,
    source: str,
    *,
    symmetric: bool = False,
) -> Graph:
    """Convert edges between nodes 0 to `n_nodes` - 1 to a square graph; nodes are not checked.

    Edge `e` becomes a nonzero in row `targets[e]`, column `sources[e]`. The weights of a repeated
    edge are added; by default all are 1. `symmetric` adds the missing direction of every edge. If
    both directions are given, they must agree in weight and in number.
    """
    check_pointers_fit(n_nodes)
    count, shape = len(sources), (n_nodes, n_nodes)
    if weights is None:
        weights = np.ones(count, dtype=np.float32)
    weights = weights.astype(_sum_dtype(weights.dtype), copy=False)
    if weights.shape != (count,):
        raise GraphError("weights", f"shape {weights.shape} for {count} edges", "one for each edge")
    csr = sparse.coo_array((weights, (targets, sources)), shape=shape).tocsr()
    if symmetric:
        if csr.nnz < count:
            _symmetrized(sparse.coo_array((np.ones(count), (targets, sources)), shape).tocsr())
        distinct = None
        if csr.data.min(initial=1) <= 0:
            # SciPy's maximum treats missing entries as 0, so replace values by ranks from 1 on.
            distinct, ranks = np.unique(csr.data, return_inverse=True)
            csr.data = ranks + 1
        csr = _symmetrized(csr)
        csr.data = csr.data if distinct is None else distinct[csr.data - 1]
    return from_csr_arrays(csr.indptr, csr.indices, csr.data, csr.shape, name, source)


def _symmetrized(csr: sparse.csr_array) -> sparse.csr_array:
    """Add missing directions to a matrix of positive values; check that given ones agree."""
    transpose = csr.T.tocsr()
    larger, smaller = csr.maximum(transpose), csr.minimum(transpose)
    differ = larger != smaller
    if differ.nnz > larger.nnz - smaller.nnz:  # more entries differ than lack a direction
        row, column = np.argwhere(differ.multiply(smaller > 0))[0].tolist()
        problem = f"the edges between nodes {row} and {column} (counted from 0) differ by "
        problem += "direction, in their weight or in how often they are listed"
        expected = "symmetric=False; of its matrix A, load_graph(A + A.T) adds both directions up, "
        raise GraphError("symmetric", problem, expected + "A.maximum(A.T) takes the larger")
    return larger


def plausible_nodes(edges: int) -> int:
    """Return the largest plausible number of nodes of a file: 2^20 plus 64 per edge.

    A node needs 8 bytes even without an edge, so a single wrong node number could need 16 GB. Users
    can override the limit, or renumber sparse node numbers such as 9-digit ones.
    """
    return 2**20 + 64 * edges


def check_stated_size(
    rows: int, entries: int, otherwise: str = "pass the matrix itself, opened with SciPy or NumPy"
) -> None:
    """Raise a GraphError if there are more rows than plausible for the number of entries."""
    if rows > plausible_nodes(entries):
        expected = f"{plausible_nodes(entries)} or fewer, or {otherwise}"
        raise GraphError("shape", f"{rows} rows for {entries} entries", expected)


def check_pointers_fit(rows: int) -> None:
    """Raise a GraphError if the row pointers, with a copy, exceed the memory of this machine."""
    problem, n_bytes = f"{rows:,} rows", 2 * np.dtype(np.int64).itemsize * rows
    check_fits("shape", problem, n_bytes, "fewer rows", error=GraphError)


def from_networkx(graph: Any, name: str, source: str, weight: str | None = "weight") -> Graph:
    """Convert a NetworkX graph: rows in node order, weights from the attribute `weight`, else 1.

    A directed edge becomes a nonzero in its target's row. Parallel edges are added.
    """
    import networkx

    if graph.number_of_nodes() == 0:
        return from_edge_index(np.empty((2, 0), dtype=np.int64), name, source)
    try:
        matrix = networkx.to_scipy_sparse_array(graph, dtype=np.float64, weight=weight)
    except (networkx.NetworkXError, TypeError, ValueError) as error:
        raise GraphError("graph", f"NetworkX says: {error}", "numeric edge weights") from error
    return from_scipy(matrix.T, name, source)


def from_igraph(graph: Any, name: str, source: str) -> Graph:
    """Convert an igraph graph: weights from the edge attribute `weight`, else 1.

    A directed edge becomes a nonzero in its target's row. Parallel edges are added.
    """
    if graph.ecount() == 0:
        edges = np.empty((2, 0), dtype=np.int64)
        return from_edge_index(edges, name, source, n_nodes=graph.vcount())
    matrix = graph.get_adjacency_sparse("weight" if graph.is_weighted() else None)
    return from_scipy(matrix.T, name, source)


def as_scipy(matrix: Any) -> Any:
    """Return a sparse matrix of another library as a SciPy matrix, and None for other objects.

    The libraries are PyTorch, CuPy, pydata/sparse and JAX. None of them is imported.
    """
    library = type(matrix).__module__.partition(".")[0]
    try:
        if library == "cupyx":
            return matrix.get()
        if library == "torch" and str(getattr(matrix, "layout", "")).startswith("torch.sparse"):
            return _from_torch(matrix)
        if hasattr(matrix, "to_coo") and not hasattr(matrix, "to_scipy_sparse"):  # sparse.DOK
            matrix = matrix.to_coo()
        for method in ("to_scipy_sparse", "to_scipy"):  # pydata/sparse; torch_sparse
            if hasattr(matrix, method):
                return getattr(matrix, method)()
        if library == "jax" and hasattr(matrix, "indices"):
            return _from_jax(matrix)
    except GraphError:
        raise
    except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
        expected = "a 2-D sparse matrix of numbers, with 0 elsewhere"
        raise GraphError("graph", f"a {type(matrix).__name__}: {error}", expected) from error
    return None


def _from_torch(tensor: Any) -> Any:
    if tensor.layout != (coo := tensor.to_sparse().layout):
        tensor = tensor.to_sparse(layout=coo)
    tensor = tensor.detach().cpu()
    values = tensor._values()  # not coalesced, which would add float16 in float16
    values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    return _from_coo(tensor._indices().numpy(), values.numpy(), tensor.shape)


def _from_jax(matrix: Any) -> Any:
    if hasattr(matrix, "indptr"):
        matrix = matrix.to_bcoo()
    indices, values = np.asarray(matrix.indices), np.asarray(matrix.data)
    values = values.astype(np.float32) if values.dtype.name == "bfloat16" else values
    in_range = (indices < matrix.shape).all(axis=-1)  # indices beyond the shape are padding
    return _from_coo(indices[in_range].T, values[in_range], matrix.shape)


def _from_coo(indices: npt.NDArray[Any], values: npt.NDArray[Any], shape: Any) -> Any:
    if indices.ndim != 2 or len(indices) != 2 or values.ndim != 1:
        raise ValueError(f"shape {tuple(shape)}, values of shape {values.shape}")
    values = values.astype(_sum_dtype(values.dtype), copy=False)
    return sparse.coo_array((values, tuple(indices)), shape=tuple(shape))


#: Advice for a dense matrix, in error messages.
_DENSE = "a dense adjacency matrix as scipy.sparse.csr_array(A)"


def _sum_dtype(dtype: np.dtype[Any]) -> Any:
    """Return the dtype for sums of duplicates: float64 for integers, booleans and float16."""
    if dtype.kind not in "biuf":
        raise GraphError("values", f"dtype {dtype}", "boolean, integer or real floating point")
    return np.float64 if dtype.kind in "biu" or dtype.itemsize < 4 else dtype
