"""fuseGNN's tables and figures in docs/reproduction.md, beside our measurements."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from benchmarks.pages.document import Listing, Page, Parts, Results, markdown

#: Table 3 of the paper, ms on a V100: (DGL, fuseGNN) at 16, 64 and 512 columns. DGL ran out of
#: memory with GAT on Reddit.
TABLE_3 = {
    ("cora", "gcn"): ((2.35, 1.05), (2.37, 1.09), (2.51, 1.10)),
    ("cora", "gat"): ((7.46, 1.65), (7.59, 1.68), (8.07, 1.70)),
    ("pubmed", "gcn"): ((2.69, 1.07), (2.79, 1.11), (3.61, 3.00)),
    ("pubmed", "gat"): ((7.75, 1.72), (7.85, 1.72), (10.43, 3.74)),
    ("reddit", "gcn"): ((22.5, 29.2), (58.9, 71.9), (452.9, 690.4)),
    ("reddit", "gat"): ((np.nan, 120.0), (np.nan, 314.3), (np.nan, 825.3)),
}
TABLE_3_COLUMNS = (16, 64, 512)
#: Tables 2 and 5, MiB: L2 read, L2 written or updated by atomics, DRAM read, DRAM written.
MOVED = {
    ("pubmed", "gather"): (90.7, 86.6, 58.2, 86.3),
    ("pubmed", "apply_edge"): (87.7, 86.6, 87.1, 86.2),
    ("pubmed", "scatter"): (87.9, 90.77, 142.1, 58.3),
    ("pubmed", "fusegnn_gas"): (92.5, 90.78, 107.8, 57.0),
    ("pubmed", "fusegnn_gar"): (107.6, 19.3, 61.6, 20.9),
    ("reddit", "fusegnn_gas"): (59.4 * 1024, 58.7 * 1024, 100.9 * 1024, 50.2 * 1024),
    ("reddit", "fusegnn_gar"): (55.5 * 1024, 113.8, 47.1 * 1024, 116.4),
}
#: Table 4: ms, active warps of an SM, occupancy in percent, GB/s of DRAM.
TABLE_4 = {"fusegnn_gar": (13.6, 63.13, 98.6, 327.1), "neugraph": (23.5, 30.28, 47.3, 196.1)}
#: Query for the case of Table 4.
GCN_REDDIT_16 = "graph == 'reddit' and columns == 16"
NAMES = {"cora": "Cora", "pubmed": "Pubmed", "reddit": r"Reddit\*", "gcn": "GCN", "gat": "GAT"}
FORMS = ("pyg", "gas", "gar", "ours")


def cell(value: float | None, form: str) -> str:
    """Format a number; "no memory" if NaN, "" if it was not measured."""
    if value is None:
        return ""
    return "no memory" if np.isnan(value) else format(value, form)


def table_3(results: Results) -> Parts:
    """Return the ratios of Table 3 by graph and model, and the file with the times."""
    rows = []
    latency = results["fusegnn-latency-h200"]
    for (graph, model), cases in latency.groupby(["graph", "model"], sort=False):
        times = cases.set_index(["form", "hidden"])["ms"].to_dict()
        for (dgl, published), hidden in zip(TABLE_3[graph, model], TABLE_3_COLUMNS, strict=True):
            forms = {form: times.get((form, hidden), np.nan) for form in FORMS}
            if np.isnan([*forms.values()]).all():
                continue  # measured with other columns only
            rows.append({"graph": graph, "model": model, "columns": hidden, "paper_dgl": dgl})
            rows[-1] |= {"paper_fusegnn": published, **forms}
    table = pd.DataFrame(rows)
    faster = table[["gas", "gar"]].min(axis=1)
    ratios = table.assign(
        paper=table["paper_dgl"] / table["paper_fusegnn"],
        over=table["pyg"] / faster,
        ahead=faster / table["ours"],
    )
    lines = []
    for (graph, model), part in ratios.groupby(["graph", "model"], sort=False):
        paper = spread(part["paper"], "DGL: no memory")
        cells = (spread(part[name], "not measured") for name in ("over", "ahead"))
        lines.append((NAMES[graph], NAMES[model], paper, *cells))
    head = ("graph", "model", "paper: DGL / fuseGNN", "PyG / faster of GAS, GAR", "that / ours")
    return [markdown(head, lines), Listing(table, "fusegnn-latency", "Milliseconds of each case")]


def spread(ratios: pd.Series, absent: str) -> str:
    """Format the least and the largest ratio; `absent` if there is none."""
    if ratios.isna().all():
        return absent
    return f"{ratios.min():.1f} to {ratios.max():.1f}"


def figure_11(results: Results) -> Parts:
    """Return the ratios of aggregation and conversion in GCN's pass, and the file with times."""
    rows = []
    gcn = results["fusegnn-latency-h200"].query("model == 'gcn'")
    for (graph, hidden), cases in gcn.groupby(["graph", "hidden"], sort=False):
        parts = {row.form: json.loads(row.parts_ms) for row in cases.itertuples()}
        if parts.get("gas") and parts.get("gar"):
            gas, gar = (parts[form].get("spmm", np.nan) for form in ("gas", "gar"))
            convert = parts["gar"].get("conversion", np.nan)
            winner = "GAS" if gas < gar + convert else "GAR"
            rows.append({"graph": NAMES[graph], "columns": hidden, "gas": gas, "gar": gar})
            rows[-1] |= {"convert": convert, "winner": winner}
    table = pd.DataFrame(rows)
    lines = []
    for graph, part in table.groupby("graph"):
        shares = (part["gas"] / part["gar"], part["convert"] / part["gar"])
        wins = (part["winner"] == "GAS").sum()
        cells = (f"{share.min():.1f} to {share.max():.1f}" for share in shares)
        lines.append((graph, *cells, f"{wins} of {len(part)}"))
    head = ("graph", "GAS / GAR", "conversion / GAR", "GAS faster, conversion included")
    file = table.assign(graph=table["graph"].str.replace("\\*", "", regex=False))
    return [markdown(head, lines), Listing(file, "fusegnn-aggregation", "Each column count, ms")]


def table_4(results: Results) -> Parts:
    """Return the file of Table 4: fuseGNN's kernel, NeuGraph's fused gather, and ours."""
    names, lines = ("ms", "warps_of_an_sm", "occupancy_pct", "dram_gb_per_s"), []
    for row in results["fusegnn-counters-h200"].query(GCN_REDDIT_16).itertuples():
        measured = [row.microseconds / 1e3, row.active_warps, row.occupancy_pct, row.dram_gb_per_s]
        paper = TABLE_4.get(row.strategy, (np.nan,) * len(names))
        line = {"strategy": row.strategy}
        for name, published, value in zip(names, paper, measured, strict=True):
            line |= {f"{name}_paper": published, name: value}
        lines.append(line)
    title = "Milliseconds, warps, occupancy and GB/s, printed and here"
    return [Listing(pd.DataFrame(lines), "fusegnn-table-4", title)]


def tables_2_5(results: Results) -> Parts:
    """Return the file with the MiB that each kernel moves, beside Tables 2 and 5."""
    kinds = ("l2_read", "l2_written", "dram_read", "dram_written")
    rows = []
    for row in results["fusegnn-counters-h200"].query(f"not ({GCN_REDDIT_16})").itertuples():
        measured = (row.l2_read_mib, row.l2_write_mib + row.l2_atomic_mib)
        measured += (row.dram_read_mib, row.dram_write_mib)
        paper = MOVED.get((row.graph, row.kernel), (np.nan,) * len(kinds))
        line = {"graph": row.graph, "columns": row.columns, "kernel": row.kernel}
        for kind, published, mib in zip(kinds, paper, measured, strict=True):
            line |= {f"{kind}_paper": published, kind: mib}
        rows.append(line)
    return [Listing(pd.DataFrame(rows), "fusegnn-moved", "MiB read and written by each kernel")]


def figure_12(results: Results) -> Parts:
    """Return the file with the peaks of memory."""
    rows = results["fusegnn-latency-h200"].query("hidden == 128")
    peaks = rows.pivot_table(
        index=["graph", "model"], columns="form", values="peak_mib", sort=False
    )
    return [Listing(peaks.reset_index(), "fusegnn-memory", "Peak MiB of each graph and model")]


def crossover(results: Results) -> Parts:
    """Return from which average degree on GAR is faster, and the file with the ratios."""
    rows: pd.DataFrame = results["fusegnn-crossover-h200"]
    rows = rows.assign(
        alone=rows["gas_us"] / rows["gar_us"],
        converted=rows["gas_us"] / (rows["gar_us"] + rows["conversion_us"]),
    )
    lines = []
    for d, cases in rows.groupby("columns"):
        least = (cases.loc[cases[name] > 1, "degree"].min() for name in ("alone", "converted"))
        lines.append((d, *("never" if np.isnan(degree) else f"{degree:.0f}" for degree in least)))
    head = ("columns", "GAR is faster from a degree of", "with the conversion, from")
    names = ["degree", "columns", "gas_us", "gar_us", "conversion_us", "alone", "converted"]
    return [markdown(head, lines), Listing(rows[names], "fusegnn-crossover", "Each average degree")]


PAGES = [
    Page(
        "reproduction.md",
        {
            "fusegnn-table-3": table_3,
            "fusegnn-figure-11": figure_11,
            "fusegnn-figure-12": figure_12,
            "fusegnn-table-4": table_4,
            "fusegnn-tables-2-5": tables_2_5,
            "fusegnn-crossover": crossover,
        },
    )
]
