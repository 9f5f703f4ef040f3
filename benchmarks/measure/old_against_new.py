"""Time the kernels of two checkouts of this project alternately on one GPU.

    python benchmarks/measure/old_against_new.py ../before . --output old_against_new.csv
    python benchmarks/measure/old_against_new.py ../before . --operations gat spmm --graphs cora

Each checkout runs in its own process, which checks each result before it is timed. Prints the
geometric mean of old over new, and the worst case of each operation. A case is an operation, a
strategy, a graph and a column count.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

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
    """Time each case from standard input; write medians in microseconds as JSON lines."""
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
    """Start the process that times cases with a checkout's package."""
    command = [sys.executable, str(Path(__file__).resolve()), "--serve"]
    environment = os.environ | {"PYTHONPATH": str(checkout.resolve())}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, cwd=checkout, env=environment, text=True, **pipes)


def ask(process: subprocess.Popen[str], case: dict[str, Any]) -> dict[str, Any]:
    """Send a case to a process; return its answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps(case), file=process.stdin, flush=True)
    for line in process.stdout:
        if line.startswith("{"):
            return json.loads(line)
    raise SystemExit("a process ended before it answered")


def cases(options: Any, checkouts: dict[str, subprocess.Popen[str]]) -> Iterator[dict[str, Any]]:
    """Time each case alternately; yield the shortest time of each checkout."""
    for operation in options.operations:
        for case in itertools.product(
            [operation], OPERATIONS[operation], options.graphs, options.columns
        ):
            row: dict[str, Any] = dict(zip(CASE, case, strict=True))
            task = {**row, "repeats": options.repeats, "device": options.device}
            row |= {"old_us": np.inf, "new_us": np.inf, "problem": ""}
            for _ in range(options.rounds):
                for side, process in checkouts.items():
                    answer = ask(process, task)
                    row[f"{side}_us"] = np.nanmin([row[f"{side}_us"], answer["us"]])
                    row["problem"] = row["problem"] or answer["problem"]
            yield {**row, "ratio": row["old_us"] / row["new_us"]}


def main() -> None:
    from study import parser, record  # here, as the other processes import another checkout

    arguments = parser(__doc__, graphs=GRAPHS, columns=COLUMNS, repeats=50, output=False)
    arguments.add_argument("old", type=Path, help="a checkout")
    arguments.add_argument("new", type=Path, help="another")
    arguments.add_argument("--operations", nargs="+", default=OPERATIONS, choices=OPERATIONS)
    arguments.add_argument("--rounds", type=int, default=3, help="turns of each checkout")
    arguments.add_argument("--device", default="cuda")
    arguments.add_argument("--output", type=Path, help="CSV, written after each case")
    options = arguments.parse_args()
    checkouts = {"old": start(options.old), "new": start(options.new)}
    table = record(cases(options, checkouts), options.output)
    for process in checkouts.values():
        process.terminate()
    for name, times in table.query("ratio > 0 and ratio < inf").groupby("operation", sort=False):
        worst, mean = times.loc[times.ratio.idxmin()], np.exp(np.log(times.ratio).mean())
        where = ", ".join(str(worst[key]) for key in CASE[1:])
        text = f"{len(times)} cases, old / new {mean:.3f}; worst {worst.ratio:.3f} {where}"
        print(f"{name}: {text}")


if __name__ == "__main__":
    serve() if "--serve" in sys.argv else main()
