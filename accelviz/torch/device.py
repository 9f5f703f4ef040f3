"""The operations on a GPU: `lane_groups` kernels on the tensors' memory, on PyTorch's stream."""

from __future__ import annotations

import functools
import struct
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from accelviz.devices.cuda import PointerKernel
from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.strategies import OPERATIONS, find_strategy
from accelviz.strategies.attention.walks import TOTAL_PARTS as _TOTAL_PARTS
from accelviz.strategies.subwarps import Blocks, LaneGroupSettings
from accelviz.torch import composed
from accelviz.torch.blocks import EdgeBlocks, Setting, edge_blocks

_STORAGE = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}
#: Workspaces that begin as zeros, and are reset by the kernels.
_PER_PART = ("part_sums", "part_heads", "arrivals")
#: Sizes of a graph are rounded to so many leading bits, before the rule chooses settings by them.
_SIZE_BITS = 3


class _Walk(NamedTuple):
    """One kernel of a plan on the block partition of any graph.

    Attributes
    ----------
    kernel : PointerKernel
    names : tuple of str
        Its arguments.
    setting : Setting or None
        Blocks that it reads; None for a kernel that reads no partition.
    by_source : bool
        Whether the rows of its partition are sources.
    grid_y : int
    part_words : dict of str to int
        Words of zeroed workspace per part of a split row.
    rows : int
        Rows and heads per block, for a kernel that reads no partition; 0 for a fixed grid.
    """

    kernel: PointerKernel
    names: tuple[str, ...]
    setting: Setting | None
    by_source: bool
    grid_x: int
    grid_y: int
    part_words: dict[str, int]
    rows: int


@functools.cache
def _one_edge() -> Graph:
    """Return a graph of one node and one edge: plans of it have the kernels of any graph's."""
    ones = np.ones(1, np.float32)
    return Graph(np.array([0, 1]), np.zeros(1, np.int32), ones, (1, 1), "one edge")


def _pointer_kernel(call: Any, items: bool = False) -> tuple[PointerKernel, tuple[str, ...]]:
    spec, launch = call.kernel, call.launch
    assert spec is not None
    if items:
        spec = replace(spec, defines={"ITEMS": 1})
        if spec.file == "spmm/lane_groups.cu":
            at = spec.arguments.index("values") + 1
            added = "items", "column_scale", "row_scale"
            spec = replace(spec, arguments=(*spec.arguments[:at], *added, *spec.arguments[at:]))
    kernel = PointerKernel(spec, launch.block[0], shared_percent=launch.shared_percent)
    return kernel, spec.arguments


def _rounded(number: int) -> int:
    """Return a number with few leading bits, so that similar graphs have the same settings."""
    shift = max(number.bit_length() - _SIZE_BITS, 0)
    return number >> shift << shift


@functools.lru_cache(maxsize=1024)
def _spmm_walk(
    n_cols: int, storage: str, n_rows: int, n_columns: int, n_items: int, device: int
) -> _Walk:
    """Return SpMM's kernel for a number of columns and the rounded sizes of a graph."""
    shape = n_rows, n_columns
    settings = LaneGroupSettings(storage=storage).resolved(n_cols, shape, n_items, lambda: False)
    return _spmm_kernel(settings, n_cols, device)


@functools.cache
def _spmm_kernel(settings: LaneGroupSettings, n_cols: int, device: int) -> _Walk:
    strategy = find_strategy("lane_groups", OPERATIONS["spmm"])
    plan = strategy.plan(_one_edge(), n_cols, **settings.values())
    (call,) = plan.calls
    setting = _setting(Blocks.of(settings, n_cols))
    kernel, names = _pointer_kernel(call, items=True)
    grid_y = call.launch.grid[1]
    # `arrivals` comes first: only it must begin as zeros.
    part_words = {"arrivals": grid_y, "part_sums": n_cols}
    return _Walk(kernel, names, setting, False, 0, grid_y, part_words, 0)


def _setting(blocks: Blocks) -> Setting:
    subwarps = blocks.subwarps
    return Setting(subwarps.max_block_warps, subwarps.max_warp_nzs, blocks.short_nzs)


@functools.cache
def _walks(name: str, n_cols: int, heads: int, device: int) -> tuple[_Walk, ...]:
    """Return the kernels of an attention, of its gradient, or of SpMM's gradient, in order."""
    operation = OPERATIONS[name]
    strategy: Any = find_strategy("lane_groups", operation)
    widths = {"n_cols": n_cols, **({"heads": heads} if "heads" in operation.widths else {})}
    plan = strategy.plan(_one_edge(), **widths)
    setting = _setting(strategy.blocks(plan.provenance.settings, plan.widths))
    walks = []
    for part, call in plan.part_calls:
        kernel, names = _pointer_kernel(call, items=name == "spmm_gradient")
        grid_x, grid_y, _ = call.launch.grid
        config = call.kernel.config
        if "metadata" not in names:
            rows = call.launch.block[0] // config["head_lanes"] if "statistics" in names else 0
            walks.append(_Walk(kernel, names, None, False, grid_x, grid_y, {}, rows))
            continue
        by_source = operation.by_sender and part is plan.parts[0]
        sizes = part.buffers.zeroed_workspace
        part_words = {
            region: size * np.dtype(dtype).itemsize // 4 for region, (size, dtype) in sizes.items()
        }
        walks.append(_Walk(kernel, names, setting, by_source, 0, grid_y, part_words, 0))
    return tuple(walks)


def _stream(tensor: Any) -> int:
    return int(torch._C._cuda_getCurrentRawStream(tensor.device.index))


@functools.lru_cache(maxsize=256)
def _bits(number: float) -> int:
    """Return the bits of a float32."""
    return int.from_bytes(struct.pack("<f", number), "little")


def _usable(tensor: Any, alignment: int = 16) -> Any:
    """Return a contiguous tensor, aligned for vector loads."""
    tensor = tensor.contiguous()
    return tensor.clone() if tensor.data_ptr() % alignment else tensor


def _check_rows(name: str, tensor: Any, n_rows: int) -> None:
    if tensor.size(0) != n_rows:
        problem = f"{tensor.size(0)} rows for {n_rows} nodes"
        raise ArgumentError(name, problem, f"{n_rows} rows")


def spmm(
    edge_index: Any,
    weight: Any,
    x: Any,
    sources: int,
    targets: int,
    loops: int,
    scaling: str,
    transposed: bool,
) -> Any:
    """Compute `operators.spmm`."""
    n_rows, n_columns = (sources, targets) if transposed else (targets, sources)
    n_items, n_cols = edge_index.size(1) + loops, x.size(1)
    _check_rows("x", x, n_columns)
    storage = _STORAGE[x.dtype]
    if not (n_rows and n_items and n_cols):
        return x.new_zeros((n_rows, n_cols))
    y = torch.empty((n_rows, n_cols), dtype=torch.float32, device=x.device)
    device, stream = x.device.index, _stream(x)
    sizes = _rounded(n_rows), _rounded(n_columns), _rounded(n_items)
    walk = _spmm_walk(n_cols, storage, *sizes, device)
    assert walk.setting is not None
    x = _usable(x)
    weights = 0
    if weight is not None:
        _check_rows("edge_weight", weight, n_items)
        weight = weight.contiguous()
        weights = weight.data_ptr()
    size = sources, targets, loops
    blocks = edge_blocks(edge_index, size, transposed, walk.setting, scaling, stream)
    workspace = _workspace(blocks, walk, 1)
    address = blocks.address
    scale = 0 if scaling == "sum" else address["scale"]
    column_scale = scale if transposed or scaling == "symmetric" else 0
    row_scale = 0 if transposed and scaling == "mean" else scale
    words = (
        *(address["metadata"], address["output_rows"], address["columns"], weights),
        *(address["item_numbers"], column_scale, row_scale, x.data_ptr(), y.data_ptr()),
        *(workspace["part_sums"], workspace["arrivals"], n_cols),
    )
    walk.kernel(blocks.records, walk.grid_y, stream, words)
    return y if x.dtype == torch.float32 else y.to(x.dtype)


def _workspace(blocks: EdgeBlocks, walk: _Walk, zeroed: int) -> dict[str, int]:
    """Return the workspace for the parts of split rows."""
    words = {name: size * blocks.parts for name, size in walk.part_words.items()}
    return blocks.workspace(walk.kernel, words, zeroed)


def _run(
    name: str,
    edge_index: Any,
    size: tuple[int, ...],
    heads: int,
    n_cols: int,
    tensors: dict[str, Any],
    numbers: dict[str, int],
    transposed: bool = False,
) -> None:
    """Launch the kernels of an operation on tensors by name.

    With `transposed`, the operation's rows are the sources of the edges.
    """
    device, stream = edge_index.device.index, _stream(edge_index)
    words = {name: 0 if tensor is None else tensor.data_ptr() for name, tensor in tensors.items()}
    words |= {"heads": heads, "n_cols": n_cols, "n_targets": size[1], **numbers}
    walks = _walks(name, n_cols, heads, device)
    partitions: dict[bool, EdgeBlocks] = {}
    for walk in walks:
        grid_x = walk.grid_x
        if walk.setting is not None:
            blocks = partitions.get(walk.by_source)
            if blocks is None:
                by_source = walk.by_source != transposed
                blocks = edge_blocks(edge_index, size, by_source, walk.setting, "sum", stream)
                partitions[walk.by_source] = blocks
            words |= blocks.address
            words["order"] = blocks.address["item_numbers"]
            words |= _workspace(blocks, walk, len(walk.part_words))
            grid_x = blocks.records
            if "block_totals" in walk.names:
                totals = torch.empty(
                    grid_x * heads * n_cols, dtype=torch.float32, device=edge_index.device
                )
                tensors["block_totals"] = totals
                words |= {"block_totals": totals.data_ptr(), "n_totals": grid_x}
        elif walk.rows:
            grid_x = -(-size[1] * heads // walk.rows)
        if grid_x:
            walk.kernel(grid_x, walk.grid_y, stream, [words[name] for name in walk.names])


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
    if not (x.numel() and weight.numel()):
        return d_weight, dx.zero_().to(dtype)
    tensors = {"values": weight, "X": x, "dY": dy, "d_values": d_weight, "dX": dx}
    size = sources, targets, loops
    _run("spmm_gradient", edge_index, size, 1, x.size(1), tensors, {}, transposed)
    return d_weight, dx.to(dtype)


extremum, extremum_gradient = composed.extremum, composed.extremum_gradient


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
    """Return the result and the statistics of the softmax, by the order of the outputs."""
    operation = OPERATIONS[score]
    names = [operand.name for operand in operation.inputs[:3]]
    tensors = dict(zip(names, map(_usable, (first, second, third)), strict=True))
    _, heads, n_cols = tensors["V"].shape
    shapes = {"Y": (size[1], heads, n_cols)}
    results = {
        output.name: torch.empty(
            shapes.get(output.name, (size[1], heads)), dtype=torch.float32, device=first.device
        )
        for output in operation.outputs
    }
    if not (results["Y"].numel() and edge_index.size(1) + size[2]):
        return tuple(result.zero_() for result in results.values())
    tensors |= results | {"random": _random(random, first)}
    numbers = {"slope": _bits(slope), "rate": _bits(rate)}
    _run(score, edge_index, size, heads, n_cols, tensors, numbers)
    return tuple(results.values())


def _random(random: Any, like: Any) -> Any:
    return _no_random(like.device) if random is None else random


@functools.cache
def _no_random(device: Any) -> Any:
    with torch.inference_mode(False):
        return torch.zeros(4, dtype=torch.int32, device=device)


def attention_gradient(
    edge_index: Any,
    score: str,
    first: Any,
    second: Any,
    third: Any,
    random: Any,
    *rest: Any,
) -> tuple[Any, Any, Any]:
    """Return the gradients of the three operands."""
    operation = OPERATIONS[f"{score}_gradient"]
    n_results = len(OPERATIONS[score].outputs)
    *results, dy, slope, rate, sources, targets, loops = rest
    size = sources, targets, loops
    names = [operand.name for operand in operation.inputs[: 3 + n_results + 1]]
    operands = map(_usable, (first, second, third, *results, dy))
    tensors = dict(zip(names, operands, strict=True))
    _, heads, n_cols = tensors["V"].shape
    gradients = {
        output.name: torch.empty_like(tensors[_differentiated(output.name)])
        for output in operation.outputs
    }
    values = [gradients[output.name] for output in operation.outputs]
    if not (dy.numel() and edge_index.size(1) + loops):
        for gradient in values:
            gradient.zero_()
    else:
        statistics = 4 if score == "gat" else 2
        workspaces = {
            "statistics": torch.empty(
                targets * heads * statistics, dtype=torch.float32, device=dy.device
            ),
            "part_totals": torch.empty(
                _TOTAL_PARTS * heads * n_cols, dtype=torch.float32, device=dy.device
            ),
        }
        tensors |= gradients | workspaces | {"random": _random(random, dy)}
        numbers = {"slope": _bits(slope), "rate": _bits(rate), "n_parts": _TOTAL_PARTS}
        _run(operation.name, edge_index, size, heads, n_cols, tensors, numbers)
    by_operand = {_differentiated(name): gradient for name, gradient in gradients.items()}
    return tuple(by_operand[name] for name in names[:3])  # type: ignore[return-value]


def _differentiated(gradient: str) -> str:
    """Return the operand of a gradient: `V` of `dV`, `sender` of `d_sender`."""
    return gradient.removeprefix("d").removeprefix("_")
