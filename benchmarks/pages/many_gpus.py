"""Renew the marked sections of docs/many-gpus.md, and its figures, from what was recorded.

python benchmarks/pages/many_gpus.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from graphs import renewed
from paper import ROOT, markdown

from accelviz import plots
from accelviz.many_gpus.model import Work, gains, predict
from accelviz.many_gpus.rates import rates_of
from accelviz.measure.comparison import geometric_mean
from accelviz.measure.prediction import parameters_of
from accelviz.measure.records import recorded

PAGE, FIGURES = ROOT / "docs" / "many-gpus.md", ROOT / "docs" / "figures"
_CASE = ["graph", "order", "columns"]
_OURS = {"pieces": "2", "storage": "float32", "pull_blocks": "64"}


def cases(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each graph, order and width: microseconds, and what the model says."""
    rates = rates_of(recorded("many-gpus-rates-h200"))
    table = table[(table["step"] == "all") & table["halo_rows"].notna()]
    found = []
    for key, rows in table.groupby(_CASE):
        first = rows.iloc[0]
        one = rows.loc[rows["scheme"] == "one GPU", "median_us"].item()
        row = dict(zip(_CASE, key, strict=True)) | {"one": one, "cut": first["cut_share"]}
        row["finding"] = first["order_s"] if key[1] == "rabbit" else np.nan
        cut = first["edges"] * first["cut_share"] / 2 / first["halo_rows"]
        work = Work.even(int(first["nodes"]), int(first["edges"]), 2, first["cut_share"], cut)
        settings = [parameters_of(text) for text in rows["parameters"].fillna("")]
        for name, wanted in (("ours", _OURS), ("half", _OURS | {"storage": "float16"})):
            own = rows[[given == wanted for given in settings]]["median_us"]
            row[name] = own.item() if len(own) else np.nan
        row["mgg"] = rows.loc[rows["scheme"] == "mgg", "median_us"].min()
        for scheme, name in (("halo", "ours"), ("mgg", "mgg")):
            said = predict(work, int(key[2]), rates, scheme, one_gpu=one * 1e-6).seconds * 1e6
            row[f"{name} said"] = said if row[name] == row[name] else np.nan
        found.append(row)
    return pd.DataFrame(found)


def text(value: float, form: str = ",.0f") -> str:
    """Write a number, or a dash where there is none."""
    return format(value, form) if value == value else "–"


def every_case(found: pd.DataFrame) -> str:
    """Write all cases."""
    lines = [
        (
            f"{row['graph'].split('-')[0]} {row['order']}",
            row["columns"],
            f"{row['cut']:.1%}",
            text(row["one"]),
            text(row["ours"]),
            text(row["one"] / row["ours"], ".2f"),
            text(row["ours said"] / row["ours"], ".2f"),
            text(row["one"] / row["half"], ".2f"),
            text(row["mgg"]),
            text(row["one"] / row["mgg"], ".2f"),
            text(row["mgg said"] / row["mgg"], ".2f"),
        )
        for _, row in found.iterrows()
    ]
    head = (
        *("graph, order", "columns", "cut", "one GPU", "ours", "gain", "model", "16-bit gain"),
        *("MGG", "gain", "model"),
    )
    return markdown(head, lines)


def targets(found: pd.DataFrame) -> str:
    """Say which targets were met."""
    gain = found["one"] / found["ours"]
    lines = []
    for order, n_cols, least in (
        ("rabbit", 128, 1.6),
        ("rabbit", 32, 1.5),
        ("shuffled", 128, 1.25),
        ("shuffled", 32, 1.25),
    ):
        mean = geometric_mean(gain[(found["order"] == order) & (found["columns"] == n_cols)])
        met = "met" if mean >= least else "**not met**"
        which = "in Rabbit order" if order == "rabbit" else "shuffled"
        lines.append(f"- {least:g} times one GPU {which}, {n_cols} columns: {mean:.2f}, {met}.")
    seconds = found.dropna(subset="finding").groupby("graph")["finding"].first()
    cost = " and ".join(f"{value:.0f} s ({name.split('-')[0]})" for name, value in seconds.items())
    lines.append(f"- Rabbit order and the relabelling took {cost} on the host, once a graph.")
    off = pd.concat([found[f"{name} said"] / found[name] for name in ("ours", "mgg")]).dropna()
    worst = float(np.exp(np.abs(np.log(off)).max()))
    lines.append(
        f"- The model is within {worst - 1:.0%} of ours with two pieces and of MGG's better "
        f"setting in all {len(off)} cases of the table."
    )
    return "\n".join(lines)


def ablations(table: pd.DataFrame) -> str:
    """Write Figure 4.10 and the rivals of Figures 4.7 and 4.8, on Collab's twin, shuffled."""
    table = table[table["graph"].str.startswith("Collab") & (table["step"] == "all")]
    lines = []
    for title, figure, scheme, wanted in (
        ("`lane_groups` on one GPU", None, "one GPU", {}),
        ("ours, one piece", "ours", "halo", {"pieces": "1"}),
        ("ours, two pieces", "ours", "halo", {"pieces": "2"}),
        ("all rows of the other, by the same kernels", "all rows", "all_gather", {}),
        ("all-gather by NCCL, then `lane_groups`", None, "nccl all-gather", {}),
        ("unified memory, pages move (MGG-UVM, 4.8)", None, "unified memory", {}),
        ("MGG, ps=16 dist=1 wpb=2", "4.10a", "mgg", {"ps": "16"}),
        ("without neighbor partitions (4.10a)", "4.10a", "mgg", {"ps": "None"}),
        ("without interleaving (4.10b)", "4.10b", "mgg", {"interleave": "False"}),
        ("synchronous (4.6)", "4.6", "mgg", {"asynchronous": "False"}),
        ("MGG, ps=2 dist=2: gets by a warp (4.10c)", "4.10c", "mgg", {"get": "warp"}),
        ("gets by one thread", "4.10c", "mgg", {"get": "thread"}),
        ("gets by a block", "4.10c", "mgg", {"get": "block"}),
    ):
        rows = table[table["scheme"] == scheme]
        rows = rows[rows["figure"].isna() if figure is None else rows["figure"] == figure]
        settings = [parameters_of(each) for each in rows["parameters"].fillna("")]
        rows = rows[[all(s.get(k) == v for k, v in wanted.items()) for s in settings]]
        times = rows.groupby("columns")["median_us"].min()
        lines.append((title, text(times[16]), text(times[64])))
    for n_cols in (16, 64):
        tried = table[(table["figure"] == "4.11") & (table["columns"] == n_cols)]
        best, first = tried.loc[tried["median_us"].idxmin()], tried.iloc[0]
        own = parameters_of(best["parameters"])
        setting = " ".join(f"{name}={own[name]}" for name in ("ps", "dist", "wpb"))
        title = f"found by the search in {len(tried)} trials, {n_cols} columns: {setting}"
        less = f"{best['median_us']:,.0f} ({best['median_us'] / first['median_us'] - 1:.0%})"
        lines.append((title, *((less, "–") if n_cols == 16 else ("–", less))))
    return markdown(("Collab shuffled, µs", "16 columns", "64 columns"), lines)


def link(table: pd.DataFrame) -> str:
    """Write the rates of the link by row and by blocks that fetch."""
    fetch = table[table["what"] == "fetch"]
    rates = fetch.pivot_table(index="columns", columns="blocks", values="gigabytes_per_second")
    lines = [(4 * int(n), *(f"{rate:.0f}" for rate in row)) for n, row in rates.iterrows()]
    return markdown(("bytes of a row", *(f"{int(n)} blocks" for n in rates)), lines)


def figures(found: pd.DataFrame, folder: Path) -> None:
    """Draw the gains that were measured, and those that the model predicts."""
    rates = rates_of(recorded("many-gpus-rates-h200"))
    names = [f"{g.split('-')[0]} {o}, {c}" for g, o, c in found[_CASE].itertuples(index=False)]
    bars = {"ours": "ours", "ours, 16-bit halo": "half", "MGG as published": "mgg"}
    table = pd.DataFrame({name: found["one"] / found[column] for name, column in bars.items()})
    table.index = pd.Index(names)
    plots.scheme_times(table).figure.savefig(folder / "many-gpus-times.png", dpi=110)
    figure, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
    for ax, (name, nodes, edges) in zip(
        axes, (("PRODUCTS", 2_449_029, 123_718_280), ("Collab", 235_868, 2_358_104)), strict=True
    ):
        plots.second_gpu(gains(nodes, edges, rates), called=name, ax=ax)
    figure.savefig(folder / "many-gpus-second.png", dpi=90)


def main(page: Path = PAGE, folder: Path | None = FIGURES) -> None:
    table, rates = recorded("many-gpus-h200"), recorded("many-gpus-rates-h200")
    found = cases(table)
    first = table.iloc[0]
    machine = f"Two {first['hardware']} of one host, driver {first['driver']}, {first['date']}."
    written = page.read_text("utf-8")
    for name, section in (
        ("machine", machine),
        ("targets", targets(found)),
        ("cases", every_case(found)),
        ("ablations", ablations(table)),
        ("link", link(rates)),
    ):
        written = renewed(written, name, section)
    page.write_text(written, "utf-8")
    if folder is not None:
        figures(found, folder)


if __name__ == "__main__":
    main()
