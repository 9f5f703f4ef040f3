"""Ours: filters of equal windows as dense products on tensor cores, channels last."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.arrays import Ints
from accelviz.errors import PartitionError
from accelviz.graph import MAX_SIDE, Graph, Pattern, taken_over
from accelviz.ordering import Permutation, RowDegrees
from accelviz.partition.row_split import row_workload
from accelviz.partition.summary import PartitionSummary
from accelviz.plans import Call, KernelSpec, LaunchConfig, Parameter, Plan, Strategy
from accelviz.plans.arithmetic import TERMS
from accelviz.plans.launch import GRID_LIMITS, WARP_SIZE
from accelviz.store import Stopwatch
from accelviz.strategies.convolution.operation import SCC_LAST
from accelviz.strategies.convolution.windows import prepared_windows
from accelviz.tensor_cores.fragments import TF32_CAPABILITY
from accelviz.tensor_cores.shared_columns import summary_of_degrees
from accelviz.tensor_cores.windows import row_windows, window_tiles
from accelviz.tiles import Tiles

#: Filters of a group and channels of a step, pixels of a fragment: TF32's product.
STEP, FRAGMENT_PIXELS = 8, 16
#: Most shared memory of a block, which leaves room for a second on an SM if there is less of it.
MOST_SHARED, GOOD_SHARED = 200 << 10, 100 << 10
#: Blocks that keep a large GPU busy: two for each of 132 SMs.
GPU_BLOCKS = 264
MOST_WARPS, PACK_THREADS = 8, 256


@dataclass(frozen=True, eq=False)
class Strided:
    """A pattern's filters in the order of their windows, in tiles.

    Attributes
    ----------
    permutation : Permutation
        Filters of equal windows follow each other.
    walked : Pattern
        The pattern in this order.
    tiles : Tiles
        Of a warp's filters by 8 of their distinct channels.
    first_tiles : array of int32, shape (warps' filters + 1,)
        Where the tiles of each begin.
    positions : array of int32, shape (tiles, filters, channels)
        Of each element of a tile its weight in the caller's order; -1 for zero.
    """

    permutation: Permutation
    walked: Pattern
    tiles: Tiles
    first_tiles: Ints
    positions: Ints

    @property
    def senders(self) -> Ints:
        """Channels of each tile; where there is none the first, as the weights are zero."""
        return np.where(self.tiles.senders < 0, self.tiles.senders[:, :1], self.tiles.senders)

    def in_blocks(self, warps: int) -> Tiles:
        """Return the tiles with as many warps' filters a block."""
        own = {name: getattr(self.tiles, name) for name in Tiles.__dataclass_fields__}
        return Tiles(**{**own, "block": self.tiles.block // warps})


def strided(graph: Graph, groups: int, columns: int) -> tuple[Strided, dict[str, float]]:
    """Order the filters by window; cut them into tiles of `groups` times 8 by `columns`; kept.

    Raises
    ------
    PartitionError
        If there are 2^31 elements or more in all tiles.
    """
    windows, seconds = prepared_windows(graph)

    def make(clock: Stopwatch) -> Strided:
        with clock.step("tiles"):
            # Windows that begin side by side share most of their channels.
            first = np.append(windows.channels, 0)[windows.starts[:-1]]
            order = np.lexsort((windows.of_filter, first[windows.of_filter]))
            permutation = Permutation.trusted(taken_over(order.astype(np.int32)))
            walked, nonzeros = permutation.apply_to_pattern(graph.pattern)
            rows = groups * STEP
            found = row_windows(walked, rows)
            tiles = window_tiles(walked, found, columns)
            elements = len(tiles) * rows * columns
            if elements > MAX_SIDE:
                what = f"{elements:,} weights with zeros"
                raise PartitionError("graph", what, f"at most {MAX_SIDE:,}")
            positions = np.full(elements, -1, np.int32)
            tile = np.repeat(np.arange(len(tiles)), tiles.counts)
            positions[tile * rows * columns + tiles.places] = nonzeros[tiles.nonzeros]
            first_tiles = np.append(0, np.cumsum(found.blocks(columns))).astype(np.int32)
            arrays = taken_over(first_tiles), taken_over(positions.reshape(-1, rows, columns))
        return Strided(permutation, walked, tiles, *arrays)

    found, more = graph.store.prepared(f"strided windows of {groups} groups, {columns}", make)
    return found, {**seconds, **more}


@dataclass(frozen=True)
class Shape:
    """How a block is cut: warps by filters and pixels, and what a warp has of each."""

    groups: int
    fragments: int
    filter_warps: int
    pixel_warps: int

    @property
    def filters(self) -> int:
        """Filters of a block."""
        return self.groups * STEP * self.filter_warps

    @property
    def pixels(self) -> int:
        """Pixels of a block."""
        return self.fragments * FRAGMENT_PIXELS * self.pixel_warps

    def shared(self, n_senders: int, *, staged: bool) -> int:
        """Bytes of shared memory: the channels of the pixels, or their results."""
        channels = -(-n_senders // WARP_SIZE) * WARP_SIZE + 4 if staged else 0
        return 4 * self.pixels * max(channels, self.filters + 1)


class StridedWindows(Strategy):
    """Filters of equal windows are a dense product; a block has all those of a tile of pixels.

    With `arithmetic="3xtf32"` every number is the sum of two of TF32, and results are as exact as
    float32's; "tf32" rounds. Further it takes `groups` (groups of 8 filters of a warp: 1, 2, 4 or
    8), `fragments` (groups of 16 pixels of a warp: 1, 2 or 4), `filter_warps` and `pixel_warps`
    (warps of a block, up to 8 and 4), which a rule chooses where they are None.
    """

    operation = SCC_LAST
    name = "strided_windows"
    summary = "our own on tensor cores: filters of equal windows as one product, channels last"
    worker = "warp"
    parameters: ClassVar = {
        "arithmetic": Parameter("3xtf32", "what products are worked out in", choices=tuple(TERMS)),
        "groups": Parameter(
            None, "groups of 8 filters of a warp", choices=(1, 2, 4, 8), tries=(1, 2, 4, 8)
        ),
        "fragments": Parameter(
            None, "groups of 16 pixels of a warp", choices=(1, 2, 4), tries=(1, 2, 4)
        ),
        "filter_warps": Parameter(None, "warps side by side", MOST_WARPS, tries=(1, 2, 4, 8)),
        "pixel_warps": Parameter(None, "warps on other pixels", 4, tries=(1, 2, 4)),
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
    ) -> Plan:
        """Order the filters by window; give each block some, of a tile of pixels.

        Raises
        ------
        PartitionError
            If there are 2^31 weights with their zeros or more.
        """
        shape = chosen(graph, n_cols, groups, fragments, filter_warps, pixel_warps)
        found, seconds = strided(graph, shape.groups, STEP)
        # Element (t + 4 h, g) of B, channels by filters, is that of lane 4 g + t, part h.
        origins = found.positions.reshape(-1, shape.groups, 8, 2, 4).transpose(0, 1, 2, 4, 3)
        origins = origins.ravel()
        n_windows = found.first_tiles.size - 1
        blocks, tiles = -(-n_windows // shape.filter_warps), -(-n_cols // shape.pixels)
        staged = shape.shared(graph.shape[1], staged=True) <= MOST_SHARED
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
            "senders": found.senders,
            "ranks": places[found.permutation.order],
            "outputs": outputs,
            "n_windows": np.int32(n_windows),
            "n_rows": np.int32(graph.n_rows),
            "n_senders": np.int32(graph.shape[1]),
            "n_cols": np.int32(n_cols),
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
                "STAGED": int(staged),
                "VECTOR": 4 if graph.shape[1] % 4 == 0 else 1,
                "TERMS": TERMS[arithmetic],
            },
            (*list(arrays)[:4], "packed", "X", "Y", *list(arrays)[4:]),
            capability=TF32_CAPABILITY,
        )
        grid = (blocks, min(tiles, GRID_LIMITS[1]), -(-tiles // GRID_LIMITS[1]))
        warps = shape.filter_warps * shape.pixel_warps
        shared = shape.shared(graph.shape[1], staged=staged)
        packers = LaunchConfig((-(-origins.size // PACK_THREADS), 1, 1), PACK_THREADS // WARP_SIZE)
        return Plan(
            graph.pattern,
            (Call(packers, pack), Call(LaunchConfig(grid, warps, shared), kernel)),
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
            tiles=found.in_blocks(shape.filter_warps),
            setup_seconds=seconds,
            parameters={
                "groups": shape.groups,
                "fragments": shape.fragments,
                "filter_warps": shape.filter_warps,
                "pixel_warps": shape.pixel_warps,
            },
        )

    def summarize(
        self, rows: RowDegrees, n_cols: int, **parameters: object
    ) -> PartitionSummary | None:
        """Leave it to the workload: a rule needs the windows."""
        return summary_of_degrees(rows)


def chosen_groups(graph: Graph) -> int:
    """Return how many groups of 8 filters have the same window, 1, 2, 4 or 8."""
    each = graph.n_rows // max(1, len(prepared_windows(graph)[0]))
    return next((n for n in (8, 4, 2) if n * STEP <= each), 1)


def chosen(
    graph: Graph,
    n_cols: int,
    groups: int | None = None,
    fragments: int | None = None,
    filter_warps: int | None = None,
    pixel_warps: int | None = None,
) -> Shape:
    """Choose how blocks are cut, where it is not given.

    As many filters a warp as have the same window; as many pixels a block as leave a block for
    every SM, and room for two of them.
    """
    groups = groups or chosen_groups(graph)
    wide = -(-graph.n_rows // (groups * STEP))
    side = filter_warps or max(1, min(MOST_WARPS, wide))
    deep = pixel_warps or max(1, min(4, MOST_WARPS // side))
    found = Shape(groups, fragments or (2 if groups == 8 else 4), side, deep)
    while True:
        blocks = -(-wide // found.filter_warps) * -(-n_cols // found.pixels)
        shared = found.shared(graph.shape[1], staged=True)
        if blocks >= GPU_BLOCKS and shared <= GOOD_SHARED:
            break
        if not fragments and found.fragments > 1:
            found = Shape(groups, found.fragments // 2, found.filter_warps, found.pixel_warps)
        elif not pixel_warps and found.pixel_warps > 1:
            found = Shape(groups, found.fragments, found.filter_warps, found.pixel_warps // 2)
        elif not filter_warps and found.filter_warps > 2 and blocks < GPU_BLOCKS:
            found = Shape(groups, found.fragments, -(-found.filter_warps // 2), found.pixel_warps)
        else:
            break
    return found
