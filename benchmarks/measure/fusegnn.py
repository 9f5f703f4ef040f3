"""fuseGNN's tables and figures (ICCAD 2020, section 6), measured on this GPU.

    python benchmarks/measure/fusegnn.py latency --output fusegnn-latency.csv
    python benchmarks/measure/fusegnn.py crossover --output fusegnn-crossover.csv
    python benchmarks/measure/fusegnn.py counters --output fusegnn-counters.csv
    python benchmarks/measure/fusegnn.py idle --graphs cora citeseer pubmed --output idle.csv

`latency` (Table 3, Figures 9 to 12): forward and backward pass of one layer of GCN or GAT (one
head, no dropout) on random features of the dataset's width. "gas" and "gar" are our versions of
fuseGNN's kernels: edge weights are computed in each pass, and "gar" also converts a COO in random
order to CSR and CSC (CuPy's radix sort), as in inductive training. "ours" is `lane_groups`, "pyg"
is PyTorch Geometric with `edge_index`; both reuse what they keep between passes. Times are medians
between CUDA events around the whole pass, including gaps of the host; `parts_ms` has the sparse
operations of a pass. Memory, with 128 columns, is the peak of the framework's pool, including
features. A case that runs out of memory is recorded with that problem.

`crossover` (section 4, Figure 11): one product and its transpose by GAS and by GAR, and the format
conversion, on random graphs of two million edges and rising average degree.

`counters` (Tables 2, 4 and 5) needs `ncu`: one forward aggregation, cold caches.

`idle` (Figure 4) needs PyTorch, whose profiler sees the kernels of every library: in passes of a
layer of GCN, the time of combination (dense products), of graph processing (edge weights,
conversion), of aggregation (the others), and the share of the pass in which no kernel runs. The
kernels' times are of profiled passes, the pass's time is of passes without the profiler.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import cupy
import nsight
import numpy as np
from gcn_weights import gcn_weights
from scipy import sparse
from study import Row, edge_index, full_machine, parser, record, reset_torch_memory

import accelviz
from accelviz.devices import find_device
from accelviz.graph import Graph, taken_over
from accelviz.layers import GAT, GCN, Layer, Matrix, Products
from accelviz.layers.adjacency import attention_matrix
from accelviz.plans import Plan
from accelviz.strategies.fusegnn import faster_aggregation

#: Feature columns of the paper's datasets; Reddit is a twin.
FEATURES = {"cora": 1433, "pubmed": 500, "reddit": 602, "citeseer": 3703}
HIDDEN = (128, 16, 64, 256, 512)
MODELS = ("gcn", "gat")
FORMS = ("gas", "gar", "ours", "pyg")
#: Edges and average degrees of `crossover`, and columns of its products.
EDGES, DEGREES, COLUMNS = 1 << 21, (1, 2, 4, 8, 16, 32, 64, 128, 256), (16, 64, 256)
_WARMUP, _REPEATS = 3, 15
_SECTOR = 32
METRICS = {
    "microseconds": ("gpu__time_duration.sum", 1e-3),
    "active_warps": ("sm__warps_active.avg.per_cycle_active", 1),
    "occupancy_pct": ("sm__warps_active.avg.pct_of_peak_sustained_active", 1),
    "dram_gb_per_s": ("dram__bytes.sum.per_second", 1e-9),
    "l2_read_mib": ("lts__t_sectors_op_read.sum", _SECTOR / 2**20),
    "l2_write_mib": ("lts__t_sectors_op_write.sum", _SECTOR / 2**20),
    "l2_atomic_mib": ("lts__t_sectors_op_red.sum", _SECTOR / 2**20),
    "dram_read_mib": ("dram__bytes_read.sum", 2**-20),
    "dram_write_mib": ("dram__bytes_write.sum", 2**-20),
}
#: Graph, columns and strategies whose launches are counted.
COUNTED = (
    ("pubmed", 256, ("unfused_gas", "fusegnn_gas", "fusegnn_gar", "lane_groups")),
    ("reddit", 16, ("fusegnn_gar", "neugraph", "lane_groups")),
    ("reddit", 128, ("fusegnn_gas", "fusegnn_gar", "lane_groups")),
)


def main() -> None:
    studies = {"latency": latency, "crossover": crossover, "counters": counters, "idle": idle}
    arguments = parser(__doc__, graphs=["cora", "pubmed", "reddit"], output=False)
    arguments.add_argument("study", choices=[*studies, "launch"], help="launch is what ncu runs")
    arguments.add_argument("--hidden", nargs="+", type=int, default=HIDDEN)
    arguments.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    arguments.add_argument("--forms", nargs="+", default=FORMS, choices=FORMS)
    arguments.add_argument("--output", help="CSV, written after each row")
    options = arguments.parse_args()
    if options.study == "launch":
        nsight.launch(plan for *_, plan in counted(options.graphs))
    else:
        record(studies[options.study](options), options.output, full_machine())


def seconds(work: Callable[[], Any], stream: Any = None) -> float:
    """Return the median of several runs between CUDA events, after some warm-up runs."""
    times = []
    for i in range(_WARMUP + _REPEATS):
        ends = cupy.cuda.Event(), cupy.cuda.Event()
        with stream or contextlib.nullcontext():
            ends[0].record()
            work()
            ends[1].record()
        ends[1].synchronize()
        if i >= _WARMUP:
            times.append(1e-3 * cupy.cuda.get_elapsed_time(*ends))
    return float(np.median(times))


def conversion(graph: Graph) -> Callable[[], None]:
    """Return a function that converts a COO in random order to CSR and CSC by sorting."""
    shuffled = np.random.default_rng(0).permutation(graph.nnz)
    rows = np.repeat(np.arange(graph.n_rows, dtype=np.int32), graph.degrees)[shuffled]
    ends = cupy.asarray(rows), cupy.asarray(graph.column_indices[shuffled])
    values = cupy.ones(graph.nnz, np.float32)
    firsts = cupy.arange(graph.n_rows + 1, dtype=np.int32)

    def convert() -> None:
        for key, other in (ends, ends[::-1]):
            order = cupy.argsort(key)
            cupy.searchsorted(key[order], firsts)
            other[order], values[order]

    return convert


def loaded(name: str) -> Graph:
    """Return a graph; a twin is stored on disk, as `counters` runs it again under ncu."""
    return accelviz.load_graph(name, **({"cache": True} if name == "reddit" else {}))


def latency(options: argparse.Namespace) -> Iterator[Row]:
    for name in options.graphs:
        looped = attention_matrix(loaded(name))
        for model in options.models:
            for form in options.forms:
                # An equal matrix without cached data of the previous forms.
                ones = taken_over(np.ones(looped.nnz, np.float32))
                arrays = looped.row_pointers, looped.column_indices, ones
                graph = Graph(*arrays, looped.shape, name)
                convert = conversion(graph) if form == "gar" else None
                for hidden in options.hidden:
                    case = {"graph": name, "edges": graph.nnz, "model": model, "form": form}
                    result = one_pass(graph, model, form, hidden, convert)
                    if hidden != HIDDEN[0]:
                        result["peak_mib"] = float("nan")
                    yield {**case, "hidden": hidden, **result}


def one_pass(
    graph: Graph, model: str, form: str, hidden: int, convert: Callable[[], None] | None
) -> Row:
    """Time forward and backward pass of a layer, with `convert` in each pass."""
    cupy.get_default_memory_pool().free_all_blocks()
    try:
        if form == "pyg":
            return theirs(graph, model, hidden)
        return ours(graph, model, form, hidden, convert)
    except Exception as error:  # both libraries have their own class for this error
        if "memory" not in str(error).lower():
            raise
        return {"ms": float("nan"), "peak_mib": float("nan"), "parts_ms": "{}", "problem": "memory"}


#: A pass, its graph processing alone, and the products that run it.
Pass = tuple[Callable[[], None], Callable[[], Any], Products]


def our_pass(
    graph: Graph, model: str, form: str, hidden: int, convert: Callable[[], None] | None
) -> Pass:
    """Return a pass with fuseGNN's kernels or `lane_groups`."""
    name = "lane_groups" if form == "ours" else f"fusegnn_{form}"
    products = Products(dict.fromkeys(("spmm", "gat", "gat_gradient"), name), "cuda")
    matrix, n_in = Matrix(graph, products), FEATURES[graph.name]
    layer: Layer = GAT(n_in, hidden, bias=False)
    if model == "gcn":  # the paper's order of the products
        layer = GCN(n_in, hidden, bias=False, order="weights first")
    layer.needs_input_gradient = False
    rng = cupy.random.default_rng(0)
    X = rng.standard_normal((graph.n_rows, n_in), dtype=np.float32)
    dY = rng.standard_normal((graph.n_rows, hidden), dtype=np.float32)
    parameters = {
        key: 0.1 * rng.standard_normal(shape, dtype=np.float32)
        for key, shape in layer.shapes().items()
    }
    normalized = matrix.with_values(gcn_weights(matrix))

    def processed() -> Matrix:
        if convert is not None:
            with products.clock("conversion"):
                convert()
        if model != "gcn":
            return matrix
        return normalized if form == "ours" else matrix.with_values(gcn_weights(matrix))

    def step() -> None:
        _, context = layer.forward(processed(), X, parameters)
        layer.backward(dY, context)

    cupy.cuda.Device().synchronize()
    return step, processed, products


def ours(
    graph: Graph, model: str, form: str, hidden: int, convert: Callable[[], None] | None
) -> Row:
    """Time a pass with fuseGNN's kernels or `lane_groups`, and its sparse operations."""
    step, _, products = our_pass(graph, model, form, hidden, convert)
    taken = seconds(step, products.stream)
    peak = cupy.get_default_memory_pool().total_bytes()
    products.reset()
    with products.stream:
        for _ in range(_REPEATS):
            step()
    parts = {name: 1e3 * total / _REPEATS for name, total in products.reset().items()}
    return {"ms": 1e3 * taken, "peak_mib": peak / 2**20, "parts_ms": json.dumps(parts)}


def their_pass(
    graph: Graph, model: str, hidden: int
) -> tuple[Callable[[], None], Callable[[], Any]]:
    """Return a pass of PyTorch Geometric, and its graph processing alone."""
    import torch
    from torch_geometric.nn import GATConv, GCNConv
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    reset_torch_memory()
    n_in = FEATURES[graph.name]
    kind = GCNConv if model == "gcn" else GATConv
    layer = kind(n_in, hidden, bias=False, add_self_loops=False).cuda()
    edges = edge_index(graph)
    X = torch.randn(graph.n_rows, n_in, device="cuda")
    dY = torch.randn(graph.n_rows, hidden, device="cuda")

    def step() -> None:
        layer.zero_grad()
        layer(X, edges).backward(dY)

    def processed() -> Any:
        return gcn_norm(edges, num_nodes=graph.n_rows, add_self_loops=False)

    return step, processed


def theirs(graph: Graph, model: str, hidden: int) -> Row:
    """Time a pass of PyTorch Geometric, on the stream on which CuPy's events are recorded."""
    import torch

    step, _ = their_pass(graph, model, hidden)
    taken = seconds(step)
    peak = torch.cuda.max_memory_reserved()
    return {"ms": 1e3 * taken, "peak_mib": peak / 2**20, "parts_ms": "{}"}


#: Parts of the names of dense products' kernels: of cuBLAS, and ours.
DENSE = ("gemm", "gemv", "cutlass", "nvjet", "splitk", "affine", "product", "weight_gradient")


def idle(options: argparse.Namespace) -> Iterator[Row]:
    """Divide a pass of GCN into phases, and the time in which the GPU has no kernel."""
    for name in options.graphs:
        graph = attention_matrix(loaded(name))
        graph = Graph(graph.row_pointers, graph.column_indices, graph.values, graph.shape, name)
        for form in options.forms:
            for hidden in options.hidden:
                if form == "pyg":
                    step, processed = their_pass(graph, "gcn", hidden)
                    stream: Any = None
                else:
                    convert = conversion(graph) if form == "gar" else None
                    step, processed, products = our_pass(graph, "gcn", form, hidden, convert)
                    stream = products.stream
                row = phases(kernels_of(step, stream), kernels_of(processed, stream), _REPEATS)
                total = 1e3 * seconds(step, stream)
                idle_pct = 100 * max(0.0, 1 - row["busy_ms"] / total)
                about = {"graph": name, "edges": graph.nnz, "form": form, "hidden": hidden}
                yield {**about, "ms": total, **row, "idle_pct": idle_pct}


#: Name of a kernel or copy, and its begin and end in microseconds.
Launched = tuple[str, float, float]


def kernels_of(step: Callable[[], Any], stream: Any = None) -> list[Launched]:
    """Return the launches of several runs, by PyTorch's profiler."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with stream or contextlib.nullcontext():
        for _ in range(_WARMUP):
            step()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as trace:
            for _ in range(_REPEATS):
                step()
            torch.cuda.synchronize()
    on_gpu = torch.autograd.DeviceType.CUDA
    events = [event for event in trace.events() if event.device_type == on_gpu]
    return [(event.name, event.time_range.start, event.time_range.end) for event in events]


def phases(launched: list[Launched], processing: list[Launched], runs: int) -> Row:
    """Return milliseconds of the phases of a run, from the launches of several.

    Examples
    --------
    >>> launches = [("sgemm", 0, 2000), ("scatter", 1000, 4000), ("weights", 6000, 7000)]
    >>> [*phases(launches, [("weights", 0, 1000)], 1).values()]
    [5.0, 2.0, 1.0, 3.0, 3]
    """
    busy, end = 0.0, -np.inf
    for _, start, stop in sorted(launched, key=lambda launch: launch[1]):
        busy += max(0.0, stop - max(start, end))
        end = max(end, stop)

    def total(launches: list[Launched]) -> float:
        return sum(stop - start for _, start, stop in launches)

    dense = [launch for launch in launched if any(part in launch[0].lower() for part in DENSE)]
    rest = total(launched) - total(dense) - total(processing)
    times = {"busy_ms": busy, "combination_ms": total(dense), "processing_ms": total(processing)}
    times["aggregation_ms"] = max(rest, 0.0)
    return {
        **{name: float(1e-3 * value / runs) for name, value in times.items()},
        "launches": len(launched) // runs,
    }


def crossover(options: argparse.Namespace) -> Iterator[Row]:
    for degree in DEGREES:
        n_rows = EDGES // degree
        ends = np.random.default_rng(degree).integers(0, n_rows, (2, EDGES))
        matrix = sparse.coo_array((np.ones(EDGES, np.float32), tuple(ends)), (n_rows, n_rows))
        graph = accelviz.load_graph(matrix)
        convert_us = 1e6 * seconds(conversion(graph))
        for n_cols in COLUMNS:
            row = {"degree": graph.nnz / n_rows, "edges": graph.nnz, "columns": n_cols}
            row["chosen"] = faster_aggregation(graph, n_cols)
            for form in ("gas", "gar"):
                row[f"{form}_us"] = 0.0
                for pattern in (graph, graph.transposed().graph):
                    plan = accelviz.plan(pattern, f"fusegnn_{form}", n_cols)
                    ready = find_device("cuda").prepare(plan)
                    X = cupy.zeros((pattern.shape[1], n_cols), np.float32)
                    operands = ready.placed(plan.operation.named(X))
                    row[f"{form}_us"] += 1e6 * np.median(ready.seconds(operands, _REPEATS, _WARMUP))
            yield {**row, "conversion_us": convert_us}


def counted(graphs: list[str]) -> Iterator[tuple[str, int, Plan]]:
    """Yield graph, columns and plan of each counted launch."""
    for name, n_cols, strategies in COUNTED:
        for strategy in strategies if name in graphs else ():
            yield name, n_cols, accelviz.plan(loaded(name), strategy, n_cols)


def counters(options: argparse.Namespace) -> Iterator[Row]:
    plans = list(counted(options.graphs))
    script = [__file__, "launch", "--graphs", *options.graphs]
    metrics = [metric for metric, _ in METRICS.values()]
    cases = [(*case, plan, call) for *case, plan in plans for call in plan.calls if call.kernel]
    launches = nsight.profile(script, [plan for *_, plan in plans], metrics)
    for (name, n_cols, plan, call), counts in zip(cases, launches, strict=True):
        row = {"graph": name, "columns": n_cols, "strategy": plan.name}
        row |= {key: counts.get(metric, 0) * by for key, (metric, by) in METRICS.items()}
        yield {**row, "kernel": call.kernel.entry}


if __name__ == "__main__":
    main()
