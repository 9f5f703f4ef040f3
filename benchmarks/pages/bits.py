"""Renew the marked sections of docs/bits.md from benchmarks/results/bits-*.

python benchmarks/pages/bits.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from graphs import renewed
from paper import ROOT, markdown

from accelviz.measure.records import recorded

PAGE = ROOT / "docs" / "bits.md"
#: Table 2.3 of the thesis, RTX 3090: TFLOPs of CUTLASS INT4 and of 1, 2, 3 and 4 bits.
PRINTED = {
    (2048, 32): (10.36, 32.65, 19.99, 14.40, 11.30),
    (4096, 32): (12.28, 81.41, 46.23, 32.27, 24.75),
    (8192, 32): (12.67, 94.58, 50.82, 35.22, 26.31),
    (2048, 64): (21.40, 63.94, 39.41, 29.83, 22.15),
    (4096, 64): (24.66, 89.18, 51.21, 35.17, 25.38),
    (8192, 64): (24.70, 104.66, 55.16, 40.77, 31.07),
}
#: Rates that a product is held against: of mma, and of wgmma; and bits of Figure 2.10.
RATES, BITS = ("bit", "group"), (4, 8, 16)
OWN = ("warpgroup", "tiled", "split")


def rates(table: pd.DataFrame) -> str:
    """Write what the GPU's instructions do."""
    found = table[table["way"].str.startswith("rate")]
    names = {"bit": "b1 AND, m16n8k256", "byte": "INT8, m16n8k32", "nibble": "INT4, m16n8k64"}
    names |= {"popc": "popc on CUDA cores", "group": "b1 AND by warpgroups, m64n128k256"}
    lines = [(names[row.way.split()[1]], f"{row.tflops:,.0f}") for row in found.itertuples()]
    return markdown(("instruction", "Tops/s"), lines)


def products(table: pd.DataFrame) -> str:
    """Set Table 2.3 beside what was measured: the fastest of our ways, microseconds, TFLOPS."""
    launch = table.loc[table["way"] == "launch", "median_us"].iloc[0]
    lines = []
    for (n, d), (_, *printed) in PRINTED.items():
        own = table[(table["n"] == n) & (table["d"] == d)]
        int8 = own.loc[own["way"] == "cublas int8", "median_us"].iloc[0]
        for bits, published in enumerate(printed, 1):
            us = own.loc[own["way"].isin(OWN) & (own["bits"] == bits), "median_us"].min()
            rate, then = 2 * n * n * d / us / 1e6, 2 * n * n * d / published / 1e6
            long = then > 20
            met = rate >= 4 * published if long else us <= 2 * launch
            wanted = f"{4 * published:,.0f} TFLOPS" if long else f"{2 * launch:.1f} µs"
            kept = "yes" if met else "no"
            cells = f"{us:.1f}", f"{rate:,.0f}", f"{published:.1f}", f"{rate / published:.1f}"
            lines.append((f"{n:,}", d, bits, *cells, wanted, kept, f"{int8 / us:.1f}"))
    head = ("N", "D", "bits", "µs", "TFLOPS", "printed", "ratio", "wanted", "met", "over INT8")
    return markdown(head, lines)


def wide(table: pd.DataFrame) -> str:
    """Write N = 8192 with 1,024 columns, by bits: all ways, shares of the rates, over INT8."""
    own = table[(table["n"] == 8192) & (table["d"] == 1024)]
    peaks = [table.loc[table["way"] == f"rate {name}", "tflops"].iloc[0] for name in RATES]
    int8 = own.loc[own["way"] == "cublas int8", "median_us"].iloc[0]
    lines = []
    for bits in range(1, 9):
        times = own[own["bits"] == bits].set_index("way")["median_us"]
        best = times["warpgroup"]
        shares = (f"{2 * 8192**2 * 1024 * bits / best / 1e6 / peak:.0%}" for peak in peaks)
        others = (f"{times[way]:,.0f}" if way in times else "" for way in ("paper", "popc"))
        cells = (f"{times[way]:,.1f}" for way in OWN)
        lines.append((bits, *cells, *others, *shares, f"{int8 / best:.2f}"))
    head = ("bits", "warpgroup, µs", "tiled", "split", "paper", "popc")
    return markdown((*head, "of mma's rate", "of wgmma's", "over INT8"), lines)


def sizes(table: pd.DataFrame) -> str:
    """Write products of 1 by 1 bit by N and D, TFLOPS of the fastest way (Figure 2.9)."""
    own = table[table["way"].isin(OWN)]
    best = own.pivot_table(index="n", columns="d", values="tflops", aggfunc="max")
    lines = [(f"{n:,}", *(f"{rate:,.0f}" for rate in row)) for n, row in best.iterrows()]
    return markdown(("N", *(f"D = {d:,}" for d in best.columns)), lines)


def reuse(table: pd.DataFrame) -> str:
    """Write how much longer it takes to read A again for each plane of X (Figure 2.10)."""
    own = table[table["reuse"].notna()]
    own = own.assign(reuse=own["reuse"].astype(str) == "True")
    found = own.pivot_table(index="n", columns=["bits", "reuse"], values="median_us")
    lines = [
        (
            f"{n:,}",
            *(
                f"{row[bits, True]:,.1f} ({row[bits, False] / row[bits, True]:.2f})"
                for bits in BITS
            ),
        )
        for n, row in found.iterrows()
    ]
    return markdown(("N", *(f"{bits} bits, µs (without)" for bits in BITS)), lines)


def gather(table: pd.DataFrame) -> str:
    """Write the sums of neighbors' rows in float32, 8 and 4 bits."""
    own = table[table["way"].isin(("lane_groups", "gather"))]
    found = own.pivot_table(index=["nonzeros", "d"], columns="bits", values="median_us")
    lines = [
        (
            *(f"{nonzeros / 65536:.0f}", d),
            *(f"{row[bits]:,.1f}" for bits in (32, 8, 4)),
            *(f"{row[32] / row[bits]:.2f}" for bits in (8, 4)),
        )
        for (nonzeros, d), row in found.iterrows()
    ]
    head = ("neighbors", "D", "float32, µs", "8 bits", "4 bits", "8 bits, ratio", "4 bits, ratio")
    return markdown(head, lines)


def density(table: pd.DataFrame) -> str:
    """Write the products of one matrix by density, sparse and dense."""
    lines = []
    own = table[table["density"].notna()]
    for (d, share), rows in own.groupby(["d", "density"]):
        times = rows.set_index(rows["way"] + " " + rows["bits"].astype(str))["median_us"]
        named = {"lane_groups 32": "float32", "gather 8": "8 bits", "gather 4": "4 bits"}
        named["cublas int8 8"] = "INT8"
        cells = [
            f"{named.get(way, '1 x ' + way.split()[-1] + ' bits')}: {us:,.1f}"
            for way, us in times.items()
        ]
        lines.append((d, "dense" if share == 1 else f"{share:.3%}", "; ".join(cells)))
    return markdown(("D", "density", "µs"), lines)


def network(table: pd.DataFrame) -> str:
    """Write the times of whole networks on batches, and PyG's over them."""
    own = table[table["graph"].notna()]
    found = own.pivot_table(
        index=["model", "graph"], columns="way", values="median_us", sort=False
    ).dropna()
    lines, ratios = [], []
    for (model, graph), row in found.iterrows():
        ratio = [row["pyg"] / row[bits] for bits in ("8", "4", "2")]
        ratios.append((model, ratio))
        times = (f"{row[way]:,.1f}" for way in ("pyg", "8", "4", "2"))
        lines.append((model, graph, *times, *(f"{each:.2f}" for each in ratio)))
    for model in dict.fromkeys(model for model, _ in ratios):
        means = np.exp(np.mean([np.log(each) for name, each in ratios if name == model], axis=0))
        lines.append((model, "geometric mean", *[""] * 4, *(f"{each:.2f}" for each in means)))
    head = ("model", "graph", "PyG float32, µs", "8 bits", "4", "2", "ratio, 8 bits", "4", "2")
    return markdown(head, lines)


def parts(table: pd.DataFrame) -> str:
    """Write what METIS leaves of the edges, and the tiles that are jumped over (Figure 2.8)."""
    lines = [
        (
            *(row.graph, f"{row.edges:,}", f"{row.cut:.0%}", f"{row.nodes:,.0f}"),
            *(f"{row.jumped_8:.0%}", f"{row.jumped_32:.0%}"),
        )
        for row in table.itertuples()
    ]
    head = ("graph", "edges", "cut", "nodes of a batch", "jumped, 8 x 128", "jumped, 32 x 512")
    return markdown(head, lines)


def accuracy(table: pd.DataFrame) -> str:
    """Write accuracies against bits (Table 2.2's question), means of the seeds."""
    means = table.groupby(["data", "model", "how", "bits"], sort=False)["accuracy"].mean()
    lines = []
    for data, model in dict.fromkeys(zip(table["data"], table["model"], strict=True)):
        own = means[data, model]
        for how in ("whole numbers", "quantized afterwards"):
            cells = [f"{own['trained', 32]:.1%}"]
            cells += [f"{own[how, b]:.1%}" if (how, b) in own else "" for b in (16, 8, 4, 2, 1)]
            lines.append((data, model, how, *cells))
    head = ("data", "model", "how", "float32", "16 bits", "8", "4", "2", "1")
    return markdown(head, lines)


def main(page: Path = PAGE) -> None:
    text = page.read_text("utf-8")
    table = recorded("bits-table-h200")
    first, commits = table.iloc[0], dict.fromkeys(each[:7] for each in table["commit"])
    for name, section in (
        (
            "machine",
            f"One {first['hardware']}, commit{'s'[: len(commits) - 1]} {', '.join(commits)}.",
        ),
        ("rates", rates(table)),
        ("table", products(table)),
        ("wide", wide(table)),
        ("sizes", sizes(recorded("bits-sizes-h200"))),
        ("reuse", reuse(recorded("bits-reuse-h200"))),
        ("gather", gather(recorded("bits-gather-h200"))),
        ("density", density(recorded("bits-density-h200"))),
        ("network", network(recorded("bits-network-h200"))),
        ("parts", parts(recorded("bits-parts"))),
        ("accuracy", accuracy(recorded("bits-accuracy"))),
    ):
        text = renewed(text, name, section)
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
