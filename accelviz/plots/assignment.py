"""Pictures of assignments: nonzeros of each row by block and warp (Accel-GCN, Figures 4d and e)."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from accelviz.analysis.assignment import Assignment, assignment
from accelviz.plans import Plan
from accelviz.plots import draw
from accelviz.plots.style import GREY, IDLE, ROW_COLOURS, Look, paler

#: In row units: height of a row's bar, and gap between rows that share no block.
_BAR_HEIGHT, _GAP = 0.82, 0.45
#: Inches per row unit, and largest height of a figure (a page).
_ROW_INCHES, _MAX_INCHES = 0.185, 11.0
#: Largest number of nonzeros in the picture for which lines separate the nonzeros of a run.
_MAX_SEPARATED = 400
#: The axis is linear if it spans at most so many nonzeros, or if the shortest row has at least this
#: share of the span.
_LINEAR_SPAN, _LINEAR_SHARE = 100, 0.1
#: Width in points of a digit of a warp number, of a letter of the note and of the bold title.
_DIGIT_POINTS, _NOTE_POINTS, _TITLE_POINTS = 5.2, 4.2, 6.0
#: Smallest width in points of a nonzero that is separated by a line.
_SEPARATED_POINTS = 4.0
#: Share of the width of the axes that the layout leaves beside the labels on both sides.
_WIDTH_SHARE = 0.72
_TEXT_LINE_POINTS = 9.0


def block_assignment(plan: Plan | Assignment, *, ax: Axes | None = None) -> Axes:
    """Draw rows as bars of their runs of nonzeros, coloured by block and shaded by warp.

    Rows are in kernel order from top to bottom. A run has the colour of its block and the shade and
    number of its warp. Grey nonzeros belong to blocks that are not listed. If short and long rows
    are mixed, the axis has a square-root scale, which its label states.

    Parameters
    ----------
    plan : Plan or Assignment
        A plan is replaced by `assignment(plan)`: all of a small graph, or example blocks.
    """
    listed = assignment(plan) if isinstance(plan, Plan) else plan
    rows, runs = listed.rows.set_index("row"), listed.runs
    blocks = runs.groupby("row")["block"].agg(["min", "max"]).reindex(rows.index, fill_value=-1)
    rows = rows.join(blocks)
    begins_block = (rows["min"] > rows["max"].shift()).to_numpy()
    y = np.arange(len(rows)) + _GAP * np.cumsum(begins_block)
    rows["y"] = y
    height = (y.max(initial=0) + 1) * _ROW_INCHES + 1.4
    ax = draw.new_axes(ax, figsize=(9.5, float(np.clip(height, 2.0, _MAX_INCHES))))
    low = int(runs["offset"].min()) if len(runs) else 0
    high = max(low + 1, int((runs["offset"] + runs["count"]).max()) if len(runs) else 1)
    degree = rows["degree"].to_numpy()
    rows["end"] = end = np.minimum(degree, high + (high - low) * 0.03)
    _set_x_axis(ax, degree, low, high)
    ax.set_ylim(y.max(initial=0) + 0.7, -0.7)
    if len(rows):
        top, bottom = y - _BAR_HEIGHT / 2, y + _BAR_HEIGHT / 2
        draw.rectangles(ax, low, np.maximum(end, low), top, bottom, fc=IDLE, lw=0, zorder=1)
        _draw_runs(ax, listed, rows["y"])
        _label_blocks(ax, listed, rows)
        is_clipped = degree > end
        if is_clipped.any():  # an empty line would upset the layout
            ax.plot(end[is_clipped], y[is_clipped], ">", color=GREY, ms=5, clip_on=False)
    else:
        draw.label_empty(ax, "nothing to show")
    step = max(1, int(np.ceil(len(rows) * _TEXT_LINE_POINTS / draw.size_in_points(ax)[1])))
    names = [f"{row:,}" for row in rows.index]
    if is_permuted := listed.order == "kernel":
        names = [f"{name} ({row:,})" for name, row in zip(names, rows["caller_row"], strict=True)]
    ax.set_ylabel("row" + " (caller's row)" * is_permuted)
    ax.set_yticks(y[::step], names[::step], fontsize=8)
    ax.tick_params(axis="y", length=0)
    extent = _extent_text(listed, int((rows["min"] < rows["max"]).sum()))
    title = f"{listed.strategy} on {listed.graph}: {_balance_text(listed)}"
    note = f"{extent}; a colour is a block, a shade a {listed.worker} with its number"
    note += "; grey: not shown" * (not listed.whole)
    width = draw.size_in_points(ax)[0]
    lines = textwrap.wrap(note, int(width / _NOTE_POINTS))
    draw.write_above(ax, "\n".join(lines), 5, 9, in_layout=True)
    draw.write_heading(
        ax, textwrap.fill(title, int(width / _TITLE_POINTS)), 11, pad=8 + 12 * len(lines)
    )
    return draw.finish(ax, f"{title}. Shown: {extent}. {_longest_row_text(listed)}")


def _set_x_axis(ax: Axes, degree: np.ndarray, low: int, high: int) -> None:
    span = high - low
    label = "nonzeros of the row"
    if span > _LINEAR_SPAN and degree[degree > 0].min() < _LINEAR_SHARE * span:
        root = (lambda x: np.sqrt(np.maximum(x - low, 0)), lambda y: y**2 + low)
        ax.set_xscale("function", functions=root)
        numbers = np.outer(10 ** np.arange(10), (1, 2, 5)).ravel()
        ticks = numbers[(numbers > span / 40) & (numbers < span / 1.25)]
        ax.set_xticks([low, *(low + ticks), high])
        label += " (square-root scale: the further right, the narrower)"
        ax.xaxis.set_major_formatter("{x:,.0f}")
    else:
        draw.count_ticks(ax.xaxis, most=10, least=1)
    ax.set(xlim=(low, high + span * 0.03), xlabel=label)


def _draw_runs(ax: Axes, listed: Assignment, row_y: pd.Series) -> None:
    runs = listed.runs.assign(y=row_y[listed.runs["row"]].to_numpy())
    colour_index = np.searchsorted(listed.blocks["block"], runs["block"]) % len(ROW_COLOURS)
    runs["colour"] = [
        paler(ROW_COLOURS[i], 0.5 if warp % 2 else 1)
        for i, warp in zip(colour_index, runs["warp"], strict=True)
    ]
    empty, runs = runs[runs["count"] == 0], runs[runs["count"] > 0]
    y, begin = runs["y"].to_numpy(), runs["offset"].to_numpy()
    end = begin + runs["count"].to_numpy()
    ax_points = draw.size_in_points(ax)[0] * _WIDTH_SHARE
    width = (draw.fractions(ax, end) - draw.fractions(ax, begin)) * ax_points
    edge: Look = {"ec": "white", "linewidths": np.minimum(width * 0.12, 1.2)}
    colours, half = runs["colour"].tolist(), _BAR_HEIGHT / 2
    draw.rectangles(ax, begin, end, y - half, y + half, fc=colours, **edge, zorder=2)
    if end.size and (end - begin).sum() <= _MAX_SEPARATED:
        inner = np.concatenate([np.arange(*run) for run in zip(begin + 1, end, strict=True)])
        inner_y = np.repeat(y, end - begin - 1)
        nonzero_width = (draw.fractions(ax, inner + 1) - draw.fractions(ax, inner)) * ax_points
        wide = nonzero_width > _SEPARATED_POINTS
        low, high = inner_y[wide] - half, inner_y[wide] + half
        ax.vlines(inner[wide], low, high, color="white", lw=0.5, alpha=0.6, zorder=3)
    middle = (draw.fractions(ax, begin) + draw.fractions(ax, end)) / 2
    style: Look = {"va": "center_baseline", "transform": ax.get_yaxis_transform()}
    for x, run_width, run in zip(middle, width, runs.itertuples(), strict=True):
        if run_width > len(str(run.warp)) * _DIGIT_POINTS + 1:
            style["path_effects"] = [withStroke(linewidth=2, foreground=run.colour)]
            draw.write_centred(ax, x, run.y, run.warp, run.colour, 7.5, **style)
    for run in empty.itertuples():
        ax.plot([0, 0], [run.y - half, run.y + half], color=run.colour, lw=3, clip_on=False)


def _label_blocks(ax: Axes, listed: Assignment, rows: pd.DataFrame) -> None:
    """Label rows with their blocks; neighboring rows of the same blocks share a label."""
    group = (rows[["min", "max"]].diff() != 0).any(axis=1).cumsum()
    blocks = listed.blocks.set_index("block")
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
        middle = same["y"].mean()
        is_near = (same["y"] - middle).abs() < (1 + _BAR_HEIGHT) / 2  # bars beside the label
        xy = (float(draw.fractions(ax, same["end"][is_near].max())), middle)
        transform = ax.get_yaxis_transform()
        draw.annotate(ax, text, xy, (5, 0), xycoords=transform, va="center", fontsize=8)


def _balance_text(listed: Assignment) -> str:
    """Return by how much the loads of the warps within a block differ, as text."""
    busy = listed.blocks[listed.blocks["warps"] > 0]
    if not len(busy):
        return "no nonzero"
    factor = float((busy["most"] / busy["least"]).max())
    warps = f"{'' if listed.whole else 'here, '}a block's {listed.worker}s"
    if factor == 1:
        return f"{warps} have equally many nonzeros"
    by = f"up to {factor:,.0f}-fold" if factor >= 2 else f"by up to {factor - 1:.0%}"
    return f"{warps} differ {by} in nonzeros"


def _extent_text(listed: Assignment, split_rows: int) -> str:
    blocks = draw.pluralize(listed.n_blocks, "block")
    if listed.whole:
        rows = draw.pluralize(listed.n_rows, "row")
        return f"{blocks} for {rows}, {split_rows or 'none'} of these split over several blocks"
    share = int(listed.runs["count"].sum()) / max(1, listed.nnz)
    text = f"{share:.1%}" if share >= 0.001 else f"one in {1 / share:,.0f}" if share else "none"
    return f"{len(listed.blocks):,} of {blocks}, {text} of the nonzeros"


def _longest_row_text(listed: Assignment) -> str:
    """Return the blocks and warps of the row with most listed nonzeros, for the alt text."""
    runs = listed.runs[listed.runs["count"] > 0]
    if not len(runs):
        return "No row has a nonzero."
    row = runs.groupby("row")["count"].sum().idxmax()
    longest = runs[runs["row"] == row]
    warps = draw.pluralize(len(longest[["block", "warp"]].drop_duplicates()), listed.worker)
    blocks = draw.pluralize(longest["block"].nunique(), "block")
    nonzeros = longest["count"].sum()
    return f"Row {row:,} has most nonzeros, {nonzeros:,}, on {warps} of {blocks}."
