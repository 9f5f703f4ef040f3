"""What a call of `spmm` costs on the host once its plan is made and its arrays are on the GPU.

The host's time for one call with a Plan, or with a Graph (which looks its plan up), features and
output on the GPU, without waiting for the GPU: the time in which nothing is queued. Beside it,
CuPy's own launch of the same kernel and nothing else.

    python benchmarks/measure/call_overhead.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import accelviz
from accelviz import measure
from accelviz.devices import find_device

#: Calls between two waits for the GPU; its queue holds about a thousand.
CALLS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=25)
    options = parser.parse_args()
    import cupy  # not before --help has been served where there is none

    graph = accelviz.load_graph("cora")  # a kernel shorter than the call, so the queue stays short
    X = cupy.asarray(measure.features(graph.shape[1], 16))
    out = cupy.empty((graph.n_rows, 16), np.float32)
    print(f"{find_device('cuda').hardware()}; microseconds a call, median (quartiles)")
    for strategy in accelviz.strategies():
        plan = accelviz.plan(graph, strategy, 16)
        with_plan = microseconds(lambda: accelviz.spmm(plan, X, out=out), options.repeats)  # noqa: B023
        with_graph = microseconds(
            lambda: accelviz.spmm(graph, X, strategy=strategy, out=out),  # noqa: B023
            options.repeats,
        )
        ready = find_device("cuda").prepare(plan)
        inputs = ready.inputs(ready.placed({"X": X}))
        alone = microseconds(lambda: ready.launch(inputs, {"Y": out}), options.repeats)  # noqa: B023
        print(f"{strategy:12} with a plan {with_plan}   with a graph {with_graph}   queue {alone}")


def microseconds(call: Callable[[], object], repeats: int) -> str:
    import cupy

    for _ in range(CALLS):
        call()
    times = []
    for _ in range(repeats):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS * 1e6)
    low, middle, high = np.percentile(times, [25, 50, 75])
    return f"{middle:6.2f} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
