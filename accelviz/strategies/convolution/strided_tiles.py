"""Filters in the order of their windows, in tiles, and how a block of ours is cut."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from accelviz.arrays import Ints
from accelviz.errors import PartitionError
from accelviz.graph import MAX_SIDE, Graph, Pattern, taken_over
from accelviz.ordering import Permutation
from accelviz.plans import Parameter
from accelviz.plans.launch import WARP_SIZE
from accelviz.store import Stopwatch
from accelviz.strategies.convolution.windows import prepared_windows
from accelviz.tensor_cores.windows import row_windows, window_tiles
from accelviz.tiles import Tiles

#: What both strategies of ours say of themselves, and what they work products out in.
SUMMARY = "our own on tensor cores: filters of equal windows as one product, channels last"
ARITHMETIC = Parameter("3xtf32", "what products are worked out in", choices=("3xtf32", "tf32"))
#: Filters of a group and channels of a step, pixels of a fragment: TF32's product.
STEP, FRAGMENT_PIXELS = 8, 16
#: Shared memory, in KiB, that any GPU with these tensor cores grants a block (an A100 grants 163,
#: an H200 227); that of an SM, and what each block takes besides, in bytes.
SHARED_KIB, SM_SHARED, BLOCK_SHARED = 99, 228 << 10, 1 << 10
#: SMs, bytes a nanosecond and clock (GHz) of a large GPU, for the choice of a shape alone.
SMS, BYTES_A_NS, GIGAHERTZ = 132, 4500.0, 1.7
#: Clocks of an SM for a product of fragments.
PRODUCT_CLOCKS = 1.6
#: Bytes that an SM has to have on their way, and clocks that a step of one warp takes alone.
BYTES_ON_THE_WAY, STEP_CLOCKS = 32 << 10, 60
#: Warps of a block, blocks of an SM, products of fragments that a warp has sums for.
MOST_WARPS, MOST_BLOCKS, MOST_SUMS = 16, 4, 16
#: Registers of an SM, and those of a thread beside its sums.
SM_REGISTERS, REGISTERS = 1 << 16, 64


@dataclass(frozen=True, eq=False)
class Strided:
    """A pattern's filters in the order of their windows, in tiles.

    Attributes
    ----------
    permutation : Permutation
        Filters of equal windows follow each other.
    walked : Pattern
        The pattern in this order.
    tiles : Tiles
        Of a warp's filters by 8 of their distinct channels.
    first_tiles : array of int32, shape (warps' filters + 1,)
        Where the tiles of each begin.
    positions : array of int32, shape (tiles, filters, channels)
        Of each element of a tile its weight in the caller's order; -1 for zero.
    """

    permutation: Permutation
    walked: Pattern
    tiles: Tiles
    first_tiles: Ints
    positions: Ints

    @property
    def senders(self) -> Ints:
        """Channels of each tile; where there is none the first, as the weights are zero."""
        return np.where(self.tiles.senders < 0, self.tiles.senders[:, :1], self.tiles.senders)

    def in_blocks(self, warps: int) -> Tiles:
        """Return the tiles with as many warps' filters a block."""
        own = {name: getattr(self.tiles, name) for name in Tiles.__dataclass_fields__}
        return Tiles(**{**own, "block": self.tiles.block // warps})


def strided(graph: Graph, groups: int, columns: int) -> tuple[Strided, dict[str, float]]:
    """Order the filters by window; cut them into tiles of `groups` times 8 by `columns`; kept.

    Raises
    ------
    PartitionError
        If there are 2^31 elements or more in all tiles.
    """
    windows, seconds = prepared_windows(graph)

    def make(clock: Stopwatch) -> Strided:
        with clock.step("tiles"):
            # Windows that begin side by side share most of their channels.
            first = np.append(windows.channels, 0)[windows.starts[:-1]]
            order = np.lexsort((windows.of_filter, first[windows.of_filter]))
            permutation = Permutation.trusted(taken_over(order.astype(np.int32)))
            walked, nonzeros = permutation.apply_to_pattern(graph.pattern)
            rows = groups * STEP
            found = row_windows(walked, rows)
            tiles = window_tiles(walked, found, columns)
            elements = len(tiles) * rows * columns
            if elements > MAX_SIDE:
                what = f"{elements:,} weights with zeros"
                raise PartitionError("graph", what, f"at most {MAX_SIDE:,}")
            positions = np.full(elements, -1, np.int32)
            tile = np.repeat(np.arange(len(tiles)), tiles.counts)
            positions[tile * rows * columns + tiles.places] = nonzeros[tiles.nonzeros]
            first_tiles = np.append(0, np.cumsum(found.blocks(columns))).astype(np.int32)
            arrays = taken_over(first_tiles), taken_over(positions.reshape(-1, rows, columns))
        return Strided(permutation, walked, tiles, *arrays)

    found, more = graph.store.prepared(f"strided windows of {groups} groups, {columns}", make)
    return found, {**seconds, **more}


def chosen_groups(graph: Graph) -> int:
    """Return how many groups of 8 filters have the same window, 1, 2, 4 or 8."""
    each = graph.n_rows // max(1, len(prepared_windows(graph)[0]))
    return next((n for n in (8, 4, 2) if n * STEP <= each), 1)


@dataclass(frozen=True)
class Shape:
    """How a block is cut: warps by filters and pixels, and what a warp has of each.

    `resident` says whether a block's weights stay in shared memory, `staged` whether the channels
    of its tiles do.
    """

    groups: int
    fragments: int
    filter_warps: int
    pixel_warps: int
    resident: bool = True
    staged: bool = True

    @property
    def filters(self) -> int:
        """Filters of a block."""
        return self.groups * STEP * self.filter_warps

    @property
    def pixels(self) -> int:
        """Pixels of a tile."""
        return self.fragments * FRAGMENT_PIXELS * self.pixel_warps


@dataclass(frozen=True, eq=False)
class Slabs:
    """What blocks that have so many warps' filters each read.

    Attributes
    ----------
    copy_pointers : array of int32, shape (slabs + 1,)
        Where the copies of each begin in `copies`.
    copies : array of int32
        The channels that a slab's filters read, in vectors, ascending.
    columns : array of int32, shape (tiles, 8)
        The channels of each tile, as places among those of its slab.
    steps : int
        Most tiles of a slab.
    """

    copy_pointers: Ints
    copies: Ints
    columns: Ints
    steps: int

    @property
    def most_copies(self) -> int:
        """Vectors of the slab that reads most."""
        return int(np.diff(self.copy_pointers).max(initial=0))


def vector_of(graph: Graph) -> int:
    """Return the channels that one copy moves."""
    return 4 if graph.shape[1] % 4 == 0 else 1


def slabs(graph: Graph, groups: int, filter_warps: int) -> Slabs:
    """Find the channels of each block's filters; kept."""
    found, _ = strided(graph, groups, STEP)
    vector = vector_of(graph)

    def make(clock: Stopwatch) -> Slabs:
        n_windows = found.first_tiles.size - 1
        count = -(-n_windows // filter_warps)
        first = np.append(found.first_tiles[:n_windows:filter_warps], len(found.tiles))
        slab = np.repeat(np.arange(count), np.diff(first))
        vectors = -(-graph.shape[1] // vector)
        keys = slab[:, None] * vectors + found.senders // vector
        own, place = np.unique(keys, return_inverse=True)
        pointers = np.searchsorted(own, np.arange(count + 1) * vectors)
        columns = (place.reshape(keys.shape) - pointers[slab][:, None]) * vector
        columns += found.senders % vector
        copies, steps = own % max(1, vectors), int(np.diff(first).max(initial=0))
        ints = [taken_over(each.astype(np.int32)) for each in (pointers, copies, columns)]
        return Slabs(ints[0], ints[1], ints[2], steps)

    return graph.store.prepared(f"slabs of {groups} groups, {filter_warps} warps", make)[0]


def stride_of(graph: Graph, own: Slabs) -> int:
    """Return the floats between two pixels of a tile in shared memory."""
    return -(-own.most_copies * vector_of(graph) // WARP_SIZE) * WARP_SIZE + 4


def shared_bytes(graph: Graph, shape: Shape) -> int:
    """Return the shared memory of a block: weights, two tiles of channels, results."""
    own = slabs(graph, shape.groups, shape.filter_warps)
    weights = own.steps * shape.groups * STEP * STEP if shape.resident else 0
    channels = 2 * stride_of(graph, own) if shape.staged else 0
    return 4 * (weights + shape.pixels * (channels + shape.filters + 1))


def chosen(
    graph: Graph,
    n_cols: int,
    terms: int,
    groups: int | None = None,
    fragments: int | None = None,
    filter_warps: int | None = None,
    pixel_warps: int | None = None,
    shared_kib: int = SHARED_KIB,
) -> Shape:
    """Choose how blocks are cut, where it is not given: as it is estimated to take least time.

    Parameters
    ----------
    graph : Graph
    n_cols : int
        Pixels.
    terms : int
        Products on tensor cores for one of inputs.
    shared_kib : int
        Most shared memory of a block.

    Raises
    ------
    PartitionError
        If what is given needs more shared memory than a block has.
    """
    given = groups, fragments, filter_warps, pixel_warps
    found = candidates(graph, n_cols, terms, given, shared_kib)
    if not found:
        names = "groups, fragments, filter_warps, pixel_warps"
        right = f"fewer, which fit in {shared_kib} KiB of shared memory"
        raise PartitionError(names, f"got {', '.join(map(str, given))}", right)
    return found[0]


def candidates(
    graph: Graph,
    n_cols: int,
    terms: int,
    given: Sequence[int | None] = (None,) * 4,
    shared_kib: int = SHARED_KIB,
) -> list[Shape]:
    """Return the shapes that fit on an SM, those first that are estimated to take least time."""
    most = chosen_groups(graph)
    wide = -(-graph.n_rows // STEP)
    tries = (8, 4, 2, 1), (4, 2, 1), (8, 4, 2, 1), (4, 2, 1)
    found: list[tuple[float, Shape]] = []
    for cut in itertools.product(
        *([own] if own else each for own, each in zip(given, tries, strict=True))
    ):
        shape = Shape(cut[0], cut[1], cut[2], cut[3])
        too_many = shape.filter_warps * shape.pixel_warps > MOST_WARPS
        too_wide = shape.groups > most or shape.groups * shape.filter_warps > max(wide, most)
        if not any(given) and (too_many or too_wide or shape.groups * shape.fragments > MOST_SUMS):
            continue
        for each in _kept_on_chip(shape):
            if shared_bytes(graph, each) <= shared_kib << 10:
                found.append((estimate(graph, n_cols, terms, each), each))
                break
    return [shape for _, shape in sorted(found, key=lambda each: each[0])]


def _kept_on_chip(shape: Shape) -> Iterator[Shape]:
    yield shape
    yield replace(shape, resident=False)
    yield replace(shape, resident=False, staged=False)


def blocks_of(graph: Graph, n_cols: int, shape: Shape) -> tuple[int, int]:
    """Return the slabs, and the blocks that share the tiles of pixels of each."""
    at_once = SMS * blocks_at_once(graph, shape)
    count = -(-graph.n_rows // shape.filters)
    return count, min(-(-n_cols // shape.pixels), max(1, at_once // max(1, count)))


def blocks_at_once(graph: Graph, shape: Shape) -> int:
    """Return the blocks that an SM has room for."""
    threads = WARP_SIZE * shape.filter_warps * shape.pixel_warps
    registers = SM_REGISTERS // (threads * (REGISTERS + 4 * shape.groups * shape.fragments))
    room = SM_SHARED // (shared_bytes(graph, shape) + BLOCK_SHARED)
    return max(1, min(room, registers, MOST_BLOCKS))


def estimate(graph: Graph, n_cols: int, terms: int, shape: Shape) -> float:
    """Estimate nanoseconds: bytes through the L2 beside products and reads of shared memory."""
    own = slabs(graph, shape.groups, shape.filter_warps)
    found, _ = strided(graph, shape.groups, STEP)
    count, shares = blocks_of(graph, n_cols, shape)
    tiles, steps = -(-n_cols // shape.pixels), len(found.tiles)
    at_once = blocks_at_once(graph, shape)
    weights = 4 * steps * shape.groups * STEP * STEP * (shares if shape.resident else tiles)
    read = own.copies.size * vector_of(graph) if shape.staged else steps * STEP * STEP
    # Bytes on their way have to hide how long they take.
    tile = 4 * shape.pixels * own.most_copies * vector_of(graph) * at_once
    hidden = min(1.0, tile / BYTES_ON_THE_WAY) if shape.staged else 0.2
    memory = (4 * n_cols * (read + graph.n_rows) + weights) / (BYTES_A_NS * max(hidden, 0.05))
    products = shape.fragments * shape.groups * terms * PRODUCT_CLOCKS
    warps = at_once * shape.filter_warps * shape.pixel_warps
    clocks = max(
        products, 4 * shape.fragments + 2 * shape.groups, STEP_CLOCKS * (1 + terms) / warps
    )
    times = n_cols / (shape.fragments * FRAGMENT_PIXELS) * steps
    compute = times * clocks / (SMS * GIGAHERTZ)
    busy = min(1.0, max(1, count * shares) / (SMS * at_once))
    # Blocks of an SM fill each other's gaps.
    return (max(memory, compute) + 0.3 * min(memory, compute)) * (1 + 0.3 / at_once) / busy
