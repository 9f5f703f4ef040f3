"""Times of the host's work beside SciPy's and NumPy's, in one run.

    python benchmarks/measure/host.py spmm
    python benchmarks/measure/host.py preprocessing --graphs citation

`spmm` times whole calls of `spmm` on a machine without a GPU, and of `A @ X`, with allocations:
first each side's calls in a row, then both sides alternately, so that each finds the other's data
in the caches. It prints the ratios of medians, and the time of our first call, which plans.

`preprocessing` takes the degrees of graphs of Table I in random order and computes counting sort,
histogram and block-level metadata; the CSR is not permuted. It prints the ratio of medians to
NumPy's stable sort of the degrees alone, and the memory per row beyond inputs and outputs.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc

import numba
import numpy as np
from study import host_seconds, parser

import accelviz
from accelviz import measure
from accelviz.datasets import TABLE_ONE
from accelviz.measure.accuracy import Oracle
from accelviz.ordering import sort_by_degree
from accelviz.partition.block_level import block_partition


def main() -> None:
    graphs = ["email-enron", "cora", "mit8"]
    options = parser(__doc__, graphs=graphs, columns=[64], repeats=60, output=False)
    options.add_argument("study", choices=["spmm", "preprocessing"])
    chosen = options.parse_args()
    {"spmm": spmm, "preprocessing": preprocessing}[chosen.study](chosen)


def spmm(options: argparse.Namespace) -> None:
    """Compare `spmm` with SciPy."""
    warm = accelviz.load_graph("citeseer")
    accelviz.spmm(warm, measure.features(warm.shape[1], 3), device="cpu")  # compile
    print(f"{numba.get_num_threads()} threads; medians in ms, {options.repeats} calls")
    print("graph          columns   SciPy    ours   ratio | in turn: SciPy    ours   ratio | first")
    for name in options.graphs:
        for n_cols in options.columns:
            graph = accelviz.load_graph(name)
            X = measure.features(graph.shape[1], n_cols)
            A = graph.adjacency
            calls = (lambda A=A, X=X: A @ X, lambda g=graph, X=X: accelviz.spmm(g, X))
            start = time.perf_counter()
            result = calls[1]()
            first = time.perf_counter() - start
            assert Oracle(graph, X).error(result) <= 1
            row = [np.median(host_seconds(call, options.repeats)) * 1e3 for call in calls]
            turns = [[host_seconds(call, 1)[0] for call in calls] for _ in range(options.repeats)]
            turn = np.median(turns, axis=0) * 1e3
            print(
                f"{name:<14} {n_cols:7} {row[0]:7.3f} {row[1]:7.3f} {row[0] / row[1]:7.2f} |"
                f" {turn[0]:14.3f} {turn[1]:7.3f} {turn[0] / turn[1]:7.2f} | {first * 1e3:.2f}"
            )


def preprocessing(options: argparse.Namespace) -> None:
    """Compare degree sort and metadata with NumPy's sort of the degrees."""
    for name in options.graphs:
        degrees = np.repeat(*TABLE_ONE[name].histogram())
        np.random.default_rng(0).shuffle(degrees)
        print(f"{name}: {degrees.size:,} rows, {degrees.sum():,} nonzeros")
        sort_degrees(degrees, options.repeats)


def sort_degrees(degrees: np.ndarray, repeats: int) -> None:
    row_pointers = np.concatenate([[0], np.cumsum(degrees)])
    calls = {"degree sort and metadata": lambda: block_partition(sort_by_degree(row_pointers)[1])}
    for dtype in (np.int64, np.int32):
        array = degrees.astype(dtype)
        name = f"numpy.argsort(stable) of {array.dtype}"
        calls[name] = lambda array=array: np.argsort(array, kind="stable")
    ours = 0.0
    for name, call in calls.items():
        seconds = host_seconds(call, repeats, warmup=3)
        low, median, high = np.percentile(seconds, [25, 50, 75]) * 1e3
        ours = ours or median
        text = f"{median:8.2f} ms (quartiles {low:.2f} to {high:.2f})"
        print(f"{name:<33} {text}   ratio {median / ours:.1f}")
    # tracemalloc includes Numba's arrays, which Numba allocates through NumPy.
    tracemalloc.start()
    permutation, histogram = sort_by_degree(row_pointers)
    metadata = block_partition(histogram)
    _, peak = tracemalloc.get_traced_memory()
    outputs = permutation.order.nbytes + metadata.nbytes
    print(f"memory beyond inputs and outputs: {(peak - outputs) / degrees.size:.2f} bytes a row")


if __name__ == "__main__":
    main()
