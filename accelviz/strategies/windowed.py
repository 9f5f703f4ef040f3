"""Our own strategy: Accel-GCN's blocks for lane groups, nonzeros staged, no clearing of Y."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.graph import Graph
from accelviz.ordering import Permutation, RowDegrees, degree_sort, windowed_degree_sort
from accelviz.partition.block_level import FIELD_BITS, BlockSetting
from accelviz.partition.checks import checked_integer
from accelviz.partition.summary import PartitionSummary
from accelviz.partition.windowed import (
    degree_runs,
    windowed_partition,
    windowed_summary,
    windowed_workload,
)
from accelviz.strategies.base import Stopwatch, Strategy, prepared
from accelviz.strategies.plans import WARP_SIZE, KernelSpec, LaunchConfig, Plan

#: Threads of a block. Small blocks leave little waiting where groups have unequal work.
BLOCK_THREADS = 128
#: Most nonzeros of a lane group.
GROUP_NZS = 32
#: Columns that one load can move, the widest first.
VECTORS = (4, 2, 1)
#: Most vectors of a lane, LANES apart.
MOST_LANE_VECTORS = 4
#: Vectors of a lane to the nonzeros whose loads are in flight together, and to the blocks that an
#: SM should have room for: the best of those tried on an H200.
TUNED = {1: (4, 10), 2: (2, 10), 3: (3, 6), 4: (2, 6)}


@dataclass(frozen=True)
class Lanes:
    """How the lanes of a group cover the columns.

    Attributes
    ----------
    vector : int
        Neighboring columns that a lane reads as one: 1, 2 or 4.
    lanes : int
        Lanes of a group, a power of two up to 32.
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


def cover(n_cols: int) -> Lanes:
    """Choose lanes and vectors for a column count.

    Eight lanes are enough for 128 columns in vectors of four: the wider a group, the fewer rows are
    on their way at once. More lanes are taken where eight with four vectors each do not reach.
    """
    vector = next(v for v in VECTORS if n_cols % v == 0)
    vectors = n_cols // vector
    lanes = 1
    while lanes < min(vectors, 8) or (lanes < 32 and lanes * MOST_LANE_VECTORS < vectors):
        lanes *= 2
    tiles = -(-vectors // (lanes * MOST_LANE_VECTORS))
    return Lanes(vector, lanes, -(-vectors // (lanes * tiles)), tiles)


class Windowed(Strategy):
    """Groups of a few lanes have rows of equal degree; a block loads its nonzeros all at once.

    `build` takes `window` (rows are sorted by degree inside windows of so many; None sorts them
    all), `group_nzs` (most nonzeros of a lane group, 1 to 64) and `block_threads` (threads of a
    block, a multiple of 32 up to 1,024).
    """

    name = "windowed"
    summary = "our own: lane groups, staged nonzeros, windows, no clearing"

    def build(
        self,
        graph: Graph,
        n_cols: int,
        *,
        window: int | None = None,
        group_nzs: int = GROUP_NZS,
        block_threads: int = BLOCK_THREADS,
    ) -> Plan:
        """Sort, partition into blocks of lane groups, and pair columns with values.

        Raises
        ------
        PartitionError
            If a parameter is out of range or the graph has 2^32 nonzeros or more.
        """
        lanes, setting = checked_setting(n_cols, window, group_nzs, block_threads)
        (permutation, matrix, nonzeros), sort_seconds = _sorted(graph, window)
        clock = Stopwatch()
        with clock.step("block partition"):
            runs = degree_runs(RowDegrees.of(graph), window)
            assert runs is not None  # the graph is there
            metadata, cut_blocks = windowed_partition(*runs, setting)
            metadata.setflags(write=False)
        threads = setting.max_block_warps * lanes.lanes
        batch, blocks_per_sm = TUNED[lanes.lane_vectors]
        cut_sums = max(cut_blocks, 1) * n_cols
        arrivals = max(cut_blocks, 1) * lanes.tiles
        return Plan(
            strategy=self.name,
            graph=graph,
            n_cols=n_cols,
            parameters={"window": window, "group_nzs": group_nzs, "block_threads": threads},
            matrix=matrix,
            launch=LaunchConfig((len(metadata), lanes.tiles, 1), threads // WARP_SIZE),
            slice_workload=partial(windowed_workload, metadata, setting),
            permutation=permutation,
            metadata=metadata,
            kernel=KernelSpec(
                file="windowed.cu",
                entry="windowed",
                defines={
                    "VECTOR": lanes.vector,
                    "LANES": lanes.lanes,
                    "LANE_VECTORS": lanes.lane_vectors,
                    "WHOLE_TILES": int(lanes.whole(n_cols)),
                    "GROUPS": setting.max_block_warps,
                    "DEG_BOUND": setting.deg_bound,
                    "STAGED": setting.deg_bound,
                    "BATCH": batch,
                    "BLOCKS_PER_SM": max(1, blocks_per_sm * BLOCK_THREADS // threads),
                    "INFO_FIELD_BITS": FIELD_BITS,
                },
                arguments=(
                    *("metadata", "output_rows", "nonzeros", "X", "Y"),
                    *("cut_sums", "arrivals", "n_cols"),
                ),
            ),
            arrays={
                "metadata": metadata,
                "output_rows": permutation.order,
                "nonzeros": nonzeros,
                "n_cols": np.int32(n_cols),
            },
            scratch={
                "cut_sums": (cut_sums, np.float32),
                "arrivals": (arrivals, np.uint32),
            },
            zero_output=False,
            setup_seconds={**sort_seconds, **clock.seconds},
            workload_warps=setting.max_block_warps,
        )

    def summarize(
        self,
        rows: RowDegrees,
        n_cols: int,
        *,
        window: int | None,
        group_nzs: int,
        block_threads: int,
    ) -> PartitionSummary:
        """Count blocks, groups, loads and atomics."""
        lanes, setting = checked_setting(n_cols, window, group_nzs, block_threads)
        return windowed_summary(rows, n_cols, setting, window, lanes.tiles)


def checked_setting(
    n_cols: int, window: int | None, group_nzs: int, block_threads: int
) -> tuple[Lanes, BlockSetting]:
    """Return lanes and setting, or say which parameter is out of range."""
    if window is not None:
        checked_integer("window", window, (1 << 31) - 1)
    group_nzs = checked_integer("group_nzs", group_nzs, 64)
    block_threads = checked_integer("block_threads", block_threads, 1024, step=32)
    lanes = cover(n_cols)
    groups = min(block_threads // lanes.lanes, 32)
    return lanes, BlockSetting(groups, group_nzs)


def _sorted(
    graph: Graph, window: int | None
) -> tuple[tuple[Permutation, Graph, npt.NDArray[Any]], dict[str, float]]:
    """Sort the rows and pair each column with its value, once for each graph and window."""

    def sort(clock: Stopwatch) -> tuple[Permutation, Graph, npt.NDArray[Any]]:
        with clock.step("degree sort"):
            permutation = (
                degree_sort(graph)
                if window is None or window >= graph.n_rows
                else windowed_degree_sort(graph, window=window)
            )
        with clock.step("permute rows"):
            matrix = permutation.apply_to_graph(graph)
        with clock.step("pair columns and values"):
            nonzeros = np.empty((graph.nnz, 2), dtype=np.int32)
            nonzeros[:, 0] = matrix.column_indices
            nonzeros[:, 1] = matrix.values.view(np.int32)
        nonzeros.setflags(write=False)
        return permutation, matrix, nonzeros

    return prepared(graph, f"windowed by {window}", sort)
