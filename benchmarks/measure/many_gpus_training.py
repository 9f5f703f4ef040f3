"""Time of a training step on several GPUs beside one, and whether both compute the same.

    python benchmarks/measure/many_gpus_training.py --gpus 2 --output steps.csv
    torchrun --nproc-per-node 2 benchmarks/measure/many_gpus_training.py --output steps.csv

The first command uses one process with peer pointers, the second one process per GPU with NVSHMEM.
Features and labels of twins are random. The time of a step is the difference of two training runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from study import Row, parser, record

from accelviz import layers, load_graph, many_gpus
from accelviz.datasets.nodes import NodeData, load_nodes
from accelviz.measure.records import hardware

FEATURES, CLASSES, SHORT = 64, 16, 2


def main() -> None:
    options = parser(__doc__, graphs=["cora", "collab"])
    options.add_argument("--gpus", type=int, default=2, help="of one process")
    options.add_argument("--models", nargs="*", default=["gcn", "gin", "sage"])
    options.add_argument("--steps", type=int, default=50)
    options.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    chosen = options.parse_args()
    process = many_gpus.this_process()
    n, several = (process.size, "nvshmem") if process else (chosen.gpus, chosen.device)
    about = {**hardware(chosen.device), "gpus": n, "device": several}
    path = chosen.output if process is None or process.rank == 0 else None
    record(steps(chosen, n, several), path, about)


def random_nodes(name: str) -> NodeData:
    """Return a graph with random features and labels; half of its nodes are for training."""
    graph, rng = load_graph(name), np.random.default_rng(0)
    features = rng.standard_normal((graph.n_rows, FEATURES)).astype(np.float32)
    labels, order = rng.integers(0, CLASSES, graph.n_rows), rng.permutation(graph.n_rows)
    train, val, test = np.array_split(order, [graph.n_rows // 2, graph.n_rows * 3 // 4])
    return NodeData(graph, features, labels, train, val, test, name=name)


def timed(train: Callable[..., Any], steps: int) -> tuple[float, Any]:
    """Return the seconds of a step, and the result of the longer run."""
    train(epochs=SHORT)  # compile, and join the processes
    marks = [time.perf_counter()]
    for epochs in (SHORT, SHORT + steps):
        trained = train(epochs=epochs)
        marks.append(time.perf_counter())
    return (marks[2] - 2 * marks[1] + marks[0]) / steps, trained


def steps(options: argparse.Namespace, n: int, several: str) -> Iterator[Row]:
    """Train each model on each graph, twice on several devices and once on one."""
    one_device = {"dropout": 0.0, "device": options.device, "progress": False}
    for graph in options.graphs:
        data = load_nodes("cora") if graph == "cora" else random_nodes(graph)
        for model in options.models:
            over_all = partial(many_gpus.train, model, data, n, device=several)
            seconds, trained = timed(over_all, options.steps)
            again = over_all(epochs=SHORT + options.steps).parameters
            one, single = timed(partial(layers.train, model, data, **one_device), options.steps)
            arrays = trained.parameters.items()
            yield {
                "graph": graph,
                "model": model,
                "all_reduce": trained.all_reduce,
                "step_ms": 1e3 * seconds,
                "one_gpu_step_ms": 1e3 * one,
                "parameters_off": max(np.abs(a - single.parameters[k]).max() for k, a in arrays),
                "same_bits": all(np.array_equal(array, again[name]) for name, array in arrays),
            }


if __name__ == "__main__":
    main()
