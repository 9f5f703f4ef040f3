"""Ours: filters of equal windows as dense products on tensor cores, channels last."""

from __future__ import annotations

import math
from dataclasses import dataclass
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
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.convolution.operation import SCC_LAST
from accelviz.strategies.convolution.strided_tiles import (
    ARITHMETIC,
    ARITHMETICS,
    BLOCK_SHARED,
    CHUNK,
    MOST_SHARED,
    SM_REGISTERS,
    SM_SHARED,
    SMS,
    STEP,
    SUMMARY,
    Chunks,
    chunked,
)
from accelviz.strategies.windows import WindowStrategy

#: Pixels and warps of a warpgroup, and the architecture that has an instruction for its products.
GROUP_PIXELS, GROUP_WARPS, GROUP_ARCH = 64, 4, "sm_90a"
#: Registers of a thread but for sums, by the products of TF32 that one product takes.
REGISTERS = {1: 72, 3: 104}
#: Most filters of a piece; blocks that are enough for SMS, nearly.
MOST_PIECE, ENOUGH_BLOCKS = 128, 120
PACK_THREADS = 256
#: Pixels of a tile by channels are counted in 32 bits.
MOST_CHANNELS = 1 << 22
#: The settings that say how a block is cut.
CUT = ("pieces", "piece", "warpgroups", "stages")


class StridedSettings(Settings):
    """How a block is cut: pieces of filters, warpgroups by pixels, and chunks on chip."""

    arithmetic: str = setting(*ARITHMETIC, choices=ARITHMETICS)
    pieces: int = setting(None, "pieces that filters are dealt into", choices=(1, 2, 4))
    piece: int = setting(None, "filters of a piece", choices=(16, 32, 64, 128))
    warpgroups: int = setting(None, "warps by four, of 64 pixels", choices=(1, 2))
    stages: int = setting(None, "chunks on chip", choices=(3, 4, 5, 6))
    shared: int = setting(
        MOST_SHARED, "KiB of shared memory of a block", choices=(99, 163, MOST_SHARED)
    )

    @property
    def filters(self) -> int:
        """Filters of a block, once all is chosen."""
        return self.pieces * self.piece

    @property
    def pixels(self) -> int:
        """Pixels of a tile, once all is chosen."""
        return self.warpgroups * GROUP_PIXELS


@dataclass(frozen=True)
class Cut:
    """A pattern in blocks, with the seconds that dealing took.

    Attributes
    ----------
    settings : StridedSettings
        With the values that were chosen.
    stage_bytes : int
        Shared memory of a chunk: its pixels and weights.
    at_once : int
        Blocks that an SM is to have room for.
    """

    settings: StridedSettings
    chunks: Chunks
    seconds: dict[str, float]
    stage_bytes: int
    at_once: int


def _cut(
    graph: Graph, n_cols: int, settings: StridedSettings, filters: int, warpgroups: int
) -> Cut:
    """Choose what settings leave open for blocks of about so many filters."""
    if settings.pieces:
        tries = [settings.pieces]
    elif settings.piece:
        tries = [max(1, min(4, filters // settings.piece))]
    else:
        tries = [-(-filters // MOST_PIECE), *([4] if filters > 64 else [])]
    deals = []
    for pieces in tries:
        size = settings.piece or max(16, min(MOST_PIECE, filters // pieces))
        deals.append((pieces, size, *chunked(graph, pieces, size)))
    pieces, piece, chunks, seconds = min(deals, key=lambda deal: deal[2].origins.size)
    cut = settings.filled(pieces=pieces, piece=piece, warpgroups=warpgroups)
    terms = TERMS[settings.arithmetic]
    stage = 4 * CHUNK * cut.pixels + 4 * STEP * (2 if terms == 3 else 1) * piece * chunks.most
    threads = WARP_SIZE * GROUP_WARPS * cut.warpgroups
    registers = REGISTERS[terms] + cut.filters // 2
    room = min(SM_REGISTERS // (threads * registers), SM_SHARED // (4 * stage + BLOCK_SHARED))
    tiles = -(-graph.n_rows // cut.filters) * -(-n_cols // cut.pixels)
    at_once = max(1, min(room, -(-tiles // SMS)))
    stages = max(3, min(6, (settings.shared << 10) // stage)) if at_once == 1 else 4
    return Cut(cut.filled(stages=stages), chunks, seconds, stage, at_once)


def chosen(graph: Graph, n_cols: int, settings: StridedSettings) -> Cut:
    """Choose what settings leave open, from what was recorded on one H200.

    A block has as many filters as it can hold, so that it reads pixels once, or few times. Where
    there are not blocks enough for every SM, they have fewer pixels, and then fewer filters. It
    deals them into four pieces where that leaves out more than pieces as large as can be. A block
    that has an SM for itself has more chunks on chip.

    Raises
    ------
    PartitionError
        As `chunked`, or if what is given needs more shared memory.
    """
    granted = settings.shared << 10
    widest = next((n for n in (256, 128) if 2 * graph.n_rows > n), 64)
    for filters, warpgroups in ((256, 2), (256, 1), (128, 2), (128, 1), (64, 1)):
        if filters > widest:
            continue
        best = _cut(graph, n_cols, settings, filters, warpgroups)
        blocks = -(-graph.n_rows // filters) * -(-n_cols // (GROUP_PIXELS * warpgroups))
        if blocks >= ENOUGH_BLOCKS and 4 * best.stage_bytes <= granted:
            break
    taken = best.settings.stages * best.stage_bytes
    if taken > granted:
        problem = f"{taken >> 10} KiB of shared memory"
        expected = f"fewer, which take at most {granted >> 10} KiB"
        raise PartitionError("stages, pieces, piece, warpgroups", problem, expected)
    return best


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
        (n_rows, n_channels), n_cols = graph.shape, widths["n_cols"]
        if n_channels >= MOST_CHANNELS:
            expected = f"fewer than {MOST_CHANNELS:,}"
            raise PartitionError("graph", f"{n_channels:,} channels", expected)
        cut = chosen(graph, n_cols, settings)
        settings, chunks, terms = cut.settings, cut.chunks, TERMS[settings.arithmetic]
        blocks, tiles = -(-n_rows // settings.filters), -(-n_cols // settings.pixels)
        shares = min(tiles, max(1, SMS * cut.at_once // max(1, blocks)))
        n_packed = chunks.origins.size
        walk = {"first_chunks": chunks.first_chunks, "chunks": chunks.chunks}
        numbers = {
            "n_rows": n_rows,
            "n_channels": n_channels,
            "n_cols": n_cols,
            "stage_floats": cut.stage_bytes // 4,
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
                **{name: getattr(settings, name) for name in CUT},
                **{f"mask_{i}": mask for i, mask in enumerate(chunks.masks)},
                "turns": chunks.turns,
                "vector": 4 if n_channels % 4 == 0 else 1,
                "written": math.gcd(n_rows, 4),
                "at_once": cut.at_once,
                "terms": terms,
            },
            (*walk, "packed", "X", "Y", *numbers),
            capability=TF32_CAPABILITY,
            arch=GROUP_ARCH,
            portable=True,
        )
        on_chip = settings.stages * cut.stage_bytes
        launch = LaunchConfig((blocks, shares, 1), settings.warpgroups * GROUP_WARPS, on_chip)
        packers = LaunchConfig((-(-n_packed // PACK_THREADS), 1, 1), PACK_THREADS // WARP_SIZE)
        arrays: dict[str, Any] = {"origins": chunks.origins, **walk}
        for name, number in {"n_packed": n_packed, **numbers}.items():
            arrays[name] = np.int32(number)
        return Plan(
            Layout(
                graph.pattern,
                partial(row_workload, chunks.walked.row_pointers, settings.filters, 1),
                chunks.walked,
                chunks.permutation,
                workers_per_block=1,
                make_tiles=lambda: chunks.tiles,
                main=1,
            ),
            (Call(packers, pack), Call(launch, kernel)),
            Buffers(
                arrays,
                workspace={"packed": ((2 if terms == 3 else 1) * n_packed, np.float32)},
                zero_outputs=(),
                arithmetic=settings.arithmetic,
            ),
            Provenance(self, graph.values, widths, settings, cut.seconds),
        )
