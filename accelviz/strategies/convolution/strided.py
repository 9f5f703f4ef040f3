"""Ours: filters of equal windows as dense products on tensor cores, channels last."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.partition.row_split import row_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Parameter, Plan
from accelviz.plans.arithmetic import TERMS
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.convolution.operation import SCC_LAST
from accelviz.strategies.convolution.strided_tiles import (
    ARITHMETIC,
    SMS,
    STEP,
    SUMMARY,
    blocks_at_once,
    chosen,
    chunked,
    shared_bytes,
)
from accelviz.tensor_cores.fragments import TF32_CAPABILITY
from accelviz.tensor_cores.shared_columns import SharedColumnsStrategy

PACK_THREADS = 256
#: Pixels of a tile by channels are counted in 32 bits.
MOST_CHANNELS = 1 << 22


class StridedWindows(SharedColumnsStrategy):
    """A dense product of pixels by channels and filters, without what no filter reads.

    With `arithmetic="3xtf32"` every number is the sum of two of TF32, and results are as exact as
    float32's; "tf32" rounds. Further it takes `groups` (groups of 8 filters of a warp: 1, 2, 4 or
    8), `fragments` (groups of 16 pixels of a warp: 1, 2 or 4), `filter_warps` and `pixel_warps`
    (warps of a block, up to 4 and 8) and `stages` (chunks of 32 channels on chip: 2, 3 or 4), which
    a rule chooses where they are None.
    """

    operation = SCC_LAST
    name = "strided_windows"
    summary = SUMMARY
    worker = "warp"
    parameters: ClassVar = {
        "arithmetic": ARITHMETIC,
        "groups": Parameter(
            None, "groups of 8 filters of a warp", choices=(1, 2, 4, 8), tries=(1, 2, 4, 8)
        ),
        "fragments": Parameter(
            None, "groups of 16 pixels of a warp", choices=(1, 2, 4), tries=(1, 2, 4)
        ),
        "filter_warps": Parameter(None, "warps side by side", 4, tries=(1, 2, 4)),
        "pixel_warps": Parameter(None, "warps on other pixels", 8, tries=(1, 2, 4)),
        "stages": Parameter(None, "chunks on chip", choices=(2, 3, 4), tries=(2, 3, 4)),
    }

    def build(
        self,
        graph: Graph,
        n_cols: int,
        *,
        arithmetic: str,
        groups: int | None,
        fragments: int | None,
        filter_warps: int | None,
        pixel_warps: int | None,
        stages: int | None,
    ) -> Plan:
        """Order the filters by window; give each block some, of a tile of pixels.

        Raises
        ------
        PartitionError
            If there are 2^31 weights with their zeros or more, or 2^22 channels or more, or what is
            given needs more shared memory than a block has.
        """
        if graph.shape[1] >= MOST_CHANNELS:
            what = f"{graph.shape[1]:,} channels"
            raise PartitionError("graph", what, f"fewer than {MOST_CHANNELS:,}")
        cut = {"groups": groups, "fragments": fragments, "filter_warps": filter_warps}
        shape = chosen(graph, n_cols, {**cut, "pixel_warps": pixel_warps, "stages": stages})
        found, seconds = chunked(graph, shape.groups, shape.filter_warps)
        shared = shared_bytes(found, shape)
        at_once = blocks_at_once(found, shape, TERMS[arithmetic])
        slabs, tiles = -(-graph.n_rows // shape.filters), -(-n_cols // shape.pixels)
        shares = min(tiles, max(1, SMS * at_once // max(1, slabs)))
        packing: dict[str, Any] = {
            "origins": found.origins,
            "n_packed": np.int32(found.origins.size),
        }
        arrays: dict[str, Any] = {
            "first_chunks": found.first_chunks,
            "chunks": found.chunks,
            "masks": found.masks,
            "n_rows": np.int32(graph.n_rows),
            "n_senders": np.int32(graph.shape[1]),
            "n_cols": np.int32(n_cols),
            "stage_floats": np.int32(shared // 4 // shape.stages),
        }
        pack = KernelSpec(
            "convolution/pack_weights.cu",
            "pack_weights",
            {"BLOCK_THREADS": PACK_THREADS},
            ("origins", "values", "packed", "n_packed"),
        )
        kernel = KernelSpec(
            "convolution/strided_windows.cu",
            "strided_windows",
            {
                "GROUPS": shape.groups,
                "FRAGMENTS": shape.fragments,
                "FILTER_WARPS": shape.filter_warps,
                "PIXEL_WARPS": shape.pixel_warps,
                "STAGES": shape.stages,
                "VECTOR": 4 if graph.shape[1] % 4 == 0 else 1,
                "WRITTEN": math.gcd(graph.n_rows, 4, 2 * shape.groups),
                "AT_ONCE": at_once,
                "TERMS": TERMS[arithmetic],
            },
            (*list(arrays)[:3], "packed", "X", "Y", *list(arrays)[3:]),
            capability=TF32_CAPABILITY,
        )
        launch = LaunchConfig((slabs, shares, 1), shape.warps, shared)
        packed = found.origins.size
        packers = LaunchConfig((-(-packed // PACK_THREADS), 1, 1), PACK_THREADS // WARP_SIZE)
        return Plan(
            graph.pattern,
            (Call(packers, pack), Call(launch, kernel)),
            partial(
                row_workload, found.walked.row_pointers, shape.groups * STEP, shape.filter_warps
            ),
            walked=found.walked,
            permutation=found.permutation,
            arrays=packing | arrays,
            workspace={"packed": (packed, np.float32)},
            main=1,
            clears=(),
            workers_per_block=shape.filter_warps,
            arithmetic=arithmetic,
            make_tiles=lambda: found.tiles,
            setup_seconds=seconds,
            parameters=asdict(shape),
        )
