"""Where the nonzeros of a matrix lie, and which block handles which of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from matplotlib.image import AxesImage

from accelviz.analysis.ownership import OwnershipMap, ownership_map
from accelviz.errors import ArgumentError
from accelviz.plans import Plan
from accelviz.plots import draw
from accelviz.plots.style import TURNS, VERMILLION, new_figure, tell

#: Blocks in turn, where each nonzero is a cell. Neighbors differ with any kind of colour vision.
_BLOCK_COLOURS = (*TURNS, VERMILLION)
#: One block to many. The palest yellow would not show.
_ONE_TO_MANY = ListedColormap(colormaps["plasma"](np.linspace(0.88, 0, 256)), name="blocks")
#: Sides up to which the entries of a matrix are parted by lines.
_GRID_LIMIT = 60


def block_ownership(*maps: Plan | OwnershipMap, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Draw where the nonzeros of a matrix lie, coloured by the block that handles them.

    Parameters
    ----------
    *maps : Plan or OwnershipMap
        Plans, or what `ownership_map` makes of them with options: two strategies, or two orders of
        the rows, side by side. Where a map is exact, each cell is a nonzero, the colours take
        turns, and the block's number is written where there is room. Else a cell's colour says how
        many blocks have nonzeros in it, on one scale for all maps.

    Raises
    ------
    ArgumentError
        If there is no map.
    """
    if not maps:
        raise ArgumentError("maps", "no map", "at least one Plan or OwnershipMap")
    ownerships = [ownership_map(plan) if isinstance(plan, Plan) else plan for plan in maps]
    if axes is None:
        figure = new_figure(figsize=(4.7 * len(ownerships) + 0.7, 5.0))
        figure.set_layout_engine("compressed")  # square panels stay next to ownership other
        axes = list(figure.subplots(1, len(ownerships), squeeze=False)[0])
    coarse = [ownership.blocks.max(initial=1) for ownership in ownerships if not ownership.exact]
    norm = LogNorm(1, max(2, *coarse, 2))
    # An order that all panels share tells none of them apart.
    same = len(ownerships) > 1 and len({ownership.order for ownership in ownerships}) == 1
    images = []
    for ax, ownership in zip(axes, ownerships, strict=True):
        n_rows, n_cols = ownership.shape
        label = "row" if ownership.order == "caller" else "row, in the kernel's order"
        ax.set(xlabel="column", ylabel=label, aspect="equal" if n_rows == n_cols else "auto")
        ax.set(xlim=(-0.5, max(n_cols, 1) - 0.5), ylim=(max(n_rows, 1) - 0.5, -0.5))
        for axis, length in ((ax.xaxis, n_cols), (ax.yaxis, n_rows)):
            draw.count_ticks(axis, most=10 if length <= _GRID_LIMIT else 4, least=1)
        order = "" if same else f", {ownership.order}'s row order"
        title, reach = f"{ownership.strategy}{order}", _reach(ownership)
        blocks = draw.counted(ownership.n_blocks, "block")
        ax.set_title(f"{title}: {blocks}\n{reach}", loc="left", fontsize=10)
        if not ownership.counts.any():
            draw.nothing(ax, "no nonzero")
        elif ownership.exact:
            _entries(ax, ownership)
        else:
            images.append(_cells(ax, ownership, norm))
        order = f"rows in the {ownership.order}'s order"
        alt = (
            f"The {ownership.counts.sum():,} nonzeros of {ownership.graph}, {order}, coloured by "
            f"which or how many of the {ownership.n_blocks:,} blocks of {ownership.strategy} "
            f"handle them: {reach}."
        )
        tell(ax, alt.replace("\n", "; "))
    if images:
        draw.colour_bar(images[-1].axes, images[-1], "blocks of a cell", shrink=0.6)
    return list(axes)


def _reach(ownership: OwnershipMap) -> str:
    if not ownership.rows_apart:
        return "no nonzero"
    text = f"a block's work spans {_number(ownership.rows_apart)} rows on average"
    if not ownership.exact:
        mean = _number(float(ownership.blocks[ownership.counts > 0].mean()))
        text += f"\na cell's nonzeros are of {mean} blocks on average"
    return text


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _entries(ax: Axes, ownership: OwnershipMap) -> None:
    turns = [_BLOCK_COLOURS[i % len(_BLOCK_COLOURS)] for i in range(max(2, ownership.n_blocks))]
    norm = Normalize(-0.5, len(turns) - 0.5)
    blocks = np.ma.masked_less(ownership.block, 0)
    draw.cells(ax, blocks, ListedColormap(turns), norm, aspect=ax.get_aspect())
    if ownership.n_blocks > len(_BLOCK_COLOURS):
        ax.set_xlabel(f"column ({len(_BLOCK_COLOURS)} colours take turns)")
    n_rows, n_cols = ownership.shape
    longest = max(n_rows, n_cols)
    if longest > _GRID_LIMIT:
        return
    ax.set_facecolor("#F7F7F7")
    ax.set_xticks(np.arange(n_cols + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(n_rows + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", lw=1.2 if longest < 30 else 0.6)
    ax.tick_params(which="minor", length=0)
    width, height = draw.points(ax)
    size = min(height / n_rows * 0.6, width / n_cols / len(str(ownership.n_blocks - 1)) * 1.3, 10)
    for (row, column), block in np.ndenumerate(ownership.block):
        if size >= 5 and block >= 0:
            draw.centred(ax, column, row, block, turns[block], size)


def _cells(ax: Axes, ownership: OwnershipMap, norm: LogNorm) -> AxesImage:
    n_rows, n_cols = ownership.shape
    lines, columns = ownership.counts.shape
    cell = f"a cell is {_number(n_rows / lines)} x {_number(n_cols / columns)} entries"
    ax.set_xlabel(f"column ({cell})")
    extent = (-0.5, n_cols - 0.5, n_rows - 0.5, -0.5)
    blocks = np.ma.masked_equal(ownership.blocks, 0)
    return draw.cells(ax, blocks, _ONE_TO_MANY, norm, aspect=ax.get_aspect(), extent=extent)
