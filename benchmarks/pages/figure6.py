"""Figure 6 of Accel-GCN: time at every column count from 16 to 128, from recorded times."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from paper import FIGURES, SYSTEMS, in_order, markdown, measured_on, picture, plain, results, run

from accelviz import plots
from accelviz.measure.comparison import geometric_mean, labelled, latest, speedups

#: The last column count that fills its warps, after which a step in time would show.
FULL = (32, 64, 96)


def section(
    results_file: str | None = None, order: str = "natural", figures: Path = FIGURES
) -> str:
    """Draw time against columns; count who is ahead where, and what one column more costs."""
    table = in_order(results(results_file, "columns-h200"), order)
    page = plots.time_against_columns(table, strategies=SYSTEMS, log=True)
    warm = table[table["state"] == "warm"]
    others = {name: SYSTEMS[name] for name in SYSTEMS if name != "Accel-GCN"}
    over = {
        name: speedups(warm, case, {"Accel-GCN": SYSTEMS["Accel-GCN"]})
        for name, case in others.items()
    }
    dropped = sum(found.attrs["dropped"] for found in over.values())
    lines = []
    for graph in dict.fromkeys(warm["graph"]):
        cells = []
        for found in over.values():
            own = found.loc[found["graph"] == graph].sort_values("columns")
            cells.append(f"{(own['speedup'] > 1).sum()} of {len(own)}{_up_to(own)}")
        lines.append([plain(graph), *cells])
    head = ["graph", *(f"column counts where ahead of {name}" for name in over)]
    return "\n\n".join(
        [
            picture(page, figures, "figure6", page.alt),
            measured_on(warm, dropped) + " Warm cache.",
            markdown(head, lines),
            "What the first column of a further warp costs, geometric mean over the graphs:",
            _steps(latest(labelled(warm, SYSTEMS))),
        ]
    )


def _up_to(own: pd.DataFrame) -> str:
    """Say up to where Accel-GCN leads without a gap, where it does at all and not everywhere."""
    behind = own.loc[own["speedup"] <= 1, "columns"]
    ahead = own.loc[own["columns"] < behind.min(), "columns"]
    return f" (all up to {ahead.max()})" if len(behind) and len(ahead) else ""


def _steps(rows: pd.DataFrame) -> str:
    lines = []
    for name, own in rows.groupby("strategy", sort=False):
        medians = own.pivot_table(index="graph", columns="columns", values="median_us")
        ratios = [medians[d + 1] / medians[d] for d in FULL if {d, d + 1} <= set(medians)]
        lines.append([name, *(f"{geometric_mean(ratio.dropna()):.2f}" for ratio in ratios)])
    return markdown(["time with", *(f"{d + 1} over {d} columns" for d in FULL)], lines)


if __name__ == "__main__":
    run(section, __doc__)
