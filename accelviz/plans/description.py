"""What a strategy says of a plan without making one: its scheme, and what its lanes read."""

from __future__ import annotations

from dataclasses import dataclass

from accelviz.partition.scheme import Scheme


@dataclass(frozen=True)
class LaneColumns:
    """How the lanes of a worker cover the columns of a dense row that is gathered, such as X's.

    Lane `l` reads the columns `(t * lanes + l) * vector` to `... + vector - 1` of its block's tile,
    for turns t = 0, 1, ... as far as the tile goes.

    Attributes
    ----------
    lanes : int
        Lanes side by side. More than 32 are several warps of the hardware; with 1, each lane of a
        warp has rows of its own.
    vector : int
        Neighboring columns that a lane reads with one load.
    tile : int
        Columns that a block covers; blocks along the grid's y have the next ones.
    """

    lanes: int
    vector: int
    tile: int


@dataclass(frozen=True)
class Description:
    """What a strategy does to rows of known degrees.

    Attributes
    ----------
    scheme : Scheme, optional
        How nonzeros are dealt out, with its closed form. None where only the graph itself tells.
    lanes : LaneColumns, optional
        Which columns a lane reads of a gathered row. None where it is not known; a trace shows it.
    """

    scheme: Scheme | None = None
    lanes: LaneColumns | None = None
