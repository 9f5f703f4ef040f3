"""Ours: filters of equal windows as dense products on tensor cores, channels last."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.partition.row_split import row_workload
from accelviz.plans.arithmetic import TERMS
from accelviz.plans.fragments import TF32_CAPABILITY
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Widths
from accelviz.strategies.convolution.operation import SCC_LAST
from accelviz.strategies.convolution.strided_tiles import (
    GROUP_ARCH,
    GROUP_WARPS,
    SMS,
    STEP,
    SUMMARY,
    StridedSettings,
    chosen,
)
from accelviz.strategies.windows import WindowStrategy

PACK_THREADS = 256
#: Pixels of a tile by channels are counted in 32 bits.
MOST_CHANNELS = 1 << 22


class StridedWindows(WindowStrategy):
    """A dense product of pixels by channels and filters, without what no filter reads.

    With `arithmetic="3xtf32"` every number is the sum of two of TF32, and results are as exact as
    float32's; "tf32" rounds. It stays within `shared`: Hopper grants a block 227 KiB, an A100 163,
    most other GPUs 99.
    """

    operation = SCC_LAST
    name = "strided_windows"
    summary = SUMMARY
    worker = "block"
    Settings = StridedSettings

    def build(self, graph: Graph, widths: Widths, settings: StridedSettings) -> Plan:
        """Order the filters by window; give each block some, of a tile of pixels.

        Raises
        ------
        PartitionError
            If there are 2^31 weights with their zeros or more, or 2^22 channels or more, or what is
            given needs more shared memory than a block has.
        """
        n_cols = widths["n_cols"]
        if graph.shape[1] >= MOST_CHANNELS:
            problem = f"{graph.shape[1]:,} channels"
            raise PartitionError("graph", problem, f"fewer than {MOST_CHANNELS:,}")
        terms = TERMS[settings.arithmetic]
        cut = chosen(graph, n_cols, settings)
        shape, chunked = cut.shape, cut.chunks
        blocks, tiles = -(-graph.n_rows // shape.filters), -(-n_cols // shape.pixels)
        shares = min(tiles, max(1, SMS * cut.at_once // max(1, blocks)))
        n_packed = chunked.origins.size
        packing: dict[str, Any] = {"origins": chunked.origins, "n_packed": np.int32(n_packed)}
        arrays: dict[str, Any] = {
            "first_chunks": chunked.first_chunks,
            "chunks": chunked.chunks,
            "n_rows": np.int32(graph.n_rows),
            "n_senders": np.int32(graph.shape[1]),
            "n_cols": np.int32(n_cols),
            "stage_floats": np.int32(cut.stage_bytes // 4),
        }
        pack = KernelSpec(
            "convolution/pack_weights.cu",
            "pack_weights",
            {"block_threads": PACK_THREADS, "product_floats": shape.piece * STEP, "terms": terms},
            ("origins", "values", "packed", "n_packed"),
        )
        kernel = KernelSpec(
            "convolution/strided_windows.cu",
            "strided_windows",
            {
                **asdict(shape),
                **{f"mask_{i}": mask for i, mask in enumerate(chunked.masks)},
                "turns": chunked.turns,
                "vector": 4 if graph.shape[1] % 4 == 0 else 1,
                "written": math.gcd(graph.n_rows, 4),
                "at_once": cut.at_once,
                "terms": terms,
            },
            (*list(arrays)[:2], "packed", "X", "Y", *list(arrays)[2:]),
            capability=TF32_CAPABILITY,
            arch=GROUP_ARCH,
            portable=True,
        )
        on_chip = shape.stages * cut.stage_bytes
        launch = LaunchConfig((blocks, shares, 1), shape.warpgroups * GROUP_WARPS, on_chip)
        packers = LaunchConfig((-(-n_packed // PACK_THREADS), 1, 1), PACK_THREADS // WARP_SIZE)
        return Plan(
            Layout(
                graph.pattern,
                partial(row_workload, chunked.walked.row_pointers, shape.filters, 1),
                chunked.walked,
                chunked.permutation,
                workers_per_block=1,
                make_tiles=lambda: chunked.tiles,
                main=1,
            ),
            (Call(packers, pack), Call(launch, kernel)),
            Buffers(
                packing | arrays,
                workspace={"packed": ((2 if terms == 3 else 1) * n_packed, np.float32)},
                zero_outputs=(),
                arithmetic=settings.arithmetic,
            ),
            Provenance(self, graph.values, widths, settings.filled(**asdict(shape)), cut.seconds),
        )
