"""Tables of docs/sddmm.md: our SDDMM beside cuSPARSE's and the random-gather limit."""

from __future__ import annotations

import pandas as pd

from accelviz.measure.comparison import geometric_mean
from benchmarks.pages.document import Listing, Page, Parts, Results, markdown, measured_on

_CASE = ["graph", "columns"]


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


def least(by_case: pd.DataFrame, counters: pd.DataFrame) -> str:
    """Return a paragraph on the case with the least lead over cuSPARSE.

    `counters` has our kernel's hardware counters on warm caches, by graph and column count.
    """
    graph, columns = key = by_case["ahead"].idxmin()
    row = by_case.loc[key]
    text = (
        f"The least lead is {row['ahead']:.2f}, on {graph} with {columns} columns. cuSPARSE takes "
        f"{row['cusparse']:.1f} µs, ours {row['ours']:.1f}; the random-gather limit is "
        f"{row['limit']:.1f}."
    )
    if key in counters.index:
        counts = counters.loc[key]
        busy = 100 * counts["active_cycles"] / counts["elapsed_cycles"]
        text += (
            f" The L2 works at {counts['l2_pct']:.0f} % of its peak there, and the SMs work "
            f"{busy:.0f} % of the launch (Nsight Compute): the L2 serves every gathered row."
        )
    return text


def least_recorded(results: Results) -> str:
    """Return the paragraph on the least lead, with the recorded counters."""
    counters = results["counters-sddmm-h200"].query("strategy == 'lane_groups'")
    return least(cases(warm(results)), counters.set_index(_CASE))


def every_case(results: Results) -> Parts:
    """Return the file with every case."""
    listed = cases(warm(results)).drop(columns="nonzeros").reset_index()
    return [Listing(listed, "sddmm", "Every case, µs, with the lead over cuSPARSE")]


#: Graphs of the table of column tiles.
TILED = ("collab", "yelp", "ppa", "collab shuffled", "yelp shuffled", "ppa shuffled", "rmat")


def column_tiles(results: Results) -> Parts:
    """Return the fastest columns of a launch for 256 columns, and the file with all times."""
    rows = results["walks-h100"].query("operation == 'sddmm'")
    rows = rows[rows["column_tile"].notna() & rows["graph"].isin(TILED)]
    rows = rows.assign(tile=rows[["column_tile", "columns"]].min(axis=1).astype(int))
    us = rows.groupby(["graph", "columns", "tile"])["us"].min()
    fastest = [us[graph, 256].idxmin() for graph in TILED]
    return [
        markdown(("256 columns", *TILED), [("fastest tile", *fastest)]),
        Listing(us.reset_index(), "sddmm-tiles", "µs of each graph and tile"),
    ]


PAGES = [
    Page(
        "sddmm.md",
        {
            "machine": lambda results: measured_on(warm(results), 0),
            "summary": lambda results: summary(cases(warm(results))),
            "least": least_recorded,
            "cases": every_case,
            "column tiles": column_tiles,
        },
    )
]
