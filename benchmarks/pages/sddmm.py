"""Tables of docs/sddmm.md: our SDDMM beside cuSPARSE's and the random-gather limit."""

from __future__ import annotations

import pandas as pd

from accelviz.measure.comparison import geometric_mean
from benchmarks.pages.document import Page, Results, markdown, measured_on, table

#: Targets: geometric mean over all cases, and lowest case.
MEAN_TARGET, LEAST_TARGET = 3.0, 1.5
_CASE = ["graph", "columns"]
EVERY_CASE = [
    ("graph", "{graph}"),
    ("columns", "{columns}"),
    ("ours", "{ours:,.1f}"),
    ("cuSPARSE", "{cusparse:,.1f}"),
    ("preprocessed", "{preprocessed:,.1f}"),
    ("`row_warp`", "{row_warp:,.1f}"),
    ("limit", "{limit:,.1f}"),
    ("ahead", "{ahead:.2f}"),
]


def warm(results: Results) -> pd.DataFrame:
    """Return the recorded times with warm caches."""
    rows = results["sddmm-h200"]
    return rows[rows["state"] == "warm"]


def cases(rows: pd.DataFrame) -> pd.DataFrame:
    """Return times in microseconds and ratios to ours, by graph and column count."""
    times = rows.set_index(_CASE)["median_us"]
    library = rows["strategy"] == "cusparse"
    preprocessed = rows["variant"].astype(str).str.contains("preprocessed")
    by_case = pd.DataFrame({"ours": times[(rows["strategy"] == "lane_groups").to_numpy()]})
    for name, chosen in (
        ("cusparse", library & ~preprocessed),
        ("preprocessed", library & preprocessed),
        ("row_warp", rows["strategy"] == "row_warp"),
    ):
        by_case[name] = times[chosen.to_numpy()].groupby(level=_CASE, sort=False).min()
    first = rows.drop_duplicates(_CASE).set_index(_CASE)
    by_case["limit"], by_case["nonzeros"] = first["gather_limit_us"], first["nonzeros"]
    by_case["ahead"] = by_case[["cusparse", "preprocessed"]].min(axis=1) / by_case["ours"]
    by_case["share"] = by_case["limit"] / by_case["ours"]
    return by_case


def summary(by_case: pd.DataFrame) -> str:
    """Return mean speedups by column count."""
    lines = []
    groups = [(f"{d}", rows) for d, rows in by_case.groupby(level="columns")]
    for name, rows in [*groups, ("all", by_case)]:
        large = rows[rows["nonzeros"] > 1_000_000]
        lines.append(
            (
                *(name, f"{geometric_mean(rows['ahead']):.2f}", f"{rows['ahead'].min():.2f}"),
                f"{geometric_mean(rows['row_warp'] / rows['ours']):.1f}",
                f"{geometric_mean(rows['share']):.2f}",
                f"{geometric_mean(large['share']):.2f}",
            )
        )
    head = ("columns", "over cuSPARSE", "least", "over `row_warp`", "share of limit", "above 1 M")
    return markdown(head, lines)


def verdict(by_case: pd.DataFrame, counters: pd.DataFrame) -> str:
    """Return which targets are met, and the limit in each case that misses one.

    `counters` has our kernel's hardware counters on warm caches, by graph and column count.
    """
    mean = geometric_mean(by_case["ahead"])
    met = "met" if mean >= MEAN_TARGET else "**not met**"
    lines = [f"- {MEAN_TARGET:g} times the fastest cuSPARSE in the mean: {mean:.2f}, {met}."]
    below = by_case[by_case["ahead"] < LEAST_TARGET].sort_values("ahead")
    if below.empty:
        lines.append(f"- Never below {LEAST_TARGET:g}: met, least {by_case['ahead'].min():.2f}.")
    for (graph, columns), row in below.iterrows():
        lines.append(
            f"- Never below {LEAST_TARGET:g}: **not met** on {graph} with {columns} columns, "
            f"{row['ahead']:.2f}. cuSPARSE takes {row['cusparse']:.1f} µs, ours {row['ours']:.1f}, "
            f"and the random-gather limit is {row['limit']:.1f}: a kernel at the limit would be "
            f"{row['ahead'] / row['share']:.2f} times as fast as cuSPARSE."
        )
        if (graph, columns) in counters.index:
            counts = counters.loc[(graph, columns)]
            busy = 100 * counts["active_cycles"] / counts["elapsed_cycles"]
            lines[-1] += (
                f" Nsight Compute: the L2 at {counts['l2_pct']:.0f} % of its peak while the SMs "
                f"work {busy:.0f} % of the launch, memory at {counts['dram_pct']:.0f} %, "
                f"{counts['l1_hit_pct']:.0f} % hits in L1. What is left is the L2, which serves "
                "every gathered row."
            )
    return "\n".join(lines)


def targets(results: Results) -> str:
    """Return the verdict with the recorded counters."""
    counters = results["counters-sddmm-h200"].query("strategy == 'lane_groups'")
    return verdict(cases(warm(results)), counters.set_index(_CASE))


PAGES = [
    Page(
        "sddmm.md",
        {
            "machine": lambda results: measured_on(warm(results), 0),
            "summary": lambda results: summary(cases(warm(results))),
            "targets": targets,
            "cases": lambda results: table(EVERY_CASE, cases(warm(results))),
        },
    )
]
