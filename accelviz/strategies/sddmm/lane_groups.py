"""`lane_groups`, our own SDDMM: subwarps that compute several dot products together.

A product is the dot product of one nonzero and one head. A subwarp ("group" in the settings' names)
has a run of consecutive products, computes `at_once` of them together and adds up the sums of its
lanes by shuffles. Each lane loads the row and the column of one product, so a subwarp has at most
as many products as lanes. The constants were fitted to sweeps on an H200.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.nonzero_runs import (
    Products,
    rows_of_nonzeros,
    run_loads,
    run_workload,
)
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy, Widths, WorkerLanes
from accelviz.plans.description import Description, LaneColumns
from accelviz.plans.gpu import L2_BYTES
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.operation import FLOAT_BYTES
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.blocks import POWERS, block_threads_setting
from accelviz.strategies.lanes import ENOUGH_LANES, Lanes, cover
from accelviz.strategies.sddmm.operation import SDDMM, check_heads
from accelviz.strategies.subwarps import NARROW_BYTES, choose_tile, local_order

#: Threads per block. 256 and more are slower except on the smallest graphs; 64 are slower for few
#: columns.
BLOCK_THREADS = 128
#: Elements of V that a lane loads together: the rule's `at_once` times the columns of a lane.
COLUMNS_AT_ONCE = 32
#: Largest `at_once` of the rule, by the columns of a vector.
MOST_AT_ONCE = {4: 4, 2: 4, 1: 8}
#: A matrix is large from this number of products on. The next two constants are for large matrices.
MANY_PRODUCTS = 1 << 20
#: Products of a subwarp: neighboring products reuse rows of V in the L1, and each launch begins
#: every run anew. With several launches of 128 or 256 columns in all, runs of 8 are 1.09 to 1.23
#: times as fast as of 4 on an H200 (Collab's, com-amazon's and youtube's twins, shuffled).
LARGE_GROUP = 8
#: Least products of a subwarp in smaller matrices with a mean degree (times heads) of LONG_DEGREE
#: or more: runs of 4 take up to 6 % less time than of 2 for 128 and more columns.
LONG_GROUP, LONG_DEGREE = 4, 8
#: Largest `at_once`: fewer products together leave registers to more blocks.
LARGE_AT_ONCE = 2

#: Least columns for which the rule looks at the order.
LEAST_TILED = 2 * NARROW_BYTES // FLOAT_BYTES
#: Most launches of a product, so that a plan of very many columns stays small.
MOST_LAUNCHES = 1024
#: Bytes of V from which on launches have tiles of its columns, in an order that is not local and in
#: a local one, whose tiles have LOCAL_TILE columns. Beyond MOST_TILE_BYTES of V's narrowest tile no
#: tile stays in the L2.
FAR_BYTES, LOCAL_FAR_BYTES, LOCAL_TILE = 2 * L2_BYTES, 8 * L2_BYTES, 128
MOST_TILE_BYTES = 8 * L2_BYTES


def choose_launch_columns(
    n_cols: int, shape: tuple[int, int], products: int, local: bool | None
) -> int | None:
    """Return the columns of a launch by the rule: those of a tile of V that stays in the L2.

    In an order that is not local, the tiles are SpMM's. None is all columns, or no knowledge of
    the order.
    """
    feature_bytes = FLOAT_BYTES * n_cols * shape[1]
    if local is None or feature_bytes <= (LOCAL_FAR_BYTES if local else FAR_BYTES):
        return None
    if local:
        return LOCAL_TILE if n_cols >= 2 * LOCAL_TILE else None
    if NARROW_BYTES * shape[1] > MOST_TILE_BYTES:
        return None
    return choose_tile(n_cols, shape, products, False)


class LaneGroupSettings(Settings):
    """Sizes of a subwarp and of its runs of products; a rule chooses those that are None."""

    lanes: int = setting(
        None,
        "lanes of a subwarp; more: fewer loads per lane for a row, fewer subwarps per warp",
        choices=POWERS,
        tries=(4, 8, 16),
    )
    at_once: int = setting(
        None,
        "products that a subwarp computes together; more: fewer shuffles, more registers",
        choices=POWERS,
        tries=(1, 2, 4, 8),
    )
    group_products: int = setting(
        None,
        "products of a subwarp; more: fewer subwarps, each of which takes longer",
        choices=POWERS,
        tries=(1, 2, 4, 8),
    )
    block_threads: int = block_threads_setting(BLOCK_THREADS, 64, 128, 256)
    column_tile: int = setting(
        None, "most columns of a launch; further column tiles have launches of their own", 1 << 20
    )

    def resolved(
        self, graph: Graph | RowDegrees, widths: Widths, local: bool | None
    ) -> LaneGroupSettings:
        """Choose the settings that are None by a rule fitted to sweeps on an H200 and an H100.

        `local` is whether the order of the vertices is local; None if that is not known.

        Raises
        ------
        PartitionError
            If `at_once` exceeds `group_products`, that exceeds `lanes`, or `column_tile` is so
            small that there are more than 1024 launches.
        """
        n_cols, heads = widths["n_cols"], widths["heads"]
        least_tile = -(-n_cols // MOST_LAUNCHES)
        if self.column_tile is not None and self.column_tile < least_tile:
            problem = f"got {self.column_tile} for {n_cols:,} columns"
            expected = f"{least_tile:,} or more, for at most {MOST_LAUNCHES:,} launches"
            raise PartitionError("column_tile", problem, expected)
        shape, products = (graph.n_rows * heads, graph.shape[1] * heads), graph.nnz * heads
        tile = self.column_tile or choose_launch_columns(n_cols, shape, products, local) or n_cols
        tile = max(tile, least_tile)
        head = self.filled(column_tile=tile).cover(widths)
        lanes, at_once, group_products = head.lanes, self.at_once, self.group_products
        large = products >= MANY_PRODUCTS
        if at_once is None:
            products_in_flight = max(COLUMNS_AT_ONCE // (head.lane_vectors * head.vector), 1)
            power_of_two = 1 << (products_in_flight.bit_length() - 1)
            at_once = min(power_of_two, MOST_AT_ONCE[head.vector], group_products or lanes)
            # The limit is for the rule's number of lanes for most column counts.
            if large and lanes == ENOUGH_LANES:
                at_once = min(at_once, LARGE_AT_ONCE)
        if group_products is None:
            long_rows = products >= LONG_DEGREE * graph.n_rows
            run = LARGE_GROUP if large else LONG_GROUP if long_rows else 1
            group_products = min(max(run, at_once), lanes)
        if not at_once <= group_products <= lanes:  # a lane loads row and column of one product
            problem = f"at_once={at_once}, group_products={group_products}, lanes={lanes}"
            raise PartitionError("at_once", problem, "at_once <= group_products <= lanes")
        return self.filled(
            lanes=lanes, at_once=at_once, group_products=group_products, column_tile=tile
        )

    def launches(self, widths: Widths) -> tuple[int, int]:
        """Return the number of launches, and the most columns of one, a multiple of a vector's."""
        n_cols = widths["n_cols"]
        vector = cover(n_cols).vector
        vectors = n_cols // vector
        tile_vectors = min(max((self.column_tile or n_cols) // vector, 1), vectors)
        launches = -(-vectors // tile_vectors)
        return launches, -(-vectors // launches) * vector

    def cover(self, widths: Widths) -> Lanes:
        """Choose how the lanes cover a launch's columns of a head."""
        vector = cover(widths["n_cols"]).vector
        return cover(self.launches(widths)[1], self.lanes, widest=vector, powers=True)

    def groups(self, widths: Widths) -> int:
        """Return the number of subwarps per block."""
        return self.block_threads // self.cover(widths).lanes


class LaneGroups(Strategy):
    """Every subwarp has the same number of consecutive products, whatever the rows' degrees.

    `at_once` is at most `group_products`, which is at most `lanes`.
    """

    operation = SDDMM
    name = "lane_groups"
    summary = "our own: subwarps, runs of nonzeros, several sums reduced together"
    worker = "subwarp"
    Settings = LaneGroupSettings

    def build(self, graph: Graph, widths: Widths, settings: LaneGroupSettings) -> Plan:
        """Store the row of each nonzero and assign runs of products to subwarps.

        Raises
        ------
        PartitionError
            If rows times heads do not fit in 31 bits.
        """
        n_cols, heads = widths["n_cols"], widths["heads"]
        check_heads(graph, heads)
        rows, preprocessing_seconds = rows_of_nonzeros(graph)
        lanes, groups = settings.cover(widths), settings.groups(widths)
        run, (launches, launch_columns) = settings.group_products, settings.launches(widths)
        kernel = KernelSpec(
            file="sddmm/lane_groups.cu",
            entry="lane_groups",
            config={
                "vector": lanes.vector,
                "lanes": lanes.lanes,
                "lane_vectors": lanes.lane_vectors,
                "tiles": lanes.tiles,
                "whole_tiles": int(lanes.whole(launch_columns) and n_cols % launch_columns == 0),
                "launch_vectors": launch_columns // lanes.vector,
                "group_products": run,
                "at_once": settings.at_once,
                "groups": groups,
                "heads": heads,
            },
            arguments=("rows", "columns", "U", "V", "scores", "nnz", "n_cols"),
        )
        kernels = [
            replace(kernel, config={**kernel.config, "launch": number})
            for number in range(launches)
        ]
        blocks = -(-graph.nnz * heads // (run * groups))
        launch = LaunchConfig((blocks, 1, 1), groups * lanes.lanes // WARP_SIZE)
        arrays = {
            "rows": rows,
            "columns": graph.column_indices,
            "nnz": np.int64(graph.nnz),
            "n_cols": np.int32(n_cols),
        }
        workload = partial(run_workload, graph.row_pointers, run, heads, groups)
        loads = partial(run_loads, graph.nnz, run, heads, groups)
        return Plan(
            Layout(graph.pattern, workload, workers_per_block=groups, slice_loads=loads),
            tuple(Call(launch, kernel) for kernel in kernels),
            Buffers(arrays, zero_outputs=()),
            Provenance(self, graph.values, widths, settings, preprocessing_seconds),
        )

    def choices(self, graph: Graph, n_cols: int) -> dict[str, tuple[Any, ...]]:
        """Return the settings' `tries`, without values above the rule's number of lanes."""
        choices = super().choices(graph, n_cols)
        lanes = LaneGroupSettings().cover({"n_cols": n_cols}).lanes
        for name in ("at_once", "group_products"):
            choices[name] = tuple(value for value in choices[name] if value <= lanes)
        return choices

    def resolve(
        self, settings: LaneGroupSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> LaneGroupSettings:
        """Choose the settings that are None by the graph's size and vertex order."""
        local = None
        if isinstance(graph, Graph) and widths["n_cols"] >= LEAST_TILED:
            local, _ = local_order(graph)
        return settings.resolved(graph, widths, local)

    def describe(
        self, settings: LaneGroupSettings, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Describe runs of products without atomics, and the columns of a head per lane."""
        lanes, groups = settings.cover(widths), settings.groups(widths)
        return Description(
            Products(settings.group_products, widths["heads"], groups, atomics=0),
            LaneColumns(lanes.lanes, lanes.vector, settings.launches(widths)[1]),
            WorkerLanes(lanes.lanes, groups * lanes.lanes // WARP_SIZE),
        )
