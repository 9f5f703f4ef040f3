"""The base class of attention's strategies, the functors of their kernels, and `row_warp`.

A walk is one pass of a kernel over all nonzeros, row by row. What it computes per row and nonzero
is a functor, a C++ template argument of the kernel. Attention has one walk over the rows of A; a
gradient has one over the columns and, for most scores, one over the rows. SpMM's gradient, SpMM
with a maximum or minimum and the gradient of both are such walks, too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
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

#: Partial sums of a gradient that belongs to no row (of GATv2's `a`), which a second kernel adds.
TOTAL_PARTS = 256
#: Most columns of a head: lanes have their columns of several rows in registers.
MOST_COLUMNS = 2048
#: Most columns of a column tile: kernels of wider ones spill registers. Up to TILED_COLUMNS columns
#: are one tile if the tiles would be narrower than NARROW_TILE.
TILE_COLUMNS, TILED_COLUMNS, NARROW_TILE = 64, 128, 16
#: Threads per block of the small kernels before and after a walk.
_THREADS = 128


@dataclass(frozen=True)
class Functor:
    """Computation of a walk per row and nonzero; see kernels/attention/*.cuh.

    Attributes
    ----------
    name : str
        Name of the C++ class, which is the kernel's entry.
    operands : tuple of str
        Its operands, inputs first.
    outputs : int
        Number of feature vectors summed per row.
    items : int
        Number of feature vectors gathered per nonzero.
    rows : int
        Number of further feature vectors in registers per row.
    numbers : int
        Number of floats per nonzero beside its feature vectors.
    slope : bool
        Whether `slope`, of LeakyReLU, is an argument.
    totals : bool
        Whether it also sums over all rows.
    dropout : bool
        Whether `rate` and `random`, of dropout, are arguments.
    floats_at_once, most_at_once : int
        By the rule, floats of gathered rows that a lane loads together, and most nonzeros to which
        they belong.
    registers, threads : int
        By the rule, registers of a thread beside its columns, and most resident threads of an SM.
        They bound the blocks per SM; measured on an H100, `numbers` of `gat_sources`, too.
    """

    name: str
    operands: tuple[str, ...]
    outputs: int
    items: int
    rows: int
    numbers: int
    _: KW_ONLY
    slope: bool = False
    totals: bool = False
    dropout: bool = True
    floats_at_once: int = 32
    most_at_once: int = 4
    registers: int = 28
    threads: int = 1024

    def arguments(self, walk: tuple[str, ...], workspace: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the kernel's arguments, without sizes."""
        return (
            *(*walk, *self.operands, *workspace),
            *(("block_totals",) if self.totals else ()),
            *(("slope",) if self.slope else ()),
            *(("rate", "random") if self.dropout else ()),
        )


def _functor(name: str, operands: str, *sizes: int, **options: Any) -> Functor:
    return Functor(name, tuple(operands.split()), *sizes, **options)


_EXTREMUM = {"dropout": False, "registers": 16, "threads": 1280}
#: Functors by operation; a gradient's walk over the columns comes first. The four integers are
#: `outputs`, `items`, `rows` and `numbers`.
FUNCTORS = {
    "gat": (
        _functor("gat", "receiver sender V Y row_max row_sum", 1, 1, 0, 1, slope=True, threads=896),
    ),
    "dot": (_functor("dot", "Q K V Y row_max row_sum", 1, 2, 1, 0),),
    "cosine": (_functor("cosine", "Q V scale Y row_max row_sum", 1, 1, 1, 1),),
    "gatv2": (_functor("gatv2", "R V a Y row_max row_sum", 1, 1, 2, 0, slope=True),),
    "gat_gradient": (
        _functor(
            *("gat_sources", "statistics sender V dY d_sender dV", 1, 1, 1, 3),
            slope=True,
            floats_at_once=16,
            registers=36,
        ),
        _functor("gat_targets", "statistics sender V dY d_receiver", 0, 1, 1, 1, slope=True),
    ),
    "dot_gradient": (
        _functor("dot_sources", "statistics Q K V dY dK dV", 2, 2, 2, 3),
        _functor("dot_targets", "statistics Q K V dY dQ", 1, 2, 2, 0),
    ),
    "cosine_gradient": (
        _functor("cosine_sources", "statistics Q V scale dY d_scale dV", 1, 2, 1, 3),
        _functor("cosine_targets", "statistics Q V scale dY dQ", 1, 1, 2, 1),
    ),
    "gatv2_gradient": (
        _functor(
            *("gatv2_sources", "statistics R V a dY dV", 1, 2, 2, 3),
            slope=True,
            most_at_once=2,
            registers=16,
        ),
        _functor(
            *("gatv2_targets", "statistics R V a dY dR", 1, 1, 4, 0),
            slope=True,
            totals=True,
            registers=16,
        ),
    ),
    "spmm_gradient": (
        _functor("spmm_sources", "values X dY d_values dX", 1, 1, 1, 1, dropout=False),
    ),
    "spmm_max": (_functor("largest", "X first Y source", 2, 1, 0, 0, **_EXTREMUM),),
    "spmm_min": (_functor("least", "X first Y source", 2, 1, 0, 0, **_EXTREMUM),),
    "spmm_extremum_gradient": (
        _functor(
            *("extremum_sources", "X Y dY source codes dX", 1, 2, 1, 2),
            dropout=False,
            registers=16,
        ),
    ),
}


def cover_head(n_cols: int, head_lanes: int | None = None) -> Lanes:
    """Choose the lanes and vectors of a head, which is one column tile."""
    return cover(n_cols, head_lanes, powers=True, one_tile=True)


def lane_config(lanes: Lanes, n_cols: int, head_tiles: int = 1) -> dict[str, int]:
    """Return the compile-time constants of kernels/attention/columns.cuh but `whole_heads`.

    `n_cols` is the number of columns of a tile, `head_tiles` the number of tiles of a head.
    """
    return {
        "vector": lanes.vector,
        "head_lanes": lanes.lanes,
        "lane_vectors": lanes.lane_vectors,
        "whole_lanes": int(lanes.whole(n_cols)),
        "head_tiles": head_tiles,
    }


def column_tile(n_cols: int) -> int:
    """Return the columns of a tile: the largest divisor of `n_cols` up to TILE_COLUMNS."""
    widest = min(n_cols, TILE_COLUMNS)
    tile = next(tile for tile in range(widest, 0, -1) if n_cols % tile == 0)
    return n_cols if tile < NARROW_TILE and n_cols <= TILED_COLUMNS else tile


def check(graph: Graph, n_cols: int) -> None:
    """Raise a `PartitionError` for 2^32 nonzeros or more, or too many columns per head."""
    check_numbers(graph.nnz)  # dropout's random numbers have 32-bit indices
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
    pattern: Pattern, operation: Operation, heads: int, lanes: Mapping[str, int]
) -> tuple[Call, ...]:
    """Return the call before the walks of a gradient, if the operation needs one.

    Of attention, it computes D[i] = dY[i] . Y[i] per row and head, which both walks need. `lanes`
    is the `lane_config` of the walks: D and dY[i] . V[j] have to be equal bit for bit if alpha is
    1. Of extrema, it computes their codes.
    """
    operands: tuple[str, ...]
    if operation.name == "spmm_extremum_gradient":
        entry, operands = "codes_of_extrema", ("Y", "codes")
    elif operation.name == "gat_gradient":
        entry = "statistics_of_gat"
        operands = ("receiver", "Y", "row_max", "row_sum", "dY", "statistics")
    elif "row_max" in operation.operands:
        entry, operands = "statistics_of_any", ("Y", "row_max", "row_sum", "dY", "statistics")
    else:
        return ()
    return (row_call(entry, operands, pattern, heads, lanes),)


def row_call(
    entry: str, operands: tuple[str, ...], pattern: Pattern, heads: int, lanes: Mapping[str, int]
) -> Call:
    """Return a call of kernels/attention/statistics.cu, which processes each row and head once."""
    blocks = -(-pattern.n_rows * heads // (_THREADS // lanes["head_lanes"]))
    arguments = (*operands, "n_targets", "heads", "n_cols")
    return _small_call("statistics", entry, blocks, 1, arguments, whole_heads=1, **lanes)


class WalkStrategy(Strategy):
    """Base class: `build` joins the walks of an operation, which subclasses plan by `walk`."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    @property
    def functors(self) -> tuple[Functor, ...]:
        """The functors of the operation's walks."""
        return FUNCTORS[self.operation.name]

    def heads(self, widths: Widths) -> tuple[int, int]:
        """Return the number of heads and the columns of a head.

        If the columns are independent of each other, their tiles take the place of heads.
        """
        heads, n_cols = widths.get("heads", 1), widths["n_cols"]
        tiles = self.head_tiles(widths)
        return heads * tiles, n_cols // tiles

    def head_tiles(self, widths: Widths) -> int:
        """Return the number of column tiles of a head; 1 if columns depend on each other.

        Scores of `gat` are operands, so that the columns of V are independent.
        """
        n_cols, operation = widths["n_cols"], self.operation
        if n_cols < 1 or not (operation.independent == "n_cols" or operation.name == "gat"):
            return 1
        tile = column_tile(n_cols)
        return 1 if operation.name == "gat" and tile < NARROW_TILE else n_cols // tile

    @abstractmethod
    def lane_config(self, settings: Any, widths: Widths) -> dict[str, int]:
        """Return `walks.lane_config` of the lanes of a head."""

    @abstractmethod
    def walk(
        self, functor: Functor, walked: Graph, order: Any, provenance: Provenance
    ) -> tuple[Plan, int]:
        """Plan one walk over `walked`, the matrix or its transpose.

        `order` has the positions in the matrix of the transpose's nonzeros; it is None for the
        matrix itself. The number returned is that of the totals, one per block or row.
        """

    def build(self, graph: Graph, widths: Widths, settings: Any) -> Plan:
        """Plan the walk over the rows; of a gradient, the walks over columns and rows.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, or a head is too wide.
        """
        heads, n_cols = self.heads(widths)
        check(graph, n_cols)
        of_rows = {
            "statistics": (graph.n_rows * heads * 4, np.float32),
            "codes": (graph.n_rows * heads * n_cols, np.uint8),
        }
        provenance = Provenance(self, graph.values, widths, settings)

        def walk_plan(functor: Functor, walked: Graph, order: Any = None) -> Plan:
            plan = _with_totals(*self.walk(functor, walked, order, provenance), functor)
            workspace = dict(plan.buffers.workspace)
            workspace |= {name: of_rows[name] for name in of_rows if name in functor.operands}
            buffers = replace(plan.buffers, workspace=workspace, zero_outputs=())
            return replace(plan, buffers=buffers)

        first, *others = self.functors
        if not self.operation.by_sender:
            return walk_plan(first, graph)
        transposed = graph.transposed()
        lanes = self.lane_config(settings, widths)
        calls = statistics_calls(graph.pattern, self.operation, heads, lanes)
        plan = walk_plan(first, transposed.graph, transposed.nonzeros)
        n_targets = {"n_targets": np.int32(graph.n_rows)} if calls else {}
        return replace(
            plan,
            layout=replace(plan.layout, pattern=graph.pattern, walked=plan.walked, main=len(calls)),
            calls=(*calls, *plan.calls),
            buffers=replace(plan.buffers, arrays={**plan.arrays, **n_targets}),
            then=tuple(walk_plan(functor, graph) for functor in others),
        )


def _with_totals(plan: Plan, n_totals: int, functor: Functor) -> Plan:
    """Append the kernels that add up `n_totals` totals, in a fixed order, if there are any."""
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
        **plan.buffers.workspace,
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
    """One warp per row and head; it processes one nonzero after the other.

    It is slow: one warp has all nonzeros of a long row, and loads one row of V at a time.
    """

    name = "row_warp"
    summary = "a warp per row and head, one nonzero after the other"

    def lane_config(self, settings: Any, widths: Widths) -> dict[str, int]:
        """Return the 32 lanes of a head, with columns 32 apart."""
        _, n_cols = self.heads(widths)
        lanes = Lanes(1, WARP_SIZE, -(-n_cols // WARP_SIZE), 1)
        return lane_config(lanes, n_cols, self.head_tiles(widths))

    def walk(
        self, functor: Functor, walked: Graph, order: Any, provenance: Provenance
    ) -> tuple[Plan, int]:
        """Plan one walk with a warp per row and head; see `WalkStrategy`."""
        widths, block_warps = provenance.widths, provenance.settings.values()["block_warps"]
        heads, n_cols = self.heads(widths)
        lanes = self.lane_config(provenance.settings, widths)
        config = {"block_warps": block_warps, **lanes, "whole_heads": 1}
        csr = {"row_pointers": walked.row_pointers, "columns": walked.column_indices}
        if order is not None:
            csr["order"] = numbers_32(order)
        sizes = size_arguments(walked, {"heads": heads, "n_cols": n_cols})
        arguments = (*functor.arguments(tuple(csr), ()), *sizes)
        kernel = KernelSpec("attention/row_warp.cu", f"{functor.name}<Config>", config, arguments)
        launch = LaunchConfig((-(-walked.n_rows // block_warps), heads, 1), block_warps)
        workload = partial(row_workload, walked.row_pointers, 1, block_warps)
        plan = Plan(
            Layout(walked.pattern, workload, nonzero_order=order),
            (Call(launch, kernel),),
            Buffers({**csr, **sizes}),
            provenance,
        )
        return plan, walked.n_rows

    def lanes(self, widths: Widths) -> LaneColumns | None:
        """Return the 32 lanes of a warp for one head, None for several."""
        return super().lanes(widths) if self.heads(widths)[0] == 1 else None
