"""The rule by which the lanes of a subwarp share the columns of a gathered row of X.

A lane loads vectors of 1 to 8 neighboring columns. The lanes of a subwarp load neighboring vectors,
`lane_vectors` times; together these columns are a column tile. Further tiles have other blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from accelviz.plans.launch import WARP_SIZE

#: Vector widths in columns by the type of X in memory, widest first; a load has at most 16 bytes.
VECTORS = {"float32": (4, 2, 1), "float16": (8, 4, 2, 1), "bfloat16": (8, 4, 2, 1)}
#: Most vectors of a lane, and the number of lanes that a subwarp should have.
MOST_LANE_VECTORS, ENOUGH_LANES = 4, 8


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
        Lanes of a subwarp. By default about eight, as narrow subwarps process more rows at the same
        time, and more if four vectors per lane do not cover a tile.
    storage : str
        Type of X in memory.
    widest : int, optional
        Most columns of a vector.
    tile : int, optional
        Most columns of a tile; by default all columns are one tile.
    powers : bool
        Whether the number of lanes must be a power of two.
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
            lane_vectors = min(lane_vectors, 2)  # fewer idle lanes
        lanes = min(-(-tile_vectors // lane_vectors), WARP_SIZE)
    if one_tile:
        return Lanes(vector, lanes, -(-vectors // lanes), 1)
    tiles = max(tiles, -(-vectors // (lanes * MOST_LANE_VECTORS)))
    lane_vectors = -(-vectors // (lanes * tiles))
    return Lanes(vector, lanes, lane_vectors, -(-vectors // (lanes * lane_vectors)))
