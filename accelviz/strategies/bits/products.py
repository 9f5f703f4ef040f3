"""Algorithms of bit products: how each cuts one into blocks, warps, tiles and passes."""

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
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.description import Description
from accelviz.plans.launch import (
    MOST_BLOCK_WARPS,
    NO_TENSOR_MAP,
    Call,
    KernelSpec,
    LaunchConfig,
    TensorMap,
)
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.bits.operation import Epilogue, bit_product
from accelviz.strategies.bits.packing import MOST_BITS, layout
from accelviz.strategies.bits.tiles import Shares

#: Rows and columns of a block of "split", "paper" and "popc", and warps of it.
SIDE, WARPS = 32, 8
#: Bits of a line in a stage of "tiled"; and that are jumped over, by "tiled", "split" and "popc".
STAGE_BITS, TILED_BITS, SPLIT_BITS, POPC_BITS = 512, 256, 512, 1024
#: Of "warpgroup": rows of a block and columns of a product, bits of a line in a stage, the bytes
#: that stages begin at multiples of, and those through which all warps write sums.
GROUP_ROWS, GROUP_COLUMNS, GROUP_BITS, ALIGNMENT, GROUP_OUT = 128, 128, 1024, 1024, WARPS * 16 * 160
#: The one architecture that has them, and its SMs: as many blocks, which go from tile to tile.
GROUP_ARCH, SMS = "sm_90a", 132
#: Stages of "warpgroup", by the halves that its blocks have.
_GROUP_STAGES = {1: 6, 2: 4}
#: Of "tiled": planes of a pass, and the tiles of a warp that they share.
_M_TILES, _N_TILES, _STAGES = 4, 8, 4
#: Of "split": products of planes whose sums a warp holds.
_SPLIT_PLANES = 4
#: Rows from which blocks of "tiled" have eight warps, but for single bits.
ENOUGH_ROWS = 4096

_OPERANDS, _MAPS = ("A", "B", "out"), ("map_of_a", "map_of_b")
_SIZES = ("rows", "columns", "words", "a_bits", "a_lines", "b_bits", "b_lines")

Pair = tuple[int, int]
Shape = tuple[int, int, int]


class ProductSettings(Settings):
    """`jump` (over tiles of A that are zero, section 2.4.3)."""

    jump: bool = setting(
        True, "jump over tiles of A that are zero", choices=(True, False), tries=(True, False)
    )


class ReuseSettings(ProductSettings):
    """`jump`; and `reuse` (a tile of A that is loaded meets several planes of B, 2.4.4)."""

    reuse: bool = setting(
        True,
        "multiply a loaded tile of A by several planes of B; without, A is read for each",
        choices=(True, False),
        tries=(True, False),
    )


class TiledSettings(ReuseSettings):
    """`jump`, `reuse`; and `warps_m` and `warps_n` (warps of a block, 1 to 8), None for a rule."""

    warps_m: int = setting(None, "warps along the rows; more: fewer reads of B", 8, tries=(2, 4))
    warps_n: int = setting(None, "warps along the columns; more: fewer reads of A", 8, tries=(2, 4))


@dataclass(frozen=True)
class _Mapped:
    """A product as its kernel is launched; workers share a block's rows, or their sums."""

    config: Mapping[str, int]
    grid: Shape
    shares: Shares
    jump_bits: int
    warps: int = WARPS
    workers: int = WARPS
    shared_bytes: int = 0


class BitProduct(Strategy):
    """A dense product of planes of bits. On a graph, A lies within the pattern.

    Parameters
    ----------
    epilogue : Epilogue, optional
        Of an algorithm that `finishes`.

    Attributes
    ----------
    entry : str
        The kernel, and its file in kernels/bits.
    capability, arch : int and str
        As of `KernelSpec`.
    finishes : bool
        Whether an epilogue can follow in the kernel.
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
        """Map a product of rows x columns, summed over K."""

    def _arguments(self, sizes: dict[str, Any]) -> dict[str, Any]:
        """Return what the kernel takes in order, by name; None for operands."""
        return dict.fromkeys(_OPERANDS) | sizes

    def _tensor_maps(self, config: Mapping[str, int], shapes: list[Shape]) -> dict[str, TensorMap]:
        return {}

    def describe(self, settings: Any, rows: RowDegrees, widths: Widths) -> Description:
        """Know no scheme: which warp has a nonzero depends on its column, or on all rows."""
        return Description()

    def build(self, graph: Graph, widths: Widths, settings: Any) -> Plan:
        """Cut the product into blocks.

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
    """Warps of a block share the sum of 32 x 32 elements; it takes `jump` and `reuse`."""

    name = "split"
    summary = "tensor cores, m16n8k256; the warps of a block share the sum of 32 x 32 elements"
    Settings = ReuseSettings
    entry, finishes = "split_sum", True
    mma_bits: ClassVar[int] = 256

    def _arguments(self, sizes: dict[str, Any]) -> dict[str, Any]:
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

    def _map(self, shape: Shape, bits: Pair, settings: Any) -> _Mapped:
        rows, columns, inner = shape
        s, t = bits
        few = min(t if settings.reuse else 1, _SPLIT_PLANES)
        b_planes = -(-t // -(-t // few)) if settings.reuse else 1
        a_planes = min(s, max(_SPLIT_PLANES // b_planes // 2, 1))
        planes, passes = (a_planes, b_planes), (-(-s // a_planes), -(-t // b_planes))
        k_warps = WARPS  # that share a pass; more passes at a time where K is short
        while (
            k_warps > 1
            and k_warps // 2 * SPLIT_BITS >= inner
            and WARPS // k_warps < passes[0] * passes[1]
        ):
            k_warps //= 2
        epilogue = self.epilogue or Epilogue()
        left = self.epilogue is not None and epilogue.side == "left"
        down, across = -(-rows // SIDE), -(-columns // SIDE)
        grid = (down, across, 1)
        if epilogue.bits:  # words to the end of each line, fillings too
            words = layout((rows, columns), epilogue.bits, epilogue.side)[2]
            grid = (down, words, 1) if left else (words, across, 1)
        config = {"mma_k": self.mma_bits, "warps": WARPS, "k_warps": k_warps}
        config |= {"output": 0 if self.epilogue is None else 2 if epilogue.bits else 1}
        config |= {"relu": int(epilogue.relu), "along_columns": int(left)}
        shares = Shares(SIDE, SIDE, np.arange(down), SPLIT_BITS, k_warps)
        return _Mapped(config | _named(planes, passes), grid, shares, SPLIT_BITS)


class Paper(Split):
    """`split` with the instruction of the paper, m8n8k128."""

    name = "paper"
    summary = "as split, with the paper's m8n8k128"
    mma_bits = 128


class Popc(BitProduct):
    """CUDA cores: a thread has four elements of a column; it takes `jump`."""

    name = entry = "popc"
    summary = "CUDA cores: AND and popc"
    capability = 0

    def _map(self, shape: Shape, bits: Pair, settings: Any) -> _Mapped:
        down, across = -(-shape[0] // SIDE), -(-shape[1] // SIDE)
        shares = Shares(SIDE, SIDE // WARPS, np.arange(down))
        return _Mapped({}, (down, across, 1), shares, POPC_BITS)

    def describe(self, settings: Any, rows: RowDegrees, widths: Widths) -> Description:
        """Name the rows of a warp."""
        return Description(RowSplit(SIDE // WARPS, WARPS))


class Tiled(BitProduct):
    """Warps of a block share tiles in shared memory; it takes `jump`, `reuse` and warps."""

    name = entry = "tiled"
    summary = "tensor cores, m16n8k256; the warps of a block share tiles in shared memory"
    Settings = TiledSettings
    worker = "row of warps"

    def resolve(self, settings: Any, graph: Graph | RowDegrees, widths: Widths) -> Any:
        """Take 4 x 2 warps for many rows of more than single bits, else 2 x 2.

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
        planes, passes = _shared_out(bits[0], t if settings.reuse else 1, _M_TILES, _N_TILES)
        passes = passes[0], -(-t // planes[1])
        m_tiles = planes[0] * (_M_TILES // planes[0])
        # Sums of several passes and the sums of one are held at the same time.
        most = _N_TILES // 2 if max(passes) > 1 and m_tiles // planes[0] > 2 else _N_TILES
        n_tiles = planes[1] * max(most // planes[1], 1)
        config = {"warps_m": m, "warps_n": n, **_named(planes, passes)}
        config |= {"m_tiles": m_tiles, "n_tiles": n_tiles, "stages": _STAGES}
        config |= {"blocks_per_sm": max(1, WARPS // (m * n))}
        lines = m * m_tiles * 16, n * n_tiles * 8
        shared = sum(lines) * STAGE_BITS // 8 * _STAGES
        height, width = lines[0] // planes[0], lines[1] // planes[1]
        down = -(-rows // height)
        shares, grid = Shares(height, height // m, np.arange(down)), (down, -(-columns // width), 1)
        return _Mapped(config, grid, shares, TILED_BITS, m * n, m, shared)

    def describe(self, settings: Any, rows: RowDegrees, widths: Widths) -> Description:
        """Name the rows of a row of warps."""
        (planes, _), _ = _shared_out(widths["a_bits"], 1, _M_TILES, _N_TILES)
        return Description(RowSplit(_M_TILES // planes * 16, settings.warps_m))


class Warpgroup(BitProduct):
    """Hopper's warpgroups multiply out of shared memory; it takes `jump`."""

    name = entry = "warpgroup"
    summary = "Hopper's tensor cores, wgmma m64n128k256: warpgroups read shared memory"
    capability, arch = 90, GROUP_ARCH

    def _arguments(self, sizes: dict[str, Any]) -> dict[str, Any]:
        return super()._arguments(sizes) | dict.fromkeys(_MAPS, NO_TENSOR_MAP)

    def _tensor_maps(self, config: Mapping[str, int], shapes: list[Shape]) -> dict[str, TensorMap]:
        b_planes = config["b_planes"]
        groups = config["halves"] * GROUP_COLUMNS // 8 // b_planes  # of eight lines
        maps = []
        for name, shape, box in zip(
            "AB", shapes, ((1, GROUP_ROWS // 8), (b_planes, groups)), strict=True
        ):
            planes, lines, n = shape
            sizes, strides = (n, 8, planes, lines // 8), (4 * n, 4 * n * lines, 32 * n)
            maps.append(TensorMap(name, sizes, strides, (32, 8, *box)))
        return dict(zip(_MAPS, maps, strict=True))

    def _map(self, shape: Shape, bits: Pair, settings: Any) -> _Mapped:
        down = -(-shape[0] // GROUP_ROWS)

        def across(halves: int) -> int:
            return -(-shape[1] // (halves * GROUP_COLUMNS // 8 // bits[1] * 8))

        def lines(halves: int) -> int:  # of A and B that the busiest SM reads
            return -(-down * across(halves) // SMS) * (GROUP_ROWS + halves * GROUP_COLUMNS)

        halves = min((2, 1), key=lines)
        stages, blocks = _GROUP_STAGES[halves], min(down * across(halves), SMS)
        config = {"groups": GROUP_ROWS // 64, "halves": halves, "stages": stages}
        config |= {"a_planes": bits[0], "b_planes": bits[1]}
        shared = (GROUP_ROWS + halves * GROUP_COLUMNS) * GROUP_BITS // 8 * stages
        owners = np.arange(down) * across(halves) % max(blocks, 1)
        shares, shared = Shares(GROUP_ROWS, 16, owners), shared + ALIGNMENT + GROUP_OUT
        return _Mapped(config, (blocks, 1, 1), shares, GROUP_BITS, shared_bytes=shared)


#: The algorithms by name, as strategies of `bit_product`.
ALGORITHMS: dict[str, type[BitProduct]] = {
    algorithm.name: algorithm for algorithm in (Warpgroup, Tiled, Split, Paper, Popc)
}


def _named(planes: Pair, passes: Pair) -> dict[str, int]:
    names = ("a_planes", "b_planes", "a_passes", "b_passes")
    return dict(zip(names, (*planes, *passes), strict=True))


def _shared_out(s: int, t: int, m: int, n: int) -> tuple[Pair, Pair]:
    """Deal planes out to passes of at most m and n of them, of about equal size."""
    passes = -(-s // m), -(-t // n)
    return (-(-s // passes[0]), -(-t // passes[1])), passes
