"""`accel_gcn` on every bundled graph, on every device there is: checked, then timed, then recorded.

Warm times of one launch sequence, output clearing included, by the device's own clock; the graphs'
own values (all ones). The CSV has a row for each graph, column count and device.
"""

from __future__ import annotations

import argparse

from tqdm import tqdm

import accelviz
from accelviz import bench, records
from accelviz.analysis.accuracy import Oracle
from accelviz.datasets import bundled_graphs
from accelviz.executors import EXECUTORS

TIMED = [executor.name for executor in EXECUTORS if executor.timed]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True, help="CSV to write")
    parser.add_argument("--columns", nargs="+", type=int, default=[16, 32, 64, 96, 128])
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--devices", nargs="+", default=TIMED)
    options = parser.parse_args()

    devices = [
        executor
        for executor in EXECUTORS
        if executor.name in options.devices and executor.why_not() is None
    ]
    found = []
    accelviz.plan("cora")  # compiles
    for name in tqdm(bundled_graphs()):
        graph = accelviz.load_graph(name)
        X = bench.features(graph.shape[1], max(options.columns))
        oracle = Oracle(graph, X)
        for n_cols in options.columns:
            plan = accelviz.plan(graph, n_cols=n_cols)
            found += [
                bench.measure(plan, device, oracle, X[:, :n_cols], options.repeats)
                for device in devices
            ]
    table = records.record(found, options.output)
    print(table[["hardware", "graph", "columns", "median_us"]].to_string(index=False))


if __name__ == "__main__":
    main()
