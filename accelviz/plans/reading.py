"""Which lane of a worker has which columns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """How the lanes of a worker cover the columns of a dense row that is gathered, such as X's.

    Lane `l` has the columns `(t * lanes + l) * vector` to `... + vector - 1` of its block's tile,
    for turns t = 0, 1, ... as far as the tile goes.

    Attributes
    ----------
    lanes : int
        Lanes side by side. More than 32 are several warps of the hardware; with 1, each lane of a
        warp has rows of its own.
    vector : int
        Neighboring columns that a lane reads as one.
    tile : int
        Columns that a block covers; blocks along the grid's y have the next ones.
    """

    lanes: int
    vector: int
    tile: int
