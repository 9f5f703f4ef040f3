"""Our own strategy: Accel-GCN's blocks for lane groups, nonzeros staged, no clearing of Y."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.graph import Graph
from accelviz.ordering import Permutation, RowDegrees, degree_sort
from accelviz.partition.block_level import FIELD_BITS
from accelviz.partition.lane_groups import (
    LanePartition,
    in_place_order,
    lane_group_partition,
    lane_group_summary,
    lane_group_workload,
)
from accelviz.partition.summary import PartitionSummary
from accelviz.strategies.base import Stopwatch, Strategy, keyword_defaults, prepared
from accelviz.strategies.lane_settings import (
    FEATURE_BYTES,
    NARROW_BYTES,
    NARROW_DEGREE,
    VECTORS,
    LaneSetting,
    is_local,
    lane_setting,
)
from accelviz.strategies.plans import WARP_SIZE, KernelSpec, LaunchConfig, Plan
from accelviz.workload import Workload

#: Shared memory that CUDA takes for itself in each block, and what an SM has at most (H100, H200).
_RESERVED_BYTES, _SM_SHARED_BYTES = 1024, 228 * 1024


class LaneGroups(Strategy):
    """Groups of a few lanes have rows of equal degree; a block loads its nonzeros all at once.

    Its parameters, each None for the choice of a rule (`lane_settings`), are

    - `group_nzs`: most nonzeros of a lane group (1 to 128); a longer row has several groups;
    - `short_nzs`: most nonzeros of a group that takes several rows (1 to 128);
    - `vector`: most columns that one load moves (1, 2 or 4; also 8 with 16-bit `storage`);
    - `lanes`: lanes of a group (1 to 32);
    - `slab`: most columns of a tile, which the blocks take one after the other;
    - `at_once`: nonzeros whose loads of X a lane has in flight together (1 to 16);
    - `blocks_per_sm`: blocks that an SM should have room for, which bounds the registers (1 to 32);

    and `block_threads` (a multiple of 32 up to 512), `stage` (whether a block loads its nonzeros
    into shared memory first), `block_order` ("place", in the order in which the rows stand in the
    graph, or "degree") and `storage`: with "float16" or "bfloat16" the features are rounded
    beforehand, which is another problem, and sums and result stay float32.
    """

    name = "lane_groups"
    summary = "our own: lane groups, staged nonzeros, blocks in the order of the graph, no clearing"

    def defaults(self) -> dict[str, Any]:
        """Return the parameters of `lane_setting`, most of which are None: as the rule says."""
        return keyword_defaults(lane_setting)

    def build(self, graph: Graph, n_cols: int, **parameters: Any) -> Plan:
        """Sort, partition into blocks of lane groups, and pair columns with values.

        Raises
        ------
        PartitionError
            If a parameter is out of range or the graph has 2^32 nonzeros or more.
        """
        local, look_seconds = prepared(graph, "local vertex order", partial(_looked_at, graph))
        setting = lane_setting(n_cols, graph.shape, graph.nnz, local, **parameters)
        (permutation, matrix, nonzeros), sort_seconds = prepared(
            graph, "lane groups", partial(_sorted, graph)
        )
        clock = Stopwatch()
        with clock.step("block partition"):
            metadata, cut_blocks = lane_group_partition(
                RowDegrees.of(graph).histogram, setting.groups, setting.short_nzs
            )
            if setting.block_order == "place":
                metadata = in_place_order(metadata, cut_blocks, permutation.order)
            metadata.setflags(write=False)
        return lane_groups_plan(
            graph,
            n_cols,
            setting,
            LanePartition(metadata, cut_blocks, permutation.order, nonzeros),
            matrix=matrix,
            permutation=permutation,
            slice_workload=partial(lane_group_workload, metadata, setting.groups),
            setup_seconds={**look_seconds, **sort_seconds, **clock.seconds},
        )

    def choices(self, graph: Graph, n_cols: int) -> dict[str, tuple[Any, ...]]:
        """Return the settings around the rule's that were the fastest of some graph."""
        tiles = (n_cols, *(slab for slab in (64, 32) if slab < n_cols))
        return {
            "slab": tiles if n_cols > 32 else (),
            "blocks_per_sm": (6, 10, 12, 16),
            "at_once": (2, 3, 4),
            "group_nzs": (16, 24, 32, 48, 64, 128),
            "short_nzs": (4, 8, 16, 32),
            "block_order": ("place", "degree"),
        }

    def summarize(self, rows: RowDegrees, n_cols: int, **parameters: Any) -> PartitionSummary:
        """Count blocks, groups, loads and atomics.

        Notes
        -----
        Degrees do not say whether the vertex order is local, on which the rule for `slab` depends
        where there are many nonzeros to a row; then the atomics are not known.
        """
        n_rows, nnz = rows.histogram.n_rows, rows.histogram.nnz
        setting = lane_setting(n_cols, (n_rows, n_rows), nnz, None, **parameters)
        row_bytes = FEATURE_BYTES[setting.storage] * n_cols
        narrow = row_bytes < 2 * NARROW_BYTES or nnz < NARROW_DEGREE * n_rows
        known = parameters["slab"] is not None or narrow
        tiles = setting.cover.tiles if known else None
        return lane_group_summary(rows.histogram, setting.groups, setting.short_nzs, n_cols, tiles)


def lane_groups_plan(
    graph: Graph,
    n_cols: int,
    setting: LaneSetting,
    made: LanePartition,
    *,
    matrix: Graph,
    permutation: Permutation | None,
    slice_workload: Callable[[int, int], Workload],
    setup_seconds: Mapping[str, float],
) -> Plan:
    """Return the plan of a setting and of what the host or the GPU has made of the graph.

    Parameters
    ----------
    graph, n_cols, matrix, permutation, slice_workload, setup_seconds
        As in `Plan`.
    setting : LaneSetting
    made : LanePartition
        With the setting's groups and order of blocks.
    """
    cover, groups = setting.cover, setting.groups
    cut_blocks = max(made.cut_blocks, 1)
    return Plan(
        strategy=LaneGroups.name,
        graph=graph,
        n_cols=n_cols,
        parameters=setting.parameters,
        matrix=matrix,
        launch=LaunchConfig(
            (len(made.metadata), cover.tiles, 1),
            setting.threads // WARP_SIZE,
            shared_percent=_shared_percent(setting),
        ),
        slice_workload=slice_workload,
        permutation=permutation,
        metadata=made.metadata,
        kernel=KernelSpec(
            file="lane_groups.cu",
            entry="lane_groups",
            defines={
                "VECTOR": cover.vector,
                "FEATURES": list(VECTORS).index(setting.storage),
                "LANES": cover.lanes,
                "LANE_VECTORS": cover.lane_vectors,
                "WHOLE_TILES": int(cover.whole(n_cols)),
                "GROUPS": groups.max_block_warps,
                "BLOCK_THREADS": setting.threads,
                "DEG_BOUND": groups.deg_bound,
                "STAGE": int(setting.stage),
                "STAGED": setting.staged,
                "AT_ONCE": setting.at_once,
                "BLOCKS_PER_SM": setting.blocks_per_sm,
                "INFO_FIELD_BITS": FIELD_BITS,
            },
            arguments=(
                *("metadata", "output_rows", "nonzeros", "X", "Y"),
                *("cut_sums", "arrivals", "n_cols"),
            ),
        ),
        arrays={
            "metadata": made.metadata,
            "output_rows": made.output_rows,
            "nonzeros": made.nonzeros,
            "n_cols": np.int32(n_cols),
        },
        scratch={
            "cut_sums": (cut_blocks * n_cols, np.float32),
            "arrivals": (cut_blocks * cover.tiles, np.uint32),
        },
        zero_output=False,
        setup_seconds=setup_seconds,
        workload_warps=groups.max_block_warps,
        storage=setting.storage,
    )


def _shared_percent(setting: LaneSetting) -> int:
    """Just enough shared memory for the blocks that an SM should hold; the rest is L1."""
    wanted = setting.blocks_per_sm * (setting.shared_bytes + _RESERVED_BYTES)
    return min(-(-100 * wanted // _SM_SHARED_BYTES), 100)


def _looked_at(graph: Graph, clock: Stopwatch) -> bool:
    with clock.step("look at the order"):
        return is_local(graph)


def _sorted(graph: Graph, clock: Stopwatch) -> tuple[Permutation, Graph, npt.NDArray[Any]]:
    """Sort the rows and pair each column with its value."""
    with clock.step("degree sort"):
        permutation = degree_sort(graph)
    with clock.step("permute rows"):
        matrix = permutation.apply_to_graph(graph)
    with clock.step("pair columns and values"):
        nonzeros = np.empty((graph.nnz, 2), dtype=np.int32)
        nonzeros[:, 0] = matrix.column_indices
        nonzeros[:, 1] = matrix.values.view(np.int32)
    nonzeros.setflags(write=False)
    return permutation, matrix, nonzeros
