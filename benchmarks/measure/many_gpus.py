"""Times of products on two GPUs beside one: ours, MGG as published, all-gather, unified memory.

    python benchmarks/measure/many_gpus.py all --output DIR

    python benchmarks/measure/many_gpus.py counters --output DIR    # needs ncu

`counters` (Figure 4.8) has the occupancy and the SMs' share of active cycles of MGG's kernel and of
products with unified memory. With `--gpus 0 0` one GPU plays both, to test the program.
"""

from __future__ import annotations

import ctypes
import glob
import importlib.util
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import cupy
import nsight
import numpy as np
from scipy import sparse
from study import Row, full_machine, host_seconds, parser, record

import accelviz
from accelviz import many_gpus
from accelviz.devices.cuda.device import CudaDevice
from accelviz.graph import Graph
from accelviz.many_gpus.peers import PeersProgram
from accelviz.many_gpus.rates import rate_rows
from accelviz.measure.records import parameters_text
from accelviz.plans.operation import EPS32
from accelviz.plans.program import buffer_name

#: Two settings of MGG; the faster one is compared.
MGG = ({"ps": 16, "dist": 1, "wpb": 2}, {"ps": 32, "dist": 1, "wpb": 4})
#: Figure, scheme and settings of each ablation, on Collab's twin, shuffled.
VARIED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    *(("ours", "halo", {"pieces": pieces}) for pieces in (1, 2)),
    ("all rows", "all_gather", {"pieces": 1}),
    *(("4.10a", "mgg", {"ps": ps}) for ps in (16, None)),
    *(("4.10b", "mgg", {"interleave": value}) for value in (True, False)),
    *(("4.6", "mgg", {"asynchronous": value}) for value in (True, False)),
    *(("4.10c", "mgg", {"ps": 2, "dist": 2, "get": get}) for get in ("thread", "warp", "block")),
)


def main() -> None:
    options = parser(__doc__, columns=[32, 128])
    parts_named = ["all", "case", "rates", "ablations", "large", "counters", "launch"]
    options.add_argument("what", choices=parts_named, help="launch is what ncu runs")
    options.add_argument("--graph", default="reddit")
    options.add_argument("--order", default="natural", choices=["natural", "shuffled", "rabbit"])
    options.add_argument("--gpus", type=int, nargs=2, default=[0, 1])
    chosen = options.parse_args()
    pairs = [(chosen.graph, chosen.order)]
    if chosen.what == "all":
        orders = ("natural", "shuffled", "rabbit")
        pairs = [(graph, order) for graph in ("reddit", "products") for order in orders]
    parts: dict[str, Any] = {"rates": rates, "large": large}
    for graph, order in pairs:
        timelines = chosen.output / f"timeline-{graph}-{order}"
        parts[f"case-{graph}-{order}"] = partial(case, graph, order, chosen.columns, timelines)
    parts["ablations"] = ablations  # last, because NCCL may be missing
    if chosen.what in ("counters", "launch"):
        parts = {"counters": partial(counters, chosen.gpus), "launch": launched}
    chosen.output.mkdir(parents=True, exist_ok=True)
    with many_gpus.Peers(chosen.gpus) as gpus:
        about = {**full_machine(), "gpus": len({*chosen.gpus})}
        for name, part in parts.items():
            if chosen.what in ("all", name.partition("-")[0]):
                record(part(gpus), chosen.output / f"{name}.csv", about)


def timing(seconds: Any) -> Row:
    """Return median and extremes of times in microseconds."""
    micros = 1e6 * np.asarray(seconds)
    times = {"median_us": np.median(micros), "least_us": micros.min(), "most_us": micros.max()}
    return {**{name: round(float(us), 2) for name, us in times.items()}, "runs": micros.size}


def fill(ready: PeersProgram) -> None:
    """Fill the features in the GPUs' memory with random numbers."""
    for name, buffer in ready.program.buffers.items():
        if buffer.kind == "input":
            with ready.gpus.on(buffer.device):
                rng = cupy.random.default_rng(buffer.device)
                rng.random(dtype=np.float32, out=ready.buffers[name])
                ready.buffers[name] -= np.float32(0.5)
    ready.gpus.wait()


def gather_rows(ready: PeersProgram, name: str, vertices: Any) -> Any:
    """Return rows of X or Y in float64, numbered in the split's order, from all devices."""
    bounds, n_cols = ready.program.split.bounds, ready.program.n_cols
    rows = np.empty((len(vertices), n_cols))
    owners = np.searchsorted(bounds, vertices, side="right") - 1
    for device in np.unique(owners):
        mine = owners == device
        with ready.gpus.on(device):
            all_rows = ready.buffers[buffer_name(name, device)].reshape(-1, n_cols)
            rows[mine] = all_rows[cupy.asarray(vertices[mine] - bounds[device])].get()
    return rows


def largest_error(ready: PeersProgram, sample: int = 200) -> float:
    """Return the largest error of some rows over the bound of float32."""
    graph: Graph = ready.program.split.graph
    rng = np.random.default_rng(0)
    rows = rng.choice(graph.n_rows, min(sample, graph.n_rows), replace=False)
    part = graph.adjacency[rows].astype(np.float64)
    columns, positions = np.unique(part.indices, return_inverse=True)
    part = sparse.csr_array((part.data, positions, part.indptr), (rows.size, columns.size))
    X = gather_rows(ready, "X", columns)
    bound = EPS32 * graph.degrees[rows, None] * (abs(part) @ abs(X))
    off = np.abs(gather_rows(ready, "Y", rows) - part @ X)
    return float((off / np.maximum(bound, 1e-30)).max())


def on_one_gpu(graph: Graph, n_cols: int) -> Row:
    """Time `lane_groups` on one GPU."""
    ready = CudaDevice().prepare(accelviz.plan(graph, "lane_groups", n_cols))
    X = cupy.ones((graph.n_rows, n_cols), np.float32)
    times = timing(ready.seconds({"X": X}, 15, 3))
    return {"columns": n_cols, "scheme": "one GPU", "step": "all", **times}


def times_of(ready: PeersProgram, repeats: int, *, each_step: bool = False) -> Iterator[Row]:
    """Check and time a program, and time each of its steps alone if `each_step`."""
    program = ready.program
    about = {"columns": program.n_cols, "scheme": program.scheme}
    about["parameters"] = parameters_text(program.parameters)
    fill(ready)
    times = timing(ready.seconds(repeats, 3))
    yield {**about, "step": "all", "error_over_bound": round(largest_error(ready), 4), **times}
    for name in dict.fromkeys(step.name for step in program.steps) if each_step else ():
        yield {**about, "step": name, **timing(ready.seconds(repeats, 2, only={name}))}


def described(split: many_gpus.Split, order: str) -> Row:
    """Return a split's graph, vertex order, sizes and share of cut edges."""
    graph, cut_share = split.graph, round(split.cut_share, 5)
    sizes = {"graph": graph.name, "order": order, "nodes": graph.n_rows, "edges": graph.nnz}
    return {**sizes, "cut_share": cut_share}


def case(
    name: str, order: str, columns: list[int], timelines: Path, gpus: many_gpus.Peers
) -> Iterator[Row]:
    """Time all schemes on a graph; write timelines of ours."""
    graph = accelviz.load_graph(name, order="natural" if order == "natural" else "shuffled")
    vertex_order = order if order == "rabbit" else None
    many_gpus.split("cora", 2, order=vertex_order)  # compile
    split = many_gpus.split(graph, 2, order=vertex_order)
    about = {**described(split, order), "halo_rows": max(part.n_halo for part in split.parts)}
    about |= {f"{key}_s": round(value, 2) for key, value in split.setup_seconds.items()}
    for n_cols in columns:
        programs = [many_gpus.plan(split, n_cols, pieces=pieces) for pieces in (2, 1, 4)]
        if order != "rabbit":
            programs += [many_gpus.plan(split, n_cols, "mgg", **setting) for setting in MGG]
            programs.append(many_gpus.plan(split, n_cols, storage="float16"))
            if n_cols == columns[-1]:
                counts = (32, 128, 256)
                programs += [many_gpus.plan(split, n_cols, pull_blocks=n) for n in counts]
        yield {**about, **on_one_gpu(split.graph, n_cols)}
        for program in programs:
            ready = gpus.ready(program)
            repeats = 5 if program.scheme == "mgg" else 15
            for row in times_of(ready, repeats, each_step=True):
                yield {**about, **row}
            if program is programs[0]:
                path = timelines.with_name(f"{timelines.name}-{n_cols}.csv")
                ready.timeline().to_csv(path, index=False)
            del ready


def rates(gpus: many_gpus.Peers) -> Iterator[Row]:
    """Measure the link, local gathers, launches and barriers."""
    columns = (8, 16, 32, 64, 128, 256)
    fetches = [(d, blocks) for d in columns for blocks in (16, 32, 64, 128, 256)]
    rows = [1 << k for k in (13, 15, 17, 18, 19, 20, 22)]
    return rate_rows(gpus, fetches, [(n, d) for n in rows for d in columns[1:]])


def ablations(gpus: many_gpus.Peers) -> Iterator[Row]:
    """Vary MGG's settings (Figures 4.10 and 4.11) and time NCCL and unified memory (4.7, 4.8)."""
    graph = accelviz.load_graph("collab", order="shuffled")
    split = many_gpus.split(graph, 2)
    about = described(split, "shuffled")
    for d in (16, 64):
        yield {**about, **on_one_gpu(graph, d)}
        for figure, scheme, setting in VARIED:
            ready = gpus.ready(many_gpus.plan(split, d, scheme, **setting))
            for row in times_of(ready, 10):
                yield {**about, "figure": figure, **row}
            del ready
        searched: list[Row] = []

        def seconds(d: int = d, searched: list[Row] = searched, **setting: int) -> float:
            ready = gpus.ready(many_gpus.plan(split, d, "mgg", **setting))
            (row,) = times_of(ready, 7)
            searched.append({**about, "figure": "4.11", **row})
            return row["median_us"]

        many_gpus.search(seconds, d)
        yield from searched
        for rival in (unified, all_gather):
            for row in rival(gpus, split, d):
                yield {**about, "columns": d, **row}


#: Counters of Figure 4.8, in percent.
METRICS = {
    "occupancy_pct": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm_active_pct": "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    "issue_active_pct": "smsp__issue_active.avg.pct_of_peak_sustained_active",
}
COUNTED_COLUMNS = (16, 64)


def on_two() -> many_gpus.Split:
    """Return the split whose products are counted."""
    return many_gpus.split(accelviz.load_graph("collab", order="shuffled", cache=True), 2)


def launched(gpus: many_gpus.Peers) -> Iterator[Row]:
    """Launch MGG's product, and that with unified memory, once for each column count."""
    split = on_two()
    for d in COUNTED_COLUMNS:
        ready = gpus.ready(many_gpus.plan(split, d, "mgg", **MGG[0]))
        fill(ready)
        ready.launch()
        gpus.wait()
        X = cupy.ndarray((split.graph.n_rows, d), np.float32, managed(split.graph.n_rows * d * 4))
        for part in split.parts:
            with gpus.on(part.device):
                X[part.first : part.stop].fill(1)
        gpus.wait()
        RowProducts(gpus, split, d)([X, X])
        gpus.wait()
        yield {"columns": d}


def counters(devices: list[int], _: many_gpus.Peers) -> Iterator[Row]:
    """Count the launches of `launched` by ncu: for each column count MGG's, then the others."""
    split = on_two()
    program = many_gpus.plan(split, 16, "mgg", **MGG[0])
    of_mgg = {step.call.kernel.entry for step in program.steps if step.call and step.call.kernel}
    plan = accelviz.plan(split.graph, "lane_groups", 16)
    entries = of_mgg | {call.kernel.entry.partition("<")[0] for call in plan.calls if call.kernel}
    script = [__file__, "launch", "--output", tempfile.mkdtemp(), "--gpus", *map(str, devices)]
    for number, (name, counts) in enumerate(nsight.launches(script, entries, METRICS.values())):
        row = {"launch": number, "kernel": name, "graph": split.graph.name}
        yield {**row, **{key: counts.get(metric) for key, metric in METRICS.items()}}


def managed(n_bytes: int) -> Any:
    """Return unified memory."""
    return cupy.cuda.malloc_managed(n_bytes)


class RowProducts:
    """Product of each GPU's rows with the features of all vertices, by `lane_groups`."""

    def __init__(self, gpus: many_gpus.Peers, split: many_gpus.Split, n_cols: int) -> None:
        self.gpus, self.prepared = gpus, []
        for part in split.parts:
            rows = accelviz.load_graph(split.graph.adjacency[part.first : part.stop], name="rows")
            with gpus.on(part.device):
                ready = CudaDevice().prepare(accelviz.plan(rows, "lane_groups", n_cols))
                self.prepared.append((ready, ready.outputs()))

    def __call__(self, features: list[Any]) -> None:
        """Multiply; `features` are those of all vertices, as each GPU reads them."""
        for device, ((ready, out), X) in enumerate(zip(self.prepared, features, strict=True)):
            with self.gpus.on(device):
                ready.launch(ready.inputs(ready.placed({"X": X})), out)


def all_gather(gpus: many_gpus.Peers, split: many_gpus.Split, d: int) -> Iterator[Row]:
    """Time an all-gather by NCCL and then our product, by the host's clock."""
    spec = importlib.util.find_spec("nvidia.nccl")  # load it before CuPy looks for it
    for folder in (spec and spec.submodule_search_locations) or ():
        for library in glob.glob(f"{folder}/lib/libnccl.so*"):
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    from cupy.cuda import nccl

    most, multiply = int(np.diff(split.bounds).max()), RowProducts(gpus, split, d)
    communicators = nccl.NcclCommunicator.initAll(gpus.devices)
    features, gathered = [], []
    for device in gpus.gpu_of:
        with gpus.on(device):
            features.append(cupy.ones((most, d), np.float32))
            gathered.append(cupy.empty((2 * most, d), np.float32))

    def gather() -> None:
        nccl.groupStart()
        for device, communicator in enumerate(communicators):
            with gpus.on(device):
                pointers = features[device].data.ptr, gathered[device].data.ptr
                stream = cupy.cuda.get_current_stream().ptr
                communicator.allGather(*pointers, most * d, nccl.NCCL_FLOAT32, stream)
        nccl.groupEnd()

    def both() -> None:
        gather()
        multiply([X[: split.graph.n_rows] for X in gathered])

    for step, run in (("gather", gather), ("all", both)):
        times = timing(host_seconds(run, 10, 2, gpus.wait))
        yield {"scheme": "nccl all-gather", "step": step, **times}


def unified(gpus: many_gpus.Peers, split: many_gpus.Split, d: int) -> Iterator[Row]:
    """Time products with features in unified memory, rewritten by their owners before each run."""
    n, multiply = split.graph.n_rows, RowProducts(gpus, split, d)
    X = cupy.ndarray((n, d), np.float32, managed(n * d * 4))
    seconds = []
    for _ in range(5):
        for part in split.parts:
            with gpus.on(part.device):
                X[part.first : part.stop].fill(1)
        seconds += host_seconds(lambda: multiply([X, X]), 1, wait=gpus.wait).tolist()
    yield {"scheme": "unified memory", "step": "all", **timing(seconds[1:])}


def large(gpus: many_gpus.Peers, rows: int = 20_000_000, n_cols: int = 1024) -> Iterator[Row]:
    """Time a product whose features and result exceed the memory of one GPU."""
    vertices, rng = np.arange(rows, dtype=np.int64), np.random.default_rng(0)
    ends = ((vertices + 1) % rows, (vertices + 7) % rows, rng.integers(0, rows, rows))
    columns = np.concatenate(ends)
    values = np.ones(columns.size, np.float32)
    matrix = sparse.csr_array((values, (np.tile(vertices, 3), columns)), (rows, rows))
    graph = accelviz.load_graph(matrix, name="ring")
    split = many_gpus.split(graph, 2)
    ready = gpus.ready(many_gpus.plan(split, n_cols, pieces=4))
    gigabytes = round(2 * rows * n_cols * 4 / 1e9, 1)
    for row in times_of(ready, 3, each_step=True):
        yield {**described(split, "natural"), "gigabytes_of_X_and_Y": gigabytes, **row}


if __name__ == "__main__":
    main()
