"""Tables and picture of docs/tensor-cores.md: windows of condensed columns, by arithmetic."""

from __future__ import annotations

import numpy as np
import pandas as pd

from accelviz import plots
from accelviz.strategies.choice import LEAST_COLUMNS, LEAST_NONZEROS, LEAST_REUSE, WINDOW_ROWS
from benchmarks.pages.document import (
    Listing,
    Page,
    Parts,
    Picture,
    Results,
    machine,
    markdown,
    mean_of,
)

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
#: The overview has graphs with at least this many nonzeros per distinct column of 8-row windows.
SHARING = 1.5
#: Parts of graph names, and how they are written.
NAMES = {"ppa": "PPA", "products": "PRODUCTS", "collab": "Collab", "reddit": "Reddit"}


def tiles(results: Results) -> Parts:
    """Return what translation saves (Figure 5.4): means, and the file with each graph."""
    rows = results["tensor-tiles"]
    means = rows.groupby("operation")[["saved", "fill", "rabbit_fill"]].mean()
    lines = [
        (name, f"{row['saved']:.0%}", f"{row['fill']:.1%}", f"{row['rabbit_fill']:.1%}")
        for name, row in (
            ("SpMM, tiles of 16 x 8", means.loc["spmm"]),
            ("SDDMM, tiles of 16 x 16", means.loc["sddmm"]),
        )
    ]
    head = ("mean of 13 bundled graphs", "tiles saved", "nonzeros of a tile", "in Rabbit order")
    return [markdown(head, lines), Listing(rows, "tensor-tiles", "Each graph")]


def density(results: Results) -> Parts:
    """Return times of every second of Table 5.6's matrices with 128 columns, and the file of all.

    Times are in microseconds; the fastest per row is bold.
    """
    rows = results["tensor-density-h200"]
    rows = rows.assign(name=rows["strategy"].str.replace("_", " ") + ", " + rows["dtype"])
    index = ["columns", "blocks_of_window", "density"]
    wide = rows.pivot_table(index=index, columns="name", values="median_us")
    lines = [
        (
            f"{share:.1%}",
            *(f"**{us:,.1f}**" if us == times.min() else f"{us:,.1f}" for us in times),
        )
        for (_, share), times in wide.loc[128].iloc[::2].iterrows()
    ]
    every = Listing(wide.reset_index(), "tensor-density", "Every density, with 16 and 128 columns")
    return [markdown(("density", *wide.columns), lines), every]


def graphs(results: Results) -> Parts:
    """Return others' times over tc_gnn's on graphs, and the file with each graph."""
    case = ["operation", "graph", "reuse", "columns"]
    rows = results["tensor-graphs-h200"]
    wide = rows.pivot_table(index=case, columns="strategy", values="median_us", sort=False)
    others = [name for name in wide.columns if name != "tc_gnn"]
    ratio = wide[others].div(wide["tc_gnn"], axis=0)
    lines = [
        (
            "SpMM" if operation == "spmm" else "SDDMM",
            *(f"{mean_of(group[name]):.2f}" for name in others),
            f"{group.min(axis=1).min():.2f} to {group.min(axis=1).max():.2f}",
        )
        for operation, group in ratio.groupby("operation", sort=False)
    ]
    head = ("time over that of `tc_gnn`", *(f"`{name}`, mean" for name in others), "the fastest")
    return [markdown(head, lines), Listing(wide.reset_index(), "tensor-graphs", "Each graph, µs")]


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


def modes_of(results: Results, operation: str) -> Parts:
    """Return speedups over `lane_groups` on large graphs with 256 columns, and the file of all."""
    rows = ratios(modes(results), operation)
    best = rows.groupby([*CASE, "strategy", "dtype"], sort=False)["ratio"].max()
    lines = []
    large = rows[(rows["columns"] == 256) & (rows["nonzeros"] >= LEAST_NONZEROS)]
    for (graph, order, columns), case in large.groupby(CASE, sort=False):
        cells = []
        for _, strategy, dtype in MODES[operation]:
            ratio = best.get((graph, order, columns, strategy, dtype), float("nan"))
            cells.append(
                "–" if np.isnan(ratio) else f"**{ratio:.2f}**" if ratio > 1 else f"{ratio:.2f}"
            )
        lines.append((graph_name(graph, order), f"{case['reuse_16'].iloc[0]:.1f}", *cells))
    head = ("graph", "reuse", *(head for head, *_ in MODES[operation]))
    names = [*CASE, "nonzeros", "reuse_8", "reuse_16", "strategy", "dtype", "window_rows"]
    every = rows[[*names, "median_us", "error", "ratio"]]
    title = "Every graph, column count and number of rows of a window"
    file = Listing(every, f"tensor-modes-{operation}", title)
    return [markdown(head, lines), file] if operation == "spmm" else [file]


def graph_name(graph: str, order: str) -> str:
    """Return a graph's name in prose, with its order."""
    name = graph.replace("blocks-", "blocks of ")
    if graph.endswith("-twin"):
        name = graph.removesuffix("-twin")
        name = f"{NAMES.get(name, name)}'s twin"
    return name + (f", {order.title()} order" if order else "")


def translations(results: Results) -> pd.DataFrame:
    """Return the times of translation on the GPU, in `products` with 128 columns.

    The column `kind` is "twins", "made-up blocks" or "small graphs".
    """
    rows, keys = modes(results), ["graph", "order"]
    simple = (rows["strategy"] == "lane_groups") & (rows["dtype"] == "float32")
    products = rows[simple & (rows["operation"] == "spmm") & (rows["columns"] == 128)]
    products = products.drop_duplicates(keys).set_index(keys)["median_us"].rename("product")
    times = rows[rows["operation"] == "translation"].join(products, on=keys, how="inner")
    kinds = np.select(
        [times["graph"].str.endswith("-twin"), times["graph"].str.startswith("blocks-")],
        ["twins", "made-up blocks"],
        "small graphs",
    )
    return times.assign(kind=kinds, products=times["median_us"] / times["product"])


def translation(results: Results) -> str:
    """Return the least and the most products that translation takes, by kind of graph."""
    lines = []
    for kind, times in translations(results).groupby("kind", sort=False):
        by_rows = times.groupby("window_rows")["products"].agg(["min", "max"])
        cells = (f"{by_rows['min'][n]:.1f} to {by_rows['max'][n]:.1f}" for n in (8, 16))
        lines.append((kind, *cells))
    return markdown(("translation, in products", "windows of 8 rows", "of 16 rows"), lines)


def overview(results: Results) -> Parts:
    """Return means over all graphs whose rows share columns, and a plot of error against speed."""
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
    lines = [
        ("largest error over the sum of magnitudes: exact, TF32, float16",
         ", ".join(map(largest_error, ("3xtf32", "tf32", "float16")))),
        ("SpMM over `lane_groups`, exact", best(sharing, "3xtf32")),
        ("SpMM over `lane_groups`, TF32", best(sharing, "tf32")),
        ("SpMM over `lane_groups` in float32, float16", best(sharing, "float16")),
        ("SpMM, the rule's choice over `lane_groups`", spread(by_rule)),
        ("SDDMM over `lane_groups`, exact", best(sharing_sddmm, "3xtf32")),
        ("the rule's choice over the better of the two, least of all cases",
         f"{chosen.min():.3f}, below 0.98 in {(chosen < 0.98).sum()} of {chosen.count()}"),
    ]  # fmt: skip
    blocks = rows[rows["graph"].str.startswith("blocks-") & (rows["operation"] == "spmm")]
    ax = plots.error_against_speed(blocks.assign(error=blocks["error"].astype(float)))
    return [
        markdown(("question", "mean (least to most)"), lines),
        Picture(
            ax.figure,
            "tensor-modes",
            "Error against speed of SpMM on the made-up blocks",
            tight=True,
        ),
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
            "modes machine": lambda results: machine(modes(results)),
            "modes of spmm": lambda results: modes_of(results, "spmm"),
            "modes of sddmm": lambda results: modes_of(results, "sddmm"),
            "overview": overview,
        },
    )
]
