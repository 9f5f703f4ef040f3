"""What TC-GNN's SpMM and SDDMM share: translated windows as their kernels read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import MAX_SIDE, Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.row_split import RowSplit, row_workload
from accelviz.partition.windows import row_windows, window_tiles
from accelviz.plans import Description, Layout, Strategy, Widths
from accelviz.plans.launch import WARP_SIZE
from accelviz.store import Stopwatch
from accelviz.tiles import Tiles

#: Rows of a window, which tensor cores fix.
WINDOW_ROWS = 16
#: A window a block, whose warps count as one worker.
WINDOWS = RowSplit(WINDOW_ROWS, 1)


@dataclass(frozen=True, eq=False)
class Translated:
    """A graph's windows, in tiles.

    Attributes
    ----------
    tiles : Tiles
    arrays : mapping of str to array
        Arguments of the kernels.
    """

    tiles: Tiles
    arrays: dict[str, Any]


class TcGnnStrategy(Strategy):
    """A block has a window of 16 rows, whichever the operation."""

    name = "tc_gnn"
    worker = "window"

    def describe(self, settings: Any, rows: RowDegrees, widths: Widths) -> Description:
        """Name the windows: 16 rows a block, whose warps count as one worker."""
        return Description(WINDOWS)


def translated(graph: Graph, width: int) -> tuple[Translated, dict[str, float]]:
    """Translate a graph into windows of 16 rows and tiles of `width` columns, once.

    Returns
    -------
    translation : Translated
    seconds : dict of str to float
        What the translation took, step by step.

    Raises
    ------
    PartitionError
        If a window has 2^31 nonzeros or more.
    """

    def make(clock: Stopwatch) -> Translated:
        with clock.step("sparse graph translation"):
            windows = row_windows(graph, WINDOW_ROWS)
        with clock.step("tiles"):
            tiles = window_tiles(graph, windows, width)
            first = graph.row_pointers[tiles.first_row]
            behind = tiles.nonzeros - np.repeat(first, tiles.counts)
            if behind.size and behind.max() > MAX_SIDE:
                problem = f"a window of {int(behind.max()) + 1:,} nonzeros"
                raise PartitionError(
                    "graph", problem, f"at most {MAX_SIDE:,} in {WINDOW_ROWS} rows"
                )
            arrays = {
                "row_pointers": graph.row_pointers,
                "window_tiles": np.append(0, np.cumsum(windows.blocks(width))),
                "tile_pointers": tiles.pointers,
                "senders": tiles.senders,
                "offsets": behind.astype(np.int32),
                "places": tiles.places.astype(np.uint8),
            }
            for array in arrays.values():
                array.setflags(write=False)
        return Translated(tiles, arrays)

    return graph.store.prepared(f"tc_gnn tiles of {width}", make)


def window_layout(graph: Graph, translation: Translated) -> Layout:
    """Give each block a window; which warp has a nonzero, its tile says."""
    return Layout(
        graph.pattern,
        partial(row_workload, graph.row_pointers, WINDOW_ROWS, 1),
        workers_per_block=1,
        make_tiles=partial(getattr, translation, "tiles"),
    )


def window_warps(graph: Graph | RowDegrees, most: int) -> int:
    """Choose the warps of a block by the paper's rule: a window's mean nonzeros over 32.

    Parameters
    ----------
    graph : Graph or RowDegrees
    most : int
        No more than these; at least one in any case.

    Notes
    -----
    Section 5.4.3 of the thesis: warpPerBlock = floor(avg.edges / 32), where avg.edges are those of
    a row window.
    """
    windows = max(1, -(-graph.n_rows // WINDOW_ROWS))
    return min(max(1, graph.nnz // windows // WARP_SIZE), most)
