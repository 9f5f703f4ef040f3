"""Sections of docs/tensor-cores.md from benchmarks/results/tensor-modes-h200.csv and -accuracy."""

from __future__ import annotations

import numpy as np
import pandas as pd
from paper import ROOT, markdown

from accelviz import plots
from accelviz.tensor_cores.choice import (
    LEAST_COLUMNS,
    LEAST_NONZEROS,
    LEAST_REUSE,
    WINDOW_ROWS,
)

CASE = ["graph", "order", "columns"]
#: What the wide tables have after the time of `lane_groups`: its head, strategy and arithmetic.
SPMM = (
    ("cuSPARSE", "cusparse", "float32"),
    ("`tc_gnn`, TF32", "tc_gnn", "tf32"),
    ("`windows`", "windows", "float32"),
    ("`window_tiles`, exact", "window_tiles", "3xtf32"),
    ("TF32", "window_tiles", "tf32"),
    ("float16", "window_tiles", "float16"),
    ("`lane_groups`, float16", "lane_groups", "float16"),
)
SDDMM = (*SPMM[:2], *SPMM[3:6])
#: From so many nonzeros to a distinct column of windows of 8 rows on the targets are set.
SHARING = 1.5
FIGURE = ROOT / "docs" / "figures" / "tensor-modes.png"
TWINS = ("ppa-twin", "reddit-twin", "products-twin")


def ratios(table: pd.DataFrame, operation: str) -> pd.DataFrame:
    """Return the rows of an operation with `ratio`, the time of `lane_groups` over their own.

    Both are of one run, which the commit names. `rule` marks what `tensor_cores.choice` chooses.
    """
    own = table[table["operation"] == operation]
    base = own[(own["strategy"] == "lane_groups") & (own["dtype"] == "float32")]
    base = base.set_index([*CASE, "commit"])["median_us"].rename("base_us")
    own = own.join(base, on=[*CASE, "commit"])
    rows, least = LEAST_REUSE[operation]
    pays = (own["columns"] >= LEAST_COLUMNS) & (own["nonzeros"] >= LEAST_NONZEROS)
    pays &= own[f"reuse_{rows}"] >= least
    ours = (own["strategy"] == "window_tiles") & (own["dtype"] == "3xtf32")
    ours &= own["window_rows"] == WINDOW_ROWS[operation]
    others = (own["strategy"] == "lane_groups") & (own["dtype"] == "float32")
    chosen = (pays & ours) | (~pays & others)
    return own.assign(ratio=own["base_us"] / own["median_us"], rule=chosen)


def read(table: pd.DataFrame) -> pd.DataFrame:
    """Return a recorded table in the order of its graphs, orders as words."""
    table = table.assign(order=table["order"].fillna(""))
    ids = list(dict.fromkeys(table[["graph", "order"]].itertuples(index=False, name=None)))
    place = {each: i for i, each in enumerate(ids)}
    keys = zip(table["graph"], table["order"], strict=True)
    table = table.assign(place=[place[each] for each in keys])
    return table.sort_values(["place", "columns"], kind="stable")


def modes(table: pd.DataFrame, operation: str) -> str:
    """Write how many times as fast as `lane_groups` everything was, a line a case."""
    kinds = SPMM if operation == "spmm" else SDDMM
    lines = []
    for (graph, order, columns), case in ratios(table, operation).groupby(CASE, sort=False):
        first = case.iloc[0]
        cells = []
        for _, strategy, dtype in kinds:
            found = case[(case["strategy"] == strategy) & (case["dtype"] == dtype)]
            best = found.groupby("window_rows", dropna=False)["ratio"].max()
            cells.append(" / ".join(f"**{r:.2f}**" if r > 1 else f"{r:.2f}" for r in best) or "n/a")
        reuse = f"{first['reuse_8']:.2f} / {first['reuse_16']:.2f}"
        lines.append(
            (called(graph, order), int(columns), reuse, f"{first['base_us']:,.1f}", *cells)
        )
    head = ("graph", "d", "reuse", "`lane_groups`, µs", *(head for head, _, _ in kinds))
    return markdown(head, lines)


def called(graph: str, order: str) -> str:
    """Name a graph in its order."""
    name = graph.replace("-twin", "'s twin").replace("blocks-", "blocks of ")
    for known in ("ppa", "products"):
        name = name.replace(f"{known}'s", f"{known.upper()}'s")
    for known in ("collab", "reddit"):
        name = name.replace(f"{known}'s", f"{known.title()}'s")
    return name + (f", {order.title()} order" if order else "")


def translation(table: pd.DataFrame) -> str:
    """Write what translation takes on the GPU, in products of `lane_groups` with 128 columns."""
    lines = []
    own = table[table["operation"] == "translation"]
    for (graph, order), rows in own.groupby(["graph", "order"], sort=False):
        case = (table["graph"] == graph) & (table["order"] == order) & (table["columns"] == 128)
        product = table[case & (table["strategy"] == "lane_groups") & (table["dtype"] == "float32")]
        us = product.query("operation == 'spmm'")["median_us"]
        if us.empty:
            continue
        times = rows.set_index("window_rows")["median_us"]
        nnz = f"{rows['nonzeros'].iloc[0]:,}"
        each = (f"{t:,.0f} ({t / us.iloc[0]:.1f})" for t in (times[8], times[16]))
        lines.append((called(graph, order), nnz, *each))
    return markdown(("graph", "nonzeros", "8 rows, µs (products)", "16 rows"), lines)


def machines(table: pd.DataFrame) -> str:
    """Name the GPU and the commits."""
    commits = ", ".join(dict.fromkeys(table["commit"]))
    return f"One {table['hardware'].iloc[0]}, commits {commits}."


def picture(table: pd.DataFrame) -> None:
    """Draw error against speed on the made-up blocks."""
    own = table[table["graph"].str.startswith("blocks-") & (table["operation"] == "spmm")]
    ax = plots.error_against_speed(own.assign(error=own["error"].astype(float)))
    ax.figure.savefig(FIGURE, dpi=110, bbox_inches="tight", metadata={"Software": None})


def accuracy(table: pd.DataFrame) -> str:
    """Write Cora's test accuracy by model and strategy."""
    grouped = table.groupby(["model", "strategy"], sort=False)["test_accuracy"]
    found = grouped.agg(["mean", "std", "count"])
    lines = [
        (
            model.upper(),
            f"`{strategy}`",
            f"{row['mean']:.2%}",
            f"{row['std']:.2%}",
            int(row["count"]),
        )
        for (model, strategy), row in found.iterrows()
    ]
    return markdown(("model", "strategy", "test accuracy", "standard deviation", "seeds"), lines)


def targets(table: pd.DataFrame) -> str:
    """Set what was asked for beside what was measured."""
    spmm, sddmm = ratios(table, "spmm"), ratios(table, "sddmm")
    sharing = spmm[spmm["reuse_8"] >= SHARING]

    def best(rows: pd.DataFrame, dtype: str) -> pd.Series[float]:
        own = rows[(rows["strategy"] == "window_tiles") & (rows["dtype"] == dtype)]
        return own.groupby(CASE)["ratio"].max()

    def mean(found: pd.Series[float]) -> str:
        return f"{np.exp(np.log(found).mean()):.2f} ({found.min():.2f} to {found.max():.2f})"

    def largest(dtype: str) -> str:
        own = table[(table["strategy"] == "window_tiles") & (table["dtype"] == dtype)]
        return f"{own['error'].astype(float).max():.1e}"

    rule = pd.concat([spmm, sddmm])
    exact = rule[rule["dtype"].isin(["float32", "3xtf32"])]
    ours = exact[exact["strategy"].isin(["lane_groups", "window_tiles"])]
    most = ours.groupby(["operation", *CASE])["ratio"].max()
    chosen = rule[rule["rule"]].groupby(["operation", *CASE])["ratio"].max()
    kept = chosen / most
    by_rule = sharing[sharing["rule"]].groupby(CASE)["ratio"].max()
    cusparse = sharing[sharing["strategy"] == "cusparse"].set_index(CASE)["ratio"]
    twins = spmm[spmm["graph"].isin(TWINS) & spmm["columns"].isin([128, 256])]
    windows = twins[twins["strategy"].isin(["windows", "window_tiles"])]
    windows = windows[windows["dtype"].isin(["float32", "3xtf32"])]
    ppa = table[(table["graph"] == "ppa-twin") & (table["columns"] == 256)]
    ppa = ppa[(ppa["operation"] == "spmm") & ppa["dtype"].isin(["float32", "3xtf32"])]
    fastest = ppa.loc[ppa["median_us"].idxmin()]
    full = sddmm[(sddmm["reuse_8"] >= SHARING)]
    lines = [
        ("largest error of the exact mode", "1e-6", largest("3xtf32")),
        ("of TF32, and of float16", "1e-3", f"{largest('tf32')}, {largest('float16')}"),
        ("exact mode over `lane_groups`, mean", "1.15", mean(best(sharing, "3xtf32"))),
        ("TF32 over `lane_groups`, mean", "1.3", mean(best(sharing, "tf32"))),
        ("float16 over `lane_groups` in float32, mean", "1.3", mean(best(sharing, "float16"))),
        ("what the rule chooses over `lane_groups`, mean", "", mean(by_rule)),
        ("over the fastest cuSPARSE, mean", "2.2", mean(by_rule / cusparse)),
        ("the rule's choice over the better of the two, least of all cases", "0.98",
         f"{kept.min():.3f}, below 0.98 in {(kept < 0.98).sum()} of {kept.count()}"),
        ("natural twins, d = 128, 256: the best kernel by windows over `lane_groups`", "1.2",
         mean(windows.groupby(CASE)["ratio"].max())),
        ("PPA at d = 256, the fastest that is as exact as float32", "under 3,400 µs",
         f"{fastest['median_us']:,.0f} µs, `{fastest['strategy']}`"),
        ("SDDMM over `lane_groups`, exact", "2", mean(best(full, "3xtf32"))),
        ("SDDMM over `lane_groups`, TF32", "", mean(best(full, "tf32"))),
    ]  # fmt: skip
    return markdown(("target", "wanted", "measured: mean (least to most)"), lines)
