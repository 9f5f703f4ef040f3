"""How each way to multiply bits cuts a product into blocks, warps, tiles and passes over planes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accelviz.bits.finish import Finish
from accelviz.bits.tensor import layout
from accelviz.devices.cuda import gpu_state
from accelviz.devices.cuda.compiler import is_of
from accelviz.errors import ArgumentError, checked_integer

#: The ways to multiply, by name.
WAYS = {
    "warpgroup": "Hopper's tensor cores, wgmma m64n128k256: warpgroups read shared memory",
    "tiled": "tensor cores, m16n8k256; the warps of a block share tiles in shared memory",
    "split": "tensor cores, m16n8k256; the warps of a block share the sum of 32 x 32 elements",
    "paper": "as split, with the paper's m8n8k128",
    "popc": "CUDA cores: AND and popc",
}
#: Rows and columns of a block of "split", "paper" and "popc", and warps of it.
SIDE, WARPS = 32, 8
#: Bits of a line in a stage of "tiled"; and that are jumped over, by "tiled", "split" and "popc".
STAGE_BITS, TILED_BITS, SPLIT_BITS, POPC_BITS = 512, 256, 512, 1024
#: Of "warpgroup": warpgroups of a block, rows and columns of its products, bits of a line in a
#: stage, the bytes that stages begin at multiples of, and those through which a warp writes sums.
GROUPS, GROUP_ROWS, GROUP_COLUMNS, GROUP_BITS, ALIGNMENT = 2, 64, 128, 1024, 1024
GROUP_OUT = 16 * 40 * 4
#: The one architecture that has them, and its SMs: as many blocks, which go from tile to tile.
GROUP_ARCH, SMS = "sm_90a", 132
#: Stages of "warpgroup", by the halves that its blocks have.
_GROUP_STAGES = {1: 6, 2: 4}
#: Of "tiled": planes of a pass, and the tiles of a warp that they share.
_M_TILES, _N_TILES, _STAGES = 4, 8, 4
#: Of "split": products of planes whose sums a warp holds.
_SPLIT_PLANES = 4
#: Elements of a result, times planes of B, beyond which "warpgroup" is faster than "split"; and
#: from which "tiled" is.
GROUP_LARGE, LARGE = 1 << 18, 1 << 19
#: Rows from which blocks of "tiled" have eight warps, but for single bits.
ENOUGH_ROWS = 4096

Pair = tuple[int, int]


@dataclass(frozen=True)
class Mapped:
    """A product as its kernel is launched.

    Attributes
    ----------
    entry : str
        The kernel, and its file in kernels/bits.
    config : mapping of str to int
        Its constants, but for JUMP.
    grid : tuple of three int
    warps, shared_bytes : int
        Of a block.
    planes, passes, tile : tuple of two int
        As of `Product`.
    arch : str
        As of `KernelSpec`.
    """

    entry: str
    config: Mapping[str, int]
    grid: tuple[int, int, int]
    warps: int
    shared_bytes: int
    planes: Pair
    passes: Pair
    tile: Pair
    arch: str = ""


def usual(shape: Pair, bits: int, reuse: bool, warps: Pair | None) -> str:
    """Return the way of whole numbers that is taken if none is named, as measured on an H200.

    Parameters
    ----------
    shape : tuple of two int
        Of the result.
    bits : int
        Of B.
    reuse, warps
        As of `plan_product`.
    """
    size = shape[0] * shape[1] * bits
    large = reuse and warps is None and size > GROUP_LARGE
    if large and gpu_state().ready and is_of(GROUP_ARCH):
        return "warpgroup"
    return "split" if size < LARGE and warps is None else "tiled"


def mapped(
    way: str,
    shape: tuple[int, int, int],
    bits: Pair,
    reuse: bool,
    finish: Finish | None,
    warps: Pair | None,
) -> Mapped:
    """Map a product of rows x columns, summed over K, of s x t bits; else as `plan_product`."""
    if way == "warpgroup":
        return _warpgroup(shape, bits)
    if way == "tiled":
        return _tiled(shape, bits, reuse, warps)
    if way == "popc":
        grid = (-(-shape[0] // SIDE), -(-shape[1] // SIDE), 1)
        return Mapped(way, {}, grid, WARPS, 0, (1, bits[1]), (bits[0], 1), (SIDE, POPC_BITS))
    return _split(shape, bits, reuse, finish, 128 if way == "paper" else 256)


def _warpgroup(shape: tuple[int, int, int], bits: Pair) -> Mapped:
    rows, columns, _ = shape
    height = GROUPS * GROUP_ROWS
    down = -(-rows // height)

    def tiles(halves: int) -> int:
        return down * -(-columns // (halves * GROUP_COLUMNS // 8 // bits[1] * 8))

    def lines(halves: int) -> int:  # of A and B that the busiest SM reads
        return -(-tiles(halves) // SMS) * (height + halves * GROUP_COLUMNS)

    halves = min((2, 1), key=lines)
    stages = _GROUP_STAGES[halves]
    config = {"groups": GROUPS, "halves": halves, "stages": stages}
    config |= {"a_planes": bits[0], "b_planes": bits[1]}
    shared = (height + halves * GROUP_COLUMNS) * GROUP_BITS // 8 * stages + ALIGNMENT
    shared += 4 * GROUPS * GROUP_OUT
    grid = (min(tiles(halves), SMS), 1, 1)
    planes, passes, tile = (1, bits[1]), (bits[0], 1), (height, GROUP_BITS)
    return Mapped("warpgroup", config, grid, 4 * GROUPS, shared, planes, passes, tile, GROUP_ARCH)


def group_boxes(config: Mapping[str, Any]) -> tuple[Pair, Pair]:
    """Return planes, and groups of eight lines, that "warpgroup" copies at once of A and of B."""
    planes = config["b_planes"]
    tiles = config["halves"] * GROUP_COLUMNS // 8 // planes
    return (1, config["groups"] * GROUP_ROWS // 8), (planes, tiles)


def _tiled(shape: tuple[int, int, int], bits: Pair, reuse: bool, warps: Pair | None) -> Mapped:
    rows, columns, _ = shape
    s, t = bits
    planes, passes = _shared_out(s, t if reuse else 1, _M_TILES, _N_TILES)
    passes = passes[0], -(-t // planes[1])
    m_tiles = planes[0] * (_M_TILES // planes[0])
    # Sums of several passes and the sums of one are held at the same time.
    most = _N_TILES // 2 if max(passes) > 1 and m_tiles // planes[0] > 2 else _N_TILES
    n_tiles = planes[1] * max(most // planes[1], 1)
    if warps is not None:
        warps = warps[0], warps[1]
        for each in warps:
            checked_integer("warps", each, 8, error=ArgumentError)
    sides = warps or ((4, 2) if rows >= ENOUGH_ROWS and s * t > 1 else (2, 2))
    n_warps = sides[0] * sides[1]
    config = dict(zip(("warps_m", "warps_n"), sides, strict=True)) | _named(planes, passes)
    config |= {"m_tiles": m_tiles, "n_tiles": n_tiles, "stages": _STAGES}
    config |= {"blocks_per_sm": max(1, WARPS // n_warps)}
    lines = sides[0] * m_tiles * 16, sides[1] * n_tiles * 8
    shared = sum(lines) * STAGE_BITS // 8 * _STAGES
    block = lines[0] // planes[0], lines[1] // planes[1]
    grid = -(-rows // block[0]), -(-columns // block[1]), 1
    tile = m_tiles // planes[0] * 16, TILED_BITS
    return Mapped("tiled", config, grid, n_warps, shared, planes, passes, tile)


def _split(
    shape: tuple[int, int, int], bits: Pair, reuse: bool, finish: Finish | None, mma_k: int
) -> Mapped:
    rows, columns, inner = shape
    s, t = bits
    few = min(t if reuse else 1, _SPLIT_PLANES)
    b_planes = -(-t // -(-t // few)) if reuse else 1
    a_planes = min(s, max(_SPLIT_PLANES // b_planes // 2, 1))
    planes, passes = (a_planes, b_planes), (-(-s // a_planes), -(-t // b_planes))
    along_k = WARPS  # warps that share a pass; more passes at a time where K is short
    while (
        along_k > 1
        and along_k // 2 * SPLIT_BITS >= inner
        and WARPS // along_k < passes[0] * passes[1]
    ):
        along_k //= 2
    output = 0 if finish is None else 2 if finish.bits else 1
    left = finish is not None and finish.side == "left"
    relu = finish is not None and finish.relu
    grid = (-(-rows // SIDE), -(-columns // SIDE), 1)
    if finish is not None and finish.bits:  # words to the end of each line, fillings too
        words = layout((rows, columns), finish.bits, finish.side)[2]
        grid = (grid[0], words, 1) if left else (words, grid[1], 1)
    config = {"mma_k": mma_k, "warps": WARPS, "k_warps": along_k, "output": output}
    config |= {"relu": int(relu), "along_columns": int(left), **_named(planes, passes)}
    return Mapped("split_sum", config, grid, WARPS, 0, planes, passes, (SIDE, SPLIT_BITS))


def _named(planes: Pair, passes: Pair) -> dict[str, int]:
    names = ("a_planes", "b_planes", "a_passes", "b_passes")
    return dict(zip(names, (*planes, *passes), strict=True))


def _shared_out(s: int, t: int, m: int, n: int) -> tuple[Pair, Pair]:
    """Deal planes out to passes of at most m and n of them, of about equal size."""
    passes = -(-s // m), -(-t // n)
    return (-(-s // passes[0]), -(-t // passes[1])), passes
