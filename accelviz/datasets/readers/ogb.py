"""The Open Graph Benchmark's raw files."""

from __future__ import annotations

from pathlib import Path

from accelviz.datasets.convert import check_stated_size
from accelviz.datasets.readers.edge_list import read_edge_list
from accelviz.datasets.readers.registry import reader
from accelviz.datasets.readers.text import blocks, malformed, shown
from accelviz.errors import GraphError
from accelviz.graph import MAX_SIDE, Graph


@reader("edge.csv.gz")
def read_ogb(
    path: Path,
    *,
    name: str,
    source: str,
    symmetric: bool | None = None,
    progress: bool | None = None,
) -> Graph:
    """Read the `edge.csv.gz` of a data set of one graph, as in `ogbn_arxiv/raw/edge.csv.gz`.

    Each line is `sender,receiver`, counted from 0. If `num-node-list.csv.gz` is in the same
    folder, it gives the number of nodes. The graph has the data set's name, from its folder.

    Parameters
    ----------
    path : Path
    name, source : str
    symmetric : bool, optional
        As for `read_edge_list`: OGB lists undirected edges once.
    progress : bool, optional

    Raises
    ------
    GraphError
        If there are several graphs; or naming the line, where one is malformed.
    """
    folder = path.absolute().parent
    name = (folder.parent if folder.name == "raw" else folder).name or name
    counts = path.with_name("num-node-list.csv.gz")
    n_nodes = _n_nodes(counts) if counts.is_file() else None
    if n_nodes is not None:
        # An edge takes at least a byte, even packed.
        check_stated_size(n_nodes, path.stat().st_size)
    return read_edge_list(
        path,
        name=name,
        source=source,
        base=0,
        n_nodes=n_nodes,
        symmetric=symmetric,
        progress=progress,
    )


def _n_nodes(path: Path) -> int:
    lines = [line for _, block in blocks(path) for line in block.split()]
    if len(lines) != 1:
        raise GraphError(str(path), f"it counts the nodes of {len(lines)} graphs", "one graph")
    if not lines[0].isdigit() or len(lines[0]) > 10 or not 0 < int(lines[0]) <= MAX_SIDE:
        raise malformed(path, 1, f"{shown(lines[0])} nodes", f"1 to {MAX_SIDE}")
    return int(lines[0])
