"""The registry of readers: the ending of a file name selects its reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from accelviz.datasets.options import checked_options
from accelviz.errors import GraphError, checked_choice
from accelviz.graph import Graph

Reader = Callable[..., Graph]

#: Reader of each file ending, in lower case. The longest matching ending takes precedence.
READERS: dict[str, Reader] = {}

_TABLE = "load_graph(table[['source', 'target']].to_numpy().T, weights=table['weight']) of "
_DIMACS = "load_graph(edge_index, n_nodes=..., weights=...) of the two columns of nodes, from 0, "
_DIMACS += "from the lines a or e of pandas.read_csv(path, sep=' ', comment='c', "
_DIMACS += "names=['line', 'u', 'v', 'w'])"
_IGRAPH = "load_graph(igraph.Graph.Read_Pajek(path)) if all of its lines are arcs, or all edges"
_HDF5 = "the matrix itself, load_graph(anndata.read_h5ad(path).X), or with h5py: "
_HDF5 += "load_graph(scipy.sparse.csr_array((data, indices, indptr), shape))"
_METIS = "load_graph(networkit.algebraic.adjacencyMatrix(networkit.readGraph(path, "
_METIS += "networkit.Format.METIS)))"
_RAW_CSR = "load_graph(scipy.sparse.csr_array((numpy.ones(columns.size), columns, pointers), "
_RAW_CSR += "shape=(n, n))) of the two files, each read by numpy.fromfile(path, '<i4')"

#: Calls that open formats without a reader, by ending, for the error message.
_ELSEWHERE = {
    ".adjlist": "load_graph(networkx.read_adjlist(path, nodetype=int, "
    "create_using=networkx.DiGraph)), in the order of its nodes",
    **dict.fromkeys([".net", ".pajek"], _IGRAPH),
    **dict.fromkeys([".gr", ".col", ".dimacs"], _DIMACS),
    **dict.fromkeys([".h5", ".hdf5", ".h5ad"], _HDF5),
    **dict.fromkeys([".ptrdump", ".edgedump", ".new_indptr", ".new_indices"], _RAW_CSR),
    ".graph": _METIS,
    ".graphml": "load_graph(networkx.read_graphml(path))",
    ".gml": "load_graph(networkx.read_gml(path, label='id'))",
    ".gexf": "load_graph(networkx.read_gexf(path))",
    ".g6": "load_graph(networkx.read_graph6(path))",
    ".s6": "load_graph(networkx.read_sparse6(path))",
    ".json": "load_graph(networkx.node_link_graph(json.load(open(path))))",
    ".mat": "load_graph(scipy.io.loadmat(path)[name of the matrix])",
    ".npy": "load_graph(numpy.load(path))",
    ".pt": "load_graph(torch.load(path)['edge_index']), or torch.load(path) if it is one tensor",
    ".parquet": f"{_TABLE}table = pandas.read_parquet(path)",
}


def reader(*endings: str) -> Callable[[Reader], Reader]:
    """Register a function `(path, *, name, source, **options) -> Graph` for these endings.

    `name` and `source` are attributes of the graph. `load_graph` passes the options on. All readers
    of text have the option `progress`: True, False, or None for a progress bar only for large files
    in a terminal or notebook.
    """

    def register(function: Reader) -> Reader:
        READERS.update(dict.fromkeys(endings, function))
        return function

    return register


def packed(*endings: str) -> list[str]:
    """Return the endings, each also with `.gz` and `.bz2`."""
    return [ending + pack for ending in endings for pack in ("", ".gz", ".bz2")]


def known_endings() -> str:
    """Return a list of the endings with a reader, for error messages."""
    endings = [
        ending
        for ending in READERS
        if not ending.endswith((".gz", ".bz2")) or ending.rpartition(".")[0] not in READERS
    ]
    return f"{', '.join(sorted(endings))}; text may be packed, as in .txt.gz or .mtx.bz2"


def read_file(path: Path, reader: str | None = None, **options: Any) -> Graph:
    """Read a graph file with the reader of its ending, and options of that reader.

    `reader` is the ending of another reader, such as ".txt", for a file without its ending.
    """
    if path.is_dir():
        raise GraphError(str(path), "it is a folder", "a file in it")
    lowered = path.name.lower()
    endings = [ending for ending in READERS if lowered.endswith(ending)]
    if not endings and lowered.startswith("out."):  # a file of KONECT
        endings = [".edges"]
    if reader is not None:
        endings = [checked_choice("reader", reader, READERS)]
    if not endings:
        suffixes = [suffix for suffix in path.suffixes if suffix not in (".gz", ".bz2")]
        call = _ELSEWHERE.get(suffixes[-1].lower() if suffixes else "")
        expected = f"a file ending in {known_endings()}; reader='.txt' reads any file as text"
        expected = f"{call}; or {expected}" if call else expected
        raise GraphError(str(path), "no reader for this ending", expected)
    if not path.is_file():
        raise GraphError(str(path), "there is no such file", "a path to a graph file")
    ending = max(endings, key=len)
    function = READERS[ending]
    checked_options(function, options, f"the reader of {ending} files", ("name", "source"))
    name = path.name.removeprefix("out.") if lowered.startswith("out.") else path.name
    name = path.name[: -len(ending)] if lowered.endswith(ending) else name
    name = name or path.name
    try:
        return function(path, name=name, source=f"file {path.name}", **options)
    except GraphError as error:
        if path.name in error.argument:
            raise
        raise GraphError(f"{path}: {error.argument}", error.problem, error.expected) from error
    except OSError as error:
        raise GraphError(str(path), str(error), "a file that can be read") from error
    except MemoryError as error:
        raise GraphError(str(path), "it does not fit in memory", "a smaller graph") from error
