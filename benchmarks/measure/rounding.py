"""What 16-bit features cost in accuracy: products against float64 of the features before rounding.

Random signed features and weights. The device hardly matters, as all sum in float32; where there is
no GPU it is the CPU's replay of the same plan.

    python benchmarks/measure/rounding.py --output rounding.csv
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from measure import opened

import accelviz
from accelviz import files, measure
from accelviz.measure.accuracy import Oracle
from accelviz.plans.operation import EPS32
from accelviz.plans.storage import STORAGE_BYTES

STRATEGY = "lane_groups"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", nargs="+", default=["cora", "mit8", "arxiv-twin", "yelp-twin"])
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--output", type=Path, required=True, help="CSV to write")
    options = parser.parse_args()
    rows = []
    for name in options.graphs:
        graph = measure.random_weights(opened(name, "natural", cache=False))
        X = measure.features(graph.shape[1], options.columns)
        expected, bound = Oracle(graph, X).known["Y"]
        degrees = graph.degrees[:, None]
        with np.errstate(invalid="ignore"):  # rows without a nonzero, which are left out
            magnitude = bound / (degrees * EPS32)
        for storage in STORAGE_BYTES:
            plan = accelviz.plan(graph, STRATEGY, options.columns, storage=storage)
            distance = np.abs(accelviz.spmm(plan, X, device=options.device) - expected)
            relative = (distance / magnitude)[graph.degrees > 0]
            rows.append(
                {
                    "graph": graph.name,
                    "columns": options.columns,
                    "storage": storage,
                    "largest": relative.max(),
                    "median": np.median(relative),
                    "norm": np.linalg.norm(distance) / np.linalg.norm(expected),
                }
            )
            print(rows[-1], flush=True)
    with files.written_whole(options.output) as temporary:
        pd.DataFrame(rows).to_csv(temporary, index=False, float_format="%.3g")


if __name__ == "__main__":
    main()
