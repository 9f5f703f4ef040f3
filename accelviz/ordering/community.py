"""Community order: rows of one community side by side, the communities found by a library."""

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
from accelviz.errors import ArgumentError, checked_integer
from accelviz.ordering.permutation import Permutation
from accelviz.ordering.plain import undirected_pattern

#: The community of each row, an integer.
Labels = npt.NDArray[np.integer[Any]]


def community_order(
    graph: Any, *, method: str = "auto", seed: int = 0, parts: int | None = None
) -> Permutation:
    """Put the rows of each community side by side.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        Square. Its edges count in both directions (the pattern of `A + A^T`), weights and self
        loops do not.
    method : str
        Who finds the communities:

        - `"networkx"`: Louvain. Python throughout: a few seconds for 100,000 edges, hours for
          millions.
        - `"igraph"`: Louvain in C, if igraph is installed.
        - `"metis"`: METIS' k-way partition into parts of about equal size, if pymetis is installed.
        - `"auto"`: igraph if it is installed, else NetworkX.
    seed : int
        At least 0. Equal seeds give equal orders, with one version of the library.
    parts : int, optional
        How many parts METIS makes, 1 to the number of rows; the square root of the number of rows
        if not given. Louvain finds the number itself.

    Returns
    -------
    Permutation
        Communities are sorted by their smallest row, and the rows of each keep their old order.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix, or not square.
    ArgumentError
        If the method is unknown, its package is not installed, or a number is out of range.

    Notes
    -----
    The community-based orders that section 3.5.1 of GNNAdvisor compares Rabbit order with.
    """
    if method == "auto":
        method = "igraph" if importlib.util.find_spec("igraph") else "networkx"
    if not isinstance(method, str) or method not in _METHODS:
        raise ArgumentError("method", f"there is no {method!r}", ", ".join(["auto", *_METHODS]))
    find, library = _finder(method)
    seed = checked_integer("seed", seed, least=0, error=ArgumentError)
    pattern = undirected_pattern(load_graph(graph))
    n_rows = pattern.shape[0]
    if find is not _metis and parts is not None:
        raise ArgumentError("parts", f"got {parts!r}, but Louvain finds the number itself", "None")
    wanted = max(1, round(math.sqrt(n_rows))) if parts is None else parts
    if checked_integer("parts", wanted, error=ArgumentError) > max(n_rows, 1):
        raise ArgumentError("parts", f"got {wanted} for {n_rows} rows", "at most one for each row")
    if pattern.nnz == 0:  # nothing to find, and the libraries differ in how they say so
        return Permutation.trusted(np.arange(n_rows, dtype=np.int32))
    labels = find(library, pattern, seed, wanted)
    _, first, community = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first[community], kind="stable")
    return Permutation.trusted(order.astype(np.int32))


def metis_parts(graph: Any, parts: int) -> Labels:
    """Return the part of each row in METIS' partition into `parts` of about as many edges each.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        Square. Its edges count in both directions, weights and self loops do not.
    parts : int
        At least 1.

    Raises
    ------
    ArgumentError
        If pymetis is not installed.
    """
    find, library = _finder("metis")
    pattern = undirected_pattern(load_graph(graph))
    if pattern.nnz == 0 or parts == 1:  # METIS does not say the same of these everywhere
        return np.arange(pattern.shape[0]) * parts // max(pattern.shape[0], 1)
    return find(library, pattern, 0, parts, vweights=1 + np.diff(pattern.indptr))


def _finder(method: str) -> tuple[Callable[..., Labels], Any]:
    """Return who finds communities by a method, and the package that it needs."""
    find, package, install = _METHODS[method]
    try:
        return find, importlib.import_module(package)
    except ImportError as error:
        problem = f"{method!r} needs the package {package}, which is not installed"
        expected = f"pip install '{install}', or the method 'auto', which takes what there is"
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
    # igraph draws from one generator for all, Python's `random` unless told otherwise.
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
    # A C int from 1 up: METIS draws the same numbers for 0 as for 1.
    options = pymetis.Options(seed=1 + seed % (2**31 - 1))
    return np.array(pymetis.part_graph(parts, adjacency, options=options, **weights).vertex_part)


#: Method, the package it needs, and what to install for it.
_METHODS: dict[str, tuple[Callable[..., Labels], str, str]] = {
    "igraph": (_igraph, "igraph", "igraph"),
    "networkx": (_networkx, "networkx", "networkx"),
    "metis": (_metis, "pymetis", "pymetis>=2025.2"),
}
