"""What strategies of attention share: which kernels an operation takes, and their arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import Graph, Pattern
from accelviz.partition.nonzero_runs import check_numbers
from accelviz.plans import Call, KernelSpec, LaunchConfig, Operation, Plan
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.lanes import Lanes, cover

#: Parts in which the totals of blocks are added up: gradients of what belongs to no row.
TOTAL_PARTS = 256
#: The widest head: each lane keeps its columns of every row that it works on in registers.
MOST_COLUMNS = 2048
_STATISTICS_THREADS = 128


@dataclass(frozen=True)
class Problem:
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
        Sums of columns that it keeps of a row.
    items : int
        Rows of columns that it gathers for each nonzero.
    rows : int
        Rows of columns that it keeps beside its outputs.
    numbers : int
        Floats of a nonzero beside its columns.
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

    def arguments(self, walk: tuple[str, ...], scratch: tuple[str, ...]) -> tuple[str, ...]:
        """Return the parameters of the kernel, but for sizes."""
        return (
            *(*walk, *self.operands, *scratch),
            *(("block_totals",) if self.totals else ()),
            *(("slope",) if self.slope else ()),
            *(("rate", "random") if self.dropout else ()),
        )


PROBLEMS = (
    Problem("gat", ("receiver", "sender", "V", "Y", "logsumexp"), True, 1, 1, 0, 1),
    Problem("cosine", ("Q", "V", "scale", "Y", "logsumexp"), False, 1, 1, 1, 1),
    Problem("gatv2", ("R", "V", "a", "Y", "logsumexp"), True, 1, 1, 2, 0),
    Problem(
        "gat_senders",
        ("statistics", "sender", "V", "dY", "d_sender", "dV"),
        *(True, 1, 1, 1, 4),
    ),
    Problem(
        "cosine_senders",
        ("statistics", "Q", "V", "scale", "dY", "d_scale", "dV"),
        *(False, 1, 2, 1, 2),
    ),
    Problem("cosine_receivers", ("statistics", "Q", "V", "scale", "dY", "dQ"), False, 1, 1, 2, 1),
    Problem("gatv2_senders", ("statistics", "R", "V", "a", "dY", "dV"), True, 1, 2, 2, 2),
    Problem(
        "gatv2_receivers", ("statistics", "R", "V", "a", "dY", "dR"), True, 1, 1, 4, 0, totals=True
    ),
    Problem(
        "spmm_senders", ("values", "X", "dY", "d_values", "dX"), False, 1, 1, 1, 1, dropout=False
    ),
    Problem("gat_receivers", ("statistics", "sender", "V", "dY", "d_receiver"), True, 0, 1, 1, 1),
)


def problems_of(operation: Operation) -> tuple[Problem, ...]:
    """Return what an operation's kernels compute: one, of a gradient that of senders first."""
    name = operation.name.removesuffix("_gradient")
    if name == operation.name:
        return tuple(problem for problem in PROBLEMS if problem.name == name)
    return tuple(problem for problem in PROBLEMS if problem.name.startswith(f"{name}_"))


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


def statistics_calls(
    pattern: Pattern, operation: Operation, heads: int, n_cols: int
) -> tuple[Call, ...]:
    """Return the call that comes before the walk of attention's gradient, of a product's none."""
    if "logsumexp" not in operation.operands:
        return ()
    lanes = cover_head(n_cols)
    threads, of_gat = _STATISTICS_THREADS, operation.name == "gat_gradient"
    arguments = (*(("receiver",) if of_gat else ()), "Y", "logsumexp", "dY", "statistics")
    kernel = KernelSpec(
        "attention/statistics.cu",
        "statistics_of_gat" if of_gat else "statistics_of_any",
        {"block_threads": threads, "whole_heads": 1, **lane_config(lanes, n_cols)},
        (*arguments, "n_receivers", "heads", "n_cols"),
    )
    blocks = -(-pattern.n_rows * heads // (threads // lanes.lanes))
    return (Call(LaunchConfig((blocks, 1, 1), threads // WARP_SIZE), kernel),)


def plan_of(
    operation: Operation,
    graph: Graph,
    heads: int,
    n_cols: int,
    walk: Callable[[Problem, Graph, Any], Plan],
) -> Plan:
    """Return the plan of an operation: one walk over rows, or of a gradient over senders first.

    Parameters
    ----------
    operation : Operation
    graph : Graph
    heads, n_cols : int
    walk : callable
        `walk(problem, graph, order)` plans the walk of a problem over a graph or over its
        transpose, of which `order` says which nonzeros its own are; else it is None.

    Raises
    ------
    PartitionError
        If there are 2^32 nonzeros or more, or a head is too wide.
    """
    check(graph, n_cols)
    problems = problems_of(operation)
    statistics = graph.n_rows * heads * (4 if operation.name == "gat_gradient" else 2)

    def walked(problem: Problem, over: Graph, order: Any = None) -> Plan:
        plan = walk(problem, over, order)
        shared = {"statistics": (statistics, np.float32)}
        known = shared if "statistics" in problem.operands else {}
        workspace = {**known, **plan.buffers.workspace}
        buffers = replace(plan.buffers, workspace=workspace, zero_outputs=())
        return replace(plan, buffers=buffers)

    if not operation.by_sender:
        return walked(problems[0], graph)
    turned = graph.transposed()
    before = statistics_calls(graph.pattern, operation, heads, n_cols)
    plan = walked(problems[0], turned.graph, turned.nonzeros)
    receivers = {"n_receivers": np.int32(graph.n_rows)} if before else {}
    return replace(
        plan,
        layout=replace(plan.layout, pattern=graph.pattern, walked=plan.walked, main=len(before)),
        calls=(*before, *plan.calls),
        buffers=replace(plan.buffers, arrays={**plan.arrays, **receivers}),
        then=tuple(walked(problem, graph) for problem in problems[1:]),
    )


def with_totals(plan: Plan, problem: Problem, n_totals: int, heads: int, n_cols: int) -> Plan:
    """Add to a walk whose blocks (or rows) leave `n_totals` totals what adds those up, in order."""
    if not problem.totals:
        return plan
    entries, threads = heads * n_cols, 128

    def call(entry: str, parts: int, *arrays: str) -> Call:
        arguments, config = (*arrays, "heads", "n_cols"), {"block_threads": threads}
        kernel = KernelSpec("attention/add_parts.cu", entry, config, arguments)
        return Call(LaunchConfig((-(-entries // threads), parts, 1), threads // WARP_SIZE), kernel)

    return replace(
        plan,
        calls=(
            *plan.calls,
            call("add_totals", TOTAL_PARTS, "block_totals", "part_totals", "n_totals"),
            call("add_parts", 1, "part_totals", "da", "n_parts"),
        ),
        buffers=replace(
            plan.buffers,
            arrays={
                **plan.arrays,
                "n_totals": np.int32(n_totals),
                "n_parts": np.int32(TOTAL_PARTS),
            },
            workspace={
                "block_totals": (max(n_totals, 1) * entries, np.float32),
                "part_totals": (TOTAL_PARTS * entries, np.float32),
            },
        ),
    )
