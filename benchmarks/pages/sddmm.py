"""Renew the marked sections of docs/sddmm.md from benchmarks/results/sddmm-h200.csv.gz.

python benchmarks/pages/sddmm.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from graphs import renewed
from paper import ROOT, markdown

from accelviz.measure.comparison import geometric_mean
from accelviz.measure.records import recorded

PAGE = ROOT / "docs" / "sddmm.md"
#: What was aimed at: the geometric mean over all cases, and the least of them.
MEAN_TARGET, LEAST_TARGET = 3.0, 1.5
_CASE = ["graph", "columns"]


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each graph and column count: times in microseconds, and ratios to ours."""
    times = table.set_index(_CASE)["median_us"]
    ours = times[(table["strategy"] == "lane_groups").to_numpy()]
    library = table["strategy"] == "cusparse"
    prepared = table["variant"].astype(str).str.contains("preprocessed")
    found = pd.DataFrame({"ours": ours})
    for name, rows in (
        ("cusparse", library & ~prepared),
        ("preprocessed", library & prepared),
        ("row_warp", table["strategy"] == "row_warp"),
    ):
        found[name] = times[rows.to_numpy()].groupby(level=_CASE, sort=False).min()
    first = table.drop_duplicates(_CASE).set_index(_CASE)
    found["limit"], found["nonzeros"] = first["gather_limit_us"], first["nonzeros"]
    found["ahead"] = found[["cusparse", "preprocessed"]].min(axis=1) / found["ours"]
    found["share"] = found["limit"] / found["ours"]
    return found


def summary(found: pd.DataFrame) -> str:
    """Write the means by column count."""
    lines = []
    groups = [(f"{d}", rows) for d, rows in found.groupby(level="columns")]
    for name, rows in [*groups, ("all", found)]:
        large = rows[rows["nonzeros"] > 1_000_000]
        lines.append(
            (
                name,
                f"{geometric_mean(rows['ahead']):.2f}",
                f"{rows['ahead'].min():.2f}",
                f"{geometric_mean(rows['row_warp'] / rows['ours']):.1f}",
                f"{geometric_mean(rows['share']):.2f}",
                f"{geometric_mean(large['share']):.2f}",
            )
        )
    head = ("columns", "over cuSPARSE", "least", "over `row_warp`", "share of limit", "above 1 M")
    return markdown(head, lines)


def verdict(found: pd.DataFrame, counters: pd.DataFrame) -> str:
    """Say which targets were met, and what stands in the way where one was not.

    `counters` holds our kernel's on warm caches, indexed by graph and column count.
    """
    mean = geometric_mean(found["ahead"])
    met = "met" if mean >= MEAN_TARGET else "**not met**"
    lines = [f"- {MEAN_TARGET:g} times the fastest cuSPARSE in the mean: {mean:.2f}, {met}."]
    below = found[found["ahead"] < LEAST_TARGET].sort_values("ahead")
    if below.empty:
        lines.append(f"- Never below {LEAST_TARGET:g}: met, least {found['ahead'].min():.2f}.")
    for (graph, columns), row in below.iterrows():
        lines.append(
            f"- Never below {LEAST_TARGET:g}: **not met** on {graph} with {columns} columns, "
            f"{row['ahead']:.2f}. cuSPARSE takes {row['cusparse']:.1f} µs, ours {row['ours']:.1f}, "
            f"and the random-gather limit is {row['limit']:.1f}: a kernel at the limit would be "
            f"{row['ahead'] / row['share']:.2f} times as fast as cuSPARSE."
        )
        if (graph, columns) in counters.index:
            seen = counters.loc[(graph, columns)]
            busy = 100 * seen["active_cycles"] / seen["elapsed_cycles"]
            lines[-1] += (
                f" Nsight Compute: the L2 at {seen['l2_pct']:.0f} % of its peak while the SMs work "
                f"{busy:.0f} % of the launch, memory at "
                f"{seen['dram_pct']:.0f} %, {seen['l1_hit_pct']:.0f} % hits in L1. What is left is "
                "the L2, which serves every gathered row."
            )
    return "\n".join(lines)


def every_case(found: pd.DataFrame) -> str:
    """Write all cases."""
    lines = [
        (
            graph,
            columns,
            *(f"{row[name]:,.1f}" for name in ("ours", "cusparse", "preprocessed", "row_warp")),
            f"{row['limit']:,.1f}",
            f"{row['ahead']:.2f}",
        )
        for (graph, columns), row in found.iterrows()
    ]
    head = ("graph", "columns", "ours", "cuSPARSE", "preprocessed", "`row_warp`", "limit", "ahead")
    return markdown(head, lines)


def main(page: Path = PAGE) -> None:
    table = recorded("sddmm-h200")
    table = table[table["state"] == "warm"]
    found = ratios(table)
    counted = recorded("counters-sddmm-h200").query("strategy == 'lane_groups'").set_index(_CASE)
    text = page.read_text("utf-8")
    first = table.iloc[0]
    about = (f"{key} {first[key]}" for key in ("driver", "cuda", "cupy", "date", "commit"))
    machine = f"One {first['hardware']}: {', '.join(about)}."
    for name, section in (
        ("machine", machine),
        ("summary", summary(found)),
        ("targets", verdict(found, counted)),
        ("cases", every_case(found)),
    ):
        text = renewed(text, name, section)
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
