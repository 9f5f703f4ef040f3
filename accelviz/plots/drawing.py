"""Pieces that pictures are made of: axes, rectangles, images, ticks, colour bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PolyCollection
from matplotlib.image import AxesImage
from matplotlib.ticker import Formatter, LogLocator, MaxNLocator, NullFormatter

from accelviz.plots.style import GREY, new_figure

#: Options of a drawing function by name.
Look = dict[str, Any]


def new_axes(ax: Axes | None, **figure_options: Any) -> Axes:
    """Return `ax`, or the axes of a new figure."""
    return new_figure(**figure_options).subplots() if ax is None else ax


def new_panels(
    axes: Sequence[Axes] | None, size: tuple[float, float], down: int, across: int, **options: Any
) -> list[Axes]:
    """Return `axes`, or those of a new figure of this size in inches, line by line."""
    if axes is not None:
        return list(axes)
    return list(new_figure(figsize=size).subplots(down, across, squeeze=False, **options).flat)


def nothing(ax: Axes, what: str) -> None:
    """Say in the middle of empty axes why they are empty."""
    ax.text(0.5, 0.5, what, ha="center", va="center", transform=ax.transAxes, color=GREY)


def points(ax: Axes) -> tuple[float, float]:
    """Return width and height of `ax` in points, as far as known before the figure is laid out."""
    box = ax.get_window_extent()
    scale = 72 / ax.figure.dpi
    return box.width * scale, box.height * scale


def rectangles(
    ax: Axes, left: Any, right: Any, top: Any, bottom: Any, **options: Any
) -> PolyCollection:
    """Draw rectangles given as arrays of shape (n,) or numbers, and return them.

    The options are those of `PolyCollection`. The limits of `ax` stay as they are.
    """
    sides = np.broadcast_arrays(left, top, right, top, right, bottom, left, bottom)
    corners = np.stack(sides, axis=1).reshape(-1, 4, 2)
    drawn = PolyCollection(list(corners), **options)
    ax.add_collection(drawn, autolim=False)
    return drawn


def cells(ax: Axes, values: Any, colours: Any, norm: Any, **options: Any) -> AxesImage:
    """Draw numbers as coloured cells; what is masked or NaN stays blank."""
    look: Look = {"aspect": "auto", "interpolation": "nearest"} | options
    return ax.imshow(np.ma.masked_invalid(values), cmap=colours, norm=norm, **look)


def colour_bar(ax: Axes | Sequence[Axes], image: Any, label: str, **options: Any) -> Any:
    """Put a colour bar beside one or more axes, and say what its colours mean."""
    first = ax if isinstance(ax, Axes) else ax[0]
    bar = first.figure.colorbar(image, ax=ax, **{"pad": 0.01, "aspect": 25} | options)
    bar.set_label(label, fontsize=9)
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    return bar


def count_ticks(*axes: Axis, most: int, least: int = 2) -> None:
    """Label whole numbers alone, about as many as said, with commas between the thousands."""
    for axis in axes:
        axis.set_major_locator(MaxNLocator(most, integer=True, min_n_ticks=least))
        axis.set_major_formatter("{x:,.0f}")


def log_ticks(axis: Axis, text: Formatter | str, span: float = np.inf) -> None:
    """Label a logarithmic axis at 1, 2, 5, 10 ..., or at powers of ten if it is over `span` long.

    `text` says how, and `span` is the last value over the first.
    """
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < span * low else (1,)))
    axis.set_major_formatter(text)
    axis.set_minor_formatter(NullFormatter())
