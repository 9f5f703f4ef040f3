"""Accel-GCN's Figures 2, 5, 6, 7 and 8, Table II and Equation 1, beside our measurements.

Figure 2 and Equation 1 follow from the degrees. All other numbers are ratios of medians of the same
run. Means are geometric: over the column counts for a graph, and over the graphs for all.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from accelviz import plots
from accelviz.datasets import TABLE_ONE, TableEntry
from accelviz.measure.comparison import (
    labelled,
    latest,
    overall,
    speedups,
    table_two,
)
from accelviz.ordering import DegreeHistogram
from accelviz.partition.block_level import BlockSetting, block_partition, unpack
from accelviz.partition.warp_level import storage_ratio, warp_partition
from accelviz.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILLION, tidy
from benchmarks.pages.document import (
    Listing,
    Page,
    Parts,
    Picture,
    Results,
    format_ratio,
    markdown,
    mean_of,
    measured_on,
    paper_name,
)

#: The paper's machine (Xie et al., ICCAD 2023, arXiv 2308.11825); kernels timed by Nsight Compute.
SETTING = "RTX 3090, CUDA 12.0"
#: Section IV-B and abstract: mean and largest speedup over all graphs.
SPEEDUPS = {"cuSPARSE": (1.17, 1.45), "GNNAdvisor": (1.86, 3.41), "GraphBLAST": (2.94, 5.02)}
#: Table II, in percent: average, maximum, minimum for each range of column counts.
BLOCK_LEVEL = {
    "[16, 32]": (105.2, 129.2, 92.4),
    "(32, 64]": (107.2, 130.7, 94.1),
    "(64, 96]": (106.5, 127.7, 92.4),
    "(96, 128]": (106.8, 126.0, 92.9),
}
COMBINED_WARP = {
    "[16, 32]": (133.4, 194.5, 104.8),
    "(32, 64]": (127.8, 174.0, 87.3),
    "(64, 96]": (105.5, 126.5, 81.3),
    "(96, 128]": (122.9, 156.0, 86.7),
}
#: Section III-C, below Equation 1: metadata of the block-level over the warp-level scheme.
METADATA_SHARE = 0.08
#: Section III-A: Collab's largest degree over its average degree.
LARGEST_DEGREE = 66
#: Systems by their names in pictures, as cases of `measure.comparison`.
SYSTEMS = {
    "Accel-GCN": "accel_gcn",
    "GNNAdvisor": "gnnadvisor ngs=32",
    "GraphBLAST": "graphblast",
    "cuSPARSE": "cusparse algorithm=fastest preprocess=True",
}
#: Rows of Figure 5's table: name in the paper, variant measured here, case.
OPPONENTS = (
    ("cuSPARSE", ", fastest algorithm, preprocessed", SYSTEMS["cuSPARSE"]),
    ("cuSPARSE", ", fastest, not preprocessed", "cusparse algorithm=fastest preprocess=False"),
    ("cuSPARSE", ", default algorithm", "cusparse algorithm=default"),
    ("GNNAdvisor", ", groups of 32", SYSTEMS["GNNAdvisor"]),
    ("GNNAdvisor", ", groups of its Decider", "gnnadvisor ngs!=32"),
    ("GraphBLAST", "", SYSTEMS["GraphBLAST"]),
)
#: Column counts that fill warps; one more column may cause a step in time.
FULL = (32, 64, 96)
PUBLISHED = "accel_gcn partition=block combined_warp=True"
#: Accel-GCN without both ideas, which the paper does not measure.
NEITHER = "accel_gcn partition=warp combined_warp=False"
#: Picture, idea, replaced method, case without the idea, and the paper's Table II.
IDEAS = (
    (
        *("figure7", "Block-level partition", "the warp-level partition"),
        *("accel_gcn partition=warp combined_warp=True", BLOCK_LEVEL),
    ),
    (
        *("figure8", "Combined warp", "separate warps"),
        *("accel_gcn partition=block combined_warp=False", COMBINED_WARP),
    ),
)
#: Graphs of the picture: with many short rows, a tail of longer rows, rows longer than a block.
EXAMPLES = {"ovcar-8h": (BLUE, "o"), "collab": (ORANGE, "s"), "reddit": (GREEN, "^")}
BLOCK_WARPS = range(4, 33)


def figure_2(_: Results) -> Parts:
    """Plot Collab's degrees; compare its longest row with the average."""
    entry = TABLE_ONE["collab"]
    histogram = DegreeHistogram(*entry.histogram())
    average = histogram.nnz / histogram.n_rows
    ratio = histogram.largest / average
    ax = plots.degree_histogram(histogram.degrees, histogram.rows)
    title = f"{entry.name}: the longest row is {ratio:.0f} times the average one"
    ax.set_title(title, loc="left", fontsize=12, fontweight="bold")
    for degree, text, height in (
        (average, f"average {average:.1f}", 0.93),
        (histogram.largest, f"longest {histogram.largest}", 0.55),
    ):
        ax.axvline(degree, color=VERMILLION, lw=1.4, zorder=4)
        _note(ax, text, degree, height, -5, ha="right", color=VERMILLION)
    alt = (
        f"Degree histogram of {entry.name}, both axes logarithmic: most rows have few nonzeros, "
        f"{average:.1f} on average; the longest has {histogram.largest}."
    )
    sentence = (
        f"{entry.name} has {histogram.n_rows:,} rows of {average:.1f} nonzeros on average. The "
        f"longest row has {histogram.largest}, {ratio:.0f} times as many; the paper says "
        f"{LARGEST_DEGREE}."
    )
    return [Picture(ax.figure, "figure2", alt), sentence]


def _note(ax, text: str, x: float, height: float, shift: int, **look: str) -> None:
    """Annotate a position of the x-axis, at a share of the height and shifted by some points."""
    axes = ("data", "axes fraction")
    ax.annotate(text, (x, height), (shift, 0), axes, "offset points", **look)


def equation_1(_: Results) -> Parts:
    """Plot the share of metadata against the warps per block; give the range over all graphs."""
    rows = []
    for entry in sorted(TABLE_ONE.values(), key=lambda entry: entry.name.lower()):
        share, blocks, warps, busy = metadata(entry, BlockSetting())
        name = entry.name if entry.exact else f"{entry.name}\\*"
        rows.append({"graph": name.replace("\\", ""), "warps": warps, "blocks": blocks})
        rows[-1] |= {"warps_per_block": busy, "share": share}
    listed = pd.DataFrame(rows)
    least, most = listed["share"].min(), listed["share"].max()
    return [
        _metadata_picture(),
        f"On the {len(listed)} graphs of Table I it is {least:.1%} to {most:.1%}; the paper says "
        f"{METADATA_SHARE:.0%}.",
        Listing(listed, "metadata", "Each graph"),
    ]


def metadata(entry: TableEntry, setting: BlockSetting) -> tuple[float, int, int, float]:
    """Return the share of Equation 1, blocks, warps of the other scheme, busy warps per block."""
    histogram = DegreeHistogram(*entry.histogram())
    records = block_partition(histogram, setting)
    # The number of warps does not depend on the order of the rows.
    pointers = np.concatenate([[0], np.cumsum(np.repeat(histogram.degrees, histogram.rows))])
    warps = warp_partition(pointers, setting.max_warp_nzs)
    fields = unpack(records, setting)
    busy = float((fields.rows * fields.warps_per_row).mean())
    return storage_ratio(records, warps), len(records), len(warps), busy


def _metadata_picture() -> Picture:
    figure = Figure(figsize=(8.2, 4.6), layout="constrained")
    ax = figure.subplots()
    published = BlockSetting().max_block_warps
    as_published = {}
    for name, (colour, mark) in EXAMPLES.items():
        entry = TABLE_ONE[name]
        shares = [metadata(entry, BlockSetting(warps))[0] for warps in BLOCK_WARPS]
        as_published[entry.name] = shares[published - BLOCK_WARPS.start]
        label = entry.name if entry.exact else f"{entry.name} (approximate degrees)"
        ax.plot(BLOCK_WARPS, shares, marker=mark, ms=5, lw=1.4, color=colour, label=label)
    inverse = [1 / warps for warps in BLOCK_WARPS]
    ax.plot(BLOCK_WARPS, inverse, "--", color=BLACK, lw=1.2, label="1 / warps in a block")
    ax.axvline(published, color=GREY, lw=0.8, zorder=0)
    _note(ax, "published setting", published, 0.93, 5, color=GREY)
    primes = "peaks: prime numbers of warps,\nof which a row takes one or all"
    _note(ax, primes, 17, 0.46, 5, color=GREY)
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.set_ylim(bottom=0)
    ax.set_xticks(range(4, 33, 4))
    ax.set_xlabel("warps in a block (max_block_warps)")
    ax.set_ylabel("metadata, block-level over warp-level")
    ax.legend(frameon=False)
    lowest, highest = min(as_published.values()), max(as_published.values())
    title = (
        f"Describing blocks of {published} warps, not each warp, takes {lowest:.0%} to "
        f"{highest:.0%} of the metadata"
    )
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold")
    tidy(ax)
    examples = ", ".join(f"{name} {share:.1%}" for name, share in as_published.items())
    alt = (
        "Metadata of the block-level over that of the warp-level partition, for 4 to 32 warps a "
        f"block: it falls like 1 / warps, with peaks at primes; at {published} warps {examples}."
    )
    return Picture(figure, "equation1", alt)


def in_order(rows: pd.DataFrame, order: str) -> pd.DataFrame:
    """Return the graphs in one vertex order; real graphs have only the natural order."""
    shuffled = rows["graph"].str.endswith("-shuffled")
    return rows[shuffled == (order == "shuffled")]


def warm_and_over(rows: pd.DataFrame, others: list[str]) -> tuple[pd.DataFrame, dict, str]:
    """Return the warm rows, Accel-GCN's speedups over other systems, and a line on the machine."""
    warm = rows[rows["state"] == "warm"]
    case = {"Accel-GCN": SYSTEMS["Accel-GCN"]}
    over = {name: speedups(warm, SYSTEMS[name], case) for name in others}
    machine = measured_on(warm, sum(ratios.attrs["dropped"] for ratios in over.values()))
    return warm, over, machine


def extremes(mean: pd.Series) -> str:
    """Return a phrase with the slowest and the fastest graph of a mean over graphs."""
    lowest, highest = (f"{mean[end]:.2f} on {paper_name(mean[f'{end}_graph'])}" for end in _ENDS)
    return f"from {lowest} to {highest}".replace("\\*", "")


_ENDS = ("lowest", "highest")


def figure_5(results: Results) -> Parts:
    """Plot the speedups; list the means over every system, by graph and by column count."""
    rows = in_order(results["strategies-h200"], "natural")
    others = {name: case for name, case in SYSTEMS.items() if name != "cuSPARSE"}
    ax = plots.speedup_bars(rows, SYSTEMS["cuSPARSE"], others, called="cuSPARSE")
    _, over, machine = warm_and_over(rows, ["cuSPARSE", "GNNAdvisor", "GraphBLAST"])
    mean = overall(over["cuSPARSE"]).iloc[0]
    alt = (
        f"Bars for {mean['graphs']} graphs: Accel-GCN is {mean['speedup']:.2f} times as fast as "
        f"cuSPARSE in the geometric mean, {extremes(mean)}, and slower on {mean['losses']}. The "
        "table has the values."
    )
    return [
        Picture(ax.figure, "figure5", alt),
        f"{machine} Warm cache.",
        _opponents(results["strategies-h200"]),
        Listing(_cases(over), "accel-gcn", "Each case"),
    ]


def _cases(over: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return Accel-GCN's speedup over each system in each case."""
    rows = pd.concat(over, names=["over"]).reset_index(level=0)
    rows = rows.rename(columns={"baseline_us": "us", "median_us": "accel_gcn_us"})
    return rows[["over", "graph", "columns", "us", "accel_gcn_us", "speedup"]]


def _opponents(rows: pd.DataFrame) -> str:
    lines = []
    for name, variant, case in OPPONENTS:
        means = {
            (order, state): overall(speedups(part, case, {"Accel-GCN": "accel_gcn"})).iloc[0]
            for order in ("natural", "shuffled")
            for state, part in in_order(rows, order).groupby("state")
        }
        main = means["natural", "warm"]
        shuffled = means.get(("shuffled", "warm"))
        lines.append(
            [
                f"{name}{variant}",
                "{:.2f}, {:.2f}".format(*SPEEDUPS[name]),
                format_ratio(main["speedup"]),
                f"{format_ratio(main['highest'])} ({paper_name(main['highest_graph'])})",
                f"{format_ratio(main['lowest'])} ({paper_name(main['lowest_graph'])})",
                f"{main['losses']} of {main['graphs']}",
                "–" if shuffled is None else format_ratio(shuffled["speedup"]),
            ]
        )
    head = ["Accel-GCN over", f"paper ({SETTING}): mean, max", "here: mean", "best graph"]
    head += ["worst graph", "slower on", "shuffled order: mean"]
    return markdown(head, lines)


def figure_6(results: Results) -> Parts:
    """Plot time against columns; list who leads where, and the cost of one more column."""
    rows = in_order(results["columns-h200"], "natural")
    figure = plots.time_against_columns(rows, strategies=SYSTEMS, log=True)
    others = [name for name in SYSTEMS if name != "Accel-GCN"]
    warm, over, machine = warm_and_over(rows, others)
    lines = []
    for name, ratios in over.items():
        ahead = (ratios["speedup"] > 1).groupby(ratios["graph"]).sum()
        low, high = (
            f"{ahead[end]} ({paper_name(end)})" for end in (ahead.idxmin(), ahead.idxmax())
        )
        lines.append([name, f"{ahead.mean():.0f} of {ratios['columns'].nunique()}", low, high])
    head = ["column counts where Accel-GCN is ahead of", "mean of the graphs", "least", "most"]
    return [
        Picture(figure, "figure6", figure.alt),
        f"{machine} Warm cache.",
        markdown(head, lines),
        "What the first column of a further warp costs, geometric mean over the graphs:",
        _steps(latest(labelled(warm, SYSTEMS))),
    ]


def _steps(rows: pd.DataFrame) -> str:
    lines = []
    for name, of_system in rows.groupby("strategy", sort=False):
        medians = of_system.pivot_table(index="graph", columns="columns", values="median_us")
        ratios = [medians[d + 1] / medians[d] for d in FULL if {d, d + 1} <= set(medians)]
        lines.append([name, *(f"{mean_of(ratio):.2f}" for ratio in ratios)])
    return markdown(["time with", *(f"{d + 1} over {d} columns" for d in FULL)], lines)


def figures_7_8(results: Results) -> Parts:
    """Plot both ablations; list Table II beside the paper's.

    Compared are block-level and warp-level partition schemes, the latter with rows in the caller's
    order, and combined warps and hardware warps, which loop over the columns.
    """
    rows = in_order(results["ablations-h200"], "natural")
    warm = rows[rows["state"] == "warm"]
    pictures, lines, dropped = [], [], 0
    for name, idea, replaced, case, published in IDEAS:
        ratios = speedups(warm, case, {idea: PUBLISHED})
        dropped += ratios.attrs["dropped"]
        ax = plots.speedup_ranges(rows, case, PUBLISHED, called=(replaced, idea))
        mean = overall(ratios).iloc[0]
        alt = (
            f"{idea} on {mean['graphs']} graphs, a dot for each column count: "
            f"{mean['speedup']:.2f} times as fast as {replaced} in the geometric mean, "
            f"{extremes(mean)}; slower on {mean['losses']}."
        )
        pictures.append(Picture(ax.figure, name, alt))
        for columns, line in table_two(ratios).iterrows():
            cells = (f"{published[str(columns)][0]:.1f}", f"{line['average']:.1f}")
            lines.append([f"{idea}, {columns}", *cells])
    both = overall(speedups(warm, NEITHER, {"both": PUBLISHED})).iloc[0]
    lowest, highest = (
        f"{format_ratio(both[end])} ({paper_name(both[f'{end}_graph'])})" for end in _ENDS
    )
    return [
        *pictures,
        f"{measured_on(warm, dropped)} Warm cache.",
        markdown(["average speed ratio in %, by columns", f"paper ({SETTING})", "here"], lines),
        "Both ideas together, against warp-level metadata and separate warps: "
        f"{format_ratio(both['speedup'])} times as fast in the geometric mean, from {lowest} to "
        f"{highest}.",
    ]


PAGES = [
    Page(
        "reproduction.md",
        {
            "figure-2": figure_2,
            "equation-1": equation_1,
            "figure-5": figure_5,
            "figure-6": figure_6,
            "figures-7-8": figures_7_8,
        },
    )
]
