"""The settings of `lane_groups`: how lanes cover the columns, and the rule that chooses the rest.

The rule is made from sweeps on an H200. The last of them are in `benchmarks/results`:
`lane-sweeps-h200`, on the way to it, and `lanes-h200`, settings around the present one. `tune`
measures instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accelviz.errors import PartitionError
from accelviz.partition.block_level import BlockSetting
from accelviz.plans import Parameter
from accelviz.plans.launch import WARP_SIZE
from accelviz.plans.storage import STORAGE_BYTES

#: Threads of a block. Small blocks leave little waiting where groups have unequal work.
BLOCK_THREADS = 128
#: Bounded by the shared memory of a block, which holds its nonzeros, or a sum for each group.
MOST_THREADS, MOST_GROUP_NZS = 512, 128
#: Blocks that fit on an SM of any GPU so far.
MOST_SM_BLOCKS = 32
#: Columns that one load of 16 bytes or less can move, the widest first, by what X is kept in.
VECTORS = {"float32": (4, 2, 1), "float16": (8, 4, 2, 1), "bfloat16": (8, 4, 2, 1)}
#: Most vectors of a lane, and the lanes that are enough.
MOST_LANE_VECTORS, ENOUGH_LANES = 4, 8
#: Bytes of a row of X from which tiles are taken, and the bytes of one: whole rows wider than that
#: miss the caches more often.
TILED_BYTES, TILE_BYTES = 448, 256
#: Narrower tiles, of whole 128-byte lines, for columns in no order: where they bring X near the
#: size of the L2, or where the wider ones do not divide the columns. Each tile reads the nonzeros
#: again, which rows with few of them do not make up for.
NARROW_BYTES, NARROW_DEGREE, UNEVEN_NONZEROS = 128, 4, 1 << 20
#: What stays of X in the L2 of an H100 or H200.
L2_BYTES = 32 << 20
#: Nonzeros to a row from which groups take more of them, in large graphs.
LONG_DEGREE = 16
#: Nonzeros from which a group takes more of them: below, blocks are too few for every SM.
GROUP_NZS = ((0, 8), (1 << 17, 16), (300_000, 32))
LONG_GROUP_NZS, LONG_NONZEROS = 64, 1 << 22
SHORT_NZS = ((0, 4), (1 << 19, 8))
#: Columns of a vector and vectors of a lane to the nonzeros whose loads are in flight together, and
#: to the blocks of 128 threads that an SM should have room for.
IN_FLIGHT = {
    (8, 1): (3, 12),
    (8, 2): (3, 8),
    (8, 3): (2, 6),
    (8, 4): (1, 6),
    (4, 1): (2, 16),
    (4, 2): (2, 12),
    (4, 3): (3, 6),
    (4, 4): (2, 6),
    (2, 1): (4, 10),
    (2, 2): (4, 10),
    (2, 3): (2, 8),
    (2, 4): (2, 8),
    (1, 1): (4, 12),
    (1, 2): (6, 10),
    (1, 3): (4, 8),
    (1, 4): (4, 8),
}
#: The same for at most four lanes of one vector: rows of X of 64 bytes and less.
IN_FLIGHT_NARROW = (4, 10)
#: The same for at most eight lanes of one vector where there are so few nonzeros that the registers
#: of more loads are worth more than further blocks.
IN_FLIGHT_SMALL, SMALL_NONZEROS = (2, 10), 400_000
#: The same for two vectors of four columns where some lanes have one alone.
IN_FLIGHT_RAGGED = (2, 10)
#: The same for pairs of 16-bit columns, whose loads are small.
IN_FLIGHT_PAIRS = (2, 16)
#: The parameters; None leaves the choice to the rule.
PARAMETERS = {
    "group_nzs": Parameter(
        None,
        "most nonzeros of a group; more: long rows in fewer pieces, and each lasts longer",
        MOST_GROUP_NZS,
        tries=(16, 24, 32, 48, 64, 128),
    ),
    "short_nzs": Parameter(
        None,
        "most nonzeros of a group that takes several rows; more: fewer groups for short rows",
        MOST_GROUP_NZS,
        tries=(4, 8, 16, 32),
    ),
    "block_threads": Parameter(
        BLOCK_THREADS,
        "most threads of a block; more: fewer, larger blocks",
        MOST_THREADS,
        step=WARP_SIZE,
    ),
    "vector": Parameter(
        None, "most columns that a lane reads with one instruction", choices=VECTORS["float16"]
    ),
    "lanes": Parameter(
        None,
        "lanes of a group; more: a row of X in fewer turns, and fewer groups in a warp",
        WARP_SIZE,
    ),
    "slab": Parameter(
        None,
        "most columns that a block does in one go; the others have blocks of their own",
        1 << 20,
    ),
    "at_once": Parameter(
        None,
        "nonzeros whose loads are in flight together; more: less waiting, more registers",
        16,
        tries=(2, 3, 4),
    ),
    "blocks_per_sm": Parameter(
        None,
        "blocks that an SM has room for; more: fewer registers for each thread",
        MOST_SM_BLOCKS,
        tries=(6, 10, 12, 16),
    ),
    "stage": Parameter(
        True,
        "load a block's nonzeros into shared memory first, where all its lanes read them",
        choices=(True, False),
    ),
    "storage": Parameter(
        "float32",
        "what X is kept in: numbers of 2 bytes move half as much, and are rounded",
        choices=tuple(STORAGE_BYTES),
    ),
    "block_order": Parameter(
        "place",
        "order of the blocks: by the place of their rows in the graph, or by degree",
        choices=("place", "degree"),
    ),
}


@dataclass(frozen=True)
class Lanes:
    """How the lanes of a group cover the columns.

    Attributes
    ----------
    vector : int
        Neighboring columns that a lane reads as one: 1, 2 or 4.
    lanes : int
        Lanes of a group, 1 to 32.
    lane_vectors : int
        Vectors of a lane.
    tiles : int
        Tiles of columns along the grid's y.
    """

    vector: int
    lanes: int
    lane_vectors: int
    tiles: int

    def whole(self, n_cols: int) -> bool:
        """Say whether the columns fill every lane of every tile."""
        return n_cols == self.vector * self.lanes * self.lane_vectors * self.tiles


@dataclass(frozen=True)
class LaneSetting:
    """All that `lane_groups` can vary, checked; `PARAMETERS` says what each is.

    Attributes
    ----------
    cover : Lanes
        With `vector` and `lanes`.
    groups : BlockSetting
        Groups of a block as `max_block_warps`, `group_nzs` as `max_warp_nzs`.
    """

    cover: Lanes
    slab: int
    groups: BlockSetting
    short_nzs: int
    block_threads: int
    at_once: int
    blocks_per_sm: int
    stage: bool
    storage: str
    block_order: str

    @property
    def parameters(self) -> dict[str, Any]:
        """The keywords of `lane_setting` that give this setting whatever the rule says."""
        cover, groups = self.cover, self.groups
        known = {"group_nzs": groups.max_warp_nzs, "vector": cover.vector, "lanes": cover.lanes}
        return {name: known.get(name, getattr(self, name, None)) for name in PARAMETERS}

    @property
    def threads(self) -> int:
        """Threads of a block, whole warps."""
        return _warps_threads(self.groups.max_block_warps * self.cover.lanes)

    @property
    def staged(self) -> int:
        """Most nonzeros of a block."""
        return self.groups.max_block_warps * max(self.groups.max_warp_nzs, self.short_nzs)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block: its nonzeros, or a sum for each group."""
        row = 4 * self.cover.vector * self.cover.lanes * self.cover.lane_vectors
        return max(8 * self.staged, self.groups.max_block_warps * row)


def _divided_up(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


def _warps_threads(threads: int) -> int:
    return _divided_up(threads, WARP_SIZE) * WARP_SIZE


def cover(
    n_cols: int,
    lanes: int | None = None,
    slab: int | None = None,
    widest: int | None = None,
    storage: str = "float32",
) -> Lanes:
    """Choose lanes and vectors for a column count.

    Parameters
    ----------
    n_cols : int
    lanes : int, optional
        Lanes of a group. Eight are enough, as long as four vectors to each reach: the wider a
        group, the fewer rows are on their way at once.
    slab : int, optional
        Most columns of a tile; all of them if None.
    widest : int, optional
        Most columns of a vector.
    storage : str
        What X is kept in.
    """
    vector = next(v for v in VECTORS[storage] if n_cols % v == 0 and v <= (widest or v))
    vectors = n_cols // vector
    slab_vectors = vectors if slab is None else max(slab // vector, 1)
    tiles = _divided_up(vectors, min(slab_vectors, WARP_SIZE * MOST_LANE_VECTORS))
    width = _divided_up(vectors, tiles)
    if lanes is None:
        each = max(1, min(width // ENOUGH_LANES, MOST_LANE_VECTORS))
        if vector > 1 and width % each:
            each = min(each, 2)  # fewer lanes would be idle
        lanes = min(_divided_up(width, each), WARP_SIZE)
    tiles = max(tiles, _divided_up(vectors, lanes * MOST_LANE_VECTORS))
    lane_vectors = _divided_up(vectors, lanes * tiles)
    return Lanes(vector, lanes, lane_vectors, _divided_up(vectors, lanes * lane_vectors))


def chosen_slab(
    n_cols: int,
    shape: tuple[int, int],
    nnz: int,
    local: bool | None,
    feature_bytes: int = STORAGE_BYTES["float32"],
) -> int | None:
    """Choose the columns of a tile, by the rule.

    Parameters
    ----------
    n_cols : int
    shape : tuple of two int
        Rows and columns of the matrix.
    nnz : int
        Its nonzeros.
    local : bool, optional
        Whether the vertex order is local; None if that is not known.
    feature_bytes : int
        Bytes of an element of X.

    Returns
    -------
    int or None
        None for all of them.
    """
    row_bytes = feature_bytes * n_cols
    slab = TILE_BYTES // feature_bytes if row_bytes >= TILED_BYTES else None
    lines, rest = divmod(row_bytes, NARROW_BYTES)
    if local or rest or lines < 2 or nnz < NARROW_DEGREE * shape[0]:
        return slab
    narrow, wide = NARROW_BYTES * shape[1], TILE_BYTES * shape[1]
    uneven = lines % 2 == 1 and nnz >= UNEVEN_NONZEROS
    pays = uneven or (wide > 2 * L2_BYTES and narrow < 3 * L2_BYTES)
    return NARROW_BYTES // feature_bytes if pays else slab


def _in_flight(cover: Lanes, n_cols: int, nnz: int, feature_bytes: int) -> tuple[int, int]:
    """Choose the nonzeros in flight together, and the blocks of 128 threads an SM has room for."""
    shape = (cover.vector, cover.lane_vectors)
    if cover.lane_vectors == 1 and feature_bytes * cover.vector * cover.lanes <= 64:
        return IN_FLIGHT_NARROW
    if cover.vector == feature_bytes == 2:
        return IN_FLIGHT_PAIRS
    if shape == (4, 1) and cover.lanes <= ENOUGH_LANES and nnz < SMALL_NONZEROS:
        return IN_FLIGHT_SMALL
    if shape == (4, 2) and not cover.whole(n_cols):
        return IN_FLIGHT_RAGGED
    return IN_FLIGHT[shape]


def lane_setting(
    n_cols: int,
    shape: tuple[int, int],
    nnz: int,
    local: bool | None,
    *,
    group_nzs: int | None,
    short_nzs: int | None,
    block_threads: int,
    vector: int | None,
    lanes: int | None,
    slab: int | None,
    at_once: int | None,
    blocks_per_sm: int | None,
    stage: bool,
    storage: str,
    block_order: str,
) -> LaneSetting:
    """Choose what is None by the rule; `PARAMETERS` says what each is.

    Raises
    ------
    PartitionError
        If the vector is too wide for the storage.
    """
    if vector is not None and vector not in VECTORS[storage]:
        known = ", ".join(map(str, VECTORS[storage]))
        raise PartitionError("vector", f"got {vector!r}", f"one of {known} with {storage}")
    width = STORAGE_BYTES[storage]
    slab = slab or chosen_slab(n_cols, shape, nnz, local, width)
    found = cover(n_cols, lanes, slab, vector, storage)
    groups = min(block_threads // found.lanes, WARP_SIZE)
    threads = _warps_threads(groups * found.lanes)
    if group_nzs is None:
        group_nzs = next(nzs for least, nzs in reversed(GROUP_NZS) if nnz >= least)
        if nnz >= max(LONG_NONZEROS, LONG_DEGREE * shape[0]):
            group_nzs = LONG_GROUP_NZS
    if short_nzs is None:
        short_nzs = next(nzs for least, nzs in reversed(SHORT_NZS) if nnz >= least)
    in_flight, room = _in_flight(found, n_cols, nnz, width)
    return LaneSetting(
        found,
        slab or n_cols,
        BlockSetting(groups, group_nzs),
        short_nzs,
        block_threads,
        at_once or in_flight,
        blocks_per_sm or min(max(1, room * BLOCK_THREADS // threads), MOST_SM_BLOCKS),
        stage,
        storage,
        block_order,
    )
