"""How many nonzeros the warps get: strategies under each other, with the same axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter, NullLocator

from accelviz.analysis.balance import SINGLE_BINS, Integers, load_bins
from accelviz.errors import ArgumentError
from accelviz.partition.summary import Loads, PartitionSummary
from accelviz.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    IDLE,
    ORANGE,
    PLAIN,
    PURPLE,
    SKY,
    VERMILLION,
    new_figure,
    tell,
    tidy,
)

#: In the order of the strategies given.
_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION)
#: Those that white letters are read on.
_DARK = (BLUE, GREEN, VERMILLION)
#: Warps with no work, in a histogram.
_NO_WORK = "#A8A8A8"
#: Behind text that lies on bars.
_PAPER = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
#: Share of the width that has room for a word.
_LABELLED = 0.12
#: Numbers of warps that need a logarithmic axis lie further apart than this.
_LINEAR_SPAN = 50


def warp_loads(
    statistics: Mapping[str, PartitionSummary],
    *,
    workers: Mapping[str, str] | None = None,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Draw how many nonzeros the warps of several strategies get, with the same axes.

    Parameters
    ----------
    statistics : mapping of str to PartitionSummary
        Name of a strategy to what it does to one graph: `plan.statistics`, or the closed form. It
        costs the same for a graph of any size. How the lanes of a warp share its nonzeros is not
        seen in it.
    workers : mapping of str to str, optional
        Name of a strategy to what its workload counts, where that is not the hardware's warps:
        `analysis.balance.worker_name(plan)`.
    axes : sequence of Axes, optional
        One for each strategy; a new figure if not given.

    Returns
    -------
    list of Axes
        One under the other, all with the same bins and scales. Warps without a nonzero are drawn
        apart, in grey. Where some warp has more than `SINGLE_BINS` nonzeros the bins are those of
        `load_bins`, two to each doubling, and the axis is logarithmic; so is that of the warps
        where they span decades. What the degrees alone do not tell is left out and named.

    Raises
    ------
    ArgumentError
        If there is no strategy.
    """
    if not statistics:
        raise ArgumentError("statistics", "no strategy", "one or more, by name")
    tallies = {name: each.loads for name, each in statistics.items()}
    known = [tally for tally in tallies.values() if tally is not None]
    largest = max((int(tally.nonzeros.max(initial=1)) for tally in known), default=1)
    uppers = load_bins(largest)
    if axes is None:
        page = new_figure(figsize=(10, 0.6 + 1.9 * len(statistics)))
        axes = list(page.subplots(len(statistics), 1, squeeze=False, sharex=True)[:, 0])
    for i, (ax, (name, tally)) in enumerate(zip(axes, tallies.items(), strict=True)):
        worker = (workers or {}).get(name, "warp")
        if tally is None:
            ax.text(
                0.5,
                0.5,
                "which warp gets what is not known from the degrees alone",
                ha="center",
                va="center",
                transform=ax.transAxes,
                color=GREY,
            )
        else:
            _load_bars(ax, tally, uppers, _COLOURS[i % len(_COLOURS)])
        if tally is None or tally.warps.size:
            _time_strip(ax, statistics[name].idle_share, _COLOURS[i % len(_COLOURS)])
        _name_loads(ax, name, statistics[name], tally, worker)
        ax.set_ylabel(f"{worker}s")
        tidy(ax)
    _load_axis(axes, largest)
    _count_axis(axes, known, uppers)
    others = dict.fromkeys((workers or {}).get(name, "warp") for name in statistics)
    widths = "" if largest <= SINGLE_BINS else ", two bins to each doubling"
    axes[-1].set_xlabel(f"nonzeros of a {' or '.join(others)}{widths}")
    return list(axes)


def _edges(uppers: Integers) -> tuple[np.ndarray, np.ndarray]:
    """Return where the bars of `load_bins` begin and end, on the axis that suits them."""
    lowers = np.append(1, uppers[:-1] + 1)
    if uppers[-1:].sum() <= SINGLE_BINS:
        return lowers - 0.42, uppers + 0.42
    # Halfway between neighboring numbers as a logarithmic axis sees it.
    return np.sqrt(lowers * np.maximum(lowers - 1, 0.5)), np.sqrt(uppers * (uppers + 1.0))


def _load_bars(ax: Axes, tally: Loads, uppers: Integers, colour: str) -> None:
    left, right = _edges(uppers)
    counts = tally.binned(uppers)
    seen = counts > 0
    ax.bar(
        left[seen],
        counts[seen],
        (right - left)[seen],
        align="edge",
        color=colour,
        edgecolor="white",
        linewidth=0.5,
    )
    if tally.idle:
        begin, end = _idle_place(uppers)
        ax.bar(begin, tally.idle, end - begin, align="edge", color=_NO_WORK)
    if not seen.any():
        return
    largest = int(tally.nonzeros[-1])
    times = f"busiest {largest:,}: {largest / tally.mean:,.1f} times the mean"
    marks = [(tally.mean, 0.68, f"mean {tally.mean:,.1f}"), (float(largest), 0.9, times)]
    if tally.nonzeros.size == 1:
        marks = [(float(largest), 0.9, f"{largest:,} each")]
    else:
        ax.axvline(tally.mean, ymax=0.62, color=BLACK, lw=1, ls=(0, (4, 2)))
    ax.axvline(largest, color=BLACK, lw=1.4)
    for x, y, text in marks:
        right_half = _share_of_axis(x, uppers) > 0.5
        ax.annotate(
            text,
            (x, y),
            xycoords=("data", "axes fraction"),
            xytext=(-5 if right_half else 5, 0),
            textcoords="offset points",
            ha="right" if right_half else "left",
            va="center",
            fontsize=9,
            bbox=_PAPER,
        )


def _idle_place(uppers: Integers) -> tuple[float, float]:
    return (-1.42, -0.58) if uppers[-1:].sum() <= SINGLE_BINS else (0.28, 0.45)


def _share_of_axis(x: float, uppers: Integers) -> float:
    if uppers[-1] <= SINGLE_BINS:
        return float(x / uppers[-1])
    return float(np.log(x) / np.log(uppers[-1]))


def _time_strip(ax: Axes, idle_share: float, colour: str) -> None:
    """Draw the time of all warps above a panel: how much of it they work, how much not."""
    if np.isnan(idle_share):
        return
    parts = (
        (0.0, 1 - idle_share, colour, "working"),
        (1 - idle_share, 1.0, IDLE, "idle or waiting"),
    )
    for begin, end, fill, text in parts:
        ax.add_patch(
            Rectangle(
                (begin, 1.03),
                end - begin,
                0.13,
                transform=ax.transAxes,
                clip_on=False,
                facecolor=fill,
                edgecolor="none",
                label=text,
            )
        )
        if end - begin > _LABELLED:
            ax.text(
                (begin + end) / 2,
                1.093,
                text,
                transform=ax.transAxes,
                ha="center",
                va="center",
                fontsize=8,
                color="white" if fill in _DARK else BLACK,
            )


def _load_axis(axes: Sequence[Axes], largest: int) -> None:
    """Give all panels the same axis of nonzeros, with a place for those that have none."""
    uppers = load_bins(largest)
    right = float(_edges(uppers)[1][-1])
    single = largest <= SINGLE_BINS
    begin, end = _idle_place(uppers)
    if single:
        ticks = [1, *range(step := max(1, -(-largest // 12)), largest + 1, step)]
        limits, idle = (-2.0, right + 0.5), -1.0
    else:
        step = -(-largest.bit_length() // 14)
        ticks = [2**k for k in range(0, largest.bit_length() + 1, step) if 2**k <= right]
        limits, idle = (0.22, right * 1.06), (begin * end) ** 0.5
    for ax in axes:
        if not single:
            ax.set_xscale("log")
        ax.set_xlim(limits)
        ax.xaxis.set_major_locator(FixedLocator([idle, *sorted(set(ticks))]))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xticklabels(["idle", *(f"{tick:,}" for tick in sorted(set(ticks)))])
        ax.tick_params(axis="x", labelbottom=ax is axes[-1])


def _count_axis(axes: Sequence[Axes], tallies: Sequence[Loads], uppers: Integers) -> None:
    """Give all panels the same axis of warps."""
    counts = np.concatenate([[*tally.binned(uppers), tally.idle or 0] for tally in tallies] or [[]])
    counts = counts[counts > 0]
    high = float(counts.max(initial=1))
    log = counts.size > 0 and high / float(counts.min()) > _LINEAR_SPAN
    for ax in axes:
        if log:
            ax.set_yscale("log")
            ax.set_ylim(0.6, high**1.2)
            ax.yaxis.set_major_formatter(PLAIN)
            ax.yaxis.set_minor_formatter(NullFormatter())
        else:
            ax.set_ylim(0, high * 1.25)
            ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
            ax.yaxis.set_major_formatter("{x:,.0f}")


def _name_loads(
    ax: Axes,
    name: str,
    statistics: PartitionSummary,
    tally: Loads | None,
    worker: str,
) -> None:
    """Say above a panel how much time its strategy loses, and what it launches."""
    share = statistics.idle_share
    pad = 6 if np.isnan(share) or (tally is not None and not tally.warps.size) else 21
    lost = (
        f"{share:.{0 if share >= 0.0995 or not share else 1}%} of {worker} time is idle or waiting"
    )
    if np.isnan(share):
        lost = "time that is lost is not known from the degrees alone"
    if tally is not None and not tally.warps.size:
        lost = f"no {worker} has a nonzero"
    launched = ""
    if statistics.warps is not None and statistics.blocks is not None:
        blocks = "block" if statistics.blocks == 1 else "blocks"
        launched = f"{statistics.warps:,} {worker}s in {statistics.blocks:,} {blocks}"
        if tally is not None:
            launched += f", {tally.idle or 0:,} idle"
    ax.set_title(f"{name}: {lost}", loc="left", fontsize=10.5, fontweight="bold", pad=pad)
    ax.set_title(launched, loc="right", fontsize=9, color=GREY, pad=pad)
    said = f"{name}: {lost}" + f"; {launched}" * bool(launched)
    if tally is not None and tally.warps.size:
        busiest = int(tally.nonzeros[-1])
        said += (
            f"; the busiest {worker} has {busiest:,} nonzeros, "
            f"{busiest / tally.mean:,.1f} times the mean of those with work"
        )
    tell(ax, said + ".")
