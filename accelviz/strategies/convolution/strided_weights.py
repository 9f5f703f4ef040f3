"""Ours, backward: the gradient by the weights as a dense product on tensor cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.errors import PartitionError
from accelviz.graph import Graph, Pattern
from accelviz.ordering import Permutation
from accelviz.plans.arithmetic import TERMS
from accelviz.plans.fragments import TF32_CAPABILITY
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Widths
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.blocks import prepare_once
from accelviz.strategies.convolution.operation import SCC_LAST_WEIGHTS
from accelviz.strategies.convolution.strided_tiles import (
    ARITHMETIC,
    ARITHMETICS,
    BLOCK_SHARED,
    SM_REGISTERS,
    SM_SHARED,
    SMS,
    STEP,
    SUMMARY,
    check_elements,
    in_order,
    tiles_of,
)
from accelviz.strategies.windows import WindowStrategy
from accelviz.tiles import Tiles
from accelviz.workload import COLUMNS, Workload

#: Filters of a warp, its fragments, the filters of one, and the channels of a product.
WARP_FILTERS, FRAGMENTS, FRAGMENT_FILTERS, PRODUCT_CHANNELS = 64, 4, 16, 32
#: Elements of a product, floats that pad a pixel, sums of a product that a thread has.
PRODUCT, PAD, SUMS = FRAGMENT_FILTERS * PRODUCT_CHANNELS, 8, 16
#: Pixels of a chunk, where the rule chooses.
CHUNK_PIXELS = 32
#: Warps of a block that adds up parts of the gradient, as in the kernel.
PART_WARPS = 8
#: Below so many chunks of pixels a block is cut otherwise.
FEW_CHUNKS = 16
#: Registers of a thread by its groups of channels.
REGISTERS = {1: 168, 2: 255}


@dataclass(frozen=True, eq=False)
class Products:
    """The products of a pattern, fragments of 16 filters by 32 channels, block by block.

    Attributes
    ----------
    permutation : Permutation
        Filters of a fragment follow each other.
    walked : Pattern
        The pattern in this order.
    corners : array of int32, shape (blocks, 2)
        The first filter and channel of each block that has a weight.
    masks : array of uint32, shape (blocks, warps, 2)
        Bit `fragment * channels + group` says whether a warp has such a product; and its first one.
    places : array of int32, shape (products * 512,)
        Of each sum, as lanes hold them, its place among the caller's weights; -1 for none.
    tiles : Tiles
        The products.
    workload : Workload
    """

    permutation: Permutation
    walked: Pattern
    corners: Ints
    masks: npt.NDArray[np.uint32]
    places: Ints
    tiles: Tiles
    workload: Workload


def products(
    graph: Graph, channels: int, filter_warps: int, channel_warps: int
) -> tuple[Products, dict[str, float]]:
    """Deal the filters into fragments and find out which channels each reads; kept.

    Raises
    ------
    PartitionError
        If there are 2^31 weights with their zeros or more.
    """
    cut, pattern = (channels, filter_warps, channel_warps), graph.pattern
    return prepare_once(graph, f"products by {cut}", "tiles", lambda: _products(pattern, *cut))


def _products(pattern: Pattern, channels: int, filter_warps: int, channel_warps: int) -> Products:
    warp_row, offset = np.divmod(np.arange(pattern.n_rows), WARP_FILTERS)
    slot, fragment = np.divmod(offset, FRAGMENTS)
    keys = slot, fragment, warp_row
    permutation, walked, nonzeros, row, channel = in_order(pattern, keys)

    group, column = np.divmod(channel, PRODUCT_CHANNELS)
    warp_column, group = np.divmod(group, channels)
    height, warp = np.divmod(warp_row[row], filter_warps)
    side, across = np.divmod(warp_column, channel_warps)
    sides = -(-pattern.shape[1] // (PRODUCT_CHANNELS * channels * channel_warps))
    warps = filter_warps * channel_warps
    of_warp = (height * sides + side) * warps + warp * channel_warps + across
    key = (of_warp * FRAGMENTS + fragment[row]) * channels + group
    present, product = np.unique(key, return_inverse=True)
    check_elements(present.size * PRODUCT)
    # Element (g + 8 h, 2 t + o) of the group's part i is that of lane 4 g + t, number 2 h + o.
    n, part = np.divmod(column, 4)
    lane = slot[row] % 8 * 4 + n // 2
    at = (part * WARP_SIZE + lane) * 4 + 2 * (slot[row] // 8) + n % 2
    places = np.full(present.size * PRODUCT, -1, np.int32)
    places[product * PRODUCT + at] = nonzeros

    holder, bit = np.divmod(present, FRAGMENTS * channels)
    used, block = np.unique(holder // warps, return_inverse=True)
    masks = np.zeros((used.size * warps, 2), np.uint32)
    index = block * warps + holder % warps
    np.bitwise_or.at(masks[:, 0], index, np.uint32(1) << bit.astype(np.uint32))
    masks[:, 1] = np.searchsorted(index, np.arange(masks.shape[0]))
    high, wide = np.divmod(used, max(1, sides))
    width = PRODUCT_CHANNELS * channels * channel_warps
    corners = np.stack([high * WARP_FILTERS * filter_warps, wide * width], axis=1).astype(np.int32)

    # The same as tiles: filters of a fragment follow each other in the order of the walk.
    position = (warp_row * FRAGMENTS + fragment)[permutation.order]
    first_row = np.searchsorted(position, position[permutation.inverse[row]])
    _, heads = np.unique(product, return_index=True)
    columns = (channel[heads] - column[heads])[:, None] + np.arange(PRODUCT_CHANNELS)
    places_in_tile = slot[row] * PRODUCT_CHANNELS + column
    tiles = tiles_of(
        *(pattern, FRAGMENT_FILTERS, block, first_row[heads], columns, product, places_in_tile)
    )
    workload = _records(walked, index[product], warps)
    for array in (corners, masks, places):
        array.setflags(write=False)
    return Products(permutation, walked, corners, masks, places, tiles, workload)


def _records(walked: Pattern, worker: Longs, warps: int) -> Workload:
    """Spell out runs of nonzeros of a row that one warp has, block by block."""
    row = np.repeat(np.arange(walked.n_rows), walked.degrees)
    begins = np.flatnonzero(np.diff(row, prepend=-1) | np.diff(worker, prepend=-1))
    counts = np.diff(np.append(begins, walked.nnz))
    by_worker = np.argsort(worker[begins], kind="stable")
    begins, counts = begins[by_worker], counts[by_worker]
    owner = worker[begins]
    return Workload(owner // warps, owner % warps, row[begins], begins, counts)


class WeightSettings(Settings):
    """How warps are placed, and what is on chip; None where a rule chooses."""

    arithmetic: str = setting(*ARITHMETIC, choices=ARITHMETICS)
    channels: int = setting(None, "groups of 32 channels of a warp", choices=(1, 2))
    filter_warps: int = setting(None, "warps side by side", 4, tries=(1, 2, 4))
    channel_warps: int = setting(None, "warps on other channels", 4, tries=(1, 2, 4))
    pixel_warps: int = setting(None, "warps on other pixels", choices=(1, 2, 4))
    pixels: int = setting(None, "pixels of a chunk", choices=(8, 16, 32, 64))
    stages: int = setting(None, "chunks on chip", choices=(2, 3, 4))
    shares: int = setting(None, "blocks that share the pixels", 1 << 15, tries=(33, 132, 264))


def chosen(shape: tuple[int, int], n_cols: int, settings: WeightSettings) -> dict[str, int]:
    """Choose what settings leave open, from what was recorded on one H200.

    Blocks of 128 filters by 128 channels read least. Where each has few chunks of pixels, they have
    half as many channels and take turns at pixels, so that there are fewer parts to add up.

    Raises
    ------
    PartitionError
        If a chunk has too few pixels for its warps to take turns.
    """
    tall, wide = shape[0] > WARP_FILTERS, shape[1] > 2 * PRODUCT_CHANNELS
    blocks = -(-shape[0] // (2 * WARP_FILTERS)) * -(-shape[1] // (4 * PRODUCT_CHANNELS))
    few = -(-n_cols // CHUNK_PIXELS) * blocks < FEW_CHUNKS * 2 * SMS
    rule = {
        "channels": 1 + (shape[1] > PRODUCT_CHANNELS),
        "filter_warps": 1 + tall,
        "channel_warps": 1 + (wide and not few),
    }
    cut = {name: getattr(settings, name) or value for name, value in rule.items()}
    turns = max(1, 4 // (cut["filter_warps"] * cut["channel_warps"]))
    pixels = settings.pixels
    if pixels:
        turns = min(turns, pixels // STEP)
    cut["pixel_warps"] = settings.pixel_warps or turns
    turn_pixels = STEP * cut["pixel_warps"]
    if pixels and pixels % turn_pixels:
        raise PartitionError(
            "pixels", str(pixels), f"a multiple of {turn_pixels} with this pixel_warps"
        )
    cut["pixels"] = pixels or -(-min(CHUNK_PIXELS, n_cols) // turn_pixels) * turn_pixels
    cut["stages"] = settings.stages or 3
    return cut


class StridedWeights(WindowStrategy):
    """A warp has 64 filters by some channels, and adds up their products of all pixels.

    Of `arithmetic` see `strided_windows`.
    """

    operation = SCC_LAST_WEIGHTS
    name = "strided_windows"
    summary = SUMMARY
    worker = "warp"
    Settings = WeightSettings

    def build(self, graph: Graph, widths: Widths, settings: WeightSettings) -> Plan:
        """Give each warp a tile, and each block some of the pixels.

        Raises
        ------
        PartitionError
            If there are 2^31 weights with their zeros or more, or as `chosen` does.
        """
        n_cols = widths["n_cols"]
        cut = chosen(graph.shape, n_cols, settings)
        channels, filter_warps, channel_warps, pixel_warps, pixels, stages = cut.values()
        warps = filter_warps * channel_warps
        tiles, seconds = products(graph, channels, filter_warps, channel_warps)
        sides = PRODUCT_CHANNELS * channels * channel_warps, WARP_FILTERS * filter_warps
        shared = 4 * stages * pixels * (sum(sides) + 2 * PAD)
        met = pixel_warps // 2 * warps * FRAGMENTS * channels * SUMS * WARP_SIZE
        shared = max(shared, 4 * met)
        threads = WARP_SIZE * warps * pixel_warps
        registers = REGISTERS[channels]
        at_once = min(SM_SHARED // (shared + BLOCK_SHARED), SM_REGISTERS // (threads * registers))
        at_once, blocks = max(1, at_once), max(1, len(tiles.corners))
        shares = settings.shares or max(1, min(SMS * at_once // blocks, -(-n_cols // pixels)))
        arrays: dict[str, Any] = {
            "corners": tiles.corners,
            "masks": tiles.masks,
            "places": tiles.places,
            "n_values": np.int32(graph.nnz),
            "n_parts": np.int32(shares),
            "n_rows": np.int32(graph.n_rows),
            "n_channels": np.int32(graph.shape[1]),
            "n_cols": np.int32(n_cols),
        }
        config = {
            **cut,
            "x_vector": 4 if graph.shape[1] % 4 == 0 else 1,
            "y_vector": 4 if graph.n_rows % 4 == 0 else 1,
            "at_once": at_once,
            "terms": TERMS[settings.arithmetic],
        }
        sizes = "n_values", "n_rows", "n_channels", "n_cols"
        launches = {
            "strided_weights": (
                LaunchConfig((len(tiles.corners), shares, 1), warps * pixel_warps, shared),
                ("corners", "masks", "places", "X", "dY", "parts", *sizes),
            ),
            "add_parts": (
                LaunchConfig((-(-graph.nnz // WARP_SIZE), 1, 1), PART_WARPS),
                ("parts", "d_values", "n_parts", "n_values"),
            ),
        }
        file = "convolution/strided_weights.cu"
        calls = [
            Call(launch, KernelSpec(file, entry, config, arguments, capability=TF32_CAPABILITY))
            for entry, (launch, arguments) in launches.items()
        ]

        def slice_workload(start: int, stop: int) -> Workload:
            records = slice(*np.searchsorted(tiles.workload.block, (start, stop)))
            return Workload(*(tiles.workload[name][records] for name in COLUMNS))

        return Plan(
            Layout(
                graph.pattern,
                slice_workload,
                tiles.walked,
                tiles.permutation,
                workers_per_block=warps,
                make_tiles=lambda: tiles.tiles,
            ),
            tuple(calls),
            Buffers(
                arrays,
                workspace={"parts": (shares * graph.nnz, np.float32)},
                zero_outputs=(),
                arithmetic=settings.arithmetic,
            ),
            Provenance(self, graph.values, widths, settings.filled(**cut, shares=shares), seconds),
        )
