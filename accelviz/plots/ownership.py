"""Where the nonzeros of a matrix lie, and which block handles which of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize

from accelviz.analysis.ownership import OwnershipMap, ownership_map
from accelviz.errors import ArgumentError
from accelviz.plans import Plan
from accelviz.plots.drawing import Look, cells, count_ticks, nothing, points
from accelviz.plots.labels import counted
from accelviz.plots.style import TURNS, VERMILLION, ink, new_figure, tell

#: Blocks in turn, where each nonzero is a cell. Neighbors differ with any kind of colour vision.
_BLOCK_COLOURS = (*TURNS, VERMILLION)
#: First to last block, where cells are coloured by a mean. The palest yellow would not show.
_FIRST_TO_LAST = ListedColormap(colormaps["plasma"](np.linspace(0, 0.88, 256)), name="blocks")
#: Opacity of the cells with the fewest nonzeros.
_FAINTEST = 0.35
#: Sides up to which the entries of a matrix are parted by lines.
_GRID_LIMIT = 60


def block_ownership(*maps: Plan | OwnershipMap, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Draw where the nonzeros of a matrix lie, coloured by the block that handles them.

    Parameters
    ----------
    *maps : Plan or OwnershipMap
        Plans, or what `ownership_map` makes of them with options: two strategies, or two orders of
        the rows, side by side. Where a map is exact, each cell is a nonzero, the colours take
        turns, and the block's number is written where there is room. Else a cell's hue is the mean
        number of its nonzeros' blocks, and its paleness shows how few nonzeros it has. A key
        explains both.

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
    most = max((int(each.counts.max(initial=1)) for each in coarse), default=1)
    for ax, each in zip(axes, shown, strict=True):
        n_rows, n_cols = each.shape
        label = "row" if each.order == "caller" else "row, in the kernel's order"
        ax.set(xlabel="column", ylabel=label, aspect="equal" if n_rows == n_cols else "auto")
        ax.set(xlim=(-0.5, max(n_cols, 1) - 0.5), ylim=(max(n_rows, 1) - 0.5, -0.5))
        for axis, length in ((ax.xaxis, n_cols), (ax.yaxis, n_rows)):
            count_ticks(axis, most=10 if length <= _GRID_LIMIT else 4, least=1)
        title = f"{each.strategy}, {each.order}'s row order: {counted(each.n_blocks, 'block')}"
        ax.set_title(f"{title}\n{_reach(each)}", loc="left", fontsize=10)
        if not each.counts.any():
            nothing(ax, "no nonzero")
        elif each.exact:
            _entries(ax, each)
        else:
            _cells(ax, each, most)
        said = (
            f"The {int(each.counts.sum()):,} nonzeros of {each.graph}, rows in the {each.order}'s "
            f"order, coloured by which of {each.n_blocks:,} blocks of {each.strategy} handles them"
        )
        tell(ax, f"{said}: {_reach(each)}.".replace("\n", "; "))
    if any(each.counts.any() for each in coarse):
        last = max(i for i, each in enumerate(shown) if not each.exact)
        _key(axes[last], coarse, most)
    return list(axes)


def _reach(each: OwnershipMap) -> str:
    if not each.rows_apart:
        return "no nonzero"
    text = f"a block's work spans {_number(each.rows_apart)} rows on average"
    if not each.exact:
        text += f"\nblocks within a cell differ by \N{PLUS-MINUS SIGN}{_number(each.spread)}"
    return text


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _entries(ax: Axes, each: OwnershipMap) -> None:
    turns = [_BLOCK_COLOURS[i % len(_BLOCK_COLOURS)] for i in range(max(2, each.n_blocks))]
    norm = Normalize(-0.5, len(turns) - 0.5)
    cells(ax, each.mean_block, ListedColormap(turns), norm, aspect=ax.get_aspect())
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
        block = int(each.mean_block[row, column])
        look: Look = {"ha": "center", "va": "center", "color": ink(turns[block])}
        ax.text(column, row, str(block), fontsize=size, **look)


def _cells(ax: Axes, each: OwnershipMap, most: int) -> None:
    n_rows, n_cols = each.shape
    look: Look = {"alpha": _opacity(each.counts, most), "aspect": ax.get_aspect()}
    look["extent"] = (-0.5, n_cols - 0.5, n_rows - 0.5, -0.5)
    cells(ax, each.mean_block, _FIRST_TO_LAST, Normalize(0, max(1, each.n_blocks - 1)), **look)
    lines, columns = each.counts.shape
    cell = f"a cell is {_number(n_rows / lines)} x {_number(n_cols / columns)} entries"
    ax.set_xlabel(f"column ({cell})")


def _opacity(counts: npt.NDArray[Any], most: int) -> npt.NDArray[np.float64]:
    """From `_FAINTEST` for one nonzero to 1 for `most`, even steps for equal factors."""
    share = np.log(np.maximum(counts, 1)) / np.log(max(most, 2))
    return _FAINTEST + (1 - _FAINTEST) * share


def _key(ax: Axes, maps: Sequence[OwnershipMap], most: int) -> None:
    """Explain hue (blocks, upwards) and paleness (nonzeros, to the right) right of `ax`."""
    key = ax.inset_axes((1.06, 0.3, 0.13, 0.4))
    counts = np.geomspace(1, max(most, 2), 24)
    shades = np.linspace(0, 1, 64)[:, None].repeat(counts.size, axis=1)
    look: Look = {"alpha": _opacity(counts, most)[None].repeat(64, axis=0), "aspect": "auto"}
    key.imshow(shades, cmap=_FIRST_TO_LAST, extent=(0, np.log10(max(most, 2)), 1, 0), **look)
    numbers = {each.n_blocks for each in maps}
    last = f"last ({numbers.pop() - 1:,})" if len(numbers) == 1 else "last"
    key.yaxis.tick_right()
    key.set_yticks([0, 1], ["first", last], fontsize=8)
    key.set_xticks([0, np.log10(max(most, 2))], ["1", f"{max(most, 2):,}"], fontsize=8)
    key.set_title("mean block\nof a cell", fontsize=9, loc="left")
    key.set_xlabel("its nonzeros", fontsize=9)
