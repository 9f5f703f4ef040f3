"""Savings and cost of Rabbit's order on graphs whose vertices come in no order.

Takes twins whose ids are shuffled, finds Rabbit's order on the host, renumbers rows and columns,
and times `lane_groups` and cuSPARSE on both, in one run. Finding the order is timed once, compiled
before, on one core of the host; renumbering is not in it.

    python benchmarks/measure/found_order.py --cache /tmp/graphs --output orders.csv
"""

from __future__ import annotations

import argparse
import dataclasses
import time

import pandas as pd
from measure import SIXTEEN
from study import opened, parser, write

import accelviz
from accelviz.graph import Graph
from accelviz.ordering import vertex_order

CASES = ("lane_groups", "cusparse")
ORDER = "rabbit"


def main() -> None:
    columns = [32, 64, 128]
    arguments = parser(__doc__, graphs=SIXTEEN, columns=columns, repeats=11, cache=True)
    options = arguments.parse_args()
    vertex_order("citeseer", ORDER)  # compiles
    accelviz.benchmark("cora", CASES, options.columns, "cuda", repeats=1)

    tables = []
    for name in options.graphs:
        shuffled = opened(name, "shuffled", options.cache is not None)
        start = time.perf_counter()
        order = vertex_order(shuffled, ORDER)
        seconds = time.perf_counter() - start
        renumbered = dataclasses.replace(
            order.apply_to_graph(shuffled, columns=True), name=f"{shuffled.name}-{ORDER}"
        )
        table = measured([shuffled, renumbered], options)
        table["order_seconds"] = table["graph"].map({renumbered.name: seconds, shuffled.name: 0.0})
        tables.append(table)
        print(summary(table, shuffled, renumbered, seconds), flush=True)
        write(pd.concat(tables), options.output)


def measured(graphs: list[Graph], options: argparse.Namespace) -> pd.DataFrame:
    """Time both orders of a graph in one run."""
    warm = {"repeats": options.repeats, "states": ("warm",), "progress": False}
    return accelviz.benchmark(graphs, CASES, options.columns, "cuda", **warm)


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
