"""What strategies of every operation share: sizes of blocks, and rows dealt out as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.row_split import RowSplit, row_workload
from accelviz.plans import Description, LaneColumns, Settings, Strategy, Widths, setting
from accelviz.plans.launch import MOST_BLOCK_WARPS, WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance
from accelviz.store import Stopwatch

#: Lanes that may have something together.
POWERS = (1, 2, 4, 8, 16, 32)
_MORE = "of a block; more: fewer blocks, and more of them wait for the slowest"


def block_warps_of(default: int | None, *more: int) -> Any:
    """Declare the setting `block_warps`, warps of a block; `more` is tried beside 1 to 8."""
    return setting(default, f"warps {_MORE}", MOST_BLOCK_WARPS, tries=(1, 2, 4, 8, *more))


def block_threads_of(default: int, *tries: int) -> Any:
    """Declare the setting `block_threads` or `block_size`, threads of a block in whole warps."""
    most = MOST_BLOCK_WARPS * WARP_SIZE
    return setting(default, f"threads {_MORE}", most, step=WARP_SIZE, tries=tries)


class BlockWarps(Settings):
    """`block_warps` (warps of a block, 1 to 32)."""

    block_warps: int = block_warps_of(4, 16)


class RowStrategy(Strategy):
    """Consecutive rows to consecutive warps: no preprocessing, no metadata.

    Attributes
    ----------
    file, entry : str
        The kernel's path in `kernels/` and its function, of the file's name if not given.
    arrays : tuple of str
        What the kernel takes of the matrix that it walks.
    rows_per_warp : int
    """

    Settings = BlockWarps
    file: ClassVar[str]
    entry: str = ""
    arrays: ClassVar[tuple[str, ...]] = ("row_pointers", "columns")
    rows_per_warp: ClassVar[int] = 1

    def columns(self, n_cols: int) -> tuple[int, Mapping[str, int]]:
        """Return the tiles of columns and the kernel's constants besides `block_warps`."""
        return 1, {}

    def build(self, graph: Graph, widths: Widths, settings: BlockWarps) -> Plan:
        """Deal out the rows, or the columns if the operation walks the transposed matrix."""
        walked = graph.transposed().graph if self.operation.by_sender else graph
        tiles, config = self.columns(widths["n_cols"])
        block_warps, sizes = settings.block_warps, size_arguments(walked, widths)
        n_blocks = -(-walked.n_rows // (self.rows_per_warp * block_warps))
        kernel = KernelSpec(
            self.file,
            self.entry or self.file.rpartition("/")[2].removesuffix(".cu"),
            {"block_warps": block_warps, **config},
            (*self.arrays, *self.operation.operands, *sizes),
        )
        csr = {"row_pointers": walked.row_pointers, "columns": walked.column_indices}
        workload = partial(row_workload, walked.row_pointers, self.rows_per_warp, block_warps)
        return Plan(
            Layout(graph.pattern, workload, walked.pattern),
            (Call(LaunchConfig((n_blocks, tiles, 1), block_warps), kernel),),
            Buffers({**{name: csr[name] for name in self.arrays}, **sizes}, zero_outputs=()),
            Provenance(self, graph.values, widths, settings),
        )

    def lanes(self, widths: Widths) -> LaneColumns | None:
        """Return how the lanes of a warp cover the columns of a gathered row."""
        return LaneColumns(WARP_SIZE, 1, widths["n_cols"])

    def describe(self, settings: BlockWarps, rows: RowDegrees, widths: Widths) -> Description:
        """Name the row split; every row is one warp's."""
        return Description(RowSplit(self.rows_per_warp, settings.block_warps), self.lanes(widths))


def column_tiles(n_cols: int, max_columns: int) -> tuple[int, int]:
    """Divide the columns into equal tiles of whole warps.

    Parameters
    ----------
    n_cols : int
        Columns of the features.
    max_columns : int
        Most columns of a tile, a multiple of 32.

    Returns
    -------
    tiles, columns : int
        How many tiles, and the columns of each, rounded up to a multiple of 32.
    """
    tiles = -(-n_cols // max_columns)
    warps = -(-n_cols // (tiles * WARP_SIZE))
    return tiles, warps * WARP_SIZE


def prepared(
    graph: Graph, key: str, step: str, make: Callable[[], Any]
) -> tuple[Any, dict[str, float]]:
    """Return what `make` makes of a graph, once, and the seconds of this one step."""

    def timed(clock: Stopwatch) -> Any:
        with clock.step(step):
            return make()

    return graph.store.prepared(key, timed)


def csr_arrays(graph: Graph, n_cols: int) -> dict[str, Any]:
    """Return the arguments of a kernel that walks CSR in the caller's order."""
    return {
        "row_pointers": graph.row_pointers,
        "columns": graph.column_indices,
        "n_cols": np.int32(n_cols),
    }


def size_arguments(graph: Graph, widths: Widths) -> dict[str, Any]:
    """Return the sizes that kernels take, by name: rows, heads if there are such, columns."""
    sizes = {"n_rows": graph.n_rows, **widths}
    names = [name for name in ("n_rows", "heads", "n_cols") if name in sizes]
    return {name: np.int32(sizes[name]) for name in names}
