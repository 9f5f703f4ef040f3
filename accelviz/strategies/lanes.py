"""The rule by which the lanes of a subwarp share the columns of a gathered row of X.

A subwarp is a group of neighboring lanes of a warp that load a row of X together. A lane loads
vectors of 1 to 8 neighboring columns. The lanes of a subwarp load neighboring vectors,
`lane_vectors` times; together these columns are a column tile. Each further tile is computed by
other thread blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from accelviz.plans.launch import WARP_SIZE

#: Vector widths in columns by the type of X in memory, widest first; a load has at most 16 bytes.
VECTORS = {"float32": (4, 2, 1), "float16": (8, 4, 2, 1), "bfloat16": (8, 4, 2, 1)}
#: Most vectors of a lane, for which `subwarps.IN_FLIGHT` has constants; `one_tile` ignores it.
MOST_LANE_VECTORS = 4
#: Number of lanes beyond which lanes have several vectors instead.
ENOUGH_LANES = 8


@dataclass(frozen=True)
class Lanes:
    """Sizes of a subwarp and of its vectors and tiles.

    Attributes
    ----------
    vector : int
        Columns of a vector: 1, 2 or 4; also 8 in 16-bit types.
    lanes : int
        Lanes of a subwarp, 1 to 32.
    lane_vectors : int
        Vectors of a lane, within a tile.
    tiles : int
        Number of column tiles.
    """

    vector: int
    lanes: int
    lane_vectors: int
    tiles: int

    def whole(self, n_cols: int) -> bool:
        """Return whether every vector of every lane is within the `n_cols` columns."""
        return n_cols == self.vector * self.lanes * self.lane_vectors * self.tiles


def cover(
    n_cols: int,
    lanes: int | None = None,
    *,
    storage: str = "float32",
    widest: int | None = None,
    tile: int | None = None,
    powers: bool = False,
    one_tile: bool = False,
) -> Lanes:
    """Choose lanes, vectors and tiles for a column count.

    Parameters
    ----------
    n_cols : int
    lanes : int, optional
        Lanes of a subwarp. By default about eight: with narrow subwarps, a warp processes more rows
        at a time. There are more lanes if eight lanes of four vectors do not cover a tile.
    storage : str
        Type of X in memory.
    widest : int, optional
        Most columns of a vector.
    tile : int, optional
        Desired columns of a tile; by default all columns are one tile. A tile can be wider, because
        it has equally many vectors in each lane.
    powers : bool
        Whether to choose a power of two as the number of lanes, if `lanes` is None.
    one_tile : bool
        Whether a lane may have any number of vectors, so that there is one tile.
    """
    vector = next(v for v in VECTORS[storage] if n_cols % v == 0 and v <= (widest or v))
    vectors = n_cols // vector
    most_vectors = vectors if tile is None else max(tile // vector, 1)
    tiles = -(-vectors // min(most_vectors, WARP_SIZE * MOST_LANE_VECTORS))
    tile_vectors = -(-vectors // tiles)
    if lanes is None and powers:
        least_lanes = max(min(tile_vectors, ENOUGH_LANES), -(-tile_vectors // MOST_LANE_VECTORS))
        lanes = min(1 << (least_lanes - 1).bit_length(), WARP_SIZE)
    elif lanes is None:
        lane_vectors = max(1, min(tile_vectors // ENOUGH_LANES, MOST_LANE_VECTORS))
        if vector > 1 and tile_vectors % lane_vectors:
            lane_vectors = min(lane_vectors, 2)  # the last lane has fewer unused vectors
        lanes = min(-(-tile_vectors // lane_vectors), WARP_SIZE)
    if one_tile:
        return Lanes(vector, lanes, -(-vectors // lanes), 1)
    # With the final number of lanes, a lane has at most MOST_LANE_VECTORS vectors of a tile.
    tiles = max(tiles, -(-vectors // (lanes * MOST_LANE_VECTORS)))
    lane_vectors = -(-vectors // (lanes * tiles))
    return Lanes(vector, lanes, lane_vectors, -(-vectors // (lanes * lane_vectors)))
