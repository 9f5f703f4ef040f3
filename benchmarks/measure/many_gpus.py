"""Times of products on two GPUs beside one: ours, MGG as published, an all-gather, unified memory.

    python benchmarks/measure/many_gpus.py all --output DIR

runs every part in processes of its own, which prepare at the same time and measure one at a time.
`--gpus 0 0` lets one GPU play two, to try the program out.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import datetime
import fcntl
import glob
import importlib.util
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from study import host_seconds

import accelviz
from accelviz import many_gpus
from accelviz.devices.cuda.device import CudaDevice
from accelviz.devices.cuda.timing import CudaLimits
from accelviz.graph import Graph
from accelviz.many_gpus.peers import PeersProgram
from accelviz.measure.records import parameters_text
from accelviz.plans.operation import EPS32
from accelviz.plans.program import buffer_name

GPUS = [0, 1]
DATE = datetime.date.today().isoformat()
BEGIN = time.perf_counter()


def say(*words: object) -> None:
    print(f"{time.perf_counter() - BEGIN:7.1f} s", *words, flush=True)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Have the GPUs for this process."""
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Table:
    """A CSV to which every row is written at once."""

    def __init__(self, path: Path, **same: Any) -> None:
        self.path, self.same, self.rows = path, same, list[dict[str, Any]]()

    def add(self, seconds: Any, **row: Any) -> None:
        """Add times and what they are of."""
        micros = 1e6 * np.asarray(seconds)
        times = {"median_us": np.median(micros), "least_us": micros.min(), "most_us": micros.max()}
        times = {name: round(float(value), 2) for name, value in times.items()}
        self.rows.append({**self.same, **row, **times, "runs": micros.size})
        pd.DataFrame(self.rows).to_csv(self.path, index=False)
        say(" ".join(f"{key}={value}" for key, value in row.items()), times["median_us"], "us")


def hardware() -> dict[str, Any]:
    known = CudaDevice().hardware()
    about = {"hardware": known["hardware"], "gpus": len({*GPUS})}
    return {**about, "driver": known["driver"], "date": DATE}


def fill(ready: PeersProgram) -> None:
    """Put features into the GPUs' memory that a host could know too."""
    cupy = ready._cupy
    kernel = cupy.ElementwiseKernel(
        "uint64 first",
        "float32 x",
        "const unsigned long long k = (first + i) * 0x9E3779B97F4A7C15ull;"
        "x = (float)(k >> 40) * 1.1920929e-07f - 1.0f",
        "features",
    )
    for name, buffer in ready.program.buffers.items():
        if buffer.kind == "input":
            with ready.gpus.on(buffer.device):
                kernel(np.uint64(1 + buffer.device), ready.buffers[name])
    ready.gpus.wait()


def rows_of(ready: PeersProgram, name: str, vertices: Any) -> Any:
    """Take rows of X or Y of all devices, in the split's order."""
    bounds, n_cols = ready.program.split.bounds, ready.program.n_cols
    rows = np.empty((len(vertices), n_cols), np.float32)
    owners = np.searchsorted(bounds, vertices, side="right") - 1
    for device in range(ready.program.n_devices):
        mine = owners == device
        if mine.any():
            with ready.gpus.on(device):
                whole = ready.buffers[buffer_name(name, device)].reshape(-1, n_cols)
                rows[mine] = whole[ready._cupy.asarray(vertices[mine] - bounds[device])].get()
    return rows


def error(ready: PeersProgram, sample: int = 200) -> float:
    """Return the largest error of some rows over the bound of float32."""
    graph: Graph = ready.program.split.graph
    rng = np.random.default_rng(0)
    worst = 0.0
    for row in rng.choice(graph.n_rows, min(sample, graph.n_rows), replace=False):
        part = slice(graph.row_pointers[row], graph.row_pointers[row + 1])
        senders = graph.column_indices[part].astype(np.int64)[:, None]
        X = rows_of(ready, "X", senders[:, 0]).astype(np.float64)
        products = (
            np.take(graph.values, range(part.start, part.stop)).astype(np.float64)[:, None] * X
        )
        bound = len(senders) * EPS32 * np.abs(products).sum(axis=0)
        off = np.abs(rows_of(ready, "Y", np.array([row]))[0] - products.sum(axis=0))
        worst = max(worst, float((off / np.maximum(bound, 1e-30)).max()) if len(senders) else 0.0)
    return worst


def with_blocks(program: Any, blocks: int) -> Any:
    """Fetch with another number of blocks."""

    def changed(step: Any) -> Any:
        if step.name != "fetch":
            return step
        launch = replace(step.call.launch, grid=(blocks, 1, 1))
        return replace(step, call=replace(step.call, launch=launch))

    parameters = {**program.parameters, "pull_blocks": blocks}
    return replace(program, steps=tuple(map(changed, program.steps)), parameters=parameters)


def single(matrix: Graph, n_cols: int, table: Table, row: dict[str, Any]) -> None:
    """Time our product on one GPU."""
    import cupy

    plan = accelviz.plan(matrix, "lane_groups", n_cols)
    X = cupy.ones((matrix.n_rows, n_cols), np.float32)
    ready = CudaDevice().prepare(plan)
    table.add(ready.seconds({"X": X}, 15, 3), **row, columns=n_cols, scheme="one GPU", step="all")


def time_program(
    ready: PeersProgram, table: Table, row: dict[str, Any], repeats: int, parts: bool
) -> None:
    program = ready.program
    parameters = parameters_text(program.parameters)
    row = {**row, "columns": program.n_cols, "scheme": program.scheme, "parameters": parameters}
    fill(ready)
    seconds = ready.seconds(repeats, 3)
    table.add(seconds, **row, step="all", error_over_bound=round(error(ready), 4))
    if parts:
        for name in dict.fromkeys(step.name for step in program.steps):
            table.add(ready.seconds(repeats, 2, only={name}), **row, step=name)


def case(output: Path, name: str, order: str, columns: list[int]) -> None:
    """Time all schemes on a graph."""
    options = {"order": "natural" if order == "natural" else "shuffled"}
    many_gpus.split("cora", 2, order="rabbit" if order == "rabbit" else None)  # compiles
    graph = accelviz.load_graph(name, cache=False, **options)
    say(name, order, "made", graph)
    start = time.perf_counter()
    split = many_gpus.split(graph, 2, order="rabbit" if order == "rabbit" else None)
    about = {f"{key}_s": round(value, 2) for key, value in split.setup_seconds.items()}
    say(name, order, split, about, f"{time.perf_counter() - start:.1f} s")
    say(split.table().to_string())
    row = {"graph": graph.name, "order": order, "nodes": graph.n_rows, "edges": graph.nnz}
    row |= {"cut_share": round(split.cut_share, 5), **about}
    row |= {"halo_rows": max(part.n_halo for part in split.parts)}
    table = Table(output / f"case-{name}-{order}.csv")
    for n_cols in columns:
        programs = [many_gpus.plan(split, n_cols, pieces=pieces) for pieces in (2, 1, 4)]
        if order != "rabbit":
            programs.append(many_gpus.plan(split, n_cols, "mgg", ps=16, dist=1, wpb=2))
            programs.append(many_gpus.plan(split, n_cols, "mgg", ps=32, dist=1, wpb=4))
            programs.append(many_gpus.plan(split, n_cols, pieces=2, storage="float16"))
        say(name, order, n_cols, "planned")
        with alone(output), many_gpus.Peers(GPUS) as gpus:
            table.same = hardware()
            single(split.graph, n_cols, table, row)
            for number, program in enumerate(programs):
                ready = gpus.ready(program)
                slow = program.scheme == "mgg"
                time_program(ready, table, row, 5 if slow else 15, parts=True)
                if number == 0:
                    frame = ready.timeline()
                    frame.to_csv(output / f"timeline-{name}-{order}-{n_cols}.csv", index=False)
                del ready
            if order != "rabbit" and n_cols == columns[-1]:
                for blocks in (32, 128, 256):
                    ready = gpus.ready(with_blocks(programs[0], blocks))
                    time_program(ready, table, row, 10, parts=False)
                    del ready
    say(name, order, "done")


def rates(output: Path) -> None:
    """Measure the link, the gather at home, and what launches and barriers cost."""
    rng = np.random.default_rng(0)
    n = 1 << 21
    columns = rng.integers(0, n, n, dtype=np.int32)
    ones = np.ones(n, np.float32)
    graph = Graph(np.arange(n + 1, dtype=np.int64), columns, ones, (n, n), "one edge a row")
    split = many_gpus.split(graph, 2, by="rows")
    programs = [many_gpus.plan(split, d, pieces=1) for d in (8, 16, 32, 64, 128, 256)]
    tiny = many_gpus.plan(many_gpus.split("cora", 2), 32, pieces=2)
    with alone(output), many_gpus.Peers(GPUS) as gpus:
        table = Table(output / "rates.csv", **hardware())
        say(gpus.names)
        for program in programs:
            for blocks in (16, 32, 64, 128, 256):
                ready = gpus.ready(with_blocks(program, blocks))
                fill(ready)
                moved = sum(
                    sum(step.link_bytes.values()) for step in program.steps if step.device == 0
                )
                seconds = ready.seconds(15, 3, only={"fetch"})
                rate = moved / np.median(seconds) / 1e9
                table.add(
                    *(seconds,),
                    what="fetch",
                    columns=program.n_cols,
                    blocks=blocks,
                    gigabytes_per_second=round(rate, 1),
                )
                del ready
        ready = gpus.ready(tiny)
        fill(ready)
        table.add(ready.seconds(50, 5), what="all of cora, 2 pieces", columns=32)
        for name in ("fetch", "multiply", "add"):
            table.add(ready.seconds(50, 5, only={name}), what=f"{name} of cora", columns=32)
        table.add(ready.seconds(50, 5, only={"nothing"}), what="barriers alone")
        limits = CudaLimits()
        copied = (1 << 31) / limits.copy_bandwidth
        table.add([limits.launch_seconds], what="launch")
        table.add([copied], what="copy", gigabytes_per_second=round(limits.copy_bandwidth / 1e9, 1))
        for rows in (1 << 13, 1 << 15, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 22):
            for d in (16, 32, 64, 128, 256):
                rate = limits.gather_bandwidth(rows, d)
                table.add(
                    *([(1 << 30) / rate],),
                    what="gather",
                    columns=d,
                    rows=rows,
                    gigabytes_per_second=round(rate / 1e9, 1),
                )


def ablations(output: Path) -> None:
    """Vary MGG's settings (Figures 4.10 and 4.11) and time NCCL and unified memory (4.7, 4.8)."""
    graph = accelviz.load_graph("collab", cache=False, order="shuffled")
    split = many_gpus.split(graph, 2)
    row = {"graph": graph.name, "order": "shuffled", "nodes": graph.n_rows, "edges": graph.nnz}
    row |= {"cut_share": round(split.cut_share, 5)}
    say(split)
    with alone(output), many_gpus.Peers(GPUS) as gpus:
        table = Table(output / "ablations.csv", **hardware())
        for d in (16, 64):
            single(graph, d, table, row)
            settings: list[tuple[str, str, dict[str, Any]]] = [("ours", "halo", {"pieces": 1})]
            settings += [("ours", "halo", {"pieces": 2}), ("all rows", "all_gather", {"pieces": 1})]
            settings += [("4.10a", "mgg", {"ps": ps}) for ps in (16, None)]
            settings += [("4.10b", "mgg", {"interleave": value}) for value in (True, False)]
            settings += [("4.6", "mgg", {"asynchronous": value}) for value in (True, False)]
            settings += [
                ("4.10c", "mgg", {"ps": 2, "dist": 2, "get": get})
                for get in ("thread", "warp", "block")
            ]
            for figure, scheme, setting in settings:
                ready = gpus.ready(many_gpus.plan(split, d, scheme, **setting))
                time_program(ready, table, {**row, "figure": figure}, 10, parts=False)
                del ready

            def timed(d: int = d, **setting: int) -> float:
                ready = gpus.ready(many_gpus.plan(split, d, "mgg", **setting))
                time_program(ready, table, {**row, "figure": "4.11"}, 7, parts=False)
                return float(np.median(ready.seconds(7, 2)))

            best, trials = many_gpus.search(timed, d)
            say("search", d, best, len(trials), "trials")
            for rival in (nccl, unified):
                try:
                    rival(split, d, table, row)
                except Exception as problem:  # the next is independent of it
                    say(rival.__name__, "failed:", repr(problem)[:300])


def whole_rows(split: Any, device: int) -> Graph:
    """Return a device's rows with columns of all vertices."""
    graph, a, b = split.graph, int(split.bounds[device]), int(split.bounds[device + 1])
    part = slice(graph.row_pointers[a], graph.row_pointers[b])
    pointers = graph.row_pointers[a : b + 1] - graph.row_pointers[a]
    values = np.take(graph.values, np.arange(part.start, part.stop))
    arrays = graph.column_indices[part], values
    return Graph(pointers, *arrays, (b - a, graph.n_rows), "rows")


def _wait() -> None:
    import cupy

    for device in GPUS:
        with cupy.cuda.Device(device):
            cupy.cuda.runtime.deviceSynchronize()


def nccl(split: Any, d: int, table: Table, row: dict[str, Any]) -> None:
    """All-gather by NCCL, then our product; by the host's clock."""
    import cupy
    from cupy.cuda import nccl as library

    most = int(np.diff(split.bounds).max())
    communicators = library.NcclCommunicator.initAll(GPUS)
    features, gathered, prepared, out = [], [], [], []
    for rank, device in enumerate(GPUS):
        with cupy.cuda.Device(device):
            features.append(cupy.ones((most, d), np.float32))
            gathered.append(cupy.empty((2 * most, d), np.float32))
            plan = accelviz.plan(whole_rows(split, rank), "lane_groups", d)
            prepared.append(CudaDevice().prepare(plan))
            out.append(prepared[-1].outputs())

    def gather() -> None:
        library.groupStart()
        for rank, device in enumerate(GPUS):
            with cupy.cuda.Device(device):
                communicators[rank].allGather(
                    *(features[rank].data.ptr, gathered[rank].data.ptr, most * d),
                    *(library.NCCL_FLOAT32, cupy.cuda.get_current_stream().ptr),
                )
        library.groupEnd()

    def product() -> None:
        for rank, device in enumerate(GPUS):
            with cupy.cuda.Device(device):
                X = gathered[rank][: split.graph.n_rows]
                ready = prepared[rank]
                ready.launch(ready.inputs(ready.placed({"X": X})), out[rank])

    def both() -> None:
        gather()
        product()

    for step, run in (("gather", gather), ("all", both)):
        table.add(
            host_seconds(run, 10, 2, _wait),
            **{**row, "columns": d, "scheme": "nccl all-gather", "step": step},
        )


def unified(split: Any, d: int, table: Table, row: dict[str, Any]) -> None:
    """Features in unified memory, rewritten by their owners before each run; the host's clock."""
    import cupy

    n = split.graph.n_rows
    pointer = cupy.cuda.malloc_managed(n * d * 4)
    X = cupy.ndarray((n, d), np.float32, pointer)
    prepared, out = [], []
    for rank, device in enumerate(GPUS):
        with cupy.cuda.Device(device):
            X[split.bounds[rank] : split.bounds[rank + 1]].fill(1)
            plan = accelviz.plan(whole_rows(split, rank), "lane_groups", d)
            prepared.append(CudaDevice().prepare(plan))
            out.append(prepared[-1].outputs())
    _wait()

    def rewrite() -> None:
        for rank, device in enumerate(GPUS):
            with cupy.cuda.Device(device):
                X[split.bounds[rank] : split.bounds[rank + 1]].fill(1)
        _wait()

    def product() -> None:
        for rank, device in enumerate(GPUS):
            with cupy.cuda.Device(device):
                ready = prepared[rank]
                ready.launch(ready.inputs(ready.placed({"X": X})), out[rank])

    seconds = []
    for _ in range(5):
        rewrite()
        seconds += host_seconds(product, 1, wait=_wait).tolist()
    table.add(seconds[1:], **{**row, "columns": d, "scheme": "unified memory", "step": "all"})


def large(output: Path, rows: int = 20_000_000, n_cols: int = 1024) -> None:
    """Run a product whose features and result take more memory than one GPU has."""
    rng = np.random.default_rng(0)
    vertices = np.arange(rows, dtype=np.int64)
    far = rng.integers(0, rows, rows)
    columns = np.sort(np.stack([(vertices + 1) % rows, (vertices + 7) % rows, far], axis=1), axis=1)
    keep = np.ones(columns.shape, bool)
    keep[:, 1:] = columns[:, 1:] != columns[:, :-1]
    pointers = np.concatenate([[0], np.cumsum(keep.sum(axis=1))]).astype(np.int64)
    indices = columns[keep].astype(np.int32)
    graph = Graph(pointers, indices, np.ones(indices.size, np.float32), (rows, rows), "ring")
    split = many_gpus.split(graph, 2)
    program = many_gpus.plan(split, n_cols, pieces=4)
    say("large planned", split, program)
    gigabytes = 2 * rows * n_cols * 4 / 1e9
    with alone(output), many_gpus.Peers(GPUS) as gpus:
        table = Table(output / "large.csv", **hardware())
        ready = gpus.ready(program)
        row = {"graph": graph.name, "order": "natural", "nodes": rows, "edges": graph.nnz}
        time_program(
            ready, table, {**row, "gigabytes_of_X_and_Y": round(gigabytes, 1)}, 3, parts=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["all", "case", "rates", "ablations", "large"])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--graph", default="reddit")
    parser.add_argument("--order", default="natural")
    parser.add_argument("--columns", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--gpus", type=int, nargs=2, default=GPUS)
    parser.add_argument("--seconds", type=float, default=600, help="of all, then stop")
    options = parser.parse_args()
    GPUS[:] = options.gpus
    if options.what == "ablations":  # before CuPy looks for it
        spec = importlib.util.find_spec("nvidia.nccl")
        for folder in (spec and spec.submodule_search_locations) or ():
            for library in glob.glob(f"{folder}/lib/libnccl.so*"):
                ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    options.output.mkdir(parents=True, exist_ok=True)
    if options.what == "case":
        case(options.output, options.graph, options.order, options.columns)
    elif options.what != "all":
        {"rates": rates, "ablations": ablations, "large": large}[options.what](options.output)
    else:
        parts = [["rates"], ["ablations"], ["large"]]
        parts += [
            ["case", "--graph", graph, "--order", order]
            for graph in ("reddit", "products")
            for order in ("natural", "shuffled", "rabbit")
        ]
        common = ["--output", str(options.output), "--gpus", *map(str, GPUS)]
        common += ["--columns", *map(str, options.columns)]
        command = [sys.executable, __file__]
        started = [subprocess.Popen([*command, *part, *common]) for part in parts]
        while any(process.poll() is None for process in started):
            time.sleep(0.5)
            if time.perf_counter() - BEGIN > options.seconds:
                for process in started:
                    process.kill()


if __name__ == "__main__":
    main()
