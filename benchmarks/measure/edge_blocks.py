"""Time the preprocessing of an edge_index on the GPU, beside one product.

    python benchmarks/measure/edge_blocks.py --output edge-blocks-gpu.csv

For R-MAT graphs of four sizes and SpMM with 64 columns, with and without self loops and symmetric
scaling: `build` computes the block partition, `verify` compares the edges with those of the last
call, `product` is the SpMM alone. Each is captured ten times in a CUDA graph; a time is that of a
replay by events, over ten. `error` is the product's largest error beside a composition of PyTorch
in float64, over the mean of the absolute results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from study import full_machine, parser, record
from torch_workloads import rmat

from accelviz.torch import blocks, composed, device
from accelviz.torch.composed import Size

#: Scale and number of drawn edges.
GRAPHS = {"10 k": (11, 10_000), "21.5 k": (14, 21_500), "1 M": (17, 1_000_000)}
GRAPHS |= {"20 M": (20, 20_000_000)}
N_COLS, CAPTURED = 64, 10


def main() -> None:
    options = parser(__doc__, graphs=[*GRAPHS], repeats=15).parse_args()
    rows = (
        {"graph": graph, "edges": edge_index.size(1), "loops": size.loops, **row}
        for graph in options.graphs
        for edge_index, n_nodes in [rmat(*GRAPHS[graph], "cuda")]
        for size in (Size(n_nodes, n_nodes, 0), Size(n_nodes, n_nodes, n_nodes))
        for row in measure(edge_index, size, options.repeats)
    )
    record(rows, options.output, full_machine())


def measure(edge_index: Any, size: Size, repeats: int) -> Any:
    """Yield a row for each of `product`, `verify` and `build`."""
    scaling = "symmetric" if size.loops else "sum"
    x = torch.randn(size.sources, N_COLS, device="cuda")

    def product() -> Any:
        return device.spmm(edge_index, None, x, *size, scaling, False)

    expected = composed.spmm(edge_index, None, x.double(), *size, scaling, False)
    error = (product().double() - expected).abs().max() / expected.abs().mean()
    rounded = [device._rounded(number) for number in (*size[:2], edge_index.size(1) + size.loops)]
    walk = device._spmm_walk(N_COLS, "float32", *rounded, x.device.index)
    assert walk.setting
    partition = blocks.EdgeBlocks(edge_index, size, False, walk.setting, scaling, stream())
    blocks.fix(edge_index)  # `product` without the comparison
    calls: dict[str, Callable[[], Any]] = {
        "product": product,
        "verify": lambda: partition.update(stream(), True),
        "build": lambda: partition.update(stream(), False),
    }
    for name, call in calls.items():
        low, median, high = np.percentile(replay_times(call, repeats), [10, 50, 90])
        yield {"part": name, "us": median, "p10_us": low, "p90_us": high, "error": float(error)}


def stream() -> int:
    return int(torch.cuda.current_stream().cuda_stream)


def replay_times(call: Callable[[], Any], repeats: int) -> list[float]:
    """Return microseconds of one call, for each replay of a captured graph of `CAPTURED` calls."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CAPTURED):
            call()
    graph.replay()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(1e3 * start.elapsed_time(end) / CAPTURED)
    return times


if __name__ == "__main__":
    main()
