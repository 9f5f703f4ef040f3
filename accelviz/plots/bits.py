"""Pictures of bit tensors: bit planes, skipped zero tiles, and times against the density."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize

from accelviz.bits.tensor import BitTensor
from accelviz.plots import draw
from accelviz.plots.style import BLACK, BLUE, CYCLE, GREY, ORANGE, VERMILLION, Look, add_alt, paler
from accelviz.strategies.bits.packing import WORD_BITS

#: Panels per row, and smallest ratio of the heights of two labels.
_PANELS_ACROSS, _LABEL_RATIO = 4, 1.13


def bit_planes(tensor: BitTensor) -> list[Axes]:
    """Draw the bits of a tensor, one panel per bit plane, with its word boundaries.

    A filled cell is a 1. The first plane has the lowest bits. Lines separate words of 32 bits:
    along the rows of a left operand, along the columns of a right one.
    """
    planes = tensor.planes
    down, across = -(-len(planes) // _PANELS_ACROSS), min(len(planes), _PANELS_ACROSS)
    panels = draw.new_panels((2.8 * across + 0.4, 2.8 * down + 0.3), down, across)
    rows, columns = tensor.shape
    is_left = tensor.side == "left"
    colours = ListedColormap([paler(BLUE, 0.12), paler(BLUE, 1)])
    for ax in panels[len(planes) :]:
        ax.set_axis_off()
    for plane, (ax, bits) in enumerate(zip(panels, planes, strict=False)):
        draw.cells(ax, bits, colours, Normalize(0, 1))
        for first in range(WORD_BITS, columns if is_left else rows, WORD_BITS):
            (ax.axvline if is_left else ax.axhline)(first - 0.5, color=ORANGE, linewidth=1)
        ax.set_title(f"plane {plane}, worth {1 << plane}", fontsize=10)
        draw.count_ticks(ax.xaxis, ax.yaxis, most=5)
    size = f"{rows} by {columns} numbers of {tensor.bits} bits in {tensor.nbytes:,} bytes"
    add_alt(panels[0], f"{size}: {len(planes)} planes, {np.count_nonzero(planes):,} ones.")
    return panels


def jumped_tiles(A: BitTensor, rows: int = 8, width: int = 128, *, ax: Axes | None = None) -> Axes:
    """Draw the tiles of a left operand that are multiplied; zero tiles are skipped.

    Parameters
    ----------
    A : BitTensor
        Tensor of 1-bit numbers, such as the edges of a batch.
    rows, width : int
        Shape of a tile.
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
    """Draw the times of sparse products against the density, and of dense products as lines.

    Parameters
    ----------
    table : DataFrame
        Records of `benchmarks/measure/bits.py density` with one number of columns: `algorithm`,
        `bits`, `density` (1 for dense products) and `median_us`.
    """
    ax = draw.new_axes(ax, figsize=(7.4, 4.2))
    table = table[table["density"] > 0]
    sparse, dense = table[table["density"] < 1], table[table["density"] == 1]
    for (width, rows), colour in zip(sparse.groupby("bits"), (*CYCLE[:2], BLACK), strict=False):
        label = f"sparse, {width} bits"
        ax.plot(rows["density"], rows["median_us"], "o-", color=colour, label=label)
    low, high = sparse["density"].min(), sparse["density"].max()
    label_y = 0.0
    for row in dense.sort_values("median_us").itertuples():
        is_library = row.algorithm == "cublas int8"
        look: Look = {"color": VERMILLION if is_library else GREY}
        ax.plot([low, high], [row.median_us] * 2, "--", linewidth=1, **look)
        name = "cuBLAS INT8" if is_library else f"1 x {row.bits} bits"
        label_y = max(row.median_us, label_y * _LABEL_RATIO)  # labels must not overlap
        ax.text(high * 1.06, label_y, name, va="center", fontsize=8, **look)
    ax.set(xscale="log", yscale="log", xlabel="density of A", ylabel="microseconds")
    ax.legend(fontsize=8, frameon=False)
    alt = f"Sparse sums rise with the density; {len(dense)} dense products take one time each."
    return draw.finish(ax, alt)
