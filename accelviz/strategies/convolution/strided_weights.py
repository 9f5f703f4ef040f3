"""Ours, backward: the gradient by the weights as dense products on tensor cores."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.graph import Graph, Pattern
from accelviz.plans import Call, KernelSpec, LaunchConfig, Parameter, Plan
from accelviz.plans.arithmetic import TERMS
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.convolution.operation import SCC_LAST_WEIGHTS
from accelviz.strategies.convolution.strided_tiles import (
    ARITHMETIC,
    BLOCK_SHARED,
    MOST_BLOCKS,
    SHARED_KIB,
    SM_SHARED,
    SMS,
    STEP,
    SUMMARY,
    chosen_groups,
    strided,
)
from accelviz.tensor_cores.fragments import TF32_CAPABILITY
from accelviz.tensor_cores.shared_columns import SharedColumnsStrategy
from accelviz.tiles import Tiles
from accelviz.workload import Workload

#: Channels of a fragment, pixels of a tile and floats that pad a pixel's channels.
FRAGMENT_CHANNELS, MOST_PIXELS, PAD = 16, 32, 8
MOST_GROUPS, MOST_WARPS = 4, 8


class StridedWeights(SharedColumnsStrategy):
    """A warp has a tile of filters that share channels, and adds up its products of all pixels.

    Of `arithmetic` see `strided_windows`. Further it takes `groups` (groups of 8 filters of a warp:
    1, 2 or 4), `fragments` (groups of 16 channels of a warp: 1, 2 or 4), `block_warps` (1 to 8) and
    `shares` (blocks that share the pixels), which a rule chooses where they are None.
    """

    operation = SCC_LAST_WEIGHTS
    name = "strided_windows"
    summary = SUMMARY
    worker = "warp"
    parameters: ClassVar = {
        "arithmetic": ARITHMETIC,
        "groups": Parameter(
            None, "groups of 8 filters of a warp", choices=(1, 2, 4), tries=(1, 2, 4)
        ),
        "fragments": Parameter(
            None, "groups of 16 channels of a warp", choices=(1, 2, 4), tries=(1, 2, 4)
        ),
        "block_warps": Parameter(None, "warps of a block", MOST_WARPS, tries=(2, 4, 8)),
        "shares": Parameter(None, "blocks that share the pixels", 1 << 15, tries=(33, 132, 264)),
    }

    def build(
        self,
        graph: Graph,
        n_cols: int,
        *,
        arithmetic: str,
        groups: int | None,
        fragments: int | None,
        block_warps: int | None,
        shares: int | None,
    ) -> Plan:
        """Order the filters by window; give each warp a tile, and each block some of the pixels.

        Raises
        ------
        PartitionError
            If there are 2^31 weights with their zeros or more.
        """
        groups = groups or min(MOST_GROUPS, chosen_groups(graph))
        width = int(np.median(graph.degrees)) if graph.n_rows else 0
        fragments = fragments or next((n for n in (4, 2) if n * FRAGMENT_CHANNELS <= width), 1)
        columns = fragments * FRAGMENT_CHANNELS
        found, seconds = strided(graph, groups, columns)
        tiles = len(found.tiles)
        warps = block_warps or max(1, min(MOST_WARPS, tiles))
        blocks = -(-tiles // warps)
        pixels, shared = _staged(graph.shape)
        shares = shares or max(1, min(SMS * MOST_BLOCKS // max(1, blocks), -(-n_cols // pixels)))
        staged = shared <= SHARED_KIB << 10
        order = found.permutation.inverse if staged else found.permutation.order
        arrays: dict[str, Any] = {
            "windows": found.tiles.block.astype(np.int32),
            "senders": found.senders,
            "positions": found.positions,
            "order": order,
            "n_tiles": np.int32(tiles),
            "n_rows": np.int32(graph.n_rows),
            "n_senders": np.int32(graph.shape[1]),
            "n_cols": np.int32(n_cols),
        }
        kernel = KernelSpec(
            "convolution/strided_weights.cu",
            "strided_weights",
            {
                "GROUPS": groups,
                "FRAGMENTS": fragments,
                "WARPS": warps,
                "PIXELS": pixels,
                "STAGED": int(staged),
                "TERMS": TERMS[arithmetic],
            },
            (*list(arrays)[:4], "X", "dY", "d_values", *list(arrays)[4:]),
            capability=TF32_CAPABILITY,
        )
        launch = LaunchConfig((blocks, shares, 1), warps, shared if staged else 0)
        table = tile_workload(found.walked, found.tiles, warps)

        def slice_workload(start: int, stop: int) -> Workload:
            first, last = np.searchsorted(table.block, (start, stop))
            own = slice(first, last)
            return Workload(*(table[name][own] for name in table.__dataclass_fields__))

        numbered = {name: getattr(found.tiles, name) for name in Tiles.__dataclass_fields__}
        numbered["block"] = np.arange(tiles) // warps
        return Plan(
            graph.pattern,
            (Call(launch, kernel),),
            slice_workload,
            walked=found.walked,
            permutation=found.permutation,
            arrays=arrays,
            arithmetic=arithmetic,
            make_tiles=partial(Tiles, **numbered),
            setup_seconds=seconds,
            parameters={
                "groups": groups,
                "fragments": fragments,
                "block_warps": warps,
                "shares": shares,
            },
        )


def _staged(shape: tuple[int, int]) -> tuple[int, int]:
    """Return the pixels of a tile, and the bytes of both of its maps in shared memory."""
    floats = sum(-(-channels // WARP_SIZE) * WARP_SIZE + PAD for channels in shape)
    pixels = MOST_PIXELS
    while pixels > STEP and 4 * pixels * floats > SM_SHARED // MOST_BLOCKS - BLOCK_SHARED:
        pixels //= 2
    return pixels, 4 * pixels * floats


def tile_workload(walked: Pattern, tiles: Tiles, warps: int) -> Workload:
    """Spell out the rows of each tile, a warp each, by block.

    Returns
    -------
    Workload
        A record for each row that has nonzeros in a tile.
    """
    tile = np.empty(walked.nnz, np.int64)
    tile[tiles.nonzeros] = np.repeat(np.arange(len(tiles)), tiles.counts)
    row = np.repeat(np.arange(walked.n_rows), walked.degrees)
    begins = np.flatnonzero(np.diff(row, prepend=-1) | np.diff(tile, prepend=-1))
    counts = np.diff(np.append(begins, walked.nnz))
    by_tile = np.argsort(tile[begins], kind="stable")
    begins, counts = begins[by_tile], counts[by_tile]
    own = tile[begins]
    return Workload(own // warps, own % warps, row[begins], begins, counts)
