"""Community order: the rows of each community are contiguous. Libraries find the communities."""

from __future__ import annotations

import importlib.util
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz.datasets import load_graph
from accelviz.errors import ArgumentError, checked_integer, pip_install
from accelviz.ordering.permutation import Permutation
from accelviz.ordering.plain import undirected_pattern

#: The community of each row, an integer.
Labels = npt.NDArray[np.integer[Any]]


def community_order(
    graph: Any, *, method: str = "auto", seed: int = 0, parts: int | None = None
) -> Permutation:
    """Order the rows by community.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        A square matrix. Edge directions, weights and self loops are ignored.
    method : str
        Algorithm and library that find the communities:

        - `"networkx"`: Louvain in Python: seconds for 100,000 edges, hours for millions.
        - `"igraph"`: Louvain in C, if igraph is installed.
        - `"metis"`: METIS' k-way partition into parts of about equal size, if pymetis is installed.
        - `"auto"`: igraph if it is installed, else NetworkX.
    seed : int
        At least 0. Equal seeds give equal orders with the same version of the library.
    parts : int, optional
        Number of parts for METIS, 1 to the number of rows; by default the square root of the number
        of rows. Louvain chooses the number of communities itself.

    Returns
    -------
    Permutation
        Communities are sorted by their smallest row. The rows of a community keep their order.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix, or not square.
    ArgumentError
        If the method is unknown, its package is not installed, or a number is out of range.

    Notes
    -----
    Section 3.5.1 of GNNAdvisor compares Rabbit order with such community-based orders.
    """
    if method == "auto":
        method = "igraph" if importlib.util.find_spec("igraph") else "networkx"
    if not isinstance(method, str) or method not in _METHODS:
        raise ArgumentError("method", f"there is no {method!r}", ", ".join(["auto", *_METHODS]))
    find, library = _import_finder(method)
    seed = checked_integer("seed", seed, least=0, error=ArgumentError)
    pattern = undirected_pattern(load_graph(graph))
    n_rows = pattern.shape[0]
    if find is not _metis and parts is not None:
        raise ArgumentError("parts", f"got {parts!r}, but Louvain finds the number itself", "None")
    if parts is None:
        parts = max(1, round(math.sqrt(n_rows)))
    if checked_integer("parts", parts, error=ArgumentError) > max(n_rows, 1):
        raise ArgumentError("parts", f"got {parts} for {n_rows} rows", "at most one for each row")
    if pattern.nnz == 0:  # the libraries differ for graphs without edges
        return Permutation.trusted(np.arange(n_rows, dtype=np.int32))
    labels = find(library, pattern, seed, parts)
    _, first, community = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first[community], kind="stable")
    return Permutation.trusted(order.astype(np.int32))


def metis_parts(graph: Any, parts: int) -> Labels:
    """Return the part of each row in METIS' partition into parts with similar numbers of edges.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        A square matrix. Edge directions, weights and self loops are ignored.
    parts : int
        Number of parts, at least 1.

    Raises
    ------
    ArgumentError
        If pymetis is not installed.
    """
    find, library = _import_finder("metis")
    pattern = undirected_pattern(load_graph(graph))
    if pattern.nnz == 0 or parts == 1:  # METIS differs between platforms here
        return np.arange(pattern.shape[0]) * parts // max(pattern.shape[0], 1)
    return find(library, pattern, 0, parts, vweights=1 + np.diff(pattern.indptr))


def _import_finder(method: str) -> tuple[Callable[..., Labels], Any]:
    """Return the function of `_METHODS` that finds communities, and its imported package."""
    find, package, install = _METHODS[method]
    try:
        return find, importlib.import_module(package)
    except ImportError as error:
        problem = f"{method!r} needs the package {package}, which is not installed"
        expected = f"{pip_install(install)}, or the method 'auto', which takes what there is"
        raise ArgumentError("method", problem, expected) from error


def _networkx(networkx: Any, pattern: sparse.csr_array, seed: int, parts: int) -> Labels:
    graph = networkx.from_scipy_sparse_array(pattern)
    communities = networkx.community.louvain_communities(graph, weight=None, seed=seed)
    labels = np.empty(pattern.shape[0], dtype=np.int32)
    for label, members in enumerate(communities):
        labels[list(members)] = label
    return labels


def _igraph(igraph: Any, pattern: sparse.csr_array, seed: int, parts: int) -> Labels:
    upper = sparse.triu(pattern, format="coo")
    graph = igraph.Graph(n=pattern.shape[0], edges=np.column_stack([upper.row, upper.col]))
    # igraph has one global generator, by default Python's `random`.
    igraph.set_random_number_generator(random.Random(seed))
    try:
        return np.array(graph.community_multilevel().membership)
    finally:
        igraph.set_random_number_generator(random)


def _metis(
    pymetis: Any, pattern: sparse.csr_array, seed: int, parts: int, **weights: Any
) -> Labels:
    index = pymetis.zero_copy_dtype()
    adjacency = pymetis.CSRAdjacency(
        pattern.indptr.astype(index, copy=False), pattern.indices.astype(index, copy=False)
    )
    # A C int of at least 1, because METIS treats the seeds 0 and 1 alike.
    options = pymetis.Options(seed=1 + seed % (2**31 - 1))
    return np.array(pymetis.part_graph(parts, adjacency, options=options, **weights).vertex_part)


#: For each method: its function, the package to import, and the requirement to install.
_METHODS: dict[str, tuple[Callable[..., Labels], str, str]] = {
    "igraph": (_igraph, "igraph", "igraph"),
    "networkx": (_networkx, "networkx", "networkx"),
    "metis": (_metis, "pymetis", "pymetis>=2025.2"),
}
