"""Our own SDDMM: subwarps with runs of products, sums added up together."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.nonzero_runs import Products, rows_of_nonzeros, run_workload
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.description import Description, LaneColumns
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.blocks import POWERS, block_threads_of
from accelviz.strategies.lanes import ENOUGH_LANES, Lanes, cover
from accelviz.strategies.sddmm.operation import SDDMM, check_heads

#: Threads of a block: 256 and more are slower on all but the smallest graphs, as are 64 at few
#: columns.
BLOCK_THREADS = 128
#: Columns of V that a lane has on their way at once, and most products, by the columns of a vector.
COLUMNS_AT_ONCE, MOST_AT_ONCE = 32, {4: 4, 2: 4, 1: 8}
#: Large matrices of long rows, whose neighboring products share rows of V in the L1: so many
#: products to a subwarp, one batch after the other, and smaller batches, which leave registers to
#: more blocks.
LONG_DEGREE, LONG_PRODUCTS = 12, 1 << 20
LONG_GROUP, LONG_AT_ONCE = 8, 2


class LaneGroupSettings(Settings):
    """Lanes, and the products that they compute; None for the choice of a rule."""

    lanes: int = setting(
        None,
        "lanes of a subwarp; more: a row in fewer turns, and fewer subwarps in a warp",
        choices=POWERS,
        tries=(4, 8, 16),
    )
    at_once: int = setting(
        None,
        "products that a subwarp computes at once; more: fewer sums over lanes, more registers",
        choices=POWERS,
        tries=(1, 2, 4, 8),
    )
    group_products: int = setting(
        None,
        "products of a subwarp, a batch after the other; more: fewer, longer ones",
        choices=POWERS,
        tries=(1, 2, 4, 8),
    )
    block_threads: int = block_threads_of(BLOCK_THREADS, 64, 128, 256)

    def resolved(self, graph: Graph | RowDegrees, widths: Widths) -> LaneGroupSettings:
        """Choose what is None by a rule, which is made from sweeps on an H200.

        Raises
        ------
        PartitionError
            If a subwarp would compute more products at once than it has, or have more than lanes.
        """
        cover = self.cover(widths)
        lanes, at_once, products = cover.lanes, self.at_once, self.group_products
        most_products = max(LONG_PRODUCTS, LONG_DEGREE * graph.n_rows)
        long_rows = graph.nnz * widths["heads"] >= most_products
        if at_once is None:
            fit = max(COLUMNS_AT_ONCE // (cover.lane_vectors * cover.vector), 1)
            most = MOST_AT_ONCE[cover.vector]
            at_once = min(1 << (fit.bit_length() - 1), most, products or lanes)
            if long_rows and lanes == ENOUGH_LANES:
                at_once = min(at_once, LONG_AT_ONCE)
        if products is None:
            products = min(max(LONG_GROUP if long_rows else 1, at_once), lanes)
        if not at_once <= products <= lanes:
            problem = f"at_once={at_once}, group_products={products}, lanes={lanes}"
            raise PartitionError("at_once", problem, "at_once <= group_products <= lanes")
        return self.filled(lanes=lanes, at_once=at_once, group_products=products)

    def cover(self, widths: Widths) -> Lanes:
        """Choose how the lanes cover the columns."""
        return cover(widths["n_cols"], self.lanes, powers=True)

    def groups(self, widths: Widths) -> int:
        """Return the subwarps of a block."""
        return self.block_threads // self.cover(widths).lanes


class LaneGroups(Strategy):
    """Subwarps have neighboring products; a batch of them is added up together.

    All products cost the same, so the work is divided by products and not by rows. At most as many
    are computed `at_once` as `group_products`, and those are at most as many as `lanes`.
    """

    operation = SDDMM
    name = "lane_groups"
    summary = "our own: subwarps, runs of nonzeros, several sums reduced together"
    worker = "subwarp"
    Settings = LaneGroupSettings

    def build(self, graph: Graph, widths: Widths, settings: LaneGroupSettings) -> Plan:
        """Spell out the rows of the nonzeros; give each subwarp a run of products.

        Raises
        ------
        PartitionError
            If rows times heads do not fit in 31 bits.
        """
        n_cols, heads = widths["n_cols"], widths["heads"]
        check_heads(graph, heads)
        rows, seconds = rows_of_nonzeros(graph)
        lanes, groups = settings.cover(widths), settings.groups(widths)
        run = settings.group_products
        kernel = KernelSpec(
            file="sddmm/lane_groups.cu",
            entry="lane_groups",
            config={
                "vector": lanes.vector,
                "lanes": lanes.lanes,
                "lane_vectors": lanes.lane_vectors,
                "tiles": lanes.tiles,
                "whole_tiles": int(lanes.whole(n_cols)),
                "group_products": run,
                "at_once": settings.at_once,
                "groups": groups,
                "heads": heads,
            },
            arguments=("rows", "columns", "U", "V", "scores", "nnz", "n_cols"),
        )
        blocks = -(-graph.nnz * heads // (run * groups))
        launch = LaunchConfig((blocks, 1, 1), groups * lanes.lanes // WARP_SIZE)
        arrays = {
            "rows": rows,
            "columns": graph.column_indices,
            "nnz": np.int64(graph.nnz),
            "n_cols": np.int32(n_cols),
        }
        workload = partial(run_workload, graph.row_pointers, run, heads, groups)
        return Plan(
            Layout(graph.pattern, workload, workers_per_block=groups),
            (Call(launch, kernel),),
            Buffers(arrays, zero_outputs=()),
            Provenance(self, graph.values, widths, settings, seconds),
        )

    def choices(self, graph: Graph, n_cols: int) -> dict[str, tuple[Any, ...]]:
        """Leave out what a subwarp of the rule's lanes has no room for."""
        offered = super().choices(graph, n_cols)
        lanes = LaneGroupSettings().cover({"n_cols": n_cols}).lanes
        for name in ("at_once", "group_products"):
            offered[name] = tuple(value for value in offered[name] if value <= lanes)
        return offered

    def resolve(
        self, settings: LaneGroupSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> LaneGroupSettings:
        """Ask the rule, which looks at the graph's size."""
        return settings.resolved(graph, widths)

    def describe(
        self, settings: LaneGroupSettings, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Name the runs, without atomics; a subwarp has the columns of a head, a vector a lane."""
        lanes = settings.cover(widths)
        return Description(
            Products(settings.group_products, widths["heads"], settings.groups(widths), atomics=0),
            LaneColumns(lanes.lanes, lanes.vector, widths["n_cols"]),
        )
