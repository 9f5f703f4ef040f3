"""Row by row: which warp of which block handles which nonzeros (Accel-GCN, Figures 4d and e)."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from accelviz.analysis.ownership import Assignment, assignment
from accelviz.plans import Plan
from accelviz.plots import draw
from accelviz.plots.style import GREY, IDLE, ROW_COLOURS, Look, paler

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


def block_assignment(plan: Plan | Assignment, *, ax: Axes | None = None) -> Axes:
    """Draw rows as runs of their nonzeros, coloured by the block that handles them.

    A line for each row, in the order in which the kernel walks them. Colours are blocks, shades the
    warps within; a warp's number is written where there is room. Grey nonzeros belong to blocks
    that are not shown. Where short rows meet long ones, the axis has a square-root scale, which its
    label says.

    Parameters
    ----------
    plan : Plan or Assignment
        From `assignment`: a whole small graph, or some blocks of a large one, which it says.
    """
    part = assignment(plan) if isinstance(plan, Plan) else plan
    rows, runs = part.rows.set_index("row"), part.runs
    reach = runs.groupby("row")["block"].agg(["min", "max"]).reindex(rows.index, fill_value=-1)
    rows = rows.join(reach)
    apart = (rows["min"] > rows["max"].shift()).to_numpy()  # no block goes on in the next row
    line = np.arange(len(rows)) + _GAP * np.cumsum(apart)
    rows["line"] = line
    height = (line.max(initial=0) + 1) * _INCHES + 1.4
    ax = draw.new_axes(ax, figsize=(9.5, float(np.clip(height, 2.0, _HIGHEST))))
    low = int(runs["place"].min()) if len(runs) else 0
    high = max(low + 1, int((runs["place"] + runs["count"]).max()) if len(runs) else 1)
    degree = rows["degree"].to_numpy()
    rows["end"] = end = np.minimum(degree, high + (high - low) * 0.03)
    _horizontal(ax, degree, low, high)
    ax.set_ylim(line.max(initial=0) + 0.7, -0.7)
    if len(rows):
        ends = np.maximum(end, low)
        draw.rectangles(ax, low, ends, line - _BAR / 2, line + _BAR / 2, fc=IDLE, lw=0, zorder=1)
        _runs(ax, part, rows["line"])
        _labels(ax, part, rows)
        goes_on = degree > end
        if goes_on.any():  # an empty line would upset the layout
            ax.plot(end[goes_on], line[goes_on], ">", color=GREY, ms=5, clip_on=False)
    else:
        draw.nothing(ax, "nothing to show")
    step = max(1, int(np.ceil(len(rows) * _LINE_OF_TEXT / draw.points(ax)[1])))
    names = [f"{row:,}" for row in rows.index]
    if kernel := part.order == "kernel":
        names = [f"{name} ({row:,})" for name, row in zip(names, rows["caller_row"], strict=True)]
    ax.set_ylabel("row" + " (caller's row)" * kernel)
    ax.set_yticks(line[::step], names[::step], fontsize=8)
    ax.tick_params(axis="y", length=0)
    share = _share(part, int((rows["min"] < rows["max"]).sum()))
    title = f"{part.strategy} on {part.graph}: {_loads(part)}"
    note = f"{share}; a colour is a block, a shade a {part.worker} with its number"
    width = draw.points(ax)[0]
    notes = textwrap.wrap(note + "; grey: not shown" * (not part.whole), int(width / _LETTER))
    draw.above(ax, "\n".join(notes), 5, 9, in_layout=True)
    draw.head(ax, textwrap.fill(title, int(width / _BOLD)), 11, pad=8 + 12 * len(notes))
    return draw.finish(ax, f"{title}. Shown: {share}. {_longest(part)}")


def _horizontal(ax: Axes, degree: np.ndarray, low: int, high: int) -> None:
    span = high - low
    label = "nonzeros of the row"
    if span > _LINEAR and degree[degree > 0].min() < _ALIKE * span:
        root = (lambda x: np.sqrt(np.maximum(x - low, 0)), lambda y: y**2 + low)
        ax.set_xscale("function", functions=root)
        round_numbers = np.outer(10 ** np.arange(10), (1, 2, 5)).ravel()
        fits = (round_numbers > span / 40) & (round_numbers < span / 1.25)
        ax.set_xticks([low, *(low + round_numbers[fits]), high])
        label += " (square-root scale: the further right, the narrower)"
        ax.xaxis.set_major_formatter("{x:,.0f}")
    else:
        draw.count_ticks(ax.xaxis, most=10, least=1)
    ax.set(xlim=(low, high + span * 0.03), xlabel=label)


def _runs(ax: Axes, part: Assignment, line_of: pd.Series) -> None:
    runs = part.runs.assign(line=line_of[part.runs["row"]].to_numpy())
    turn = np.searchsorted(part.blocks["block"], runs["block"]) % len(ROW_COLOURS)
    runs["colour"] = [
        paler(ROW_COLOURS[i], 0.5 if warp % 2 else 1)
        for i, warp in zip(turn, runs["warp"], strict=True)
    ]
    idle, runs = runs[runs["count"] == 0], runs[runs["count"] > 0]
    line, begin = runs["line"].to_numpy(), runs["place"].to_numpy()
    end = begin + runs["count"].to_numpy()
    wide = draw.points(ax)[0] * _LEFT_OVER
    width = (draw.fractions(ax, end) - draw.fractions(ax, begin)) * wide
    edge: Look = {"ec": "white", "linewidths": np.minimum(width * 0.12, 1.2)}
    colours = runs["colour"].tolist()
    draw.rectangles(ax, begin, end, line - _BAR / 2, line + _BAR / 2, fc=colours, **edge, zorder=2)
    if end.size and (end - begin).sum() <= _PARTED:
        inner = np.concatenate([np.arange(*run) for run in zip(begin + 1, end, strict=True)])
        middle = np.repeat(line, end - begin - 1)
        room = (draw.fractions(ax, inner + 1) - draw.fractions(ax, inner)) * wide > _APART
        low, high = middle[room] - _BAR / 2, middle[room] + _BAR / 2
        ax.vlines(inner[room], low, high, color="white", lw=0.5, alpha=0.6, zorder=3)
    middle = (draw.fractions(ax, begin) + draw.fractions(ax, end)) / 2
    style: Look = {"va": "center_baseline", "transform": ax.get_yaxis_transform()}
    for x, room, run in zip(middle, width, runs.itertuples(), strict=True):
        if room > len(str(run.warp)) * _DIGIT + 1:
            style["path_effects"] = [withStroke(linewidth=2, foreground=run.colour)]
            draw.centred(ax, x, run.line, run.warp, run.colour, 7.5, **style)
    for run in idle.itertuples():
        ends = [run.line - _BAR / 2, run.line + _BAR / 2]
        ax.plot([0, 0], ends, color=run.colour, lw=3, clip_on=False)


def _labels(ax: Axes, part: Assignment, rows: pd.DataFrame) -> None:
    """Name the blocks at the end of the rows: once for neighboring rows with the same blocks."""
    group = (rows[["min", "max"]].diff() != 0).any(axis=1).cumsum()
    blocks = part.blocks.set_index("block")
    for _, same in rows.groupby(group):
        first, last = int(same["min"].iloc[0]), int(same["max"].iloc[0])
        low, high = same["degree"].min(), same["degree"].max()
        text = f"{len(same)} rows of degree" if len(same) > 1 else "a row of degree"
        text += f" {low:,}" if low == high else f"s {low:,} to {high:,}"
        if first < 0:
            text = f"no block: {text}"
        elif first < last:
            text = f"blocks {first:,} to {last:,}: {text}"
        else:
            hidden = int(blocks.loc[first, "rows"] - blocks.loc[first, "rows_shown"])
            text = f"block {first:,}: {text}" + (f", {hidden:,} more not shown" if hidden else "")
        middle = same["line"].mean()
        near = (same["line"] - middle).abs() < (1 + _BAR) / 2  # the bars that it could hide
        at = (float(draw.fractions(ax, same["end"][near].max())), middle)
        draw.beside(
            ax, text, at, (5, 0), xycoords=ax.get_yaxis_transform(), va="center", fontsize=8
        )


def _loads(part: Assignment) -> str:
    """Say how much the warps of a block differ."""
    busy = part.blocks[part.blocks["warps"] > 0]
    if not len(busy):
        return "no nonzero"
    factor = float((busy["most"] / busy["least"]).max())
    warps = f"{'' if part.whole else 'here, '}a block's {part.worker}s"
    if factor == 1:
        return f"{warps} have equally many nonzeros"
    by = f"up to {factor:,.0f}-fold" if factor >= 2 else f"by up to {factor - 1:.0%}"
    return f"{warps} differ {by} in nonzeros"


def _share(part: Assignment, cut: int) -> str:
    if part.whole:
        blocks, rows = draw.counted(part.n_blocks, "block"), draw.counted(part.n_rows, "row")
        return f"{blocks} for {rows}, {cut or 'none'} of these cut over several blocks"
    share = int(part.runs["count"].sum()) / max(1, part.nnz)
    text = f"{share:.1%}" if share >= 0.001 else f"one in {1 / share:,.0f}" if share else "none"
    return f"{len(part.blocks):,} of {draw.counted(part.n_blocks, 'block')}, {text} of the nonzeros"


def _longest(part: Assignment) -> str:
    """Say which of the rows shown is spread widest, for the alt text."""
    runs = part.runs[part.runs["count"] > 0]
    if not len(runs):
        return "No row has a nonzero."
    row = runs.groupby("row")["count"].sum().idxmax()
    longest = runs[runs["row"] == row]
    warps = draw.counted(len(longest[["block", "warp"]].drop_duplicates()), part.worker)
    blocks = draw.counted(longest["block"].nunique(), "block")
    nonzeros = longest["count"].sum()
    return f"Row {row:,} has most nonzeros, {nonzeros:,}, on {warps} of {blocks}."
