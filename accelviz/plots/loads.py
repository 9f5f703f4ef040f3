"""Who works on what: warps of a block close up, and the load of all warps at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm

from accelviz.analysis.balance import LoadMap
from accelviz.errors import ArgumentError
from accelviz.plots.drawing import Look, cells, colour_bar, count_ticks, new_panels
from accelviz.plots.labels import beside
from accelviz.plots.style import GREY, IDLE, PLAIN, ROW_COLOURS, tell, tidy
from accelviz.workload import Workload

#: Pictures of load maps share an axis while the narrowest has at least one in so many of its parts.
_NARROWEST = 8


def block_close_ups(
    works: Sequence[Workload],
    *,
    warps_per_block: int,
    titles: Sequence[str] = (),
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Draw blocks side by side: a bar for each warp, a part for each of its rows.

    Parameters
    ----------
    works : sequence of Workload
        The work of one block in each, as `plan.workload(block, block + 1)` gives it.
    warps_per_block : int
        Warps launched, those without work included.
    titles : sequence of str, optional
        One for each block; its number if not given.
    axes : sequence of Axes, optional
        One for each block; a new figure if not given.

    Returns
    -------
    list of Axes
        All with the same scale. The length of a bar is the nonzeros, its colours are the rows.
    """
    size = (2.4 * len(works) + 0.6, 1.7 + 0.16 * warps_per_block)
    axes = new_panels(axes, size, 1, len(works))
    longest = max((int(work.nz_count.max(initial=1)) for work in works), default=1)
    for i, (ax, work) in enumerate(zip(axes, works, strict=True)):
        _bars(ax, work, warps_per_block)
        ax.set_xlim(0, longest * 1.03)
        ax.set_ylim(warps_per_block - 0.4, -0.6)
        ax.set_yticks(range(0, warps_per_block, max(1, warps_per_block // 6)))
        if i:
            ax.set_yticklabels([])
        block = work.block[0] if len(work) else ""
        ax.set_title(titles[i] if titles else f"block {block}", fontsize=8.5)
        count_ticks(ax.xaxis, most=4)
        ax.set_xlabel("nonzeros")
        busy = np.unique(work.warp[work.nz_count > 0]).size
        tell(ax, f"Block {block}: {busy} of {warps_per_block} warps have nonzeros.")
        tidy(ax)
    if axes:
        axes[0].set_ylabel("warp")
    return axes


def _bars(ax: Axes, work: Workload, warps_per_block: int) -> None:
    left = np.zeros(warps_per_block)
    for warp, row, count in zip(
        work.warp.tolist(), work.row.tolist(), work.nz_count.tolist(), strict=True
    ):
        colour = ROW_COLOURS[row % len(ROW_COLOURS)]
        ax.barh(warp, count, left=left[warp], height=0.8, color=colour, ec="white", lw=0.5)
        left[warp] += count
    for warp in np.flatnonzero(left == 0):
        beside(ax, "idle", (0, warp), (2, 0), va="center", fontsize=7, color=GREY)


def load_maps(maps: Mapping[str, LoadMap], *, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Draw the nonzeros of every warp of every block as heat maps, one under the other.

    Parameters
    ----------
    maps : mapping of str to LoadMap
        Title to loads, one or more. A block is a column of the picture, a warp is a line, and idle
        warps are light grey. Where only a sample of the blocks is shown, the picture says so.
    axes : sequence of Axes, optional
        One for each map; a new figure if not given.

    Returns
    -------
    list of Axes
        All with the same colours. They share the axis of blocks, unless one of them would then be
        narrower than an eighth of the widest. In that case each has its own axis, and the last one
        says so.

    Raises
    ------
    ArgumentError
        If there is no map.
    """
    if not maps:
        raise ArgumentError("maps", "no load map", "one or more, by title")
    axes = new_panels(axes, (10, 0.4 + 1.8 * len(maps)), len(maps), 1)
    top = max(float(each.load.max(initial=1)) for each in maps.values())
    widest = max(each.n_blocks for each in maps.values()) or 1
    narrowest = min((each.n_blocks for each in maps.values() if each.n_blocks), default=1)
    own = narrowest * _NARROWEST < widest
    norm = LogNorm(1, max(top, 2))
    colours = colormaps["viridis_r"].with_extremes(bad=IDLE)
    for ax, (title, each) in zip(axes, maps.items(), strict=True):
        columns, warps = each.load.shape
        if columns:
            extent = (-0.5, columns * each.every - 0.5, warps - 0.5, -0.5)
            cells(ax, np.ma.masked_equal(each.load.T, 0), colours, norm, extent=extent)
        else:
            ax.set_yticks([])
        ax.set_xlim(-0.5, ((each.n_blocks or 1) if own else widest) - 0.5)
        count_ticks(ax.xaxis, most=7)
        if columns:
            count_ticks(ax.yaxis, most=4)
        ax.set_ylabel(each.worker.replace(" ", "\n"))
        ax.set_title(title, loc="left", fontsize=9.5)
        tell(ax, f"{title}: the nonzeros of each {each.worker} of {each.n_blocks:,} blocks.")
        if each.every > 1:
            look: Look = {"ha": "right", "fontsize": 8, "color": GREY, "transform": ax.transAxes}
            ax.text(1, 1.02, f"one block of {each.every:,} is shown", **look)
    axes[-1].set_xlabel("block" + " (each picture as wide as its own blocks)" * own)
    workers = " or ".join(dict.fromkeys(each.worker for each in maps.values()))
    label = f"nonzeros of the {workers}\n(grey: idle)"
    colour_bar(axes, ScalarMappable(norm, colours), label, format=PLAIN)
    return axes
