"""Tables of docs/graphs.md: the graphs of Accel-GCN's Table I, and twins beside real graphs.

Generates every graph of the table, each in its own process, and prints time and peak memory.
Compares each bundled real graph with its twins in the statistics that SpMM depends on.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

import accelviz
from accelviz.analysis.locality import locality
from accelviz.datasets import TABLE_ONE, bundled_graphs, twin
from accelviz.graph import Graph
from accelviz.ordering import rabbit_order
from benchmarks.pages.document import Listing, Page, Parts, Results, markdown

_MIB = 1 << 20 if sys.platform == "darwin" else 1 << 10  # units of ru_maxrss per MiB
#: Statistics of the comparison, and the decimal places of each.
_PLACES = {"edge span": 2, "neighbor overlap": 3, "reuse distance": 3, "distinct columns": 2}
#: Forms of a graph that are compared, in this order.
FORMS = (
    *("twin, natural order", "real, as published", "twin, shuffled order"),
    *("real, Rabbit order", "twin, Rabbit order"),
)
TABLE_ONE_TITLE = "The 18 graphs: nodes, edges, degrees and symmetry, published and here"


def describe(name: str) -> tuple[dict[str, Any], str]:
    """Generate a graph of Table I; return its row of the table, and a line with time and memory."""
    accelviz.load_graph("twitter-partial")  # compile, so that it is not timed
    start = time.perf_counter()
    graph = accelviz.load_graph(f"{name}-twin")
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB
    card, entry = accelviz.describe(graph), TABLE_ONE[name]
    row_of = np.repeat(np.arange(graph.n_rows, dtype=np.int32), graph.degrees)
    row = {
        "graph": graph.name.removesuffix("-twin"),
        "nodes_published": entry.nodes,
        "nodes": graph.n_rows,
        "edges_published": entry.edges,
        "edges": graph.nnz,
        "largest_degree": card.max_degree,
        "empty_rows": card.zero_rows,
        "degrees": "exact" if graph.kind == "twin" else "approximate",
        "symmetric": "yes" if card.symmetric else "no",
        "on_diagonal": int(np.count_nonzero(row_of == graph.column_indices)),
    }
    return row, f"{graph.name:<26}{seconds:>6.1f} s{peak:>8,.0f} MiB at most"


def table_one(_: Results) -> Parts:
    """Return the file with properties of every graph beside Table I."""
    accelviz.describe(accelviz.load_graph("pubmed-twin"))  # compile
    rows, context = [], multiprocessing.get_context("spawn")
    for name in tqdm(TABLE_ONE, leave=False, disable=None):
        with context.Pool(1) as pool:
            row, cost = pool.apply(describe, (name,))
        rows.append(row)
        tqdm.write(cost)
    return [Listing(pd.DataFrame(rows), "table-one", TABLE_ONE_TITLE)]


def twins(_: Results) -> Parts:
    """Compare every bundled graph with its twins, in the given order and after Rabbit order."""
    rows = []
    for name in tqdm(bundled_graphs(), leave=False, disable=None):
        real = accelviz.load_graph(name)
        natural, shuffled = (twin(real, order=order) for order in ("natural", "shuffled"))
        graphs = (natural, real, shuffled, *(_in_rabbit_order(graph) for graph in (real, shuffled)))
        for form, graph in zip(FORMS, graphs, strict=True):
            values = locality(graph).relative
            numbers = {key: round(values[key], places) for key, places in _PLACES.items()}
            rows.append({"graph": name, "form": form} | numbers)
    return twins_parts(pd.DataFrame(rows))


def twins_parts(rows: pd.DataFrame) -> Parts:
    """Return the means over all graphs, and the file with each graph."""
    means = rows.groupby("form", sort=False)[list(_PLACES)].mean()
    lines = [
        (form, *(f"{mean[name]:.{places}f}" for name, places in _PLACES.items()))
        for form, mean in means.iterrows()
    ]
    head = (f"mean of {rows['graph'].nunique()} graphs", *_PLACES)
    return [markdown(head, lines), Listing(rows, "twins", "Each graph")]


def _in_rabbit_order(graph: Graph) -> Graph:
    return rabbit_order(graph).apply_to_graph(graph, columns=True)


PAGES = [Page("graphs.md", {"table-one": table_one, "twins": twins})]
