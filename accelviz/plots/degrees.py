"""Degree distributions: how many rows have how many nonzeros, and who holds most of the work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, PercentFormatter

from accelviz.analysis.degrees import (
    LongestRows,
    checked_histogram,
    cumulative_shares,
    degree_at,
    end_of_body,
    equal_bins,
    logarithmic_bins,
    longest_rows,
)
from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.ordering.degree import RowDegrees
from accelviz.plots.drawing import Look, count_ticks, log_ticks, new_axes, nothing, points
from accelviz.plots.labels import beside, counted, write_title
from accelviz.plots.quantities import percent_text
from accelviz.plots.style import BLUE, GREY, IDLE, ORANGE, PLAIN, VERMILLION, tell, tidy

Degrees = npt.NDArray[np.int64]

#: Of more distinct degrees than this, points and bars would run into each other.
MOST_POINTS, MOST_BARS = 150, 60
_LABEL = "degree (nonzeros in a row)"
#: Rows per degree, which may be a fraction.
_FRACTION = FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
_BARS: Look = {"align": "edge", "color": BLUE, "ec": "white", "lw": 0.6, "zorder": 3}
#: Points that a letter of a band's label is wide, at 8 points.
_LETTER = 4.6


def _histogram(degrees: Graph | Degrees, rows: Degrees | None) -> tuple[Degrees, Degrees]:
    if isinstance(degrees, Graph):
        counted_rows = RowDegrees.of(degrees).histogram
        return counted_rows.degrees, counted_rows.rows
    return checked_histogram(degrees, () if rows is None else rows)


def degree_histogram(
    degrees: Graph | Degrees,
    rows: Degrees | None = None,
    *,
    scale: str = "log",
    bounds: Mapping[int, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how many rows have each degree.

    It has a point for each degree, or a bar on linear axes. More than 150 distinct degrees (60 on
    linear axes) are counted in ranges; the label of the rows says so.

    Parameters
    ----------
    degrees, rows : arrays of int64, shape (k,)
        The degrees that occur, ascending, and how many rows have each of them: those of
        `ordering.DegreeHistogram`. A Graph in their place stands for its own.
    scale : {"log", "linear"}
        Both axes logarithmic, or both linear. Logarithmic ones cannot show the rows of degree 0;
        the picture says how many they are. If the longest row is more than four times as long as
        99 % of the rows, linear axes end there, and the picture says how many rows are beyond.
    bounds : mapping of int to str, optional
        The last degree of a band and the band's label; bands are shaded.

    Raises
    ------
    ArgumentError
        If `scale` is neither, or the arrays are no histogram.
    """
    degrees, rows = _histogram(degrees, rows)
    if scale not in ("log", "linear"):
        raise ArgumentError("scale", f"got {scale!r}", "'log' or 'linear'")
    title = _summary(degrees, rows)
    if ax is None:
        ax = new_axes(None, figsize=(7, 4.2))
        write_title(ax, title)
    (_logarithmic if scale == "log" else _linear)(ax, degrees, rows)
    if rows[degrees > 0].any() or (scale == "linear" and rows.any()):
        _shade(ax, bounds or {})
    else:
        nothing(ax, title)
    n_rows, zero = int(rows.sum()), int(rows[degrees == 0].sum())
    none = f", {zero:,} of them without a nonzero" if zero else ""
    tell(ax, f"Degree histogram of {n_rows:,} rows{none}, {scale} axes: {title}.")
    return tidy(ax)


def degree_shares(
    degrees: Graph | Degrees,
    rows: Degrees | None = None,
    *,
    bounds: Mapping[int, str] | None = None,
    share: float = 0.01,
    ax: Axes | None = None,
) -> Axes:
    """Draw which share of the rows, and of the nonzeros, lies in rows of at most each degree.

    The further apart the two curves are, the more of the work lies in few rows. Nothing is binned.

    Parameters
    ----------
    degrees, rows : arrays of int64, shape (k,)
        The degrees that occur, ascending, and how many rows have each of them: those of
        `ordering.DegreeHistogram`. A Graph in their place stands for its own.
    bounds : mapping of int to str, optional
        The last degree of a band and the band's label; bands are shaded, and each says its share of
        the rows and of the nonzeros.
    share : float
        The part of the rows, the longest ones, that the title is about: above 0, at most 1.

    Raises
    ------
    ArgumentError
        If the arrays are no histogram, or `share` is out of range.
    """
    degrees, rows = _histogram(degrees, rows)
    longest = longest_rows(degrees, rows, share)
    of_rows, of_nonzeros = cumulative_shares(degrees, rows)
    ax = new_axes(ax, figsize=(8, 4.4))
    largest = max(1, int(degrees.max(initial=1)))
    ax.set(xscale="log", xlim=(0.8, largest * 1.6), ylim=(0, 1.24 if bounds else 1.04))
    ax.set(
        xlabel=_LABEL, ylabel="share in rows of at most that degree", yticks=np.linspace(0, 1, 6)
    )
    ax.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    log_ticks(ax.xaxis, PLAIN, 40)
    tidy(ax)
    if not longest.n_rows or not longest.degree:
        what = "no row has a nonzero" if longest.n_rows else "no row"
        nothing(ax, what)
        write_title(ax, what)
        tell(ax, f"Cumulative shares of rows and nonzeros by degree: {what}.")
        return ax
    curves = ((of_rows, "rows", BLUE, -1), (of_nonzeros, "nonzeros", ORANGE, 1))
    for curve, name, colour, side in curves:
        zero = float(curve[degrees == 0].sum())
        x = np.concatenate([[0.8], np.maximum(degrees, 0.8), [largest * 1.6]])
        y = np.concatenate([[zero], curve, [1.0]])
        ax.step(x, y, where="post", color=colour, lw=2.2, zorder=3)
        _name_curve(ax, name, colour, x, y, side)
    who = f"the {100 * share:g} % longest rows"
    if longest.rows < 10:  # the percentage would be wrong, because a part of a row is rounded
        who = f"the {longest.rows} longest rows"
    if longest.rows == 1:
        who = f"the longest of {longest.n_rows:,} rows"
    ax.plot([longest.degree] * 2, [1 - longest.share, 1], color=VERMILLION, lw=3, zorder=4)
    _name_longest(ax, f"{who}:\n{percent_text(longest.share)} of the nonzeros", longest)
    _shade(ax, _with_shares(bounds or {}, degrees, of_rows, of_nonzeros))
    verb = "holds" if longest.rows == 1 else "hold"
    sentence = f"{who} {verb} {percent_text(longest.share)} of the nonzeros"
    write_title(ax, sentence)
    half = int(degrees[np.searchsorted(of_nonzeros, 0.5)])
    said = (
        f"Cumulative shares of {longest.n_rows:,} rows and their nonzeros by degree: {sentence}; "
        f"rows of at most {degree_at(degrees, rows, 0.5):,} nonzeros are half of the rows, rows of "
        f"at most {half:,} hold half of the nonzeros."
    )
    tell(ax, said)
    return ax


def _logarithmic(ax: Axes, degrees: Degrees, rows: Degrees) -> None:
    seen = degrees > 0
    largest = int(degrees.max(initial=1))
    ax.set(xscale="log", yscale="log")
    label = "rows with that degree"
    if seen.sum() > MOST_POINTS:
        bins = logarithmic_bins(degrees, rows)
        heights: npt.NDArray[Any] = bins.rows_per_degree
        low = heights.min() * 0.5
        ax.bar(bins.low - 0.5, heights - low, bins.widths, bottom=low, **_BARS)
        label = "rows per degree, mean over each bar's degrees"
    elif seen.any():
        low, heights = 0.6, rows[seen]
        ax.vlines(degrees[seen], low, heights, color=BLUE, lw=1.0, alpha=0.35)
        ax.plot(degrees[seen], heights, "o", ms=4, color=BLUE, zorder=3)
    if seen.any():  # with room for the names of the bands
        ax.set_ylim(low, heights.max() * max(3.0, (heights.max() / low) ** 0.12))
    ax.set_xlim(0.8 if largest > 1 else 0.4, largest * 1.6)
    log_ticks(ax.xaxis, PLAIN, 40)
    log_ticks(ax.yaxis, _FRACTION, 40)
    zero = int(rows[~seen].sum())
    note = f"\nnot shown: {counted(zero, 'row')} without a nonzero"
    ax.set(xlabel=_LABEL + note * bool(zero), ylabel=label)


def _linear(ax: Axes, degrees: Degrees, rows: Degrees) -> None:
    end = end_of_body(degrees, rows)
    bins = equal_bins(degrees, rows, end, most=MOST_BARS)
    width = int(bins.widths.max(initial=1))
    ax.bar(bins.low - 0.5, bins.rows, bins.widths, **_BARS)
    ax.set_xlim(-0.7, max(end, int(bins.high.max(initial=1))) + 0.7)
    ax.set_ylim(0, max(1, int(bins.rows.max(initial=0))) * 1.25)
    count_ticks(ax.xaxis, ax.yaxis, most=8)
    beyond = degrees > end
    if beyond.any():
        text = (
            f"not shown: {counted(int(rows[beyond].sum()), 'row')} of {int(degrees[beyond][0]):,} "
            f"to {int(degrees[-1]):,}\nnonzeros, beyond this axis \N{RIGHTWARDS ARROW}"
        )
        look: Look = {"ha": "right", "va": "center", "fontsize": 9, "color": VERMILLION}
        ax.text(0.99, 0.5, text, transform=ax.transAxes, **look)
    each = "that degree" if width == 1 else f"a degree in each range of {width:,}"
    ax.set(xlabel=_LABEL, ylabel=f"rows with {each}")


def _shade(ax: Axes, bounds: Mapping[int, str]) -> None:
    """Shade every other band between the bounds, and write what holds in each."""
    logarithmic = ax.get_xscale() == "log"
    left, end = ax.get_xlim()
    to_axes = ax.transScale + ax.transLimits
    bands = []
    for bound, label in sorted(bounds.items()):
        right = min(bound + 0.5, end)
        if left < right:
            bands.append((left, right, label))
            left = right
    places = [[to_axes.transform((x, 1))[0] for x in band[:2]] for band in bands]
    wanted = [_LETTER * max(map(len, band[2].split("\n"))) / points(ax)[0] for band in bands]
    crowded = any(stop - start < w for (start, stop), w in zip(places, wanted, strict=True))
    for i, ((left, right, label), place) in enumerate(zip(bands, places, strict=True)):
        if i % 2 == 0:
            ax.axvspan(left, right, color=IDLE, zorder=0, lw=0)
        middle = (left * right) ** 0.5 if logarithmic else (left + right) / 2
        centre, half = sum(place) / 2, wanted[i] / 2
        ha = "left" if centre < half else "right" if centre > 1 - half else "center"
        at = ({"left": left, "center": middle, "right": right}[ha], 0.98)
        # One under the other where they would not fit side by side.
        down = -i * 10 * (label.count("\n") + 1) if crowded else 0
        look: Look = {"ha": ha, "va": "top", "fontsize": 8, "color": GREY}
        beside(ax, label, at, (0, down), xycoords=("data", "axes fraction"), **look)


def _with_shares(
    bounds: Mapping[int, str], degrees: Degrees, *curves: npt.NDArray[np.float64]
) -> dict[int, str]:
    """Add the shares of the rows and of the nonzeros in each band to its label."""
    texts, before = {}, [0.0, 0.0]
    for bound, label in sorted(bounds.items()):
        last = np.searchsorted(degrees, bound, side="right") - 1
        upto = [float(curve[last]) if last >= 0 else 0.0 for curve in curves]
        rows, nonzeros = (percent_text(now - old) for now, old in zip(upto, before, strict=True))
        texts[bound] = f"{label}\n{rows} of rows\n{nonzeros} of nonzeros"
        before = upto
    return texts


def _name_longest(ax: Axes, text: str, longest: LongestRows) -> None:
    """Write what the longest rows hold where no curve can be: right of them and lower."""
    left, end = ax.get_xlim()
    line = {"arrowstyle": "-", "color": VERMILLION, "lw": 0.8, "shrinkB": 0, "relpos": (0, 1)}
    place: Look = {"ha": "left", "xytext": (longest.degree, (1 - longest.share) / 3)}
    if np.log(longest.degree / left) / np.log(end / left) > 0.65:
        place = {"ha": "right", "xytext": (0.985, 0.04), "textcoords": "axes fraction"}
        line["relpos"] = (0.9, 1)
    look: Look = {"va": "bottom", "fontsize": 9, "color": VERMILLION, "zorder": 5}
    ax.annotate(text, (longest.degree, 1 - longest.share), arrowprops=line, **place, **look)


def _name_curve(ax: Axes, name: str, colour: str, x: Any, y: Any, side: int) -> None:
    """Write a curve's name beside it, above it on its left (-1) or below it on its right (1)."""
    # The curve only rises: above it on its left and below it on its right there is room.
    at = min(int(np.searchsorted(y, 0.6 if side < 0 else 0.35)), x.size - 1)
    place: Look = {"ha": "right", "va": "bottom"} if side < 0 else {"ha": "left", "va": "top"}
    spot = (x[at], y[at] if side < 0 else y[max(0, at - 1)])
    beside(ax, name, spot, (5 * side, -5 * side), color=colour, fontweight="bold", **place)


def _summary(degrees: Degrees, rows: Degrees) -> str:
    """Say what stands out."""
    if not rows.sum():
        return "no row"
    median, largest = degree_at(degrees, rows, 0.5), int(degrees[rows > 0][-1])
    if not largest:
        return "no row has a nonzero"
    if (rows > 0).sum() == 1:
        return f"every row has {counted(largest, 'nonzero')}"
    most = counted(median, "nonzero")
    return f"half of the rows have at most {most}, the longest has {largest:,}"
