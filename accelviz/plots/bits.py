"""Bits: planes and words of a tensor, tiles that are jumped over, and when few bits pay."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize

from accelviz.bits.tensor import BitTensor
from accelviz.plots import draw
from accelviz.plots.style import BLACK, BLUE, CYCLE, GREY, ORANGE, VERMILLION, Look, add_alt, paler
from accelviz.strategies.bits.packing import WORD_BITS

#: Planes beside each other, and how much higher a name stands than the one below it.
_PLANES, _APART = 4, 1.13


def bit_planes(tensor: BitTensor) -> list[Axes]:
    """Draw the bits of a tensor, a panel for each plane, and where its words begin.

    A filled cell is a one. The lowest plane comes first; lines separate words of 32 bits, along the
    rows of a left operand and down the columns of a right one.

    Parameters
    ----------
    tensor : BitTensor
    """
    planes = tensor.planes
    down, across = -(-len(planes) // _PLANES), min(len(planes), _PLANES)
    panels = draw.new_panels((2.8 * across + 0.4, 2.8 * down + 0.3), down, across)
    rows, columns = tensor.shape
    left = tensor.side == "left"
    colours = ListedColormap([paler(BLUE, 0.12), paler(BLUE, 1)])
    for ax in panels[len(planes) :]:
        ax.set_axis_off()
    for plane, (ax, bits) in enumerate(zip(panels, planes, strict=False)):
        draw.cells(ax, bits, colours, Normalize(0, 1))
        for first in range(WORD_BITS, columns if left else rows, WORD_BITS):
            (ax.axvline if left else ax.axhline)(first - 0.5, color=ORANGE, linewidth=1)
        ax.set_title(f"plane {plane}, worth {1 << plane}", fontsize=10)
        draw.count_ticks(ax.xaxis, ax.yaxis, most=5)
    size = f"{rows} by {columns} numbers of {tensor.bits} bits in {tensor.nbytes:,} bytes"
    add_alt(panels[0], f"{size}: {len(planes)} planes, {np.count_nonzero(planes):,} ones.")
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
    ax = draw.new_axes(ax, figsize=(6.4, 5))
    row, column = np.nonzero(A.planes.any(axis=0))
    height, wide = A.shape
    tiles = -(-height // rows) * -(-wide // width)
    top, left = np.unique([row // rows * rows, column // width * width], axis=1)
    end, bottom = np.minimum(left + width, wide), np.minimum(top + rows, height)
    shade: Look = {"facecolors": paler(ORANGE, 0.3), "edgecolors": ORANGE, "linewidths": 0.5}
    draw.rectangles(ax, left, end, top, bottom, **shade)
    ax.scatter(column + 0.5, row + 0.5, s=max(0.3, 900 / max(wide, 1)), color=BLUE, linewidths=0)
    ax.set(xlim=(0, max(wide, 1)), ylim=(max(height, 1), 0), xlabel="column", ylabel="row")
    title = f"{top.size:,} of {tiles:,} tiles of {rows} x {width} are multiplied"
    jumped = 1 - top.size / tiles if tiles else 0.0
    ax.set_title(f"{title}, {jumped:.0%} jumped over", loc="left", fontsize=10)
    draw.count_ticks(ax.xaxis, ax.yaxis, most=6)
    return draw.finish(ax, f"{title}; {row.size:,} ones of a matrix of {height:,} by {wide:,}.")


def bits_crossover(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw times of sparse sums against the density, and of dense products across it.

    Parameters
    ----------
    table : DataFrame
        Of `benchmarks/measure/bits.py density`, of one number of columns: `algorithm`, `bits`,
        `density` (1 of dense products) and `median_us`.
    """
    ax = draw.new_axes(ax, figsize=(7.4, 4.2))
    table = table[table["density"] > 0]
    sparse, dense = table[table["density"] < 1], table[table["density"] == 1]
    for (width, rows), colour in zip(sparse.groupby("bits"), (*CYCLE[:2], BLACK), strict=False):
        label = f"sparse, {width} bits"
        ax.plot(rows["density"], rows["median_us"], "o-", color=colour, label=label)
    low, high = sparse["density"].min(), sparse["density"].max()
    written = 0.0
    for row in dense.sort_values("median_us").itertuples():
        library = row.algorithm == "cublas int8"
        look: Look = {"color": VERMILLION if library else GREY}
        ax.plot([low, high], [row.median_us] * 2, "--", linewidth=1, **look)
        name = "cuBLAS INT8" if library else f"1 x {row.bits} bits"
        written = max(row.median_us, written * _APART)  # names of equal times stand in a column
        ax.text(high * 1.06, written, name, va="center", fontsize=8, **look)
    ax.set(xscale="log", yscale="log", xlabel="density of A", ylabel="microseconds")
    ax.legend(fontsize=8, frameon=False)
    alt = f"Sparse sums rise with the density; {len(dense)} dense products take one time each."
    return draw.finish(ax, alt)
