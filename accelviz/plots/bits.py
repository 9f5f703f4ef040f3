"""Bits: planes and words of a tensor, tiles that are jumped over, and when few bits pay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgb

from accelviz.bits.tensor import BitTensor
from accelviz.plots.drawing import Look, count_ticks, new_axes, new_panels, rectangles
from accelviz.plots.style import BLACK, BLUE, GREY, ORANGE, TURNS, VERMILLION, paler, tell, tidy
from accelviz.strategies.bits.packing import WORD_BITS

#: Planes beside each other, and how much higher a name stands than the one below it.
_PLANES, _APART = 4, 1.13


def bit_planes(tensor: BitTensor, *, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Draw the bits of a tensor, a panel for each plane, and where its words begin.

    A filled cell is a one. The lowest plane comes first; lines separate words of 32 bits, along the
    rows of a left operand and down the columns of a right one.

    Parameters
    ----------
    tensor : BitTensor
    """
    planes = tensor.planes
    down, across = -(-len(planes) // _PLANES), min(len(planes), _PLANES)
    panels = new_panels(axes, (2.8 * across + 0.4, 2.8 * down + 0.3), down, across)
    rows, columns = tensor.shape
    left = tensor.side == "left"
    for plane, ax in enumerate(panels):
        if plane >= len(planes):
            ax.set_axis_off()
            continue
        look: Look = {
            "cmap": ListedColormap([paler(BLUE, 0.12), to_rgb(BLUE)]),
            "vmin": 0,
            "vmax": 1,
        }
        ax.imshow(planes[plane], interpolation="nearest", aspect="auto", **look)
        for first in range(WORD_BITS, columns if left else rows, WORD_BITS):
            (ax.axvline if left else ax.axhline)(first - 0.5, color=ORANGE, linewidth=1)
        ax.set_title(f"plane {plane}, worth {1 << plane}", fontsize=10)
        count_ticks(ax.xaxis, ax.yaxis, most=5)
    ones = int(sum(int(plane.sum()) for plane in planes))
    about = f"{rows} by {columns} numbers of {tensor.bits} bits in {tensor.nbytes:,} bytes"
    tell(panels[0], f"{about}: {len(planes)} planes, {ones:,} ones.")
    return panels


def jumped_tiles(A: BitTensor, rows: int = 8, width: int = 128, *, ax: Axes | None = None) -> Axes:
    """Draw which tiles of a left operand are multiplied; the others are zero and jumped over.

    Parameters
    ----------
    A : BitTensor
        Of single bits, such as the edges of a batch.
    rows, width : int
        Of a tile.
    """
    ax = new_axes(ax, figsize=(6.4, 5))
    row, column = np.nonzero(A.planes.any(axis=0))
    height, wide = A.shape
    grid = -(-height // rows), -(-wide // width)
    used = np.unique(row // rows * grid[1] + column // width)
    top, start = used // grid[1] * rows, used % grid[1] * width
    shade: Look = {"facecolors": paler(ORANGE, 0.3), "edgecolors": ORANGE, "linewidths": 0.5}
    rectangles(
        ax, start, np.minimum(start + width, wide), top, np.minimum(top + rows, height), **shade
    )
    ax.scatter(column + 0.5, row + 0.5, s=max(0.3, 900 / max(wide, 1)), color=BLUE, linewidths=0)
    tiles = grid[0] * grid[1]
    share = 1 - used.size / tiles if tiles else 0.0
    ax.set(xlim=(0, max(wide, 1)), ylim=(max(height, 1), 0), xlabel="column", ylabel="row")
    title = f"{used.size:,} of {tiles:,} tiles of {rows} x {width} are multiplied"
    ax.set_title(f"{title}, {share:.0%} jumped over", loc="left", fontsize=10)
    count_ticks(ax.xaxis, ax.yaxis, most=6)
    tell(ax, f"{title}; {row.size:,} ones of a matrix of {height:,} by {wide:,}.")
    return tidy(ax)


def bits_crossover(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw times of sparse sums against the density, and of dense products across it.

    Parameters
    ----------
    table : DataFrame
        Of `benchmarks/measure/bits.py density`, of one number of columns: `algorithm`, `bits`,
        `density` (1 of dense products) and `median_us`.
    """
    ax = new_axes(ax, figsize=(7.4, 4.2))
    table = table[table["density"].notna() & (table["density"] > 0)]
    sparse, dense = table[table["density"] < 1], table[table["density"] == 1]
    for (bits, sums), colour in zip(sparse.groupby("bits"), (*TURNS[:2], BLACK), strict=False):
        ax.plot(
            sums["density"], sums["median_us"], "o-", color=colour, label=f"sparse, {bits} bits"
        )
    low, high = sparse["density"].min(), sparse["density"].max()
    written = 0.0
    for time, row in dense.sort_values("median_us").set_index("median_us", drop=False).iterrows():
        library = row["algorithm"] == "cublas int8"
        look: Look = {"color": VERMILLION if library else GREY}
        ax.plot([low, high], [time] * 2, "--", linewidth=1, **look)
        name = "cuBLAS INT8" if library else f"1 x {row['bits']} bits"
        written = max(time, written * _APART)  # names of equal times stand above each other
        ax.text(high * 1.06, written, name, va="center", fontsize=8, **look)
    ax.set(xscale="log", yscale="log", xlabel="density of A", ylabel="microseconds")
    ax.legend(fontsize=8, frameon=False)
    tell(ax, f"Sparse sums rise with the density; {len(dense)} dense products take one time each.")
    return tidy(ax)
