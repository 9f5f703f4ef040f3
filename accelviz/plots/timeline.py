"""What each SM did and when: as a GPU recorded it, and as the workload alone predicted it."""

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

#: Most bars, and most lanes (SMs times the blocks that one holds), that a picture can show; beyond
#: them bars hide each other or are thinner than a pixel.
MOST_BARS, MOST_LANES = 20_000, 400
#: Columns of the image that is drawn instead.
BINS = 800
#: Bars in a lane, and lanes, up to which a white edge parts the bars without hiding them.
_EDGED_BARS, _EDGED_LANES = 40, 100
#: Blue on orange is told apart with any kind of colour vision; the palest blues would not show.
_COLOURS = ListedColormap(colormaps["Blues"](np.linspace(0.35, 1, 256)))
_TAIL = "#FBD9BF"
#: A table's unit to that of the axis, how many of the former make one of the latter, and the label.
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
    """Draw when each SM worked: a line for each SM, a bar for each block, the tail shaded.

    The SM that ended last is on top.

    Parameters
    ----------
    blocks : DataFrame
        From `block_times` or `predicted_timeline`.
    bars : bool, optional
        Whether to draw bars, coloured by their duration. If not, the picture is an image, and says
        so: its colour is the number of blocks that each SM holds. If not given, there are bars as
        long as they can be seen (`MOST_BARS`, `MOST_LANES`).
    most : float, optional
        What the darkest colour stands for; the largest value, or all the blocks that an SM has room
        for, if not given.
    title : str, optional
        Above the picture, on the left; on the right are the busy share and the tail.

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
    elif _can_be_seen(blocks) if bars is None else bars:
        _bars(ax, blocks, line, most)
    else:
        _image(ax, blocks, line, total, most)
        label += f"\n{len(blocks):,} blocks, not shown one by one"
    if summary.tail_share > 0.1:
        # Mostly free of blocks, because those who end first are at the bottom.
        box = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 2}
        look: Look = {"ha": "right", "fontsize": 9, "bbox": box, "transform": ax.transAxes}
        ax.text(0.995, 0.04, "tail: no work is left for these SMs", **look)
    ax.set(xlim=(0, total or 1), ylim=(finish.size - 0.5, -0.5))
    ax.set(xlabel=label, ylabel="SMs, the last to end on top")
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    ax.xaxis.set_major_formatter("{x:,.10g}")
    draw.write_heading(ax, title)
    ax.set_title(_numbers(summary), loc="right", fontsize=9.5)
    name = f", {title}" if title else ""
    return draw.finish(ax, f"Timeline of the SMs{name}: {_sentence(summary)}.")


def sm_timelines(blocks: Mapping[str, pd.DataFrame]) -> list[Axes]:
    """Draw timelines one above the other, with one scale of colour, and of time if that has a unit.

    A predicted and a measured one have no common unit. They are as wide as the time they take, so
    that tails compare as shares of it.

    Parameters
    ----------
    blocks : mapping of str to DataFrame
        Title to a table of `block_times` or `predicted_timeline`.

    Raises
    ------
    ArgumentError
        If there is none.
    """
    if not blocks:
        raise ArgumentError("blocks", "no timeline", "one or more, by title")
    bars = all(map(_can_be_seen, blocks.values()))
    most, last = None if bars else max(map(_room, blocks.values())), None
    if len({table.attrs.get("unit") for table in blocks.values()}) == 1:
        scale = _UNITS[timeline_summary(next(iter(blocks.values()))).unit][1]
        last = max(timeline_summary(table).total for table in blocks.values()) / scale
        longest = max((table["stop"] - table["start"]).max() for table in blocks.values())
        most = longest / scale if bars else most
    axes = draw.new_panels((10, 3.4 * len(blocks)), len(blocks), 1)
    for ax, (title, table) in zip(axes, blocks.items(), strict=True):
        sm_timeline(table, ax=ax, bars=bars, most=most, title=title)
        if last is not None:
            ax.set_xlim(0, last or 1)
    return axes


def block_durations(blocks: Mapping[str, pd.DataFrame], *, ax: Axes | None = None) -> Axes:
    """Draw how long each block took against the nonzeros of its busiest warp, with a line fitted.

    Parameters
    ----------
    blocks : mapping of str to DataFrame
        What to call a timeline to it: recorded (`records.recorded_timelines`) and with a column
        `busiest` (`analysis.schedule.with_nonzeros`).
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


def _can_be_seen(blocks: pd.DataFrame) -> bool:
    return len(blocks) <= MOST_BARS and blocks.attrs.get("sms", 1) * _lanes(blocks) <= MOST_LANES


def _lanes(blocks: pd.DataFrame) -> int:
    return int(blocks["slot"].max()) + 1 if len(blocks) else 1


def _room(blocks: pd.DataFrame) -> int:
    """Return how many blocks an SM has room for."""
    return max(int(blocks.attrs.get("blocks_per_sm", 1)), _lanes(blocks))


def _bars(ax: Axes, blocks: pd.DataFrame, line: npt.NDArray[np.int64], most: float | None) -> None:
    name, scale, _ = _UNITS[blocks.attrs["unit"]]
    left, stop = (
        (blocks[column] - blocks["start"].min()).to_numpy() / scale for column in ("start", "stop")
    )
    gap = 0.16 if line.size <= 40 else 0.0
    lanes = _lanes(blocks)
    height = (1 - gap) / lanes
    top = line[blocks["sm"].to_numpy()] - 0.5 + gap / 2 + blocks["slot"].to_numpy() * height
    lanes *= line.size
    parted = lanes <= _EDGED_LANES and len(blocks) <= _EDGED_BARS * lanes
    # The bar's own colour as edge keeps one in sight that is shorter than a pixel.
    look: Look = {"edgecolors": "white" if parted else "face", "linewidths": 0.5 if parted else 0.3}
    took = stop - left
    look |= {"array": took, "cmap": _COLOURS, "norm": Normalize(0, most or took.max() or 1)}
    rectangles = draw.rectangles(ax, left, stop, top, top + height, **look)
    draw.colour_bar(ax, rectangles, f"{name} a block took")


def _image(
    ax: Axes,
    blocks: pd.DataFrame,
    line: npt.NDArray[np.int64],
    total: float,
    most: float | None,
) -> None:
    held = schedule.occupancy(blocks, BINS)
    room = _room(blocks)
    picture = np.ma.empty((line.size, BINS))
    picture[line] = np.ma.masked_equal(held, 0)
    extent = (0, total or 1, line.size - 0.5, -0.5)
    image = draw.cells(ax, picture, _COLOURS, Normalize(0, most or room), extent=extent)
    draw.colour_bar(ax, image, f"blocks an SM holds (at most {room})")


def _numbers(summary: TimelineSummary) -> str:
    return f"SMs busy {summary.busy_share:.0%} of the time, tail {summary.tail_share:.0%}"


def _sentence(summary: TimelineSummary) -> str:
    unit, scale, _ = _UNITS[summary.unit]
    tail, total = summary.tail / scale, summary.total / scale
    return f"{_numbers(summary)} ({tail:,.4g} of {total:,.4g} {unit})"
