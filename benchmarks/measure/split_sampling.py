"""Time of training steps with sampled neighbors on several GPUs (thesis, Table 4.2).

    torchrun --nproc-per-node 1 benchmarks/measure/split_sampling.py --output sampling.csv
    torchrun --nproc-per-node 2 benchmarks/measure/split_sampling.py --output sampling.csv

GraphSAGE and GAT of two layers, 128 -> 64 -> 16 (GAT with 8 heads of 8 columns, then one of 16), on
batches of `accelviz.torch.Sampler`, which fetches edges and features from the ranks that own them.
"ours" and "pyg" are layers of accelviz and of PyTorch Geometric on the same batches, without DGL,
with which the table compares. A row is a graph, a network and a library: milliseconds of a step of
each rank (sampling, forward, backward, sum of gradients, Adam) and of the sampling alone, on the
host's clock with the GPU idle at both ends, and seeds per second of all ranks. Without a GPU all
runs on the CPU, to try the script.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from split_training import CLASSES, FEATURES, GRAPHS, Network
from study import Row, append, full_machine, parser
from torch import distributed
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from accelviz import torch as ours

MODELS, SIZES = ("sage", "gat"), (10, 10)
LIBRARIES = {"ours": "accelviz.torch", "pyg": "torch_geometric.nn"}
WARMUP = 3
is_gpu = torch.cuda.is_available()


def main() -> None:
    options = parser(__doc__, graphs=("blocks shuffled", "yelp"))
    options.add_argument("--steps", type=int, default=30, help="timed steps of a case")
    options.add_argument("--batch-size", type=int, default=1024, help="seeds of a rank's batch")
    options.add_argument("--models", nargs="+", default=MODELS)
    options.add_argument("--libraries", nargs="+", default=list(LIBRARIES))
    chosen = options.parse_args()
    if is_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    distributed.init_process_group("nccl" if is_gpu else "gloo")
    machine = full_machine("cuda" if is_gpu else "cpu") | {"torch": torch.__version__}
    for row in rows(chosen):
        if distributed.get_rank() == 0:
            append([row | machine], chosen.output)
            print(*row.values(), flush=True)
    distributed.destroy_process_group()


def rows(options: Any) -> Iterator[Row]:
    """Train on each graph with each network and library."""
    for name in options.graphs:
        whole = GRAPHS[name]()
        graph = ours.SplitGraph(whole)
        random = torch.Generator(graph.device).manual_seed(graph.rank)
        x = torch.randn(graph.n_own, FEATURES, generator=random, device=graph.device)
        labels = torch.randint(CLASSES, (graph.n_own,), generator=random, device=graph.device)
        about = {"graph": name, "nodes": whole.n_rows, "edges": whole.nnz, "gpus": graph.size}
        for model in options.models:
            for library in options.libraries:
                case = {**about, "model": model, "library": library}
                yield {**case, **trained(graph, x, labels, model, library, options)}


def trained(graph: Any, x: Any, labels: Any, model: str, library: str, options: Any) -> Row:
    """Time steps of a network."""
    torch.manual_seed(0)
    network: Any = Network(importlib.import_module(LIBRARIES[library]), model).to(graph.device)
    if graph.size > 1:
        network = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    seeds = torch.arange(graph.n_own)[: options.batch_size * (options.steps + WARMUP)]
    sampler = ours.Sampler(graph, x, seeds, sizes=SIZES, batch_size=options.batch_size)
    times, sampling, edges, start = list[float](), list[float](), list[int](), clock()
    for batch in sampler:
        sampled = clock()
        out = network(batch.x, batch.edge_index)[: len(batch.seeds)]
        loss = functional.cross_entropy(out, labels[batch.seeds])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        end = clock()
        times.append(end - start)
        sampling.append(sampled - start)
        edges.append(batch.edge_index.size(1))
        start = clock()
    times, sampling = times[WARMUP:], sampling[WARMUP:]
    low, median, high = 1e3 * np.percentile(times, [25, 50, 75])
    row = {"median_ms": median, "quartile1_ms": low, "quartile3_ms": high, "steps": len(times)}
    row |= {"sampling_ms": 1e3 * float(np.median(sampling)), "batch_edges": int(np.mean(edges))}
    row["seeds_per_s"] = graph.size * options.batch_size / float(np.median(times))
    return {**row, "loss": float(loss.detach())}


def clock() -> float:
    """Return the host's time, once the GPU is idle."""
    if is_gpu:
        torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # no NVLink multicast
    main()
