"""Where and when each block ran on a GPU: recorded launches for pictures without one.

    python benchmarks/measure/timelines.py --output timelines.csv.gz

One launch of each strategy on one bundled graph, by `trace_gpu`: a row a block. Times are in
nanoseconds of the GPU's global timer from the launch's first warp; the recording costs each warp
about a hundred of them.
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

import pandas as pd

import accelviz
from accelviz import files, measure
from accelviz.analysis.schedule import block_times
from accelviz.devices import find_device
from accelviz.measure.records import parameters_text, source_commit

STRATEGIES = ("accel_gcn", "gnnadvisor", "graphblast", "merge_path", "row_thread")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graph", default="ca-astroph")
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    graph = measure.random_weights(accelviz.load_graph(options.graph))
    X = measure.features(graph.shape[1], options.columns)
    common = {
        **find_device("cuda").hardware(),
        "date": datetime.date.today().isoformat(),
        "commit": source_commit(),
        "graph": graph.name,
        "columns": options.columns,
    }
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
    with files.written_whole(options.output) as temporary:
        table.to_csv(temporary, index=False)


if __name__ == "__main__":
    main()
