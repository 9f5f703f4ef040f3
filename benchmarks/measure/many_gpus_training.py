"""A step of training over several GPUs beside one, and whether both learn the same.

    python benchmarks/measure/many_gpus_training.py --gpus 2 --output steps.csv
    torchrun --nproc-per-node 2 benchmarks/measure/many_gpus_training.py --output steps.csv

The first is one process with peer pointers, the second a process a GPU with NVSHMEM. Features and
labels of the twin are random; a step is the difference of a long and a short training.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from accelviz import layers, load_graph, many_gpus
from accelviz.datasets.nodes import NodeData, load_nodes
from accelviz.measure.records import hardware

FEATURES, CLASSES, SHORT = 64, 16, 2


def random_nodes(name: str) -> NodeData:
    """Return a graph whose nodes have random features and labels; half of them train."""
    graph, rng = load_graph(name, cache=False), np.random.default_rng(0)
    features = rng.standard_normal((graph.n_rows, FEATURES)).astype(np.float32)
    labels, order = rng.integers(0, CLASSES, graph.n_rows), rng.permutation(graph.n_rows)
    train, val, test = np.array_split(order, [graph.n_rows // 2, graph.n_rows * 3 // 4])
    return NodeData(graph, features, labels, train, val, test, name=name)


def timed(train: Callable[[int], Any], steps: int) -> tuple[float, Any]:
    """Return the seconds of a step, and the longer training."""
    train(SHORT)  # compiles, and joins
    marks = [time.perf_counter()]
    for epochs in (SHORT, SHORT + steps):
        trained = train(epochs)
        marks.append(time.perf_counter())
    return (marks[2] - 2 * marks[1] + marks[0]) / steps, trained


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=2, help="of one process")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--graphs", nargs="*", default=["cora", "collab"])
    parser.add_argument("--models", nargs="*", default=["gcn", "gin", "sage"])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    options = parser.parse_args()
    process = many_gpus.this_process()
    n, several = (process.size, "nvshmem") if process else (options.gpus, options.device)
    about = {**hardware(options.device), "gpus": n, "device": several}
    rows = []
    for graph in options.graphs:
        data = load_nodes("cora") if graph == "cora" else random_nodes(graph)
        for model in options.models:

            def over_all(epochs: int, model: str = model, data: Any = data) -> Any:
                return many_gpus.train(model, data, n, device=several, epochs=epochs)

            def alone(epochs: int, model: str = model, data: Any = data) -> Any:
                settings = {"dropout": 0.0, "device": options.device, "progress": False}
                return layers.train(model, data, epochs=epochs, **settings)

            seconds, trained = timed(over_all, options.steps)
            again = over_all(SHORT + options.steps)
            one, single = timed(alone, options.steps)
            off = [np.abs(a - single.parameters[k]).max() for k, a in trained.parameters.items()]
            same = all(
                np.array_equal(a, again.parameters[k]) for k, a in trained.parameters.items()
            )
            row = {
                "graph": graph,
                "model": model,
                "all_reduce": trained.all_reduce,
                "step_ms": 1e3 * seconds,
            }
            row |= {"one_gpu_step_ms": 1e3 * one, "parameters_off": max(off), "same_bits": same}
            rows.append({**about, **row})
            if not process or process.rank == 0:
                print(row, flush=True)
                pd.DataFrame(rows).to_csv(options.output, index=False)


if __name__ == "__main__":
    main()
