"""Speedup of `tune` over the rule of `lane_groups`, and the cost of the search.

CuPy caches compiled kernels; a search is shorter on a machine that has compiled them before.

    python benchmarks/measure/tuning.py --cache /tmp/graphs --output tuning.csv
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from study import full_machine, open_graph, parser, record

import accelviz
from accelviz.measure.records import parameters_text

STRATEGY = "lane_groups"


def main() -> None:
    graphs = ["mit8", "collab-twin", "com-amazon-twin"]
    options = parser(__doc__, graphs=graphs, columns=[32, 128], cache=True)
    options.add_argument("--order", choices=["natural", "shuffled"], default="natural")
    chosen = options.parse_args()
    record(searches(chosen), chosen.output)


def searches(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Search settings for each graph and column count."""
    for name in options.graphs:
        graph = open_graph(name, options.order, options.cache is not None)
        for n_cols in options.columns:
            start = accelviz.plan(graph, STRATEGY, n_cols)
            tuned = accelviz.tune(start, device="cuda")
            print(tuned, flush=True)
            yield {
                **full_machine(),
                "graph": graph.name,
                "columns": n_cols,
                "rule": parameters_text(start.parameters),
                "tuned": parameters_text(tuned.plan.parameters),
                "settings": len(tuned.table),
                "seconds": round(tuned.seconds, 2),
                "rule_us": round(tuned.start_us, 3),
                "tuned_us": round(tuned.best_us, 3),
                "pays_after": tuned.pays_after,
            }


if __name__ == "__main__":
    main()
