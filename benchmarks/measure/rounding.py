"""Errors of products of 16-bit features against float64 of the features before rounding.

Features and weights are random and signed. The device hardly matters, because all devices sum in
float32; without a GPU the CPU replays the same plan.

    python benchmarks/measure/rounding.py --output rounding.csv
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from study import open_graph, parser, record, write

import accelviz
from accelviz import measure
from accelviz.measure.accuracy import Oracle
from accelviz.plans.operation import EPS32
from accelviz.plans.storage import STORAGE_BYTES

STRATEGY = "lane_groups"


def main() -> None:
    options = parser(__doc__, graphs=["cora", "mit8", "arxiv-twin", "yelp-twin"])
    options.add_argument("--columns", type=int, default=64)
    options.add_argument("--device", default="auto")
    chosen = options.parse_args()
    write(record(errors(chosen), chosen.output), chosen.output, float_format="%.3g")


def errors(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Compare products with every storage type with float64."""
    for name in options.graphs:
        graph = measure.random_weights(open_graph(name))
        X = measure.features(graph.shape[1], options.columns)
        expected, bound = Oracle(graph, X).known["Y"]
        degrees = graph.degrees[:, None]
        with np.errstate(invalid="ignore"):  # empty rows, which are dropped below
            magnitude = bound / (degrees * EPS32)
        for storage in STORAGE_BYTES:
            plan = accelviz.plan(graph, STRATEGY, options.columns, storage=storage)
            distance = np.abs(accelviz.spmm(plan, X, device=options.device) - expected)
            relative = (distance / magnitude)[graph.degrees > 0]
            yield {
                "graph": graph.name,
                "columns": options.columns,
                "storage": storage,
                "largest": relative.max(),
                "median": np.median(relative),
                "norm": np.linalg.norm(distance) / np.linalg.norm(expected),
            }


if __name__ == "__main__":
    main()
