"""Pictures of load balance: bars of a block's workers, heat maps of warps, and histograms.

A worker is the unit of threads whose nonzeros a workload counts: a warp, a combined warp or a part
of a warp such as a subwarp. Bars and histograms show nonzeros of workers; heat maps and idle shares
are those of the hardware's warps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullFormatter

from accelviz.analysis.balance import LoadMap, load_bins, plan_load_map
from accelviz.errors import ArgumentError
from accelviz.partition.summary import Loads
from accelviz.plans import Plan
from accelviz.plots import draw
from accelviz.plots.style import (
    GREY,
    IDLE,
    PLAIN,
    ROW_COLOURS,
    Look,
    add_alt,
    strategy_colours,
    tidy,
)
from accelviz.workload import Workload

#: Load maps share the axis of blocks if the widest has at most this many times the blocks of the
#: narrowest.
_MAX_WIDTH_RATIO = 8
#: A load map with less than this share of the widest map's blocks has the label "no block",
#: for which there is room.
_LABELLED_SHARE = 0.93
_IDLE_COLOUR = "#A8A8A8"
#: Background of text on bars.
_TEXT_BOX = {"boxstyle": "square,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.85}
#: Smallest share of the width with room for a word.
_WORD_WIDTH = 0.12
_MAX_BIN_LABELS = 9
#: Position of the bar of idle warps; the bins are at 1, 2, 3, ...
_IDLE_POSITION = -0.4
#: Largest ratio of bar heights for a linear axis.
_LINEAR_SPAN = 50


def block_close_ups(
    works: Sequence[Workload],
    *,
    warps_per_block: int,
    titles: Sequence[str] = (),
    worker: str = "warp",
    axes: list[Axes] | None = None,
) -> list[Axes]:
    """Draw blocks side by side: one bar per worker, with one segment per row.

    The length of a segment is the number of nonzeros, on the same scale for all blocks. Two colours
    alternate from row to row.

    Parameters
    ----------
    works : sequence of Workload
        Workloads of single blocks, from `plan.workload(block, block + 1)`.
    warps_per_block : int
        Number of workers per block, including idle ones: `plan.workers_per_block`.
    titles : sequence of str, optional
        Titles of the blocks; the default is their numbers.
    worker : str
        Name of a worker: `plan.worker`.
    """
    size = (2.4 * len(works) + 0.6, 1.7 + 0.16 * warps_per_block)
    panels = axes or draw.new_panels(size, 1, len(works))
    longest = max((int(work.nz_count.max(initial=1)) for work in works), default=1)
    for i, (ax, work) in enumerate(zip(panels, works, strict=True)):
        parts = work.to_frame()
        left = parts.groupby("warp")["nz_count"].cumsum() - parts["nz_count"]
        colours = [ROW_COLOURS[row % 2] for row in work.row]
        look: Look = {"height": 0.8, "color": colours, "ec": "white", "lw": 0.5}
        ax.barh(work.warp, work.nz_count, left=left, **look)
        busy = np.unique(work.warp[work.nz_count > 0])
        for warp in np.setdiff1d(np.arange(warps_per_block), busy):
            draw.annotate(ax, "no work", (0, warp), (2, 0), va="center", fontsize=7, color=GREY)
        ax.set(xlabel="nonzeros", xlim=(0, longest * 1.03), ylim=(warps_per_block - 0.4, -0.6))
        ax.set_yticks(range(0, warps_per_block, max(1, warps_per_block // 6)))
        ax.tick_params(labelleft=i == 0)
        block = work.block[0] if len(work) else ""
        ax.set_title(titles[i] if titles else f"block {block}", fontsize=8.5)
        draw.count_ticks(ax.xaxis, most=4)
        draw.finish(ax, f"Block {block}: {busy.size} of {warps_per_block} {worker}s have nonzeros.")
    if panels:
        panels[0].set_ylabel(worker)
    return panels


def load_maps(
    maps: Plan | Mapping[str, Plan | LoadMap], *, axes: list[Axes] | None = None
) -> list[Axes]:
    """Draw the steps of all hardware warps as heat maps, one above the other.

    A block is a column, a warp is a line, and idle warps are light grey. If there are more blocks
    than columns, a column has several: the upper half of a cell shows the largest number of steps
    among them and the lower half their mean. The maps share the axis of blocks unless one map would
    be narrower than an eighth of the widest; then each has its own axis and the axis label of the
    lowest map says so.

    Parameters
    ----------
    maps : Plan, or mapping of str to Plan or LoadMap
        Title to plan or load map. The idle share of warp time is added to the title of a plan.

    Raises
    ------
    ArgumentError
        If there is no map.
    """
    if isinstance(maps, Plan):
        maps = {maps.name: maps}
    if not maps:
        raise ArgumentError("maps", "no load map", "one or more, by title")
    loads = {}
    for title, plan in maps.items():
        if isinstance(plan, LoadMap):
            loads[title] = plan
        else:
            idle = f"{plan.statistics.idle_share:.1%} of warp time idle"
            loads[f"{title}: {idle}"] = plan_load_map(plan)
    panels = axes or draw.new_panels((10, 0.4 + 1.8 * len(loads)), len(loads), 1)
    largest = max(float(load.most.max(initial=1)) for load in loads.values())
    blocks = [load.n_blocks for load in loads.values()]
    widest = max(blocks) or 1
    separate = min(filter(None, blocks), default=1) * _MAX_WIDTH_RATIO < widest
    norm = LogNorm(1, max(largest, 2))
    colours = colormaps["viridis_r"].with_extremes(bad=IDLE)
    for ax, (title, load) in zip(panels, loads.items(), strict=True):
        columns, warps = load.most.shape
        if columns:
            extent = (-0.5, load.n_blocks - 0.5, warps - 0.5, -0.5)
            halves = np.stack([load.most, load.mean], axis=2).reshape(columns, -1)
            cells = np.ma.masked_equal(halves.T, 0)
            draw.cells(ax, cells.clip(min=1), colours, norm, extent=extent)
            draw.count_ticks(ax.yaxis, most=4)
        else:
            ax.set_yticks([])
        ax.set_xlim(-0.5, ((load.n_blocks or 1) if separate else widest) - 0.5)
        if not separate and 0 < load.n_blocks < _LABELLED_SHARE * widest:
            middle = (load.n_blocks + widest) / 2
            draw.write_centred(ax, middle, (warps - 1) / 2, "no block", "white", 8, color=GREY)
        draw.count_ticks(ax.xaxis, most=7)
        ax.set_ylabel("warp")
        ax.set_title(title, loc="left", fontsize=9.5)
        add_alt(ax, f"{title}: the {load.unit}s of each warp of {load.n_blocks:,} blocks.")
        if load.n_blocks > columns:
            look: Look = {"ha": "right", "fontsize": 8, "color": GREY, "transform": ax.transAxes}
            together = f"up to {-(-load.n_blocks // columns):,} blocks a column"
            ax.text(1, 1.02, f"{together}: most above, mean below", **look)
    panels[-1].set_xlabel("block" + " (each picture as wide as its own blocks)" * separate)
    units = " or ".join(dict.fromkeys(f"{load.unit}s" for load in loads.values()))
    label = f"{units} of the warp\n(grey: idle)"
    draw.colour_bar(panels, ScalarMappable(norm, colours), label, format=PLAIN)
    return panels


def warp_loads(plans: Plan | Mapping[str, Plan]) -> list[Axes]:
    """Draw histograms of the loads of warps, one panel per strategy, with the same axes.

    Idle warps have a separate grey bar. The bins are those of `analysis.balance.load_bins`: two per
    doubling if a warp has more than `SINGLE_BINS` nonzeros. The axis of the number of warps is
    logarithmic if bar heights span more than a factor of 50. A strip above each panel is the idle
    share of the hardware's warps.

    Parameters
    ----------
    plans : Plan, or mapping of str to Plan
        Name of a strategy to its plan.

    Raises
    ------
    ArgumentError
        If there is no plan.
    PartitionError
        If a plan calls a library (cuSPARSE), whose work per warp is unknown.
    """
    if isinstance(plans, Plan):
        plans = {plans.name: plans}
    if not plans:
        raise ArgumentError("plans", "no plan", "one or more, by the name of the strategy")
    loads = {name: _plan_loads(plan) for name, plan in plans.items()}
    uppers = load_bins(max(int(warps.nonzeros.max(initial=1)) for warps in loads.values()))
    size = (10, 0.6 + 1.9 * len(plans))
    panels = draw.new_panels(size, len(plans), 1, sharex=True, sharey=True)
    _share_axes(panels[0], loads.values(), uppers)
    colours = strategy_colours(plans)
    for ax, (name, plan) in zip(panels, plans.items(), strict=True):
        _draw_histogram(ax, loads[name], uppers, colours[name])
        if loads[name].warps.size:
            _draw_time_strip(ax, plan.statistics.idle_share, colours[name])
        _write_titles(ax, name, plan, loads[name])
        ax.set_ylabel(f"{plan.worker}s")
        tidy(ax)
    widths = "" if uppers.size == uppers[-1] else ", two bins to each doubling"
    workers = " or ".join(dict.fromkeys(plan.worker for plan in plans.values()))
    panels[-1].set_xlabel(f"nonzeros of a {workers}{widths}")
    return panels


def _plan_loads(plan: Plan) -> Loads:
    loads = plan.statistics.loads
    assert loads is not None  # a plan's statistics are counted from its workload
    return loads


def _share_axes(ax: Axes, all_loads: Iterable[Loads], uppers: np.ndarray) -> None:
    lowers = np.append(1, uppers[:-1] + 1)
    texts = [
        f"{low:,}" if low == upper else f"{low:,} to {upper:,}"
        for low, upper in zip(lowers, uppers, strict=True)
    ]
    step = -(-uppers.size // _MAX_BIN_LABELS)
    ticks = np.arange(1, uppers.size + 1, step)
    ax.set_xticks([_IDLE_POSITION, *ticks], ["0", *texts[::step]])
    ax.set_xlim(-1.2, uppers.size + 0.8)
    counts = np.concatenate([[*loads.binned(uppers), loads.idle or 0] for loads in all_loads])
    counts = counts[counts > 0]
    high = float(counts.max(initial=1))
    if counts.size and high / counts.min() > _LINEAR_SPAN:
        ax.set(yscale="log", ylim=(0.6, high**1.2))
        ax.yaxis.set_major_formatter(PLAIN)
        ax.yaxis.set_minor_formatter(NullFormatter())
    else:
        ax.set_ylim(0, high * 1.25)
        draw.count_ticks(ax.yaxis, most=4)


def _draw_histogram(ax: Axes, loads: Loads, uppers: np.ndarray, colour: str) -> None:
    counts = np.append(loads.idle or 0, loads.binned(uppers))
    positions = np.append(_IDLE_POSITION, np.arange(1, counts.size))
    colours = np.append(_IDLE_COLOUR, [colour] * uppers.size)
    nonempty = counts > 0
    ax.bar(positions[nonempty], counts[nonempty], 0.86, color=colours[nonempty])
    if not loads.nonzeros.size:
        return
    largest = int(loads.nonzeros[-1])
    text = f"busiest {largest:,}: {largest / loads.mean:,.1f} times the mean"
    marks = [(loads.mean, 0.68, f"mean {loads.mean:,.1f}", "--"), (largest, 0.9, text, "-")]
    if loads.nonzeros.size == 1:
        marks = [(largest, 0.9, f"{largest:,} each", "-")]
    for value, y, text, ls in marks:
        x = float(np.interp(value, uppers, positions[1:]))
        ax.axvline(x, ymax=y, color="black", lw=1.2, ls=ls)
        shift, side = (-5, "right") if draw.fractions(ax, x) > 0.55 else (5, "left")
        look: Look = {"xycoords": draw.UP, "ha": side, "va": "center"}
        draw.annotate(ax, text, (x, y), (shift, 0), fontsize=9, bbox=_TEXT_BOX, **look)


def _draw_time_strip(ax: Axes, idle_share: float, colour: str) -> None:
    busy = 1 - idle_share
    parts = ((0.0, busy, colour, "working"), (busy, idle_share, IDLE, "idle"))
    for begin, width, fill, text in parts:
        look: Look = {"facecolor": fill, "edgecolor": "none", "label": text, "clip_on": False}
        ax.add_patch(Rectangle((begin, 1.03), width, 0.13, transform=ax.transAxes, **look))
        if width > _WORD_WIDTH:
            draw.write_centred(ax, begin + width / 2, 1.093, text, fill, 8, transform=ax.transAxes)


def _write_titles(ax: Axes, name: str, plan: Plan, loads: Loads) -> None:
    """Write the idle share of a strategy's warp time and its launch size above a panel."""
    summary, worker, busiest = plan.statistics, plan.worker, ""
    idle, pad = f"no {worker} has a nonzero", 6
    if loads.warps.size:
        share, pad = summary.idle_share, 21
        digits = 0 if share >= 0.0995 or not share else 1  # 0.0995 rounds to 10 %
        idle = f"{share:.{digits}%} of warp time is idle"
        largest = int(loads.nonzeros[-1])
        times = f"{largest / loads.mean:,.1f} times the mean of those with work"
        busiest = f"; the busiest {worker} has {largest:,} nonzeros, {times}"
    blocks = draw.pluralize(plan.launch.n_blocks, "block")
    launched = f"{summary.workers:,} {worker}s in {blocks}, {loads.idle or 0:,} idle"
    draw.write_heading(ax, f"{name}: {idle}", pad=pad)
    ax.set_title(launched, loc="right", fontsize=9, color=GREY, pad=pad)
    add_alt(ax, f"{name}: {idle}; {launched}{busiest}.")
