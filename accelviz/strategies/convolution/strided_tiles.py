"""The tensor-core products of `strided_windows`: pieces of filters by steps of channels.

A block has `pieces` pieces of `piece` filters. It reads the channels in chunks of 32. A step is
every fourth channel of a chunk, 8 channels in all. A product is a piece times a step; products in
which no filter of the piece reads a channel of the step are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from accelviz.arrays import Ints
from accelviz.errors import PartitionError
from accelviz.graph import MAX_SIDE, Graph, Pattern
from accelviz.immutable import Immutable, taken_over
from accelviz.ordering import Permutation
from accelviz.strategies.blocks import prepare_once
from accelviz.tiles import Tiles

#: Summary and setting `arithmetic` (default, meaning, choices) of both strategies.
SUMMARY = "our own on tensor cores: a dense product that skips channels that no filter reads"
ARITHMETIC = "3xtf32", "type of the products"
ARITHMETICS = ("3xtf32", "tf32")
#: Channels of a step; channels and steps of a chunk.
STEP, CHUNK, STEPS = 8, 32, 4
#: Most KiB of shared memory of a block.
MOST_SHARED = 227
#: Most different masks of a kernel. With more, all chunks have the union of all masks.
MASKS = 4


def in_order(pattern: Pattern, keys: tuple[Any, ...]) -> tuple[Permutation, Pattern, Any, Any, Any]:
    """Sort filters by keys; return the order, the pattern in it, and arrays of its nonzeros.

    The arrays are the nonzeros' positions in the caller's pattern, filters there, and channels.
    """
    permutation = Permutation.trusted(taken_over(np.lexsort(keys).astype(np.int32)))
    walked, nonzeros = permutation.apply_to_pattern(pattern)
    row = permutation.order[np.repeat(np.arange(pattern.n_rows), walked.degrees)]
    return permutation, walked, nonzeros, row, walked.column_indices.astype(np.int64)


def check_elements(elements: int) -> None:
    """Raise a `PartitionError` for 2^31 weights or more, zeros in products included."""
    if elements > MAX_SIDE:
        raise PartitionError("graph", f"{elements:,} weights with zeros", f"at most {MAX_SIDE:,}")


def tiles_of(
    pattern: Pattern, rows: int, block: Any, first_row: Any, columns: Any, tile: Any, places: Any
) -> Tiles:
    """Return products as `Tiles`, from the tile of each nonzero and its place in the tile."""
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
class Chunks(Immutable):
    """The products of a pattern, in chunks, for blocks of consecutive filters.

    Attributes
    ----------
    permutation : Permutation
        Order of the filters by piece.
    walked : Pattern
        The pattern in this order.
    first_chunks : array of int32, shape (blocks + 1,)
        Position in `chunks` of each block's first chunk.
    chunks : array of int32, shape (chunks, 4)
        One record per chunk: (first channel, first product, number of products, mask). Bit
        `step * pieces + piece` of the mask is set if there is this product.
    origins : array of int32, shape (products * piece * 8,)
        Position in the caller's values of each weight of a product, -1 for zero. The order is that
        of `place_in_b` in kernels/warpgroup.cuh.
    tiles : Tiles
        The products.
    turns : int
        1 if filters are dealt to pieces round robin, 0 if a piece has consecutive filters.
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
        """The different masks of chunks, filled up with zeros to MASKS."""
        masks = np.unique(self.chunks[:, 3]).tolist()
        return masks + [0] * (MASKS - len(masks))

    @property
    def most(self) -> int:
        """The largest number of products of a chunk, at least 1."""
        return int(self.chunks[:, 2].max(initial=1))


def chunked(graph: Graph, pieces: int, piece: int) -> tuple[Chunks, dict[str, float]]:
    """Return the products of the assignment with fewer of them, and the seconds by step.

    Filters are dealt to pieces round robin, or consecutively. The result is stored in the graph.

    Raises
    ------
    PartitionError
        If there are 2^31 weights or more, zeros in products included.
    """

    def compute() -> Chunks:
        turns = (1, 0) if pieces > 1 else (1,)
        candidates = [_chunks(graph.pattern, pieces, piece, turn) for turn in turns]
        return min(candidates, key=lambda chunks: len(chunks.tiles))

    return prepare_once(graph, f"chunks of {pieces} pieces of {piece}", "tiles", compute)


def _chunks(pattern: Pattern, pieces: int, piece: int, turns: int) -> Chunks:
    row_chunks = max(1, -(-pattern.shape[1] // CHUNK))
    block, offset = np.divmod(np.arange(pattern.n_rows), pieces * piece)
    # A lane stores four consecutive filters, and four lanes 16. `lane_sum` numbers a lane's sums.
    lane_sum = offset // 16 * 4 + offset % 4
    if turns:
        lane_sum, filter_piece = np.divmod(lane_sum, pieces)
    else:
        filter_piece, lane_sum = np.divmod(lane_sum, piece // 4)
    column = lane_sum // 2 * 8 + offset // 4 % 4 * 2 + lane_sum % 2
    global_piece = block * pieces + filter_piece
    permutation, walked, nonzeros, row, channel = in_order(pattern, (column, global_piece))

    # Records of the chunks, and the product and mask bit of each nonzero.
    k = channel % CHUNK // STEPS
    bit = channel % STEPS * pieces + filter_piece[row]
    keys, record = np.unique(block[row] * row_chunks + channel // CHUNK, return_inverse=True)
    masks = np.zeros(keys.size, np.int32)
    np.bitwise_or.at(masks, record, np.int32(1) << bit.astype(np.int32))
    if np.unique(masks).size > MASKS:
        masks[:] = np.bitwise_or.reduce(masks)
    has_product = (masks[:, None] >> np.arange(STEPS * pieces) & 1).astype(bool)
    counts = has_product.sum(axis=1)
    elements = int(counts.sum()) * piece * STEP
    check_elements(elements)
    product = np.cumsum(has_product).reshape(has_product.shape)[record, bit] - 1
    origins = np.full(elements, -1, np.int32)
    n = column[row]
    origins[product * piece * STEP + n // 8 * 64 + k // 4 * 32 + n % 8 * 4 + k % 4] = nonzeros
    chunk_block, chunk = np.divmod(keys, row_chunks)
    chunks = np.stack([chunk * CHUNK, np.cumsum(counts) - counts, counts, masks], axis=1)
    chunks = chunks.astype(np.int32)
    blocks = -(-pattern.n_rows // (pieces * piece))
    pointers = np.searchsorted(chunk_block, np.arange(blocks + 1)).astype(np.int32)

    # The products as tiles; filters of a piece are consecutive rows of `walked`.
    product_record, bits = np.nonzero(has_product)
    product_block = chunk_block[product_record]
    first_row = np.searchsorted(
        global_piece[permutation.order], product_block * pieces + bits % pieces
    )
    first_channel = chunk[product_record] * CHUNK + bits // pieces
    columns = first_channel[:, None] + STEPS * np.arange(STEP)
    places = (permutation.inverse[row] - first_row[product]) * STEP + k
    tiles = tiles_of(pattern, piece, product_block, first_row, columns, product, places)
    pointers, chunks, origins = map(taken_over, (pointers, chunks, origins))
    return Chunks(permutation, walked, pointers, chunks, origins, tiles, turns)
