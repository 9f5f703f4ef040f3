"""The TU collection of graphs for graph classification."""

from __future__ import annotations

from pathlib import Path

from accelviz.datasets.readers.edge_list import read_edge_list
from accelviz.datasets.readers.registry import reader
from accelviz.datasets.readers.text import blocks
from accelviz.errors import GraphError
from accelviz.graph import Graph


@reader("_a.txt")
def read_tu(path: Path, *, name: str, source: str, progress: bool | None = None) -> Graph:
    """Read `NAME_A.txt`: all graphs of a data set in one block-diagonal matrix.

    Each line is `sender, receiver`, counted from 1 (the data sets list both directions). If
    `NAME_graph_indicator.txt`, with one line for each node, is in the same folder, it gives the
    number of nodes.

    Raises
    ------
    GraphError
        Naming the line, where one is malformed or names a node that there is not.
    """
    indicator = path.with_name(f"{name}_graph_indicator.txt")
    n_nodes = None
    if indicator.is_file():
        n_nodes = sum(
            bool(line.strip()) for _, block in blocks(indicator) for line in block.splitlines()
        )
        if not n_nodes:
            raise GraphError(str(indicator), "there is no node in it", "a line for each node")
    return read_edge_list(
        path, name=name, source=source, base=1, n_nodes=n_nodes, symmetric=False, progress=progress
    )
