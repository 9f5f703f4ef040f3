"""Time and memory of PyTorch programs with `accelviz.torch`, beside PyTorch Geometric's layers.

    python benchmarks/measure/torch_training.py all --output torch-training-gpu.csv
    python benchmarks/measure/torch_training.py steps --graphs cora yelp --models gcn --output x.csv
    python benchmarks/measure/torch_training.py steps graphs changing --device cpu --threads 2 \
        --output torch-training-cpu.csv

`steps`, `captured`, `compiled`: a training step (forward, cross entropy, backward, Adam) of two
layers, 128 -> 64 -> 16, on one graph: in a plain loop, captured as one CUDA graph, or with
`torch.compile`. `host`: one layer's forward pass, alone and with its backward pass. `minibatch`:
1,024 seeds, 10 x 10 neighbors, a new batch in each step, as one subgraph or as blocks. `graphs`:
batches of 128 small graphs, GIN of three layers. `changing`: a new small graph in each step. The
last three have the step with and without the sampling of its batch. `first`: a model's first call
in a fresh process, with a warm cache.

Both libraries take turns in one process: a block of steps each, then again. Times are medians of
blocks over their number of steps, with 10th and 90th percentile; host_ms ends when the loop has
queued its work. Both start with the same parameters and have to reach the same loss. peak_mib is
memory beyond features and edge_index. What fails has its message in the column `error`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from study import Row, append, full_machine, parser

FORMS = ("edge_index", "csr", "EdgeIndex", "cached", "csr cached", "loops")
MODELS = ("gcn", "sage", "sage-max", "gin", "gat", "gatv2", "agnn")
ATTENTION = ("gat", "gatv2", "agnn")
LARGE = ("collab shuffled", "yelp", "rmat 20 M")


class Command(NamedTuple):
    """Default cases of a command, and its limit in seconds."""

    graphs: tuple[str, ...]
    models: tuple[str, ...]
    forms: tuple[str, ...]
    limit: float
    parts: tuple[str, ...] = ("whole",)
    cpu_graphs: tuple[str, ...] = ()


SAMPLED = ("whole", "without sampling")
COMMANDS = {
    "host": Command(("cora",), MODELS, FORMS[:5], 90, ("forward", "forward and backward")),
    "steps": Command(
        ("cora", "pubmed", "email-enron", *LARGE), MODELS, FORMS, 150, cpu_graphs=("rmat 2 M",)
    ),
    "captured": Command(("cora", "pubmed", "email-enron", *LARGE), MODELS, FORMS, 90),
    "minibatch": Command(
        ("rmat 20 M",), ("sage", "gcn", "gat"), ("edge_index", "blocks"), 90, SAMPLED, ("rmat 2 M",)
    ),
    "graphs": Command(("molecules",), ("gin",), ("edge_index",), 40, SAMPLED),
    "changing": Command(
        ("rmat small",), ("gcn", "sage", "gin", "gat"), ("edge_index",), 60, SAMPLED
    ),
    "first": Command(("cora",), ("gcn", "gat"), ("edge_index",), 80),
    "compiled": Command(("yelp",), ("gcn", "gat", "sage"), FORMS[::3], 110),
}
COLUMNS = (
    *("command", "graph", "nodes", "edges", "model", "library", "form", "part", "median_ms"),
    *("p10_ms", "p90_ms", "host_ms", "first_ms", "peak_mib", "first_loss", "loss", "difference"),
    *("blocks", "steps", "error", "hardware", "driver", "cuda", "cupy", "torch", "pyg", "threads"),
    *("date", "run", "commit"),
)
#: What identifies a contender within a case, and a case.
CONTENDER, CASE = ("library", "form", "part"), ("command", "graph", "model")
#: Exit status of a worker that has reported a failure and needs a new process.
RESTART = 77
now = time.monotonic


def main() -> None:
    options = parse()
    if options.threads:
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
        os.environ |= dict.fromkeys(names, str(options.threads))
    machine = full_machine(options.device)
    machine |= {"torch": version("torch"), "pyg": version("torch-geometric")}
    machine |= {"threads": options.threads, "run": time.strftime("%Y-%m-%d %H:%M:%S")}
    for command in COMMANDS if options.commands == ["all"] else options.commands:
        limit = options.limit or COMMANDS[command].limit * (4 if options.device == "cpu" else 1)
        rows = first(options, limit) if command == "first" else run(command, options, limit)
        table = []
        for row in rows:
            append([dict.fromkeys(COLUMNS) | row | machine], options.output)
            report(row)
            table.append(row)
        summarize(table)


def parse() -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("commands", nargs="+", choices=[*COMMANDS, "all"], metavar="COMMAND")
    options.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    for name in ("graphs", "models", "forms", "libraries"):
        options.add_argument(f"--{name}", nargs="+", help="default: those of the command")
    options.add_argument("--blocks", type=int, default=11, help="timed blocks of a case")
    options.add_argument("--limit", type=float, help="seconds of a command")
    options.add_argument("--case-limit", type=float, default=90, help="seconds without a result")
    options.add_argument("--threads", type=int, help="of a CPU")
    options.add_argument("--tiny", action="store_true", help="small graphs and few steps: a test")
    return options.parse_args()


# The parent: starts workers, and another one after a worker's end.


def cases_of(name: str, options: argparse.Namespace) -> list[Row]:
    """Return the cases of a command, with the contenders of each."""
    command = COMMANDS[name]
    graphs = (
        command.cpu_graphs if options.device == "cpu" and command.cpu_graphs else command.graphs
    )
    if options.tiny and name != "graphs":
        graphs = ("rmat tiny",)
    forms = options.forms or (*command.forms, *(("Edges",) if len(command.forms) > 1 else ()))
    libraries = options.libraries or ("PyG", "accelviz")
    cases = []
    for graph in options.graphs or graphs:
        for model in options.models or command.models:
            contenders = [
                {"library": library, "form": form, "part": part}
                for part in command.parts
                for form in forms
                for library in libraries
                if exists(name, model, library, form)
            ]
            case = {"command": name, "graph": graph, "model": model}
            cases.append({**case, "contenders": contenders})
    return cases


def exists(command: str, model: str, library: str, form: str) -> bool:
    """Return whether a library and a model have a form."""
    if form == "Edges":
        return library == "accelviz" and command != "minibatch"
    return ("cached" not in form or model == "gcn") and (form != "loops" or model in ATTENTION)


def run(command: str, options: argparse.Namespace, limit: float) -> Iterator[Row]:
    """Yield a row for each contender; a worker that dies loses one contender, or a case."""
    deadline = now() + limit
    pending, broken = cases_of(command, options), {}
    while pending and now() < deadline:
        current = None  # what the worker builds
        with tempfile.TemporaryFile("w+") as errors:
            worker = start_worker(pending, options, errors)
            for message in messages(worker, lambda: min(options.case_limit, deadline - now())):
                if "start" in message:
                    current = message["start"]
                elif "row" in message:
                    row, current = message["row"], None
                    pending[0]["contenders"].remove({name: row[name] for name in CONTENDER})
                    if command == "captured" and "error" in row:
                        broken[pending[0]["model"], row["library"], row["form"]] = row["error"]
                    yield {**about(pending[0]), **row}
                else:
                    pending.pop(0)
            worker.wait()
            errors.seek(0)
            last_line = ["", *errors.read().strip().splitlines()][-1][:200]
        if pending and worker.returncode not in (0, RESTART):
            late = "the limit was reached" if now() >= deadline else "no result in time"
            signal = late if worker.returncode == -9 else f"ended by signal {-worker.returncode}"
            problem = last_line if worker.returncode > 0 else signal
            case = pending[0] if current else pending.pop(0)
            for contender in [current] if current else case["contenders"]:
                yield {**about(case), **contender, "error": problem}
            if current:
                case["contenders"].remove(current)
        # A failed capture needs a new process: it is not repeated on another graph.
        for case in pending:
            for contender in case["contenders"][:]:
                key = case["model"], contender["library"], contender["form"]
                if key in broken:
                    case["contenders"].remove(contender)
                    yield {**about(case), **contender, "error": f"before: {broken[key]}"[:200]}
    for case in pending:
        for contender in case["contenders"]:
            yield {**about(case), **contender, "error": f"not run: limit of {limit:.0f} s"}


def about(case: Row) -> Row:
    return {name: case[name] for name in CASE}


def start_worker(cases: list[Row], options: argparse.Namespace, errors: Any) -> Any:
    """Start a process that measures cases and prints messages."""
    arguments = {"cases": cases, "device": options.device, "tiny": options.tiny}
    arguments["blocks"] = 2 if options.tiny else options.blocks
    script = str(Path(__file__).with_name("torch_worker.py"))
    command = [sys.executable, script, json.dumps(arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)


def messages(worker: Any, seconds: Callable[[], float]) -> Iterator[dict[str, Any]]:
    """Yield the messages of a worker; kill it after `seconds()` without one."""
    while True:
        watchdog = threading.Timer(max(seconds(), 0.1), worker.kill)
        watchdog.start()
        line = worker.stdout.readline()
        watchdog.cancel()
        if not line:
            return
        if line.startswith("{"):
            yield json.loads(line)


def report(row: Row) -> None:
    """Print a row."""
    names = (row["command"], row["graph"], row["model"], row["library"], row["form"], row["part"])
    if row.get("error"):
        figures = f"error: {row['error']}"
    else:
        figures = "{median_ms:.4f} ms ({p10_ms:.4f} to {p90_ms:.4f})".format(**row)
        figures += f", host {row['host_ms']:.4f}, {row['peak_mib']:.0f} MiB"
        figures += f", loss {row['loss']:.5f}"
    print(" | ".join(names), "|", figures, flush=True)


def summarize(rows: list[Row]) -> None:
    """Print, for each case and part, PyG's best form beside our best and our same form."""
    cases: dict[tuple[str, ...], dict[str, dict[str, float]]] = {}
    for row in rows:
        if not row.get("error"):
            key = tuple(row[name] for name in (*CASE, "part"))
            times = cases.setdefault(key, {"PyG": {}, "accelviz": {}})
            time_name = "host_ms" if row["command"] == "host" else "median_ms"
            times[row["library"]][row["form"]] = row[time_name]
    for key, times in cases.items():
        if all(times.values()):
            theirs, ours = times["PyG"], times["accelviz"]
            form, own_form = (min(forms, key=lambda name: forms[name]) for forms in (theirs, ours))
            ratio, same = theirs[form] / ours[own_form], theirs[form] / ours.get(form, np.nan)
            print(
                " ".join(key), f"| {ratio:.2f} times as fast as PyG in {form}: {own_form}", end=""
            )
            print(f"; in the same form {same:.2f}", flush=True)


def first(options: argparse.Namespace, limit: float) -> Iterator[Row]:
    """Yield a model's first calls, each in a process; the first process warms the caches."""
    deadline = now() + limit
    graph = "rmat tiny" if options.tiny else COMMANDS["first"].graphs[0]
    modules = {"PyG": "torch_geometric.nn", "accelviz": "accelviz.torch"}
    for model in options.models or COMMANDS["first"].models:
        for library in options.libraries or modules:
            call = f"first_call({library!r}, {model!r}, {graph!r}, {options.device!r}, seconds)"
            code = (
                f"import time; start = time.perf_counter(); import torch, {modules[library]}; "
                f"seconds = time.perf_counter() - start; import torch_workloads; "
                f"torch_workloads.{call}"
            )
            row = {"command": "first", "graph": graph, "model": model, "library": library}
            row |= {"form": "edge_index", "host_ms": np.nan, "peak_mib": np.nan}
            calls, error = [], f"not done in the limit of {limit:.0f} s"
            while len(calls) < (2 if options.tiny else 3) and now() < deadline:
                try:
                    calls.append(json.loads(run_code(code, deadline - now())))
                except subprocess.TimeoutExpired:
                    break
                except subprocess.CalledProcessError as failure:
                    error = ["", *failure.stderr.strip().splitlines()][-1][:200]
                    break
            warm = calls[1:]
            for part, names in FIRST_PARTS.items():
                result: Row = {"error": error}
                if warm:
                    times = [sum(seconds[name] for name in names) for seconds in warm]
                    result = percentiles(times) | {"blocks": len(warm), "loss": warm[0]["loss"]}
                    result["first_ms"] = 1e3 * sum(calls[0][name] for name in names)
                yield {**row, "part": part, **result}


#: Seconds that are added up for a part of `first`.
FIRST_PARTS = {
    "first call": ("first",),
    "first call and import": ("import", "first"),
    "second call": ("second",),
}


def run_code(code: str, seconds: float) -> str:
    """Return the output of Python code that imports scripts of this folder."""
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=max(seconds, 0.1),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    ).stdout


def percentiles(seconds: Any) -> Row:
    low, median, high = np.percentile(seconds, [10, 50, 90]) * 1e3
    return {"median_ms": median, "p10_ms": low, "p90_ms": high}


if __name__ == "__main__":
    main()
