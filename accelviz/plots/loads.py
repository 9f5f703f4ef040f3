"""Who works on what: warps of a block close up, and the load of all warps at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from accelviz.plots.style import GREY, IDLE, PLAIN, ROW_COLOURS, new_axes, tidy


def block_close_up(
    warp: npt.NDArray[np.integer[Any]],
    row: npt.NDArray[np.integer[Any]],
    nz_count: npt.NDArray[np.integer[Any]],
    *,
    warps_per_block: int,
    longest: int,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw one block: a bar for each warp, as long as its nonzeros, coloured by their row.

    Parameters
    ----------
    warp, row, nz_count : arrays of int32, shape (records,)
        The block's records of a workload.
    warps_per_block : int
        Warps launched, those without work included.
    longest : int
        Right end of the axis, in nonzeros; the same for blocks shown side by side.
    title : str
        Above the bars.
    ax : Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    Axes
    """
    ax = new_axes(ax, figsize=(2.5, 3))
    left = np.zeros(warps_per_block)
    distinct = {int(r): i for i, r in enumerate(dict.fromkeys(row.tolist()))}
    for w, r, count in zip(warp.tolist(), row.tolist(), nz_count.tolist(), strict=True):
        colour = ROW_COLOURS[distinct[r] % len(ROW_COLOURS)]
        ax.barh(w, count, left=left[w], height=0.8, color=colour, ec="white", lw=0.5)
        left[w] += count
    for w in np.flatnonzero(left == 0):
        ax.annotate(
            "idle", (0, w), (2, 0), textcoords="offset points", va="center", fontsize=7, color=GREY
        )
    ax.set_xlim(0, longest * 1.03)
    ax.set_ylim(warps_per_block - 0.4, -0.6)
    ax.set_yticks(range(0, warps_per_block, max(1, warps_per_block // 6)))
    ax.set_title(title, fontsize=7.5)
    return tidy(ax)


def load_maps(
    maps: Mapping[str, npt.NDArray[np.float64]],
    *,
    blocks_per_column: Sequence[int] | None = None,
    axes: Sequence[Axes] | None = None,
) -> Sequence[Axes]:
    """Draw the nonzeros of every warp of every block as heat maps, one under the other.

    Parameters
    ----------
    maps : mapping of str to array of float, shape (columns, warps_per_block)
        Title to nonzeros: a column of the array becomes a line of the picture, a block one of its
        columns. 0, an idle warp, is drawn light grey.
    blocks_per_column : sequence of int, optional
        How many blocks each map's columns average; all 1 if not given. More is said on the axis.
    axes : sequence of Axes, optional
        One for each map; a new figure if not given.

    Returns
    -------
    sequence of Axes
        All with the same scales, the last with the colour bar.
    """
    if axes is None:
        figure = Figure(figsize=(10, 1.9 * len(maps)), layout="constrained")
        axes = list(figure.subplots(len(maps), 1, squeeze=False)[:, 0])
    axes = list(axes)
    averaged = blocks_per_column or [1] * len(maps)
    top = max((float(load.max(initial=1)) for load in maps.values()), default=1.0)
    widest = max(len(load) * each for load, each in zip(maps.values(), averaged, strict=True)) or 1
    norm = LogNorm(1, max(top, 2))
    colours = colormaps["viridis_r"].with_extremes(bad=IDLE)
    for ax, (title, load), each in zip(axes, maps.items(), averaged, strict=True):
        if len(load):
            ax.imshow(
                np.ma.masked_equal(load.T, 0),
                aspect="auto",
                interpolation="nearest",
                cmap=colours,
                norm=norm,
                extent=(-0.5, len(load) * each - 0.5, load.shape[1] - 0.5, -0.5),
            )
        ax.set_xlim(-0.5, widest - 0.5)
        ax.set_ylabel("warp")
        ax.set_title(title, loc="left", fontsize=9.5)
        if each > 1:
            ax.annotate(
                f"each column of the picture is the mean of {each} blocks",
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
    return axes
