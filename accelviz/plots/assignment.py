"""Row by row: which warp of which block handles which nonzeros (Accel-GCN, Figures 4d and e)."""

from __future__ import annotations

import textwrap

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patheffects import withStroke

from accelviz.analysis.ownership import Assignment, assignment
from accelviz.plans import Plan
from accelviz.plots.drawing import Look, count_ticks, new_axes, nothing, points, rectangles
from accelviz.plots.labels import beside, counted, head
from accelviz.plots.style import GREY, IDLE, ROW_COLOURS, ink, paler, tell, tidy

#: Height of a row's bar, the gap before a row that shares no block with the one above it, and the
#: inches of a row with its gap.
_BAR, _GAP, _INCHES = 0.82, 0.45, 0.185
#: Figures are no higher than a page.
_HIGHEST = 11.0
#: Nonzeros in all up to which those of a run are parted by lines.
_PARTED = 400
#: Every nonzero has the same width if the longest bar has at most so many of them, or if the
#: shortest has at least this share of the longest.
_LINEAR, _ALIKE = 100, 0.1
#: Points that a digit of a warp's number takes, a letter of the note, and one of the bold title;
#: and points between two nonzeros that leave room for a line.
_DIGIT, _LETTER, _BOLD, _APART = 5.2, 4.2, 6.0, 4.0
#: What labels on both sides leave of the width that axes have before the layout.
_LEFT_OVER = 0.72
#: Points from one line of small text to the next.
_LINE_OF_TEXT = 9.0


def block_assignment(shown: Plan | Assignment, *, ax: Axes | None = None) -> Axes:
    """Draw rows as runs of their nonzeros, coloured by the block that handles them.

    A line for each row, in the order in which the kernel walks them. Colours are blocks, shades the
    warps within; a warp's number is written where there is room. Grey nonzeros belong to blocks
    that are not shown. Where short rows meet long ones, the axis has a square-root scale, which its
    label says.

    Parameters
    ----------
    shown : Plan or Assignment
        From `assignment`: a whole small graph, or some blocks of a large one, which it says.
    """
    shown = assignment(shown) if isinstance(shown, Plan) else shown
    rows, runs = shown.rows, shown.runs
    reach = _reach(shown)
    parted = np.zeros(len(reach))  # where no block goes on in the next row
    parted[1:] = reach["min"].to_numpy()[1:] > reach["max"].to_numpy()[:-1]
    line = np.arange(len(reach)) + _GAP * np.cumsum(parted)
    height = (line.max(initial=0) + 1) * _INCHES + 1.4
    ax = new_axes(ax, figsize=(9.5, float(np.clip(height, 2.0, _HIGHEST))))
    place = pd.Series(line, index=rows["row"])
    low = int(runs["place"].min()) if len(runs) else 0
    high = max(low + 1, int((runs["place"] + runs["count"]).max()) if len(runs) else 1)
    end = np.minimum(rows["degree"].to_numpy(), high + (high - low) * 0.03)
    _horizontal(ax, shown, low, high)
    ax.set_ylim(line.max(initial=0) + 0.7, -0.7)
    if len(rows):
        ends = np.maximum(end, low)
        rectangles(ax, low, ends, line - _BAR / 2, line + _BAR / 2, fc=IDLE, lw=0, zorder=1)
        _runs(ax, shown, place)
        _labels(ax, shown, place, pd.Series(end, index=rows["row"]))
        goes_on = rows["degree"].to_numpy() > end
        if goes_on.any():  # an empty line would upset the layout
            ax.plot(end[goes_on], line[goes_on], ">", color=GREY, ms=5, clip_on=False)
    else:
        nothing(ax, "nothing to show")
    step = max(1, int(np.ceil(len(rows) * _LINE_OF_TEXT / points(ax)[1])))
    names = [f"{row:,}" for row in rows["row"]]
    kernel = shown.order == "kernel"
    if kernel:
        names = [f"{name} ({row:,})" for name, row in zip(names, rows["caller_row"], strict=True)]
    ax.set_ylabel("row" + " (caller's row)" * kernel)
    ax.set_yticks(line[::step], names[::step], fontsize=8)
    ax.tick_params(axis="y", length=0)
    title = f"{shown.strategy} on {shown.graph}: {_loads(shown)}"
    note = f"{_share(shown)}; a colour is a block, a shade a {shown.worker} with its number"
    width = points(ax)[0]
    notes = textwrap.wrap(note + "; grey: not shown" * (not shown.whole), int(width / _LETTER))
    small: Look = {"xycoords": "axes fraction", "fontsize": 9, "color": GREY}
    beside(ax, "\n".join(notes), (0, 1), (0, 5), **small)
    head(ax, textwrap.fill(title, int(width / _BOLD)), 11, pad=8 + 12 * len(notes))
    tell(ax, f"{title}. Shown: {_share(shown)}. {_longest(shown)}")
    return tidy(ax)


def _reach(shown: Assignment) -> pd.DataFrame:
    """Return the first and the last block of each row that is shown, -1 if none is."""
    reach = shown.runs.groupby("row")["block"].agg(["min", "max"])
    return reach.reindex(shown.rows["row"], fill_value=-1)


def _horizontal(ax: Axes, shown: Assignment, low: int, high: int) -> None:
    span = high - low
    shortest = shown.rows["degree"][shown.rows["degree"] > 0].min()
    label = "nonzeros of the row"
    if span > _LINEAR and shortest < _ALIKE * span:
        root = (lambda x: np.sqrt(np.maximum(x - low, 0)), lambda y: y**2 + low)
        ax.set_xscale("function", functions=root)
        round_numbers = np.outer(10 ** np.arange(10), (1, 2, 5)).ravel()
        fits = (round_numbers > span / 40) & (round_numbers < span / 1.25)
        ax.set_xticks([low, *(low + round_numbers[fits]), high])
        label += " (square-root scale: the further right, the narrower)"
        ax.xaxis.set_major_formatter("{x:,.0f}")
    else:
        count_ticks(ax.xaxis, most=10, least=1)
    ax.set(xlim=(low, high + span * 0.03), xlabel=label)


def _runs(ax: Axes, shown: Assignment, place: pd.Series) -> None:
    runs = shown.runs[shown.runs["count"] > 0]
    rank = pd.Series(np.arange(len(shown.blocks)), index=shown.blocks["block"])
    line = place[runs["row"]].to_numpy()
    begin = runs["place"].to_numpy()
    end = begin + runs["count"].to_numpy()
    colours = [
        paler(ROW_COLOURS[i % len(ROW_COLOURS)], 0.5 if warp % 2 else 1)
        for i, warp in zip(rank[runs["block"]], runs["warp"], strict=True)
    ]
    points_wide = points(ax)[0] * _LEFT_OVER
    width = (_transformed(ax, end) - _transformed(ax, begin)) * points_wide
    edge: Look = {"ec": "white", "linewidths": np.minimum(width * 0.12, 1.2)}
    low, high = line - _BAR / 2, line + _BAR / 2
    rectangles(ax, begin, end, low, high, fc=colours, **edge, zorder=2)
    if end.size and (end - begin).sum() <= _PARTED:
        inner = np.concatenate([np.arange(*run) for run in zip(begin + 1, end, strict=True)])
        height = np.repeat(line, end - begin - 1)
        apart = (_transformed(ax, inner + 1) - _transformed(ax, inner)) * points_wide > _APART
        inner, height = inner[apart], height[apart]
        marks = np.stack([inner, height - _BAR / 2, inner, height + _BAR / 2], axis=1)
        look: Look = {"colors": "white", "linewidths": 0.5, "alpha": 0.6, "zorder": 3}
        ax.add_collection(LineCollection(list(marks.reshape(-1, 2, 2)), **look), autolim=False)
    texts = runs["warp"].astype(str)
    room = width > texts.str.len().to_numpy() * _DIGIT + 1
    middle = (_transformed(ax, begin) + _transformed(ax, end)) / 2
    style: Look = {"ha": "center", "va": "center_baseline", "transform": ax.get_yaxis_transform()}
    for i in np.flatnonzero(room):
        style["path_effects"] = [withStroke(linewidth=2, foreground=colours[i])]  # over the lines
        ax.text(middle[i], line[i], texts.iloc[i], fontsize=7.5, color=ink(colours[i]), **style)
    for run in shown.runs[shown.runs["count"] == 0].itertuples():
        colour = ROW_COLOURS[rank[run.block] % len(ROW_COLOURS)]
        y = place[run.row]
        ax.plot([0, 0], [y - _BAR / 2, y + _BAR / 2], color=colour, lw=3, clip_on=False)


def _transformed(ax: Axes, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Where along the axis, 0 to 1, a position in a row is drawn."""
    transform = ax.xaxis.get_transform()
    low, high = transform.transform(np.array(ax.get_xlim(), dtype=float))
    moved = transform.transform(np.asarray(x, dtype=float))
    return (moved - low) / (high - low)


def _labels(ax: Axes, shown: Assignment, place: pd.Series, end: pd.Series) -> None:
    """Name the blocks at the end of the rows: once for neighboring rows with the same blocks."""
    reach = _reach(shown).reset_index()
    group = (reach[["min", "max"]].diff() != 0).any(axis=1).cumsum()
    degrees = shown.rows.set_index("row")["degree"]
    blocks = shown.blocks.set_index("block")
    for _, rows in reach.groupby(group.to_numpy()):
        first, last = int(rows["min"].iloc[0]), int(rows["max"].iloc[0])
        degree = degrees[rows["row"]]
        low, high = int(degree.min()), int(degree.max())
        text = f"{len(rows)} rows of degree" if len(rows) > 1 else "a row of degree"
        text += f" {low:,}" if low == high else f"s {low:,} to {high:,}"
        if first < 0:
            text = f"no block: {text}"
        elif first < last:
            text = f"blocks {first:,} to {last:,}: {text}"
        else:
            hidden = int(blocks.loc[first, "rows"] - blocks.loc[first, "rows_shown"])
            text = f"block {first:,}: {text}" + (f", {hidden:,} more not shown" if hidden else "")
        lines = place[rows["row"]]
        near = (lines - lines.mean()).abs() < (1 + _BAR) / 2  # the bars that it could hide
        at = (float(_transformed(ax, end[rows["row"]][near].max())), lines.mean())
        beside(ax, text, at, (5, 0), xycoords=ax.get_yaxis_transform(), va="center", fontsize=8)


def _loads(shown: Assignment) -> str:
    """Say how much the warps of a block differ."""
    busy = shown.blocks[shown.blocks["warps"] > 0]
    if not len(busy):
        return "no nonzero"
    factor = float((busy["most"] / busy["least"]).max())
    warps = f"{'' if shown.whole else 'here, '}a block's {shown.worker}s"
    if factor == 1:
        return f"{warps} have equally many nonzeros"
    by = f"up to {factor:,.0f}-fold" if factor >= 2 else f"by up to {factor - 1:.0%}"
    return f"{warps} differ {by} in nonzeros"


def _share(shown: Assignment) -> str:
    if shown.whole:
        reach = _reach(shown)
        cut = int((reach["min"] < reach["max"]).sum())
        blocks, rows = counted(shown.n_blocks, "block"), counted(shown.n_rows, "row")
        return f"{blocks} for {rows}, {cut or 'none'} of these cut over several blocks"
    nonzeros = int(shown.runs["count"].sum())
    share = nonzeros / max(1, shown.nnz)
    part = f"{share:.1%}" if share >= 0.001 else f"one in {1 / share:,.0f}" if share else "none"
    return f"{len(shown.blocks):,} of {counted(shown.n_blocks, 'block')}, {part} of the nonzeros"


def _longest(shown: Assignment) -> str:
    """Say which of the rows shown is spread widest, for the alt text."""
    runs = shown.runs[shown.runs["count"] > 0]
    if not len(runs):
        return "No row has a nonzero."
    over = runs.groupby("row").agg(nonzeros=("count", "sum"), blocks=("block", "nunique"))
    over["warps"] = runs.drop_duplicates(["row", "block", "warp"]).groupby("row").size()
    row = over["nonzeros"].idxmax()
    found = over.loc[row]
    return (
        f"Row {row:,} has most nonzeros, {found['nonzeros']:,}, on "
        f"{counted(found['warps'], shown.worker)} of {counted(found['blocks'], 'block')}."
    )
