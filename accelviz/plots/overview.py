"""One picture of a plan: degrees, a few blocks close up, the load of every warp."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from accelviz.analysis.balance import LoadMap
from accelviz.ordering import DegreeHistogram
from accelviz.plots.degrees import degree_histogram
from accelviz.plots.loads import block_close_ups, load_maps
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

    Returns
    -------
    Figure
        Not known to pyplot, so it need not be closed.
    """
    engine = ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.06)
    figure = Figure(figsize=(12, 8.4), layout=engine, dpi=130)
    figure.suptitle(title, fontsize=14, fontweight="bold")
    upper, lower = figure.subfigures(2, 1, height_ratios=[1, 1.05], squeeze=False)[:, 0]
    left, right = upper.subfigures(1, 2, width_ratios=[1, 1.7], squeeze=False)[0]

    panel_titles = {
        left: f"Degrees: {degrees_title}",
        right: "A block takes rows of equal degree (a colour for each); warps share the long ones\n"
        "above its bars, its int4: (degree, first row, first nonzero, nonzeros a warp | rows)",
        lower: "The work of every warp, and how much warp time is spent waiting for the busiest",
    }
    for number, (panel, text) in enumerate(panel_titles.items(), 1):
        indented = text.replace("\n", "\n     ")
        panel.suptitle(f"{number}  {indented}", x=0.01, ha="left", fontsize=11)
    degree_histogram(degrees.degrees, degrees.rows, bounds=degree_bounds, ax=left.subplots())
    if blocks:
        axes = list(right.subplots(1, len(blocks), squeeze=False)[0])
        works, titles = list(blocks.values()), list(blocks)
        block_close_ups(works, warps_per_block=warps_per_block, titles=titles, axes=axes)
    load_maps(loads, axes=list(lower.subplots(len(loads), 1, squeeze=False)[:, 0]))
    return figure
