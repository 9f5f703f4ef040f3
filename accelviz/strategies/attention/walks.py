"""What strategies of attention share: their kernels and arguments; and the readable one."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import Graph, Pattern
from accelviz.partition.nonzero_runs import check_numbers, numbers_32
from accelviz.partition.row_split import row_workload
from accelviz.plans import LaneColumns, Operation, Strategy, Widths
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance
from accelviz.strategies.blocks import RowStrategy, size_arguments
from accelviz.strategies.lanes import Lanes, cover

#: Parts in which the totals of blocks are added up: gradients of what belongs to no row.
TOTAL_PARTS = 256
#: The widest head: each lane keeps its columns of every row that it works on in registers.
MOST_COLUMNS = 2048
#: Threads of a block of the small kernels before and after a walk.
_THREADS = 128


@dataclass(frozen=True)
class Functor:
    """What a kernel computes of a row and its nonzeros; see kernels/attention/*.cuh.

    Attributes
    ----------
    name : str
        The kernel's entry.
    operands : tuple of str
        Its operands, inputs first.
    slope : bool
        Whether it takes a slope.
    outputs : int
        Number of feature vectors that it sums for a row.
    items : int
        Number of feature vectors that it gathers for each nonzero.
    rows : int
        Number of further feature vectors stored per row.
    numbers : int
        Floats of a nonzero beside its feature vectors.
    totals : bool
        Whether it adds up something of all rows.
    dropout : bool
        Whether it takes a rate of dropout and what that is drawn from.
    """

    name: str
    operands: tuple[str, ...]
    slope: bool
    outputs: int
    items: int
    rows: int
    numbers: int
    totals: bool = False
    dropout: bool = True

    def arguments(self, walk: tuple[str, ...], workspace: tuple[str, ...]) -> tuple[str, ...]:
        """Return the parameters of the kernel, but for sizes."""
        return (
            *(*walk, *self.operands, *workspace),
            *(("block_totals",) if self.totals else ()),
            *(("slope",) if self.slope else ()),
            *(("rate", "random") if self.dropout else ()),
        )


_GAT, _COSINE, _GATV2 = ("receiver", "sender", "V"), ("Q", "V", "scale"), ("R", "V", "a")
#: The functors of each operation; of a gradient that of the matrix's columns first.
FUNCTORS = {
    "gat": (Functor("gat", (*_GAT, "Y", "logsumexp"), True, 1, 1, 0, 1),),
    "cosine": (Functor("cosine", (*_COSINE, "Y", "logsumexp"), False, 1, 1, 1, 1),),
    "gatv2": (Functor("gatv2", (*_GATV2, "Y", "logsumexp"), True, 1, 1, 2, 0),),
    "gat_gradient": (
        Functor(
            "gat_sources",
            ("statistics", "sender", "V", "dY", "d_sender", "dV"),
            *(True, 1, 1, 1, 4),
        ),
        Functor(
            "gat_targets",
            ("statistics", "sender", "V", "dY", "d_receiver"),
            *(True, 0, 1, 1, 1),
        ),
    ),
    "cosine_gradient": (
        Functor(
            "cosine_sources",
            ("statistics", *_COSINE, "dY", "d_scale", "dV"),
            *(False, 1, 2, 1, 2),
        ),
        Functor("cosine_targets", ("statistics", *_COSINE, "dY", "dQ"), False, 1, 1, 2, 1),
    ),
    "gatv2_gradient": (
        Functor("gatv2_sources", ("statistics", *_GATV2, "dY", "dV"), True, 1, 2, 2, 2),
        Functor("gatv2_targets", ("statistics", *_GATV2, "dY", "dR"), True, 1, 1, 4, 0, True),
    ),
    "spmm_gradient": (
        Functor(
            "spmm_sources",
            ("values", "X", "dY", "d_values", "dX"),
            *(False, 1, 1, 1, 1),
            dropout=False,
        ),
    ),
}


def cover_head(n_cols: int, head_lanes: int | None = None) -> Lanes:
    """Choose vectors and lanes for the columns of a head."""
    return cover(n_cols, head_lanes, powers=True, one_tile=True)


def lane_config(lanes: Lanes, n_cols: int) -> dict[str, int]:
    """Return the constants of columns.cuh."""
    return {
        "vector": lanes.vector,
        "head_lanes": lanes.lanes,
        "lane_vectors": lanes.lane_vectors,
        "whole_lanes": int(lanes.whole(n_cols)),
    }


def check(graph: Graph, n_cols: int) -> None:
    """Refuse a graph whose nonzeros do not fit in 32 bits, and heads that are too wide.

    Raises
    ------
    PartitionError
    """
    check_numbers(graph.nnz)  # dropout is drawn by them
    if n_cols > MOST_COLUMNS:
        why = f"at most {MOST_COLUMNS:,} of a head, as lanes keep them in registers"
        raise PartitionError("n_cols", f"got {n_cols}", why)


def _small_call(
    file: str, entry: str, blocks: int, y: int, arguments: tuple[str, ...], **config: int
) -> Call:
    config = {"block_threads": _THREADS, **config}
    kernel = KernelSpec(f"attention/{file}.cu", entry, config, arguments)
    return Call(LaunchConfig((blocks, y, 1), _THREADS // WARP_SIZE), kernel)


def statistics_calls(
    pattern: Pattern, operation: Operation, heads: int, n_cols: int
) -> tuple[Call, ...]:
    """Return the call that comes before the walk of attention's gradient; SpMM's has none."""
    if "logsumexp" not in operation.operands:
        return ()
    lanes, of_gat = cover_head(n_cols), operation.name == "gat_gradient"
    blocks = -(-pattern.n_rows * heads // (_THREADS // lanes.lanes))
    arguments = (
        *(("receiver",) if of_gat else ()),
        *("Y", "logsumexp", "dY", "statistics", "n_targets", "heads", "n_cols"),
    )
    entry = "statistics_of_gat" if of_gat else "statistics_of_any"
    config = lane_config(lanes, n_cols)
    return (_small_call("statistics", entry, blocks, 1, arguments, whole_heads=1, **config),)


class WalkStrategy(Strategy):
    """One walk over the rows of the matrix; of a gradient over its columns first.

    A class plans one walk of one functor, and this one puts them together.
    """

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    @property
    def functors(self) -> tuple[Functor, ...]:
        """What the kernels of the operation compute."""
        return FUNCTORS[self.operation.name]

    @abstractmethod
    def walk(
        self, functor: Functor, over: Graph, order: Any, provenance: Provenance
    ) -> tuple[Plan, int]:
        """Plan the walk of a functor over the matrix or its transpose.

        `order` says which nonzeros of the matrix those of the transpose are. Returned as well is
        how many blocks, or rows, each leave a total.
        """

    def build(self, graph: Graph, widths: Widths, settings: Any) -> Plan:
        """Plan the walk over the matrix's rows, or of a gradient those over columns and rows.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, or a head is too wide.
        """
        n_cols, heads = widths["n_cols"], widths.get("heads", 1)
        check(graph, n_cols)
        numbers = 4 if self.operation.name == "gat_gradient" else 2
        statistics = {"statistics": (graph.n_rows * heads * numbers, np.float32)}
        provenance = Provenance(self, graph.values, widths, settings)

        def walked(functor: Functor, over: Graph, order: Any = None) -> Plan:
            plan = _with_totals(*self.walk(functor, over, order, provenance), functor)
            known = statistics if "statistics" in functor.operands else {}
            workspace = {**known, **plan.buffers.workspace}
            buffers = replace(plan.buffers, workspace=workspace, zero_outputs=())
            return replace(plan, buffers=buffers)

        first, *others = self.functors
        if not self.operation.by_sender:
            return walked(first, graph)
        turned = graph.transposed()
        before = statistics_calls(graph.pattern, self.operation, heads, n_cols)
        plan = walked(first, turned.graph, turned.nonzeros)
        receivers = {"n_targets": np.int32(graph.n_rows)} if before else {}
        return replace(
            plan,
            layout=replace(
                plan.layout, pattern=graph.pattern, walked=plan.walked, main=len(before)
            ),
            calls=(*before, *plan.calls),
            buffers=replace(plan.buffers, arrays={**plan.arrays, **receivers}),
            then=tuple(walked(functor, graph) for functor in others),
        )


def _with_totals(plan: Plan, n_totals: int, functor: Functor) -> Plan:
    """Add to a walk whose blocks (or rows) leave `n_totals` totals what adds those up, in order."""
    if not functor.totals:
        return plan
    entries = plan.widths.get("heads", 1) * plan.n_cols
    blocks, sizes = -(-entries // _THREADS), ("heads", "n_cols")
    add_totals = ("block_totals", "part_totals", "n_totals", *sizes)
    add_parts = ("part_totals", "da", "n_parts", *sizes)
    arrays = {
        **plan.arrays,
        "n_totals": np.int32(n_totals),
        "n_parts": np.int32(TOTAL_PARTS),
    }
    workspace = {
        "block_totals": (max(n_totals, 1) * entries, np.float32),
        "part_totals": (TOTAL_PARTS * entries, np.float32),
    }
    return replace(
        plan,
        calls=(
            *plan.calls,
            _small_call("add_parts", "add_totals", blocks, TOTAL_PARTS, add_totals),
            _small_call("add_parts", "add_parts", blocks, 1, add_parts),
        ),
        buffers=replace(plan.buffers, arrays=arrays, workspace=workspace),
    )


class RowWarp(WalkStrategy, RowStrategy):
    """A warp has a head of a row: its lanes walk the columns of one nonzero after the other.

    Correct and simple, and slow: a hub is one warp's, and only one row is on its way.
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
