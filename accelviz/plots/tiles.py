"""Tiles of tensor cores: windows before and after their columns are condensed, and fragments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from accelviz.errors import ArgumentError
from accelviz.plans import Plan
from accelviz.plans.fragments import Shape
from accelviz.plots.drawing import Look, count_ticks, new_axes, new_panels, rectangles
from accelviz.plots.style import BLUE, GREY, GRID, ORANGE, WARP_COLOURS, ink, paler, tell, tidy
from accelviz.tiles import Tiles

#: Columns that get a number below, and tiles that get their count above.
_NUMBERED, _COUNTED = 40, 12


def tiles_of(plan: Plan) -> Tiles:
    """Return the tiles of a plan.

    Raises
    ------
    ArgumentError
        If it has none.
    """
    if plan.tiles is None:
        raise ArgumentError(
            "plan", f"{plan.name!r} multiplies no tiles", "one of tc_gnn or window_tiles"
        )
    return plan.tiles


def window_tiles(plan: Plan, window: int = 0, *, axes: Sequence[Axes] | None = None) -> list[Axes]:
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
    tiles = tiles_of(plan)
    windows = -(-plan.walked.n_rows // tiles.rows)
    if not 0 <= window < windows:
        raise ArgumentError("window", f"there is no window {window}", f"0 to {windows - 1:,}")
    own = np.flatnonzero(tiles.first_row == window * tiles.rows)
    parts = slice(*tiles.pointers[[own[0], own[-1] + 1]]) if own.size else slice(0, 0)
    owner = np.repeat(np.arange(own.size), tiles.counts[own])
    row, column = np.divmod(tiles.places[parts], tiles.columns)
    before = plan.walked.column_indices[tiles.nonzeros[parts]]
    n_columns, condensed = plan.walked.shape[1], own.size * tiles.columns
    first, last = window * tiles.rows, min((window + 1) * tiles.rows, plan.walked.n_rows)
    panels = new_panels(axes, (9.5, 4.2), 2, 1)
    used = np.unique(before // tiles.columns) * tiles.columns
    span = (used[0], min(used[-1] + tiles.columns, n_columns)) if used.size else (0, n_columns)
    place = owner * tiles.columns + column
    for ax, x, starts, (left, right) in (
        (panels[0], before, used, span),
        (panels[1], place, np.arange(0, condensed, tiles.columns), (0, condensed)),
    ):
        shade: Look = {"facecolors": paler(ORANGE, 0.25), "edgecolors": ORANGE, "linewidths": 0.8}
        rectangles(ax, starts, starts + tiles.columns, 0, tiles.rows, **shade)
        rectangles(ax, x, x + 1, row, row + 1, facecolors=BLUE, edgecolors=BLUE, linewidths=0.7)
        ax.set(
            xlim=(left, max(right, left + 1)),
            ylim=(tiles.rows, 0),
            ylabel=f"rows {first:,} to {last - 1:,}",
        )
        count_ticks(ax.xaxis, most=10)
        count_ticks(ax.yaxis, most=4)
        tidy(ax)
    size, nonzeros = f"{tiles.rows} x {tiles.columns}", row.size
    for ax, count, where in (
        (panels[0], used.size, "as the matrix stands"),
        (panels[1], own.size, "columns condensed"),
    ):
        fill = nonzeros / (count * tiles.rows * tiles.columns) if count else 0.0
        about = f"{where}: {count:,} tiles of {size}, {fill:.1%} full"
        counted = ax is panels[1] and own.size <= _COUNTED  # counts stand between
        ax.set_title(about, loc="left", fontsize=10, pad=16 if counted else None)
    panels[0].set_xlabel(f"column of the matrix, which has {n_columns:,}")
    panels[1].set_xlabel("column of the window")
    if own.size <= _COUNTED:
        for i, count in enumerate(tiles.counts[own]):
            middle = (i + 0.5) * tiles.columns
            panels[1].text(middle, -0.2, str(count), ha="center", va="bottom", fontsize=8)
    return panels


def tile_fill(plan: Plan, *, ax: Axes | None = None) -> Axes:
    """Draw how many tiles have how many nonzeros.

    Raises
    ------
    ArgumentError
        If the plan has no tiles.
    """
    tiles = tiles_of(plan)
    ax = new_axes(ax, figsize=(7, 3))
    counts = np.bincount(tiles.counts)
    at = np.flatnonzero(counts)
    ax.bar(at, counts[at], width=0.9, color=BLUE)
    whole = tiles.rows * tiles.columns
    ax.set(xlabel=f"nonzeros of a tile ({whole} elements)", ylabel="tiles")
    if len(tiles):
        mean = float(tiles.counts.mean())
        ax.axvline(mean, color=ORANGE)
        text = f" mean {mean:.1f}, {tiles.fill:.1%} full"
        ax.text(mean, 0.98, text, transform=ax.get_xaxis_transform(), va="top")
    count_ticks(ax.xaxis, ax.yaxis, most=8)
    tell(ax, f"{len(tiles):,} tiles of {plan.walked.name}, {tiles.fill:.1%} of them nonzeros.")
    return tidy(ax)


def fragment_lanes(shape: Shape, *, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Draw which lane holds which element of A, B and C, and in which register.

    A number is a lane; lanes of one colour are four that share rows of A and columns of B. The
    stronger its colour, the later the register.

    Parameters
    ----------
    shape : Shape
        One of `plans.fragments.SHAPES`.
    """
    sizes = {name: shape.lanes(name).shape[:2] for name in "ABC"}
    panels = new_panels(axes, (11, 4.6), 1, 3, width_ratios=[sizes[n][1] + 2 for n in "ABC"])
    for ax, name in zip(panels, "ABC", strict=True):
        lane, register, _ = np.moveaxis(shape.lanes(name), -1, 0)
        rows, columns = sizes[name]
        row, column = np.indices((rows, columns))
        held = shape.registers(name)
        faces = [
            paler(WARP_COLOURS[group % len(WARP_COLOURS)], 0.25 + 0.75 * (r + 1) / held)
            for group, r in zip((lane // 4).ravel(), register.ravel(), strict=True)
        ]
        at = column.ravel(), column.ravel() + 1, row.ravel(), row.ravel() + 1
        rectangles(ax, *at, facecolors=faces, edgecolors=GRID, linewidths=0.5)
        if columns <= _NUMBERED:
            for i, face in enumerate(faces):
                place = at[0][i] + 0.5, at[2][i] + 0.5
                look: Look = {"ha": "center", "va": "center", "fontsize": 5 if columns > 16 else 7}
                ax.text(*place, str(lane.ravel()[i]), color=ink(face), **look)
        ax.set(xlim=(0, columns), ylim=(rows, 0), aspect="equal")
        ax.set_title(f"{name}: {rows} x {columns}, {held} registers a lane", fontsize=10)
        count_ticks(ax.xaxis, ax.yaxis, most=4)
        ax.tick_params(colors=GREY, labelsize=8)
        about = f"{rows} by {columns}, each of 32 lanes with {held} registers"
        tell(ax, f"{name} of {shape.function}: {about}; element 0, 0 is lane {lane[0, 0]}'s.")
    return panels
