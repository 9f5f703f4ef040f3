"""`strided_windows`, our own convolution: filters with equal windows as dense tensor-core products.

Feature maps have channels last. A block computes some filters at tiles of pixels. `strided_tiles`
defines pieces, chunks and steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.partition.row_split import row_workload
from accelviz.plans.arithmetic import TF32_PRODUCTS
from accelviz.plans.fragments import TF32_CAPABILITY
from accelviz.plans.gpu import RESERVED_SHARED_BYTES, SM_REGISTERS, SM_SHARED_BYTES, SMS
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Widths
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.convolution.operation import SCC_LAST
from accelviz.strategies.convolution.strided_tiles import (
    ARITHMETIC,
    ARITHMETICS,
    CHUNK,
    MOST_SHARED,
    STEP,
    SUMMARY,
    Chunks,
    chunked,
)
from accelviz.strategies.windows import WindowStrategy

#: Pixels and warps of a warpgroup; the architecture with its instruction.
GROUP_PIXELS, GROUP_WARPS, GROUP_ARCH = 64, 4, "sm_90a"
#: Registers of a thread without its sums, by the number of TF32 products per product.
REGISTERS = {1: 72, 3: 104}
#: Most filters of a piece; number of blocks that suffices for SMS.
MOST_PIECE, ENOUGH_BLOCKS = 128, 120
PACK_THREADS = 256
#: Limit of the kernel's 32-bit index of a tile's pixels times channels.
MOST_CHANNELS = 1 << 22
#: Settings that are constants of the kernel.
CONSTANTS = ("pieces", "piece", "warpgroups", "stages")


class StridedSettings(Settings):
    """Shape of a block: pieces of filters, warpgroups of pixels, and stages of shared memory."""

    arithmetic: str = setting(*ARITHMETIC, choices=ARITHMETICS)
    pieces: int = setting(None, "pieces of filters per block", choices=(1, 2, 4))
    piece: int = setting(None, "filters per piece", choices=(16, 32, 64, 128))
    warpgroups: int = setting(None, "groups of four warps, 64 pixels each", choices=(1, 2))
    stages: int = setting(None, "chunks in shared memory", choices=(3, 4, 5, 6))
    shared: int = setting(
        MOST_SHARED, "KiB of shared memory per block", choices=(99, 163, MOST_SHARED)
    )

    @property
    def filters(self) -> int:
        """Filters of a block, once all settings are resolved."""
        return self.pieces * self.piece

    @property
    def pixels(self) -> int:
        """Pixels of a tile, once all settings are resolved."""
        return self.warpgroups * GROUP_PIXELS


@dataclass(frozen=True)
class BlockShape:
    """Resolved settings, and the pattern's products for blocks of this shape.

    Attributes
    ----------
    settings : StridedSettings
        Settings without None.
    chunks : Chunks
    seconds : dict of str to float
        Seconds of the preprocessing, by step.
    stage_bytes : int
        Shared memory of one chunk: its pixels and weights.
    at_once : int
        Resident blocks per SM.
    """

    settings: StridedSettings
    chunks: Chunks
    seconds: dict[str, float]
    stage_bytes: int
    at_once: int


def _block_shape(
    graph: Graph, n_cols: int, settings: StridedSettings, filters: int, warpgroups: int
) -> BlockShape:
    """Choose the settings that are None, for blocks of about `filters` filters."""
    if settings.pieces:
        tries = [settings.pieces]
    elif settings.piece:
        tries = [max(1, min(4, filters // settings.piece))]
    else:
        tries = [-(-filters // MOST_PIECE), *([4] if filters > 64 else [])]
    candidates = []
    for pieces in tries:
        piece = settings.piece or max(16, min(MOST_PIECE, filters // pieces))
        candidates.append((pieces, piece, *chunked(graph, pieces, piece)))
    pieces, piece, chunks, seconds = min(candidates, key=lambda shape: shape[2].origins.size)
    resolved = settings.filled(pieces=pieces, piece=piece, warpgroups=warpgroups)
    terms = TF32_PRODUCTS[settings.arithmetic]
    pixel_bytes, product_bytes = 4 * CHUNK * resolved.pixels, 4 * STEP * piece
    stage_bytes = pixel_bytes + (2 if terms == 3 else 1) * product_bytes * chunks.most
    threads = WARP_SIZE * GROUP_WARPS * resolved.warpgroups
    registers = REGISTERS[terms] + resolved.filters // 2
    block_shared = 4 * stage_bytes + RESERVED_SHARED_BYTES
    resident = min(SM_REGISTERS // (threads * registers), SM_SHARED_BYTES // block_shared)
    tiles = -(-graph.n_rows // resolved.filters) * -(-n_cols // resolved.pixels)
    at_once = max(1, min(resident, -(-tiles // SMS)))
    stages = max(3, min(6, (settings.shared << 10) // stage_bytes)) if at_once == 1 else 4
    return BlockShape(resolved.filled(stages=stages), chunks, seconds, stage_bytes, at_once)


def choose_shape(graph: Graph, n_cols: int, settings: StridedSettings) -> BlockShape:
    """Choose the settings that are None by a rule from measurements on one H200.

    A block has as many filters as possible, so that pixels are read few times. If there are too few
    blocks for every SM, blocks have fewer pixels, and then fewer filters. Filters are divided into
    four pieces if that skips more products than the largest pieces. A block that is alone on its SM
    has more stages.

    Raises
    ------
    PartitionError
        As `chunked`, or if the given settings need more shared memory than `shared`.
    """
    most_bytes = settings.shared << 10
    most_filters = next((n for n in (256, 128) if 2 * graph.n_rows > n), 64)
    for filters, warpgroups in ((256, 2), (256, 1), (128, 2), (128, 1), (64, 1)):
        if filters > most_filters:
            continue
        shape = _block_shape(graph, n_cols, settings, filters, warpgroups)
        blocks = -(-graph.n_rows // filters) * -(-n_cols // (GROUP_PIXELS * warpgroups))
        if blocks >= ENOUGH_BLOCKS and 4 * shape.stage_bytes <= most_bytes:
            break
    shared_bytes = shape.settings.stages * shape.stage_bytes
    if shared_bytes > most_bytes:
        problem = f"{shared_bytes >> 10} KiB of shared memory"
        expected = f"fewer, which take at most {most_bytes >> 10} KiB"
        raise PartitionError("stages, pieces, piece, warpgroups", problem, expected)
    return shape


class StridedWindows(WindowStrategy):
    """A dense product of pixels x channels and filters that skips steps that no filter reads.

    With `arithmetic="3xtf32"` a number is the sum of two TF32 numbers, and results are as accurate
    as in float32; "tf32" rounds inputs. The most shared memory per block (`shared`) is 227 KiB on
    Hopper, 163 on an A100 and 99 on most other GPUs.
    """

    operation = SCC_LAST
    name = "strided_windows"
    summary = SUMMARY
    worker = "block"
    Settings = StridedSettings

    def build(self, graph: Graph, widths: Widths, settings: StridedSettings) -> Plan:
        """Divide the filters into blocks and pieces, and assign tiles of pixels to blocks.

        Raises
        ------
        PartitionError
            If there are 2^31 weights or more, zeros in products included, or 2^22 channels or more,
            or the given settings need more shared memory than `shared`.
        """
        (n_rows, n_channels), n_cols = graph.shape, widths["n_cols"]
        if n_channels >= MOST_CHANNELS:
            expected = f"fewer than {MOST_CHANNELS:,}"
            raise PartitionError("graph", f"{n_channels:,} channels", expected)
        shape = choose_shape(graph, n_cols, settings)
        settings, chunks, terms = shape.settings, shape.chunks, TF32_PRODUCTS[settings.arithmetic]
        blocks, tiles = -(-n_rows // settings.filters), -(-n_cols // settings.pixels)
        shares = min(tiles, max(1, SMS * shape.at_once // max(1, blocks)))
        n_packed = chunks.origins.size
        chunk_arrays = {"first_chunks": chunks.first_chunks, "chunks": chunks.chunks}
        numbers = {
            "n_rows": n_rows,
            "n_channels": n_channels,
            "n_cols": n_cols,
            "stage_floats": shape.stage_bytes // 4,
        }
        pack = KernelSpec(
            "convolution/pack_weights.cu",
            "pack_weights",
            {
                "block_threads": PACK_THREADS,
                "product_floats": settings.piece * STEP,
                "terms": terms,
            },
            ("origins", "values", "packed", "n_packed"),
            capability=TF32_CAPABILITY,
        )
        kernel = KernelSpec(
            "convolution/strided_windows.cu",
            "strided_windows",
            {
                **{name: getattr(settings, name) for name in CONSTANTS},
                **{f"mask_{i}": mask for i, mask in enumerate(chunks.masks)},
                "turns": chunks.turns,
                "vector": 4 if n_channels % 4 == 0 else 1,
                "written": math.gcd(n_rows, 4),
                "at_once": shape.at_once,
                "terms": terms,
            },
            (*chunk_arrays, "packed", "X", "Y", *numbers),
            capability=TF32_CAPABILITY,
            arch=GROUP_ARCH,
            portable=True,
        )
        shared_bytes = settings.stages * shape.stage_bytes
        launch = LaunchConfig((blocks, shares, 1), settings.warpgroups * GROUP_WARPS, shared_bytes)
        pack_launch = LaunchConfig((-(-n_packed // PACK_THREADS), 1, 1), PACK_THREADS // WARP_SIZE)
        arrays: dict[str, Any] = {"origins": chunks.origins, **chunk_arrays}
        for name, number in {"n_packed": n_packed, **numbers}.items():
            arrays[name] = np.int32(number)
        return Plan(
            Layout(
                graph.pattern,
                partial(row_workload, chunks.walked.row_pointers, settings.filters, 1),
                chunks.walked,
                chunks.permutation,
                workers_per_block=1,
                make_tiles=partial(getattr, chunks, "tiles"),
                main=1,
            ),
            (Call(pack_launch, pack), Call(launch, kernel)),
            Buffers(
                arrays,
                workspace={"packed": ((2 if terms == 3 else 1) * n_packed, np.float32)},
                zero_outputs=(),
                arithmetic=settings.arithmetic,
            ),
            Provenance(self, graph.values, widths, settings, shape.seconds),
        )
