"""Which products a block of ours works out, chunk after chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from accelviz.arrays import Ints
from accelviz.errors import PartitionError
from accelviz.graph import MAX_SIDE, Graph, Pattern, taken_over
from accelviz.ordering import Permutation
from accelviz.strategies.blocks import prepare_once
from accelviz.tiles import Tiles

#: What both strategies of ours say of themselves, and what they work products out in.
SUMMARY = "our own on tensor cores: a dense product that leaves out what no filter reads"
ARITHMETIC = "3xtf32", "what products are worked out in"
ARITHMETICS = ("3xtf32", "tf32")
#: Channels of a product; of a chunk, and its steps, each of every fourth channel.
STEP, CHUNK, STEPS = 8, 32, 4
#: SMs of a large GPU, for the choice of a shape alone; the shared memory of one of its SMs, what
#: a block takes besides, and the KiB that one may have; registers of an SM.
SMS, SM_SHARED, BLOCK_SHARED, MOST_SHARED = 132, 228 << 10, 1 << 10, 227
SM_REGISTERS = 1 << 16
#: Masks of products that a kernel has; where there are more, all chunks have all products of any.
MASKS = 4


def in_order(pattern: Pattern, keys: tuple[Any, ...]) -> tuple[Permutation, Pattern, Any, Any, Any]:
    """Sort filters by keys; return also the nonzeros' positions, their filters and channels."""
    permutation = Permutation.trusted(taken_over(np.lexsort(keys).astype(np.int32)))
    walked, nonzeros = permutation.apply_to_pattern(pattern)
    row = permutation.order[np.repeat(np.arange(pattern.n_rows), walked.degrees)]
    return permutation, walked, nonzeros, row, walked.column_indices.astype(np.int64)


def check_elements(elements: int) -> None:
    """Refuse more weights, zeros included, than 31 bits number."""
    if elements > MAX_SIDE:
        raise PartitionError("graph", f"{elements:,} weights with zeros", f"at most {MAX_SIDE:,}")


def tiles_of(
    pattern: Pattern, rows: int, block: Any, first_row: Any, columns: Any, tile: Any, places: Any
) -> Tiles:
    """Return products as tiles, given the tile of each nonzero and its place there."""
    by_tile = np.argsort(tile, kind="stable")
    return Tiles(
        rows,
        columns.shape[1],
        block,
        first_row.astype(np.int32),
        np.where(columns < pattern.shape[1], columns, -1).astype(np.int32),
        np.append(0, np.cumsum(np.bincount(tile, minlength=block.size))),
        by_tile,
        places[by_tile].astype(np.int32),
    )


@dataclass(frozen=True, eq=False)
class Chunks:
    """The products of a pattern: pieces of filters by steps of 8 channels.

    A block has filters that follow each other and are dealt into pieces.

    Attributes
    ----------
    permutation : Permutation
        Filters of a piece follow each other.
    walked : Pattern
        The pattern in this order.
    first_chunks : array of int32, shape (blocks + 1,)
        Where the chunks of each block of filters begin.
    chunks : array of int32, shape (chunks, 4)
        The first channel, the first product, how many products, and a mask: bit
        `step * pieces + piece` says whether there is such a product.
    origins : array of int32, shape (products * piece * 8,)
        Of each weight, as `place_in_b` of kernels/warpgroup.cuh has them, its place among the
        caller's; -1 for zero.
    tiles : Tiles
        The products.
    turns : int
        1 if filters are dealt in turns, 0 if a piece has filters that follow each other.
    """

    permutation: Permutation
    walked: Pattern
    first_chunks: Ints
    chunks: Ints
    origins: Ints
    tiles: Tiles
    turns: int

    @property
    def masks(self) -> list[int]:
        """The masks that there are, and zeros up to MASKS."""
        masks = np.unique(self.chunks[:, 3]).tolist()
        return masks + [0] * (MASKS - len(masks))

    @property
    def most(self) -> int:
        """Products of the chunk that has most."""
        return int(self.chunks[:, 2].max(initial=1))


def chunked(graph: Graph, pieces: int, piece: int) -> tuple[Chunks, dict[str, float]]:
    """Deal the filters into pieces and find out which steps each reads, once for a graph.

    Raises
    ------
    PartitionError
        If there are 2^31 weights with their zeros or more.
    """

    def make() -> Chunks:
        both = [_dealt(graph.pattern, pieces, piece, turns) for turns in (1, 0)[: min(pieces, 2)]]
        return min(both, key=lambda chunks: len(chunks.tiles))

    return prepare_once(graph, f"chunks of {pieces} pieces of {piece}", "tiles", make)


def _dealt(pattern: Pattern, pieces: int, piece: int, turns: int) -> Chunks:
    channels = max(1, -(-pattern.shape[1] // CHUNK))
    block, offset = np.divmod(np.arange(pattern.n_rows), pieces * piece)
    # A lane writes four filters side by side, and four lanes 16: they hold them in this order.
    held = offset // 16 * 4 + offset % 4
    held, own_piece = np.divmod(held, pieces) if turns else np.divmod(held, piece // 4)[::-1]
    column = held // 2 * 8 + offset // 4 % 4 * 2 + held % 2
    holder = block * pieces + own_piece
    permutation, walked, nonzeros, row, channel = in_order(pattern, (column, holder))

    k = channel % CHUNK // STEPS
    bit = channel % STEPS * pieces + own_piece[row]
    present, record = np.unique(block[row] * channels + channel // CHUNK, return_inverse=True)
    masks = np.zeros(present.size, np.int32)
    np.bitwise_or.at(masks, record, np.int32(1) << bit.astype(np.int32))
    if np.unique(masks).size > MASKS:
        masks[:] = np.bitwise_or.reduce(masks)
    has = (masks[:, None] >> np.arange(STEPS * pieces) & 1).astype(bool)
    counts = has.sum(axis=1)
    elements = int(counts.sum()) * piece * STEP
    check_elements(elements)
    product = np.cumsum(has).reshape(has.shape)[record, bit] - 1
    origins = np.full(elements, -1, np.int32)
    n = column[row]
    origins[product * piece * STEP + n // 8 * 64 + k // 4 * 32 + n % 8 * 4 + k % 4] = nonzeros
    of_block, of_chunk = np.divmod(present, channels)
    chunks = np.stack([of_chunk * CHUNK, np.cumsum(counts) - counts, counts, masks], axis=1)
    chunks = chunks.astype(np.int32)
    blocks = -(-pattern.n_rows // (pieces * piece))
    pointers = np.searchsorted(of_block, np.arange(blocks + 1)).astype(np.int32)

    # The same as tiles: filters of a piece follow each other in the order in which they are walked.
    of_product, bits = np.nonzero(has)
    first_row = np.searchsorted(
        holder[permutation.order], of_block[of_product] * pieces + bits % pieces
    )
    first_channel = of_chunk[of_product] * CHUNK + bits // pieces
    columns = first_channel[:, None] + STEPS * np.arange(STEP)
    inside = (permutation.inverse[row] - first_row[product]) * STEP + k
    tiles = tiles_of(pattern, piece, of_block[of_product], first_row, columns, product, inside)
    for array in (pointers, chunks, origins):
        array.setflags(write=False)
    return Chunks(permutation, walked, pointers, chunks, origins, tiles, turns)
