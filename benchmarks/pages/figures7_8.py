"""Figures 7 and 8 and Table II of Accel-GCN: what each of its ideas gains, from recorded times.

The same kernel with the block-level partition against one with metadata for each warp and rows in
the caller's order, and with the combined warp against warps that walk the columns on their own.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from paper import (
    BLOCK_LEVEL,
    COMBINED_WARP,
    FIGURES,
    SETTING,
    in_order,
    markdown,
    measured_on,
    picture,
    plain,
    results,
    run,
    times,
)

from accelviz import plots
from accelviz.measure.comparison import overall, speedups, table_two

PUBLISHED = "accel_gcn partition=block combined_warp=True"
#: Without both ideas, which the paper does not show.
NEITHER = "accel_gcn partition=warp combined_warp=False"
#: Picture, the idea, what it replaces, the case without it, and Table II.
IDEAS = (
    (
        "figure7",
        "Block-level partition",
        "the warp-level partition",
        "accel_gcn partition=warp combined_warp=True",
        BLOCK_LEVEL,
    ),
    (
        "figure8",
        "Combined warp",
        "separate warps",
        "accel_gcn partition=block combined_warp=False",
        COMBINED_WARP,
    ),
)


def section(
    results_file: str | None = None, order: str = "natural", figures: Path = FIGURES
) -> str:
    """Draw both ablations and put Table II beside the paper's."""
    table = in_order(results(results_file, "ablations-h200"), order)
    warm = table[table["state"] == "warm"]
    pictures, lines, dropped = [], [], 0
    for name, idea, instead, case, published in IDEAS:
        found = speedups(warm, case, {idea: PUBLISHED})
        dropped += found.attrs["dropped"]
        ax = plots.speedup_ranges(table, case, PUBLISHED, called=(instead, idea))
        pictures.append(picture(ax.figure, figures, name, _alt(found, instead)))
        for columns, line in table_two(found).iterrows():
            here = [f"{line[each]:.1f}" for each in ("average", "max", "min")]
            paper = [f"{each:.1f}" for each in published[str(columns)]]
            both = [f"{there} / {own}" for there, own in zip(paper, here, strict=True)]
            lines.append([f"{idea}, {columns}", *both, int(line["cases"])])
    both = overall(speedups(warm, NEITHER, {"both": PUBLISHED})).iloc[0]
    head = ["speed ratio in %", "average", "max", "min", "cases here"]
    return "\n\n".join(
        [
            *pictures,
            measured_on(warm, dropped) + " Warm cache.",
            f"Table II: paper ({SETTING}) / here. A case is a graph and a column count; the "
            "average here is the geometric mean.",
            markdown(head, lines),
            f"Both ideas together, against warp-level metadata and separate warps: "
            f"{times(both['speedup'])} times as fast in the geometric mean, from "
            f"{times(both['lowest'])} ({plain(both['lowest_graph'])}) to "
            f"{times(both['highest'])} ({plain(both['highest_graph'])}).",
        ]
    )


def _alt(found: pd.DataFrame, instead: str) -> str:
    idea, mean = overall(found).index[0], overall(found).iloc[0]
    text = (
        f"{idea} on {mean['graphs']} graphs, a dot for each column count: "
        f"{mean['speedup']:.2f} times as fast as {instead} in the geometric mean, from "
        f"{mean['lowest']:.2f} on {plain(mean['lowest_graph'])} to {mean['highest']:.2f} on "
        f"{plain(mean['highest_graph'])}; slower on {mean['losses']}."
    )
    return text.replace("\\*", "")


if __name__ == "__main__":
    run(section, __doc__)
