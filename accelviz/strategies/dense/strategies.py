"""Strategies of dense products: cuBLAS, and tensor cores for tall matrices with small ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from accelviz.graph import Graph, Pattern
from accelviz.ordering import RowDegrees
from accelviz.partition.scheme import Library
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.description import Description
from accelviz.plans.gpu import SMS
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig, LibraryCall
from accelviz.plans.operation import Operation
from accelviz.plans.settings import Settings
from accelviz.strategies.dense.operation import ACTIVATIONS, Form, gradient, product
from accelviz.strategies.dense.steps import (
    AT_ONCE,
    SUM_BLOCKS,
    THREADS,
    column_sums,
    elements_launch,
    step_kernel,
)
from accelviz.workload import Workload

#: Side of a tensor-core tile; most columns, elements and threads for W, whose gradient is held in
#: registers.
_TILE, _MOST_COLUMNS, _MOST_WEIGHTS, _MOST_THREADS = 16, 128, 1 << 14, 512
#: Rows that `weight_gradient` has in shared memory at a time, and their padding in floats.
_ROWS, _PADDING = 32, 16
_BLOCK_SHARED_BYTES = 48 << 10


class _Dense(Strategy):
    """Base class: a strategy for the product or the gradient of one form."""

    def __init__(self, form: Form, operation: Operation) -> None:
        self.form, self.operation = form, operation
        self.is_gradient = any(output.name == "db" for output in operation.outputs)

    def _plan(
        self,
        layout: Layout,
        calls: Sequence[Call | LibraryCall],
        widths: Widths,
        parts: int = 0,
        *,
        arithmetic: str = "float32",
        numbers: Mapping[str, int] = MappingProxyType({}),
    ) -> Plan:
        """Return a plan with scalar arguments `numbers` and a workspace of `parts` floats."""
        n_rows, n_cols = layout.pattern.shape[0], widths["n_cols"]
        arrays: dict[str, Any] = {"n": np.int64(n_rows * n_cols), "null": None}
        for name, number in {"n_rows": n_rows, "n_cols": n_cols, **numbers}.items():
            arrays[name] = np.int32(number)
        absent = {"scale": np.float32(1), "rate": np.float32(0), "random": None}
        operands = self.operation.operands
        arrays |= {name: value for name, value in absent.items() if name not in operands}
        workspace = {"parts": (parts, np.float32)} if parts else {}
        buffers = Buffers(arrays, workspace=workspace, zero_outputs=(), arithmetic=arithmetic)
        return Plan(layout, tuple(calls), buffers, Provenance(self, None, widths, Settings()))


class Cublas(_Dense):
    """cuBLAS computes the products, a further kernel the epilogue."""

    name = "cublas"
    summary = "NVIDIA's library; the epilogue is a kernel of its own"

    def build(self, graph: Graph, widths: Widths, settings: Settings) -> Plan:
        """Plan calls of the library, and kernels for the epilogue or for `db`."""
        form, n_rows, n_cols = self.form, graph.n_rows, widths["n_cols"]
        layout = Layout(graph.pattern)
        if self.is_gradient:
            width = min(n_cols, THREADS)
            blocks = min(SUM_BLOCKS, max(1, n_rows * width // THREADS))
            products = [_sgemm(A, f"D{Y[1:]}", f"d{W}", "A") for A, W, Y in form.products]
            sums = column_sums(form.names("D")[-1], "db", blocks)
            numbers = {"width": width, "n_parts": blocks}
            return self._plan(layout, [*products, *sums], widths, blocks * n_cols, numbers=numbers)
        transposed = "B" if form.transposed else ""
        calls: list[Call | LibraryCall] = [
            _sgemm(*names, transposed, adds=form.inputs > 1 and i > 0)
            for i, names in enumerate(form.products)
        ]
        launch, bias = elements_launch(-(-n_rows * n_cols // AT_ONCE)), ("null", "bias")[form.bias]
        for name in form.names("Y") if form.has_epilogue else ():
            arguments = (name, "null", bias, name, "n", "n_cols", "rate", "random")
            kernel = step_kernel("finish", arguments, form.activation, form.dropout)
            if form.activation_gradient:
                kernel = step_kernel("slope", (name, "positive", "n", "scale"))
            calls.append(Call(launch, kernel))
        return self._plan(layout, calls, widths)

    def describe(self, settings: Settings, rows: RowDegrees, widths: Widths) -> Description:
        """Describe library calls, whose work distribution is not known."""
        return Description(Library())


def _sgemm(A: str, B: str, result: str, transposed: str, adds: bool = False) -> LibraryCall:
    arguments = (A, B, result)
    return LibraryCall("cublas", "sgemm", arguments=arguments, transposed=transposed, adds=adds)


class TensorTiles(_Dense):
    """Tensor cores; a warp has 16 or 32 rows of A and their results in registers.

    Products have float32's accuracy: each number is the sum of two TF32 numbers (3xTF32). It is not
    in the registry, as it requires widths for which `supports_tensor_tiles` is True.
    """

    name = "tensor_tiles"
    summary = "our own: 3xTF32 tensor cores, W in shared memory, epilogue in registers"

    def build(self, graph: Graph, widths: Widths, settings: Settings) -> Plan:
        """Assign tiles of rows to warps, or for the gradient to blocks, round robin."""
        form, n_rows = self.form, graph.n_rows
        n_left, n_right = form.inputs * widths["inner"], form.outputs * widths["n_cols"]
        config = {
            "inner": widths["inner"],
            "columns": widths["n_cols"],
            "in_parts": form.inputs,
            "out_parts": form.outputs,
            "transposed": int(form.transposed),
            "activation": ACTIVATIONS.index(form.activation),
            "dropout": int(form.dropout),
        }
        A, numbers, parts = _first_and_last(form.names("A")), {}, 0
        if self.is_gradient:
            threads, size = gradient_threads(n_left, n_right), (n_left + 1) * n_right
            warps, tile_rows = 1, _ROWS  # the warps of a block share a tile and count as one
            blocks = min(-(-n_rows // _ROWS), SMS * _resident_gradients(threads))
            numbers, parts = {"n_parts": blocks}, max(blocks, 1) * size
            factors = (*A, *_first_and_last(form.names("D")), "parts", "n_rows")
            results = (
                "parts",
                *_first_and_last([f"d{name}" for name in form.names("W")]),
                "db",
                "n_parts",
            )
            add_blocks = -(-size // WARP_SIZE)
            calls = [
                _call("weight_gradient", config, blocks, threads, factors),
                _call("add_parts", config, add_blocks, 8 * WARP_SIZE, results),
            ]
        else:
            warps, tile_rows = THREADS // WARP_SIZE, 2 * _TILE if n_right <= 64 else _TILE
            tiles = -(-n_rows // (warps * tile_rows))
            blocks = min(tiles, SMS * (3 if n_right <= 2 * _TILE else 1))
            bias = ("null", "bias")[form.bias]
            positive = ("null", "positive")[form.activation_gradient]
            W, Y = _first_and_last(form.names("W")), _first_and_last(form.names("Y"))
            arguments = (*A, *W, bias, positive, *Y, "n_rows", "scale", "rate", "random")
            calls = [_call("product", config, blocks, THREADS, arguments, 4 * n_left * n_right)]
        workload = partial(tile_workload, graph.pattern, tile_rows, warps, blocks)
        layout = Layout(graph.pattern, workload, workers_per_block=warps)
        return self._plan(layout, calls, widths, parts, arithmetic="3xtf32", numbers=numbers)


def _call(
    entry: str,
    config: dict[str, int],
    blocks: int,
    threads: int,
    arguments: tuple[str, ...],
    shared_bytes: int = 0,
) -> Call:
    file = "product" if entry == "product" else "weight_gradient"
    launch = LaunchConfig((blocks, 1, 1), threads // WARP_SIZE, shared_bytes)
    return Call(launch, KernelSpec(f"layers/{file}.cu", entry, config, arguments))


def _first_and_last(names: list[str]) -> tuple[str, str]:
    return names[0], names[-1]  # kernels have two arguments, which may be the same matrix


def tile_workload(
    pattern: Pattern, tile_rows: int, warps: int, blocks: int, start: int, stop: int
) -> Workload:
    """Return the workload of a round-robin assignment of row tiles to the warps of all blocks.

    A dense product reads no nonzeros: the record of a row has the row's nonzeros in their place.
    """
    rows = np.arange(pattern.n_rows)
    block, warp = np.divmod(rows // tile_rows % max(blocks * warps, 1), warps)
    order = np.lexsort((rows, warp, block))
    order = order[(block[order] >= start) & (block[order] < stop)]
    return Workload(
        block[order], warp[order], order, pattern.row_pointers[order], pattern.degrees[order]
    )


def supports_tensor_tiles(inner: int, columns: int, inputs: int, outputs: int) -> bool:
    """Return whether `TensorTiles` has kernels for these widths and numbers of matrices."""
    n_left, n_right = inputs * inner, outputs * columns
    shared_bytes = 4 * _ROWS * (n_left + n_right + _PADDING)
    return (
        inner % _TILE == 0
        and columns % _TILE == 0
        and n_right <= _MOST_COLUMNS
        and n_left * n_right <= _MOST_WEIGHTS
        and gradient_threads(n_left, n_right) <= _MOST_THREADS
        and shared_bytes <= _BLOCK_SHARED_BYTES
    )


def gradient_threads(n_left: int, n_right: int) -> int:
    """Return the threads per block of `weight_gradient`, by the formula of the kernel."""
    tiles_high = 2 if n_left % 32 == 0 else 1
    warps = n_left // (16 * tiles_high) * (n_right // 16)
    warps //= 2 if n_right % 32 == 0 and warps > 16 else 1
    return warps * (1 if warps >= 8 else 2 if warps >= 4 else 4) * WARP_SIZE


def _resident_gradients(threads: int) -> int:
    """Return the resident blocks of `weight_gradient` per SM, limited by registers."""
    return 1 if threads > THREADS else 4 * THREADS // threads


@lru_cache(maxsize=64)
def dense_plan(form: Form, n_rows: int, inner: int, n_cols: int, *, of_gradient: bool) -> Plan:
    """Return the plan of a form's product or gradient for matrices of `n_rows` rows."""
    operation = (gradient if of_gradient else product)(form)
    supported = supports_tensor_tiles(inner, n_cols, form.inputs, form.outputs)
    strategy = (TensorTiles if supported else Cublas)(form, operation)
    return strategy.plan(_graph_of_rows(n_rows), n_cols, inner=inner)


@lru_cache(maxsize=8)
def _graph_of_rows(n_rows: int) -> Graph:
    """Return a graph without nonzeros."""
    empty = np.zeros(0, np.int32), np.zeros(0, np.float32)
    return Graph(np.zeros(n_rows + 1, np.int64), *empty, (n_rows, 1), f"{n_rows} rows")
