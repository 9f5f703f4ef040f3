"""What `tune` gains over the rule of `lane_groups`, and what the search costs.

Compiled kernels are kept by CuPy; a search on a machine that has compiled them before is shorter.

    python benchmarks/measure/tuning.py --cache /tmp/graphs --output tuning.csv
"""

from __future__ import annotations

import argparse
import datetime
import os
from pathlib import Path

import pandas as pd
from measure import opened

import accelviz
from accelviz import files
from accelviz.devices import find_device
from accelviz.measure.records import parameters_text, source_commit

STRATEGY = "lane_groups"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", nargs="+", default=["mit8", "collab-twin", "com-amazon-twin"])
    parser.add_argument("--columns", nargs="+", type=int, default=[32, 128])
    parser.add_argument("--order", choices=["natural", "shuffled"], default="natural")
    parser.add_argument("--cache", metavar="FOLDER", help="keep twins on disk there")
    parser.add_argument("--output", type=Path, required=True, help="CSV to write")
    options = parser.parse_args()
    if options.cache:
        os.environ["ACCELVIZ_CACHE"] = options.cache
    rows = []
    for name in options.graphs:
        graph = opened(name, options.order, options.cache is not None)
        for n_cols in options.columns:
            start = accelviz.plan(graph, STRATEGY, n_cols)
            found = accelviz.tune(start, device="cuda")
            rows.append(
                {
                    **find_device("cuda").hardware(),
                    "date": datetime.date.today().isoformat(),
                    "commit": source_commit(),
                    "graph": graph.name,
                    "columns": n_cols,
                    "rule": parameters_text(start.parameters),
                    "tuned": parameters_text(found.plan.parameters),
                    "settings": len(found.table),
                    "seconds": round(found.seconds, 2),
                    "rule_us": round(found.start_us, 3),
                    "tuned_us": round(found.best_us, 3),
                    "pays_after": found.pays_after,
                }
            )
            print(found, flush=True)
            with files.written_whole(options.output) as temporary:
                pd.DataFrame(rows).to_csv(temporary, index=False)


if __name__ == "__main__":
    main()
