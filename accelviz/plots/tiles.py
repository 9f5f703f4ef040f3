"""Pictures of tensor core tiles: windows with condensed columns, and fragments of lanes.

A window is a group of consecutive rows. Condensing removes columns without a nonzero in the window.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from accelviz.errors import ArgumentError
from accelviz.plans import Plan
from accelviz.plans.fragments import Shape
from accelviz.plots import draw
from accelviz.plots.style import BLUE, GREY, GRID, ORANGE, WARP_COLOURS, Look, add_alt, paler

#: Largest number of columns with a lane number in each cell, and of tiles with their nonzeros.
_MAX_NUMBERED, _MAX_COUNTED = 40, 12


def window_tiles(plan: Plan, window: int = 0) -> list[Axes]:
    """Draw a window of rows, before and after its columns are condensed into tiles.

    A filled cell is a nonzero. Tiles with a nonzero are shaded: tensor cores multiply all of their
    elements. The upper panel spans the columns from the first such tile to the last.

    Parameters
    ----------
    plan : Plan
        A plan with tiles, such as one of tc_gnn or window_tiles.
    window : int
        Number of the window.

    Raises
    ------
    ArgumentError
        If the plan has no tiles, or no such window.
    """
    tiles = plan.tiles
    if tiles is None:
        problem = f"{plan.name!r} multiplies no tiles"
        raise ArgumentError("plan", problem, "one of tc_gnn or window_tiles")
    n_rows, n_columns = plan.walked.shape
    windows = -(-n_rows // tiles.rows)
    if not 0 <= window < windows:
        raise ArgumentError("window", f"there is no window {window}", f"0 to {windows - 1:,}")
    numbers = np.flatnonzero(tiles.first_row == window * tiles.rows)
    n_tiles = numbers.size
    elements = slice(*tiles.pointers[[numbers[0], numbers[-1] + 1]]) if n_tiles else slice(0, 0)
    row, column_in_tile = np.divmod(tiles.places[elements], tiles.columns)
    before = plan.walked.column_indices[tiles.nonzeros[elements]]
    after = np.repeat(np.arange(n_tiles), tiles.counts[numbers]) * tiles.columns + column_in_tile
    first, stop_row = window * tiles.rows, min((window + 1) * tiles.rows, n_rows)
    used = np.unique(before // tiles.columns) * tiles.columns
    span = (used[0], min(used[-1] + tiles.columns, n_columns)) if used.size else (0, n_columns)
    condensed = np.arange(n_tiles) * tiles.columns
    upper, lower = panels = draw.new_panels((9.5, 4.2), 2, 1)
    is_counted = n_tiles <= _MAX_COUNTED
    for ax, x, starts, (left, stop), text in (
        (upper, before, used, span, "as the matrix stands"),
        (lower, after, condensed, (0, n_tiles * tiles.columns), "columns condensed"),
    ):
        shade: Look = {"facecolors": paler(ORANGE, 0.25), "edgecolors": ORANGE, "linewidths": 0.8}
        draw.rectangles(ax, starts, starts + tiles.columns, 0, tiles.rows, **shade)
        filled: Look = {"facecolors": BLUE, "edgecolors": BLUE, "linewidths": 0.7}
        draw.rectangles(ax, x, x + 1, row, row + 1, **filled)
        ax.set(xlim=(left, max(stop, left + 1)), ylim=(tiles.rows, 0))
        ax.set_ylabel(f"rows {first:,} to {stop_row - 1:,}")
        draw.count_ticks(ax.xaxis, most=10)
        draw.count_ticks(ax.yaxis, most=4)
        fill = row.size / max(1, starts.size * tiles.rows * tiles.columns)
        title = f"{text}: {starts.size:,} tiles of {tiles.rows} x {tiles.columns}, {fill:.1%} full"
        ax.set_title(title, loc="left", fontsize=10, pad=16 if is_counted and ax is lower else None)
        draw.finish(ax, f"Rows {first:,} to {stop_row - 1:,}, {title}.")
    upper.set_xlabel(f"column of the matrix, which has {n_columns:,}")
    lower.set_xlabel("column of the window")
    for i, count in enumerate(tiles.counts[numbers] if is_counted else ()):
        lower.text(
            (i + 0.5) * tiles.columns, -0.2, str(count), ha="center", va="bottom", fontsize=8
        )
    return panels


def fragment_lanes(shape: Shape) -> list[Axes]:
    """Draw the lane and the register of each element of the fragments A, B and C.

    Cells contain lane numbers. Four lanes that share rows of A and columns of B have the same
    colour, which is stronger for later registers.

    Parameters
    ----------
    shape : Shape
        One of `plans.fragments.SHAPES`.
    """
    widths = [shape.lanes(name).shape[1] + 2 for name in "ABC"]
    panels = draw.new_panels((11, 4.6), 1, 3, width_ratios=widths)
    for ax, name in zip(panels, "ABC", strict=True):
        lane, register, _ = np.moveaxis(shape.lanes(name), -1, 0)
        (rows, columns), registers = lane.shape, shape.registers(name)
        faces = [
            paler(WARP_COLOURS[number // 4 % len(WARP_COLOURS)], 0.25 + 0.75 * (r + 1) / registers)
            for number, r in zip(lane.ravel(), register.ravel(), strict=True)
        ]
        row, column = (index.ravel() for index in np.indices(lane.shape))
        look: Look = {"facecolors": faces, "edgecolors": GRID, "linewidths": 0.5}
        draw.rectangles(ax, column, column + 1, row, row + 1, **look)
        if columns <= _MAX_NUMBERED:
            size = 5 if columns > 16 else 7
            for x, y, number, face in zip(column, row, lane.ravel(), faces, strict=True):
                draw.write_centred(ax, x + 0.5, y + 0.5, number, face, size)
        ax.set(xlim=(0, columns), ylim=(rows, 0), aspect="equal")
        ax.set_title(f"{name}: {rows} x {columns}, {registers} registers a lane", fontsize=10)
        draw.count_ticks(ax.xaxis, ax.yaxis, most=4)
        ax.tick_params(colors=GREY, labelsize=8)
        size_text = f"{rows} by {columns}, each of 32 lanes with {registers} registers"
        add_alt(
            ax, f"{name} of {shape.function}: {size_text}; element 0, 0 is lane {lane[0, 0]}'s."
        )
    return panels
