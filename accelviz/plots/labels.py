"""Titles, and labels that do not lie on each other."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from accelviz.plots.drawing import Look, points
from accelviz.plots.style import GREY

#: Keeps a text readable on lines and colours.
HALO = [withStroke(linewidth=3, foreground="white")]
_NO_BREAK = "\N{NO-BREAK SPACE}"
#: Points from one label to the next.
_GAP = 11.5
#: Points that a bold letter of 11 points is wide, a little less than in the widest words.
_LETTER = 6.6
#: Inches of a figure's width that its panels have together, and of a letter of one point.
_WIDTH, _POINT = 9.0, 0.0076


def head(ax: Axes, text: str, size: float = 10.5, **options: Any) -> None:
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
    head(ax, text.replace(_NO_BREAK, " "), 11)


def wrapped(text: str, panels: float, size: float) -> str:
    """Break text of so many points into lines that fit one of `panels` panels side by side."""
    return textwrap.fill(text, max(12, int(_WIDTH / panels / (size * _POINT))))


def beside(
    ax: Axes, text: str, at: tuple[Any, Any], shift: tuple[float, float], **options: Any
) -> None:
    """Write text at a place, shifted by so many points; the options are those of `annotate`."""
    ax.annotate(text, at, shift, textcoords="offset points", **options)


def counted(number: int, what: str, plural: str = "s") -> str:
    """Write a number of things: "1 row", "2,000 rows"."""
    return f"{number:,} {what}{'' if number == 1 else plural}"


def label_ends(ax: Axes, ends: Sequence[tuple[float, str, Any]], heading: str = "") -> None:
    """Write beside the right edge what ends there, and a heading above it.

    An end is a y in data coordinates, a text and a colour; one that is not finite is left out.
    Texts that would lie on each other are moved apart, with a thin line back. The limits and scales
    of `ax` must be final.
    """
    ends = sorted((end for end in ends if np.isfinite(end[0])), key=lambda end: end[0])
    if not ends:
        return
    shifts = _shifts(ax, [end[0] for end in ends])
    edge: Look = {"xycoords": ("axes fraction", "data"), "fontsize": 9}
    for (value, text, colour), shift in zip(ends, shifts, strict=True):
        _label(ax, (1, value), (12, shift), text, colour, **edge)
    if heading:
        above = (12, shifts[-1] + 0.7 * _GAP)
        edge |= {"va": "bottom", "color": GREY, "annotation_clip": False}
        beside(ax, heading, (1, ends[-1][0]), above, **edge)


def label_points(ax: Axes, spots: Sequence[tuple[float, float, str, Any]], side: int = 1) -> None:
    """Write what points are, right (1) or left (-1) of them, as `label_ends` does.

    A spot is x and y in data coordinates, a text and a colour.
    """
    spots = sorted(spots, key=lambda spot: spot[1])
    shifts = _shifts(ax, [spot[1] for spot in spots])
    for (x, y, text, colour), shift in zip(spots, shifts, strict=True):
        _label(ax, (x, y), (22 * side, shift), text, colour, fontsize=9)


def _shifts(ax: Axes, values: Sequence[float]) -> npt.NDArray[np.float64]:
    """Points that labels at ascending values are moved up, so that none lies on another."""
    to_axes = ax.transScale + ax.transLimits
    x = ax.get_xlim()[1]
    wanted = np.array([to_axes.transform((x, value))[1] for value in values]) * points(ax)[1]
    return moved_apart(wanted, _GAP) - wanted


def _label(
    ax: Axes, at: tuple[float, float], shift: tuple[float, float], text: str, colour: Any, **of: Any
) -> None:
    line = {"arrowstyle": "-", "color": colour, "lw": 0.7, "shrinkA": 0, "shrinkB": 0}
    of |= {"ha": "left" if shift[0] > 0 else "right", "va": "center", "color": colour}
    of |= {"annotation_clip": False, "path_effects": HALO, "zorder": 6}
    beside(ax, text, at, shift, arrowprops=line, **of)


def moved_apart(places: npt.NDArray[np.float64], gap: float) -> npt.NDArray[np.float64]:
    """Move ascending places apart to at least `gap`, each run of close ones about its middle."""
    groups = [[place] for place in places.tolist()]
    middles = places.tolist()
    i = 0
    while i + 1 < len(groups):
        if middles[i + 1] - middles[i] >= gap * (len(groups[i]) + len(groups[i + 1])) / 2:
            i += 1
            continue
        groups[i] += groups.pop(i + 1)
        middles.pop(i + 1)
        middles[i] = float(np.mean(groups[i]))
        i = max(0, i - 1)
    moved = [
        middle + gap * (k - (len(group) - 1) / 2)
        for group, middle in zip(groups, middles, strict=True)
        for k in range(len(group))
    ]
    return np.array(moved)
