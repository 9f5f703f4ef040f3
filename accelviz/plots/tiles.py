"""Tiles of tensor cores: windows before and after their columns are condensed, and fragments."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from accelviz.errors import ArgumentError
from accelviz.plans import Plan
from accelviz.plans.fragments import Shape
from accelviz.plots import draw
from accelviz.plots.style import BLUE, GREY, GRID, ORANGE, WARP_COLOURS, Look, add_alt, paler

#: Columns that get a number below, and tiles that get their count above.
_NUMBERED, _COUNTED = 40, 12


def window_tiles(plan: Plan, window: int = 0) -> list[Axes]:
    """Draw a window of rows as the matrix has it, and with its columns condensed into tiles.

    A filled cell is a nonzero. Tiles that hold one are shaded: these are multiplied, zeros and all.
    Above are the columns from the first of these tiles to the last.

    Parameters
    ----------
    plan : Plan
        With tiles, such as one of tc_gnn or window_tiles.
    window : int
        Which window.

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
    chosen = np.flatnonzero(tiles.first_row == window * tiles.rows)
    parts = slice(*tiles.pointers[[chosen[0], chosen[-1] + 1]]) if chosen.size else slice(0, 0)
    row, column = np.divmod(tiles.places[parts], tiles.columns)
    before = plan.walked.column_indices[tiles.nonzeros[parts]]
    after = np.repeat(np.arange(chosen.size), tiles.counts[chosen]) * tiles.columns + column
    first, last = window * tiles.rows, min((window + 1) * tiles.rows, n_rows)
    used = np.unique(before // tiles.columns) * tiles.columns
    span = (used[0], min(used[-1] + tiles.columns, n_columns)) if used.size else (0, n_columns)
    condensed = np.arange(chosen.size) * tiles.columns
    upper, lower = panels = draw.new_panels((9.5, 4.2), 2, 1)
    numbered = chosen.size <= _COUNTED
    for ax, x, starts, (left, stop), text in (
        (upper, before, used, span, "as the matrix stands"),
        (lower, after, condensed, (0, chosen.size * tiles.columns), "columns condensed"),
    ):
        shade: Look = {"facecolors": paler(ORANGE, 0.25), "edgecolors": ORANGE, "linewidths": 0.8}
        draw.rectangles(ax, starts, starts + tiles.columns, 0, tiles.rows, **shade)
        filled: Look = {"facecolors": BLUE, "edgecolors": BLUE, "linewidths": 0.7}
        draw.rectangles(ax, x, x + 1, row, row + 1, **filled)
        ax.set(xlim=(left, max(stop, left + 1)), ylim=(tiles.rows, 0))
        ax.set_ylabel(f"rows {first:,} to {last - 1:,}")
        draw.count_ticks(ax.xaxis, most=10)
        draw.count_ticks(ax.yaxis, most=4)
        fill = row.size / max(1, starts.size * tiles.rows * tiles.columns)
        title = f"{text}: {starts.size:,} tiles of {tiles.rows} x {tiles.columns}, {fill:.1%} full"
        ax.set_title(title, loc="left", fontsize=10, pad=16 if numbered and ax is lower else None)
        draw.finish(ax, f"Rows {first:,} to {last - 1:,}, {title}.")
    upper.set_xlabel(f"column of the matrix, which has {n_columns:,}")
    lower.set_xlabel("column of the window")
    for i, count in enumerate(tiles.counts[chosen] if numbered else ()):
        lower.text(
            (i + 0.5) * tiles.columns, -0.2, str(count), ha="center", va="bottom", fontsize=8
        )
    return panels


def fragment_lanes(shape: Shape) -> list[Axes]:
    """Draw which lane holds which element of A, B and C, and in which register.

    A number is a lane; lanes of one colour are four that share rows of A and columns of B. The
    stronger its colour, the later the register.

    Parameters
    ----------
    shape : Shape
        One of `plans.fragments.SHAPES`.
    """
    widths = [shape.lanes(name).shape[1] + 2 for name in "ABC"]
    panels = draw.new_panels((11, 4.6), 1, 3, width_ratios=widths)
    for ax, name in zip(panels, "ABC", strict=True):
        lane, register, _ = np.moveaxis(shape.lanes(name), -1, 0)
        (rows, columns), held = lane.shape, shape.registers(name)
        faces = [
            paler(WARP_COLOURS[one // 4 % len(WARP_COLOURS)], 0.25 + 0.75 * (r + 1) / held)
            for one, r in zip(lane.ravel(), register.ravel(), strict=True)
        ]
        row, column = (index.ravel() for index in np.indices(lane.shape))
        look: Look = {"facecolors": faces, "edgecolors": GRID, "linewidths": 0.5}
        draw.rectangles(ax, column, column + 1, row, row + 1, **look)
        if columns <= _NUMBERED:
            size = 5 if columns > 16 else 7
            for x, y, one, face in zip(column, row, lane.ravel(), faces, strict=True):
                draw.write_centred(ax, x + 0.5, y + 0.5, one, face, size)
        ax.set(xlim=(0, columns), ylim=(rows, 0), aspect="equal")
        ax.set_title(f"{name}: {rows} x {columns}, {held} registers a lane", fontsize=10)
        draw.count_ticks(ax.xaxis, ax.yaxis, most=4)
        ax.tick_params(colors=GREY, labelsize=8)
        size_text = f"{rows} by {columns}, each of 32 lanes with {held} registers"
        add_alt(
            ax, f"{name} of {shape.function}: {size_text}; element 0, 0 is lane {lane[0, 0]}'s."
        )
    return panels
