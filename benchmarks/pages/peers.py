"""Tables of docs/peers.md: ours beside published kernels, and the file with every case."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from accelviz.measure.comparison import geometric_mean
from benchmarks.pages.document import Listing, Page, Parts, Results, format_ratio, markdown

#: Results of sums, attention and maxima, of products of bits, and those of an older version.
NAME, BITS, OLDER = "peers-h200", "peers-bits-h200", "peers-h100"
_GRAPH = ["graph", "order", "seed"]
_CASE = ["operation", "stage", *_GRAPH, "heads", "columns"]
#: Names of the operations and of the peers as a reader knows them.
OPERATIONS = {
    "spmm": "SpMM",
    "sddmm": "SDDMM",
    "gat": "GAT",
    "gatv2": "GATv2",
    "max": "maximum",
}
PEERS = {
    "cusparse": "cuSPARSE",
    "rode": "RoDe",
    "sputnik": "sputnik",
    "flashsparse": "FlashSparse",
    "voltrix": "Voltrix",
    "dgnn": "dgNN",
    "dfgnn": "DF-GNN",
    "turbo_gnn": "Turbo-GNN",
    "qgtc": "QGTC",
    "apnn_tc": "APNN-TC",
}
#: Graphs and orders on which no rule was chosen.
UNSEEN = (
    *(("com-amazon-twin", "natural"), ("collab-twin", "rabbit"), ("yelp-twin", "rabbit")),
    ("rmat-16", "shuffled"),
)
#: Results of products of bits, which are compared with ours of the same kind.
BIT_RESULTS = ("int32", "packed")
#: Largest time of packed results, over that of whole numbers, that counts as near.
NEAR = 1.3
#: What the time of a stage includes.
STAGES = {
    "forward": "forward",
    "both": "with its gradient",
    "both, without atomics": "with its gradient without atomics",
}
LARGE = 1_000_000


def named(rows: pd.DataFrame) -> pd.Series:
    """Return the name of the contender of each row, with its arithmetic if it is not float32."""
    names = rows["contender"].replace(PEERS)
    return names.where(rows["dtype"] == "float32", names + " (" + rows["dtype"] + ")")


def ratios(rows: pd.DataFrame, without_atomics: bool = False) -> pd.DataFrame:
    """Return peers' right results as in `rows`, with `ours_us` of the same case and `ratio` to it.

    A peer of float16 and products of bits are compared with ours of the same arithmetic, others
    with ours in float32; a maximum with its gradient, which is by atomics, with ours by atomics, or
    `without_atomics`.
    """
    timed = rows[rows["median_us"].notna()]
    ours, peers = timed[timed["contender"] == "ours"], timed[timed["contender"] != "ours"]
    times = ours.set_index([*_CASE, "dtype"])["median_us"]
    same = peers["dtype"].isin(["float16", *BIT_RESULTS])
    against = peers["dtype"].where(same, "float32").rename("against")
    if not without_atomics:
        of_maximum = (peers["operation"] == "max") & (peers["stage"] == "both")
        against = against.mask(of_maximum, "float32, atomics")
    keys = pd.MultiIndex.from_frame(peers[_CASE].assign(against=against))
    ours_us = times.reindex(keys).to_numpy()
    return peers.assign(
        peer=named(peers), ours_us=ours_us, ratio=peers["median_us"].to_numpy() / ours_us
    )


def problem_kinds(rows: pd.DataFrame) -> pd.Series:
    """Return the reasons without times, without their details."""
    return rows["problem"].astype("string").str.replace(r": .*", "", regex=True)


def case_text(row: pd.Series) -> str:
    """Return a case's graph and sizes in words."""
    if row["graph"].startswith("bits-"):
        sizes = row["graph"].removeprefix("bits-").replace("-", " x ")
        return f"{sizes} x {row['columns']}, 1 x {row['heads']} bits"
    size = f"d = {row['columns']}"
    if row["heads"] > 1:
        size = f"{row['heads']} x {row['columns']}"
    return f"{graph_text(row)}, {size}"


def graph_text(row: pd.Series) -> str:
    """Return a graph's name and order."""
    name = row["graph"].removesuffix("-twin")
    return name if row["order"] == "as published" else f"{name} {row['order']}"


def summary(operations: tuple[str, ...], results: Results) -> str:
    """Return a row for each stage and peer of some operations: mean, least, and cases below 1."""
    rows = results[NAME]
    return _summary(ratios(rows[rows["operation"].isin(operations)]))


def maxima(results: Results) -> str:
    """Return `summary` of maxima; with their gradient by atomics, and without."""
    rows = results[NAME]
    rows = rows[rows["operation"] == "max"]
    without = ratios(rows[rows["stage"] == "both"], without_atomics=True)
    without = without.assign(stage="both, without atomics")
    return _summary(pd.concat([ratios(rows), without]))


def _summary(table: pd.DataFrame) -> str:
    lines = []
    for (operation, stage, peer), rows in table.groupby(["operation", "stage", "peer"], sort=False):
        least = rows.loc[rows["ratio"].idxmin()]
        lines.append(
            (
                ", ".join(filter(None, (OPERATIONS.get(operation, operation), STAGES.get(stage)))),
                peer,
                len(rows),
                f"{geometric_mean(rows['ratio']):.2f}",
                f"{format_ratio(least['ratio'])} ({case_text(least)})",
                int((rows["ratio"] < 1).sum()),
            )
        )
    return markdown(("operation", "peer", "cases", "mean", "least", "below 1"), lines)


def bits(results: Results) -> Parts:
    """Return `_summary` of products of bits by their sizes; times of packed results; every case."""
    if (rows := results.optional(BITS)) is None:
        return "QGTC and APNN-TC have no figures: they were not timed."
    table = ratios(rows)
    narrow, few = table["columns"] <= 128, table["graph"].str.startswith("bits-64-")
    kinds = np.select([few, narrow], ["64 x N x N", "N x N x D, D = 32 to 128"], "large")
    times = rows.pivot_table("median_us", _CASE, ["contender", "dtype"])
    packed = times["ours", "packed"] / times["ours", "int32"]
    untimed = rows["median_us"].isna()
    listed = rows[["graph", "columns", "contender", "dtype", "variant", "median_us"]].assign(
        graph=rows["graph"].str.removeprefix("bits-").str.replace("-", " x "),
        bits=rows["heads"],
        contender=rows["contender"].replace(PEERS),
        over_ours=table["ratio"],
        problem=problem_kinds(rows),
    )
    names = {"graph": "A", "dtype": "result", "variant": "setting", "median_us": "us"}
    return [
        _summary(table.assign(operation=kinds, stage="")),
        f"Ours takes {packed.min():.2f} to {packed.max():.2f} times as long for packed results as "
        f"for whole numbers; {(packed <= NEAR).sum()} of {len(packed)} cases are within {NEAR}. "
        f"{untimed.sum()} of {len(rows)} results are wrong or have no kernel.",
        Listing(listed.rename(columns=names), "peers-bits", "Each size and number of bits"),
        machine(rows),
    ]


def counters(results: Results) -> Parts:
    """Return the file with counters of ours and of the nearest peer, summed over the kernels."""
    rows = results["counters-peers-h200"]
    rows = rows.assign(busy=rows["l2_pct"] * rows["elapsed_cycles"])
    case = ["graph", "operation", "columns", "contender"]
    sums = rows.groupby(case, sort=False)[
        ["elapsed_cycles", "l2_read_sectors", "dram_read_bytes", "busy"]
    ].sum()
    lines = [
        (
            f"{OPERATIONS[operation]}, {graph.partition('@')[0].replace('-twin:', ' ')}, d = {d}",
            PEERS.get(contender, contender),
            row["elapsed_cycles"] / 1e6,
            row["l2_read_sectors"] / 1e6,
            row["dram_read_bytes"] / 1e9,
            row["busy"] / row["elapsed_cycles"],
        )
        for (graph, operation, d, contender), row in sums.iterrows()
    ]
    head = ["case", "contender", "million_cycles", "million_l2_sectors", "dram_gb", "l2_busy_pct"]
    return [Listing(pd.DataFrame(lines, columns=head), "peers-counters", "Each case and kernel")]


def machine(rows: pd.DataFrame) -> str:
    """Return a sentence with the GPU, the versions and the commits of the rows."""
    cells = {
        name: ", ".join(dict.fromkeys(rows[name].dropna().astype(str)))
        for name in ("hardware", "driver", "cuda", "date", "commit")
    }
    return (
        f"{cells['hardware']} (driver {cells['driver']}, CUDA {cells['cuda']}), {cells['date']}, "
        f"commit {cells['commit']}. Medians of CUDA events, warm."
    )


def means(table: pd.DataFrame) -> str:
    """Return means and least ratios of sparse products over the peers of the same arithmetic."""
    table = table[table["operation"].isin(["spmm", "sddmm"]) & (table["dtype"] == "float32")]
    return "; ".join(
        f"{OPERATIONS[operation]} over {peer} {geometric_mean(ratio):.2f}, {ratio.min():.2f}"
        for (operation, peer), ratio in table.groupby(["operation", "peer"], sort=False)["ratio"]
    )


def unseen(results: Results) -> str:
    """Return `means` of the graphs on which no rule was chosen."""
    table = ratios(results[NAME])
    graphs = pd.MultiIndex.from_frame(table[["graph", "order"]])
    return f"Mean and least on these graphs: {means(table[graphs.isin(UNSEEN)])}."


def older(results: Results) -> str:
    """Return `means` of another card and an older version."""
    rows = results[OLDER]
    return (
        f"Mean and least on {rows['hardware'].iloc[0]} with the rules before, "
        f"{rows['date'].max()}: {means(ratios(rows))}."
    )


def losses(results: Results) -> str:
    """Return every case in which a peer is faster than ours of the same arithmetic."""
    table = ratios(results[NAME])
    lost = table[table["ratio"] < 1]
    if lost.empty:
        return "No peer is faster in any case."
    cases = (
        f"- {OPERATIONS[row['operation']]}, {STAGES[row['stage']]}: {row['peer']} on "
        f"{graph_text(row)}, d = {row['columns']} ({format_ratio(row['ratio'])})"
        for _, row in lost.iterrows()
    )
    return "\n".join([f"Of {len(table)} comparisons a peer is faster in {len(lost)}:", "", *cases])


def roof(results: Results) -> Parts:
    """Return the share of the compulsory-bytes roof of our SpMM where neighbors lie near."""
    rows = results[NAME]
    near = rows["order"].isin(["natural", "rabbit"]) & (rows["nonzeros"] > LARGE)
    ours = (rows["contender"] == "ours") & (rows["dtype"] == "float32")
    rows = rows[near & ours & (rows["operation"] == "spmm") & rows["median_us"].notna()]
    rows = rows.assign(share=rows["floor_us"] / rows["median_us"])
    by_columns = rows.groupby("columns")["share"].agg(geometric_mean)
    means = ", ".join(f"{mean:.2f}" for mean in by_columns)
    counts = ", ".join(str(d) for d in by_columns.index)
    return [
        f"The mean share of {len(rows)} cases is {geometric_mean(rows['share']):.2f}; "
        f"at d = {counts} it is {means}.",
        Listing(rows[["graph", "order", "columns", "share"]], "peers-roof", "Each graph"),
    ]


def every_case(results: Results) -> Parts:
    """Return the file with the time, the error and the ratio of all contenders in every case."""
    rows = results[NAME]
    ours = rows["contender"] == "ours"
    listed = rows[["operation", "stage", "graph", "order", "heads", "columns"]].assign(
        contender=rows["contender"].replace(PEERS),
        arithmetic=rows["dtype"],
        setting=rows["variant"],
        hardware=rows["hardware"],
        us=rows["median_us"],
        error=rows["error"],
        over_ours=ratios(rows)["ratio"],
        problem=problem_kinds(rows),
    )
    cases = len(rows[ours].drop_duplicates(_CASE))
    return [Listing(listed, "peers", f"All {cases} cases with every contender")]


PAGES = [
    Page(
        "peers.md",
        {
            "machine": lambda results: machine(results[NAME]),
            "older": older,
            "unseen": unseen,
            "products": partial(summary, ("spmm", "sddmm")),
            "attention": partial(summary, ("gat", "gatv2")),
            "maxima": maxima,
            "bits": bits,
            "losses": losses,
            "counters": counters,
            "roof": roof,
            "every case": every_case,
        },
    )
]
