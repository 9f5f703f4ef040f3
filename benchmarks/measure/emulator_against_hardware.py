r"""Memory accesses counted by the emulator, beside those counted by Nsight Compute on a GPU.

The three steps may run on different machines: the first needs a C++ compiler, the second `ncu`:

    python benchmarks/measure/emulator_against_hardware.py emulate --output emulated.csv
    python benchmarks/measure/emulator_against_hardware.py profile --output profiled.csv
    python benchmarks/measure/emulator_against_hardware.py compare --output compared.csv \
        --counts emulated.csv profiled.csv

Each step counts whole launches of every strategy's kernel on bundled graphs. The table has a row
per case and quantity: both counts, their ratio, and the reason of a difference.
"""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Iterator
from pathlib import Path

import nsight
import numpy as np
import pandas as pd
from study import Row, parser, record, write

import accelviz
from accelviz import measure
from accelviz.analysis.traffic import launch_traffic
from accelviz.devices import find_device
from accelviz.measure.records import source_commit
from accelviz.plans import Plan

#: Graphs and column counts: few and many columns, not only multiples of 32, split rows.
CASES = {"cora": (16, 32, 64, 100, 128), "citeseer": (32, 64), "as-caida": (32,), "facebook": (32,)}
KEY = ["strategy", "graph", "columns"]

_LSU = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
_SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
#: Quantities, and Nsight Compute's counters whose sum they are.
METRICS = {
    "global load requests": [_LSU.format("requests", "ld")],
    "global load sectors": [_LSU.format("sectors", "ld")],
    "global store requests": [_LSU.format("requests", "st")],
    "global store sectors": [_LSU.format("sectors", "st")],
    "global atomic requests": [_LSU.format("requests", "red"), _LSU.format("requests", "atom")],
    "global atomic sectors": [_LSU.format("sectors", "red"), _LSU.format("sectors", "atom")],
    "shared load wavefronts": [_SHARED.format("ld")],
    "shared store wavefronts": [_SHARED.format("st")],
    "shared atomic wavefronts": [_SHARED.format("atom")],
}
#: Relative difference below which counts need no explanation.
_CLOSE = 0.02
_CAS_LOOP = (
    "a shared atomicAdd of floats (atomicAdd_block) is a loop in machine code: LDS, "
    "then ATOMS.CAST.SPIN, which takes two wavefronts, again where another warp came between"
)
_UNROLLED = (
    "the compiler unrolls the loop over nonzeros (row_thread.cu): degree % 4 of them, then 16 at a "
    "time while more than 12 are left, then 8, then 4, each with loads of its own, so lanes with "
    "rows of different length part; counting that gives the hardware's requests exactly"
)
_SAME_ADDRESS = (
    "with 16 columns a warp holds two edges, often of one row; the hardware counts an atomic's "
    "sectors for each group of lanes that adds to the same addresses, the emulator once for a warp"
)
#: Reasons of differences by strategy and quantity, as found in the machine code.
_WHY = {
    ("accel_gcn", "shared load wavefronts"): _CAS_LOOP,
    ("accel_gcn", "shared atomic wavefronts"): _CAS_LOOP,
    ("gnnadvisor", "shared load wavefronts"): _CAS_LOOP,
    ("gnnadvisor", "shared atomic wavefronts"): _CAS_LOOP,
    ("fusegnn_gas", "global atomic sectors"): _SAME_ADDRESS,
    ("row_thread", "global load requests"): _UNROLLED,
    ("row_thread", "global load sectors"): _UNROLLED,
}


def main() -> None:
    commands = {"emulate": emulate, "profile": profile, "compare": compare}
    commands["launch"] = lambda _: nsight.launch(plan for _, plan in cases())
    arguments = parser(__doc__, output=False)
    arguments.add_argument("command", choices=commands, help="launch is what ncu runs")
    arguments.add_argument("--counts", nargs=2, help="what emulate and profile have written")
    arguments.add_argument("--output", type=Path, help="CSV to write")
    options = arguments.parse_args()
    commands[options.command](options)


def cases() -> Iterator[tuple[Row, Plan]]:
    for strategy in accelviz.strategies():
        for name, columns in CASES.items():
            graph = accelviz.load_graph(name)
            for n_cols in columns:
                plan = accelviz.plan(graph, strategy, n_cols)
                if plan.kernel is not None:
                    yield {"strategy": strategy, "graph": name, "columns": n_cols}, plan


def emulate(options: argparse.Namespace) -> None:
    record(emulated_counts(), options.output)


def emulated_counts() -> Iterator[Row]:
    """Count the memory accesses of each case in the emulator."""
    for case, plan in cases():
        traffic = launch_traffic(plan, measure.features(plan.pattern.shape[1], plan.n_cols))
        counts = traffic.groupby(["space", "kind"])[["requests", "sectors", "wavefronts"]].sum()
        for quantity in METRICS:
            space, kind, unit = quantity.split()
            known = (space, kind) in counts.index
            count = counts.loc[(space, kind), unit] if known else 0
            yield {**case, "quantity": quantity, "count": count}


def profile(options: argparse.Namespace) -> None:
    metrics = {metric for group in METRICS.values() for metric in group}
    launches = nsight.profile([__file__, "launch"], [plan for _, plan in cases()], metrics)
    known = [case for case, plan in cases() if plan.launch.n_blocks]
    if len(launches) != len(known):
        raise SystemExit(f"{len(launches)} launches for {len(known)} cases")
    rows = []
    for case, row in zip(known, launches, strict=True):
        for quantity, group in METRICS.items():
            counts = [row[metric] for metric in group if metric in row]
            rows.append({**case, "quantity": quantity, "count": sum(counts) if counts else ""})
    record(rows, options.output, find_device("cuda").hardware())


def compare(options: argparse.Namespace) -> None:
    emulated, profiled = map(pd.read_csv, options.counts)
    both = profiled.merge(emulated, on=[*KEY, "quantity"], suffixes=("_hardware", "_emulated"))
    both = both[(both["count_hardware"] > 0) | (both["count_emulated"] > 0)]
    both["ratio"] = np.round(both["count_emulated"] / both["count_hardware"], 4)
    reasons = [
        _WHY.get(key, "unexplained") for key in zip(both.strategy, both.quantity, strict=True)
    ]
    both["why"] = np.where(abs(both["ratio"] - 1) <= _CLOSE, "", reasons)
    both.insert(0, "date", datetime.date.today().isoformat())
    both.insert(1, "commit", source_commit())
    write(both, options.output)
    print(both[[*KEY, "quantity", "count_emulated", "count_hardware", "ratio"]].to_string())


if __name__ == "__main__":
    main()
