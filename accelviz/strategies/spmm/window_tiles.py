"""Our SpMM on tensor cores: windows of 8 or 16 rows share the rows of X."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.plans import Call, KernelSpec, LaunchConfig, Parameter, Plan, Reading
from accelviz.plans.arithmetic import TERMS
from accelviz.plans.launch import MOST_BLOCK_WARPS, WARP_SIZE
from accelviz.strategies.spmm.operation import SPMM
from accelviz.tensor_cores.fragments import TF32_CAPABILITY
from accelviz.tensor_cores.shared_columns import (
    PART_COLUMNS,
    SharedColumnsStrategy,
    cut_scratch,
    shared_columns,
    shared_tiles,
    widest,
    window_workload,
)

#: Rows of a group: the columns of a product of fragments. Distinct columns of a step.
GROUP_ROWS, STEP_COLUMNS = 8, 8
#: Bytes between the rows of a stage, so that lanes read from different banks.
STAGE_PAD = 32


class WindowTiles(SharedColumnsStrategy):
    """A warp has a window of 8 rows or more; each of its distinct columns is loaded once.

    The product is transposed: 16 columns of X by 8 rows of A, so that rows of X become fragments as
    they come from memory, and a window needs no more than 8 rows. With `arithmetic="3xtf32"` every
    number is the sum of two of TF32, and results are as exact as float32's; "tf32" rounds; with
    "float16", another problem, features are stored in 16 bits and weights rounded to them. Further
    it takes `window_rows` (8, 16 or 32), the columns of X of a warp, `slab` (32, 64 or 128),
    `block_warps` (warps of a block, 1 to 32), `ahead` (steps of 8 distinct columns whose loads are
    on their way: 1, 2 or 4), `blocks_per_sm` (blocks that an SM should have room for) and
    `part_columns` (most distinct columns of a warp, a multiple of 32).
    """

    operation = SPMM
    name = "window_tiles"
    summary = "our own on tensor cores: windows of 8 rows share rows of X, exact by three products"
    metadata_owner = "warp"
    parameters: ClassVar = {
        "arithmetic": Parameter("3xtf32", "what products are worked out in", choices=tuple(TERMS)),
        "window_rows": Parameter(8, "rows of a window", choices=(8, 16, 32), tries=(8, 16)),
        "slab": Parameter(64, "columns of X of a warp", choices=(32, 64, 128), tries=(32, 64)),
        "block_warps": Parameter(4, "warps of a block", MOST_BLOCK_WARPS, tries=(1, 4, 8)),
        "ahead": Parameter(2, "steps on their way", choices=(1, 2, 4), tries=(1, 2, 4)),
        "blocks_per_sm": Parameter(1, "blocks that an SM has room for", 32, tries=(1, 4, 5)),
        "part_columns": PART_COLUMNS,
    }

    def build(
        self,
        graph: Graph,
        n_cols: int,
        *,
        arithmetic: str,
        window_rows: int,
        slab: int,
        block_warps: int,
        ahead: int,
        blocks_per_sm: int,
        part_columns: int | None,
    ) -> Plan:
        """Translate the graph; give each window, or part of one, a warp.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, or `ahead` is 1 with "float16".
        """
        halves = arithmetic == "float16"
        if halves and ahead == 1:
            what = "1 step with 'float16', whose instruction has two"
            raise PartitionError("ahead", what, "2 or 4")
        found, seconds = shared_columns(graph, window_rows, part_columns)
        slab = clipped(slab, n_cols, halves)
        kernel = KernelSpec(
            file="tensor_cores/window_tiles_spmm.cu",
            entry="window_tiles_spmm",
            config={
                "groups": window_rows // GROUP_ROWS,
                "warps": block_warps,
                "quads": slab // load_columns(halves),
                "vector": widest(n_cols, halves),
                "whole": int(n_cols % slab == 0),
                "ahead": ahead,
                "terms": TERMS[arithmetic],
                "features": int(TERMS[arithmetic] == 0),
                "blocks_per_sm": blocks_per_sm,
            },
            arguments=(
                *(*found.arrays, "values", "X", "Y", "cut_sums", "arrivals"),
                *("n_blocks", "n_rows", "n_cols"),
            ),
            capability=TF32_CAPABILITY,
        )
        blocks, tiles = len(found.metadata), -(-n_cols // slab)
        row_bytes = slab * (2 if halves else 4) + STAGE_PAD
        shared = block_warps * ahead * GROUP_ROWS * row_bytes
        launch = LaunchConfig((-(-blocks // block_warps), tiles, 1), block_warps, shared)
        return Plan(
            graph.pattern,
            (Call(launch, kernel),),
            partial(window_workload, graph.row_pointers, found, window_rows, block_warps),
            metadata=found.metadata,
            arrays={
                **found.arrays,
                "n_blocks": np.int32(blocks),
                "n_rows": np.int32(graph.n_rows),
                "n_cols": np.int32(n_cols),
            },
            scratch=cut_scratch(found, n_cols, tiles),
            clears=(),
            storage="float16" if halves else "float32",
            arithmetic=arithmetic,
            make_tiles=partial(shared_tiles, graph.pattern, found, STEP_COLUMNS, block_warps),
            setup_seconds=seconds,
            parameters={"part_columns": found.part_columns},
        )

    def reading(
        self, graph: Graph, n_cols: int, *, arithmetic: str, slab: int, **parameters: object
    ) -> Reading:
        """Fetch 16 bytes of a row by each of the lanes that have this row."""
        halves = arithmetic == "float16"
        slab, vector = clipped(slab, n_cols, halves), widest(n_cols, halves)
        return Reading(min(slab // vector, WARP_SIZE), vector, slab)


def load_columns(halves: bool) -> int:
    """Return the columns that eight lanes have side by side, 16 bytes each."""
    return 64 if halves else 32


def clipped(slab: int, n_cols: int, halves: bool) -> int:
    """Return the columns of a warp where there are no more than `n_cols`."""
    least = load_columns(halves)
    return min(max(slab, least), -(-n_cols // least) * least)
