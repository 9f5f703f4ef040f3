"""Pictures of degree distributions: histogram, and cumulative shares of rows and nonzeros."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, PercentFormatter

from accelviz.analysis import degrees as counts
from accelviz.graph import Graph
from accelviz.ordering.degree import RowDegrees
from accelviz.plots import draw
from accelviz.plots.quantities import percent_text
from accelviz.plots.style import BLUE, GREY, IDLE, ORANGE, PLAIN, VERMILLION, Look

Degrees = npt.NDArray[np.int64]

#: Largest number of distinct degrees that are drawn as points.
MOST_POINTS = 150
_LABEL = "degree (nonzeros in a row)"
#: Tick format of rows per degree, which may be below 1.
_FRACTION = FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
#: Width in points of a letter of a band's label.
_LETTER = 4.6


def _histogram(degrees: Graph | Degrees, rows: Degrees | None) -> tuple[Degrees, Degrees]:
    if isinstance(degrees, Graph):
        histogram = RowDegrees.of(degrees).histogram
        return histogram.degrees, histogram.rows
    return counts.checked_histogram(degrees, () if rows is None else rows)


def degree_histogram(
    degrees: Graph | Degrees,
    rows: Degrees | None = None,
    *,
    bounds: Mapping[int, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the number of rows of each degree on logarithmic axes.

    Up to 150 distinct degrees are points; more are binned, which the label of the y axis states.
    The number of rows without nonzeros is in the label of the x axis.

    Parameters
    ----------
    degrees, rows : arrays of int64, shape (k,)
        Degree histogram, as of `ordering.DegreeHistogram`: the degrees that occur, ascending, and
        the number of rows of each. `degrees` may also be a Graph, without `rows`.
    bounds : mapping of int to str, optional
        Last degree of each band to its label. Every other band is shaded.

    Raises
    ------
    ArgumentError
        If the arrays are not a histogram.
    """
    degrees, rows = _histogram(degrees, rows)
    title = _summary(degrees, rows)
    if ax is None:
        ax = draw.new_axes(None, figsize=(7, 4.2))
        draw.write_title(ax, title)
    largest = int(degrees.max(initial=1))
    positive = degrees > 0
    label = "rows with that degree"
    low, heights = 0.6, rows[positive]
    if positive.sum() > MOST_POINTS:
        bins = counts.logarithmic_bins(degrees, rows)
        heights = (bins["rows"] / bins["widths"]).to_numpy()
        low = heights.min() * 0.5
        look: Look = {"align": "edge", "color": BLUE, "ec": "white", "lw": 0.6, "zorder": 3}
        ax.bar(bins["low"] - 0.5, heights - low, bins["widths"], bottom=low, **look)
        label = "rows per degree, mean over each bar's degrees"
    else:
        ax.vlines(degrees[positive], low, heights, color=BLUE, lw=1.0, alpha=0.35)
        ax.plot(degrees[positive], heights, "o", ms=4, color=BLUE, zorder=3)
    top = heights.max(initial=low * 2)
    ax.set(xscale="log", xlim=(0.8 if largest > 1 else 0.4, largest * 1.6))
    # A margin for the labels of the bands.
    ax.set(yscale="log", ylim=(low, top * max(3.0, (top / low) ** 0.12)))
    draw.log_ticks(ax.xaxis, PLAIN, 40)
    draw.log_ticks(ax.yaxis, _FRACTION, 40)
    zero = int(rows[~positive].sum())
    note = f"\nnot shown: {draw.pluralize(zero, 'row')} without a nonzero" if zero else ""
    ax.set(xlabel=_LABEL + note, ylabel=label)
    if rows[positive].any():
        _shade_bands(ax, bounds or {})
    else:
        draw.label_empty(ax, title)
    empty = f", {zero:,} of them without a nonzero" if zero else ""
    return draw.finish(ax, f"Degree histogram of {rows.sum():,} rows{empty}: {title}.")


def degree_shares(
    degrees: Graph | Degrees, rows: Degrees | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw the cumulative distributions of rows and of nonzeros over the degrees.

    The distance of the two curves is the inequality of the rows. The title states the share of the
    nonzeros in the longest 1 % of the rows.

    Parameters
    ----------
    degrees, rows : arrays of int64, shape (k,)
        As of `degree_histogram`.

    Raises
    ------
    ArgumentError
        If the arrays are not a histogram.
    """
    degrees, rows = _histogram(degrees, rows)
    longest = counts.longest_rows(degrees, rows)
    row_shares, nonzero_shares = counts.cumulative_shares(degrees, rows)
    ax = draw.new_axes(ax, figsize=(8, 4.4))
    largest = max(1, int(degrees.max(initial=1)))
    ax.set(xscale="log", xlim=(0.8, largest * 1.6), ylim=(0, 1.04))
    ax.set(xlabel=_LABEL, ylabel="share in rows of at most that degree")
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    draw.log_ticks(ax.xaxis, PLAIN, 40)
    if not longest.degree:
        reason = "no row has a nonzero" if longest.n_rows else "no row"
        draw.label_empty(ax, reason)
        alt = f"Cumulative shares of rows and nonzeros by degree: {reason}."
        return draw.finish(ax, alt, reason)
    for curve, name, colour, side in (
        (row_shares, "rows", BLUE, -1),
        (nonzero_shares, "nonzeros", ORANGE, 1),
    ):
        zero = float(curve[degrees == 0].sum())
        x = np.concatenate([[0.8], np.maximum(degrees, 0.8), [largest * 1.6]])
        y = np.concatenate([[zero], curve, [1.0]])
        ax.step(x, y, where="post", color=colour, lw=2.2, zorder=3)
        _label_curve(ax, name, colour, x, y, side)
    subject = "the 1 % longest rows"
    if longest.rows < 10:  # rounded to integers, they are not 1 %
        subject = f"the {longest.rows} longest rows"
    if longest.rows == 1:
        subject = f"the longest of {longest.n_rows:,} rows"
    ax.plot([longest.degree] * 2, [1 - longest.share, 1], color=VERMILLION, lw=3, zorder=4)
    held = f"{percent_text(longest.share)} of the nonzeros"
    _label_longest(ax, f"{subject}:\n{held}", longest)
    title = f"{subject} {'holds' if longest.rows == 1 else 'hold'} {held}"
    half = int(degrees[np.searchsorted(nonzero_shares, 0.5)])
    return draw.finish(
        ax,
        f"Cumulative shares of {longest.n_rows:,} rows and their nonzeros by degree: {title}; rows "
        f"of at most {counts.degree_at(degrees, rows, 0.5):,} nonzeros are half of the rows, rows "
        f"of at most {half:,} hold half of the nonzeros.",
        title,
    )


def _shade_bands(ax: Axes, bounds: Mapping[int, str]) -> None:
    first, end = ax.get_xlim()
    lasts = [min(max(first, bound + 0.5), end) for bound in sorted(bounds)]
    bands = [
        (left, stop, bounds[bound])
        for left, stop, bound in zip([first, *lasts], lasts, sorted(bounds), strict=False)
        if left < stop
    ]
    ax_width = draw.size_in_points(ax)[0]
    edges = [draw.fractions(ax, band[:2]) for band in bands]
    widths = [_LETTER * max(map(len, band[2].split("\n"))) / ax_width for band in bands]
    overlaps = any(np.diff(edge) < width for edge, width in zip(edges, widths, strict=True))
    look: Look = {"xycoords": draw.UP, "va": "top", "fontsize": 8, "color": GREY}
    for i, (left, stop, label) in enumerate(bands):
        if i % 2 == 0:
            ax.axvspan(left, stop, color=IDLE, zorder=0, lw=0)
        middle = (left * stop) ** 0.5 if ax.get_xscale() == "log" else (left + stop) / 2
        centre, half = edges[i].mean(), widths[i] / 2
        ha = "left" if centre < half else "right" if centre > 1 - half else "center"
        xy = ({"left": left, "center": middle, "right": stop}[ha], 0.98)
        # Labels that would overlap are on separate lines.
        down = -i * 10 * (label.count("\n") + 1) if overlaps else 0
        draw.annotate(ax, label, xy, (0, down), ha=ha, **look)


def _label_longest(ax: Axes, text: str, longest: counts.LongestRows) -> None:
    """Label the longest rows to the lower right, where no curve can be."""
    line = {"arrowstyle": "-", "color": VERMILLION, "lw": 0.8, "shrinkB": 0, "relpos": (0, 1)}
    spot: Look = {"ha": "left", "xytext": (longest.degree, (1 - longest.share) / 3)}
    if draw.fractions(ax, longest.degree) > 0.65:
        spot = {"ha": "right", "xytext": (0.985, 0.04), "textcoords": "axes fraction"}
        line["relpos"] = (0.9, 1)
    look: Look = {"va": "bottom", "fontsize": 9, "color": VERMILLION, "zorder": 5}
    ax.annotate(text, (longest.degree, 1 - longest.share), arrowprops=line, **spot, **look)


def _label_curve(ax: Axes, name: str, colour: str, x: Any, y: Any, side: int) -> None:
    """Write a curve's name to its upper left (`side` -1) or lower right (1).

    These sides are free, because the curve rises.
    """
    index = min(int(np.searchsorted(y, 0.6 if side < 0 else 0.35)), x.size - 1)
    look: Look = {"ha": "right", "va": "bottom"} if side < 0 else {"ha": "left", "va": "top"}
    spot = (x[index], y[index] if side < 0 else y[max(0, index - 1)])
    draw.annotate(ax, name, spot, (5 * side, -5 * side), color=colour, fontweight="bold", **look)


def _summary(degrees: Degrees, rows: Degrees) -> str:
    if not rows.sum():
        return "no row"
    median, largest = counts.degree_at(degrees, rows, 0.5), int(degrees[rows > 0][-1])
    if not largest:
        return "no row has a nonzero"
    if (rows > 0).sum() == 1:
        return f"every row has {draw.pluralize(largest, 'nonzero')}"
    most = draw.pluralize(median, "nonzero")
    return f"half of the rows have at most {most}, the longest has {largest:,}"
