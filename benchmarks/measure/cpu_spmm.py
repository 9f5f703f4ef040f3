"""`spmm(device="cpu")` against SciPy's `A @ X`, in one run.

Times whole calls, output allocation included, in two ways: each side's calls in a row, and both
sides in turn, where each finds the caches as the other left them. Reports the ratio of medians for
both, and our very first call, which plans.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numba
import numpy as np

import accelviz
from accelviz import measure
from accelviz.measure.accuracy import Oracle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", nargs="+", default=["email-enron", "cora", "mit8"])
    parser.add_argument("--columns", nargs="+", type=int, default=[64])
    parser.add_argument("--repeats", type=int, default=60)
    options = parser.parse_args()

    warm = accelviz.load_graph("citeseer")
    accelviz.spmm(warm, measure.features(warm.shape[1], 3), device="cpu")  # compiles
    print(f"{numba.get_num_threads()} threads; medians in ms, {options.repeats} calls")
    print("graph          columns   SciPy    ours   ratio | in turn: SciPy    ours   ratio | first")
    for name in options.graphs:
        for n_cols in options.columns:
            graph = accelviz.load_graph(name)
            X = measure.features(graph.shape[1], n_cols)
            A = graph.adjacency

            def ours(graph=graph, X=X) -> np.ndarray:
                return accelviz.spmm(graph, X, device="cpu")

            def scipy(A=A, X=X) -> np.ndarray:
                return A @ X

            start = time.perf_counter()
            result = ours()
            first = time.perf_counter() - start
            assert Oracle(graph, X).error(result) <= 1
            row = [np.median(times(f, options.repeats)) * 1e3 for f in (scipy, ours)]
            turns = np.array(
                [[times(f, 1)[0] for f in (scipy, ours)] for _ in range(options.repeats)]
            )
            turn = np.median(turns, axis=0) * 1e3
            print(
                f"{name:<14} {n_cols:7} {row[0]:7.3f} {row[1]:7.3f} {row[0] / row[1]:7.2f} |"
                f" {turn[0]:14.3f} {turn[1]:7.3f} {turn[0] / turn[1]:7.2f} | {first * 1e3:.2f}"
            )


def times(function: Callable[[], np.ndarray], repeats: int) -> list[float]:
    """Time calls, in seconds."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return found


if __name__ == "__main__":
    main()
