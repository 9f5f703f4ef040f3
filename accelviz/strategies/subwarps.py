"""Blocks of subwarps: how lanes cover the columns, and the rule that chooses the rest.

The rule is made from sweeps on an H200. The last of them are in `benchmarks/results`:
`lane-sweeps-h200`, on the way to it, and `lanes-h200`, settings around the present one. `tune`
measures instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.ordering.degree import SortedRows
from accelviz.ordering.local import is_local
from accelviz.partition.block_level import FIELD_BITS, BlockSetting
from accelviz.partition.subwarps import (
    SubwarpPartition,
    Subwarps,
    subwarp_partition,
    subwarp_workload,
)
from accelviz.plans import Layout, Settings, setting
from accelviz.plans.launch import WARP_SIZE
from accelviz.plans.storage import STORAGE_BYTES
from accelviz.strategies.blocks import prepared
from accelviz.strategies.lanes import ENOUGH_LANES, VECTORS, Lanes, cover

#: Threads of a block. Small blocks leave few lanes idle where subwarps have unequal work.
BLOCK_THREADS = 128
#: Bounded by the shared memory of a block, which holds its nonzeros, or a sum for each subwarp.
MOST_THREADS, MOST_GROUP_NZS = 512, 128
#: Blocks that fit on an SM of any GPU so far.
MOST_SM_BLOCKS = 32
#: Bytes of a row of X from which tiles are taken, and the bytes of one: whole rows wider than that
#: miss the caches more often.
TILED_BYTES, TILE_BYTES = 448, 256
#: Narrower tiles, of whole 128-byte lines, for columns in no order: where they bring X near the
#: size of the L2, or where the wider ones do not divide the columns. Each tile reads the nonzeros
#: again, which rows with few of them do not make up for.
NARROW_BYTES, NARROW_DEGREE, UNEVEN_NONZEROS = 128, 4, 1 << 20
#: What stays of X in the L2 of an H100 or H200.
L2_BYTES = 32 << 20
#: Nonzeros to a row from which subwarps take more of them, in large graphs.
LONG_DEGREE = 16
#: Nonzeros from which a subwarp takes more of them: below, blocks are too few for every SM.
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


class LaneGroupSettings(Settings):
    """All that `lane_groups` can vary; None leaves the choice to the rule."""

    group_nzs: int = setting(
        None,
        "most nonzeros of a subwarp; more: long rows in fewer pieces, and each lasts longer",
        MOST_GROUP_NZS,
        tries=(16, 24, 32, 48, 64, 128),
    )
    short_nzs: int = setting(
        None,
        "most nonzeros of a subwarp that takes several rows; more: fewer for short rows",
        MOST_GROUP_NZS,
        tries=(4, 8, 16, 32),
    )
    block_threads: int = setting(
        BLOCK_THREADS,
        "most threads of a block; more: fewer, larger blocks",
        MOST_THREADS,
        step=WARP_SIZE,
    )
    vector: int = setting(
        None, "most columns that a lane reads with one instruction", choices=VECTORS["float16"]
    )
    lanes: int = setting(
        None,
        "lanes of a subwarp; more: a row of X in fewer turns, and fewer subwarps in a warp",
        WARP_SIZE,
    )
    column_tile: int = setting(
        None,
        "most columns that a block does in one go; the others have blocks of their own",
        1 << 20,
    )
    at_once: int = setting(
        None,
        "nonzeros whose loads are in flight together; more: less waiting, more registers",
        16,
        tries=(2, 3, 4),
    )
    blocks_per_sm: int = setting(
        None,
        "blocks that an SM has room for; more: fewer registers for each thread",
        MOST_SM_BLOCKS,
        tries=(6, 10, 12, 16),
    )
    stage: bool = setting(
        True,
        "load a block's nonzeros into shared memory first, where all its lanes read them",
        choices=(True, False),
    )
    storage: str = setting(
        "float32",
        "what X is kept in: numbers of 2 bytes move half as much, and are rounded",
        choices=tuple(STORAGE_BYTES),
    )
    block_order: str = setting(
        "place",
        "order of the blocks: by the place of their rows in the graph, or by degree",
        choices=("place", "degree"),
    )

    def cover(self, n_cols: int) -> Lanes:
        """Choose how the lanes cover the columns.

        Raises
        ------
        PartitionError
            If the vector is too wide for the storage.
        """
        if self.vector is not None and self.vector not in VECTORS[self.storage]:
            known = ", ".join(map(str, VECTORS[self.storage]))
            expected = f"one of {known} with {self.storage}"
            raise PartitionError("vector", f"got {self.vector!r}", expected)
        return cover(
            n_cols, self.lanes, storage=self.storage, widest=self.vector, tile=self.column_tile
        )

    def resolved(
        self, n_cols: int, shape: tuple[int, int], nnz: int, is_local: Callable[[], bool | None]
    ) -> LaneGroupSettings:
        """Choose what is None by the rule, for a matrix of a shape with `nnz` nonzeros.

        `is_local` is called only if the order of the vertices matters, and says whether it is
        local; if it returns None, `column_tile` stays None.

        Raises
        ------
        PartitionError
            If the vector is too wide for the storage.
        """
        tile = self.column_tile
        width = STORAGE_BYTES[self.storage]
        local: bool | None = False
        if tile is None:
            tile, if_local = (
                chosen_tile(n_cols, shape, nnz, local, width) for local in (False, True)
            )
            if tile != if_local:
                local = is_local()
                tile = if_local if local else tile
        lanes = self.filled(column_tile=tile).cover(n_cols)
        groups = min(self.block_threads // lanes.lanes, WARP_SIZE)
        threads = _warps_threads(groups * lanes.lanes)
        group_nzs = next(nzs for least, nzs in reversed(GROUP_NZS) if nnz >= least)
        if nnz >= max(LONG_NONZEROS, LONG_DEGREE * shape[0]):
            group_nzs = LONG_GROUP_NZS
        in_flight, room = _in_flight(lanes, n_cols, nnz, width)
        settings = self.filled(
            group_nzs=group_nzs,
            short_nzs=next(nzs for least, nzs in reversed(SHORT_NZS) if nnz >= least),
            lanes=lanes.lanes,
            column_tile=None if local is None else tile or n_cols,
            at_once=in_flight,
            blocks_per_sm=min(max(1, room * BLOCK_THREADS // threads), MOST_SM_BLOCKS),
        )
        return settings.replaced(vector=lanes.vector)


@dataclass(frozen=True)
class Blocks:
    """What the blocks of resolved settings are at a column count.

    Attributes
    ----------
    lanes : Lanes
        How lanes cover the columns; of attention, those of a head.
    groups : BlockSetting
        Subwarps of a block as `max_block_warps`, `group_nzs` as `max_warp_nzs`.
    short_nzs : int
    together : int
        Heads that a subwarp has together.
    """

    lanes: Lanes
    groups: BlockSetting
    short_nzs: int
    together: int = 1

    @classmethod
    def of(cls, settings: LaneGroupSettings, n_cols: int) -> Blocks:
        """Work them out."""
        lanes = settings.cover(n_cols)
        groups = min(settings.block_threads // lanes.lanes, WARP_SIZE)
        return cls(lanes, BlockSetting(groups, settings.group_nzs), settings.short_nzs)

    @property
    def threads(self) -> int:
        """Threads of a block, whole warps."""
        return _warps_threads(self.groups.max_block_warps * self.together * self.lanes.lanes)

    @property
    def staged(self) -> int:
        """Most nonzeros of a block."""
        return self.groups.max_block_warps * max(self.groups.max_warp_nzs, self.short_nzs)

    @property
    def row_floats(self) -> int:
        """Floats of a subwarp's state: the columns of its tile, of all heads that it has."""
        lanes = self.lanes
        return lanes.vector * lanes.lanes * lanes.lane_vectors * self.together

    @property
    def config(self) -> dict[str, int]:
        """Constants of every kernel that walks such blocks."""
        return {
            "lane_vectors": self.lanes.lane_vectors,
            "groups": self.groups.max_block_warps,
            "block_threads": self.threads,
            "deg_bound": self.groups.deg_bound,
            "staged": self.staged,
            "info_field_bits": FIELD_BITS,
        }

    def scheme(self, tiles: int | None, in_place: bool = True) -> Subwarps:
        """Name the partition; `tiles` are those of the grid's y."""
        groups = self.groups
        sizes = groups.max_block_warps, groups.max_warp_nzs, self.short_nzs
        return Subwarps(*sizes, tiles, int(in_place))


def local_order(graph: Graph) -> tuple[bool, dict[str, float]]:
    """Say whether the order of the vertices is local, and what finding out took; it is stored."""
    pattern = graph.pattern
    return prepared(graph, "local vertex order", "look at the order", lambda: is_local(pattern))


def subwarp_layout(
    graph: Graph, blocks: Blocks, in_place: bool = True
) -> tuple[Layout, SubwarpPartition, dict[str, float]]:
    """Sort a graph's rows and partition them, and say what that took on the host.

    With `in_place`, blocks come in the order in which their rows stand in the graph.

    Raises
    ------
    PartitionError
        If the graph has 2^32 nonzeros or more.
    """
    rows, sort_seconds = SortedRows.of(graph)
    groups = blocks.groups
    partition, seconds = subwarp_partition(rows, groups, blocks.short_nzs, in_place)
    layout = Layout(
        graph.pattern,
        partial(subwarp_workload, partition.metadata, groups),
        *(rows.pattern, rows.permutation, partition.nonzero_order, partition.metadata),
        workers_per_block=groups.max_block_warps,
    )
    return layout, partition, {**sort_seconds, **seconds}


def _warps_threads(threads: int) -> int:
    return -(-threads // WARP_SIZE) * WARP_SIZE


def chosen_tile(
    n_cols: int,
    shape: tuple[int, int],
    nnz: int,
    local: bool,
    feature_bytes: int = STORAGE_BYTES["float32"],
) -> int | None:
    """Choose the columns of a tile by the rule; None for all of them.

    It looks at the shape and nonzeros of the matrix, at whether the order of its vertices is local,
    and at the bytes of an element of X.
    """
    row_bytes = feature_bytes * n_cols
    tile = TILE_BYTES // feature_bytes if row_bytes >= TILED_BYTES else None
    lines, rest = divmod(row_bytes, NARROW_BYTES)
    if local or rest or lines < 2 or nnz < NARROW_DEGREE * shape[0]:
        return tile
    narrow, wide = NARROW_BYTES * shape[1], TILE_BYTES * shape[1]
    uneven = lines % 2 == 1 and nnz >= UNEVEN_NONZEROS
    pays = uneven or (wide > 2 * L2_BYTES and narrow < 3 * L2_BYTES)
    return NARROW_BYTES // feature_bytes if pays else tile


def _in_flight(lanes: Lanes, n_cols: int, nnz: int, feature_bytes: int) -> tuple[int, int]:
    """Choose the nonzeros in flight together, and the blocks of 128 threads an SM has room for."""
    shape = (lanes.vector, lanes.lane_vectors)
    if lanes.lane_vectors == 1 and feature_bytes * lanes.vector * lanes.lanes <= 64:
        return IN_FLIGHT_NARROW
    if lanes.vector == feature_bytes == 2:
        return IN_FLIGHT_PAIRS
    if shape == (4, 1) and lanes.lanes <= ENOUGH_LANES and nnz < SMALL_NONZEROS:
        return IN_FLIGHT_SMALL
    if shape == (4, 2) and not lanes.whole(n_cols):
        return IN_FLIGHT_RAGGED
    return IN_FLIGHT[shape]
