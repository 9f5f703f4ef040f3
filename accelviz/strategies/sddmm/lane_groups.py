"""Our own SDDMM: lane groups with runs of products, sums added up together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.cut import Cut
from accelviz.partition.nonzero_runs import rows_of_nonzeros, run_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Parameter, Plan, Reading, Strategy
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.blocks import POWERS, block_threads_of
from accelviz.strategies.sddmm.operation import SDDMM, check_heads

#: Threads of a block: 256 and more are slower on all but the smallest graphs, as are 64 at few
#: columns.
BLOCK_THREADS = 128
#: Columns that one load moves, the widest first.
VECTORS = (4, 2, 1)
#: Lanes that are enough as long as `MOST_LANE_VECTORS` to each reach.
ENOUGH_LANES, MOST_LANE_VECTORS = 8, 4
#: Columns of V that a lane has on their way at once, and most products, by the columns of a vector.
COLUMNS_AT_ONCE, MOST_AT_ONCE = 32, {4: 4, 2: 4, 1: 8}
#: Large matrices of long rows, whose neighboring products share rows of V in the L1: so many
#: products to a group, one batch after the other, and smaller batches, which leave registers to
#: more blocks.
LONG_DEGREE, LONG_PRODUCTS = 12, 1 << 20
LONG_GROUP, LONG_AT_ONCE = 8, 2


@dataclass(frozen=True)
class Setting:
    """All that the kernel is compiled with; see kernels/sddmm/lane_groups.cu."""

    vector: int
    lanes: int
    lane_vectors: int
    tiles: int
    whole_tiles: bool
    group_products: int
    at_once: int
    groups: int
    heads: int


def chosen(
    n_cols: int,
    heads: int,
    nnz: int,
    n_rows: int,
    *,
    lanes: int | None,
    at_once: int | None,
    group_products: int | None,
    block_threads: int,
) -> Setting:
    """Choose what is None by a rule, which is made from sweeps on an H200.

    Raises
    ------
    PartitionError
        If a group would compute more products at once than it has, or have more than lanes.
    """
    vector = next(v for v in VECTORS if n_cols % v == 0)
    vectors = n_cols // vector
    if lanes is None:
        enough = max(min(vectors, ENOUGH_LANES), -(-vectors // MOST_LANE_VECTORS))
        lanes = min(1 << (enough - 1).bit_length(), WARP_SIZE)
    tiles = -(-vectors // (lanes * MOST_LANE_VECTORS))
    lane_vectors = -(-vectors // (lanes * tiles))
    long_rows = nnz * heads >= max(LONG_PRODUCTS, LONG_DEGREE * n_rows)
    if at_once is None:
        fit = max(COLUMNS_AT_ONCE // (lane_vectors * vector), 1)
        at_once = min(1 << (fit.bit_length() - 1), MOST_AT_ONCE[vector], group_products or lanes)
        at_once = min(at_once, LONG_AT_ONCE) if long_rows and lanes == ENOUGH_LANES else at_once
    if group_products is None:
        group_products = min(max(LONG_GROUP if long_rows else 1, at_once), lanes)
    if not at_once <= group_products <= lanes:
        what = f"at_once={at_once}, group_products={group_products}, lanes={lanes}"
        raise PartitionError("at_once", what, "at_once <= group_products <= lanes")
    whole = vectors == lanes * lane_vectors * tiles
    groups = block_threads // lanes
    return Setting(
        vector, lanes, lane_vectors, tiles, whole, group_products, at_once, groups, heads
    )


class LaneGroups(Strategy):
    """Groups of a few lanes have neighboring products; a batch of them is added up together.

    All products cost the same, so the work is cut by products and not by rows. Each parameter is
    None for the choice of a rule: `lanes` of a group, the products that it computes `at_once`, and
    its `group_products`, powers of two up to 32 with at_once <= group_products <= lanes; but for
    `block_threads` (a multiple of 32 up to 1,024).
    """

    operation = SDDMM
    name = "lane_groups"
    summary = "our own: lane groups, runs of nonzeros, several sums reduced together"
    worker = "lane group"
    parameters: ClassVar = {
        "lanes": Parameter(
            None,
            "lanes of a group; more: a row of X in fewer turns, and fewer groups in a warp",
            choices=POWERS,
            tries=(4, 8, 16),
        ),
        "at_once": Parameter(
            None,
            "products that a group computes at once; more: fewer sums over lanes, more registers",
            choices=POWERS,
            tries=(1, 2, 4, 8),
        ),
        "group_products": Parameter(
            None,
            "products of a group, a batch after the other; more: fewer, longer groups",
            choices=POWERS,
            tries=(1, 2, 4, 8),
        ),
        "block_threads": block_threads_of(BLOCK_THREADS, 64, 128, 256),
    }

    def build(self, graph: Graph, n_cols: int, *, heads: int, **parameters: Any) -> Plan:
        """Spell out the rows of the nonzeros; give each group a run of products.

        Raises
        ------
        PartitionError
            If rows times heads do not fit in 31 bits.
        """
        check_heads(graph, heads)
        setting = chosen(n_cols, heads, graph.nnz, graph.n_rows, **parameters)
        rows, seconds = rows_of_nonzeros(graph)
        run, groups = setting.group_products, setting.groups
        kernel = KernelSpec(
            file="sddmm/lane_groups.cu",
            entry="lane_groups",
            config=vars(setting),
            arguments=("rows", "columns", "U", "V", "scores", "nnz", "n_cols"),
        )
        blocks = -(-graph.nnz * heads // (run * groups))
        launch = LaunchConfig((blocks, 1, 1), groups * setting.lanes // WARP_SIZE)
        return Plan(
            graph.pattern,
            (Call(launch, kernel),),
            partial(run_workload, graph.row_pointers, run, heads, groups),
            arrays={
                "rows": rows,
                "columns": graph.column_indices,
                "nnz": np.int64(graph.nnz),
                "n_cols": np.int32(n_cols),
            },
            clears=(),
            workers_per_block=groups,
            setup_seconds=seconds,
            parameters=self.settle(graph, n_cols, heads=heads, **parameters),
        )

    def choices(self, graph: Graph, n_cols: int) -> dict[str, tuple[Any, ...]]:
        """Leave out what a group of the rule's lanes has no room for."""
        offered = super().choices(graph, n_cols)
        lanes = chosen(n_cols, 1, graph.nnz, graph.n_rows, **self.defaults()).lanes
        for name in ("at_once", "group_products"):
            offered[name] = tuple(each for each in offered[name] if each <= lanes)
        return offered

    def cut(self, rows: RowDegrees, n_cols: int, *, heads: int, **parameters: Any) -> Cut:
        """Name the runs: nothing is added by atomics."""
        n_rows, nnz = rows.histogram.n_rows, rows.histogram.nnz
        setting = chosen(n_cols, heads, nnz, n_rows, **parameters)
        run, groups = setting.group_products, setting.groups
        return Cut("products", {"run": run, "heads": heads, "warps": groups, "atomics": 0})

    def settle(self, graph: Graph, n_cols: int, *, heads: int, **parameters: Any) -> dict[str, int]:
        """Ask the rule, which looks at the graph's size."""
        setting = chosen(n_cols, heads, graph.nnz, graph.n_rows, **parameters)
        return {name: getattr(setting, name) for name in ("lanes", "at_once", "group_products")}

    def reading(self, graph: Graph, n_cols: int, *, heads: int, **parameters: Any) -> Reading:
        """Spread a group over the columns of a head, a vector a lane."""
        setting = chosen(n_cols, heads, graph.nnz, graph.n_rows, **parameters)
        return Reading(setting.lanes, setting.vector, n_cols)
