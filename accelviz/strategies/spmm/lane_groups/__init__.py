"""Our own strategy: Accel-GCN's blocks for lane groups, nonzeros staged, no clearing of Y."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.arrays import Ints
from accelviz.graph import Graph, Pattern, taken_over
from accelviz.ordering import RowDegrees
from accelviz.ordering.degree import SortedRows
from accelviz.ordering.local import is_local
from accelviz.partition.block4 import FIELD_BITS
from accelviz.partition.cut import Cut
from accelviz.partition.lane_groups import (
    WORDS,
    LanePartition,
    in_place_order,
    lane_group_partition,
    lane_group_workload,
)
from accelviz.plans import Call, KernelSpec, LaunchConfig, Plan, Reading, Strategy
from accelviz.plans.launch import WARP_SIZE
from accelviz.plans.storage import STORAGE_BYTES
from accelviz.store import Stopwatch
from accelviz.strategies.spmm.lane_groups.settings import (
    NARROW_BYTES,
    NARROW_DEGREE,
    PARAMETERS,
    VECTORS,
    LaneSetting,
    lane_setting,
)
from accelviz.strategies.spmm.operation import SPMM

#: Shared memory that CUDA takes for itself in each block, and what an SM has at most (H100, H200).
_RESERVED_BYTES, _SM_SHARED_BYTES = 1024, 228 * 1024


class LaneGroups(Strategy):
    """Groups of a few lanes have rows of equal degree; a block loads its nonzeros all at once.

    Each parameter is None for the choice of a rule (`settings`):

    - `group_nzs`: most nonzeros of a lane group (1 to 128); a longer row has several groups;
    - `short_nzs`: most nonzeros of a group that takes several rows (1 to 128);
    - `vector`: most columns that one load moves (1, 2 or 4; also 8 with 16-bit `storage`);
    - `lanes`: lanes of a group (1 to 32);
    - `slab`: most columns of a tile, which the blocks take one after the other;
    - `at_once`: nonzeros whose loads of X a lane has in flight together (1 to 16);
    - `blocks_per_sm`: blocks that an SM should have room for, which bounds the registers (1 to 32);

    but for `block_threads` (a multiple of 32 up to 512), `stage` (whether a block loads its
    nonzeros into shared memory first), `block_order` ("place", in the order in which the rows stand
    in the graph, or "degree") and `storage`: with "float16" or "bfloat16" the features are rounded
    beforehand, which is another problem, and sums and result stay float32.
    """

    operation = SPMM
    name = "lane_groups"
    summary = "our own: lane groups, staged nonzeros, blocks in the order of the graph, no clearing"
    parameters: ClassVar = PARAMETERS
    worker = "lane group"
    metadata_words = WORDS
    metadata_owner = "block"

    def build(self, graph: Graph, n_cols: int, **parameters: Any) -> Plan:
        """Sort the rows, and partition them into blocks of lane groups.

        Raises
        ------
        PartitionError
            If the graph has 2^32 nonzeros or more.
        """
        pattern = graph.pattern
        local, look_seconds = _local(graph)
        setting = lane_setting(n_cols, graph.shape, graph.nnz, local, **parameters)
        rows, sort_seconds = SortedRows.of(graph)
        clock = Stopwatch()
        with clock.step("block partition"):
            metadata, cut_blocks = lane_group_partition(
                rows.histogram, setting.groups, setting.short_nzs
            )
            if setting.block_order == "place":
                metadata = in_place_order(metadata, cut_blocks, rows.permutation.order)
            metadata.setflags(write=False)
        columns, order = rows.pattern.column_indices, rows.nonzero_order
        return lane_groups_plan(
            pattern,
            n_cols,
            setting,
            LanePartition(metadata, cut_blocks, rows.permutation.order, columns, order),
            walked=rows.pattern,
            permutation=rows.permutation,
            slice_workload=partial(lane_group_workload, metadata, setting.groups),
            setup_seconds={**look_seconds, **sort_seconds, **clock.seconds},
        )

    def choices(self, graph: Graph, n_cols: int) -> dict[str, tuple[Any, ...]]:
        """Return the settings around the rule's that were the fastest of some graph."""
        tiles = (n_cols, *(slab for slab in (64, 32) if slab < n_cols))
        order = ("blocks_per_sm", "at_once", "group_nzs", "short_nzs")
        return {
            "slab": tiles if n_cols > 32 else (),
            **{name: PARAMETERS[name].tries for name in order},
            "block_order": ("place", "degree"),
        }

    def settle(self, graph: Graph, n_cols: int, **parameters: Any) -> dict[str, Any]:
        """Ask the rule, which looks at the graph's size and order."""
        return _setting(graph, n_cols, parameters).parameters

    def reading(self, graph: Graph, n_cols: int, **parameters: Any) -> Reading:
        """Spread a group over the columns of a tile, a vector a lane."""
        cover = _setting(graph, n_cols, parameters).cover
        vectors = cover.lanes * cover.lane_vectors
        return Reading(cover.lanes, cover.vector, cover.vector * vectors)

    def cut(self, rows: RowDegrees, n_cols: int, **parameters: Any) -> Cut:
        """Name the blocks of lane groups that the rule and the parameters give.

        Notes
        -----
        Degrees do not say whether the vertex order is local, on which the rule for `slab` depends
        where there are many nonzeros to a row; then the atomics are not known.
        """
        n_rows, nnz = rows.histogram.n_rows, rows.histogram.nnz
        setting = lane_setting(n_cols, (n_rows, n_rows), nnz, None, **parameters)
        row_bytes = STORAGE_BYTES[setting.storage] * n_cols
        narrow = row_bytes < 2 * NARROW_BYTES or nnz < NARROW_DEGREE * n_rows
        known = parameters["slab"] is not None or narrow
        tiles = setting.cover.tiles if known else None
        groups = {"warps": setting.groups.max_block_warps, "most": setting.groups.max_warp_nzs}
        in_place = int(setting.block_order == "place")
        rest = {"short": setting.short_nzs, "tiles": tiles, "in_place": in_place}
        return Cut("lane_groups", {**groups, **rest})


def _setting(graph: Graph, n_cols: int, parameters: dict[str, Any]) -> LaneSetting:
    return lane_setting(n_cols, graph.shape, graph.nnz, _local(graph)[0], **parameters)


def _local(graph: Graph) -> tuple[bool, dict[str, float]]:
    """Say whether the order of the vertices is local, and what finding out took; it is kept."""

    def look(clock: Stopwatch) -> bool:
        with clock.step("look at the order"):
            return is_local(graph.pattern)

    return graph.store.prepared("local vertex order", look)


def lane_groups_plan(
    pattern: Pattern, n_cols: int, setting: LaneSetting, made: LanePartition, **known: Any
) -> Plan:
    """Return the plan of a setting and of what the host or the GPU has made of the pattern.

    Parameters
    ----------
    pattern : Pattern
    n_cols : int
    setting : LaneSetting
    made : LanePartition
        With the setting's groups and order of blocks.
    **known
        Further arguments of `Plan`.
    """
    cover, groups = setting.cover, setting.groups
    cut_blocks = max(made.cut_blocks, 1)
    launch = LaunchConfig(
        (len(made.metadata), cover.tiles, 1),
        setting.threads // WARP_SIZE,
        shared_percent=_shared_percent(setting),
    )
    kernel = KernelSpec(
        file="spmm/lane_groups.cu",
        entry="lane_groups",
        config={
            "vector": cover.vector,
            "features": list(VECTORS).index(setting.storage),
            "lanes": cover.lanes,
            "lane_vectors": cover.lane_vectors,
            "whole_tiles": int(cover.whole(n_cols)),
            "groups": groups.max_block_warps,
            "block_threads": setting.threads,
            "deg_bound": groups.deg_bound,
            "stage": int(setting.stage),
            "staged": setting.staged,
            "at_once": setting.at_once,
            "blocks_per_sm": setting.blocks_per_sm,
            "info_field_bits": FIELD_BITS,
            "accumulate": 0,
        },
        arguments=(
            *("metadata", "output_rows", "columns", "values", "X", "Y"),
            *("part_sums", "arrivals", "n_cols"),
        ),
    )
    return Plan(
        pattern,
        (Call(launch, kernel),),
        nonzero_order=made.nonzero_order,
        metadata=made.metadata,
        arrays={
            "metadata": made.metadata,
            "output_rows": made.output_rows,
            "columns": made.columns,
            "n_cols": np.int32(n_cols),
        },
        scratch={"arrivals": (cut_blocks * cover.tiles, np.uint32)},
        workspace={"part_sums": (cut_blocks * n_cols, np.float32)},
        clears=(),
        workers_per_block=groups.max_block_warps,
        storage=setting.storage,
        parameters=setting.parameters,
        **known,
    )


def _shared_percent(setting: LaneSetting) -> int:
    """Just enough shared memory for the blocks that an SM should hold; the rest is L1."""
    wanted = setting.blocks_per_sm * (setting.shared_bytes + _RESERVED_BYTES)
    return min(-(-100 * wanted // _SM_SHARED_BYTES), 100)


def accumulating(plan: Plan, rows: Ints) -> Plan:
    """Return a plan that adds its products to some rows of a larger Y.

    Parameters
    ----------
    plan : Plan
        Of `lane_groups`.
    rows : array of int32, shape (n_rows,)
        The row of Y that each row of the plan's matrix is added to.
    """
    (call,) = plan.calls
    assert isinstance(call, Call)
    assert call.kernel is not None
    kernel = replace(call.kernel, config={**call.kernel.config, "accumulate": 1})
    output_rows = taken_over(rows[np.asarray(plan.arrays["output_rows"])])
    arrays = {**plan.arrays, "output_rows": output_rows}
    return replace(plan, calls=(replace(call, kernel=kernel),), arrays=arrays)
