"""Pieces of pictures: panels, rectangles, images, ticks, titles, labels beside each other."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PolyCollection
from matplotlib.image import AxesImage
from matplotlib.ticker import Formatter, LogLocator, MaxNLocator, NullFormatter
from scipy.optimize import isotonic_regression

from accelviz.plots.style import GREY, HALO, Look, add_alt, ink, new_figure, tidy

#: Coordinates of `beside`: a fraction of the axes across or up, and data the other way.
ACROSS, UP = ("axes fraction", "data"), ("data", "axes fraction")
_NO_BREAK = "\N{NO-BREAK SPACE}"
#: Points from one label to the next.
_GAP = 11.5
#: Points that a bold letter of 11 points is wide, a little less than in the widest words.
_LETTER = 6.6
#: Inches of a figure's width that its panels have together, and of a letter of one point.
_WIDTH, _POINT = 9.0, 0.0076


def new_axes(ax: Axes | None, **figure_options: Any) -> Axes:
    """Return `ax`, or the axes of a new figure."""
    return new_figure(**figure_options).subplots() if ax is None else ax


def new_panels(size: tuple[float, float], down: int, across: int, **options: Any) -> list[Axes]:
    """Return the axes of a new figure of this size in inches, line by line."""
    return list(new_figure(figsize=size).subplots(down, across, squeeze=False, **options).flat)


def finish(ax: Axes, alt: str, title: str = "") -> Axes:
    """Give a picture its title and a sentence of alt text, remove idle edges, and return it."""
    if title:
        write_title(ax, title)
    add_alt(ax, alt)
    return tidy(ax)


def label_empty(ax: Axes, reason: str) -> None:
    """Say in the middle of empty axes why they are empty."""
    ax.text(0.5, 0.5, reason, ha="center", va="center", transform=ax.transAxes, color=GREY)


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Return width and height of `ax` in points, as far as known before the figure is laid out."""
    box = ax.get_window_extent()
    scale = 72 / ax.figure.dpi
    return box.width * scale, box.height * scale


def fractions(ax: Axes, values: Any, axis: int = 0) -> Any:
    """Return where along x (`axis` 0) or y (1) data lie, 0 to 1; limits and scales are final."""
    values = np.asarray(values, dtype=float)
    # The other coordinate, which nobody reads, has to be one that its scale can place.
    pairs = np.full((values.size, 2), (ax.get_ylim, ax.get_xlim)[axis]()[1], dtype=float)
    pairs[:, axis] = values.ravel()
    places = (ax.transScale + ax.transLimits).transform(pairs)[:, axis]
    return places.reshape(values.shape) if values.shape else float(places[0])


def rectangles(
    ax: Axes, start: Any, end: Any, top: Any, bottom: Any, **options: Any
) -> PolyCollection:
    """Draw rectangles given as arrays of shape (n,) or numbers, and return them.

    The options are those of `PolyCollection`. The limits of `ax` stay as they are.
    """
    sides = np.broadcast_arrays(start, top, end, top, end, bottom, start, bottom)
    corners = np.stack(sides, axis=1).reshape(-1, 4, 2)
    collection = PolyCollection(list(corners), **options)
    ax.add_collection(collection, autolim=False)
    return collection


def cells(ax: Axes, values: Any, colours: Any, norm: Any, **options: Any) -> AxesImage:
    """Draw numbers as coloured cells; what is masked or NaN stays blank."""
    look: Look = {"aspect": "auto", "interpolation": "nearest"} | options
    return ax.imshow(np.ma.masked_invalid(values), cmap=colours, norm=norm, **look)


def write_centred(
    ax: Axes, x: float, y: float, text: Any, face: Any, size: float, **options: Any
) -> None:
    """Write text around a point of an area of colour `face`, in black or white."""
    look: Look = {"ha": "center", "va": "center", "color": ink(face), "fontsize": size} | options
    ax.text(x, y, str(text), **look)


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


def write_heading(ax: Axes, text: str, size: float = 10.5, **options: Any) -> None:
    """Write a bold title on the left."""
    ax.set_title(text, loc="left", fontsize=size, fontweight="bold", **options)


def write_title(ax: Axes, sentence: str) -> None:
    """Write a sentence above a picture, on the left, in as many lines as its width asks for."""
    # It may reach beyond axes that have the figure to themselves.
    alone = len(ax.figure.axes) == 1
    width = 0.88 * ax.figure.bbox.width if alone else ax.get_window_extent().width
    letters = int(width / ax.figure.dpi * 72 / _LETTER)
    # A number stays with its unit, and "12 x 32" together.
    whole = re.sub(r"(?<=\d) (?=\S)|(?<= x) (?=\d)", _NO_BREAK, sentence)
    text = "\n".join(textwrap.wrap(whole, max(24, letters), break_on_hyphens=False))
    write_heading(ax, text.replace(_NO_BREAK, " "), 11)


def wrap(text: str, panels: float, size: float) -> str:
    """Break text of so many points into lines that fit one of `panels` panels side by side."""
    return textwrap.fill(text, max(12, int(_WIDTH / panels / (size * _POINT))))


def annotate(
    ax: Axes, text: str, at: tuple[Any, Any], shift: tuple[float, float], **options: Any
) -> None:
    """Write text at a place, shifted by so many points; the options are those of `annotate`."""
    ax.annotate(text, at, shift, textcoords="offset points", **options)


def write_above(ax: Axes, text: str, up: float, size: float, **options: Any) -> None:
    """Write text above a panel, `up` points up, for which the layout makes no room."""
    look: Look = {"xycoords": "axes fraction", "in_layout": False, "color": GREY} | options
    annotate(ax, text, (0, 1), (0, up), fontsize=size, **look)


def pluralize(number: int, noun: str, plural: str = "s") -> str:
    """Write a number of things: "1 row", "2,000 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def label_points(
    ax: Axes,
    spots: Sequence[tuple[float, float, str, Any]],
    side: int = 1,
    *,
    distance: float = 22,
    xycoords: Any = "data",
) -> npt.NDArray[np.float64]:
    """Write what points are, so many points right (1) or left (-1) of them.

    A spot is x and y, a text and a colour. Texts that would lie on each other are moved apart, with
    a thin line back; how far up is returned, in ascending order of y. The limits and scales of `ax`
    must be final.
    """
    spots = sorted(spots, key=lambda spot: spot[1])
    heights = fractions(ax, [spot[1] for spot in spots], 1) * size_in_points(ax)[1]
    shifts: npt.NDArray[np.float64] = moved_apart(heights, _GAP) - heights
    look: Look = {"ha": "left" if side > 0 else "right", "va": "center", "fontsize": 9}
    look |= {"annotation_clip": False, "path_effects": HALO, "zorder": 6, "xycoords": xycoords}
    for (x, y, text, colour), shift in zip(spots, shifts, strict=True):
        line = {"arrowstyle": "-", "color": colour, "lw": 0.7, "shrinkA": 0, "shrinkB": 0}
        annotate(ax, text, (x, y), (distance * side, shift), color=colour, arrowprops=line, **look)
    return shifts


def label_ends(ax: Axes, ends: Sequence[tuple[float, str, Any]], heading: str = "") -> None:
    """Write beside the right edge what ends there, as `label_points` does, and a heading above it.

    An end is a y in data coordinates, a text and a colour; one that is not finite is left out.
    """
    spots = [(1.0, *end) for end in ends if np.isfinite(end[0])]
    if not spots:
        return
    highest = label_points(ax, spots, distance=12, xycoords=ACROSS)[-1]
    if heading:
        top = (1, max(spot[1] for spot in spots))
        look: Look = {"xycoords": ACROSS, "va": "bottom", "color": GREY, "annotation_clip": False}
        annotate(ax, heading, top, (12, highest + 0.7 * _GAP), fontsize=9, **look)


def moved_apart(heights: npt.NDArray[np.float64], gap: float) -> npt.NDArray[np.float64]:
    """Move ascending heights apart to at least `gap`, each run of close ones about its middle."""
    if not heights.size:
        return heights
    steps = gap * np.arange(heights.size)
    apart: npt.NDArray[np.float64] = isotonic_regression(heights - steps).x + steps
    return apart
