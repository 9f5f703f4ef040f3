"""Prediction of Accel-GCN's recorded times from warp time, setting by setting.

    python benchmarks/measure/warp_time.py

Reads the recorded table `sweeps-h200` (`measure.py sweeps`). A setting's slots are the sum over
blocks of its warps times the nonzeros of its busiest warp. Its predicted time is that of the
published setting times the ratio of their slots. The last column is the error of predicting no
change.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import accelviz
from accelviz.datasets import load_graph
from accelviz.measure import records
from accelviz.measure.prediction import parameters_of
from accelviz.partition.block_level import MAX_BLOCK_WARPS, MAX_WARP_NZS

SETTING = ["max_block_warps", "max_warp_nzs"]


def main() -> None:
    table = records.recorded("sweeps-h200")
    words = pd.DataFrame([parameters_of(text) for text in table["parameters"]])
    table[SETTING] = words[SETTING].astype(int)
    rows_of_all = [row for _, rows in table.groupby("graph", sort=False) for row in compared(rows)]
    print(pd.DataFrame(rows_of_all).round(2).to_string(index=False))


def compared(rows: pd.DataFrame) -> list[dict[str, object]]:
    """Compare one graph's settings, one row per column count."""
    name = rows["graph"].iloc[0]
    graph = load_graph(name.removesuffix("-twin").lower())
    settings = {key: sorted(set(rows[key])) for key in SETTING}
    swept = accelviz.sweep(graph, n_cols=sorted(set(rows["columns"])), **settings)
    swept["slots"] = graph.nnz / (1 - swept["idle_share"])
    lines = []
    for columns, measured in rows.groupby("columns"):
        counted = swept[swept["n_cols"] == columns]
        both = measured.merge(counted[[*SETTING, "slots", "idle_share"]], on=SETTING)
        published = both.query(f"{SETTING[0]} == {MAX_BLOCK_WARPS}").set_index(SETTING[1])
        default = published.loc[MAX_WARP_NZS]
        time, predicted = both["median_us"], both["slots"] / default["slots"]
        predicted = predicted * default["median_us"]
        fastest = both.loc[time.idxmin()]
        lines.append(
            {
                "graph": name,
                "columns": columns,
                "published us": default["median_us"],
                "fastest": f"{fastest[SETTING[0]]} x {fastest[SETTING[1]]}",
                "of published": fastest["median_us"] / default["median_us"],
                "rank correlation": time.corr(predicted, method="spearman"),
                "median error": float(np.median(abs(predicted / time - 1))),
                "error of no change": float(np.median(abs(default["median_us"] / time - 1))),
            }
        )
    return lines


if __name__ == "__main__":
    main()
