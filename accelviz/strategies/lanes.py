"""How the lanes of a subwarp cover the columns of a gathered row: the rule of all strategies."""

from __future__ import annotations

from dataclasses import dataclass

from accelviz.plans.launch import WARP_SIZE

#: Columns that one load of 16 bytes or less can move, the widest first, by what X is kept in.
VECTORS = {"float32": (4, 2, 1), "float16": (8, 4, 2, 1), "bfloat16": (8, 4, 2, 1)}
#: Most vectors of a lane, and the lanes that are enough.
MOST_LANE_VECTORS, ENOUGH_LANES = 4, 8


@dataclass(frozen=True)
class Lanes:
    """How the lanes of a subwarp cover the columns.

    Attributes
    ----------
    vector : int
        Neighboring columns that a lane reads as one: 1, 2 or 4; also 8 in 16 bits.
    lanes : int
        Lanes of a subwarp, 1 to 32.
    lane_vectors : int
        Vectors of a lane.
    tiles : int
        Tiles of columns.
    """

    vector: int
    lanes: int
    lane_vectors: int
    tiles: int

    def whole(self, n_cols: int) -> bool:
        """Say whether the columns fill every lane of every tile."""
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
    """Choose lanes and vectors for a column count.

    Parameters
    ----------
    n_cols : int
    lanes : int, optional
        Lanes of a subwarp. Eight are enough, as long as four vectors to each reach: the wider a
        subwarp, the fewer rows are on their way at once.
    storage : str
        What X is kept in.
    widest : int, optional
        Most columns of a vector.
    tile : int, optional
        Most columns of a tile; all of them if None.
    powers : bool
        Whether the lanes are a power of two.
    one_tile : bool
        Whether lanes take as many vectors as there are, in place of several tiles.
    """
    vector = next(v for v in VECTORS[storage] if n_cols % v == 0 and v <= (widest or v))
    vectors = n_cols // vector
    tile_vectors = vectors if tile is None else max(tile // vector, 1)
    tiles = _divided_up(vectors, min(tile_vectors, WARP_SIZE * MOST_LANE_VECTORS))
    width = _divided_up(vectors, tiles)
    if lanes is None and powers:
        enough = max(min(width, ENOUGH_LANES), _divided_up(width, MOST_LANE_VECTORS))
        lanes = min(1 << (enough - 1).bit_length(), WARP_SIZE)
    elif lanes is None:
        share = max(1, min(width // ENOUGH_LANES, MOST_LANE_VECTORS))
        if vector > 1 and width % share:
            share = min(share, 2)  # fewer lanes would be idle
        lanes = min(_divided_up(width, share), WARP_SIZE)
    if one_tile:
        return Lanes(vector, lanes, _divided_up(vectors, lanes), 1)
    tiles = max(tiles, _divided_up(vectors, lanes * MOST_LANE_VECTORS))
    lane_vectors = _divided_up(vectors, lanes * tiles)
    return Lanes(vector, lanes, lane_vectors, _divided_up(vectors, lanes * lane_vectors))


def _divided_up(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
