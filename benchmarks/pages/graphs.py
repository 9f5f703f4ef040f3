"""Tables of docs/graphs.md: the graphs of Accel-GCN's Table I, and twins beside real graphs.

Generates every graph of the table, each in its own process, and prints time and peak memory.
Compares each bundled real graph with its twins in the statistics that SpMM depends on.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from tqdm import tqdm

import accelviz
from accelviz.analysis.locality import locality
from accelviz.datasets import TABLE_ONE, bundled_graphs, twin
from accelviz.graph import Graph
from accelviz.ordering import rabbit_order
from benchmarks.pages.document import Page, Parts, Results, markdown

_MIB = 1 << 20 if sys.platform == "darwin" else 1 << 10  # units of ru_maxrss per MiB
#: Statistics of the comparison, and the decimal places of each.
_PLACES = {"edge span": 2, "neighbor overlap": 3, "reuse distance": 3, "distinct columns": 2}


def describe(name: str) -> tuple[list[str], str]:
    """Generate a graph of Table I; return its row of the table, and a line with time and memory."""
    accelviz.load_graph("twitter-partial")  # compile, so that it is not timed
    start = time.perf_counter()
    graph = accelviz.load_graph(f"{name}-twin")
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB
    card, entry = accelviz.describe(graph), TABLE_ONE[name]
    symmetric = "yes" if card.symmetric else "no (directed)"
    row_of = np.repeat(np.arange(graph.n_rows, dtype=np.int32), graph.degrees)
    if diagonal := int(np.count_nonzero(row_of == graph.column_indices)):
        symmetric += f", {diagonal} nonzero on the diagonal"
    numbers = entry.nodes, graph.n_rows, entry.edges, graph.nnz, card.max_degree, card.zero_rows
    degrees = "exact" if graph.kind == "twin" else "**approximate**"
    title = graph.name.removesuffix("-twin")
    line = [title, *(f"{number:,}" for number in numbers), degrees, symmetric]
    return line, f"{graph.name:<26}{seconds:>6.1f} s{peak:>8,.0f} MiB at most"


def table_one(_: Results) -> Parts:
    """Return properties of every graph beside Table I."""
    accelviz.describe(accelviz.load_graph("pubmed-twin"))  # compile
    lines, context = [], multiprocessing.get_context("spawn")
    for name in tqdm(TABLE_ONE, leave=False, disable=None):
        with context.Pool(1) as pool:
            line, cost = pool.apply(describe, (name,))
        lines.append(line)
        tqdm.write(cost)
    head = ("graph", "nodes in Table I", "nodes here", "edges in Table I", "edges here")
    head += ("largest degree", "rows without a nonzero", "degrees", "symmetric")
    return markdown(head, lines)


def twins(_: Results) -> Parts:
    """Compare every bundled graph with its twins, in the given order and after Rabbit order."""
    natural_order, rabbit = [], []
    for name in tqdm(bundled_graphs(), leave=False, disable=None):
        real = accelviz.load_graph(name)
        natural, shuffled = (twin(real, order=order) for order in ("natural", "shuffled"))
        natural_order.append([name, *_compared([natural, real, shuffled], bold=1)])
        renumbered = [_in_rabbit_order(graph) for graph in (real, shuffled)]
        rabbit.append([name, *_compared(renumbered, bold=0)])
    head = ("graph", *_PLACES)
    return [
        "In the order they come in: twin in natural order · **real** · twin in shuffled order",
        markdown(head, natural_order, "---"),
        "After Rabbit order: **real** · twin",
        markdown(head, rabbit, "---"),
    ]


def _in_rabbit_order(graph: Graph) -> Graph:
    return rabbit_order(graph).apply_to_graph(graph, columns=True)


def _compared(graphs: list[Graph], bold: int) -> Iterable[Any]:
    """Yield a cell per statistic with the values of some graphs, one of them bold."""
    statistics = [locality(graph).relative for graph in graphs]
    for name, places in _PLACES.items():
        texts = [f"{values[name]:.{places}f}" for values in statistics]
        texts[bold] = f"**{texts[bold]}**"
        yield " · ".join(texts)


PAGES = [Page("graphs.md", {"table-one": table_one, "twins": twins})]
