"""Direct labels that do not lie on each other."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from accelviz.plots.style import GREY

#: Keeps a text readable on lines and colours.
HALO = [withStroke(linewidth=3, foreground="white")]
_NO_BREAK = "\N{NO-BREAK SPACE}"
#: Points from one label to the next.
_GAP = 11.5
#: Points that a bold letter of 11 points is wide, a little less than in the widest words.
_LETTER = 6.6


def write_title(ax: Axes, sentence: str) -> None:
    """Write a sentence above a picture, on the left, in as many lines as its width asks for."""
    # It may reach beyond axes that have the figure to themselves.
    alone = len(ax.figure.axes) == 1
    width = 0.88 * ax.figure.bbox.width if alone else ax.get_window_extent().width
    letters = int(width / ax.figure.dpi * 72 / _LETTER)
    # A number stays with its unit, and "12 x 32" together.
    whole = re.sub(r"(?<=\d) (?=\S)|(?<= x) (?=\d)", _NO_BREAK, sentence)
    text = "\n".join(textwrap.wrap(whole, max(24, letters), break_on_hyphens=False))
    ax.set_title(text.replace(_NO_BREAK, " "), loc="left", fontsize=11, fontweight="bold")


def label_ends(
    ax: Axes, ends: Sequence[tuple[float, str, Any]], heading: str = "", *, size: float = 9
) -> None:
    """Write beside the right edge what ends there.

    Parameters
    ----------
    ax : Axes
        Its limits and scales are final.
    ends : sequence of (y, text, colour)
        In data coordinates; one that is not finite is left out. Texts that would lie on each other
        are moved apart, with a thin line back.
    heading : str, optional
        Above all of them, in grey.
    size : float
        Of the letters, in points.
    """
    ends = sorted((end for end in ends if np.isfinite(end[0])), key=lambda end: end[0])
    if not ends:
        return
    shifts = _shifts(ax, [end[0] for end in ends])
    for (value, text, colour), shift in zip(ends, shifts, strict=True):
        _label(ax, (1, value), ("axes fraction", "data"), (12, shift), text, colour, size)
    if heading:
        ax.annotate(
            heading,
            (1, ends[-1][0]),
            xycoords=("axes fraction", "data"),
            xytext=(12, shifts[-1] + 0.7 * _GAP),
            textcoords="offset points",
            va="bottom",
            fontsize=size,
            color=GREY,
            annotation_clip=False,
        )


def label_points(
    ax: Axes,
    points: Sequence[tuple[float, float, str, Any]],
    *,
    side: int = 1,
    size: float = 9,
) -> None:
    """Write what points are, right (1) or left (-1) of them.

    Parameters
    ----------
    ax : Axes
        Its limits and scales are final.
    points : sequence of (x, y, text, colour)
        In data coordinates. Texts that would lie on each other are moved apart, with a thin line
        back.
    side : int
    size : float
        Of the letters, in points.
    """
    points = sorted(points, key=lambda point: point[1])
    shifts = _shifts(ax, [point[1] for point in points])
    for (x, y, text, colour), shift in zip(points, shifts, strict=True):
        _label(ax, (x, y), "data", (22 * side, shift), text, colour, size)


def _shifts(ax: Axes, values: Sequence[float]) -> npt.NDArray[np.float64]:
    """Points that labels at ascending values are moved up, so that none lies on another."""
    height = ax.get_window_extent().height / ax.figure.dpi * 72
    to_axes = ax.transScale + ax.transLimits
    x = ax.get_xlim()[1]
    wanted = np.array([to_axes.transform((x, value))[1] for value in values]) * height
    return moved_apart(wanted, _GAP) - wanted


def _label(
    ax: Axes,
    place: tuple[float, float],
    coordinates: Any,
    offset: tuple[float, float],
    text: str,
    colour: Any,
    size: float,
) -> None:
    ax.annotate(
        text,
        place,
        xycoords=coordinates,
        xytext=offset,
        textcoords="offset points",
        ha="left" if offset[0] > 0 else "right",
        va="center",
        fontsize=size,
        color=colour,
        annotation_clip=False,
        arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.7, "shrinkA": 0, "shrinkB": 0},
        path_effects=HALO,
        zorder=6,
    )


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
