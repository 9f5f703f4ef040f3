"""Savings and cost of Rabbit order on graphs whose vertices are shuffled.

Takes shuffled twins, computes Rabbit order on the host, renumbers rows and columns, and times
`lane_groups`, GNNAdvisor (Figure 3.12c of the thesis) and cuSPARSE before and after, in one run.
The order is timed once, after compilation, on one core of the host; renumbering is not included.

    python benchmarks/measure/found_order.py --cache /tmp/graphs --output orders.csv
"""

from __future__ import annotations

import dataclasses
import time

import pandas as pd
from measure import SIXTEEN
from study import open_graph, parser, write

import accelviz
from accelviz.graph import Graph
from accelviz.ordering import vertex_order

CASES = ("lane_groups", "gnnadvisor", "cusparse")
ORDER = "rabbit"


def main() -> None:
    columns = [32, 64, 128]
    arguments = parser(__doc__, graphs=SIXTEEN, columns=columns, repeats=11, cache=True)
    options = arguments.parse_args()
    vertex_order("citeseer", ORDER)  # compile
    accelviz.benchmark("cora", CASES, options.columns, "cuda", repeats=1)

    tables = []
    for name in options.graphs:
        shuffled = open_graph(name, "shuffled", options.cache is not None)
        start = time.perf_counter()
        order = vertex_order(shuffled, ORDER)
        seconds = time.perf_counter() - start
        renumbered = dataclasses.replace(
            order.apply_to_graph(shuffled, columns=True), name=f"{shuffled.name}-{ORDER}"
        )
        settings = {"repeats": options.repeats, "states": ("warm",), "progress": False}
        graphs = [shuffled, renumbered]
        table = accelviz.benchmark(graphs, CASES, options.columns, "cuda", **settings)
        table["order_seconds"] = table["graph"].map({renumbered.name: seconds, shuffled.name: 0.0})
        tables.append(table)
        print(summary(table, shuffled, renumbered, seconds), flush=True)
        write(pd.concat(tables), options.output)


def summary(table: pd.DataFrame, before: Graph, after: Graph, seconds: float) -> str:
    """Return a line with the times before and after, and the calls after which the order pays."""
    times = table.set_index(["strategy", "graph", "columns"])["median_us"]
    parts = []
    for n_cols in sorted(table["columns"].unique()):
        old, new = (times["lane_groups", graph.name, n_cols] for graph in (before, after))
        pays = f", pays after {seconds * 1e6 / (old - new):,.0f} calls" if new < old else ""
        parts.append(f"d = {n_cols}: {old:,.0f} to {new:,.0f} us{pays}")
    return f"{before.name}: found in {seconds:.2f} s; {'; '.join(parts)}"


if __name__ == "__main__":
    main()
