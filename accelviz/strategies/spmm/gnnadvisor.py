"""GNNAdvisor (Wang et al., OSDI 2021): neighbor groups, dimension workers, shared-memory slots."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from accelviz.errors import checked_integer
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.block_level import WORD_LIMIT
from accelviz.partition.neighbor_groups import (
    FLAGS,
    group_workload,
    neighbor_groups,
    warp_memory,
)
from accelviz.partition.warp_level import Runs
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.description import Description, LaneColumns
from accelviz.plans.launch import (
    MOST_BLOCK_WARPS,
    STATIC_SHARED_BYTES,
    WARP_SIZE,
    Call,
    KernelSpec,
    LaunchConfig,
)
from accelviz.plans.operation import FLOAT_BYTES
from accelviz.plans.settings import Settings, setting
from accelviz.store import Stopwatch
from accelviz.strategies.blocks import block_warps_of, column_tiles
from accelviz.strategies.spmm.operation import SPMM

#: Neighbors times columns that one thread handles best, by the paper's measurements.
WORKLOAD_PER_THREAD = 1024
#: The paper finds blocks of 1 to 4 warps best.
BLOCK_WARPS = 4
#: Neighbors of a group unless asked otherwise. The Decider's choice, 1,024 down to 256, is nowhere
#: faster on an H200 and mostly slower (docs/reproduction.md), as it leaves long rows to one warp.
NGS = 32
#: Columns that a lane sums at the same time, each in a register of its own.
MOST_LANE_COLUMNS = 4
#: Columns that one load can move, the widest first.
VECTORS = (4, 2, 1)
#: Of a group: its row and a packed word.
METADATA_BYTES = 8


@dataclass(frozen=True)
class Decision:
    """How GNNAdvisor treats a column count.

    Attributes
    ----------
    n_cols : int
        Columns of the features (Dim).
    block_warps : int
        Warps of a block (tpb / tpw).
    dw : int
        Dimension workers: lanes of a warp that walk the columns.
    ngs : int
        Most neighbors of a group.
    tiles, tile_columns : int
        Tiles of columns along the grid's y, and the columns of each; one tile unless a block's
        slots would outgrow shared memory.
    """

    n_cols: int
    block_warps: int
    dw: int
    ngs: int
    tiles: int
    tile_columns: int

    @property
    def workload_per_thread(self) -> float:
        """WPT of Equation 3.5: ngs x Dim / dw."""
        return self.ngs * self.n_cols / self.dw

    @property
    def shared_bytes(self) -> int:
        """SMEM of Equation 3.5, a slot of one tile's columns for each warp of a block, in bytes."""
        return self.block_warps * self.tile_columns * FLOAT_BYTES


def decide(
    n_cols: int,
    block_warps: int | None = None,
    *,
    dw: int | None = None,
    ngs: int | None = None,
) -> Decision:
    """Choose the parameters that are not given, as the paper's Decider does (section 3.6).

    Parameters
    ----------
    n_cols : int
        Columns of the features (Dim).
    block_warps : int, optional
        Warps of a block, 1 to 32; the paper leaves them to the user and advises 1 to 4.
    dw : int, optional
        Dimension workers, 1 to 32.
    ngs : int, optional
        Most neighbors of a group, at least 1.

    Raises
    ------
    PartitionError
        If one of them is out of range.

    Notes
    -----
    Equation 3.6: dw = tpw if Dim >= tpw, else tpw / 2, where tpw = 32 threads of a warp.
    Equation 3.5: WPT = ngs x Dim / dw, and ngs is such that WPT is about 1024;
    SMEM = block_warps x Dim x 4 bytes, at most 48 KB. Where Dim is too wide for that, the columns
    are cut into tiles.

    Examples
    --------
    >>> decide(64)
    Decision(n_cols=64, block_warps=4, dw=32, ngs=512, tiles=1, tile_columns=64)
    >>> decide(64).workload_per_thread, decide(64).shared_bytes
    (1024.0, 1024)
    """
    if block_warps is None:
        block_warps = BLOCK_WARPS
    block_warps = checked_integer("block_warps", block_warps, MOST_BLOCK_WARPS)
    if dw is None:
        dw = WARP_SIZE if n_cols >= WARP_SIZE else WARP_SIZE // 2
    dw = checked_integer("dw", dw, WARP_SIZE)
    if ngs is None:
        ngs = max(1, round(WORKLOAD_PER_THREAD * dw / n_cols))
    ngs = checked_integer("ngs", ngs, WORD_LIMIT)
    widest = STATIC_SHARED_BYTES // (block_warps * FLOAT_BYTES * WARP_SIZE) * WARP_SIZE
    tiles, columns = column_tiles(n_cols, widest)
    return Decision(n_cols, block_warps, dw, ngs, tiles, min(columns, n_cols))


def lane_vectors(n_cols: int, tile_columns: int, dw: int) -> tuple[int, int]:
    """Choose how a lane reads X: the columns of a vector, and the vectors it sums at a time.

    A vector divides the columns of X, so that every row is aligned, and leaves no dimension worker
    without one. The vectors have at most 4 columns in all, and the walks over the group are even.
    """
    vector = next(v for v in VECTORS if v == 1 or (n_cols % v == 0 and tile_columns >= v * dw))
    steps = -(-tile_columns // (dw * vector))
    walks = -(-steps * vector // MOST_LANE_COLUMNS)
    return vector, -(-steps // walks)


class GnnAdvisorSettings(Settings):
    """What the Decider may choose."""

    ngs: int = setting(
        NGS,
        "neighbor group size: most neighbors a warp sums; more: fewer atomics, longer waits",
        WORD_LIMIT,
        tries=(8, 16, 32, 64, 128),
        rule=True,
    )
    dw: int = setting(
        None,
        "dimension workers: lanes of a warp that walk the columns; the others do nothing",
        WARP_SIZE,
        tries=(8, 16, 32),
    )
    block_warps: int = block_warps_of(None)

    def decision(self, widths: Widths) -> Decision:
        """Ask the Decider for what is None."""
        return decide(widths["n_cols"], self.block_warps, dw=self.dw, ngs=self.ngs)


class GNNAdvisor(Strategy):
    """A warp handles a group of neighbors; groups of a row in one block add up in shared memory.

    Chapter 3 of the thesis, sections 3.4 to 3.6. `decide`, the paper's Decider, chooses settings
    that are None.
    """

    operation = SPMM
    name = "gnnadvisor"
    summary = "neighbor groups, dimension workers, one leader warp a row and block"
    Settings = GnnAdvisorSettings
    metadata_words = ("row", "slot and flags")
    metadata_owner = "warp"

    def build(self, graph: Graph, widths: Widths, settings: GnnAdvisorSettings) -> Plan:
        """Break the rows into neighbor groups and find the warps that meet in shared memory."""
        n_cols, decision = widths["n_cols"], settings.decision(widths)
        clock = Stopwatch()
        with clock.step("neighbor groups"):
            groups = neighbor_groups(graph.row_pointers, decision.ngs)
        with clock.step("shared memory"):
            memory = warp_memory(groups.rows, decision.block_warps)
            metadata = np.stack([groups.rows, memory.words()], axis=1)
        metadata.setflags(write=False)
        groups.pointers.setflags(write=False)
        vector, vectors = lane_vectors(n_cols, decision.tile_columns, decision.dw)
        launch = LaunchConfig(
            (-(-len(groups) // decision.block_warps), decision.tiles, 1),
            decision.block_warps,
            # Slots that no row of the graph uses would only take room from the L1 cache.
            decision.shared_bytes if memory.shared.any() else 0,
        )
        kernel = KernelSpec(
            file="spmm/gnnadvisor.cu",
            entry="gnnadvisor",
            config={
                "block_warps": decision.block_warps,
                "dimension_workers": decision.dw,
                "vector": vector,
                "lane_vectors": vectors,
                **FLAGS,
            },
            arguments=(
                *("group_pointers", "metadata", "columns", "values", "X", "Y"),
                *("n_groups", "n_cols", "tile_columns"),
            ),
        )
        # Rows without a nonzero have no group, and parts of a cut row add up in the output.
        clear = (graph.degrees == 0).any() or memory.cut.any()
        arrays = {
            "group_pointers": groups.pointers,
            "metadata": metadata,
            "columns": graph.column_indices,
            "n_groups": np.int64(len(groups)),
            "n_cols": np.int32(n_cols),
            "tile_columns": np.int32(decision.tile_columns),
        }
        workload = partial(group_workload, groups, decision.block_warps)
        return Plan(
            Layout(graph.pattern, workload, metadata=metadata),
            (Call(launch, kernel),),
            Buffers(arrays, zero_outputs=("Y",) if clear else ()),
            Provenance(self, graph.values, widths, settings, clock.seconds),
        )

    def resolve(
        self, settings: GnnAdvisorSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> GnnAdvisorSettings:
        """Ask the Decider."""
        decision = settings.decision(widths)
        return settings.filled(**{name: getattr(decision, name) for name in self.parameters})

    def describe(
        self, settings: GnnAdvisorSettings, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Name the groups; the dimension workers walk the columns, a vector each."""
        decision = settings.decision(widths)
        vector, _ = lane_vectors(widths["n_cols"], decision.tile_columns, decision.dw)
        return Description(
            Runs(decision.block_warps, decision.ngs, METADATA_BYTES),
            LaneColumns(decision.dw, vector, decision.tile_columns),
        )
