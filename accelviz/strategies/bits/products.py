"""Algorithms of bit products: their division into blocks, warps, tiles and passes.

A pass multiplies some planes of A by some planes of B, as many as the registers of a warp have sums
for. A line is a row of A or a column of B. In a shape, (rows, columns, K), K is summed over.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.errors import ArgumentError, PartitionError, checked_integer
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.row_split import RowSplit
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy, Widths, WorkerLanes
from accelviz.plans.description import Description
from accelviz.plans.gpu import SMS
from accelviz.plans.launch import (
    MOST_BLOCK_WARPS,
    NO_TENSOR_MAP,
    WARP_SIZE,
    Call,
    KernelSpec,
    LaunchConfig,
    TensorMap,
)
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.bits.operation import Epilogue, bit_product
from accelviz.strategies.bits.packing import MOST_BITS, layout
from accelviz.strategies.bits.tiles import Shares

#: "split", "paper" and "popc": rows and columns of a block, and its warps.
SIDE, WARPS = 32, 8
#: Bits of a line in a stage of "tiled"; bits of a tile of A that is skipped if it is zero.
STAGE_BITS, TILED_BITS, SPLIT_BITS, POPC_BITS = 512, 256, 512, 1024
#: "warpgroup": rows of a block, columns of a product, bits of a line in a stage, alignment of the
#: stages in bytes, and bytes of the buffer through which the warps write sums.
GROUP_ROWS, GROUP_COLUMNS, GROUP_BITS, ALIGNMENT, GROUP_OUT = 128, 128, 1024, 1024, WARPS * 16 * 160
#: "warpgroup": the architecture with its instruction.
GROUP_ARCH = "sm_90a"
#: "warpgroup": most planes of B for packed results, whose blocks have whole words of 32 columns.
MOST_FINISHED_PLANES = 8
#: "warpgroup": pipeline stages, by the number of products (1 or 2) side by side in a block.
_GROUP_STAGES = {1: 6, 2: 4}
#: "tiled": tensor-core tiles of a warp along rows and columns, divided among planes; stages.
_M_TILES, _N_TILES, _STAGES = 4, 8, 4
#: "split": most products of planes whose sums are in a warp's registers.
_SPLIT_PLANES = 4
#: "tiled": least rows for blocks of eight warps, except for products of single bits.
ENOUGH_ROWS = 4096

_OPERANDS, _MAPS = ("A", "B", "out"), ("map_of_a", "map_of_b")
_SIZES = ("rows", "columns", "words", "a_bits", "a_lines", "b_bits", "b_lines")

Pair = tuple[int, int]
Shape = tuple[int, int, int]


class ProductSettings(Settings):
    """`jump`: whether tiles of A that are zero are skipped (section 2.4.3)."""

    jump: bool = setting(
        True, "skip tiles of A that are zero", choices=(True, False), tries=(True, False)
    )


class ReuseSettings(ProductSettings):
    """`jump`; and `reuse`: whether a pass has several planes of B (section 2.4.4)."""

    reuse: bool = setting(
        True,
        "multiply a loaded tile of A by several planes of B, not by one",
        choices=(True, False),
        tries=(True, False),
    )


class TiledSettings(ReuseSettings):
    """`jump`, `reuse`; and the warps of a block, of which a rule chooses those that are None."""

    warps_m: int = setting(None, "warps along the rows; more: fewer reads of B", 8, tries=(2, 4))
    warps_n: int = setting(None, "warps along the columns; more: fewer reads of A", 8, tries=(2, 4))


@dataclass(frozen=True)
class _Mapped:
    """Launch of a product. A zero tile of A of `jump_bits` bits per line is skipped."""

    config: Mapping[str, int]
    grid: Shape
    shares: Shares
    jump_bits: int
    warps: int = WARPS
    workers: int = WARPS
    shared_bytes: int = 0


class BitProduct(Strategy):
    """Base class: a dense product of bit planes. On a graph, A is zero outside of the pattern.

    Parameters
    ----------
    epilogue : Epilogue, optional
        Steps after the product, if the algorithm `finishes`.

    Attributes
    ----------
    entry : str
        Name of the kernel and of its file in kernels/bits.
    capability, arch : int and str
        See `KernelSpec`.
    finishes : bool
        Whether the kernel can have an epilogue.
    """

    Settings: ClassVar[type[Settings]] = ProductSettings
    entry: ClassVar[str] = ""
    capability: ClassVar[int] = 80
    arch: ClassVar[str] = ""
    finishes: ClassVar[bool] = False

    def __init__(self, epilogue: Epilogue | None = None) -> None:
        self.epilogue = epilogue
        self.operation = bit_product(epilogue)

    @abstractmethod
    def _map(self, shape: Shape, bits: Pair, settings: Any) -> _Mapped:
        """Return the launch of a product of `shape` with (s, t) `bits`."""

    def _arguments(self, sizes: dict[str, Any]) -> dict[str, Any]:
        """Return the kernel's arguments in order, by name; None for an operand of a run."""
        if not self.finishes:
            return dict.fromkeys(_OPERANDS) | sizes
        epilogue, shape = self.epilogue, (0, 0, 0)
        coefficients = ("alpha", "beta", "gamma", "row_scale")
        unread = None if epilogue else np.zeros(1, np.float32)
        scale = None if epilogue and epilogue.bits else np.float32(1)
        if epilogue and epilogue.bits:
            result = int(sizes["rows"]), int(sizes["columns"])
            shape = layout(result, epilogue.bits, epilogue.side)
        packed = zip(("out_bits", "out_lines", "out_words"), map(np.int32, shape), strict=True)
        operands = dict.fromkeys(_OPERANDS) | dict.fromkeys(coefficients, unread)
        return operands | sizes | dict.fromkeys(("low", "step"), scale) | dict(packed)

    def _output(self) -> dict[str, int]:
        """Return the compile-time constants of the result of a kernel that `finishes`."""
        epilogue = self.epilogue or Epilogue()
        output = 0 if self.epilogue is None else 2 if epilogue.bits else 1
        along_columns = int(self.epilogue is not None and epilogue.side == "left")
        return {"output": output, "relu": int(epilogue.relu), "along_columns": along_columns}

    def _tensor_maps(self, config: Mapping[str, int], shapes: list[Shape]) -> dict[str, TensorMap]:
        return {}

    def describe(self, settings: Any, rows: RowDegrees, widths: Widths) -> Description:
        """Return an empty description: row degrees do not determine the warp of a nonzero."""
        return Description()

    def build(self, graph: Graph, widths: Widths, settings: Any) -> Plan:
        """Divide the product into blocks.

        Raises
        ------
        ArgumentError
            If an operand has more than 16 bits.
        PartitionError
            If there are too many rows or columns for a grid.
        """
        bits = widths["a_bits"], widths["b_bits"]
        for name, width in zip(("a_bits", "b_bits"), bits, strict=True):
            checked_integer(name, width, MOST_BITS, error=ArgumentError)
        (rows, inner), columns = graph.shape, widths["n_cols"]
        mapped = self._map((rows, columns, inner), bits, settings)
        shapes = [
            layout((rows, inner), bits[0], "left"),
            layout((inner, columns), bits[1], "right"),
        ]
        sizes = (rows, columns, shapes[0][2], *shapes[0][:2], *shapes[1][:2])
        arguments = self._arguments(dict(zip(_SIZES, map(np.int32, sizes), strict=True)))
        kernel = KernelSpec(
            f"bits/{self.entry}.cu",
            self.entry,
            {"jump": int(settings.jump), **mapped.config},
            tuple(arguments),
            capability=self.capability,
            arch=self.arch,
        )
        launch = LaunchConfig(mapped.grid, mapped.warps, mapped.shared_bytes)
        tiles = partial(mapped.shares.tiles, graph.pattern, mapped.jump_bits)
        return Plan(
            Layout(
                graph.pattern,
                partial(mapped.shares.workload, graph.pattern),
                workers_per_block=mapped.workers,
                make_tiles=tiles if settings.jump else None,
            ),
            (Call(launch, kernel, self._tensor_maps(mapped.config, shapes)),),
            Buffers(
                {name: value for name, value in arguments.items() if value is not None},
                zero_outputs=(),
            ),
            Provenance(self, None, widths, settings),
        )


class Split(BitProduct):
    """Each warp of a block has a part of K or of the passes of the same 32 x 32 sums."""

    name = "split"
    summary = "tensor cores, m16n8k256; the warps of a block add up the same 32 x 32 elements"
    Settings = ReuseSettings
    entry, finishes = "split_sum", True
    mma_bits: ClassVar[int] = 256

    def _map(self, shape: Shape, bits: Pair, settings: Any) -> _Mapped:
        rows, columns, inner = shape
        s, t = bits
        b_planes = 1
        if settings.reuse:
            b_planes = -(-t // -(-t // min(t, _SPLIT_PLANES)))
        a_planes = min(s, max(_SPLIT_PLANES // b_planes // 2, 1))
        planes, passes = (a_planes, b_planes), (-(-s // a_planes), -(-t // b_planes))
        k_warps = WARPS  # warps that share a pass along K; the others have further passes
        while (
            k_warps > 1
            and k_warps // 2 * SPLIT_BITS >= inner
            and WARPS // k_warps < passes[0] * passes[1]
        ):
            k_warps //= 2
        row_blocks = -(-rows // SIDE)
        config = {"mma_k": self.mma_bits, "warps": WARPS, "k_warps": k_warps}
        config |= self._output()
        shares = Shares(SIDE, SIDE, np.arange(row_blocks), SPLIT_BITS, k_warps)
        grid = (row_blocks, -(-columns // SIDE), 1)
        return _Mapped(config | _named(planes, passes), grid, shares, SPLIT_BITS)


class Paper(Split):
    """`split` with the instruction of the paper, m8n8k128."""

    name = "paper"
    summary = "as split, with the paper's m8n8k128"
    mma_bits = 128


class Popc(BitProduct):
    """CUDA cores; a thread computes four elements of a column."""

    name = entry = "popc"
    summary = "CUDA cores: AND and popc"
    capability = 0

    def _map(self, shape: Shape, bits: Pair, settings: Any) -> _Mapped:
        row_blocks, column_blocks = -(-shape[0] // SIDE), -(-shape[1] // SIDE)
        shares = Shares(SIDE, SIDE // WARPS, np.arange(row_blocks))
        return _Mapped({}, (row_blocks, column_blocks, 1), shares, POPC_BITS)

    def describe(self, settings: Any, rows: RowDegrees, widths: Widths) -> Description:
        """Describe a row split with 4 rows per warp."""
        return Description(RowSplit(SIDE // WARPS, WARPS))


class Tiled(BitProduct):
    """Warps have elements of their own and share the tiles of A and B in shared memory."""

    name = entry = "tiled"
    summary = "tensor cores, m16n8k256; the warps of a block share tiles in shared memory"
    Settings = TiledSettings
    worker = "row of warps"

    def resolve(self, settings: Any, graph: Graph | RowDegrees, widths: Widths) -> Any:
        """Choose 4 x 2 warps for many rows of more than single bits, else 2 x 2.

        Raises
        ------
        PartitionError
            If a block would have more than 32 warps.
        """
        large = graph.shape[0] >= ENOUGH_ROWS and widths["a_bits"] * widths["b_bits"] > 1
        settings = settings.filled(warps_m=4 if large else 2, warps_n=2)
        if settings.warps_m * settings.warps_n > MOST_BLOCK_WARPS:
            problem = f"{settings.warps_m} x {settings.warps_n} of a block"
            raise PartitionError("warps_m", problem, f"at most {MOST_BLOCK_WARPS} together")
        return settings

    def _map(self, shape: Shape, bits: Pair, settings: Any) -> _Mapped:
        rows, columns, _ = shape
        m, n, t = settings.warps_m, settings.warps_n, bits[1]
        planes, passes = _divide_planes(bits[0], t if settings.reuse else 1)
        passes = passes[0], -(-t // planes[1])
        m_tiles = planes[0] * (_M_TILES // planes[0])
        # With several passes, the registers have the sums of all and of the current one.
        most_n_tiles = _N_TILES // 2 if max(passes) > 1 and m_tiles // planes[0] > 2 else _N_TILES
        n_tiles = planes[1] * max(most_n_tiles // planes[1], 1)
        config = {"warps_m": m, "warps_n": n, **_named(planes, passes)}
        config |= {"m_tiles": m_tiles, "n_tiles": n_tiles, "stages": _STAGES}
        config |= {"blocks_per_sm": max(1, WARPS // (m * n))}
        lines = m * m_tiles * 16, n * n_tiles * 8
        shared = sum(lines) * STAGE_BITS // 8 * _STAGES
        height, width = lines[0] // planes[0], lines[1] // planes[1]
        grid = (-(-rows // height), -(-columns // width), 1)
        shares = Shares(height, height // m, np.arange(grid[0]))
        return _Mapped(config, grid, shares, TILED_BITS, m * n, m, shared)

    def describe(self, settings: Any, rows: RowDegrees, widths: Widths) -> Description:
        """Describe a row split; the `warps_n` warps with the same rows count as one."""
        (planes, _), _ = _divide_planes(widths["a_bits"], 1)
        m, n = settings.warps_m, settings.warps_n
        scheme = RowSplit(_M_TILES // planes * 16, m)
        return Description(scheme, workers=WorkerLanes(n * WARP_SIZE, m * n))


class Warpgroup(BitProduct):
    """Hopper's warpgroups, groups of four warps, multiply operands in shared memory."""

    name = entry = "warpgroup"
    summary = "Hopper's tensor cores, wgmma m64n128k256: warpgroups read shared memory"
    capability, arch, finishes = 90, GROUP_ARCH, True

    def _arguments(self, sizes: dict[str, Any]) -> dict[str, Any]:
        return super()._arguments(sizes) | dict.fromkeys(_MAPS, NO_TENSOR_MAP)

    def _tensor_maps(self, config: Mapping[str, int], shapes: list[Shape]) -> dict[str, TensorMap]:
        b_planes = config["b_planes"]
        boxes = (
            (1, GROUP_ROWS // 8),
            (b_planes, config["column_tiles"]),
        )  # planes, groups of 8 lines
        maps = {}
        for argument, name, shape, box in zip(_MAPS, "AB", shapes, boxes, strict=True):
            planes, lines, n = shape
            sizes, strides = (n, 8, planes, lines // 8), (4 * n, 4 * n * lines, 32 * n)
            maps[argument] = TensorMap(name, sizes, strides, (32, 8, *box))
        return maps

    def _map(self, shape: Shape, bits: Pair, settings: Any) -> _Mapped:
        rows, columns, _ = shape
        output = self._output()
        if output["output"] == 2 and bits[1] > MOST_FINISHED_PLANES:
            expected = f"at most {MOST_FINISHED_PLANES} for packed results"
            raise ArgumentError("b_bits", f"got {bits[1]}", expected)
        row_tiles = -(-rows // GROUP_ROWS)

        def block_tiles(halves: int) -> int:  # tiles of 8 columns; of 32 for packed results
            tiles = halves * GROUP_COLUMNS // 8 // bits[1]
            return tiles // 4 * 4 if output["output"] == 2 else tiles

        def column_blocks(halves: int) -> int:
            return -(-columns // (8 * block_tiles(halves)))

        def most_lines(halves: int) -> int:  # lines of A and B that one SM reads
            sm_tiles = -(-row_tiles * column_blocks(halves) // SMS)
            return sm_tiles * (GROUP_ROWS + halves * GROUP_COLUMNS)

        halves = min((2, 1) if block_tiles(1) else (2,), key=most_lines)
        stages, blocks = _GROUP_STAGES[halves], min(row_tiles * column_blocks(halves), SMS)
        config = {"groups": GROUP_ROWS // 64, "halves": halves, "stages": stages, **output}
        config |= {"a_planes": bits[0], "b_planes": bits[1], "column_tiles": block_tiles(halves)}
        stage_bytes = (GROUP_ROWS + halves * GROUP_COLUMNS) * GROUP_BITS // 8
        shared_bytes = stages * stage_bytes + ALIGNMENT + GROUP_OUT
        shown_tiles = np.arange(-(-shape[0] // GROUP_ROWS))
        shares = Shares(GROUP_ROWS, 16, shown_tiles * column_blocks(halves) % max(blocks, 1))
        return _Mapped(config, (blocks, 1, 1), shares, GROUP_BITS, shared_bytes=shared_bytes)


#: The algorithms, strategies of `bit_product`, by name.
ALGORITHMS: dict[str, type[BitProduct]] = {
    algorithm.name: algorithm for algorithm in (Warpgroup, Tiled, Split, Paper, Popc)
}


def _named(planes: Pair, passes: Pair) -> dict[str, int]:
    names = ("a_planes", "b_planes", "a_passes", "b_passes")
    return dict(zip(names, (*planes, *passes), strict=True))


def _divide_planes(s: int, t: int) -> tuple[Pair, Pair]:
    """Divide planes of A and B among the fewest passes; return planes per pass, and passes."""
    passes = -(-s // _M_TILES), -(-t // _N_TILES)
    return (-(-s // passes[0]), -(-t // passes[1])), passes
