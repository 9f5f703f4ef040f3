"""Time the kernels of two checkouts of this project in turns on one GPU.

    python benchmarks/measure/old_against_new.py ../before . --output old_against_new.csv
    python benchmarks/measure/old_against_new.py ../before . --operations gat spmm --graphs cora

Each checkout has a process of its own, which checks each result before it is timed. Prints the
geometric mean of old over new and the worst case of each operation. A case is an operation, a
strategy, a graph and a column count.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

OPERATIONS = {
    "spmm": ("accel_gcn", "lane_groups", "window_tiles", "windows", "merge_path", "gnnadvisor"),
    "spmm_gradient": ("lane_groups", "row_warp"),
    "sddmm": ("lane_groups", "window_tiles", "tc_gnn", "row_warp"),
    "edge_softmax": ("lane_groups", "row_warp"),
    "edge_softmax_gradient": ("lane_groups", "row_warp"),
    **{
        f"{score}{suffix}": ("lane_groups", "row_warp")
        for score in ("gat", "gatv2", "cosine")
        for suffix in ("", "_gradient")
    },
}
GRAPHS, COLUMNS = ("cora", "citeseer", "pubmed", "artist"), (16, 64, 128)
CASE = ["operation", "strategy", "graph", "columns"]


def serve() -> None:
    """Answer each case on standard input with its median time in microseconds, as JSON lines."""
    import accelviz

    for line in sys.stdin:
        case = json.loads(line)
        try:
            wanted = case["graph"], case["strategy"], case["columns"], case["device"]
            options = {key: case[key] for key in ("operation", "repeats")}
            row = accelviz.benchmark(*wanted, states=("warm",), progress=False, **options).iloc[0]
            answer = {"us": float(row["median_us"]), "problem": ""}
        except Exception as error:
            answer = {"us": float("nan"), "problem": f"{type(error).__name__}: {error}"}
        print(f"\n{json.dumps(answer)}", flush=True)


def start(checkout: Path) -> subprocess.Popen[str]:
    """Start the process that times cases with the package of a checkout."""
    command = [sys.executable, str(Path(__file__).resolve()), "--serve"]
    environment = os.environ | {"PYTHONPATH": str(checkout.resolve())}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, cwd=checkout, env=environment, text=True, **pipes)


def ask(process: subprocess.Popen[str], case: dict[str, Any]) -> dict[str, Any]:
    """Let a process time a case."""
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps(case), file=process.stdin, flush=True)
    for line in process.stdout:
        if line.startswith("{"):
            return json.loads(line)
    raise SystemExit("a process ended before it answered")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path, help="a checkout")
    parser.add_argument("new", type=Path, help="another")
    parser.add_argument("--operations", nargs="+", default=OPERATIONS, choices=OPERATIONS)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS, help="names that load_graph takes")
    parser.add_argument("--columns", nargs="+", type=int, default=COLUMNS)
    parser.add_argument("--rounds", type=int, default=3, help="turns of each checkout")
    parser.add_argument("--repeats", type=int, default=50, help="timed runs of a turn")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--output", type=Path, help="CSV, written after each case")
    options = parser.parse_args()
    checkouts = {"old": start(options.old), "new": start(options.new)}
    rows = []
    for name in options.operations:
        for strategy, graph, columns in itertools.product(
            OPERATIONS[name], options.graphs, options.columns
        ):
            case = dict(zip(CASE, (name, strategy, graph, columns), strict=True))
            more = {"repeats": options.repeats, "device": options.device}
            row: dict[str, Any] = dict(case)
            for turn, (side, process) in itertools.product(
                range(options.rounds), checkouts.items()
            ):
                answer = ask(process, case | more)
                row[f"{side}_us"] = np.nanmin([row.get(f"{side}_us", np.inf), answer["us"]])
                row["problem"] = row.get("problem") or answer["problem"]
                if turn == 0 and answer["problem"]:
                    print(f"{side} {case}: {answer['problem'][:200]}", file=sys.stderr)
            rows.append(row | {"ratio": row["old_us"] / row["new_us"]})
            if options.output:
                pd.DataFrame(rows).to_csv(options.output, index=False)
        times = pd.DataFrame(rows).query("operation == @name and ratio > 0 and ratio < inf")
        if len(times):
            worst, mean = times.loc[times.ratio.idxmin()], np.exp(np.log(times.ratio).mean())
            where = ", ".join(str(worst[key]) for key in CASE[1:])
            print(
                f"{name}: {len(times)} cases, old / new {mean:.3f}; worst {worst.ratio:.3f} {where}"
            )
            sys.stdout.flush()
    for process in checkouts.values():
        process.terminate()


if __name__ == "__main__":
    serve() if "--serve" in sys.argv else main()
