"""`load_graph`, which makes a Graph from a name, a file, a URL or an object."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz.card import GraphCard
from accelviz.datasets.convert import (
    as_scipy,
    from_edge_index,
    from_igraph,
    from_networkx,
    from_scipy,
    host_array,
    unambiguous,
)
from accelviz.datasets.download import PUBLIC, download
from accelviz.datasets.options import checked_options
from accelviz.datasets.readers import read_file
from accelviz.datasets.readers.npz import read_npz
from accelviz.datasets.readers.registry import known_endings
from accelviz.datasets.synthetic.table_one import TABLE_ONE
from accelviz.datasets.synthetic.twins import find_table_entry, twin
from accelviz.errors import ArgumentError, GraphError
from accelviz.files import cache_folder, written_whole
from accelviz.graph import Graph, Pattern

#: Part of the file names of cached twins. Increase it if `twin` changes its results.
_TWIN_VERSION = 1
#: Exceptions of NumPy for a missing or damaged archive.
_DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)
_BUNDLED = Path(__file__).resolve().parent / "graphs"
_ACCEPTED = (
    "a bundled name, a file, a sparse matrix of SciPy, PyTorch, CuPy, JAX or pydata/sparse, a "
    "NetworkX or igraph graph, or a 2 x E edge_index array"
)


def bundled_graphs() -> dict[str, dict[str, Any]]:
    """Return facts (nodes, edges, max_degree, source, ...) of each bundled graph, by name."""
    index: dict[str, dict[str, Any]] = json.loads((_BUNDLED / "index.json").read_text("utf-8"))
    return dict(sorted(index.items(), key=lambda item: int(item[1]["edges"])))


def bundled_archive(name: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays in the file of a bundled graph, which may include features and labels."""
    with np.load(_BUNDLED / f"{name}.npz", allow_pickle=False) as archive:
        return {**archive}


def load_graph(graph: Any, *, name: str | None = None, **options: Any) -> Graph:
    """Make a validated Graph from a name, a file, a URL or an object.

    Parameters
    ----------
    graph : str, PathLike or object
        One of

        - the name of a bundled real graph, in any case: `"cora"` (see `bundled_graphs()`);
        - the name of a graph of Accel-GCN's Table I, in any case: `"collab"` or `"collab-twin"`, a
          generated graph with its exact degrees (see `twin`); approximate degrees for Reddit and
          PRODUCTS. `"pubmed"` is the real graph, `"pubmed-twin"` the generated one;
        - a path to a graph file: an edge list, MatrixMarket, `.npz` and others (docs/files.md);
        - a URL `https://...` of such a file, or the name of a public data set in
          `accelviz.datasets.download.PUBLIC`, which is downloaded at the first call;
        - a sparse matrix of SciPy, PyTorch, CuPy, JAX or pydata/sparse, square or rectangular;
        - a NetworkX or igraph graph (rows in node order, weights from the attribute `weight`);
        - a 2 x E `edge_index` of integers (row 0 sources, row 1 targets), an array or a tensor;
        - a Graph, which is returned unchanged.
    name : str, optional
        Name for tables and pictures; by default derived from `graph`.
    **options
        For a file, options of its reader, and `reader=".txt"` for that of another ending. For a
        graph of Table I, options of `twin`, and `cache=True` to store it on disk. For an
        `edge_index`, `n_nodes`, `weights`, one per edge, and `symmetric=True` if each edge stands
        for both directions.

    Returns
    -------
    Graph
        A new graph that shares no memory with the object, unless that is a Graph. Columns are
        sorted, duplicates summed, explicit zeros kept; values of any real dtype are rounded to
        float32.

    Raises
    ------
    GraphError
        If the name or file is unknown, or the content is not a valid sparse matrix: NaN or infinite
        values, negative or out-of-range indices, complex values, truncated files, pickles.
    ArgumentError
        If an option is unknown.

    Examples
    --------
    >>> import accelviz
    >>> accelviz.load_graph("cora").nnz
    10556
    """
    loaded = _load(graph, options)
    return loaded if name is None or name == loaded.name else replace(loaded, name=name)


def describe(graph: Any) -> GraphCard:
    """Describe a graph: size, degrees, edge span, symmetry and source.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes

    Returns
    -------
    GraphCard
        Prints as a table; `accelviz.plots.graph_card` draws it.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix.

    Examples
    --------
    >>> import accelviz
    >>> accelviz.describe("cora").max_degree
    168
    """
    return GraphCard.of(load_graph(graph))


def load_pattern(graph: Any) -> Graph | Pattern:
    """Return a Pattern unchanged, and anything else as `load_graph` does."""
    return graph if isinstance(graph, Pattern) else load_graph(graph)


def _load(graph: Any, options: dict[str, Any]) -> Graph:
    if isinstance(graph, str | os.PathLike):
        return _load_named(graph, options)
    library = type(graph).__module__.partition(".")[0]
    origin = f"{library} matrix" if (matrix := as_scipy(graph)) is not None else "SciPy matrix"
    graph = graph if matrix is None else matrix
    if isinstance(graph, Graph) or sparse.issparse(graph) or library in ("networkx", "igraph"):
        if options:
            first_option = next(iter(options))
            raise ArgumentError(first_option, "an object has no such option", "no options")
        if isinstance(graph, Graph):
            return graph
        if library == "networkx":
            return from_networkx(graph, str(graph.name) or "graph", "NetworkX graph")
        if library == "igraph":
            return from_igraph(graph, "graph", "igraph graph")
        return from_scipy(graph, "matrix", origin)
    checked_options(from_edge_index, options, "an edge_index")
    if isinstance(graph, np.ma.MaskedArray):
        raise GraphError("graph", "a masked array, whose mask would be ignored", "graph.filled(0)")
    if isinstance(graph, list | tuple) and any(isinstance(entry, tuple) for entry in graph):
        problem = "tuples, which may be edges, or all sources and all targets"
        expected = "numpy.array(graph).T for edges (source, target), or numpy.array(graph)"
        expected += " for (sources, targets)"
        raise GraphError("graph", problem, expected)
    try:
        array = host_array("graph", graph)
    except GraphError as error:
        raise GraphError("graph", error.problem, _ACCEPTED) from error
    if array.dtype == object or array.ndim == 0:
        raise GraphError("graph", f"got a {type(graph).__name__}", _ACCEPTED)
    if not options and not hasattr(graph, "sparse_size"):
        array = unambiguous(array)  # n_nodes or an EdgeIndex shows that it is an edge_index
    return from_edge_index(graph, "graph", "edge_index", **options)


def _load_named(graph: str | os.PathLike[str], options: dict[str, Any]) -> Graph:
    bundled = bundled_graphs()
    if isinstance(graph, str):
        lowered, entry = graph.lower(), find_table_entry(graph)
        if lowered in bundled:
            if options:
                expected = "no options"
                expected += f", or {lowered}-twin, which has some" if entry else ""
                raise ArgumentError(next(iter(options)), "a real graph has no options", expected)
            source = bundled[lowered]["source"]
            loaded = read_npz(_BUNDLED / f"{lowered}.npz", name=lowered, source=source)
            return replace(loaded, kind="real")
        if entry is not None:
            checked_options(_load_twin, options, f"the twin of {entry.name}")
            return _load_twin(entry.name, **options)
        if lowered in PUBLIC:
            loaded = read_file(download(graph), **options)
            return replace(loaded, name=lowered, source=PUBLIC[lowered].url, kind="real")
        if lowered.startswith(("http://", "https://")):
            return replace(read_file(download(graph), **options), source=graph)
    path = Path(graph)
    if isinstance(graph, os.PathLike) or path.exists() or path.suffix:
        return read_file(path, **options)
    matches = difflib.get_close_matches(str(graph).lower(), [*bundled, *TABLE_ONE, *PUBLIC], n=1)
    table_one = ", ".join(entry.name for entry in TABLE_ONE.values())
    problem = f"there is no graph {graph!r}, nor a file of that name"
    problem += f"; did you mean {matches[0]}?" if matches else ""
    expected = f"a bundled graph ({', '.join(bundled)}), one of Table I ({table_one}), or a file "
    raise GraphError("graph", problem, expected + f"ending in {known_endings()}")


def _load_twin(
    name: str,
    *,
    locality: float | None = None,
    order: str = "natural",
    seed: int = 0,
    symmetric: bool | None = None,
    cache: bool = False,
) -> Graph:
    """Make a twin; with `cache`, store it on disk at the first call and read it at later calls."""
    options = {"locality": locality, "order": order, "seed": seed, "symmetric": symmetric}
    if not cache:
        return twin(name, **options)  # type: ignore[arg-type]
    key = repr((_TWIN_VERSION, "twin", name, sorted(options.items())))
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    path = cache_folder() / "graphs" / f"{name.lower()}-{digest}.npz"
    # If the file is missing or damaged, the twin is made and stored again.
    with contextlib.suppress(*_DAMAGED), path.open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        pointers, columns = archive["row_pointers"], archive["column_indices"]
        ones = np.ones(columns.size, dtype=np.float32)
        return Graph(pointers, columns, ones, **json.loads(str(archive["facts"])))
    graph = twin(name, **options)  # type: ignore[arg-type]
    facts = {key: getattr(graph, key) for key in ("shape", "name", "source", "kind")}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem, expected = f"{error.filename}: {error.strerror}", "a folder that can be written to"
        raise ArgumentError("cache", problem, f"{expected}, as ACCELVIZ_CACHE") from error
    with written_whole(path) as temporary:
        np.savez(
            temporary,
            facts=json.dumps(facts),
            row_pointers=graph.row_pointers,
            column_indices=graph.column_indices,
        )
    return graph
