"""Renew fuseGNN's section of docs/reproduction.md from benchmarks/results/fusegnn-*-h200.csv.

python benchmarks/pages/fusegnn.py
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from graphs import renewed
from paper import ROOT, markdown

from accelviz.files import results_directory

PAGE = ROOT / "docs" / "reproduction.md"
#: Table 3 of the paper, ms on a V100: (DGL, fuseGNN) at 16, 64 and 512 columns. For GAT on Reddit
#: DGL had not enough memory.
TABLE_3 = {
    ("cora", "gcn"): ((2.35, 1.05), (2.37, 1.09), (2.51, 1.10)),
    ("cora", "gat"): ((7.46, 1.65), (7.59, 1.68), (8.07, 1.70)),
    ("pubmed", "gcn"): ((2.69, 1.07), (2.79, 1.11), (3.61, 3.00)),
    ("pubmed", "gat"): ((7.75, 1.72), (7.85, 1.72), (10.43, 3.74)),
    ("reddit", "gcn"): ((22.5, 29.2), (58.9, 71.9), (452.9, 690.4)),
    ("reddit", "gat"): ((np.nan, 120.0), (np.nan, 314.3), (np.nan, 825.3)),
}
TABLE_3_COLUMNS = (16, 64, 512)
#: Tables 2 and 5, MiB: L2 read, L2 written or by atomics, DRAM read, DRAM written.
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
#: Of Table 4 alone.
GCN_REDDIT_16 = "graph == 'reddit' and columns == 16"
NAMES = {"cora": "Cora", "pubmed": "Pubmed", "reddit": r"Reddit\*", "gcn": "GCN", "gat": "GAT"}


def milliseconds(value: float | None) -> str:
    """Write a time, that there was not enough memory, or nothing if it was not measured."""
    if value is None:
        return ""
    if np.isnan(value):
        return "no memory"
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def table_3(latency: pd.DataFrame) -> str:
    """Write Table 3 beside what was measured here, of what was measured."""
    lines = []
    for (graph, model), cases in latency.groupby(["graph", "model"], sort=False):
        times = cases.set_index(["form", "hidden"])["ms"].to_dict()
        for (dgl, theirs), hidden in zip(TABLE_3[graph, model], TABLE_3_COLUMNS, strict=True):
            forms = ("gas", "gar", "pyg", "ours")
            gas, gar, pyg, own = found = [times.get((form, hidden)) for form in forms]
            if not any(found):
                continue  # measured with other columns only
            ratio = "" if pyg is None or np.isnan(pyg) else f"{pyg / min(gas, gar):.1f}"
            paper = "" if np.isnan(dgl) else f"{dgl / theirs:.1f}"
            cells = map(milliseconds, (dgl, theirs, pyg, gas, gar, own))
            lines.append((NAMES[graph], NAMES[model], hidden, *cells, paper, ratio))
    head = ("graph", "model", "columns", "paper: DGL", "paper: fuseGNN", "PyG", "GAS", "GAR")
    return markdown((*head, "ours", "DGL / fuseGNN", "PyG / faster of GAS, GAR"), lines)


def figure_11(latency: pd.DataFrame) -> str:
    """Write what aggregation and conversion take of GCN's pass."""
    lines = []
    gcn = latency[latency["model"] == "gcn"]
    for (graph, hidden), cases in gcn.groupby(["graph", "hidden"], sort=False):
        parts = {row.form: json.loads(row.parts_ms) for row in cases.itertuples()}
        if not parts.get("gas") or not parts.get("gar"):
            continue
        gas, gar = (parts[form].get("spmm", np.nan) for form in ("gas", "gar"))
        convert = parts["gar"].get("conversion", np.nan)
        winner = "GAS" if gas < gar + convert else "GAR"
        lines.append((NAMES[graph], hidden, f"{gas:.3f}", f"{gar:.3f}", f"{convert:.3f}", winner))
    lines.sort(key=lambda line: (list(NAMES.values()).index(line[0]), line[1]))
    head = ("graph", "columns", "GAS", "GAR", "conversion", "with conversion")
    return markdown(head, lines)


def in_turns(theirs: Iterable[float | None], ours: Iterable[float], digits: int = 0) -> list[str]:
    """Write the paper's number and ours by turns, nothing where the paper has none."""
    pairs = zip(theirs, ours, strict=True)
    return ["" if each is None else f"{each:,.{digits}f}" for pair in pairs for each in pair]


def table_4(counters: pd.DataFrame) -> str:
    """Write fuseGNN's kernel beside NeuGraph's fused gather and ours."""
    lines = []
    for row in counters.query(GCN_REDDIT_16).itertuples():
        here = row.microseconds / 1e3, row.active_warps, row.occupancy_pct, row.dram_gb_per_s
        paper = TABLE_4.get(row.strategy, (None,) * 4)
        lines.append((f"`{row.strategy}`", *in_turns(paper, here, 1)))
    head = ("strategy", "ms, paper", "here", "warps of an SM, paper", "here")
    return markdown((*head, "occupancy, %, paper", "here", "DRAM, GB/s, paper", "here"), lines)


def moved(counters: pd.DataFrame) -> str:
    """Write Tables 2 and 5."""
    lines = []
    for row in counters.query(f"not ({GCN_REDDIT_16})").itertuples():
        here = (
            row.l2_read_mib,
            row.l2_write_mib + row.l2_atomic_mib,
            row.dram_read_mib,
            row.dram_write_mib,
        )
        paper = MOVED.get((row.graph, row.kernel), (None,) * 4)
        lines.append(
            (f"{NAMES[row.graph]}, {row.columns}", f"`{row.kernel}`", *in_turns(paper, here))
        )
    head = ("case", "kernel", "L2 read, paper", "here", "L2 written, paper", "here")
    return markdown((*head, "DRAM read, paper", "here", "DRAM written, paper", "here"), lines)


def figure_12(latency: pd.DataFrame) -> str:
    """Write the peaks of memory."""
    rows = latency[latency["hidden"] == 128]
    lines = []
    for (graph, model), cases in rows.groupby(["graph", "model"], sort=False):
        peaks = cases.set_index("form")["peak_mib"]
        found = (peaks.get(form) for form in ("pyg", "gas", "gar", "ours"))
        cells = [
            "" if each is None else "no memory" if np.isnan(each) else f"{each:,.0f}"
            for each in found
        ]
        lines.append((NAMES[graph], NAMES[model], *cells))
    return markdown(("graph", "model", "PyG", "GAS", "GAR", "ours"), lines)


def crossover(table: pd.DataFrame) -> str:
    """Write where GAR overtakes GAS, by average degree."""
    lines = []
    for degree, rows in table.groupby("degree", sort=False):
        cells = []
        for row in rows.itertuples():
            cells += [f"{row.gas_us / row.gar_us:.2f}"]
            cells += [f"{row.gas_us / (row.gar_us + row.conversion_us):.2f}"]
        lines.append((f"{degree:.1f}", f"{rows['conversion_us'].iloc[0]:.0f}", *cells))
    columns = [f"{d} columns" for d in table["columns"].unique()]
    head = ("average degree", "conversion, µs")
    return markdown((*head, *(f"{c}{w}" for c in columns for w in ("", ", converted"))), lines)


SECTIONS = {
    "fusegnn-table-3": (table_3, "latency"),
    "fusegnn-figure-11": (figure_11, "latency"),
    "fusegnn-figure-12": (figure_12, "latency"),
    "fusegnn-table-4": (table_4, "counters"),
    "fusegnn-tables-2-5": (moved, "counters"),
    "fusegnn-crossover": (crossover, "crossover"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--document", type=Path, default=PAGE)
    parser.add_argument("--results", type=Path, default=results_directory(), help="folder of CSVs")
    options = parser.parse_args()
    text = options.document.read_text("utf-8")
    for name, (section, what) in SECTIONS.items():
        text = renewed(
            text, name, section(pd.read_csv(options.results / f"fusegnn-{what}-h200.csv"))
        )
    options.document.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
