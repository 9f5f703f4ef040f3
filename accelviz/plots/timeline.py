"""Pictures of timelines: when each block of a launch ran on which SM, measured or predicted.

`analysis.schedule` makes the timelines. The tail is the time in which some SMs have no work left.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.ticker import MaxNLocator

from accelviz.analysis import schedule
from accelviz.analysis.schedule import NANOSECONDS, NONZEROS, TimelineSummary, timeline_summary
from accelviz.errors import ArgumentError
from accelviz.plots import draw
from accelviz.plots.style import IDLE, VERMILLION, Look, strategy_colours

#: Largest number of bars, and of lanes (SMs times slots), that a picture can resolve. Beyond it, an
#: image of the number of resident blocks is drawn.
MOST_BARS, MOST_LANES = 20_000, 400
#: Number of time intervals of the image.
BINS = 800
#: Largest number of bars per lane, and of lanes, with white edges between bars.
_EDGED_BARS, _EDGED_LANES = 40, 100
#: Blue differs from the orange tail with any kind of colour vision. The palest blues are omitted.
_COLOURS = ListedColormap(colormaps["Blues"](np.linspace(0.35, 1, 256)))
_TAIL = "#FBD9BF"
#: Unit of a table to (unit of the axis, number of the former per one of the latter, axis label).
_UNITS = {
    NANOSECONDS: ("µs", 1000.0, "time (µs)"),
    NONZEROS: ("nonzeros", 1.0, "time (nonzeros that a warp works off one after the other)"),
}


def sm_timeline(
    blocks: pd.DataFrame,
    *,
    ax: Axes | None = None,
    bars: bool | None = None,
    most: float | None = None,
    title: str = "",
) -> Axes:
    """Draw a timeline: one line per SM, one bar per block, and the tail shaded.

    The SM that finished last is on top.

    Parameters
    ----------
    blocks : DataFrame
        From `block_times` or `predicted_timeline`.
    bars : bool, optional
        True draws bars, coloured by their duration. False draws an image of the number of resident
        blocks of each SM over time. The default is bars up to `MOST_BARS` and `MOST_LANES`.
    most : float, optional
        Value of the darkest colour. The default is the longest duration, or the number of blocks
        that an SM can hold.
    title : str, optional
        Title on the left; the busy share and the tail are on the right.

    Raises
    ------
    ArgumentError
        If `blocks` has no unit.
    """
    ax = draw.new_axes(ax, figsize=(10, 4.6))
    summary = timeline_summary(blocks)
    finish = schedule.sm_finishes(blocks)
    line = np.empty(finish.size, np.int64)
    line[np.argsort(-finish, kind="stable")] = np.arange(finish.size)
    _, scale, label = _UNITS[summary.unit]
    total, tail = summary.total / scale, summary.tail / scale
    ax.set_facecolor(IDLE)
    if tail:
        ax.axvspan(total - tail, total, color=_TAIL, lw=0, zorder=0)
        ax.axvline(total - tail, color=VERMILLION, lw=1.2)
    if not len(blocks):
        draw.label_empty(ax, "no block")
    elif _is_resolvable(blocks) if bars is None else bars:
        _draw_bars(ax, blocks, line, most)
    else:
        _draw_image(ax, blocks, line, total, most)
        label += f"\n{len(blocks):,} blocks, not shown one by one"
    if summary.tail_share > 0.1:
        # The lower right corner has few blocks, because SMs that finish first are at the bottom.
        box = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 2}
        look: Look = {"ha": "right", "fontsize": 9, "bbox": box, "transform": ax.transAxes}
        ax.text(0.995, 0.04, "tail: no work is left for these SMs", **look)
    ax.set(xlim=(0, total or 1), ylim=(finish.size - 0.5, -0.5))
    ax.set(xlabel=label, ylabel="SMs, the last to end on top")
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    ax.xaxis.set_major_formatter("{x:,.10g}")
    draw.write_heading(ax, title)
    ax.set_title(_summary_text(summary), loc="right", fontsize=9.5)
    name = f", {title}" if title else ""
    return draw.finish(ax, f"Timeline of the SMs{name}: {_alt_text(summary)}.")


def sm_timelines(blocks: Mapping[str, pd.DataFrame]) -> list[Axes]:
    """Draw timelines one above the other, with common scales of colour and time.

    Measured and predicted timelines have different units. In that case the time axis of each is as
    long as its launch, so that tails can be compared as shares.

    Parameters
    ----------
    blocks : mapping of str to DataFrame
        Title to timeline, from `block_times` or `predicted_timeline`.

    Raises
    ------
    ArgumentError
        If there is no timeline.
    """
    if not blocks:
        raise ArgumentError("blocks", "no timeline", "one or more, by title")
    tables = list(blocks.values())
    bars = all(map(_is_resolvable, tables))
    most = None if bars else max(map(_capacity, tables))
    summaries = [timeline_summary(table) for table in tables]
    has_common_unit = len({summary.unit for summary in summaries}) == 1
    scale = _UNITS[summaries[0].unit][1]
    if has_common_unit and bars:
        most = max((table["stop"] - table["start"]).max() for table in tables) / scale
    axes = draw.new_panels((10, 3.4 * len(blocks)), len(blocks), 1)
    for ax, (title, table) in zip(axes, blocks.items(), strict=True):
        sm_timeline(table, ax=ax, bars=bars, most=most, title=title)
        if has_common_unit:
            ax.set_xlim(0, max(summary.total for summary in summaries) / scale or 1)
    return axes


def block_durations(blocks: Mapping[str, pd.DataFrame], *, ax: Axes | None = None) -> Axes:
    """Draw the duration of each block against the nonzeros of its busiest warp, with a linear fit.

    Parameters
    ----------
    blocks : mapping of str to DataFrame
        Name to measured timeline, such as those of `records.recorded_timelines`, with the column
        `busiest` of `analysis.schedule.with_nonzeros`.
    """
    ax = draw.new_axes(ax, figsize=(8, 4))
    fits = []
    colours = strategy_colours(blocks)
    for name, table in blocks.items():
        x, y = table["busiest"].to_numpy(float), (table["stop"] - table["start"]) / 1000
        slope, first = np.polyfit(x, y, 1)
        fits.append(f"{name}: {first:.2f} µs and {slope:.2f} µs for each nonzero")
        ax.plot(x, y, ".", color=colours[name], ms=2.5, alpha=0.4, rasterized=True)
        ends = np.array([x.min(), x.max()])
        ax.plot(ends, first + slope * ends, color=colours[name], lw=2, label=fits[-1])
    ax.set(xlabel="nonzeros of the block's busiest warp", ylabel="µs that the block took")
    ax.legend(frameon=False)
    draw.write_heading(ax, "A block takes as long as its busiest warp")
    alt = "Time of each block against the nonzeros of its busiest warp."
    return draw.finish(ax, f"{alt} {'; '.join(fits)}.")


def _is_resolvable(blocks: pd.DataFrame) -> bool:
    return len(blocks) <= MOST_BARS and blocks.attrs.get("sms", 1) * _slots(blocks) <= MOST_LANES


def _slots(blocks: pd.DataFrame) -> int:
    return int(blocks["slot"].max()) + 1 if len(blocks) else 1


def _capacity(blocks: pd.DataFrame) -> int:
    return max(int(blocks.attrs.get("blocks_per_sm", 1)), _slots(blocks))


def _draw_bars(
    ax: Axes, blocks: pd.DataFrame, line: npt.NDArray[np.int64], most: float | None
) -> None:
    name, scale, _ = _UNITS[blocks.attrs["unit"]]
    left, stop = (
        (blocks[column] - blocks["start"].min()).to_numpy() / scale for column in ("start", "stop")
    )
    gap = 0.16 if line.size <= 40 else 0.0
    slots = _slots(blocks)
    height = (1 - gap) / slots
    top = line[blocks["sm"].to_numpy()] - 0.5 + gap / 2 + blocks["slot"].to_numpy() * height
    lanes = slots * line.size
    has_edges = lanes <= _EDGED_LANES and len(blocks) <= _EDGED_BARS * lanes
    # An edge in the bar's colour keeps bars visible that are shorter than a pixel.
    look: Look = {"edgecolors": "face", "linewidths": 0.3}
    if has_edges:
        look = {"edgecolors": "white", "linewidths": 0.5}
    duration = stop - left
    look |= {"array": duration, "cmap": _COLOURS, "norm": Normalize(0, most or duration.max() or 1)}
    rectangles = draw.rectangles(ax, left, stop, top, top + height, **look)
    draw.colour_bar(ax, rectangles, f"{name} a block took")


def _draw_image(
    ax: Axes, blocks: pd.DataFrame, line: npt.NDArray[np.int64], total: float, most: float | None
) -> None:
    resident = schedule.occupancy(blocks, BINS)
    capacity = _capacity(blocks)
    picture = np.ma.empty((line.size, BINS))
    picture[line] = np.ma.masked_equal(resident, 0)
    extent = (0, total or 1, line.size - 0.5, -0.5)
    image = draw.cells(ax, picture, _COLOURS, Normalize(0, most or capacity), extent=extent)
    draw.colour_bar(ax, image, f"blocks an SM holds (at most {capacity})")


def _summary_text(summary: TimelineSummary) -> str:
    return f"SMs busy {summary.busy_share:.0%} of the time, tail {summary.tail_share:.0%}"


def _alt_text(summary: TimelineSummary) -> str:
    unit, scale, _ = _UNITS[summary.unit]
    tail, total = summary.tail / scale, summary.total / scale
    return f"{_summary_text(summary)} ({tail:,.4g} of {total:,.4g} {unit})"
