"""Training on a graph whose features exceed the memory of one GPU.

    torchrun --standalone --nproc-per-node 1 benchmarks/measure/split_memory.py --output memory.csv
    torchrun --standalone --nproc-per-node 2 benchmarks/measure/split_memory.py --output memory.csv

Two layers of `GCNConv`, `columns` -> 64 -> 16, cross entropy of all nodes, Adam, with `SplitGraph`
and a captured `TrainingStep`. Node i has a random neighbor in each of `DEGREE` ranges of nodes
around it. A rank makes the features of its own nodes. A row of the CSV is a number of GPUs: the
bytes of all features, the memory of a GPU and the largest peak of a rank in GiB, times of steps by
CUDA events, and losses; or the error, for a GPU that is too small.
"""

from __future__ import annotations

import argparse
import os

import numpy as np
import torch
from split_training import CLASSES, HIDDEN, collect, largest, memory, times
from study import append, full_machine, parser
from torch import distributed, nn
from torch.nn import functional

from accelviz import torch as ours
from accelviz.graph import Graph

COLUMNS = (
    *("gpus", "nodes", "columns", "features_gib", "peak_gib", "median_ms", "p10_ms", "p90_ms"),
    *("steps", "first_loss", "loss", "halo_rows", "error"),
)
#: Neighbors of a node, and nodes of a range that has one of them.
DEGREE, RANGE = 5, 1000


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--nodes", type=int, default=40_000_000)
    options.add_argument("--columns", type=int, default=1024)
    options.add_argument("--steps", type=int, default=20, help="timed steps")
    chosen = options.parse_args()
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    part = ours.SplitGraph(local_graph(chosen.nodes))
    gib = chosen.nodes * chosen.columns * 4 / 2**30
    row = {"gpus": part.size, "nodes": chosen.nodes, "columns": chosen.columns, "features_gib": gib}
    try:
        row |= measured(part, chosen)
    except torch.cuda.OutOfMemoryError as error:
        if part.size > 1:
            raise  # the other ranks may wait for this one: end all
        row["error"] = str(error).partition(". GPU")[0]
    if part.rank == 0:
        is_gpu = part.device.type == "cuda"
        machine = full_machine(part.device.type) | {"torch": torch.__version__}
        if is_gpu:
            machine["gpu_gib"] = torch.cuda.get_device_properties(0).total_memory / 2**30
        append([dict.fromkeys(COLUMNS) | row | machine], chosen.output)
        print(row, flush=True)
    distributed.barrier()
    distributed.destroy_process_group()


def local_graph(n_nodes: int) -> Graph:
    """Return the graph, the same on all ranks."""
    n_ranges = DEGREE * RANGE
    first = np.clip(np.arange(n_nodes) - n_ranges // 2, 0, n_nodes - n_ranges).astype(np.int32)
    columns = np.random.default_rng(0).integers(RANGE, size=(n_nodes, DEGREE), dtype=np.int32)
    columns += first[:, None] + np.arange(0, n_ranges, RANGE, dtype=np.int32)
    pointers = np.arange(0, columns.size + 1, DEGREE)
    ones = np.ones(columns.size, np.float32)
    return Graph(pointers, columns.ravel(), ones, (n_nodes, n_nodes), "local")


class Network(nn.Module):
    """Two layers."""

    def __init__(self, n_columns: int) -> None:
        super().__init__()
        self.first = ours.GCNConv(n_columns, HIDDEN)
        self.last = ours.GCNConv(HIDDEN, CLASSES)

    def forward(self, x: torch.Tensor, graph: ours.SplitGraph) -> torch.Tensor:
        """Return scores of classes."""
        return self.last(self.first(x, graph).relu(), graph)


def measured(part: ours.SplitGraph, options: argparse.Namespace) -> dict[str, object]:
    """Train, and return the measurements."""
    memory()
    columns, steps = options.columns, options.steps
    random = torch.Generator(part.device).manual_seed(part.rank)
    x = torch.randn(part.n_own, columns, generator=random, device=part.device)
    labels = x[:, :CLASSES].argmax(1)  # what a network can learn
    torch.manual_seed(0)
    net = Network(columns).to(part.device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

    def loss() -> torch.Tensor:
        scores = net(x, part)
        return functional.cross_entropy(scores, labels, reduction="sum") / options.nodes

    step = ours.TrainingStep(part, net, optimizer, loss)
    losses = [float(step()) for _ in range(5)]
    low, median, high = np.percentile(times(step, steps, None), [10, 50, 90])
    losses.append(float(step()))
    peak = largest([memory(peak=True) / 2**30], None)[0]
    collect()
    row = {"peak_gib": peak, "median_ms": median, "p10_ms": low, "p90_ms": high, "steps": steps}
    return {**row, "first_loss": losses[0], "loss": losses[-1], "halo_rows": part.n_halo}


if __name__ == "__main__":
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # no NVLink multicast
    main()
