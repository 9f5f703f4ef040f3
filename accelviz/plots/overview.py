"""One picture of a plan: degrees, a few blocks close up, the load of every warp."""

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
    """Draw a plan with block-level metadata on one page.

    Parameters
    ----------
    plan, warp_level : Plan
        Of `accel_gcn` on one graph, the latter with `partition="warp"`.
    schemes : DataFrame
        A line for each way to do the product, by what the picture calls it: `strategy` (whose
        colour it has), `waiting` (percent of warp time) and `microseconds`; NaN where not known.
    timed_on : str
        Where these times are from, or why there are none.

    Returns
    -------
    Figure
        Not known to pyplot, so it need not be closed.
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
        middle: "A block takes rows of equal degree; warps of one long row are alike, spare ones "
        "idle.\nColours part rows. Its int4: (degree, first place, first nonzero, nonzeros a warp "
        "| rows)",
        lower: "The work of every warp, and how much warp time is spent waiting for the busiest",
        last: f"Waiting is not time: {timed_on}",
    }
    for number, (panel, text) in enumerate(panel_titles.items(), 1):
        indented = text.replace("\n", "\n     ")
        panel.suptitle(f"{number}  {indented}", x=0.01, ha="left", fontsize=11)
    bounds = _degree_bounds(plan)
    degree_histogram(degrees.degrees, degrees.rows, bounds=bounds, ax=left.subplots())
    if blocks := _examples(plan):
        axes = list(middle.subplots(1, len(blocks), squeeze=False)[0])
        block_close_ups(
            [*blocks.values()], warps_per_block=plan.workers_per_block, titles=[*blocks], axes=axes
        )
    plans = {
        "the warp-level partition of rows in the caller's order": warp_level,
        "degree sorting and the block-level partition": plan,
    }
    loads = {
        f"{planned.statistics.idle_share:.0%} with {scheme}": plan_load_map(planned)
        for scheme, planned in plans.items()
    }
    load_maps(loads, axes=list(lower.subplots(len(loads), 1, squeeze=False)[:, 0]))
    _waiting_and_time(last, schemes)
    return figure


def _setting(plan: Plan) -> BlockSetting:
    return BlockSetting(plan.parameters["max_block_warps"], plan.parameters["max_warp_nzs"])


def _degree_bounds(plan: Plan) -> dict[int, str]:
    """Name the ranges of degrees that the block-level partition treats alike, by upper end."""
    setting = _setting(plan)
    shared = {setting.deg_bound: "warps share a row"} if setting.max_block_warps > 1 else {}
    beyond = {WORD_LIMIT: "split over\nblocks"}
    return {setting.max_warp_nzs: "one warp a row", **shared, **beyond}


def _examples(plan: Plan, count: int = 5) -> dict[str, Workload]:
    """Choose a few blocks that differ: number and int4 as a title, and what their warps do."""
    if plan.metadata is None:
        return {}
    setting = _setting(plan)
    fields = unpack(plan.metadata, setting)
    chosen = {}
    for block in example_blocks(fields.degree, fields.rows * fields.warps_per_row, count):
        degree, row, loc, info = (int(word) for word in plan.metadata[block])
        whole = degree <= setting.deg_bound
        packed = f"{fields.warp_nzs[block]}|{fields.rows[block]}" if whole else str(info)
        title = f"block {block}\n({degree}, {row},\n{loc}, {packed})"
        chosen[title] = plan.workload(block, block + 1)
    return chosen


def _waiting_and_time(panel: SubFigure, schemes: pd.DataFrame) -> None:
    """Draw a line for each scheme: its idle share on the left, its time on the right."""
    waiting, taking = panel.subplots(1, 2, sharey=True)
    colours = schemes["strategy"].map(strategy_colours(schemes["strategy"]))
    lines = np.arange(len(schemes))
    bars = waiting.barh(lines, schemes["waiting"].fillna(0), height=0.6, color=colours)
    texts = schemes["waiting"].map("{:.0f}%".format, na_action="ignore").fillna("not known")
    waiting.bar_label(bars, texts, padding=3, fontsize=9)
    waiting.set(xlabel="warp time spent waiting, %", xlim=(0, 112))
    waiting.set_yticks(lines, schemes.index)
    waiting.set_ylim(len(schemes) - 0.4, -0.6)
    taking.scatter(schemes["microseconds"], lines, s=64, c=colours)
    for line, time in enumerate(schemes["microseconds"]):
        if np.isfinite(time):
            draw.annotate(taking, f"{time:,.1f} µs", (time, line), (7, 0), va="center", fontsize=9)
    if schemes["microseconds"].notna().any():
        taking.set_xscale("log")
        taking.set_xmargin(0.2)
        taking.xaxis.set_major_formatter(PLAIN)
    else:
        taking.set_xticks([])
    taking.set_xlabel("time on the GPU, µs (logarithmic)")
    for ax in (waiting, taking):
        tidy(ax)
