"""Helpers of pictures: panels, rectangles, images, ticks, titles, non-overlapping labels."""

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

from accelviz.plots.style import GREY, HALO, Look, add_alt, ink, new_figure, tidy

#: Coordinate systems for `annotate`: one coordinate is a fraction of the axes, the other data.
ACROSS, UP = ("axes fraction", "data"), ("data", "axes fraction")
#: A legend above a picture, on the left, where it covers nothing.
LEGEND_ABOVE: Look = {"loc": "lower left", "bbox_to_anchor": (-0.01, 0.99), "frameon": False}
_NO_BREAK = "\N{NO-BREAK SPACE}"
#: Smallest distance of labels in points.
_GAP = 11.5
#: Width in points of a bold letter of 11 points, slightly less than in the widest words.
_LETTER = 6.6
#: Total width of the panels of a figure, and width of a letter per point of font size, in inches.
_WIDTH, _POINT = 9.0, 0.0076


def new_axes(ax: Axes | None, **figure_options: Any) -> Axes:
    """Return `ax`, or the axes of a new figure."""
    return new_figure(**figure_options).subplots() if ax is None else ax


def new_panels(size: tuple[float, float], down: int, across: int, **options: Any) -> list[Axes]:
    """Return the axes of a new figure of `size` inches, row by row."""
    return list(new_figure(figsize=size).subplots(down, across, squeeze=False, **options).flat)


def finish(ax: Axes, alt: str, title: str = "") -> Axes:
    """Add a title and alt text to a picture, hide its upper and right edge, and return it."""
    if title:
        write_title(ax, title)
    add_alt(ax, alt)
    return tidy(ax)


def label_empty(ax: Axes, reason: str) -> None:
    """Write in the middle of empty axes why they are empty."""
    ax.text(0.5, 0.5, reason, ha="center", va="center", transform=ax.transAxes, color=GREY)


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Return width and height of `ax` in points, before the figure's layout is computed."""
    box = ax.get_window_extent()
    scale = 72 / ax.figure.dpi
    return box.width * scale, box.height * scale


def fractions(ax: Axes, values: Any, axis: int = 0) -> Any:
    """Return data as fractions of the x (`axis` 0) or y (1) axis; its limits must be final."""
    values = np.asarray(values, dtype=float)
    # The other coordinate is not used, but must be valid in its scale.
    pairs = np.full((values.size, 2), (ax.get_ylim, ax.get_xlim)[axis]()[1], dtype=float)
    pairs[:, axis] = values.ravel()
    result = (ax.transScale + ax.transLimits).transform(pairs)[:, axis]
    return result.reshape(values.shape) if values.shape else float(result[0])


def rectangles(
    ax: Axes, start: Any, end: Any, top: Any, bottom: Any, **options: Any
) -> PolyCollection:
    """Draw rectangles given as arrays of shape (n,) or numbers, and return them.

    The options are those of `PolyCollection`. The limits of `ax` do not change.
    """
    sides = np.broadcast_arrays(start, top, end, top, end, bottom, start, bottom)
    corners = np.stack(sides, axis=1).reshape(-1, 4, 2)
    collection = PolyCollection(list(corners), **options)
    ax.add_collection(collection, autolim=False)
    return collection


def cells(ax: Axes, values: Any, colours: Any, norm: Any, **options: Any) -> AxesImage:
    """Draw a matrix as coloured cells; masked and NaN cells are blank."""
    look: Look = {"aspect": "auto", "interpolation": "nearest"} | options
    return ax.imshow(np.ma.masked_invalid(values), cmap=colours, norm=norm, **look)


def write_centred(
    ax: Axes, x: float, y: float, text: Any, face: Any, size: float, **options: Any
) -> None:
    """Write text centred at a point, in black or white, readable on the colour `face`."""
    look: Look = {"ha": "center", "va": "center", "color": ink(face), "fontsize": size} | options
    ax.text(x, y, str(text), **look)


def colour_bar(ax: Axes | Sequence[Axes], image: Any, label: str, **options: Any) -> Any:
    """Add a labelled colour bar beside one or more axes."""
    first = ax if isinstance(ax, Axes) else ax[0]
    bar = first.figure.colorbar(image, ax=ax, **{"pad": 0.01, "aspect": 25} | options)
    bar.set_label(label, fontsize=9)
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    return bar


def count_ticks(*axes: Axis, most: int, least: int = 2) -> None:
    """Set ticks at integers, at most about `most`, with commas between thousands."""
    for axis in axes:
        axis.set_major_locator(MaxNLocator(most, integer=True, min_n_ticks=least))
        axis.set_major_formatter("{x:,.0f}")


def log_ticks(axis: Axis, text: Formatter | str, span: float = np.inf) -> None:
    """Set the ticks of a logarithmic axis to 1, 2, 5, 10, ..., in the format `text`.

    If the last value over the first is at least `span`, only powers of ten are ticks.
    """
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < span * low else (1,)))
    axis.set_major_formatter(text)
    axis.set_minor_formatter(NullFormatter())


def write_heading(ax: Axes, text: str, size: float = 10.5, **options: Any) -> None:
    """Write a bold title on the left."""
    ax.set_title(text, loc="left", fontsize=size, fontweight="bold", **options)


def write_title(ax: Axes, sentence: str, **options: Any) -> None:
    """Write a sentence as a title, on the left, wrapped to the width of the picture."""
    # The title of a single panel may be wider than the panel.
    is_single = len(ax.figure.axes) == 1
    width = 0.88 * ax.figure.bbox.width if is_single else ax.get_window_extent().width
    letters = int(width / ax.figure.dpi * 72 / _LETTER)
    # Do not break between a number and its unit, or within "12 x 32".
    unbroken = re.sub(r"(?<=\d) (?=\S)|(?<= x) (?=\d)", _NO_BREAK, sentence)
    text = "\n".join(textwrap.wrap(unbroken, max(24, letters), break_on_hyphens=False))
    write_heading(ax, text.replace(_NO_BREAK, " "), 11, **options)


def wrap(text: str, panels: float, size: float) -> str:
    """Wrap text of font size `size` to the width of one of `panels` panels side by side."""
    return textwrap.fill(text, max(12, int(_WIDTH / panels / (size * _POINT))))


def annotate(
    ax: Axes, text: str, xy: tuple[Any, Any], shift: tuple[float, float], **options: Any
) -> None:
    """Write text at `xy`, shifted by `shift` points; the options are those of `Axes.annotate`."""
    ax.annotate(text, xy, shift, textcoords="offset points", **options)


def write_above(ax: Axes, text: str, up: float, size: float, **options: Any) -> None:
    """Write text `up` points above a panel, by default without reserving space in the layout."""
    look: Look = {"xycoords": "axes fraction", "in_layout": False, "color": GREY} | options
    annotate(ax, text, (0, 1), (0, up), fontsize=size, **look)


def pluralize(number: int, noun: str, plural: str = "s") -> str:
    """Write a number with its noun: "1 row", "2,000 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def label_points(
    ax: Axes,
    spots: Sequence[tuple[float, float, str, Any]],
    side: int = 1,
    *,
    distance: float = 22,
    xycoords: Any = "data",
) -> npt.NDArray[np.float64]:
    """Label data points without overlaps, to the right (`side` 1) or left (-1) of the points.

    A spot is (x, y, text, colour). `distance` is in points. Overlapping labels are moved up or
    down, with a thin line to their point. The limits and scales of `ax` must be final. Return the
    shifts in points, in ascending order of y.
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
    """Label lines at the right edge without overlaps, with a heading above the labels.

    An end is (y, text, colour) with y in data coordinates. Ends that are not finite are omitted.
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
    """Return the closest ascending heights (least squares) with distances of at least `gap`."""
    if not heights.size:
        return heights
    steps = gap * np.arange(heights.size)
    from scipy.optimize import isotonic_regression  # slow to load: with SciPy's solvers

    apart: npt.NDArray[np.float64] = isotonic_regression(heights - steps).x + steps
    return apart
