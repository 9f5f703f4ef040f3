"""Who works on what: warps of a block close up, and the load of all warps at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.ticker import MaxNLocator, NullFormatter

from accelviz.analysis.balance import LoadMap
from accelviz.plots.style import GREY, IDLE, PLAIN, ROW_COLOURS, tidy
from accelviz.workload import Workload


def block_close_ups(
    works: Sequence[Workload],
    *,
    warps_per_block: int,
    titles: Sequence[str] = (),
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Draw blocks side by side: a bar a warp, as long as its nonzeros, coloured by their row.

    Parameters
    ----------
    works : sequence of Workload
        One block each, as `plan.workload(block, block + 1)` gives it.
    warps_per_block : int
        Warps launched, those without work included.
    titles : sequence of str, optional
        One for each block; its number if not given.
    axes : sequence of Axes, optional
        One for each block; a new figure if not given.

    Returns
    -------
    list of Axes
        All with the same scale.
    """
    if axes is None:
        size = (2.4 * len(works) + 0.6, 1.7 + 0.16 * warps_per_block)
        _, grid = plt.subplots(1, len(works), figsize=size, layout="constrained", squeeze=False)
        axes = list(grid[0])
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
        ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        ax.set_xlabel("nonzeros")
        tidy(ax)
    if axes:
        axes[0].set_ylabel("warp")
    return list(axes)


def _bars(ax: Axes, work: Workload, warps_per_block: int) -> None:
    left = np.zeros(warps_per_block)
    for warp, row, count in zip(
        work.warp.tolist(), work.row.tolist(), work.nz_count.tolist(), strict=True
    ):
        colour = ROW_COLOURS[row % len(ROW_COLOURS)]
        ax.barh(warp, count, left=left[warp], height=0.8, color=colour, ec="white", lw=0.5)
        left[warp] += count
    for warp in np.flatnonzero(left == 0):
        ax.annotate(
            "idle",
            (0, warp),
            (2, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            color=GREY,
        )


def load_maps(maps: Mapping[str, LoadMap], *, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Draw the nonzeros of every warp of every block as heat maps, one under the other.

    Parameters
    ----------
    maps : mapping of str to LoadMap
        Title to loads. A block is a column of the picture, a warp a line; an idle warp is light
        grey. Where only a sample of the blocks is shown, the picture says so.
    axes : sequence of Axes, optional
        One for each map; a new figure if not given.

    Returns
    -------
    list of Axes
        All with the same scales.
    """
    if axes is None:
        size = (10, 0.4 + 1.8 * len(maps))
        _, grid = plt.subplots(len(maps), 1, figsize=size, layout="constrained", squeeze=False)
        axes = list(grid[:, 0])
    top = max((float(each.load.max(initial=1)) for each in maps.values()), default=1.0)
    widest = max((each.n_blocks for each in maps.values()), default=1) or 1
    norm = LogNorm(1, max(top, 2))
    colours = colormaps["viridis_r"].with_extremes(bad=IDLE)
    for ax, (title, each) in zip(axes, maps.items(), strict=True):
        columns, warps = each.load.shape
        if columns:
            ax.imshow(
                np.ma.masked_equal(each.load.T, 0),
                aspect="auto",
                interpolation="nearest",
                cmap=colours,
                norm=norm,
                extent=(-0.5, columns * each.every - 0.5, warps - 0.5, -0.5),
            )
        ax.set_xlim(-0.5, widest - 0.5)
        ax.set_ylabel("warp")
        ax.set_title(title, loc="left", fontsize=9.5)
        if each.every > 1:
            ax.annotate(
                f"one block of {each.every:,} is shown",
                (1, 1.02),
                xycoords="axes fraction",
                ha="right",
                fontsize=8,
                color=GREY,
            )
    axes[-1].set_xlabel("block")
    bar = axes[-1].figure.colorbar(ScalarMappable(norm, colours), ax=axes, pad=0.01, aspect=25)
    bar.ax.yaxis.set_major_formatter(PLAIN)
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.set_label("nonzeros of the warp\n(grey: idle)", fontsize=9)
    return list(axes)
