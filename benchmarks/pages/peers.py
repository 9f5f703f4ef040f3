"""Tables of docs/peers.md: ours beside published kernels, every case."""

from __future__ import annotations

from functools import partial

import pandas as pd

from accelviz.measure.comparison import geometric_mean
from benchmarks.pages.document import Page, Results, format_ratio, markdown

NAME = "peers-h100"
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
}
#: Least ratio that was wanted, by operation and stage.
LEAST = {
    ("spmm", "forward"): 1.05,
    ("sddmm", "forward"): 1.1,
    ("gat", "forward"): 1.3,
    ("gat", "both"): 1.3,
    ("gatv2", "forward"): 1.3,
    ("gatv2", "both"): 1.3,
    ("max", "forward"): 1.2,
    ("max", "both"): 1.0,
}
#: Mean over cuSPARSE's SpMM that was wanted, and mean share of the roof.
MEAN_OVER_CUSPARSE, ROOF = 1.9, 0.55
LARGE = 1_000_000


def named(rows: pd.DataFrame) -> pd.Series:
    """Return the name of the contender of each row, with its arithmetic if it is not float32."""
    names = rows["contender"].replace(PEERS)
    return names.where(rows["dtype"] == "float32", names + " (" + rows["dtype"] + ")")


def ratios(rows: pd.DataFrame) -> pd.DataFrame:
    """Return peers' right results with `ours_us` of the same case and `ratio` to it.

    A peer of float16 is compared with ours in float16, others with ours in float32.
    """
    timed = rows[rows["median_us"].notna()]
    ours, peers = timed[timed["contender"] == "ours"], timed[timed["contender"] != "ours"]
    times = ours.set_index([*_CASE, "dtype"])["median_us"]
    against = peers["dtype"].where(peers["dtype"] == "float16", "float32").rename("against")
    keys = pd.MultiIndex.from_frame(peers[_CASE].assign(against=against))
    ours_us = times.reindex(keys).to_numpy()
    return peers.assign(
        peer=named(peers), ours_us=ours_us, ratio=peers["median_us"].to_numpy() / ours_us
    )


def case_text(row: pd.Series) -> str:
    """Return a case's graph and sizes in words."""
    size = f"d = {row['columns']}"
    if row["heads"] > 1:
        size = f"{row['heads']} x {row['columns']}"
    return f"{graph_text(row)}, {size}"


def graph_text(row: pd.Series) -> str:
    """Return a graph's name and order."""
    name = row["graph"].removesuffix("-twin")
    return name if row["order"] == "as published" else f"{name} {row['order']}"


def summary(results: Results) -> str:
    """Return a row for each operation, stage and peer: mean, least, and cases below 1."""
    table = ratios(results[NAME])
    lines = []
    for (operation, stage, peer), rows in table.groupby(["operation", "stage", "peer"], sort=False):
        least = rows.loc[rows["ratio"].idxmin()]
        wanted = LEAST[operation, stage]
        missed = int((rows["ratio"] < wanted).sum())
        mean, verdict = geometric_mean(rows["ratio"]), f"none below {wanted:g}"
        if missed:
            verdict = f"{missed} below {wanted:g}"
        if (operation, peer) == ("spmm", "cuSPARSE"):
            met = "met" if mean >= MEAN_OVER_CUSPARSE else "**not met**"
            verdict += f"; mean {MEAN_OVER_CUSPARSE:g} {met}"
        lines.append(
            (
                f"{OPERATIONS[operation]}, {stage}",
                peer,
                len(rows),
                f"{mean:.2f}",
                f"{format_ratio(least['ratio'])} ({case_text(least)})",
                int((rows["ratio"] < 1).sum()),
                verdict,
            )
        )
    head = ("operation", "peer", "cases", "mean", "least", "below 1", "wanted")
    return f"{machine(results[NAME])}\n\n{markdown(head, lines)}"


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


def losses(results: Results) -> str:
    """Return the cases in which a peer is faster than ours of the same arithmetic."""
    table = ratios(results[NAME])
    lost = table[table["ratio"] < 1].sort_values("ratio")
    if lost.empty:
        return "No peer is faster in any case."
    lines = [
        (
            f"{OPERATIONS[row['operation']]}, {row['stage']}",
            case_text(row),
            f"{row['peer']} ({row['variant']})" if isinstance(row["variant"], str) else row["peer"],
            f"{row['median_us']:,.1f}",
            f"{row['ours_us']:,.1f}",
            format_ratio(row["ratio"]),
        )
        for _, row in lost.iterrows()
    ]
    table = markdown(("operation", "case", "peer", "its µs", "ours", "ratio"), lines)
    return folded(f"{len(lines)} cases", table)


def roof(results: Results) -> str:
    """Return the share of the compulsory-bytes roof of our SpMM where neighbors lie near."""
    rows = results[NAME]
    near = rows["order"].isin(["natural", "rabbit"]) & (rows["nonzeros"] > LARGE)
    ours = (rows["contender"] == "ours") & (rows["dtype"] == "float32")
    rows = rows[near & ours & (rows["operation"] == "spmm") & rows["median_us"].notna()]
    rows = rows.assign(share=rows["floor_us"] / rows["median_us"])
    lines = []
    for (graph, order), group in rows.groupby(["graph", "order"], sort=False):
        shares = group.set_index("columns")["share"]
        name = f"{graph.removesuffix('-twin')} {order}"
        lines.append((name, *(f"{shares.get(d, float('nan')):.2f}" for d in _columns(rows))))
    by_columns = rows.groupby("columns")["share"].agg(geometric_mean)
    lines.append(("**mean**", *(f"{by_columns[d]:.2f}" for d in _columns(rows))))
    mean = geometric_mean(rows["share"])
    met = "met" if mean >= ROOF else "**not met**"
    sentence = f"{mean:.2f} in the mean of {len(rows)} cases ({ROOF:g} was wanted: {met})."
    head = ("graph", *(f"d = {d}" for d in _columns(rows)))
    return f"{sentence}\n\n{markdown(head, lines)}"


def _columns(rows: pd.DataFrame) -> list[int]:
    return sorted(int(d) for d in rows["columns"].unique())


def every_case(operation: str, stage: str, results: Results) -> str:
    """Return the times and errors of all contenders in every case of an operation."""
    rows = results[NAME]
    rows = rows[rows["operation"] == operation]
    rows = rows[rows["stage"].isna() | (rows["stage"] == stage)].assign(name=named)
    names = list(dict.fromkeys(rows["name"]))
    best = ratios(rows).groupby([*_GRAPH, "heads", "columns"])["ratio"].min()
    lines = []
    for key, case in rows.groupby([*_GRAPH, "heads", "columns"], sort=False):
        cells = {row["name"]: cell(row) for _, row in case.iterrows()}
        least = best.get(key)
        ratio = "–" if least is None else format_ratio(least)
        label = case_text(case.iloc[0])
        lines.append((label, *(cells.get(name, "–") for name in names), ratio))
    table = markdown(("case", *names, "least ratio"), lines)
    return folded(f"{len(lines)} cases: µs (error)", table)


def folded(title: str, table: str) -> str:
    """Return a table that opens at a click on its title."""
    return f"<details><summary>{title}</summary>\n\n{table}\n\n</details>"


def cell(row: pd.Series) -> str:
    """Return a time with its error, or why there is none."""
    if pd.notna(row["median_us"]):
        return f"{row['median_us']:,.1f} ({row['error']:.0e})"
    problem = str(row["problem"])
    if problem.startswith("wrong"):
        return f"wrong ({row['error']:.0e})"
    return {"no kernel for this size": "no kernel"}.get(problem, "failed")


def problems(results: Results) -> str:
    """Return what went wrong, by contender, with the number of cases."""
    rows = results[NAME]
    rows = rows[rows["problem"].notna()].assign(name=named)
    kinds = rows["problem"].str.replace(r": .*", "", regex=True)
    lines = []
    for (operation, name, kind), group in rows.groupby(["operation", "name", kinds], sort=False):
        lines.append((OPERATIONS[operation], name, kind, len(group), case_text(group.iloc[0])))
    return markdown(("operation", "contender", "problem", "cases", "the first"), lines)


PAGES = [
    Page(
        "peers.md",
        {
            "summary": summary,
            "losses": losses,
            "roof": roof,
            "problems": problems,
            **{
                f"{operation} {stage}": partial(every_case, operation, stage)
                for operation, stage in LEAST
            },
        },
    )
]
