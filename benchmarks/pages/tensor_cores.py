"""Tables and picture of docs/tensor-cores.md: windows of condensed columns, by arithmetic."""

from __future__ import annotations

import numpy as np
import pandas as pd

from accelviz import plots
from accelviz.strategies.choice import LEAST_COLUMNS, LEAST_NONZEROS, LEAST_REUSE, WINDOW_ROWS
from benchmarks.pages.document import Page, Parts, Picture, Results, machine, markdown, table

CASE = ["graph", "order", "columns"]
#: Columns of the wide tables after `lane_groups`: heading, strategy and arithmetic.
SPMM = (
    ("cuSPARSE", "cusparse", "float32"),
    ("`tc_gnn`, TF32", "tc_gnn", "tf32"),
    ("`windows`", "windows", "float32"),
    ("`window_tiles`, exact", "window_tiles", "3xtf32"),
    ("TF32", "window_tiles", "tf32"),
    ("float16", "window_tiles", "float16"),
    ("`lane_groups`, float16", "lane_groups", "float16"),
)
MODES = {"spmm": SPMM, "sddmm": (*SPMM[:2], *SPMM[3:6])}
#: Targets apply to graphs with at least this many nonzeros per distinct column of 8-row windows.
SHARING = 1.5
TWINS = ("ppa-twin", "reddit-twin", "products-twin")
#: Parts of graph names, and how they are written.
NAMES = {"ppa": "PPA", "products": "PRODUCTS", "collab": "Collab", "reddit": "Reddit"}


def tiles(results: Results) -> str:
    """Return the tiles of each graph with and without translation (Figure 5.4)."""
    rows = results["tensor-tiles"]
    wide = rows[rows["operation"] == "spmm"].merge(
        rows[rows["operation"] == "sddmm"], on="graph", suffixes=("", "_sddmm")
    )
    columns = [
        ("graph", "{graph}"),
        ("reuse", "{reuse:.2f}"),
        ("tiles 16 x 8", "{tiles_before:,}"),
        ("condensed", "{tiles_after:,}"),
        ("saved", "{saved:.0%}"),
        ("full", "{fill:.1%}"),
        ("16 x 16", "{tiles_before_sddmm:,}"),
        ("condensed", "{tiles_after_sddmm:,}"),
        ("Rabbit order: reuse", "{rabbit_reuse:.2f}"),
        ("16 x 8 condensed", "{rabbit_tiles:,}"),
        ("full", "{rabbit_fill:.1%}"),
    ]
    return table(columns, wide)


def density(results: Results) -> str:
    """Return the times of Table 5.6's matrices in microseconds; the fastest per row is bold."""
    rows = results["tensor-density-h200"]
    rows = rows.assign(name=rows["strategy"].str.replace("_", " ") + ", " + rows["dtype"])
    index = ["columns", "blocks_of_window", "density"]
    wide = rows.pivot_table(index=index, columns="name", values="median_us")
    lines = [
        (
            *(columns, blocks, f"{share:.2%}"),
            *(f"**{us:,.1f}**" if us == times.min() else f"{us:,.1f}" for us in times),
        )
        for (columns, blocks, share), times in wide.iterrows()
    ]
    return markdown(("columns", "blocks", "density", *wide.columns), lines)


def graphs(results: Results) -> str:
    """Return the times on graphs in microseconds, and the fastest other time over tc_gnn's."""
    case = ["operation", "graph", "reuse", "columns"]
    rows = results["tensor-graphs-h200"]
    rows = rows.assign(graph=rows["graph"].str.replace("-twin", " (twin)"))
    order = list(dict.fromkeys(rows[case].itertuples(index=False, name=None)))
    wide = rows.pivot_table(index=case, columns="strategy", values="median_us").reindex(order)
    others = [name for name in wide.columns if name != "tc_gnn"]
    wide["ratio"] = wide[others].min(axis=1) / wide["tc_gnn"]
    columns = [("", "{operation}"), ("graph", "{graph}"), ("reuse", "{reuse:.2f}")]
    columns += [("columns", "{columns}")]
    columns += [(name, f"{{{name}:,.1f}}") for name in ("tc_gnn", *others)]
    return table([*columns, ("ratio", "{ratio:.2f}")], wide)


def modes(results: Results) -> pd.DataFrame:
    """Return the recorded products in every arithmetic, with graphs in the order of the record."""
    rows = results["tensor-modes-h200"]
    rows = rows.assign(order=rows["order"].fillna(""))
    keys = list(zip(rows["graph"], rows["order"], strict=True))
    rank = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    rows = rows.assign(rank=[rank[key] for key in keys])
    return rows.sort_values(["rank", "columns"], kind="stable")


def ratios(rows: pd.DataFrame, operation: str) -> pd.DataFrame:
    """Return an operation's rows with `ratio`, the time of `lane_groups` over their own.

    Both times are of the same commit. `rule` marks what `strategies.choice` would choose.
    """
    rows = rows[rows["operation"] == operation]
    simple = (rows["strategy"] == "lane_groups") & (rows["dtype"] == "float32")
    base = rows[simple].set_index([*CASE, "commit"])["median_us"].rename("base_us")
    window_rows, least = LEAST_REUSE[operation]
    pays = (rows["columns"] >= LEAST_COLUMNS) & (rows["nonzeros"] >= LEAST_NONZEROS)
    pays &= rows[f"reuse_{window_rows}"] >= least
    tiles = (rows["strategy"] == "window_tiles") & (rows["dtype"] == "3xtf32")
    tiles &= rows["window_rows"] == WINDOW_ROWS[operation]
    rows = rows.assign(rule=(pays & tiles) | (~pays & simple)).join(base, on=[*CASE, "commit"])
    return rows.assign(ratio=rows["base_us"] / rows["median_us"])


def modes_of(results: Results, operation: str) -> str:
    """Return the speedups over `lane_groups` of all strategies, one row per case."""
    lines = []
    cases = ratios(modes(results), operation).groupby(CASE, sort=False)
    for (graph, order, columns), case in cases:
        first = case.iloc[0]
        cells = []
        for _, strategy, dtype in MODES[operation]:
            rows = case[(case["strategy"] == strategy) & (case["dtype"] == dtype)]
            best = rows.groupby("window_rows", dropna=False)["ratio"].max()
            cells.append(" / ".join(f"**{r:.2f}**" if r > 1 else f"{r:.2f}" for r in best) or "n/a")
        reuse = f"{first['reuse_8']:.2f} / {first['reuse_16']:.2f}"
        name = graph_name(graph, order)
        lines.append((name, int(columns), reuse, f"{first['base_us']:,.1f}", *cells))
    head = ("graph", "d", "reuse", "`lane_groups`, µs", *(head for head, *_ in MODES[operation]))
    return markdown(head, lines)


def graph_name(graph: str, order: str) -> str:
    """Return a graph's name in prose, with its order."""
    name = graph.replace("blocks-", "blocks of ")
    if graph.endswith("-twin"):
        name = graph.removesuffix("-twin")
        name = f"{NAMES.get(name, name)}'s twin"
    return name + (f", {order.title()} order" if order else "")


def translation(results: Results) -> str:
    """Return the times of translation on the GPU, also in products with 128 columns."""
    rows, keys = modes(results), ["graph", "order"]
    simple = (rows["strategy"] == "lane_groups") & (rows["dtype"] == "float32")
    products = rows[simple & (rows["operation"] == "spmm") & (rows["columns"] == 128)]
    products = products.drop_duplicates(keys).set_index(keys)["median_us"]
    lines = []
    translations = rows[rows["operation"] == "translation"]
    for key, of_graph in translations.groupby(keys, sort=False):
        if key not in products.index:
            continue
        times = of_graph.set_index("window_rows")["median_us"]
        cells = (f"{us:,.0f} ({us / products[key]:.1f})" for us in (times[8], times[16]))
        lines.append((graph_name(*key), f"{of_graph['nonzeros'].iloc[0]:,}", *cells))
    return markdown(("graph", "nonzeros", "8 rows, µs (products)", "16 rows"), lines)


def accuracy(results: Results) -> str:
    """Return Cora's test accuracy by model and strategy."""
    rows = results["tensor-accuracy-h200"]
    seeds = rows.groupby(["model", "strategy"], sort=False)["test_accuracy"]
    seeds = seeds.agg(mean="mean", deviation="std", seeds="count").reset_index()
    columns = [
        ("model", "{model}"),
        ("strategy", "`{strategy}`"),
        ("test accuracy", "{mean:.2%}"),
        ("standard deviation", "{deviation:.2%}"),
        ("seeds", "{seeds}"),
    ]
    return table(columns, seeds.assign(model=seeds["model"].str.upper()))


def targets(results: Results) -> Parts:
    """Return every target beside the measured value, and a plot of error against speed."""
    rows = modes(results)
    spmm, sddmm = ratios(rows, "spmm"), ratios(rows, "sddmm")
    sharing, sharing_sddmm = (part[part["reuse_8"] >= SHARING] for part in (spmm, sddmm))

    def spread(values: pd.Series) -> str:
        mean = np.exp(np.log(values).mean())
        return f"{mean:.2f} ({values.min():.2f} to {values.max():.2f})"

    def best(part: pd.DataFrame, dtype: str) -> str:
        part = part[(part["strategy"] == "window_tiles") & (part["dtype"] == dtype)]
        return spread(part.groupby(CASE)["ratio"].max())

    def largest_error(dtype: str) -> str:
        part = rows[(rows["strategy"] == "window_tiles") & (rows["dtype"] == dtype)]
        return f"{part['error'].astype(float).max():.1e}"

    both, case = pd.concat([spmm, sddmm]), ["operation", *CASE]
    ours = both["strategy"].isin(["lane_groups", "window_tiles"])
    most = both[both["dtype"].isin(["float32", "3xtf32"]) & ours].groupby(case)["ratio"].max()
    chosen = both[both["rule"]].groupby(case)["ratio"].max() / most
    by_rule = sharing[sharing["rule"]].groupby(CASE)["ratio"].max()
    cusparse = sharing[sharing["strategy"] == "cusparse"].set_index(CASE)["ratio"]
    exact = spmm["dtype"].isin(["float32", "3xtf32"])
    twins = spmm["graph"].isin(TWINS) & spmm["columns"].isin([128, 256])
    windows = spmm[exact & twins & spmm["strategy"].isin(["windows", "window_tiles"])]
    ppa = spmm[exact & (spmm["graph"] == "ppa-twin") & (spmm["columns"] == 256)]
    fastest = ppa.loc[ppa["median_us"].idxmin()]
    lines = [
        ("largest error of the exact mode", "1e-6", largest_error("3xtf32")),
        ("of TF32, and of float16", "1e-3", f"{largest_error('tf32')}, {largest_error('float16')}"),
        ("exact mode over `lane_groups`, mean", "1.15", best(sharing, "3xtf32")),
        ("TF32 over `lane_groups`, mean", "1.3", best(sharing, "tf32")),
        ("float16 over `lane_groups` in float32, mean", "1.3", best(sharing, "float16")),
        ("what the rule chooses over `lane_groups`, mean", "", spread(by_rule)),
        ("over the fastest cuSPARSE, mean", "2.2", spread(by_rule / cusparse)),
        ("the rule's choice over the better of the two, least of all cases", "0.98",
         f"{chosen.min():.3f}, below 0.98 in {(chosen < 0.98).sum()} of {chosen.count()}"),
        ("natural twins, d = 128, 256: the best kernel by windows over `lane_groups`", "1.2",
         spread(windows.groupby(CASE)["ratio"].max())),
        ("PPA at d = 256, the fastest that is as exact as float32", "under 3,400 µs",
         f"{fastest['median_us']:,.0f} µs, `{fastest['strategy']}`"),
        ("SDDMM over `lane_groups`, exact", "2", best(sharing_sddmm, "3xtf32")),
        ("SDDMM over `lane_groups`, TF32", "", best(sharing_sddmm, "tf32")),
    ]  # fmt: skip
    blocks = rows[rows["graph"].str.startswith("blocks-") & (rows["operation"] == "spmm")]
    ax = plots.error_against_speed(blocks.assign(error=blocks["error"].astype(float)))
    return [
        markdown(("target", "wanted", "measured: mean (least to most)"), lines),
        Picture(ax.figure, "tensor-modes", "", tight=True),
    ]


PAGES = [
    Page(
        "tensor-cores.md",
        {
            "tiles": tiles,
            "machine": lambda results: machine(results["tensor-density-h200"]),
            "density": density,
            "graphs": graphs,
            "translation": translation,
            "accuracy": accuracy,
            "modes machine": lambda results: machine(modes(results)),
            "modes of spmm": lambda results: modes_of(results, "spmm"),
            "modes of sddmm": lambda results: modes_of(results, "sddmm"),
            "targets": targets,
        },
    )
]
