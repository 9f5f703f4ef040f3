"""Time of preprocessing on the GPU beside one SpMM of the same graph, in one run.

Preprocessing computes degree sort, metadata and nonzero order of `lane_groups` from a CSR matrix on
the GPU; results are compared with the host's. It is timed by CUDA events (the GPU's work), by the
host's clock (with launches, allocation and the wait for the number of blocks), and with copies of
the CSR to the GPU. Also recorded are its steps by the GPU's global timer, the host's preprocessing,
and the product by both clocks.

    python benchmarks/measure/gpu_preprocessing.py --cache /tmp/graphs --output preprocessing.csv
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import cupy
import numpy as np
import pandas as pd
from measure import TWINS
from study import Row, host_seconds, open_graph, parser, record, write

import accelviz
from accelviz import measure
from accelviz.datasets import bundled_graphs
from accelviz.devices import device_plan, find_device
from accelviz.devices.cuda import uploaded
from accelviz.devices.cuda.compiler import compiled
from accelviz.devices.cuda.timing import event_seconds
from accelviz.graph import Graph, Pattern
from accelviz.measure.comparison import geometric_mean
from accelviz.partition.block_level import BlockSetting
from accelviz.partition.subwarps import SubwarpPartition
from accelviz.plans import Plan
from accelviz.strategies.spmm.lane_groups import preprocessing

#: Steps of `partition` between barriers; those of SORT run once per pass of the sort.
SORT, REST = ("count", "place"), ("add up", "find blocks", "describe blocks")
WARMUP, HOST_REPEATS = 3, 3
GPU = find_device("cuda")


def main() -> None:
    graphs = [*bundled_graphs(), *TWINS]
    arguments = parser(__doc__, graphs=graphs, columns=[128], repeats=15, cache=True)
    orders = ["natural", "shuffled"]
    arguments.add_argument("--orders", nargs="+", default=orders, help="of twins' ids")
    options = arguments.parse_args()
    measured(open_graph("cora", "natural", False), "natural", 128, 1)  # compile everything
    rows = (
        measured(open_graph(name, order, bool(options.cache)), order, n_cols, options.repeats)
        for name in options.graphs
        for order in (options.orders if name.endswith("-twin") else ["natural"])
        for n_cols in options.columns
    )
    table = record(rows, options.output)
    write(table, options.output, float_format="%.2f")
    for is_large, part in table.groupby(table["nnz"] > 1_000_000):
        means = [f"{name} {geometric_mean(part[name]):.3f}" for name in ("gpu_ratio", "wall_ratio")]
        print(f"{'above' if is_large else 'below'} a million nonzeros: {', '.join(means)}")


def measured(graph: Graph, order: str, n_cols: int, repeats: int) -> Row:
    """Measure one graph; times are in microseconds: median, lower and upper quartile."""
    host, on_host = planned_on_host(graph, n_cols)
    pattern = uploaded(graph)
    setting = (
        BlockSetting(host.workers_per_block, host.parameters["group_nzs"]),
        host.parameters["short_nzs"],
        host.parameters["block_order"],
    )
    check(preprocessing.preprocess(GPU, pattern, *setting), host)

    def copied() -> None:
        pointers, columns = map(cupy.asarray, (graph.row_pointers, graph.column_indices))
        preprocessing.preprocess(GPU, Pattern(pointers, columns, graph.shape), *setting)

    gpu = event_seconds(lambda: preprocessing.launch(GPU, pattern, *setting), repeats, WARMUP)
    wall = wall_seconds(lambda: preprocessing.preprocess(GPU, pattern, *setting), repeats)
    with_copies = wall_seconds(copied, min(repeats, 5))
    ready = GPU.prepare(device_plan(pattern, n_cols))
    arrays = {"values": graph.adjacency.data, "X": measure.features(graph.shape[1], n_cols)}
    operands, out = ready.placed(arrays), ready.outputs()
    spmm = ready.seconds(operands, repeats, WARMUP)
    spmm_wall = wall_seconds(lambda: ready.run(operands, out), repeats)
    row = {
        "graph": graph.name,
        "order": order,
        "rows": graph.n_rows,
        "nnz": graph.nnz,
        "columns": n_cols,
        "gpu": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "blocks": host.launch.n_blocks,
    }
    times = {"gpu": gpu, "wall": wall, "with_copies": with_copies, "spmm": spmm}
    for name, seconds in (times | {"spmm_wall": spmm_wall, "host": on_host}).items():
        for quartile, label in ((50, ""), (25, "_low"), (75, "_high")):
            row[f"{name}{label}_us"] = 1e6 * float(np.percentile(seconds, quartile))
    row["gpu_ratio"] = row["gpu_us"] / row["spmm_us"]
    row["wall_ratio"] = row["wall_us"] / row["spmm_us"]
    passes = max(1, -(-int(graph.degrees.max(initial=0)).bit_length() // preprocessing.DIGIT_BITS))
    row["passes"] = passes
    steps = step_seconds(
        lambda: preprocessing.launch(GPU, pattern, *setting, RECORD_STEPS=1), passes
    )
    row |= {f"{step}_us": 1e6 * seconds for step, seconds in steps.items()}
    row["rest_us"] = row["gpu_us"] - 1e6 * sum(steps.values())
    return row


def planned_on_host(graph: Graph, n_cols: int) -> tuple[Plan, list[float]]:
    """Return the plan by the host, and its seconds without the analysis of the vertex order."""
    seconds = []
    for _ in range(HOST_REPEATS):
        plan = accelviz.plan(replace(graph), "lane_groups", n_cols)  # a copy without cached data
        steps = plan.setup_seconds
        seconds.append(sum(time for step, time in steps.items() if step != "look at the order"))
    return plan, seconds


def check(partition: SubwarpPartition, host: Plan) -> None:
    wanted = {**host.arrays, "nonzero_order": host.layout.nonzero_order}
    for name in ("metadata", "output_rows", "columns", "nonzero_order"):
        if not np.array_equal(getattr(partition, name).get(), wanted[name]):
            raise AssertionError(f"{host!r}: {name} is not the host's")


def wall_seconds(run: Callable[[], object], repeats: int) -> np.ndarray:
    """Return seconds by the host's clock; the GPU is idle at the start and the end of each run."""
    return host_seconds(run, repeats, WARMUP, cupy.cuda.Device().synchronize)


def step_seconds(queue: Callable[[], Callable[[], object]], passes: int) -> dict[str, float]:
    """Return the median time of each step, summed over the passes."""
    names = [*SORT * passes, *REST]
    module, _ = compiled(preprocessing.spec("partition", RECORD_STEPS=1), cooperative=True)
    recorded = cupy.ndarray(32, np.uint64, module.get_global("step_times"))
    times = []
    for _ in range(WARMUP + HOST_REPEATS):
        queue()()
        times.append(np.diff(recorded.get()[: len(names) + 1].astype(np.int64)))
    medians = pd.Series(np.median(times[WARMUP:], axis=0) * 1e-9, index=names)
    return medians.groupby(level=0, sort=False).sum().to_dict()


if __name__ == "__main__":
    main()
