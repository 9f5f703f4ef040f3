"""Overview of a plan on one page: degrees, example blocks, loads of all warps, and times."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from accelviz.analysis.balance import example_blocks, plan_load_map
from accelviz.ordering import DegreeHistogram
from accelviz.partition.block_level import WORD_LIMIT, BlockSetting, unpack
from accelviz.plans import Plan
from accelviz.plots import draw
from accelviz.plots.degrees import degree_histogram
from accelviz.plots.loads import block_close_ups, load_maps
from accelviz.plots.style import PLAIN, strategy_colours, tidy
from accelviz.workload import Workload


def overview(plan: Plan, warp_level: Plan, schemes: pd.DataFrame, *, timed_on: str) -> Figure:
    """Draw a plan of Accel-GCN's block-level partition on one page.

    Parameters
    ----------
    plan, warp_level : Plan
        Plans of `accel_gcn` for the same graph, the latter with `partition="warp"`.
    schemes : DataFrame
        Compared strategies, by display name: `strategy` (for its colour), `waiting` (idle share of
        warp time in percent) and `microseconds`; NaN if unknown.
    timed_on : str
        Origin of the times, or the reason for their absence.

    Returns
    -------
    Figure
        Not registered with pyplot, so it need not be closed.
    """
    graph = plan.pattern
    degrees = DegreeHistogram.of(graph.row_pointers)
    median = np.median(graph.degrees) if graph.n_rows else 0
    engine = ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.06)
    figure = Figure(figsize=(12, 11.4), layout=engine, dpi=130)
    figure.suptitle(
        f"{graph.name}: {graph.nnz:,} nonzeros in {graph.n_rows:,} rows times {plan.n_cols:,} "
        f"columns, on {plan.launch.n_blocks:,} blocks of {plan.workers_per_block} warps",
        fontsize=14,
        fontweight="bold",
    )
    upper, lower, last = figure.subfigures(3, 1, height_ratios=[1, 1.05, 0.7], squeeze=False)[:, 0]
    left, middle = upper.subfigures(1, 2, width_ratios=[1, 1.7], squeeze=False)[0]
    panel_titles = {
        left: f"Degrees: half of the rows have at most {median:.0f}\n"
        f"nonzeros, the longest has {degrees.largest:,}",
        middle: f"A block takes rows of equal degree; {plan.worker}s of one long row are alike."
        "\nColours separate rows. Its int4: (degree, first place, first nonzero, nonzeros of each "
        "| rows)",
        lower: "The work of every hardware warp, and the share of warp time that is idle until the "
        "busiest of a block ends",
        last: f"An idle share is not a time: {plan.n_cols:,} columns; {timed_on}.\n"
        "A colour is a strategy; that of Accel-GCN is here in two settings.",
    }
    for number, (panel, text) in enumerate(panel_titles.items(), 1):
        indented = text.replace("\n", "\n     ")
        panel.suptitle(f"{number}  {indented}", x=0.01, ha="left", fontsize=11)
    bounds = _degree_bounds(plan)
    degree_histogram(degrees.degrees, degrees.rows, bounds=bounds, ax=left.subplots())
    if blocks := _example_blocks(plan):
        axes = list(middle.subplots(1, len(blocks), squeeze=False)[0])
        block_close_ups(
            [*blocks.values()],
            warps_per_block=plan.workers_per_block,
            titles=[*blocks],
            worker=plan.worker,
            axes=axes,
        )
    plans = {
        "the warp-level partition of rows in the caller's order": warp_level,
        "degree sorting and the block-level partition": plan,
    }
    loads = {
        f"{planned.statistics.idle_share:.1%} with {scheme}": plan_load_map(planned)
        for scheme, planned in plans.items()
    }
    load_maps(loads, axes=list(lower.subplots(len(loads), 1, squeeze=False)[:, 0]))
    _draw_schemes(last, schemes)
    return figure


def _setting(plan: Plan) -> BlockSetting:
    return BlockSetting(plan.parameters["max_block_warps"], plan.parameters["max_warp_nzs"])


def _degree_bounds(plan: Plan) -> dict[int, str]:
    """Return labels of the degree ranges of the block-level partition, by upper bound."""
    setting = _setting(plan)
    bounds = {setting.max_warp_nzs: f"one {plan.worker}\na row"}
    if setting.max_block_warps > 1:
        bounds[setting.deg_bound] = f"{plan.worker}s\nshare a row"
    return {**bounds, WORD_LIMIT: "split over\nblocks"}


def _example_blocks(plan: Plan, count: int = 5) -> dict[str, Workload]:
    """Select blocks of different degrees; return a title with the block's int4, to its workload."""
    if plan.metadata is None:
        return {}
    setting = _setting(plan)
    fields = unpack(plan.metadata, setting)
    blocks = {}
    for block in example_blocks(fields.degree, fields.rows * fields.warps_per_row, count):
        degree, row, loc, info = (int(word) for word in plan.metadata[block])
        info_text = str(info)
        if degree <= setting.deg_bound:  # `info` packs two numbers
            info_text = f"{fields.warp_nzs[block]}|{fields.rows[block]}"
        title = f"block {block}\n({degree}, {row},\n{loc}, {info_text})"
        blocks[title] = plan.workload(block, block + 1)
    return blocks


def _draw_schemes(panel: SubFigure, schemes: pd.DataFrame) -> None:
    idle_ax, time_ax = panel.subplots(1, 2, sharey=True)
    colours = schemes["strategy"].map(strategy_colours(schemes["strategy"]))
    lines = np.arange(len(schemes))
    bars = idle_ax.barh(lines, schemes["waiting"].fillna(0), height=0.6, color=colours)
    texts = schemes["waiting"].map("{:.1f}%".format, na_action="ignore").fillna("not known")
    idle_ax.bar_label(bars, texts, padding=3, fontsize=9)
    idle_ax.set(xlabel="warp time idle, %", xlim=(0, 112))
    idle_ax.set_yticks(lines, schemes.index)
    idle_ax.set_ylim(len(schemes) - 0.4, -0.6)
    time_ax.scatter(schemes["microseconds"], lines, s=64, c=colours)
    for line, time in enumerate(schemes["microseconds"]):
        if np.isfinite(time):
            draw.annotate(time_ax, f"{time:,.1f} µs", (time, line), (7, 0), va="center", fontsize=9)
    if schemes["microseconds"].notna().any():
        time_ax.set_xscale("log")
        time_ax.set_xmargin(0.2)
        time_ax.xaxis.set_major_formatter(PLAIN)
    else:
        time_ax.set_xticks([])
    time_ax.set_xlabel("time on the GPU, µs (logarithmic)")
    for ax in (idle_ax, time_ax):
        tidy(ax)
