"""Ours against published kernels: checked against float64 and timed in one run, on one GPU.

    python benchmarks/peers/build.py fetch --sources SOURCES
    python benchmarks/peers/build.py compile --sources SOURCES --output LIBRARIES
    python benchmarks/measure/peers.py --libraries LIBRARIES --output peers-h200.csv
    python benchmarks/measure/peers.py --libraries LIBRARIES --operations bits --output bits.csv
    python -m benchmarks.pages peers

The operation `bits`, which is not among the defaults, has its own matrices: single bits times X, of
as many bits as the column `heads` says.

A graph is `name`, `name:order` or `name:order@seed`: a bundled graph, a twin, or `rmat-N` with N
million edges; the order is natural, shuffled or rabbit. Each graph has a process of its own, which
prepares it while others measure and measures while no other does. A crash costs the case that was
running: it gets a row with the problem, and a new process goes on after it.

Each row is the fastest right setting of a contender. `error` is the largest deviation from float64,
over the sum of the magnitudes of an element's terms (SpMM, SDDMM) or over the largest element. A
result beyond its arithmetic's error is not timed. Times are medians of CUDA events, warm, and
include the zeroing of outputs. `floor_us` is the time of the compulsory bytes at copy speed.
"""

from __future__ import annotations

import argparse
import fcntl
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from study import Row, append, full_machine, parser

from accelviz.datasets import load_graph, rmat
from accelviz.errors import AccelvizError
from accelviz.graph import Graph
from accelviz.measure import random_weights
from accelviz.ordering import vertex_order

GRAPHS = (
    *("ca-astroph", "cit-hepph", "email-enron", "luxembourg-osm"),
    *(
        f"{name}-twin:{order}@11"
        for name in ("collab", "com-amazon", "youtube", "yelp", "citation", "ppa")
        for order in ("natural", "shuffled")
    ),
    *("collab-twin:rabbit@12", "yelp-twin:rabbit@12", "rmat-4", "rmat-16"),
)
COLUMNS = (16, 32, 64, 128, 256)
#: (heads, columns of a head) of attention.
HEADS = ((1, 8), (1, 64), (4, 32), (8, 8), (8, 64))
WIDTHS: dict[str, Sequence[tuple[int, int]]] = {
    "spmm": [(0, d) for d in COLUMNS],
    "sddmm": [(1, d) for d in COLUMNS],
    "gat": HEADS,
    "gatv2": HEADS,
    "max": [(0, d) for d in COLUMNS],
}
#: Columns of X in products of bits by the sizes of A: Table 2.3 of the thesis with another width,
#: the sizes of APNN-TC's programs, and larger ones.
BITS = {
    **dict.fromkeys(("bits-2048-2048", "bits-4096-4096", "bits-8192-8192"), (32, 64, 128)),
    **{f"bits-64-{n}": (n,) for n in (128, 256, 512, 1024)},
    "bits-1024-1024": (1024,),
    "bits-4096-8192": (4096,),
}
#: Rows of A in a product of bits have 1/2 to 1/4096 ones, so that sums of few bits occur.
SHARES = 12
#: Most bytes of the float64 results of a case; larger ones are left out, with a row that says so.
MOST_BYTES = 24 << 30
#: Seconds without progress after which a process counts as hung.
PATIENCE = 40.0
#: Cases that take longer, in seconds, are timed three times only.
LONG = 0.02
PROCESSES = 6


def main() -> None:
    options = parsed()
    if options.worker:
        work(options)
        return
    options.output.parent.mkdir(parents=True, exist_ok=True)
    folder = options.output.parent / f"{options.output.stem}-progress"
    folder.mkdir(exist_ok=True)
    begin = time.monotonic()
    waiting, running = list(options.graphs), []
    while waiting or running:
        late = time.time() > options.deadline
        while waiting and len(running) < PROCESSES and not late:
            running.append(Worker(waiting.pop(0), options, folder))
        if late and waiting:
            print(f"no time for {', '.join(waiting)}", flush=True)
            waiting.clear()
        for worker in list(running):
            if worker.finished(late):
                running.remove(worker)
        time.sleep(0.2)
    if options.output.exists():
        report(pd.read_csv(options.output))
    print(f"{time.monotonic() - begin:.0f} s")


def report(table: pd.DataFrame) -> None:
    """Print the number of rows and their problems."""
    print(f"{len(table)} rows, {int(table['problem'].notna().sum())} with a problem")
    for about, rows in table.groupby(["operation", "contender", "dtype", "problem"]):
        cases = rows[["graph", "order", "heads", "columns"]].astype(str).agg(" ".join, axis=1)
        print(f"  {' '.join(about)[:160]}: {len(rows)} times, first {cases.iloc[0]}")


def parsed() -> argparse.Namespace:
    options = parser(__doc__, graphs=GRAPHS, repeats=9)
    options.add_argument("--libraries", type=Path, required=True, help="of ../peers/build.py")
    options.add_argument("--operations", nargs="+", choices=(*WIDTHS, "bits"), default=list(WIDTHS))
    options.add_argument("--columns", nargs="+", type=int, help="these alone")
    options.add_argument("--contenders", nargs="+", help="these alone, and ours")
    text = "begin no case after these"
    options.add_argument("--seconds", type=float, default=float("inf"), help=text)
    options.add_argument("--worker", help=argparse.SUPPRESS)
    options.add_argument("--deadline", type=float, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.operations == ["bits"] and chosen.graphs == list(GRAPHS):
        chosen.graphs = list(BITS)
    chosen.deadline = chosen.deadline or time.time() + chosen.seconds
    return chosen


class Worker:
    """A process that measures one graph, started again after a crash."""

    def __init__(self, graph: str, options: argparse.Namespace, folder: Path) -> None:
        self._graph, self._output = graph, options.output
        self._deadline = options.deadline
        self._journal = folder / f"{graph.replace(':', '-').replace('@', '-')}.json"
        self._journal.unlink(missing_ok=True)
        self._start()

    def _start(self) -> None:
        arguments = ["--worker", f"{self._graph}={self._journal}"]
        command = [sys.executable, *sys.argv, *arguments, "--deadline", f"{self._deadline}"]
        self._process = subprocess.Popen(command)

    def finished(self, late: bool) -> bool:
        """Return whether the graph is done; restart the process if it crashed or hangs."""
        status, case = self._process.poll(), read_journal(self._journal)
        hangs = case is not None and time.time() - self._journal.stat().st_mtime > PATIENCE
        if status is None and not hangs:
            return False
        if hangs:
            self._process.kill()
            self._process.wait()
        if status == 0 or case is None:
            if status:
                print(f"{self._graph}: the process failed with status {status}", flush=True)
            return True
        problem = "it hangs" if hangs else f"it ended the process with status {status}"
        print(f"{self._graph}: {case['contender']} of {case['operation']}: {problem}", flush=True)
        append([{**case, "problem": problem}], self._output)
        self._journal.unlink()
        if not late:
            self._start()
        return late


def read_journal(path: Path) -> Row | None:
    """Return the case that a process is at, or None before its first and after its last."""
    try:
        case: Row = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return case


def work(options: argparse.Namespace) -> None:
    """Measure one graph: prepare it, wait until no other process measures, and write rows."""
    spec, _, journal = options.worker.rpartition("=")
    graph, about = prepared(spec)
    compile_ours(graph, about["graph"], options)
    results = rows(graph, about, options, Path(journal))
    with options.output.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        start = time.monotonic()
        append(results, options.output)
        print(f"{spec}: {time.monotonic() - start:.0f} s", flush=True)
    Path(journal).unlink(missing_ok=True)


def prepared(spec: str) -> tuple[Graph, Row]:
    """Make the graph of a specification, with random weights."""
    base, _, seed = spec.partition("@")
    name, _, order = base.partition(":")
    if name in BITS:
        graph = bit_matrix(*map(int, name.split("-")[1:]))
    elif name.startswith("rmat-"):
        graph = rmat(int(name.removeprefix("rmat-")) * 1_000_000, order=order or "shuffled")
    elif order:
        twin_order = "natural" if order == "natural" else "shuffled"
        graph = load_graph(name, order=twin_order, seed=int(seed or 0))
    else:
        graph = load_graph(name)
    if order == "rabbit":
        graph = vertex_order(graph, "rabbit").apply_to_graph(graph, columns=True)
    graph = random_weights(graph)
    default = "shuffled" if name.startswith("rmat-") else "as published"
    facts = {"graph": name, "order": order or default, "seed": int(seed or 0)}
    return graph, {**facts, "rows": graph.n_rows, "nonzeros": graph.nnz}


def bit_matrix(rows: int, columns: int) -> Graph:
    """Make a matrix of random bits, whose consecutive rows have different shares of ones."""
    random = np.random.default_rng(rows + columns).random((rows, columns), np.float32)
    ones = random < 0.5 ** (1 + np.arange(rows) % SHARES)[:, None]
    pointers = np.append(0, np.cumsum(ones.sum(axis=1)))
    indices = np.nonzero(ones)[1].astype(np.int32)
    return Graph(pointers, indices, np.ones(indices.size, np.float32), ones.shape, "bits")


def widths(operation: str, graph: str) -> Sequence[tuple[int, int]]:
    """Return the (heads, columns) of a graph's cases; of products of bits the (bits, columns)."""
    if operation == "bits":
        return [(width, d) for d in BITS.get(graph, ()) for width in (1, 2, 3, 4)]
    return WIDTHS[operation]


def compile_ours(graph: Graph, name: str, options: argparse.Namespace) -> None:
    """Plan and compile our kernels in advance, which needs the processor only."""
    from peer_kernels import kernels, our_plans

    from accelviz.devices.cuda.compiler import gpu_architecture
    from accelviz.devices.cuda.cubins import warm

    cases = [
        (operation, heads, d)
        for operation in options.operations
        for heads, d in widths(operation, name)
        if not options.columns or d in options.columns
    ]
    plans = itertools.chain.from_iterable(our_plans(graph, *case) for case in cases)
    warm(kernels(plans), gpu_architecture())


def spec_of(about: Row) -> str:
    """Return the specification of a graph from its facts."""
    return f"{about['graph']}:{about['order']}@{about['seed']}"


def rows(graph: Graph, about: Row, options: argparse.Namespace, journal: Path) -> Iterator[Row]:
    """Yield a row for each case and contender that the output does not have yet."""
    import cupy
    from peer_kernels import CONTENDERS, load
    from peer_problems import DeviceGraph

    from accelviz.devices import find_device

    done = already_measured(options.output, about)
    identity = {**full_machine(), **about}
    copy_bandwidth = find_device("cuda").limits().copy_bandwidth
    on_gpu = DeviceGraph(graph)
    for operation in options.operations:
        start = time.monotonic()
        for heads, d in widths(operation, about["graph"]):
            if time.time() > options.deadline:
                print(f"no time from {spec_of(about)}, {operation}, {heads} x {d} on", flush=True)
                return
            if options.columns and d not in options.columns:
                continue
            case = {**identity, "operation": operation, "heads": heads, "columns": d}
            contenders = [
                one
                for one in CONTENDERS
                if operation in one.operations
                and (operation, heads, d, one.name, one.dtype) not in done
                and (not options.contenders or one.name in ("ours", *options.contenders))
            ]
            case["floor_us"] = floor_us(graph, operation, heads, d, copy_bandwidth)
            for row in measured_case(case, contenders, on_gpu, options, journal, load):
                yield {name: row.get(name) for name in FIELDS}
            cupy.get_default_memory_pool().free_all_blocks()
        seconds = time.monotonic() - start
        print(f"{spec_of(about)}, {operation}: {seconds:.1f} s", flush=True)


#: Columns of the output.
FIELDS = (
    *("hardware", "driver", "cuda", "cupy", "date", "commit", "graph", "order", "seed", "rows"),
    *("nonzeros", "operation", "stage", "heads", "columns", "contender", "dtype", "variant"),
    *("repeats", "median_us", "quartile1_us", "quartile3_us", "error", "errors", "floor_us"),
    "problem",
)


def already_measured(path: Path, about: Row) -> set[tuple[Any, ...]]:
    """Return (operation, heads, columns, contender, dtype) of the rows of a graph in a file."""
    if not path.exists():
        return set()
    table = pd.read_csv(path)
    same = table[["graph", "order", "seed"]] == [about["graph"], about["order"], about["seed"]]
    names = ["operation", "heads", "columns", "contender", "dtype"]
    return set(table.loc[same.all(axis=1), names].itertuples(index=False, name=None))


def floor_us(graph: Graph, operation: str, heads: int, d: int, bandwidth: float) -> float:
    """Return the time of the bytes that an operation has to move, in microseconds."""
    from accelviz.strategies import find_strategy

    name = {"max": "spmm_max", "bits": "bit_product"}.get(operation, operation)
    strategy = find_strategy("split" if operation == "bits" else "lane_groups", name).operation
    sizes = {"n_cols": d, **({"heads": heads} if heads else {})}
    if operation == "bits":
        sizes = {"n_cols": d, "a_bits": 1, "b_bits": heads}
    return round(1e6 * strategy.traffic(graph.pattern, sizes, 4).compulsory / bandwidth, 3)


def measured_case(
    case: Row,
    contenders: Sequence[Any],
    on_gpu: Any,
    options: argparse.Namespace,
    journal: Path,
    load: Any,
) -> Iterator[Row]:
    """Check and time the contenders on one problem, which is made for the first of them."""
    from peer_problems import Problem

    problem = None
    for contender in contenders:
        row = {**case, "contender": contender.name, "dtype": contender.dtype}
        journal.write_text(json.dumps({name: row.get(name) for name in FIELDS}), "utf-8")
        try:
            if problem is None:
                if bytes_of(case) > MOST_BYTES:
                    raise MemoryError("its check in float64 needs too much memory")
                problem = Problem(case["operation"], on_gpu, case["heads"], case["columns"])
            library = load(options.libraries, contender.library)
            yield from best(contender, library, problem, row, options.repeats)
        except (AccelvizError, MemoryError, OSError) as error:
            yield {**row, "problem": " ".join(str(error).split())[:200]}


def bytes_of(case: Row) -> int:
    """Return about the bytes of a problem's float64 arrays."""
    heads = max(case["heads"], 1)
    arrays = {"gat": 4, "gatv2": 5}.get(case["operation"], 3)
    return int(8 * (arrays * case["rows"] * heads * case["columns"] + 2 * case["nonzeros"] * heads))


def best(contender: Any, library: Any, problem: Any, row: Row, repeats: int) -> Iterator[Row]:
    """Yield a row for each stage: the fastest right variant, or what is wrong with all of them."""
    import cupy

    fastest: dict[str, Row] = {}
    for variant in contender.operations[problem.operation](library, problem):
        measure_errors = variant.errors or partial(problem.errors, per_term=contender.per_term)
        errors = check(variant, measure_errors)
        text = " ".join(f"{name} {error:.2g}" for name, error in errors.items())
        worst = max(errors.values())
        new = {**row, "stage": variant.stage, "variant": variant.name, "errors": text}
        new["error"] = float(f"{worst:.3g}")
        new |= timed(variant.run, repeats)
        again = max(measure_errors(variant.results).values())
        if max(worst, again) > contender.most_error:
            problem_text = f"wrong: {text}, later {again:.2g}, in {new['median_us']:,.1f} us"
            new |= {"median_us": np.nan, "problem": problem_text}
        known = fastest.get(variant.stage, {}).get("median_us", np.nan)
        if np.isnan(known) or new["median_us"] < known:
            fastest[variant.stage] = new
    cupy.cuda.Device().synchronize()
    if not fastest:
        yield {**row, "problem": "no kernel for this size"}
    yield from fastest.values()


def check(variant: Any, measure_errors: Any) -> dict[str, float]:
    """Run a variant once, into outputs of bytes 255 (NaN), and return its errors."""
    for result in variant.results.values():
        result.data.memset_async(255, result.nbytes)
    variant.run()
    errors: dict[str, float] = measure_errors(variant.results)
    return errors


def timed(run: Any, repeats: int) -> Row:
    """Return the median and quartiles of the times of a call, warm."""
    from accelviz.devices.cuda.timing import event_seconds

    (once,) = event_seconds(run, 1, 0)
    seconds = event_seconds(run, repeats if once < LONG else 3, 1)
    low, median, high = (round(1e6 * float(np.percentile(seconds, p)), 3) for p in (25, 50, 75))
    quartiles = {"quartile1_us": low, "quartile3_us": high}
    return {"repeats": seconds.size, "median_us": median, **quartiles}


if __name__ == "__main__":
    main()
