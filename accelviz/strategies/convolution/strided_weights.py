"""`strided_windows`' gradient by the weights, dY^T X, as dense products on tensor cores.

A product is a fragment of 16 filters by 32 channels, summed over all pixels. Products without a
weight are skipped. Blocks share the pixels and leave partial gradients, which a kernel adds up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.errors import PartitionError
from accelviz.graph import Graph, Pattern
from accelviz.immutable import Immutable, taken_over
from accelviz.ordering import Permutation
from accelviz.plans.arithmetic import TF32_PRODUCTS
from accelviz.plans.fragments import TF32_CAPABILITY
from accelviz.plans.gpu import RESERVED_SHARED_BYTES, SM_REGISTERS, SM_SHARED_BYTES, SMS
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Widths
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.blocks import prepare_once
from accelviz.strategies.convolution.operation import SCC_LAST_WEIGHTS
from accelviz.strategies.convolution.strided_tiles import (
    ARITHMETIC,
    ARITHMETICS,
    STEP,
    SUMMARY,
    check_elements,
    in_order,
    tiles_of,
)
from accelviz.strategies.windows import WindowStrategy
from accelviz.tiles import Tiles
from accelviz.workload import COLUMNS, Workload

#: Filters and fragments of a warp; filters of a fragment; channels of a product.
WARP_FILTERS, FRAGMENTS, FRAGMENT_FILTERS, PRODUCT_CHANNELS = 64, 4, 16, 32
#: Elements of a product; floats of padding per pixel; sums of a product per thread.
PRODUCT, PAD, SUMS = FRAGMENT_FILTERS * PRODUCT_CHANNELS, 8, 16
#: Pixels of a chunk by the rule.
CHUNK_PIXELS = 32
#: Warps of a block of `add_parts`, as in the kernel.
PART_WARPS = 8
#: Chunks of pixels per block, in the mean, below which the rule chooses smaller blocks.
FEW_CHUNKS = 16
#: Registers of a thread, by its groups of 32 channels.
REGISTERS = {1: 168, 2: 255}


@dataclass(frozen=True, eq=False)
class Products(Immutable):
    """The products of a pattern, block by block.

    Attributes
    ----------
    permutation : Permutation
        Order of the filters by fragment.
    walked : Pattern
        The pattern in this order.
    corners : array of int32, shape (blocks, 2)
        First filter and first channel of each block that has a weight.
    masks : array of uint32, shape (blocks * warps, 2)
        One record per warp: (mask, first product). Bit `fragment * channels + group` of the mask is
        set if the warp has this product.
    places : array of int32, shape (products * 512,)
        Position in the caller's weights of each sum of a product, in the order in which lanes have
        the sums; -1 for none.
    tiles : Tiles
        The products.
    workload : mapping of str to array
        The columns of the `Workload` of all blocks.
    """

    permutation: Permutation
    walked: Pattern
    corners: Ints
    masks: npt.NDArray[np.uint32]
    places: Ints
    tiles: Tiles
    workload: Mapping[str, npt.NDArray[Any]]


def products(
    graph: Graph, channels: int, filter_warps: int, channel_warps: int
) -> tuple[Products, dict[str, float]]:
    """Return the products for a shape of blocks, stored in the graph, and the seconds by step.

    Raises
    ------
    PartitionError
        If there are 2^31 weights or more, zeros in products included.
    """
    shape, pattern = (channels, filter_warps, channel_warps), graph.pattern
    return prepare_once(graph, f"products by {shape}", "tiles", lambda: _products(pattern, *shape))


def _products(pattern: Pattern, channels: int, filter_warps: int, channel_warps: int) -> Products:
    warp_row, offset = np.divmod(np.arange(pattern.n_rows), WARP_FILTERS)
    fragment_row, fragment = np.divmod(offset, FRAGMENTS)
    keys = fragment_row, fragment, warp_row
    permutation, walked, nonzeros, row, channel = in_order(pattern, keys)

    # The product of each nonzero, and its element there.
    group, column = np.divmod(channel, PRODUCT_CHANNELS)
    warp_column, group = np.divmod(group, channels)
    block_row, row_in_block = np.divmod(warp_row[row], filter_warps)
    block_column, column_in_block = np.divmod(warp_column, channel_warps)
    block_channels = PRODUCT_CHANNELS * channels * channel_warps
    block_columns = -(-pattern.shape[1] // block_channels)
    warps = filter_warps * channel_warps
    grid_block = block_row * block_columns + block_column
    grid_warp = grid_block * warps + row_in_block * channel_warps + column_in_block
    key = (grid_warp * FRAGMENTS + fragment[row]) * channels + group
    product_keys, product = np.unique(key, return_inverse=True)
    check_elements(product_keys.size * PRODUCT)
    # Element (g + 8 h, 2 t + o) of the group's part i is that of lane 4 g + t, number 2 h + o.
    n, part = np.divmod(column, 4)
    lane = fragment_row[row] % 8 * 4 + n // 2
    element = (part * WARP_SIZE + lane) * 4 + 2 * (fragment_row[row] // 8) + n % 2
    places = np.full(product_keys.size * PRODUCT, -1, np.int32)
    places[product * PRODUCT + element] = nonzeros

    # Blocks that have a product, and the masks of their warps.
    product_warp, bit = np.divmod(product_keys, FRAGMENTS * channels)
    blocks, block = np.unique(product_warp // warps, return_inverse=True)
    masks = np.zeros((blocks.size * warps, 2), np.uint32)
    worker = block * warps + product_warp % warps
    np.bitwise_or.at(masks[:, 0], worker, np.uint32(1) << bit.astype(np.uint32))
    masks[:, 1] = np.searchsorted(worker, np.arange(masks.shape[0]))
    block_row, block_column = np.divmod(blocks, max(1, block_columns))
    first_filter = block_row * WARP_FILTERS * filter_warps
    corners = np.stack([first_filter, block_column * block_channels], axis=1).astype(np.int32)

    # The products as tiles; filters of a fragment are consecutive rows of `walked`.
    position = (warp_row * FRAGMENTS + fragment)[permutation.order]
    first_row = np.searchsorted(position, position[permutation.inverse[row]])
    _, first_nonzero = np.unique(product, return_index=True)
    first_channel = channel[first_nonzero] - column[first_nonzero]
    columns = first_channel[:, None] + np.arange(PRODUCT_CHANNELS)
    places_in_tile = fragment_row[row] * PRODUCT_CHANNELS + column
    tile_rows = FRAGMENT_FILTERS, block, first_row[first_nonzero]
    tiles = tiles_of(pattern, *tile_rows, columns, product, places_in_tile)
    records = _records(walked, worker[product], warps)
    workload = {name: taken_over(records[name]) for name in COLUMNS}
    corners, masks, places = map(taken_over, (corners, masks, places))
    return Products(permutation, walked, corners, masks, places, tiles, workload)


def _workload(products: Products, start: int, stop: int) -> Workload:
    records = slice(*np.searchsorted(products.workload["block"], (start, stop)))
    return Workload(*(products.workload[name][records] for name in COLUMNS))


def _records(walked: Pattern, worker: Longs, warps: int) -> Workload:
    """Return one record per run of nonzeros of a row with the same warp, block by block."""
    row = np.repeat(np.arange(walked.n_rows), walked.degrees)
    begins = np.flatnonzero(np.diff(row, prepend=-1) | np.diff(worker, prepend=-1))
    counts = np.diff(np.append(begins, walked.nnz))
    by_worker = np.argsort(worker[begins], kind="stable")
    begins, counts = begins[by_worker], counts[by_worker]
    block, warp = np.divmod(worker[begins], warps)
    return Workload(block, warp, row[begins], begins, counts)


class WeightSettings(Settings):
    """Shape of a block, and its stages; a rule chooses settings that are None."""

    arithmetic: str = setting(*ARITHMETIC, choices=ARITHMETICS)
    channels: int = setting(None, "groups of 32 channels per warp", choices=(1, 2))
    filter_warps: int = setting(None, "warps along the filters", 4, tries=(1, 2, 4))
    channel_warps: int = setting(None, "warps along the channels", 4, tries=(1, 2, 4))
    pixel_warps: int = setting(None, "warps along the pixels", choices=(1, 2, 4))
    pixels: int = setting(None, "pixels per chunk", choices=(8, 16, 32, 64))
    stages: int = setting(None, "chunks in shared memory", choices=(2, 3, 4))
    shares: int = setting(None, "blocks that share the pixels", 1 << 15, tries=(33, 132, 264))


def choose_sizes(shape: tuple[int, int], n_cols: int, settings: WeightSettings) -> dict[str, int]:
    """Choose all settings from `channels` to `stages` by a rule from measurements on one H200.

    Blocks of 128 filters by 128 channels read least. If they have few chunks of pixels each, blocks
    have half as many channels and several warps along the pixels, for fewer partial gradients.

    Raises
    ------
    PartitionError
        If `pixels` is not a multiple of 8 times `pixel_warps`.
    """
    tall, wide = shape[0] > WARP_FILTERS, shape[1] > 2 * PRODUCT_CHANNELS
    blocks = -(-shape[0] // (2 * WARP_FILTERS)) * -(-shape[1] // (4 * PRODUCT_CHANNELS))
    few_chunks = -(-n_cols // CHUNK_PIXELS) * blocks < FEW_CHUNKS * 2 * SMS
    rule = {
        "channels": 1 + (shape[1] > PRODUCT_CHANNELS),
        "filter_warps": 1 + tall,
        "channel_warps": 1 + (wide and not few_chunks),
    }
    sizes = {name: getattr(settings, name) or value for name, value in rule.items()}
    pixel_warps = max(1, 4 // (sizes["filter_warps"] * sizes["channel_warps"]))
    pixels = settings.pixels
    if pixels:
        pixel_warps = min(pixel_warps, pixels // STEP)
    sizes["pixel_warps"] = settings.pixel_warps or pixel_warps
    step_pixels = STEP * sizes["pixel_warps"]
    if pixels and pixels % step_pixels:
        expected = f"a multiple of {step_pixels} with this pixel_warps"
        raise PartitionError("pixels", str(pixels), expected)
    sizes["pixels"] = pixels or -(-min(CHUNK_PIXELS, n_cols) // step_pixels) * step_pixels
    sizes["stages"] = settings.stages or 3
    return sizes


class StridedWeights(WindowStrategy):
    """A warp has 64 filters by 32 or 64 channels and sums its products over the pixels.

    `arithmetic` is as of the forward strategy.
    """

    operation = SCC_LAST_WEIGHTS
    name = "strided_windows"
    summary = SUMMARY
    worker = "warp"
    Settings = WeightSettings

    def build(self, graph: Graph, widths: Widths, settings: WeightSettings) -> Plan:
        """Assign products to warps, and shares of the pixels to blocks.

        Raises
        ------
        PartitionError
            If there are 2^31 weights or more, zeros in products included, or as `choose_sizes`.
        """
        n_cols = widths["n_cols"]
        block_sizes = choose_sizes(graph.shape, n_cols, settings)
        channels, filter_warps, channel_warps, pixel_warps, pixels, stages = block_sizes.values()
        warps = filter_warps * channel_warps
        tiles, seconds = products(graph, channels, filter_warps, channel_warps)
        block_channels = PRODUCT_CHANNELS * channels * channel_warps
        block_filters = WARP_FILTERS * filter_warps
        stage_floats = pixels * (block_channels + block_filters + 2 * PAD)
        # In the end the memory has the sums of half of the warps along the pixels.
        sum_floats = pixel_warps // 2 * warps * FRAGMENTS * channels * SUMS * WARP_SIZE
        shared = 4 * max(stages * stage_floats, sum_floats)
        threads = WARP_SIZE * warps * pixel_warps
        registers = REGISTERS[channels]
        blocks_by_shared = SM_SHARED_BYTES // (shared + RESERVED_SHARED_BYTES)
        at_once = min(blocks_by_shared, SM_REGISTERS // (threads * registers))
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
            **block_sizes,
            "x_vector": 4 if graph.shape[1] % 4 == 0 else 1,
            "y_vector": 4 if graph.n_rows % 4 == 0 else 1,
            "at_once": at_once,
            "terms": TF32_PRODUCTS[settings.arithmetic],
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

        resolved = settings.filled(**block_sizes, shares=shares)
        return Plan(
            Layout(
                graph.pattern,
                partial(_workload, tiles),
                tiles.walked,
                tiles.permutation,
                workers_per_block=warps,
                make_tiles=partial(getattr, tiles, "tiles"),
            ),
            tuple(calls),
            Buffers(
                arrays,
                workspace={"parts": (shares * graph.nnz, np.float32)},
                zero_outputs=(),
                arithmetic=settings.arithmetic,
            ),
            Provenance(self, graph.values, widths, resolved, seconds),
        )
