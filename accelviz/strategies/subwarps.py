"""Settings of `lane_groups`, the rule for their defaults, and the blocks of subwarps they give.

A subwarp is a group of neighboring lanes of a warp that processes one row at a time; a block has
several. The rule was fitted to sweeps on an H200 (`lane-sweeps-h200` and `lanes-h200` in
`benchmarks/results`). `accelviz.tune` measures settings on the graph at hand instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

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
from accelviz.plans import Layout, Settings, WorkerLanes, setting
from accelviz.plans.gpu import L2_BYTES
from accelviz.plans.launch import WARP_SIZE
from accelviz.plans.storage import STORAGE_BYTES
from accelviz.strategies.blocks import prepare_once
from accelviz.strategies.lanes import ENOUGH_LANES, VECTORS, Lanes, cover

#: Default threads per block. Small blocks have few idle lanes where subwarps have unequal work.
BLOCK_THREADS = 128
#: Limits from a block's shared memory, which holds its nonzeros, or one sum per subwarp.
MOST_THREADS, MOST_GROUP_NZS = 512, 128
#: Most resident blocks per SM of any GPU so far, and most of the rule.
MOST_SM_BLOCKS, RULE_SM_BLOCKS = 32, 24
#: X is divided into column tiles of TILE_BYTES if its rows have TILED_BYTES or more: wider rows
#: have more cache misses.
TILED_BYTES, TILE_BYTES = 448, 256
#: A narrow tile is one 128-byte cache line. It is used for vertices in no local order if it brings
#: a tile of X near the size of the L2, or, from UNEVEN_NONZEROS on, if wider tiles do not divide
#: the columns. Each tile reads all nonzeros again, so the mean degree must be NARROW_DEGREE.
NARROW_BYTES, NARROW_DEGREE, UNEVEN_NONZEROS = 128, 4, 1 << 20
#: Rules for `group_nzs` and `short_nzs`: (least nonzeros of the graph, value). With fewer nonzeros
#: per subwarp a small graph has enough blocks for every SM.
GROUP_NZS = ((0, 8), (1 << 17, 16), (300_000, 32))
SHORT_NZS = ((0, 4), (1 << 19, 8))
#: `group_nzs` of graphs with LONG_NONZEROS or more and a mean degree of LONG_DEGREE or more.
LONG_GROUP_NZS, LONG_NONZEROS, LONG_DEGREE = 64, 1 << 22, 16
#: Most nonzeros of a subwarp for each of its lanes, by the same limits. With 8, shared memory takes
#: 8 KB of 128 threads, and the L1 gets the rest: twice as many take 1.6 to 1.9 times as long for
#: 12, 20 and 24 columns on Yelp's and PPA's twins on an H200.
LANE_NZS = ((0, 6), (1 << 20, 8))
#: (columns of a vector, vectors of a lane): (nonzeros whose loads are in flight together, blocks of
#: 128 threads per SM).
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
#: The same for rows of X of at most 64 bytes, with 4-column vectors and with others.
IN_FLIGHT_NARROW, IN_FLIGHT_NARROW_OTHER = (4, 12), (4, 10)
#: The same for at most eight lanes of one 4-column vector, in graphs below SMALL_NONZEROS.
IN_FLIGHT_SMALL, SMALL_NONZEROS = (4, 12), 1 << 20
#: The same for two vectors of four columns if some lanes have only one of them.
IN_FLIGHT_RAGGED = (2, 10)
#: The same for two whole vectors of four columns in large graphs with long rows, as LONG_GROUP_NZS.
#: On an H200, (2, 12) takes 1.05 times as long on PPA's twin in natural order, 1.01 on Yelp's.
IN_FLIGHT_LONG = (4, 8)
#: The same for vectors of two 16-bit columns, whose loads are small.
IN_FLIGHT_PAIRS = (2, 16)
#: Numbers of nonzeros from which on the rule chooses other values.
NONZERO_LIMITS = sorted(
    {least for least, _ in (*GROUP_NZS, *SHORT_NZS, *LANE_NZS)}
    | {SMALL_NONZEROS, LONG_NONZEROS, UNEVEN_NONZEROS}
)


class LaneGroupSettings(Settings):
    """Settings of `lane_groups`; the rule chooses those that are None."""

    group_nzs: int = setting(
        None,
        "most nonzeros of a subwarp; more: long rows have fewer parts, each of which takes longer",
        MOST_GROUP_NZS,
        tries=(16, 24, 32, 48, 64, 128),
    )
    short_nzs: int = setting(
        None,
        "most nonzeros of a subwarp with several rows; more: fewer subwarps for short rows",
        MOST_GROUP_NZS,
        tries=(4, 8, 16, 32),
    )
    block_threads: int = setting(
        BLOCK_THREADS,
        "most threads per block; more: fewer, larger blocks",
        MOST_THREADS,
        step=WARP_SIZE,
    )
    vector: int = setting(
        None, "most columns that a lane loads with one instruction", choices=VECTORS["float16"]
    )
    lanes: int = setting(
        None,
        "lanes of a subwarp; more: fewer loads per lane for a row of X, fewer subwarps per warp",
        WARP_SIZE,
    )
    column_tile: int = setting(
        None,
        "most columns of X per block; further column tiles have blocks of their own",
        1 << 20,
    )
    at_once: int = setting(
        None,
        "nonzeros whose loads are in flight together; more: fewer stalls, more registers",
        16,
        tries=(2, 3, 4),
    )
    blocks_per_sm: int = setting(
        None,
        "blocks per SM that the compiler leaves registers for; more: fewer registers per thread",
        MOST_SM_BLOCKS,
        tries=(6, 10, 12, 16),
    )
    stage: bool = setting(
        True,
        "copy a block's nonzeros into shared memory first, from which all its lanes read",
        choices=(True, False),
    )
    storage: str = setting(
        "float32",
        "type of X in memory; 2-byte types halve the traffic of X and round it",
        choices=tuple(STORAGE_BYTES),
    )
    block_order: str = setting(
        "place",
        'order of the blocks: "place", by their first row in the graph, or "degree"',
        choices=("place", "degree"),
    )

    def cover(self, n_cols: int) -> Lanes:
        """Choose how the lanes cover the columns.

        Raises
        ------
        PartitionError
            If `vector` is not possible with `storage`.
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
        """Choose the settings that are None, for a matrix of a shape with `nnz` nonzeros.

        `is_local()` returns whether the order of the vertices is local. It is called only if the
        column tile depends on it. If it returns None, `column_tile` stays None.

        Raises
        ------
        PartitionError
            If `vector` is not possible with `storage`.
        """
        tile = self.column_tile
        element_bytes = STORAGE_BYTES[self.storage]
        local: bool | None = False
        if tile is None:
            tile = choose_tile(n_cols, shape, nnz, False, element_bytes)
            local_tile = choose_tile(n_cols, shape, nnz, True, element_bytes)
            if tile != local_tile:
                local = is_local()
                tile = local_tile if local else tile
        lanes = self.filled(column_tile=tile).cover(n_cols)
        subwarps = min(self.block_threads // lanes.lanes, WARP_SIZE)
        warps = -(-subwarps * lanes.lanes // WARP_SIZE)
        group_nzs, short_nzs, lane_nzs = (
            next(nzs for least, nzs in reversed(limits) if nnz >= least)
            for limits in (GROUP_NZS, SHORT_NZS, LANE_NZS)
        )
        in_flight, sm_blocks = _in_flight(lanes, n_cols, nnz, shape[0], element_bytes)
        settings = self.filled(
            group_nzs=min(long_group_nzs(nnz, shape[0]) or group_nzs, lane_nzs * lanes.lanes),
            short_nzs=short_nzs,
            lanes=lanes.lanes,
            column_tile=None if local is None else tile or n_cols,
            at_once=in_flight,
            blocks_per_sm=min(
                max(1, sm_blocks * BLOCK_THREADS // (warps * WARP_SIZE)), RULE_SM_BLOCKS
            ),
        )
        return settings.replaced(vector=lanes.vector)


def setting_like(name: str, **changes: Any) -> Any:
    """Declare a setting as in `LaneGroupSettings`, with changed attributes of `Setting`."""
    declared = replace(LaneGroupSettings.declared[name], rule=False, **changes)
    return field(default=declared.default, metadata={"setting": declared})


@dataclass(frozen=True)
class Blocks:
    """Shape of the thread blocks of resolved settings at a column count.

    Attributes
    ----------
    lanes : Lanes
        Lanes of a subwarp and the columns that each covers; of one head, for attention.
    subwarps : BlockSetting
        Subwarps per block (`max_block_warps`) and most nonzeros of a subwarp (`max_warp_nzs`).
    short_nzs : int
        Most nonzeros of a subwarp with several rows.
    heads_together : int
        Number of heads that a subwarp of attention processes at the same time.
    """

    lanes: Lanes
    subwarps: BlockSetting
    short_nzs: int
    heads_together: int = 1

    @classmethod
    def of(cls, settings: LaneGroupSettings, n_cols: int) -> Blocks:
        """Return the blocks of settings: as many subwarps as fit, at most 32."""
        lanes = settings.cover(n_cols)
        subwarps = min(settings.block_threads // lanes.lanes, WARP_SIZE)
        return cls(lanes, BlockSetting(subwarps, settings.group_nzs), settings.short_nzs)

    @property
    def threads(self) -> int:
        """Threads per block, rounded up to whole warps."""
        threads = self.subwarps.max_block_warps * self.heads_together * self.lanes.lanes
        return -(-threads // WARP_SIZE) * WARP_SIZE

    @property
    def workers(self) -> WorkerLanes:
        """Lanes of the subwarps, for `Description`."""
        return WorkerLanes(self.heads_together * self.lanes.lanes, self.threads // WARP_SIZE)

    @property
    def block_nonzeros(self) -> int:
        """Most nonzeros of a block."""
        return self.subwarps.max_block_warps * max(self.subwarps.max_warp_nzs, self.short_nzs)

    @property
    def subwarp_floats(self) -> int:
        """Floats of a subwarp's sums: the columns of its tile, times `heads_together`."""
        lanes = self.lanes
        return lanes.vector * lanes.lanes * lanes.lane_vectors * self.heads_together

    @property
    def config(self) -> dict[str, int]:
        """Compile-time constants that all kernels with such blocks have."""
        return {
            "lane_vectors": self.lanes.lane_vectors,
            "groups": self.subwarps.max_block_warps,
            "block_threads": self.threads,
            "deg_bound": self.subwarps.deg_bound,
            "staged": self.block_nonzeros,
            "info_field_bits": FIELD_BITS,
        }

    def scheme(self, tiles: int | None, in_place: bool = True) -> Subwarps:
        """Return the partition scheme; `tiles` is the grid's size along y, None if unknown."""
        subwarps = self.subwarps
        sizes = subwarps.max_block_warps, subwarps.max_warp_nzs, self.short_nzs
        return Subwarps(*sizes, tiles, int(in_place))


def local_order(graph: Graph) -> tuple[bool, dict[str, float]]:
    """Return whether the vertex order is local, and the seconds by step; stored in the graph."""
    pattern = graph.pattern
    return prepare_once(graph, "local vertex order", "look at the order", lambda: is_local(pattern))


def subwarp_layout(
    graph: Graph, blocks: Blocks, in_place: bool = True
) -> tuple[Layout, SubwarpPartition, dict[str, float]]:
    """Sort a graph's rows by degree and partition them; return also the seconds by step.

    With `in_place`, blocks are in the order of their first row in the graph.

    Raises
    ------
    PartitionError
        If the graph has 2^32 nonzeros or more.
    """
    rows, sort_seconds = SortedRows.of(graph)
    subwarps = blocks.subwarps
    partition, seconds = subwarp_partition(rows, subwarps, blocks.short_nzs, in_place)
    layout = Layout(
        graph.pattern,
        partial(subwarp_workload, partition.metadata, subwarps),
        *(rows.pattern, rows.permutation, partition.nonzero_order, partition.metadata),
        workers_per_block=subwarps.max_block_warps,
    )
    return layout, partition, {**sort_seconds, **seconds}


def long_group_nzs(nnz: int, n_rows: int) -> int | None:
    """Return `group_nzs` for a large matrix with long rows, None for others."""
    return LONG_GROUP_NZS if nnz >= max(LONG_NONZEROS, LONG_DEGREE * n_rows) else None


def choose_tile(
    n_cols: int,
    shape: tuple[int, int],
    nnz: int,
    local: bool,
    feature_bytes: int = STORAGE_BYTES["float32"],
) -> int | None:
    """Return the columns of a tile by the rule, or None for a single tile.

    `shape` and `nnz` are those of the matrix; `local` is whether its vertex order is local;
    `feature_bytes` is the size of an element of X.
    """
    row_bytes = feature_bytes * n_cols
    tile = TILE_BYTES // feature_bytes if row_bytes >= TILED_BYTES else None
    lines, remainder = divmod(row_bytes, NARROW_BYTES)
    if local or remainder or lines < 2 or nnz < NARROW_DEGREE * shape[0]:
        return tile
    narrow_tile_bytes, wide_tile_bytes = NARROW_BYTES * shape[1], TILE_BYTES * shape[1]
    uneven = lines % 2 == 1 and nnz >= UNEVEN_NONZEROS
    fits_l2 = wide_tile_bytes > 2 * L2_BYTES and narrow_tile_bytes < 3 * L2_BYTES
    return NARROW_BYTES // feature_bytes if uneven or fits_l2 else tile


def _in_flight(
    lanes: Lanes, n_cols: int, nnz: int, n_rows: int, feature_bytes: int
) -> tuple[int, int]:
    """Return a value of `IN_FLIGHT`."""
    shape = (lanes.vector, lanes.lane_vectors)
    if lanes.lane_vectors == 1 and feature_bytes * lanes.vector * lanes.lanes <= 64:
        return IN_FLIGHT_NARROW if lanes.vector == 4 else IN_FLIGHT_NARROW_OTHER
    if lanes.vector == feature_bytes == 2:
        return IN_FLIGHT_PAIRS
    if shape == (4, 1) and lanes.lanes <= ENOUGH_LANES and nnz < SMALL_NONZEROS:
        return IN_FLIGHT_SMALL
    if shape == (4, 2) and not lanes.whole(n_cols):
        return IN_FLIGHT_RAGGED
    if shape == (4, 2) and long_group_nzs(nnz, n_rows):
        return IN_FLIGHT_LONG
    return IN_FLIGHT[shape]
