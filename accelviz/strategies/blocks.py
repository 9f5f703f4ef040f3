"""Helpers for all strategies: settings, kernel arguments, and the base class `RowStrategy`."""

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

#: Sizes of a subwarp: the powers of two up to a warp.
POWERS = (1, 2, 4, 8, 16, 32)
_LARGER = "per block; more: fewer blocks, in which more warps idle until the slowest has ended"


def block_warps_setting(default: int | None, *tries: int) -> Any:
    """Declare a setting: warps per block; sweeps try 1, 2, 4, 8 and `tries`."""
    return setting(default, f"warps {_LARGER}", MOST_BLOCK_WARPS, tries=(1, 2, 4, 8, *tries))


def block_threads_setting(default: int, *tries: int) -> Any:
    """Declare a setting: threads per block, a multiple of 32; sweeps try `tries`."""
    most = MOST_BLOCK_WARPS * WARP_SIZE
    return setting(default, f"threads {_LARGER}", most, step=WARP_SIZE, tries=tries)


class BlockWarps(Settings):
    """Settings of a strategy that has `block_warps` only: warps per block, 1 to 32."""

    block_warps: int = block_warps_setting(4, 16)


class RowStrategy(Strategy):
    """Base class: consecutive rows for consecutive warps, without preprocessing or metadata.

    Attributes
    ----------
    file, entry : str
        Path of the kernel's file in `kernels/`; name of the kernel, by default the file's stem.
    code : str
        CUDA source in place of a file, for a kernel written in a notebook; `file` is then only its
        name in messages, and the default of `entry`.
    arrays : tuple of str
        CSR arrays among the kernel's arguments: "row_pointers", "columns" or both.
    rows_per_warp : int
    """

    Settings = BlockWarps
    file: ClassVar[str]
    entry: str = ""
    code: ClassVar[str] = ""
    arrays: ClassVar[tuple[str, ...]] = ("row_pointers", "columns")
    rows_per_warp: ClassVar[int] = 1

    def columns(self, n_cols: int) -> tuple[int, Mapping[str, int]]:
        """Return the number of column tiles, and the kernel's constants besides `block_warps`."""
        return 1, {}

    def build(self, graph: Graph, widths: Widths, settings: BlockWarps) -> Plan:
        """Assign rows to warps; columns, if the operation walks the transposed matrix."""
        walked = graph.transposed().graph if self.operation.by_sender else graph
        tiles, config = self.columns(widths["n_cols"])
        block_warps, sizes = settings.block_warps, size_arguments(walked, widths)
        n_blocks = -(-walked.n_rows // (self.rows_per_warp * block_warps))
        kernel = KernelSpec(
            self.file,
            self.entry or self.file.rpartition("/")[2].removesuffix(".cu"),
            {"block_warps": block_warps, **config},
            (*self.arrays, *self.operation.operands, *sizes),
            code=self.code,
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
        """Return which columns of a gathered row each lane reads; None if that is not known."""
        return LaneColumns(WARP_SIZE, 1, widths["n_cols"])

    def describe(self, settings: BlockWarps, rows: RowDegrees, widths: Widths) -> Description:
        """Describe a row split with `rows_per_warp` rows per warp."""
        return Description(RowSplit(self.rows_per_warp, settings.block_warps), self.lanes(widths))


def column_tiles(n_cols: int, max_columns: int) -> tuple[int, int]:
    """Divide the columns of the features into tiles of equal width.

    Parameters
    ----------
    n_cols : int
        Number of columns of the features.
    max_columns : int
        Most columns of a tile, a multiple of 32.

    Returns
    -------
    tiles, columns : int
        Number of tiles, and columns of a tile, rounded up to a multiple of 32.
    """
    tiles = -(-n_cols // max_columns)
    warps = -(-n_cols // (tiles * WARP_SIZE))
    return tiles, warps * WARP_SIZE


def prepare_once(
    graph: Graph, key: str, step: str, compute: Callable[[], Any]
) -> tuple[Any, dict[str, float]]:
    """Return the result of `compute()`, stored in the graph under `key`, and {step: seconds}."""

    def timed(clock: Stopwatch) -> Any:
        with clock.step(step):
            return compute()

    return graph.store.prepared(key, timed)


def csr_arrays(graph: Graph, n_cols: int) -> dict[str, Any]:
    """Return kernel arguments by name: the CSR arrays in the caller's row order, and `n_cols`."""
    return {
        "row_pointers": graph.row_pointers,
        "columns": graph.column_indices,
        "n_cols": np.int32(n_cols),
    }


def size_arguments(graph: Graph, widths: Widths) -> dict[str, Any]:
    """Return kernel arguments by name: `n_rows`, `heads` if it is a width, and `n_cols`."""
    sizes = {"n_rows": graph.n_rows, **widths}
    names = [name for name in ("n_rows", "heads", "n_cols") if name in sizes]
    return {name: np.int32(sizes[name]) for name in names}
