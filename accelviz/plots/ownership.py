"""Where the nonzeros of a matrix lie, and which block handles which of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm, Normalize

from accelviz.analysis.ownership import OwnershipMap, ownership_map
from accelviz.errors import ArgumentError
from accelviz.plans import Plan
from accelviz.plots.drawing import Look, cells, colour_bar, count_ticks, nothing, points
from accelviz.plots.labels import counted
from accelviz.plots.style import TURNS, VERMILLION, ink, new_figure, tell

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
    shown = [ownership_map(each) if isinstance(each, Plan) else each for each in maps]
    if axes is None:
        figure = new_figure(figsize=(4.7 * len(shown) + 0.7, 5.0))
        figure.set_layout_engine("compressed")  # square panels stay next to each other
        axes = list(figure.subplots(1, len(shown), squeeze=False)[0])
    coarse = [each for each in shown if not each.exact]
    most = max((int(each.blocks.max(initial=1)) for each in coarse), default=1)
    # An order that all panels share tells none of them apart.
    same = len(shown) > 1 and len({each.order for each in shown}) == 1
    orders = {each.order: "" if same else f", {each.order}'s row order" for each in shown}
    for ax, each in zip(axes, shown, strict=True):
        n_rows, n_cols = each.shape
        label = "row" if each.order == "caller" else "row, in the kernel's order"
        ax.set(xlabel="column", ylabel=label, aspect="equal" if n_rows == n_cols else "auto")
        ax.set(xlim=(-0.5, max(n_cols, 1) - 0.5), ylim=(max(n_rows, 1) - 0.5, -0.5))
        for axis, length in ((ax.xaxis, n_cols), (ax.yaxis, n_rows)):
            count_ticks(axis, most=10 if length <= _GRID_LIMIT else 4, least=1)
        title = f"{each.strategy}{orders[each.order]}: {counted(each.n_blocks, 'block')}"
        ax.set_title(f"{title}\n{_reach(each)}", loc="left", fontsize=10)
        if not each.counts.any():
            nothing(ax, "no nonzero")
        elif each.exact:
            _entries(ax, each)
        else:
            _cells(ax, each, most)
        said = (
            f"The {int(each.counts.sum()):,} nonzeros of {each.graph}, rows in the {each.order}'s "
            f"order, coloured by which or how many of the {each.n_blocks:,} blocks of "
            f"{each.strategy} handle them"
        )
        tell(ax, f"{said}: {_reach(each)}.".replace("\n", "; "))
    drawn = [ax for ax, each in zip(axes, shown, strict=True) if not each.exact and ax.images]
    if drawn:
        colour_bar(drawn[-1], drawn[-1].images[0], "blocks of a cell", shrink=0.6)
    return list(axes)


def _reach(each: OwnershipMap) -> str:
    if not each.rows_apart:
        return "no nonzero"
    text = f"a block's work spans {_number(each.rows_apart)} rows on average"
    if not each.exact:
        mean = _number(float(each.blocks.sum() / max(1, np.count_nonzero(each.counts))))
        text += f"\na cell's nonzeros are of {mean} blocks on average"
    return text


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _entries(ax: Axes, each: OwnershipMap) -> None:
    turns = [_BLOCK_COLOURS[i % len(_BLOCK_COLOURS)] for i in range(max(2, each.n_blocks))]
    norm = Normalize(-0.5, len(turns) - 0.5)
    cells(ax, _masked(each, each.block), ListedColormap(turns), norm, aspect=ax.get_aspect())
    if each.n_blocks > len(_BLOCK_COLOURS):
        ax.set_xlabel(f"column ({len(_BLOCK_COLOURS)} colours take turns)")
    n_rows, n_cols = each.shape
    if max(n_rows, n_cols) > _GRID_LIMIT:
        return
    ax.set_facecolor("#F7F7F7")
    ax.set_xticks(np.arange(n_cols + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(n_rows + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", lw=1.2 if max(n_rows, n_cols) < 30 else 0.6)
    ax.tick_params(which="minor", length=0)
    width, height = points(ax)
    size = min(height / n_rows * 0.6, width / n_cols / len(str(each.n_blocks - 1)) * 1.3, 10)
    if size < 5:
        return
    for row, column in np.argwhere(each.counts).tolist():
        block = int(each.block[row, column])
        look: Look = {"ha": "center", "va": "center", "color": ink(turns[block])}
        ax.text(column, row, str(block), fontsize=size, **look)


def _cells(ax: Axes, each: OwnershipMap, most: int) -> None:
    n_rows, n_cols = each.shape
    look: Look = {"aspect": ax.get_aspect(), "extent": (-0.5, n_cols - 0.5, n_rows - 0.5, -0.5)}
    cells(ax, _masked(each, each.blocks), _ONE_TO_MANY, LogNorm(1, max(most, 2)), **look)
    lines, columns = each.counts.shape
    cell = f"a cell is {_number(n_rows / lines)} x {_number(n_cols / columns)} entries"
    ax.set_xlabel(f"column ({cell})")


def _masked(each: OwnershipMap, of_cells: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return np.where(each.counts > 0, of_cells.astype(np.float64), np.nan)
