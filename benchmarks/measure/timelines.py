"""Recorded launches: the time and SM of each block on a GPU, for plots without a GPU.

    python benchmarks/measure/timelines.py --output timelines.csv.gz

Records one launch of each strategy on one bundled graph with `trace_gpu`, one row per block. Times
are in nanoseconds of the GPU's global timer since the launch's first warp; recording costs about
100 ns per warp.
"""

from __future__ import annotations

import pandas as pd
from study import full_machine, parser, write

import accelviz
from accelviz import measure
from accelviz.analysis.schedule import block_times
from accelviz.measure.records import parameters_text

STRATEGIES = ("accel_gcn", "gnnadvisor", "graphblast", "merge_path", "row_thread")


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--graph", default="ca-astroph")
    arguments.add_argument("--columns", type=int, default=64)
    options = arguments.parse_args()
    graph = measure.random_weights(accelviz.load_graph(options.graph))
    X = measure.features(graph.shape[1], options.columns)
    common = {**full_machine(), "graph": graph.name, "columns": options.columns}
    tables = []
    for strategy in STRATEGIES:
        plan = accelviz.plan(graph, strategy, options.columns)
        traced = accelviz.trace_gpu(plan, X)
        attributes = {name: traced.attrs[name] for name in ("sms", "blocks_per_sm", "step_ns")}
        blocks = block_times(traced)
        about = {"strategy": strategy, "parameters": parameters_text(plan.parameters)}
        tables.append(blocks.assign(**common, **about, **attributes))
        print(strategy, len(blocks), "blocks,", blocks["stop"].max() / 1000, "us", attributes)
    table = pd.concat(tables)[[*common, *about, *attributes, *blocks.columns]]
    write(table, options.output)


if __name__ == "__main__":
    main()
