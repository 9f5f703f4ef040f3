"""A description of a strategy's plan without building it: partition scheme and lanes' columns."""

from __future__ import annotations

from dataclasses import dataclass

from accelviz.partition.scheme import Scheme


@dataclass(frozen=True)
class LaneColumns:
    """How the lanes of a worker cover the columns of a gathered row, such as a row of X.

    In iteration t = 0, 1, ... lane `l` reads columns `(t * lanes + l) * vector` to
    `(t * lanes + l + 1) * vector - 1` of its block's column tile, up to the end of the tile.

    Attributes
    ----------
    lanes : int
        Number of lanes that share one row. More than 32 are several hardware warps; with 1, each
        lane of a warp has its own rows.
    vector : int
        Number of neighboring columns that a lane reads with one load.
    tile : int
        Number of columns of a column tile. Blocks along the grid's y have consecutive tiles.
    """

    lanes: int
    vector: int
    tile: int


@dataclass(frozen=True)
class Description:
    """The mapping of rows of known degrees by a strategy.

    Attributes
    ----------
    scheme : Scheme, optional
        Partition scheme, with a closed form of its statistics. None if it depends on the graph.
    lanes : LaneColumns, optional
        Columns of a gathered row that a lane reads. None if unknown; a trace shows them.
    """

    scheme: Scheme | None = None
    lanes: LaneColumns | None = None
