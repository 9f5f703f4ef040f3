"""Hardware counters of the cases in which a peer is nearest to ours, or faster, on one GPU.

    python benchmarks/measure/peer_counters.py --libraries LIBRARIES --output counters-peers.csv

Libraries as of `peers.py`. The script runs itself under `ncu`, where `launch` launches the fastest
variant of each contender once, warm, behind a kernel named `marker`. A row is a kernel of a
contender; a stage with a gradient has several. Clocks are not changed.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import nsight
from counters import METRICS
from peers import prepared, timed
from study import Row, full_machine, parser, record

#: Graph, operation, heads, columns, stage and peer.
CASES = (
    ("ppa-twin:natural@11", "spmm", 0, 256, "forward", "voltrix"),
    ("ppa-twin:natural@11", "max", 0, 256, "both", "turbo_gnn"),
    ("ca-astroph", "sddmm", 1, 256, "forward", "rode"),
    ("yelp-twin:shuffled@11", "spmm", 0, 128, "forward", "rode"),
)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--libraries", type=Path, required=True, help="of ../peers/build.py")
    options.add_argument("--launch", action="store_true", help="for ncu only")
    chosen = options.parse_args()
    if chosen.launch:
        launch(chosen)
    else:
        record(rows(chosen), chosen.output, full_machine())


def rows(options: Namespace) -> Iterator[Row]:
    """Run this script under ncu; yield the counters of each kernel."""
    script = [__file__, "--launch", "--libraries", options.libraries, "--output", options.output]
    kernels = nsight.launches(map(str, script), [".*"], METRICS.values(), warm=True, marked=True)
    contenders = iter((case, contender) for case in CASES for contender in ("ours", case[-1]))
    for kernel, counts in kernels:
        if kernel == "marker":
            (graph, operation, heads, columns, stage, _), contender = next(contenders)
            about = {"graph": graph, "operation": operation, "heads": heads, "columns": columns}
            about |= {"stage": stage, "contender": contender}
            continue
        yield {**about, "kernel": kernel, **{name: counts.get(of) for name, of in METRICS.items()}}


def launch(options: Namespace) -> None:
    """Launch the fastest variant of both contenders of each case between the profiler's marks."""
    import cupy
    from peer_kernels import CONTENDERS, load
    from peer_problems import DeviceGraph, Problem

    marker = cupy.RawKernel('extern "C" __global__ void marker() {}', "marker")
    graphs = {name: DeviceGraph(prepared(name)[0]) for name in {case[0] for case in CASES}}
    for graph, operation, heads, columns, stage, peer in CASES:
        problem = Problem(operation, graphs[graph], heads, columns)
        for name in ("ours", peer):
            fastest = None
            for one in CONTENDERS:
                if one.name != name or operation not in one.operations or one.dtype == "float16":
                    continue
                library = load(options.libraries, one.library)
                for variant in one.operations[operation](library, problem):
                    if variant.stage != stage:
                        continue
                    us = timed(variant.run, 5)["median_us"]
                    if fastest is None or us < fastest[0]:
                        fastest = us, variant
            assert fastest is not None
            cupy.cuda.Device().synchronize()
            cupy.cuda.profiler.start()
            marker((1,), (1,), ())
            fastest[1].run()
            cupy.cuda.Device().synchronize()
            cupy.cuda.profiler.stop()
            print(graph, operation, columns, name, *fastest[:1], fastest[1].name, file=sys.stderr)
        del problem
        cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
