"""One picture of a plan: degrees, a few blocks close up, the load of every warp."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from accelviz.analysis.balance import LoadMap
from accelviz.ordering import DegreeHistogram
from accelviz.plots import draw
from accelviz.plots.degrees import degree_histogram
from accelviz.plots.loads import block_close_ups, load_maps
from accelviz.plots.style import PLAIN, strategy_colours, tidy
from accelviz.workload import Workload


def overview(
    title: str,
    *,
    degrees: DegreeHistogram,
    degrees_title: str,
    degree_bounds: Mapping[int, str],
    blocks: Mapping[str, Workload],
    warps_per_block: int,
    loads: Mapping[str, LoadMap],
    schemes: pd.DataFrame,
    timed_on: str,
) -> Figure:
    """Draw a plan with block-level metadata on one page.

    Parameters
    ----------
    title, degrees_title : str
        Above everything, and what stands out in the distribution, in two lines.
    degrees : DegreeHistogram
    degree_bounds : mapping of int to str
        See `degree_histogram`.
    blocks : mapping of str to Workload
        Title to the work of one block, for the close-ups.
    warps_per_block : int
        Warps launched in each block.
    loads : mapping of str to LoadMap
        Title to the load of every warp, one under the other.
    schemes : DataFrame
        A line for each way to do the product, by what the picture calls it: `strategy` (whose
        colour it has), `waiting` (percent of warp time) and `microseconds`; NaN where not known.
    timed_on : str
        Where the schemes' times are from, or why there are none.

    Returns
    -------
    Figure
        Not known to pyplot, so it need not be closed.
    """
    engine = ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.06)
    figure = Figure(figsize=(12, 11.4), layout=engine, dpi=130)
    figure.suptitle(title, fontsize=14, fontweight="bold")
    upper, lower, last = figure.subfigures(3, 1, height_ratios=[1, 1.05, 0.7], squeeze=False)[:, 0]
    left, middle = upper.subfigures(1, 2, width_ratios=[1, 1.7], squeeze=False)[0]
    panel_titles = {
        left: f"Degrees: {degrees_title}",
        middle: "A block takes rows of equal degree; warps of one long row are alike, spare ones "
        "idle.\nColours part rows. Its int4: (degree, first place, first nonzero, nonzeros a warp "
        "| rows)",
        lower: "The work of every warp, and how much warp time is spent waiting for the busiest",
        last: f"Waiting is not time: {timed_on}",
    }
    for number, (panel, text) in enumerate(panel_titles.items(), 1):
        indented = text.replace("\n", "\n     ")
        panel.suptitle(f"{number}  {indented}", x=0.01, ha="left", fontsize=11)
    degree_histogram(degrees.degrees, degrees.rows, bounds=degree_bounds, ax=left.subplots())
    if blocks:
        axes = list(middle.subplots(1, len(blocks), squeeze=False)[0])
        works, titles = list(blocks.values()), list(blocks)
        block_close_ups(works, warps_per_block=warps_per_block, titles=titles, axes=axes)
    load_maps(loads, axes=list(lower.subplots(len(loads), 1, squeeze=False)[:, 0]))
    _waiting_and_time(last, schemes)
    return figure


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
            draw.beside(taking, f"{time:,.1f} µs", (time, line), (7, 0), va="center", fontsize=9)
    if schemes["microseconds"].notna().any():
        taking.set_xscale("log")
        taking.set_xmargin(0.2)
        taking.xaxis.set_major_formatter(PLAIN)
    else:
        taking.set_xticks([])
    taking.set_xlabel("time on the GPU, µs (logarithmic)")
    for ax in (waiting, taking):
        tidy(ax)
