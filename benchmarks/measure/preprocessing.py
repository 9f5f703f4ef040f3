"""Degree sort plus metadata against NumPy's stable sort of the degrees alone, in one run.

Takes a degree distribution (CSV with the columns graph, degree, rows), deals the degrees to rows at
random and plans: counting sort, histogram, block-level metadata; the CSR is not permuted. Reports
the ratio of medians, and the memory in use beyond inputs and outputs per row.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pandas as pd

from accelviz.ordering import sort_by_degree
from accelviz.partition.block_level import block_partition


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("degrees", help="CSV with the columns graph, degree, rows")
    parser.add_argument("--graph", default="Citation")
    parser.add_argument("--repeats", type=int, default=21)
    options = parser.parse_args()

    table = pd.read_csv(options.degrees)
    table = table[table.graph == options.graph]
    degrees = np.repeat(table.degree.to_numpy(np.int64), table.rows.to_numpy())
    np.random.default_rng(0).shuffle(degrees)
    row_pointers = np.concatenate([[0], np.cumsum(degrees)])
    print(f"{options.graph}: {degrees.size:,} rows, {degrees.sum():,} nonzeros")

    def preprocess() -> None:
        _, histogram = sort_by_degree(row_pointers)
        block_partition(histogram)

    def numpy_sort(dtype: type) -> Callable[[], None]:
        array = degrees.astype(dtype)
        return lambda: np.argsort(array, kind="stable")

    ours = quartiles(preprocess, options.repeats)
    print(f"degree sort and metadata          {show(ours)}")
    for dtype in (np.int64, np.int32):
        theirs = quartiles(numpy_sort(dtype), options.repeats)
        name = f"numpy.argsort(stable) of {np.dtype(dtype).name}"
        print(f"{name:<33} {show(theirs)}   ratio {theirs[1] / ours[1]:.1f}")

    # Numba allocates through NumPy, so tracemalloc sees its arrays.
    tracemalloc.start()
    permutation, histogram = sort_by_degree(row_pointers)
    metadata = block_partition(histogram)
    _, peak = tracemalloc.get_traced_memory()
    outputs = permutation.order.nbytes + metadata.nbytes
    print(f"memory beyond inputs and outputs: {(peak - outputs) / degrees.size:.2f} bytes a row")


def quartiles(function: Callable[[], None], repeats: int) -> np.ndarray:
    """Time calls after three to warm up; quartiles in seconds."""
    times = []
    for _ in range(repeats + 3):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return np.percentile(times[3:], [25, 50, 75])


def show(found: np.ndarray) -> str:
    low, median, high = found * 1e3
    return f"{median:8.2f} ms (quartiles {low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
