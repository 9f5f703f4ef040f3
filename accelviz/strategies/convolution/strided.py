"""Ours: filters of equal windows as dense products on tensor cores, channels last."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.partition.row_split import row_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Parameter, Plan
from accelviz.plans.arithmetic import TERMS
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.convolution.operation import SCC_LAST
from accelviz.strategies.convolution.strided_tiles import (
    ARITHMETIC,
    SHARED_KIB,
    STEP,
    SUMMARY,
    blocks_of,
    chosen,
    shared_bytes,
    slabs,
    stride_of,
    strided,
    vector_of,
)
from accelviz.tensor_cores.fragments import TF32_CAPABILITY
from accelviz.tensor_cores.shared_columns import SharedColumnsStrategy

PACK_THREADS = 256


class StridedWindows(SharedColumnsStrategy):
    """Filters of equal windows are a dense product; a block has all those of a tile of pixels.

    With `arithmetic="3xtf32"` every number is the sum of two of TF32, and results are as exact as
    float32's; "tf32" rounds. Further it takes `groups` (groups of 8 filters of a warp: 1, 2, 4 or
    8), `fragments` (groups of 16 pixels of a warp: 1, 2 or 4), `filter_warps` and `pixel_warps`
    (warps of a block, up to 8 and 4), which a rule chooses where they are None, and `shared_kib`
    (most shared memory of a block: 99 KiB fit every GPU, 163 an A100, 227 an H200).
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
        "filter_warps": Parameter(None, "warps side by side", 8, tries=(1, 2, 4, 8)),
        "pixel_warps": Parameter(None, "warps on other pixels", 4, tries=(1, 2, 4)),
        "shared_kib": Parameter(
            SHARED_KIB, "most shared memory of a block, KiB", 227, tries=(99, 163, 227)
        ),
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
        shared_kib: int,
    ) -> Plan:
        """Order the filters by window; give each block some, of a tile of pixels.

        Raises
        ------
        PartitionError
            If there are 2^31 weights with their zeros or more, or what is given needs more shared
            memory than a block has.
        """
        given = groups, fragments, filter_warps, pixel_warps
        shape = chosen(graph, n_cols, TERMS[arithmetic], *given, shared_kib)
        found, seconds = strided(graph, shape.groups, STEP)
        # Element (t + 4 h, g) of B, channels by filters, is that of lane 4 g + t, part h.
        origins = found.positions.reshape(-1, shape.groups, 8, 2, 4).transpose(0, 1, 2, 4, 3)
        origins = origins.ravel()
        own = slabs(graph, shape.groups, shape.filter_warps)
        stride = stride_of(graph, own)
        slab = np.arange(graph.n_rows) // shape.filters
        outputs = found.permutation.order[np.lexsort((found.permutation.order, slab))]
        places = np.empty(graph.n_rows, np.int32)
        places[outputs] = np.arange(graph.n_rows) % shape.filters
        packing: dict[str, Any] = {
            "origins": origins,
            "n_packed": np.int32(origins.size),
        }
        arrays: dict[str, Any] = {
            "first_steps": found.first_tiles,
            "columns": own.columns if shape.staged else found.senders,
            "copy_pointers": own.copy_pointers,
            "copies": own.copies,
            "ranks": places[found.permutation.order],
            "outputs": outputs,
            "n_windows": np.int32(found.first_tiles.size - 1),
            "n_rows": np.int32(graph.n_rows),
            "n_senders": np.int32(graph.shape[1]),
            "n_cols": np.int32(n_cols),
            "stride": np.int32(stride),
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
                "RESIDENT": int(shape.resident),
                "STAGED": int(shape.staged),
                "VECTOR": vector_of(graph),
                "TERMS": TERMS[arithmetic],
            },
            (*list(arrays)[:6], "packed", "X", "Y", *list(arrays)[6:]),
            capability=TF32_CAPABILITY,
        )
        launch = LaunchConfig(
            (*blocks_of(graph, n_cols, shape), 1),
            shape.filter_warps * shape.pixel_warps,
            shared_bytes(graph, shape),
        )
        packers = LaunchConfig((-(-origins.size // PACK_THREADS), 1, 1), PACK_THREADS // WARP_SIZE)
        return Plan(
            graph.pattern,
            (Call(packers, pack), Call(launch, kernel)),
            partial(
                row_workload, found.walked.row_pointers, shape.groups * STEP, shape.filter_warps
            ),
            walked=found.walked,
            permutation=found.permutation,
            arrays=packing | arrays,
            workspace={"packed": (origins.size, np.float32)},
            main=1,
            clears=(),
            workers_per_block=shape.filter_warps,
            arithmetic=arithmetic,
            make_tiles=partial(found.in_blocks, shape.filter_warps),
            setup_seconds=seconds,
            parameters={
                "groups": shape.groups,
                "fragments": shape.fragments,
                "filter_warps": shape.filter_warps,
                "pixel_warps": shape.pixel_warps,
            },
        )
