"""Edge lists of collections that keep the number of nodes in a file of its own: OGB, TU."""

from __future__ import annotations

from pathlib import Path

from accelviz.datasets.convert import check_stated_size
from accelviz.datasets.readers.edge_list import read_edge_list
from accelviz.datasets.readers.registry import reader
from accelviz.datasets.readers.text import malformed, numbered_lines, quoted
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

    Each line is `source,target`, counted from 0. If `num-node-list.csv.gz` is in the same
    folder, it gives the number of nodes. The graph has the data set's name, from its folder. Its
    option `symmetric` is that of `read_edge_list`; OGB lists undirected edges once.
    """
    folder = path.absolute().parent
    name = (folder.parent if folder.name == "raw" else folder).name or name
    counts, n_nodes = path.with_name("num-node-list.csv.gz"), None
    if counts.is_file():
        lines = _lines(counts)
        if len(lines) != 1:
            problem = f"it counts the nodes of {len(lines)} graphs"
            raise GraphError(str(counts), problem, "one graph")
        if not lines[0].isdigit() or len(lines[0]) > 10 or not 0 < int(lines[0]) <= MAX_SIDE:
            raise malformed(counts, 1, f"{quoted(lines[0])} nodes", f"1 to {MAX_SIDE}")
        n_nodes = int(lines[0])
        # An edge takes at least a byte, even packed.
        check_stated_size(n_nodes, path.stat().st_size)
    options = {"base": 0, "n_nodes": n_nodes, "symmetric": symmetric, "progress": progress}
    return read_edge_list(path, name=name, source=source, header=False, **options)


@reader("_a.txt")
def read_tu(path: Path, *, name: str, source: str, progress: bool | None = None) -> Graph:
    """Read `NAME_A.txt`: all graphs of a data set in one block-diagonal matrix.

    Each line is `source, target`, counted from 1 (the data sets list both directions). If
    `NAME_graph_indicator.txt`, with one line for each node, is in the same folder, it gives the
    number of nodes.
    """
    indicator = path.with_name(f"{name}_graph_indicator.txt")
    n_nodes = len(_lines(indicator)) if indicator.is_file() else None
    if n_nodes == 0:
        raise GraphError(str(indicator), "there is no node in it", "a line for each node")
    options = {"base": 1, "n_nodes": n_nodes, "symmetric": False, "progress": progress}
    return read_edge_list(path, name=name, source=source, header=False, **options)


def _lines(path: Path) -> list[bytes]:
    """Return the lines of a file that are not empty, without the blanks around them."""
    return [line.strip() for _, line in numbered_lines(path) if line.strip()]
