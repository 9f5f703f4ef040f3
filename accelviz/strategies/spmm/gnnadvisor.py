"""GNNAdvisor (Wang et al., OSDI 2021; thesis, chapter 3): neighbor groups, dimension workers.

A neighbor group is up to `ngs` consecutive nonzeros of a row, processed by one warp. Its dimension
workers are the `dw` lanes that walk the columns of X. Groups of a row in the same block add their
sums in a slot of shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from accelviz.errors import checked_integer
from accelviz.graph import Graph
from accelviz.immutable import taken_over
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
from accelviz.strategies.blocks import block_warps_setting, column_tiles
from accelviz.strategies.spmm.operation import SPMM

#: Best workload per thread in the paper's measurements, in neighbors times columns.
WORKLOAD_PER_THREAD = 1024
#: Default warps per block; the paper recommends 1 to 4.
BLOCK_WARPS = 4
#: Default group size. The Decider's, 256 to 1,024, is never faster on an H200 and mostly slower
#: (docs/reproduction.md), because one warp then processes a long row.
NGS = 32
#: Most columns that a lane sums at the same time, one register each.
MOST_LANE_COLUMNS = 4
#: Columns of a vector load, the widest first.
VECTORS = (4, 2, 1)
#: Bytes of a group's metadata: its row and a packed word.
METADATA_BYTES = 8


@dataclass(frozen=True)
class Decision:
    """GNNAdvisor's parameters for a number of columns.

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
        Number of column tiles along the grid's y, and the columns of each. There are several only
        if the slots of a block for all columns exceed the shared memory.
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
        """SMEM of Equation 3.5 in bytes: one slot, of a tile's columns, per warp of a block."""
        return self.block_warps * self.tile_columns * FLOAT_BYTES


def decide(
    n_cols: int,
    block_warps: int | None = None,
    *,
    dw: int | None = None,
    ngs: int | None = None,
) -> Decision:
    """Choose the parameters that are not given by the paper's Decider (section 3.6).

    Parameters
    ----------
    n_cols : int
        Columns of the features (Dim).
    block_warps : int, optional
        Warps per block, 1 to 32. The paper leaves them to the user and recommends 1 to 4.
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
    SMEM = block_warps x Dim x 4 bytes, at most 48 KB. If Dim is too large for that, the columns are
    divided into tiles.

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
    """Return the columns of a lane's vector, and the number of vectors that it sums at a time.

    The vector divides the columns of X, for alignment, and leaves no dimension worker idle. The
    vectors have at most 4 columns together; a lane walks its group once for each set of vectors.
    """
    vector = next(v for v in VECTORS if v == 1 or (n_cols % v == 0 and tile_columns >= v * dw))
    tile_vectors = -(-tile_columns // (dw * vector))
    walks = -(-tile_vectors * vector // MOST_LANE_COLUMNS)
    return vector, -(-tile_vectors // walks)


class GnnAdvisorSettings(Settings):
    """Parameters of GNNAdvisor; the Decider chooses those that are None."""

    ngs: int = setting(
        NGS,
        "neighbor group size: most nonzeros per warp; more: fewer atomics, more load imbalance",
        WORD_LIMIT,
        tries=(8, 16, 32, 64, 128),
        rule=True,
    )
    dw: int = setting(
        None,
        "dimension workers: lanes of a warp that walk the columns; the others are idle",
        WARP_SIZE,
        tries=(8, 16, 32),
    )
    block_warps: int = block_warps_setting(None)

    def decision(self, widths: Widths) -> Decision:
        """Choose the settings that are None."""
        return decide(widths["n_cols"], self.block_warps, dw=self.dw, ngs=self.ngs)


class GNNAdvisor(Strategy):
    """One warp per neighbor group; groups of a row in the same block are added in shared memory.

    Sections 3.4 to 3.6 of the thesis. `decide` chooses settings that are None.
    """

    operation = SPMM
    name = "gnnadvisor"
    summary = "neighbor groups, dimension workers, one leader warp per row and block"
    Settings = GnnAdvisorSettings
    metadata_words = ("row", "slot and flags")
    metadata_owner = "warp"

    def build(self, graph: Graph, widths: Widths, settings: GnnAdvisorSettings) -> Plan:
        """Divide the rows into neighbor groups, and find the groups that share a slot."""
        n_cols, decision = widths["n_cols"], settings.decision(widths)
        clock = Stopwatch()
        with clock.step("neighbor groups"):
            groups = neighbor_groups(graph.row_pointers, decision.ngs)
        with clock.step("shared memory"):
            memory = warp_memory(groups.rows, decision.block_warps)
            metadata = taken_over(np.stack([groups.rows, memory.words()], axis=1))
        vector, vectors = lane_vectors(n_cols, decision.tile_columns, decision.dw)
        launch = LaunchConfig(
            (-(-len(groups) // decision.block_warps), decision.tiles, 1),
            decision.block_warps,
            # Shared memory reduces the L1 cache, so that unused slots are not allocated.
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
        # Rows without nonzeros have no group; parts of a split row are added to Y by atomics.
        zero_Y = (graph.degrees == 0).any() or memory.cut.any()
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
            Buffers(arrays, zero_outputs=("Y",) if zero_Y else ()),
            Provenance(self, graph.values, widths, settings, clock.seconds),
        )

    def resolve(
        self, settings: GnnAdvisorSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> GnnAdvisorSettings:
        """Choose the settings that are None by the Decider."""
        decision = settings.decision(widths)
        return settings.filled(**{name: getattr(decision, name) for name in self.parameters})

    def describe(
        self, settings: GnnAdvisorSettings, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Describe the groups; each dimension worker has a vector of columns."""
        decision = settings.decision(widths)
        vector, _ = lane_vectors(widths["n_cols"], decision.tile_columns, decision.dw)
        return Description(
            Runs(decision.block_warps, decision.ngs, METADATA_BYTES),
            LaneColumns(decision.dw, vector, decision.tile_columns),
        )
