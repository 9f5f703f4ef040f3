"""The readable attention, and its gradients: a warp has a head of a row. Those of an SpMM too."""

from __future__ import annotations

from functools import partial
from typing import Any

from accelviz.graph import Graph
from accelviz.partition.nonzero_runs import numbers_32
from accelviz.partition.row_split import row_workload
from accelviz.plans import LaneColumns, Widths
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance
from accelviz.strategies.attention.walks import Functor, WalkStrategy
from accelviz.strategies.blocks import RowStrategy, size_arguments


class RowWarp(WalkStrategy, RowStrategy):
    """A warp has a head of a row: its lanes walk the columns of one nonzero after the other.

    Correct and simple, and slow: a hub is one warp's, and only one row is on its way. It takes
    `block_warps` (warps of a block, 1 to 32).
    """

    name = "row_warp"
    summary = "a warp a head of a row, one nonzero after the other"

    def walk(
        self, functor: Functor, over: Graph, order: Any, provenance: Provenance
    ) -> tuple[Plan, int]:
        """Deal out the rows."""
        widths, block_warps = provenance.widths, provenance.settings.values()["block_warps"]
        n_cols, heads = widths["n_cols"], widths.get("heads", 1)
        config = {
            "block_warps": block_warps,
            "vector": 1,
            "head_lanes": WARP_SIZE,
            "lane_vectors": -(-n_cols // WARP_SIZE),
            "whole_lanes": int(n_cols % WARP_SIZE == 0),
            "whole_heads": 1,
        }
        walked = {"row_pointers": over.row_pointers, "columns": over.column_indices}
        if order is not None:
            walked["order"] = numbers_32(order)
        sizes = size_arguments(over, {"heads": heads, **widths})
        arguments = (*functor.arguments(tuple(walked), ()), *sizes)
        kernel = KernelSpec("attention/row_warp.cu", f"{functor.name}<Config>", config, arguments)
        launch = LaunchConfig((-(-over.n_rows // block_warps), heads, 1), block_warps)
        workload = partial(row_workload, over.row_pointers, 1, block_warps)
        plan = Plan(
            Layout(over.pattern, workload, nonzero_order=order),
            (Call(launch, kernel),),
            Buffers({**walked, **sizes}),
            provenance,
        )
        return plan, over.n_rows

    def lanes(self, widths: Widths) -> LaneColumns | None:
        """Spread a warp over the columns of a head, if there is one."""
        return super().lanes(widths) if widths.get("heads", 1) == 1 else None
