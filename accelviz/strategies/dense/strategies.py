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

#: Columns that tiles of the tensor cores divide, and the largest small matrix: a warp keeps its
#: gradient in registers.
_TILE, _MOST_COLUMNS, _MOST_WEIGHTS, _MOST_THREADS = 16, 128, 1 << 14, 512
#: Of `weight_gradient`: rows in shared memory at a time, with this padding of both sides.
_ROWS, _PADDING = 32, 16
_SHARED_BYTES_OF_BLOCK = 48 << 10
#: Blocks stay to the end, as many as fit on an H100: 132 SMs, each of 65,536 registers.
_SMS = 132


class _Dense(Strategy):
    """A strategy of one form's product or gradient."""

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
        """Return a plan with the numbers of its kernels and, if needed, a workspace of parts."""
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
    """cuBLAS multiplies; kernels of their own do what follows."""

    name = "cublas"
    summary = "NVIDIA's library; what follows the product is a pass over memory more"

    def build(self, graph: Graph, widths: Widths, settings: Settings) -> Plan:
        """Leave the products to the library, then finish."""
        form, n_rows, n_cols = self.form, graph.n_rows, widths["n_cols"]
        layout = Layout(graph.pattern)
        if self.is_gradient:
            width = min(n_cols, THREADS)
            blocks = min(SUM_BLOCKS, max(1, n_rows * width // THREADS))
            calls = [_sgemm(A, f"D{Y[1:]}", f"d{W}", "A") for A, W, Y in form.pairs]
            sums = column_sums(form.names("D")[-1], "db", blocks)
            numbers = {"width": width, "n_parts": blocks}
            return self._plan(layout, [*calls, *sums], widths, blocks * n_cols, numbers=numbers)
        turned = "B" if form.transposed else ""
        calls = [
            _sgemm(*names, turned, adds=form.inputs > 1 and i > 0)
            for i, names in enumerate(form.pairs)
        ]
        launch, bias = elements_launch(-(-n_rows * n_cols // AT_ONCE)), ("null", "bias")[form.bias]
        ends = []
        for name in form.names("Y") if form.has_end else ():
            arguments = (name, "null", bias, name, "n", "n_cols", "rate", "random")
            kernel = step_kernel("finish", arguments, form.activation, form.dropout)
            if form.slope:
                kernel = step_kernel("slope", (name, "positive", "n", "scale"))
            ends.append(Call(launch, kernel))
        return self._plan(layout, [*calls, *ends], widths)

    def describe(self, settings: Settings, rows: RowDegrees, widths: Widths) -> Description:
        """Know nothing: the library does not say what its warps do."""
        return Description(Library())


def _sgemm(A: str, B: str, result: str, transposed: str, adds: bool = False) -> LibraryCall:
    arguments = (A, B, result)
    return LibraryCall("cublas", "sgemm", arguments=arguments, transposed=transposed, adds=adds)


class TensorTiles(_Dense):
    """A warp has 16 or 32 rows of A in registers; what follows is done there, too.

    Products have float32's accuracy: each number is the sum of two of TF32 (3xTF32). It takes
    widths that `fits` takes, and so is not among the strategies that any width can be asked of.
    """

    name = "tensor_tiles"
    summary = "our own: 3xTF32 tensor cores, W in shared memory, what follows in registers"

    def build(self, graph: Graph, widths: Widths, settings: Settings) -> Plan:
        """Give warps, or for the gradient blocks, tiles of rows in turn."""
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
        A, numbers, parts = _ends(form.names("A")), {}, 0
        if self.is_gradient:
            threads, size = gradient_threads(n_left, n_right), (n_left + 1) * n_right
            warps, tile_rows = 1, _ROWS  # all warps of a block have a tile together
            blocks = min(-(-n_rows // _ROWS), _SMS * _resident_gradients(threads))
            numbers, parts = {"n_parts": blocks}, max(blocks, 1) * size
            factors = (*A, *_ends(form.names("D")), "parts", "n_rows")
            results = ("parts", *_ends([f"d{name}" for name in form.names("W")]), "db", "n_parts")
            add_blocks = -(-size // WARP_SIZE)
            calls = [
                _call("weight_gradient", config, blocks, threads, factors),
                _call("add_parts", config, add_blocks, 8 * WARP_SIZE, results),
            ]
        else:
            warps, tile_rows = THREADS // WARP_SIZE, 2 * _TILE if n_right <= 64 else _TILE
            tiles = -(-n_rows // (warps * tile_rows))
            blocks = min(tiles, _SMS * (3 if n_right <= 2 * _TILE else 1))
            after = ("null", "bias")[form.bias], ("null", "positive")[form.slope]
            operands = (*A, *_ends(form.names("W")), *after, *_ends(form.names("Y")))
            arguments = (*operands, "n_rows", "scale", "rate", "random")
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


def _ends(names: list[str]) -> tuple[str, str]:
    """Return the first and the last: kernels take two matrices, which may be the same."""
    return names[0], names[-1]


def tile_workload(
    pattern: Pattern, tile_rows: int, warps: int, blocks: int, start: int, stop: int
) -> Workload:
    """Return who has which rows, where the workers of all blocks take tiles of rows in turn.

    A record's nonzeros are those of its row, which stand for the row: a product reads none.
    """
    rows = np.arange(pattern.n_rows)
    block, warp = np.divmod(rows // tile_rows % max(blocks * warps, 1), warps)
    order = np.lexsort((rows, warp, block))
    order = order[(block[order] >= start) & (block[order] < stop)]
    return Workload(
        block[order], warp[order], order, pattern.row_pointers[order], pattern.degrees[order]
    )


def fits(inner: int, columns: int, inputs: int, outputs: int) -> bool:
    """Say whether `TensorTiles` takes matrices of so many columns, and so many of them at once."""
    n_left, n_right = inputs * inner, outputs * columns
    staged = 4 * _ROWS * (n_left + n_right + _PADDING)
    return (
        inner % _TILE == 0
        and columns % _TILE == 0
        and n_right <= _MOST_COLUMNS
        and n_left * n_right <= _MOST_WEIGHTS
        and gradient_threads(n_left, n_right) <= _MOST_THREADS
        and staged <= _SHARED_BYTES_OF_BLOCK
    )


def gradient_threads(n_left: int, n_right: int) -> int:
    """Return the threads of a block of `weight_gradient`, as the kernel counts them."""
    high = 2 if n_left % 32 == 0 else 1
    warps = n_left // (16 * high) * (n_right // 16)
    warps //= 2 if n_right % 32 == 0 and warps > 16 else 1
    return warps * (1 if warps >= 8 else 2 if warps >= 4 else 4) * WARP_SIZE


def _resident_gradients(threads: int) -> int:
    """Return the blocks of `weight_gradient` that an SM holds: registers bound the large ones."""
    return 1 if threads > THREADS else 4 * THREADS // threads


@lru_cache(maxsize=64)
def dense_plan(form: Form, n_rows: int, inner: int, n_cols: int, *, of_gradient: bool) -> Plan:
    """Return the plan of a form's product or gradient for matrices of `n_rows` rows."""
    operation = (gradient if of_gradient else product)(form)
    strategy = TensorTiles if fits(inner, n_cols, form.inputs, form.outputs) else Cublas
    return strategy(form, operation).plan(_rows(n_rows), n_cols, inner=inner)


@lru_cache(maxsize=8)
def _rows(n_rows: int) -> Graph:
    """Return a graph that has rows and nothing else."""
    empty = np.zeros(0, np.int32), np.zeros(0, np.float32)
    return Graph(np.zeros(n_rows + 1, np.int64), *empty, (n_rows, 1), f"{n_rows} rows")
