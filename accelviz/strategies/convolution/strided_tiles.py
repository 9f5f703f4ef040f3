"""Which products of fragments a block of ours works out, chunk after chunk, and how it is cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints
from accelviz.errors import PartitionError
from accelviz.graph import MAX_SIDE, Graph, Pattern, taken_over
from accelviz.ordering import Permutation
from accelviz.plans import Parameter
from accelviz.plans.launch import WARP_SIZE
from accelviz.store import Stopwatch
from accelviz.tiles import Tiles

#: What both strategies of ours say of themselves, and what they work products out in.
SUMMARY = "our own on tensor cores: a dense product that leaves out what no filter reads"
ARITHMETIC = Parameter("3xtf32", "what products are worked out in", choices=("3xtf32", "tf32"))
#: Filters and channels of a product of fragments, and its pixels.
STEP, FRAGMENT_PIXELS = 8, 16
#: Channels of a chunk, and its steps, each of every fourth channel.
CHUNK, STEPS = 32, 4
#: Bytes of a product's weights.
PRODUCT_BYTES = 4 * STEP * STEP
#: SMs of a large GPU, for the choice of a shape alone; the shared memory of one of its SMs, what
#: a block takes besides, and the most that one may have.
SMS, SM_SHARED, BLOCK_SHARED, MOST_SHARED = 132, 228 << 10, 1 << 10, 227 << 10
#: Registers of an SM; those of a thread by its fragments of pixels, in one product or in three.
SM_REGISTERS = 1 << 16
REGISTERS = {1: {1: 96, 2: 128, 4: 255}, 3: {1: 128, 2: 168, 4: 255}}


@dataclass(frozen=True, eq=False)
class Chunks:
    """The products of fragments of a pattern: groups of 8 filters by steps of 8 channels.

    A slab has the filters of a block. Its warps have equal shares of filters that follow each
    other, which they deal into groups in turns.

    Attributes
    ----------
    permutation : Permutation
        Filters of a group follow each other.
    walked : Pattern
        The pattern in this order.
    first_chunks : array of int32, shape (slabs + 1,)
        Where the chunks of each slab begin.
    chunks : array of int32, shape (chunks, 4)
        The first channel, the first product, how many products, 0.
    masks : array of uint32, shape (chunks, filter_warps, 2)
        Bit `step * groups + group` says whether a warp has such a product; and the first of the
        warp's among those of the chunk.
    origins : array of int32, shape (products * 64,)
        Of each weight, as lanes hold them, its place among the caller's; -1 for zero.
    tiles : Tiles
        The products.
    """

    permutation: Permutation
    walked: Pattern
    first_chunks: Ints
    chunks: Ints
    masks: npt.NDArray[np.uint32]
    origins: Ints
    tiles: Tiles

    @property
    def most(self) -> int:
        """Products of the chunk that has most."""
        return int(self.chunks[:, 2].max(initial=1))


def chunked(graph: Graph, groups: int, filter_warps: int) -> tuple[Chunks, dict[str, float]]:
    """Deal the filters into groups and find out which steps each reads; kept.

    Raises
    ------
    PartitionError
        If there are 2^31 weights with their zeros or more.
    """

    def make(clock: Stopwatch) -> Chunks:
        with clock.step("tiles"):
            return _chunked(graph.pattern, groups, filter_warps)

    return graph.store.prepared(f"chunks of {groups} groups, {filter_warps} warps", make)


def _chunked(pattern: Pattern, groups: int, filter_warps: int) -> Chunks:
    filters, channels = np.arange(pattern.n_rows), -(-pattern.shape[1] // CHUNK)
    warp, place = np.divmod(filters, groups * STEP)
    slot, group = np.divmod(place, groups)
    order = np.lexsort((slot, group, warp)).astype(np.int32)
    permutation = Permutation.trusted(taken_over(order))
    walked, nonzeros = permutation.apply_to_pattern(pattern)

    row = order[np.repeat(filters, walked.degrees)]
    channel = walked.column_indices.astype(np.int64)
    chunk, k = channel // CHUNK, channel % STEPS
    slab = warp[row] // filter_warps
    key = (slab * channels + chunk) * filter_warps + warp[row] % filter_warps
    key = (key * STEPS + k) * groups + group[row]
    products, own = np.unique(key, return_inverse=True)
    elements = products.size * STEP * STEP
    if elements > MAX_SIDE:
        what = f"{elements:,} weights with zeros"
        raise PartitionError("graph", what, f"at most {MAX_SIDE:,}")
    column = channel % CHUNK // STEPS
    # Element (t + 4 h, g) of B, channels by filters, is that of lane 4 g + t, part h.
    lane = STEPS * slot[row] + column % STEPS
    origins = np.full(elements, -1, np.int32)
    origins[own * STEP * STEP + 2 * lane + column // STEPS] = nonzeros

    rest, bit = np.divmod(products, STEPS * groups)
    there, of_warp = np.divmod(rest, filter_warps)
    kept, record, counts = np.unique(there, return_inverse=True, return_counts=True)
    first = np.cumsum(counts) - counts
    masks = np.zeros((kept.size, filter_warps, 2), np.uint32)
    np.bitwise_or.at(masks[..., 0], (record, of_warp), np.uint32(1) << bit.astype(np.uint32))
    each = np.zeros((kept.size, filter_warps), np.int64)
    np.add.at(each, (record, of_warp), 1)
    masks[..., 1] = np.cumsum(each, axis=1) - each
    begins = kept % max(1, channels) * CHUNK
    chunks = np.stack([begins, first, counts, np.zeros_like(counts)], axis=1).astype(np.int32)
    slabs = -(-pattern.n_rows // (groups * STEP * filter_warps))
    pointers = np.searchsorted(kept, np.arange(slabs + 1) * channels).astype(np.int32)

    # The same as tiles: filters of a group follow each other in the order in which they are walked.
    bit_step, bit_group = np.divmod(bit, groups)
    window = there // max(1, channels) * filter_warps + of_warp
    groups_at = np.searchsorted((warp * groups + group)[order], window * groups + bit_group)
    senders = (there % max(1, channels) * CHUNK + bit_step)[:, None] + STEPS * np.arange(STEP)
    senders[senders >= pattern.shape[1]] = -1
    by_tile = np.argsort(own, kind="stable")
    tiles = Tiles(
        STEP,
        STEP,
        window // filter_warps,
        groups_at.astype(np.int32),
        senders.astype(np.int32),
        np.append(0, np.cumsum(np.bincount(own, minlength=products.size))),
        by_tile,
        (slot[row] * STEP + column)[by_tile].astype(np.int32),
    )
    for array in (pointers, chunks, masks, origins):
        array.setflags(write=False)
    return Chunks(permutation, walked, pointers, chunks, masks, origins, tiles)


@dataclass(frozen=True)
class Shape:
    """How a block is cut: warps by filters and pixels, what a warp has of each, and chunks kept."""

    groups: int
    fragments: int
    filter_warps: int
    pixel_warps: int
    stages: int

    @property
    def filters(self) -> int:
        """Filters of a block."""
        return self.groups * STEP * self.filter_warps

    @property
    def pixels(self) -> int:
        """Pixels of a tile."""
        return self.fragments * FRAGMENT_PIXELS * self.pixel_warps

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return self.filter_warps * self.pixel_warps

    def blocks(self, graph: Graph, n_cols: int) -> int:
        """Count the tiles of pixels of all slabs of filters."""
        return -(-graph.n_rows // self.filters) * -(-n_cols // self.pixels)


def chosen(graph: Graph, n_cols: int, given: Mapping[str, int | None]) -> Shape:
    """Choose how blocks are cut, where it is not given, from what was recorded on one H200.

    Four small blocks an SM hide each other's waiting, better than more chunks on chip do. Where
    there are not blocks enough for every SM, they have fewer pixels, and then fewer filters.

    Parameters
    ----------
    graph : Graph
    n_cols : int
        Pixels.
    given : mapping of str to int or None
        Attributes of a Shape, None where the rule chooses.
    """
    groups = given["groups"] or next((n for n in (8, 4, 2) if n * STEP <= graph.n_rows), 1)
    wide = graph.n_rows > groups * STEP
    tries = ((2, 1 + wide, 2), (2, 1 + wide, 1), (1, 1 + wide, 1), (1, 1, 1))
    names = ("fragments", "filter_warps", "pixel_warps")
    for cut in tries:
        own = [given[name] or rule for name, rule in zip(names, cut, strict=True)]
        shape = Shape(groups, own[0], own[1], own[2], given["stages"] or 2)
        if shape.blocks(graph, n_cols) >= SMS and shape.pixels < 2 * n_cols:
            break
    return shape


def shared_bytes(found: Chunks, shape: Shape) -> int:
    """Return the shared memory of a block: its chunks of pixels and weights.

    Raises
    ------
    PartitionError
        If no GPU grants a block so much.
    """
    taken = shape.stages * (4 * shape.pixels * CHUNK + PRODUCT_BYTES * found.most)
    if taken > MOST_SHARED:
        what = f"{taken >> 10} KiB of shared memory"
        right = f"fewer, which take at most {MOST_SHARED >> 10} KiB"
        raise PartitionError("stages, fragments, filter_warps, pixel_warps", what, right)
    return taken


def blocks_at_once(found: Chunks, shape: Shape, terms: int) -> int:
    """Return the blocks that an SM is to have room for."""
    threads = WARP_SIZE * shape.warps
    registers = SM_REGISTERS // (threads * REGISTERS[terms][shape.fragments])
    return max(1, min(SM_SHARED // (shared_bytes(found, shape) + BLOCK_SHARED), registers))
