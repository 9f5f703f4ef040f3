"""The operations on a GPU: `lane_groups` kernels on the tensors' memory, on PyTorch's stream.

A kernel depends on the widths of the features and on settings, not on the graph: it is that of a
plan of a graph with one edge. Its arguments are those of the block partition of `edge_index`.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from accelviz.devices.cuda import PointerKernel, zero
from accelviz.devices.usual import WIDTHS
from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.plans import KernelSpec
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies import OPERATIONS, find_strategy
from accelviz.strategies.attention.walks import TOTAL_PARTS
from accelviz.strategies.spmm.lane_groups import accumulating
from accelviz.strategies.subwarps import (
    LONG_NONZEROS,
    Blocks,
    LaneGroupSettings,
    long_group_nzs,
)
from accelviz.torch import edge_sums
from accelviz.torch.blocks import (
    EdgeBlocks,
    EdgeList,
    Memory,
    Setting,
    edge_list,
    multiprocessors,
)
from accelviz.torch.blocks import spec as edge_blocks_kernel
from accelviz.torch.composed import Size

_STORAGE = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}
#: Arguments of kernels that are the same in all runs on an edge list.
_CONSTANT = frozenset(
    {
        *("metadata", "output_rows", "columns", "item_numbers", "order", "column_scale"),
        *("row_scale", "part_sums", "part_heads", "arrivals", "statistics", "codes"),
        *("part_totals", "block_totals", "n_totals", "n_parts", "n_targets", "heads", "n_cols"),
    }
)
#: Workspaces per part of a split row, and per target.
_OF_PARTS, _OF_TARGETS = ("part_sums", "part_heads"), ("statistics", "codes")
#: Graphs of fewer items, such as mini-batches, have one partition for all numbers of columns, with
#: blocks of so many subwarps. Computing it takes longer than a product.
_SHARED_ITEMS, _SHARED_SUBWARPS = 1 << 17, 16
#: Sizes of a graph are rounded to so many leading bits before a rule chooses settings by them, so
#: that similar graphs have the same kernels.
_SIZE_BITS = 3
#: Threads of a block of `row_dropout`, and blocks per multiprocessor.
_DROPOUT_THREADS, _DROPOUT_BLOCKS = 256, 8
#: Kernels of plans with a form for items.
_ITEM_KERNELS = {
    ("spmm/lane_groups.cu", "lane_groups"),
    ("attention/lane_groups.cu", "spmm_sources<Config>"),
    ("attention/lane_groups.cu", "largest<Config>"),
    ("attention/lane_groups.cu", "least<Config>"),
}


class _Walk(NamedTuple):
    """One kernel of an operation, for any graph.

    Attributes
    ----------
    kernel : PointerKernel
    setting : Setting or None
        Blocks that it reads; None for a kernel that reads no partition.
    by_source : bool
        Whether the rows of its partition are sources.
    grid_x : int
        Blocks of a kernel that does not depend on the graph, else 0.
    grid_y : int
    block_rows : int
        Rows of all heads per block, if it depends on the graph and reads no partition.
    zeroed_part_words, part_words : dict of str to int
        Words of workspace per part of a split row, that begin as zeros or have any value.
    operands : tuple of (tuple of int, tuple of str)
        Positions and names of the arguments that differ between runs.
    """

    kernel: PointerKernel
    setting: Setting | None
    by_source: bool
    grid_x: int
    grid_y: int
    block_rows: int
    zeroed_part_words: dict[str, int]
    part_words: dict[str, int]
    operands: tuple[tuple[int, ...], tuple[str, ...]]


@functools.cache
def _one_edge() -> Graph:
    ones = np.ones(1, np.float32)
    return Graph(np.array([0, 1]), np.zeros(1, np.int32), ones, (1, 1), "one edge")


def _pointer_kernel(call: Any) -> PointerKernel:
    """Return a call's kernel, in the form for items if it has one."""
    spec, percent = call.kernel, call.launch.shared_percent
    spec = _of_items(spec) if (spec.file, spec.entry) in _ITEM_KERNELS else spec
    return PointerKernel(spec, call.launch.block[0], shared_percent=percent)


def _of_items(spec: KernelSpec) -> KernelSpec:
    arguments = spec.arguments
    if spec.entry == "lane_groups":
        at = arguments.index("values") + 1
        added = "item_numbers", "column_scale", "row_scale"
        arguments = (*arguments[:at], *added, *arguments[at:])
    return replace(spec, defines={"ITEMS": 1}, arguments=arguments)


def tensor_kernels(specs: Iterable[KernelSpec]) -> Iterator[KernelSpec]:
    """Yield the kernels that operations on tensors run in place of those of plans, or before."""
    for dtype in (torch.int64, torch.int32):
        yield edge_blocks_kernel(dtype)
        for n_cols in WIDTHS:
            yield from edge_sums.specs(dtype, n_cols)
    yield from map(_row_dropout_spec, (False, True))
    small = [_spmm_call(_spmm_settings(n_cols, "float32", (1, 1), 1), n_cols) for n_cols in WIDTHS]
    for spec in (*specs, *(call.kernel for call in small)):
        if (spec.file, spec.entry) in _ITEM_KERNELS:
            yield _of_items(spec)
        if (spec.file, spec.entry) == ("spmm/lane_groups.cu", "lane_groups"):
            yield _of_items(accumulating(spec))


def _setting(blocks: Blocks) -> Setting:
    subwarps = blocks.subwarps
    return Setting(subwarps.max_block_warps, subwarps.max_warp_nzs, blocks.short_nzs)


def _operands(arguments: Sequence[str]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    positions = tuple(i for i, name in enumerate(arguments) if name not in _CONSTANT)
    return positions, tuple(arguments[i] for i in positions)


def _rounded(number: int) -> int:
    shift = max(number.bit_length() - _SIZE_BITS, 0)
    return number >> shift << shift


@functools.lru_cache(maxsize=1024)
def _spmm_walk(
    n_cols: int,
    storage: str,
    n_rows: int,
    n_columns: int,
    n_items: int,
    device: int,
    accumulate: bool = False,
) -> _Walk:
    """Return SpMM's kernel for a number of columns and the rounded sizes of a graph.

    With `accumulate`, it adds the product to Y.
    """
    settings = _spmm_settings(n_cols, storage, (n_rows, n_columns), n_items)
    return _spmm_kernel(settings, n_cols, device, accumulate)


def _spmm_settings(
    n_cols: int, storage: str, shape: tuple[int, int], n_items: int
) -> LaneGroupSettings:
    settings = LaneGroupSettings(storage=storage).resolved(n_cols, shape, n_items, lambda: False)
    threads = _SHARED_SUBWARPS * settings.lanes
    if n_items < _SHARED_ITEMS and threads % WARP_SIZE == 0:
        settings = LaneGroupSettings(storage=storage, block_threads=threads)
        settings = settings.resolved(n_cols, shape, n_items, lambda: False)
    return settings


def _spmm_call(settings: LaneGroupSettings, n_cols: int) -> Any:
    strategy = find_strategy("lane_groups", OPERATIONS["spmm"])
    return strategy.plan(_one_edge(), n_cols, **settings.values()).calls[0]


@functools.cache
def _spmm_kernel(settings: LaneGroupSettings, n_cols: int, device: int, accumulate: bool) -> _Walk:
    call = _spmm_call(settings, n_cols)
    if accumulate:
        call = replace(call, kernel=accumulating(call.kernel))
    grid_y, setting = call.launch.grid[1], _setting(Blocks.of(settings, n_cols))
    part_words = {"arrivals": grid_y}, {"part_sums": n_cols}
    kernel = _pointer_kernel(call)
    operands = _operands(kernel.arguments)
    return _Walk(kernel, setting, False, 0, grid_y, 0, *part_words, operands)


@functools.cache
def _walks(
    name: str, n_cols: int, heads: int, is_long: bool, device: int
) -> tuple[tuple[_Walk, ...], dict[str, int], dict[str, int]]:
    """Return the kernels of an operation of `accelviz.strategies.attention.walks`, in order.

    `is_long` is whether the graph is large and has long rows, by `long_group_nzs`. The second
    result has words of workspace for a graph of one row and one block, the third the kernels'
    `heads` and `n_cols`.
    """
    operation = OPERATIONS[name]
    strategy: Any = find_strategy("lane_groups", operation)
    widths = {"n_cols": n_cols, **({"heads": heads} if "heads" in operation.widths else {})}
    nnz = LONG_NONZEROS if is_long else 1
    widths, settings = strategy.checked(widths.pop("n_cols"), widths)
    group_nzs = strategy.group_nzs(settings, widths, nnz, 1)
    plan = strategy.plan(_one_edge(), **widths, group_nzs=group_nzs)
    setting = _setting(strategy.blocks(plan.provenance.settings, plan.widths))
    walks = []
    for part, call in plan.part_calls:
        kernel = _pointer_kernel(call)
        operands = _operands(kernel.arguments)
        grid_x, grid_y, _ = call.launch.grid
        if "metadata" in kernel.arguments:
            by_source = strategy.by_sender and part is plan.parts[0]
            zeroed, unset = _words(part.buffers.zeroed_workspace), _words(part.buffers.workspace)
            part_words = zeroed, {region: unset[region] for region in _OF_PARTS}
            walks.append(_Walk(kernel, setting, by_source, 0, grid_y, 0, *part_words, operands))
            continue
        block_rows = 0
        if not {*_OF_TARGETS}.isdisjoint(kernel.arguments):
            grid_x, block_rows = 0, call.launch.block[0] // call.kernel.config["head_lanes"]
        walks.append(_Walk(kernel, None, False, grid_x, grid_y, block_rows, {}, {}, operands))
    words = _words(plan.workspaces("workspace"))
    numbers = {number: int(plan.arrays[number]) for number in ("heads", "n_cols")}
    return tuple(walks), {key: words[key] for key in words if key not in _OF_PARTS}, numbers


def _words(workspaces: Mapping[str, tuple[int, Any]]) -> dict[str, int]:
    """Return the size of each workspace in words of four bytes."""
    return {
        region: -(-size * np.dtype(dtype).itemsize // 4)
        for region, (size, dtype) in workspaces.items()
    }


class _Product:
    """The launches of an operation on an edge list.

    Parameters
    ----------
    edges : EdgeList
    edge_index : tensor
    walks : sequence of _Walk
    size : Size
    scaling : str
    transposed : bool
        Whether the operation's rows are the sources of the edges.
    stream : int
    numbers : mapping of str to int
        Numbers among the arguments.
    workspace : mapping of str to int
        Words of workspace by name: of `_OF_TARGETS` per target, `block_totals` per block.
    scales : sequence of str
        Arguments that are the scale of the partition.
    """

    def __init__(
        self,
        edges: EdgeList,
        edge_index: Any,
        walks: Sequence[_Walk],
        size: Size,
        scaling: str,
        transposed: bool,
        stream: int,
        numbers: Mapping[str, int],
        workspace: Mapping[str, int] = {},
        scales: Sequence[str] = (),
    ) -> None:
        words = dict(numbers)
        heads, workspace = numbers.get("heads", 1), dict(workspace)
        for region in _OF_TARGETS:
            if region in workspace:
                workspace[region] *= size.targets
        block_words = workspace.pop("block_totals", 0)
        self._partitions: list[EdgeBlocks] = []
        self._launches: list[tuple[Any, tuple[int, ...], tuple[str, ...]]] = []
        for walk in walks:
            regions = dict(workspace)
            grid_x, zeroed = walk.grid_x, {}
            if walk.setting is not None:
                by_source = walk.by_source != transposed
                key = size, by_source, walk.setting, scaling, stream
                part_words = walk.zeroed_part_words, walk.part_words
                blocks, is_new = edges.partition(edge_index, *key, *part_words)
                self._partitions.append(blocks)
                grid_x, address = blocks.records, blocks.address
                words |= address | {"order": address["item_numbers"]}
                words |= dict.fromkeys(scales, address["scale"])
                if not is_new:
                    zeroed, parts = (
                        {name: number * blocks.parts for name, number in words_per_part.items()}
                        for words_per_part in part_words
                    )
                    regions |= parts
                if block_words and "block_totals" in walk.kernel.arguments:
                    words["n_totals"] = grid_x
                    regions["block_totals"] = grid_x * block_words
                regions = zeroed | regions
            elif walk.block_rows:
                grid_x = -(-size.targets * heads // walk.block_rows)
            if regions:
                memory = Memory(regions.keys(), regions.values(), edge_index.device)
                edges.keep(memory)
                words |= memory.address
                if zeroed:
                    end = [*memory.address.values(), memory.end][len(zeroed)]
                    zero(memory.start, end - memory.start, stream)
            workspace = {}  # that of all kernels is allocated with the first one's
            self._launches.append((walk.kernel.bind(grid_x, walk.grid_y, words), *walk.operands))

    def __call__(self, edges: EdgeList, stream: int, words: Mapping[str, int]) -> None:
        """Launch with the addresses of the operands, and numbers, by name."""
        for blocks in self._partitions:
            edges.update(blocks, stream)
        for bound, positions, names in self._launches:
            bound(stream, positions, [words[name] for name in names])


@functools.lru_cache(maxsize=256)
def _bits(number: float) -> int:
    """Return the bits of a float32."""
    return int.from_bytes(struct.pack("<f", number), "little")


def _usable(tensor: Any) -> Any:
    """Return a contiguous tensor, aligned for vector loads."""
    tensor = tensor.contiguous()
    return tensor.clone() if tensor.data_ptr() % 16 else tensor


def _check_rows(name: str, tensor: Any, n_rows: int, rows: str = "nodes") -> None:
    if tensor.size(0) != n_rows:
        problem = f"{tensor.size(0)} rows for {n_rows} {rows}"
        raise ArgumentError(name, problem, f"{n_rows} rows")


def _is_elsewhere(tensor: Any) -> bool:
    """Return whether a tensor is on another GPU than the current one."""
    return tensor.is_cuda and tensor.device.index != torch.cuda.current_device()


def _stream(tensor: Any) -> int:
    return torch._C._cuda_getCurrentRawStream(tensor.device.index)


def spmm(
    edge_index: Any,
    weight: Any,
    x: Any,
    sources: int,
    targets: int,
    loops: int,
    scaling: str,
    transposed: bool,
    start: Any = None,
) -> Any:
    """Compute `operators.spmm`, added to `start`: float32, which is overwritten."""
    if _is_elsewhere(x):
        with torch.cuda.device(x.device):
            modes = scaling, transposed, start
            return spmm(edge_index, weight, x, sources, targets, loops, *modes)
    n_rows, n_columns = (sources, targets) if transposed else (targets, sources)
    n_items, n_cols = edge_index.size(1) + loops, x.size(1)
    _check_rows("x", x, n_columns)
    if not (n_rows and n_items and n_cols):
        return x.new_zeros((n_rows, n_cols)) if start is None else start
    dtype, stream = x.dtype, _stream(x)
    if weight is not None:
        _check_rows("edge_weight", weight, n_items, "edges")
        weight = weight.contiguous()
    if edge_sums.applies(edge_index, n_items, n_cols):
        x = _usable(x.float())
        size = sources, targets, loops
        y = edge_sums.spmm(edge_index, weight, x, size, scaling, transposed, stream, start)
        return y if dtype == torch.float32 else y.to(dtype)
    if start is None:
        y = torch.empty((n_rows, n_cols), dtype=torch.float32, device=x.device)
    else:
        y = _usable(start)
    x = _usable(x)
    words = {"X": x.data_ptr(), "Y": y.data_ptr(), "values": 0}
    if weight is not None:
        words["values"] = weight.data_ptr()
    edges = edge_list(edge_index, stream)
    accumulate = start is not None
    key = sources, targets, loops, scaling, transposed, n_cols, dtype, accumulate
    product = edges.products.get(key)
    if product is None:
        edges = edges.for_new_product(edge_index)
        sizes = _rounded(n_rows), _rounded(n_columns), _rounded(n_items)
        walk = _spmm_walk(n_cols, _STORAGE[dtype], *sizes, x.device.index, accumulate)
        if scaling == "symmetric":
            scales = ["column_scale", "row_scale"]
        else:
            scales = ["column_scale" if transposed else "row_scale"] * (scaling == "mean")
        size = Size(sources, targets, loops)
        graph_part = edge_index, [walk], size, scaling, transposed, stream
        product = _Product(edges, *graph_part, {"n_cols": n_cols}, scales=scales)
        edges.products[key] = product
    product(edges, stream, words)
    return y if dtype == torch.float32 else y.to(dtype)


def _run(
    name: str,
    edge_index: Any,
    size: tuple[int, ...],
    heads: int,
    n_cols: int,
    tensors: Mapping[str, Any],
    numbers: Mapping[str, int],
    transposed: bool = False,
) -> None:
    """Launch the kernels of an operation on tensors by name.

    With `transposed`, the operation's rows are the sources of the edges.
    """
    if _is_elsewhere(edge_index):
        with torch.cuda.device(edge_index.device):
            _run(name, edge_index, size, heads, n_cols, tensors, numbers, transposed)
        return
    stream = _stream(edge_index)
    edges = edge_list(edge_index, stream)
    key = name, size, heads, n_cols, transposed
    product = edges.products.get(key)
    if product is None:
        edges = edges.for_new_product(edge_index)
        is_long = long_group_nzs(edge_index.size(1) + size[2], size[not transposed]) is not None
        walks, workspace, fixed = _walks(name, n_cols, heads, is_long, edge_index.device.index)
        fixed = {**fixed, "n_targets": size[1], "n_parts": TOTAL_PARTS}
        graph_part = edge_index, walks, Size(*size), "sum", transposed, stream
        product = edges.products[key] = _Product(edges, *graph_part, fixed, workspace)
    words = {operand: tensor.data_ptr() for operand, tensor in tensors.items()}
    product(edges, stream, {**words, **numbers})


def spmm_gradient(
    edge_index: Any,
    weight: Any,
    x: Any,
    dy: Any,
    sources: int,
    targets: int,
    loops: int,
    transposed: bool,
) -> tuple[Any, Any]:
    """Return the gradients of the weights and of x."""
    dtype = x.dtype
    x, dy, weight = _usable(x.float()), _usable(dy.float()), weight.contiguous()
    d_weight, dx = torch.zeros_like(weight), torch.empty_like(x)
    if not (x.numel() and dy.numel() and weight.numel()):
        return d_weight, dx.zero_().to(dtype)
    tensors = {"values": weight, "X": x, "dY": dy, "d_values": d_weight, "dX": dx}
    size = sources, targets, loops
    _run("spmm_gradient", edge_index, size, 1, x.size(1), tensors, {}, transposed)
    return d_weight, dx.to(dtype)


def extremum(
    edge_index: Any, x: Any, sources: int, targets: int, loops: int, largest: bool
) -> tuple[Any, Any]:
    """Compute `composed.extremum`."""
    _check_rows("x", x, sources)
    y = torch.empty((targets, x.size(1)), device=x.device)
    source = torch.empty_like(y, dtype=torch.int32)
    if not (y.numel() and edge_index.size(1) + loops):
        return y.zero_().to(x.dtype), source.fill_(-1)
    tensors = {"X": _usable(x.float()), "Y": y, "source": source}
    name = "spmm_max" if largest else "spmm_min"
    numbers = {"first": _bits(0)}
    _run(name, edge_index, (sources, targets, loops), 1, x.size(1), tensors, numbers)
    return y.to(x.dtype), source


def extremum_gradient(
    edge_index: Any,
    x: Any,
    y: Any,
    dy: Any,
    source: Any,
    sources: int,
    targets: int,
    loops: int,
) -> Any:
    """Compute `composed.extremum_gradient`."""
    dtype, dx = x.dtype, torch.empty(x.shape, device=x.device)
    if not (dx.numel() and dy.numel()):
        return dx.zero_().to(dtype)
    tensors = {"X": _usable(x.float()), "Y": _usable(y.float()), "dY": _usable(dy.float())}
    tensors |= {"source": _usable(source), "dX": dx}
    size = sources, targets, loops
    _run("spmm_extremum_gradient", edge_index, size, 1, x.size(1), tensors, {})
    return dx.to(dtype)


def attention(
    edge_index: Any,
    score: str,
    first: Any,
    second: Any,
    third: Any,
    random: Any,
    slope: float,
    rate: float,
    *size: int,
) -> tuple[Any, ...]:
    """Return the result and the statistics of the softmax, in the order of the outputs."""
    operation = OPERATIONS[score]
    names = [operand.name for operand in operation.inputs[:3]]
    tensors = dict(zip(names, map(_usable, (first, second, third)), strict=True))
    values = tensors["V"]
    _, heads, n_cols = values.shape
    y = values.new_empty((size[1], heads, n_cols))
    results = [y, *(y.new_empty((size[1], heads)) for _ in operation.outputs[1:])]
    if not (y.numel() and edge_index.size(1) + size[2]):
        return tuple(result.zero_() for result in results)
    outputs = [output.name for output in operation.outputs]
    tensors |= dict(zip(outputs, results, strict=True)) | {"random": _random(random, y)}
    numbers = {"slope": _bits(slope), "rate": _bits(rate)}
    _run(score, edge_index, size, heads, n_cols, tensors, numbers)
    return tuple(results)


def _random(random: Any, like: Any) -> Any:
    return _no_random(like.device) if random is None else random


@functools.cache
def _no_random(device: Any) -> Any:
    with torch.inference_mode(False):
        return torch.zeros(4, dtype=torch.int32, device=device)


def attention_gradient(
    edge_index: Any, score: str, first: Any, second: Any, third: Any, random: Any, *rest: Any
) -> tuple[Any, ...]:
    """Return the gradients of the three operands."""
    operation = OPERATIONS[f"{score}_gradient"]
    *results, dy, slope, rate, sources, targets, loops = rest
    size = sources, targets, loops
    operands = map(_usable, (first, second, third, *results, dy))
    names = [operand.name for operand in operation.inputs]
    tensors = dict(zip(names, operands, strict=False))
    outputs = {_differentiated(output.name): output.name for output in operation.outputs}
    gradients = {outputs[name]: torch.empty_like(tensors[name]) for name in names[:3]}
    in_order = tuple(gradients.values())
    if not (dy.numel() and edge_index.size(1) + loops):
        return tuple(gradient.zero_() for gradient in in_order)
    tensors |= gradients | {"random": _random(random, dy)}
    numbers = {"slope": _bits(slope), "rate": _bits(rate)}
    _run(operation.name, edge_index, size, dy.size(1), dy.size(2), tensors, numbers)
    return in_order


def _differentiated(gradient: str) -> str:
    """Return the operand of a gradient: `V` of `dV`, `sender` of `d_sender`."""
    return gradient.removeprefix("d").removeprefix("_")


def row_dropout(x: Any, nodes: Any, random: Any, rate: float) -> Any:
    """Compute `host.row_dropout` for contiguous operands."""
    y = torch.empty_like(x)
    if x.numel():
        x = _usable(x)
        addresses = nodes.data_ptr(), random.data_ptr()
        words = *addresses, _bits(rate), *x.shape, x.data_ptr(), y.data_ptr()
        launch = _row_dropout(x.size(1) % 4 == 0, x.device.index)
        launch(_stream(x), range(len(words)), words)
    return y


@functools.cache
def _row_dropout(whole: bool, device: int) -> Any:
    n_blocks = _DROPOUT_BLOCKS * multiprocessors(device)
    return PointerKernel(_row_dropout_spec(whole), _DROPOUT_THREADS).bind(n_blocks, 1, {})


def _row_dropout_spec(whole: bool) -> KernelSpec:
    """Return the kernel for a multiple of four columns, or for any number."""
    arguments = ("nodes", "random", "rate", "n_rows", "n_cols", "X", "Y")
    return KernelSpec("layers/row_dropout.cu", "row_dropout", {"whole": int(whole)}, arguments)
