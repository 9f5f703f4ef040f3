"""How long a sweep takes, and the explorer's opening and a step of its sliders, without a browser.

    python benchmarks/measure/explorer.py --graph citation

What a key press takes to the painted picture in a real JupyterLab, the browser test prints:
`python -m pytest -m "large or not large" tests/browser -k latency`.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable

import numpy as np

import accelviz
from accelviz.ordering import DegreeHistogram

#: As many rows as ogbn-papers100M has nodes, and more distinct degrees than any graph of Table I.
ROWS, DISTINCT, EXPONENT = 111_000_000, 11_000, 1.9


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graph", default="citation")
    options = parser.parse_args()

    histogram = made_up()
    settings = {
        "max_block_warps": range(2, 33),
        "max_warp_nzs": [4, 8, 16, 32, 64, 128, 256, 512],
    }
    print(
        f"sweep of 31 x 8 settings, {histogram.n_rows:,} rows, {histogram.nnz:,} nonzeros, "
        f"{histogram.degrees.size:,} distinct degrees: "
        f"{timed(lambda: accelviz.sweep(histogram, **settings))}"
    )
    graph = accelviz.load_graph(options.graph)
    before = memory()
    start = time.perf_counter()
    panel = accelviz.explore(graph)
    opened = time.perf_counter() - start
    print(f"explore({graph.name!r}) opens in {opened:.2f} s and holds {memory() - before:.0f} MB")
    print(f"  the whole process then has {memory():.0f} MB, {peak():.0f} MB at its peak")
    for name, values in (
        ("max_block_warps", range(2, 33)),
        ("max_warp_nzs", [8, 12, 16, 24, 48, 64]),
    ):
        steps = iter([*values, *values])
        step = timed(
            lambda name=name, steps=steps: panel.set(**{name: next(steps)}), len(values) * 2
        )
        print(f"  a step of {name}: {step}")


def made_up() -> DegreeHistogram:
    """Make a power law with that many rows and distinct degrees."""
    degrees = np.unique(np.geomspace(1, 250_000, 3 * DISTINCT).astype(np.int64))
    degrees = np.unique(np.concatenate([np.arange(1, 4000), degrees]))[:DISTINCT]
    weight = degrees**-EXPONENT
    return DegreeHistogram(degrees, np.maximum(1, ROWS * weight / weight.sum()).astype(np.int64))


def timed(call: Callable[[], object], repeats: int = 11) -> str:
    """Call once to warm up where that changes nothing, then time; say median and quartiles."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    low, median, high, most = np.percentile(seconds, [25, 50, 75, 90]) * 1e3
    return f"{median:.1f} ms (quartiles {low:.1f} to {high:.1f}, p90 {most:.1f}) of {repeats}"


def memory() -> float:
    """Resident memory of this process now, in MB."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / 1e6


def peak() -> float:
    """Largest resident memory of this process so far, in MB."""
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    main()
