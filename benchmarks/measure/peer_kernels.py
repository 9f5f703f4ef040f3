"""Calls of ours, of cuSPARSE and of published kernels on the `Problem`s of peer_problems.py.

A contender yields one `Variant` for each setting that its authors offer; peers.py checks each
result and takes the fastest right one. The libraries are those of ../peers/build.py. Whatever a
call needs beyond the graph's own arrays is computed here, before it is timed, as its authors'
preprocessing computes it.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from peer_problems import SLOPE, DeviceGraph, Problem, padded, repeated

import accelviz
from accelviz import bits
from accelviz.devices import find_device
from accelviz.graph import Graph
from accelviz.plans import Plan
from accelviz.strategies.bits.packing import layout
from accelviz.strategies.choice import choose_strategy

FORWARD, BOTH = "forward", "both"
#: Rows of a graph from which FlashSparse's float16 output and others would need 64-bit offsets.
_INT_LIMIT = 1 << 31


@dataclass(frozen=True)
class Variant:
    """A setting of a contender, ready to run.

    Attributes
    ----------
    name : str
    run : callable
        Launches everything that a call needs on the null stream.
    results : dict of str to array
        What `run` writes, by the names of `Problem.expected`.
    stage : str
        `FORWARD`, or `BOTH` of a forward pass and its gradient.
    errors : callable, optional
        In condensed of `Problem.errors`, for another problem such as a matrix of ones.
    """

    name: str
    run: Callable[[], object]
    results: Mapping[str, Any]
    stage: str = FORWARD
    errors: Callable[[Mapping[str, Any]], dict[str, float]] | None = None


@dataclass(frozen=True)
class Contender:
    """A kernel to compare, by operation.

    Attributes
    ----------
    name : str
    dtype : str
        Arithmetic: contenders are compared with ours of the same one.
    library : str
        Name of its shared library; "" for ours and cuSPARSE.
    operations : dict of str to callable
        Functions from (library, Problem) to variants.
    most_error : float
        Largest error of a right result, over the sum of its terms' magnitudes (SpMM, SDDMM) or over
        the largest element.
    per_term : float
        Magnitude added to each term of that sum: float16 loses more of numbers near its smallest.
    """

    name: str
    dtype: str
    library: str
    operations: Mapping[str, Callable[[Any, Problem], Iterator[Variant]]]
    most_error: float = 2e-5
    per_term: float = 0.0


@functools.cache
def load(folder: Path, name: str) -> Any:
    """Return a peer's shared library; None for ours and cuSPARSE, which have none."""
    return ctypes.CDLL(str(folder / f"{name}.so")) if name else None


def bound(function: Any, *arguments: Any) -> Callable[[], Any]:
    """Return a call of a C function with arrays, numbers, structures and None as arguments."""
    return functools.partial(function, *map(_argument, arguments))


def _argument(value: Any) -> Any:
    if value is None:
        return ctypes.c_void_p(0)
    if isinstance(value, cupy.ndarray):
        return ctypes.c_void_p(value.data.ptr)
    if isinstance(value, float):
        return ctypes.c_float(value)
    return ctypes.c_int(value) if isinstance(value, int | np.integer) else value


def structure(*values: Any) -> Any:
    """Return a C structure of integers, then arrays."""
    types = [ctypes.c_int if isinstance(value, int) else ctypes.c_void_p for value in values]
    fields = [(f"field{i}", kind) for i, kind in enumerate(types)]
    kind = type("Structure", (ctypes.Structure,), {"_fields_": fields})
    value = kind(*(one if isinstance(one, int) else one.data.ptr for one in values))
    value.arrays = values  # keeps them alive
    return value


def zeroing(array: Any) -> Callable[[], None]:
    """Return a function that sets an array to zero on the null stream."""
    return functools.partial(array.data.memset_async, 0, array.nbytes)


def after(*calls: Callable[[], object]) -> Callable[[], None]:
    """Return a function that makes the calls one after the other."""

    def run() -> None:
        for call in calls:
            call()

    return run


# Ours, and cuSPARSE through accelviz.

#: Strategies of the gradient of a maximum: with the same bits in each run, and with atomics.
EXTREMUM_GRADIENTS = ("lane_groups", "by_source")


@functools.cache
def our_products(shape: tuple[int, int], width: int, n_cols: int) -> list[bits.Product]:
    """Return our products of single bits by `width` bits, to whole numbers and to `width` bits."""
    sides = {"left": (shape, 1), "right": ((shape[1], n_cols), width)}
    A, X = (
        bits.BitTensor(np.empty(layout(size, planes, side), np.uint32), size, side)
        for side, (size, planes) in sides.items()
    )
    finish = bits.Finish(bits=width, high=1 << width)
    return [bits.plan_product(A, X), bits.plan_product(A, X, finish=finish)]


@functools.cache
def our_plans(graph: Graph, operation: str, heads: int, n_cols: int) -> list[Plan]:
    """Return our plans of an operation: of SpMM in float32 and in float16, else with gradients.

    In SpMM and SDDMM the strategy is that of our rule.
    """
    if operation == "bits":
        return [product.plan for product in our_products(graph.shape, heads, n_cols)]
    names = [operation]
    if operation in ("gat", "gatv2"):
        names.append(f"{operation}_gradient")
    requests: list[tuple[str, dict[str, Any]]] = [("lane_groups", {}) for _ in names]
    if operation == "max":
        names = ["spmm_max", *["spmm_extremum_gradient"] * len(EXTREMUM_GRADIENTS)]
        requests += [(strategy, {}) for strategy in EXTREMUM_GRADIENTS]
    if operation in ("spmm", "sddmm"):
        requests = [choose_strategy(graph, n_cols, operation)]
    if operation == "spmm":
        requests.append(("lane_groups", {"storage": "float16"}))
        names.append("spmm")
    widths = {"heads": heads} if heads else {}
    return [
        accelviz.plan(graph, strategy, n_cols, operation=name, **widths, **settings)
        for name, (strategy, settings) in zip(names, requests, strict=True)
    ]


def kernels(plans: Iterable[Plan]) -> list[Any]:
    """Return the kernels of plans."""
    calls = itertools.chain.from_iterable(plan.part_calls for plan in plans)
    return [call.kernel for _, call in calls if getattr(call, "kernel", None) is not None]


def planned(problem: Problem) -> list[tuple[Any, dict[str, Any]]]:
    """Return our plans of a problem, ready on the GPU, with outputs."""
    graph, executor = problem.on_gpu.graph, find_device("cuda")
    plans = our_plans(graph, problem.operation, problem.heads, problem.n_cols)
    ready = [executor.prepare(plan) for plan in plans]
    return [(one, one.outputs()) for one in ready]


def launch_of(ready: Any, operands: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """Return a function that launches a prepared plan."""
    return functools.partial(ready.launch, ready.inputs(ready.placed(operands)), outputs)


def ours(index: int = 0) -> Callable[[Any, Problem], Iterator[Variant]]:
    """Return our SpMM or SDDMM: the plan of `our_plans` at an index."""

    def variants(_: Any, problem: Problem) -> Iterator[Variant]:
        plan = our_plans(problem.on_gpu.graph, problem.operation, problem.heads, problem.n_cols)
        yield from _forward(plan[index], problem)

    return variants


def _forward(plan: Plan, problem: Problem) -> Iterator[Variant]:
    ready = find_device("cuda").prepare(plan)
    outputs = ready.outputs()
    run = launch_of(ready, problem.inputs, outputs)
    yield Variant(ready.variant or plan.name, run, outputs)


def cusparse(_: Any, problem: Problem) -> Iterator[Variant]:
    """Yield cuSPARSE, preprocessed: the fastest of its algorithms in a trial."""
    graph, d, operation = problem.on_gpu.graph, problem.n_cols, problem.operation
    yield from _forward(accelviz.plan(graph, "cusparse", d, operation=operation), problem)


def ours_attention(_: Any, problem: Problem) -> Iterator[Variant]:
    """Yield our attention, forward, and with its gradient."""
    (forward, outputs), (backward, gradients) = planned(problem)
    run = launch_of(forward, problem.inputs, outputs)
    yield Variant("lane_groups", run, {"Y": outputs["Y"]})
    gradient = launch_of(backward, {**problem.inputs, **outputs}, gradients)
    results = {"Y": outputs["Y"], **gradients}
    yield Variant("lane_groups", after(run, gradient), results, BOTH)


def ours_max(index: int) -> Callable[[Any, Problem], Iterator[Variant]]:
    """Return our maximum, forward, and with its gradient: a strategy of `EXTREMUM_GRADIENTS`."""

    def variants(_: Any, problem: Problem) -> Iterator[Variant]:
        (forward, outputs), *backwards = planned(problem)
        backward, gradients = backwards[index]
        run = launch_of(forward, problem.inputs, outputs)
        yield Variant("lane_groups", run, {"Y": outputs["Y"]})
        gradient = launch_of(backward, {**problem.inputs, **outputs}, gradients)
        results = {"Y": outputs["Y"], "dX": gradients["dX"]}
        yield Variant(EXTREMUM_GRADIENTS[index], after(run, gradient), results, BOTH)

    return variants


# RoDe.


def rode_segments(on_gpu: DeviceGraph, length: int, block: int = 32, vector: int = 4) -> Any:
    """Split rows as RoDe: segments of `length` nonzeros, and rows with a remainder of a block.

    Segments begin at multiples of `vector` but for the first of a row, so that a first segment is
    shorter by the row's offset.
    """
    starts, ends = on_gpu.pointers[:-1], on_gpu.pointers[1:]
    padding = starts % vector
    size = ends - starts + padding
    full = cupy.where(size > 0, (size - 1) // length, 0)  # segments before the last one
    last = size - full * length
    counts = full + (last >= block)
    rows = repeated(counts)
    first = cupy.cumsum(counts) - counts
    index = cupy.arange(rows.size) - first[rows]
    begins = cupy.where(index > 0, starts[rows] - padding[rows] + index * length, starts[rows])
    begins = cupy.append(begins, on_gpu.nnz).astype(np.int32)
    residues = cupy.flatnonzero(last % block).astype(np.int32)
    return structure(int(rows.size), int(residues.size), rows, residues, begins)


@functools.cache
def _streams() -> tuple[Any, Any]:
    """Return two streams for RoDe's two kernels; both wait for the null stream, and it for them."""
    return cupy.cuda.Stream(), cupy.cuda.Stream()


def _stream_arguments() -> list[Any]:
    return [ctypes.c_void_p(stream.ptr) for stream in _streams()]


def rode_spmm(library: Any, problem: Problem) -> Iterator[Variant]:
    """Yield its tiles of 32 and 64 columns."""
    on_gpu, d = problem.on_gpu, problem.n_cols
    if d % 32 or on_gpu.n_columns * d * 4 >= _INT_LIMIT:  # its offsets are 32-bit numbers of bytes
        return
    segments, Y = rode_segments(on_gpu, 512), padded((on_gpu.n_rows, d))
    for tile in (32, 64):
        if d % tile == 0:
            arrays = on_gpu.values, on_gpu.columns, on_gpu.pointers, problem.inputs["X"], Y
            sizes = tile, segments, on_gpu.n_columns, d
            run = bound(library.rode_spmm, *sizes, *arrays, *_stream_arguments())
            yield Variant(f"tile {tile}", after(zeroing(Y), run), {"Y": Y})


def rode_sddmm(library: Any, problem: Problem) -> Iterator[Variant]:
    """Yield its kernel for this number of columns, with weights of one."""
    on_gpu, d = problem.on_gpu, problem.n_cols
    largest = max(on_gpu.n_rows, on_gpu.n_columns) * d
    if d not in (32, 64, 128, 256) or largest >= _INT_LIMIT:
        return
    Z, inputs = padded((on_gpu.nnz, 1)), problem.inputs
    segments = rode_segments(on_gpu, 512 if d == 32 else 32)
    arrays = on_gpu.ones, on_gpu.columns, on_gpu.pointers, inputs["U"], inputs["V"], Z
    sizes = segments, on_gpu.n_columns, d
    run = bound(library.rode_sddmm, *sizes, *arrays, *_stream_arguments())
    yield Variant("", run, {"scores": Z})


def sputnik_spmm(library: Any, problem: Problem) -> Iterator[Variant]:
    """Yield its kernel for this number of columns, with rows in descending order of degree."""
    on_gpu, d = problem.on_gpu, problem.n_cols
    if max(on_gpu.n_rows, on_gpu.n_columns) * d * 4 >= _INT_LIMIT:
        return
    Y = padded((on_gpu.n_rows, d))
    sizes = on_gpu.n_rows, on_gpu.n_columns, d, on_gpu.nnz
    arrays = on_gpu.by_degree, on_gpu.values, on_gpu.pointers, on_gpu.columns, problem.inputs["X"]
    yield Variant("", bound(library.sputnik_spmm, *sizes, *arrays, Y, None), {"Y": Y})


# FlashSparse and Voltrix: windows of rows on tensor cores.


def flashsparse(dtype: str) -> Callable[[Any, Problem], Iterator[Variant]]:
    """Return FlashSparse's SpMM by whole windows, and by pieces of at most 32 blocks."""
    width, most, kind = (4, 32, np.float32) if dtype == "tf32" else (8, 32, np.float16)

    def variants(library: Any, problem: Problem) -> Iterator[Variant]:
        on_gpu, d = problem.on_gpu, problem.n_cols
        pointers, columns, condensed = on_gpu.windows(8)
        window = on_gpu.rows // 8
        counts = cupy.diff(pointers)
        # Blocks are 8 x `width`, row by row; the last one of a window is narrower.
        block, inside = condensed // width, condensed % width
        count = counts[window]
        row_length = cupy.where(block < count // width, width, count % width)
        start = 8 * (pointers[window].astype(np.int64) + block * width)
        values = cupy.zeros(8 * int(pointers[-1]) + 1024, kind)
        values[start + (on_gpu.rows % 8) * row_length + inside] = on_gpu.values.astype(kind)
        X = problem.inputs["X"]
        if dtype == "float16":
            X = padded(X.shape, kind)
            X[...] = problem.inputs["X"]
        run = getattr(library, "flashsparse_tf32" if dtype == "tf32" else "flashsparse_fp16")
        whole = structure(int(counts.size), 0, pointers, pointers, pointers)
        pieces, shared = _pieces(pointers, counts, most * width)
        has_empty = bool((counts == 0).any())
        for name, parts, zeroed in (("windows", whole, has_empty), ("balanced", pieces, shared)):
            Y = padded((on_gpu.n_rows, d), kind if name == "windows" else np.float32)
            call = bound(run, parts, on_gpu.n_rows, d, columns, values, X, Y)
            call = after(zeroing(Y), call) if zeroed or has_empty else call
            yield Variant(name, call, {"Y": Y})

    return variants


def _pieces(pointers: Any, counts: Any, most: int) -> tuple[Any, bool]:
    """Cut windows of more than `most` vectors; return the parts, and whether any was cut."""
    n_pieces = cupy.maximum(-(-counts // most), 1)
    window = repeated(n_pieces)
    first = cupy.cumsum(n_pieces) - n_pieces
    begins = pointers[window] + most * (cupy.arange(window.size) - first[window])
    begins = cupy.append(begins, pointers[-1]).astype(np.int32)
    is_shared = (n_pieces > 1)[window].astype(np.int32)
    parts = structure(int(window.size), 1, begins, window, is_shared)
    return parts, bool(is_shared.any())


def voltrix_spmm(library: Any, problem: Problem) -> Iterator[Variant]:
    """Yield its three kernels, which have no weights: A is a matrix of ones."""
    on_gpu, d, height, width = problem.on_gpu, problem.n_cols, 16, 8
    pointers, _, condensed = on_gpu.windows(height)
    blocks = -(-cupy.diff(pointers) // width)
    n_windows, total = blocks.size, int(blocks.sum())
    if total * height * width >= _INT_LIMIT:
        return
    block_pointers = cupy.zeros(n_windows + 1, np.int32)
    block_pointers[1:] = cupy.cumsum(blocks)
    tiles = cupy.zeros(total * height * width, np.float32)
    block_columns = cupy.zeros(total * width + 1024, np.int32)
    packed = cupy.zeros(tiles.size // 32 + 1024, np.uint32)
    arrays = on_gpu.pointers, on_gpu.columns, blocks, condensed, on_gpu.rows, block_pointers
    sizes = n_windows, on_gpu.n_rows, on_gpu.nnz
    bound(library.voltrix_pack, *sizes, *arrays, tiles, block_columns, packed)()
    cupy.cuda.Device().synchronize()
    del tiles
    expected, terms = problem.product(on_gpu.ones)

    def errors(results: Mapping[str, Any]) -> dict[str, float]:
        worst = float((abs(results["Y"].astype(np.float64) - expected) / terms).max())
        return {"Y": worst if worst < np.inf else np.inf}

    whole = padded((n_windows * height, d))
    Y = whole[: on_gpu.n_rows]
    for model in range(3):
        arrays = block_pointers, packed, block_columns, problem.inputs["X"], whole
        sizes = model, n_windows * height, on_gpu.nnz, d
        run = bound(library.voltrix_spmm, *sizes, *arrays, None)
        yield Variant(f"model {model}", run, {"Y": Y}, errors=errors)


# Attention.


def dgnn_gat(library: Any, problem: Problem) -> Iterator[Variant]:
    """Yield its inference, its forward pass for training, and that with its gradient."""
    on_gpu, inputs = problem.on_gpu, problem.inputs
    heads, d = problem.heads, problem.n_cols
    Y = padded((on_gpu.n_rows, heads, d))
    sizes = on_gpu.n_rows, on_gpu.nnz, heads, d
    scores, V = (inputs["receiver"], inputs["sender"]), inputs["V"]
    arrays = *scores, on_gpu.pointers, on_gpu.columns, V, SLOPE
    run = bound(library.dgnn_gat_inference, *sizes, *arrays, Y)
    yield Variant("inference", run, {"Y": Y})
    mask = cupy.ones((on_gpu.nnz, heads), np.float32)
    row_max, row_sum = cupy.empty((2, on_gpu.n_rows, heads), np.float32)
    forward = bound(library.dgnn_gat, *sizes, *arrays, mask, row_max, row_sum, Y)
    yield Variant("training", forward, {"Y": Y})
    column_pointers, rows, order = on_gpu.transposed
    d_edge, dV = cupy.empty_like(mask), padded(V.shape)
    d_receiver, d_sender = (cupy.empty_like(score) for score in scores)
    arrays = on_gpu.pointers, on_gpu.columns, column_pointers, rows, order, row_max, row_sum, mask
    gradients = d_edge, dV, d_receiver, d_sender
    backward = bound(
        library.dgnn_gat_gradient,
        *sizes,
        SLOPE,
        *(*arrays, V, *scores, inputs["dY"], *gradients),
    )
    results = {"Y": Y, "dV": dV, "d_receiver": d_receiver, "d_sender": d_sender}
    yield Variant("training", after(forward, zeroing(d_sender), backward), results, BOTH)


def dfgnn_gat(library: Any, problem: Problem) -> Iterator[Variant]:
    """Yield three of its kernels, all without a gradient."""
    on_gpu, inputs = problem.on_gpu, problem.inputs
    heads, d = problem.heads, problem.n_cols
    Y = padded((on_gpu.n_rows, heads, d))
    floats = -(-8 * on_gpu.max_degree // 32) * 32
    for kernel, name in enumerate(("tiling", "hyper", "softmax_gm")):
        if name == "hyper" and 4 * floats > 48 << 10:  # shared memory of a block
            continue
        scores = cupy.empty((on_gpu.nnz, heads), np.float32) if name == "softmax_gm" else None
        sizes = kernel, on_gpu.n_rows, on_gpu.nnz, heads, d, floats
        arrays = inputs["receiver"], inputs["sender"], on_gpu.pointers, on_gpu.columns
        more = on_gpu.rows, inputs["V"], SLOPE, scores, Y
        yield Variant(name, bound(library.dfgnn_gat, *sizes, *arrays, *more), {"Y": Y})


def _nodes(on_gpu: DeviceGraph, quantile: float, transposed: bool = False) -> Any:
    light, heavy = on_gpu.buckets(quantile, transposed)
    return structure(int(light.size), int(heavy.size), light, heavy)


def turbo_gatv2(library: Any, problem: Problem) -> Iterator[Variant]:
    """Yield GATv2 with its default of one bucket of rows, and with 1 % as long rows."""
    on_gpu, inputs = problem.on_gpu, problem.inputs
    heads, d = problem.heads, problem.n_cols
    if d not in (32, 64):
        return
    R, V, a, dY = (inputs[name] for name in ("R", "V", "a", "dY"))
    Y, dR, dV, by_row = padded(R.shape), padded(R.shape), padded(V.shape), padded(R.shape)
    logsumexp, G = cupy.empty((2, on_gpu.n_rows, heads), np.float32)
    da = cupy.empty_like(a)
    column_pointers, rows, _ = on_gpu.transposed
    graph = on_gpu.pointers, on_gpu.columns
    for quantile in (-1, 0.99):
        sizes, nodes = (on_gpu.n_rows, heads, d), _nodes(on_gpu, quantile)
        arrays = R, V, *graph, a, Y, logsumexp, SLOPE
        forward = bound(library.turbo_gatv2, *sizes, nodes, *arrays)
        yield Variant(f"quantile {quantile}", forward, {"Y": Y})
        arrays = dY, R, V, *graph, column_pointers, rows, a, logsumexp, SLOPE, by_row, G
        buckets = nodes, _nodes(on_gpu, quantile, transposed=True)
        backward = bound(library.turbo_gatv2_gradient, *sizes, *buckets, *arrays, dR, dV, da)
        results = {"Y": Y, "dR": dR, "dV": dV, "da": da}
        yield Variant(f"quantile {quantile}", after(forward, backward), results, BOTH)


def turbo_max(library: Any, problem: Problem) -> Iterator[Variant]:
    """Yield settings among those that its tuner tries: buckets, and kernels for long rows."""
    on_gpu, d = problem.on_gpu, problem.n_cols
    X, dY = problem.inputs["X"], problem.inputs["dY"]
    Y, dX, arg = padded(dY.shape), padded(X.shape), padded(dY.shape, np.int32)
    warps = 1 if d <= 128 else 2
    for quantile in (-1, 0.9, 0.99):
        nodes = _nodes(on_gpu, quantile)
        n_heavy = on_gpu.buckets(quantile)[1].size
        packed = cupy.empty((n_heavy, d), np.uint64)
        for edges in (128, 0) if quantile != -1 else (128,):
            arrays = on_gpu.pointers, on_gpu.columns, X, packed, Y, arg, d
            forward = bound(library.turbo_max, warps, edges, nodes, on_gpu.max_degree, *arrays)
            name = f"quantile {quantile}, {edges or 'two dimensions'}"
            yield Variant(name, forward, {"Y": Y})
            sizes = on_gpu.n_rows, on_gpu.n_columns, d
            backward = bound(library.turbo_max_gradient, *sizes, dY, arg, dX)
            yield Variant(name, after(forward, backward), {"Y": Y, "dX": dX}, BOTH)


# Products of bits: ours, QGTC, APNN-TC.


def decoded(
    problem: Problem, name: str, decode: Callable[[Any], Any]
) -> Callable[[Mapping[str, Any]], dict[str, float]]:
    """Return a function from the result "out" to its error after it is decoded."""
    return lambda results: problem.errors({name: decode(results["out"])})


def levels_of(words: Any, problem: Problem, first_bit: int) -> Any:
    """Return the numbers of packed lines, whose words begin with the bit 0 or 31."""
    order = cupy.arange(32, dtype=np.uint32) ^ np.uint32(first_bit)
    levels = cupy.zeros((words.shape[1], 32 * words.shape[2]), np.uint32)
    for plane in range(len(words)):
        levels |= (words[plane, :, :, None] >> order & 1).reshape(levels.shape) << plane
    return levels[: problem.on_gpu.n_rows, : problem.n_cols]


def with_lines(words: Any, lines: int) -> Any:
    """Return packed planes with `lines` lines, of which the last are zero."""
    longer = cupy.zeros((words.shape[0], lines, words.shape[2]), np.uint32)
    longer[:, : words.shape[1]] = words
    return longer


def ours_bits(is_packed: bool) -> Callable[[Any, Problem], Iterator[Variant]]:
    """Return our product of bits by our rule, with whole numbers or packed."""

    def variants(_: Any, problem: Problem) -> Iterator[Variant]:
        shape = problem.on_gpu.graph.shape
        product = our_products(shape, problem.heads, problem.n_cols)[is_packed]
        ready = find_device("cuda").prepare(product.plan)
        outputs = ready.outputs()
        run = launch_of(ready, product.operands(*problem.bit_tensors), outputs)
        name, decode = "whole", lambda out: out
        if is_packed:
            name, decode = "packed", functools.partial(levels_of, problem=problem, first_bit=0)
        yield Variant(product.plan.name, run, outputs, errors=decoded(problem, name, decode))

    return variants


def qgtc_whole(library: Any, problem: Problem) -> Iterator[Variant]:
    """Yield QGTC's bitMM2Int."""
    A, X = problem.bit_tensors
    out = cupy.empty((A.shape[0], X.shape[1]), np.float32)
    sizes = *A.shape, X.shape[1], A.bits, X.bits
    run = bound(library.qgtc_whole, *sizes, A.words, X.words, out)
    yield Variant("bitMM2Int", run, {"out": out}, errors=decoded(problem, "whole", lambda o: o))


def qgtc_packed(library: Any, problem: Problem) -> Iterator[Variant]:
    """Yield QGTC's bitMM2Bit, whose words begin with the highest bit."""
    A, X = problem.bit_tensors
    wide = with_lines(X.words, -(-X.shape[1] // 128) * 128)
    out = cupy.empty(layout((A.shape[0], X.shape[1]), X.bits, "left"), np.uint32)
    sizes = *A.shape, X.shape[1], A.bits, X.bits, X.bits
    run = bound(library.qgtc_packed, *sizes, A.words, wide, out)
    decode = functools.partial(levels_of, problem=problem, first_bit=31)
    errors = decoded(problem, "packed by QGTC", decode)
    yield Variant("bitMM2Bit", run, {"out": out}, errors=errors)


def apnn_tc(library: Any, problem: Problem) -> Iterator[Variant]:
    """Yield APNN-TC's product; with three bits of X, that of the transposed matrices, w3a1."""
    (A, X), (rows, n_cols) = problem.bit_tensors, (problem.on_gpu.n_rows, problem.n_cols)
    if X.bits == 3:
        lines = -(-n_cols // 21) * 21
        shape, operands = (lines, rows), (with_lines(X.words, lines), A.words)
    else:
        tile = 64 // X.bits
        lines = -(-n_cols // tile) * tile
        shape, operands = (rows, lines), (A.words, with_lines(X.words, lines))
    out, planes = cupy.empty(shape, np.int32), [words.shape[0] for words in operands]
    run = bound(library.apnn_tc, *shape, A.shape[1], *planes, *operands, out)

    def decode(out: Any) -> Any:
        return (out.T if X.bits == 3 else out)[:, :n_cols]

    name = f"w{planes[0]}a{planes[1]}"
    yield Variant(name, run, {"out": out}, errors=decoded(problem, "whole", decode))


#: Errors of tensor cores: inputs of 11 bits, truncated, and sums in half precision.
_TF32, _FLOAT16 = 4e-3, (2e-2, 2.0**-11)
CONTENDERS = (
    Contender(
        "ours",
        "float32",
        "",
        {
            "spmm": ours(),
            "sddmm": ours(),
            "gat": ours_attention,
            "gatv2": ours_attention,
            "max": ours_max(0),
        },
    ),
    Contender("ours", "float32, atomics", "", {"max": ours_max(1)}),
    Contender("ours", "float16", "", {"spmm": ours(1)}, *_FLOAT16),
    Contender("cusparse", "float32", "", {"spmm": cusparse, "sddmm": cusparse}),
    Contender("rode", "float32", "rode", {"spmm": rode_spmm, "sddmm": rode_sddmm}),
    Contender("sputnik", "float32", "sputnik", {"spmm": sputnik_spmm}),
    Contender("flashsparse", "tf32", "flashsparse", {"spmm": flashsparse("tf32")}, _TF32),
    Contender("flashsparse", "float16", "flashsparse", {"spmm": flashsparse("float16")}, *_FLOAT16),
    Contender("voltrix", "tf32, no weights", "voltrix", {"spmm": voltrix_spmm}, _TF32),
    Contender("dgnn", "float32", "dgnn", {"gat": dgnn_gat}),
    Contender("dfgnn", "float32", "dfgnn", {"gat": dfgnn_gat}),
    Contender("turbo_gnn", "float32", "turbo_gnn", {"gatv2": turbo_gatv2, "max": turbo_max}),
    Contender("ours", "int32", "", {"bits": ours_bits(False)}, most_error=0),
    Contender("ours", "packed", "", {"bits": ours_bits(True)}, most_error=0),
    Contender("qgtc", "int32", "qgtc", {"bits": qgtc_whole}, most_error=0),
    Contender("qgtc", "packed", "qgtc", {"bits": qgtc_packed}, most_error=0),
    Contender("apnn_tc", "int32", "apnn_tc", {"bits": apnn_tc}, most_error=0),
)
