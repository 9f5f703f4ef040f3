"""Tables of docs/bits.md: products of bits, sums of bit-packed neighbors, whole networks."""

from __future__ import annotations

import pandas as pd

from benchmarks.pages.document import (
    Listing,
    Page,
    Parts,
    Results,
    machine,
    markdown,
    mean_of,
    table,
)

#: Table 2.3 of the thesis, RTX 3090: TFLOPs of 1, 2, 3 and 4 bits.
PRINTED = {
    (2048, 32): (32.65, 19.99, 14.40, 11.30),
    (4096, 32): (81.41, 46.23, 32.27, 24.75),
    (8192, 32): (94.58, 50.82, 35.22, 26.31),
    (2048, 64): (63.94, 39.41, 29.83, 22.15),
    (4096, 64): (89.18, 51.21, 35.17, 25.38),
    (8192, 64): (104.66, 55.16, 40.77, 31.07),
}
RATES = {
    "bit": "b1 AND, m16n8k256",
    "byte": "INT8, m16n8k32",
    "nibble": "INT4, m16n8k64",
    "popc": "popc on CUDA cores",
    "group": "b1 AND by warpgroups, m64n128k256",
}
#: Columns of the summary of Table 2.3.
SHOWN = ("us", "ratio", "over_int8")
OURS = ("warpgroup", "tiled", "split")


def rates(rows: pd.DataFrame) -> str:
    """Return a table of the throughput of the GPU's instructions."""
    rows = rows[rows["algorithm"].str.startswith("rate")]
    rows = rows.assign(name=rows["algorithm"].str.removeprefix("rate ").map(RATES))
    return table([("instruction", "{name}"), ("Tops/s", "{tflops:,.0f}")], rows)


def first_value(rows: pd.DataFrame, algorithm: str, column: str = "median_us") -> float:
    """Return the first value of an algorithm in a column."""
    return float(rows.loc[rows["algorithm"] == algorithm, column].iloc[0])


def products(rows: pd.DataFrame) -> pd.DataFrame:
    """Return Table 2.3 with the fastest of our algorithms: microseconds, TFLOPS, ratios.

    `met` says whether a product has 4 times the printed rate or, where the printed one took at most
    20 us, takes at most two empty launches.
    """
    launch, lines = first_value(rows, "launch"), []
    for (n, d), printed in PRINTED.items():
        shape = rows[(rows["n"] == n) & (rows["d"] == d)]
        int8, best = first_value(shape, "cublas int8"), shape[shape["algorithm"].isin(OURS)]
        for bits, published in enumerate(printed, 1):
            us = best.loc[best["bits"] == bits, "median_us"].min()
            rate = 2 * n * n * d / us / 1e6
            limited = 2 * n * n * d / published / 1e6 <= 20
            met = us <= 2 * launch if limited else rate >= 4 * published
            line = {"n": n, "d": d, "bits": bits, "us": us, "tflops": rate, "printed": published}
            lines.append(line | {"ratio": rate / published, "over_int8": int8 / us, "met": met})
    return pd.DataFrame(lines)


def table_2_3(rows: pd.DataFrame) -> Parts:
    """Return the ratios of Table 2.3 by size, and the file with each number of bits."""
    listed = products(rows)
    lines = []
    for (n, d), part in listed.groupby(["n", "d"], sort=False):
        cells = (f"{part[name].min():.1f} to {part[name].max():.1f}" for name in SHOWN)
        lines.append((f"{n:,} x {n:,} x {d}", *cells))
    head = ("N x N x D, 1 to 4 bits", "µs", "TFLOPS over printed", "over INT8")
    return [
        f"{listed['met'].sum()} of {len(listed)} products have 4 times the printed rate or take at "
        "most two empty launches.",
        markdown(head, lines),
        Listing(listed, "bits-products", "Each number of bits"),
    ]


def wide_products(rows: pd.DataFrame) -> str:
    """Return times for N = 8192 and 1,024 columns by bits, of all algorithms and beside INT8."""
    peaks = [first_value(rows, f"rate {name}", "tflops") for name in ("bit", "group")]
    shape = rows[(rows["n"] == 8192) & (rows["d"] == 1024)]
    times = shape.pivot_table(index="bits", columns="algorithm", values="median_us")
    lines = []
    for bits in (1, 2, 4, 8):
        us = times.loc[bits]
        rate = 2 * 8192**2 * 1024 * bits / us["warpgroup"] / 1e6
        shares = (f"{rate / peak:.0%}" for peak in peaks)
        over = f"{first_value(shape, 'cublas int8') / us['warpgroup']:.2f}"
        lines.append((bits, *(f"{us[name]:,.1f}" for name in OURS), *shares, over))
    head = ("bits", "warpgroup, µs", "tiled", "split", "of mma's rate", "of wgmma's", "over INT8")
    return markdown(head, lines)


def sizes(rows: pd.DataFrame) -> Parts:
    """Return the file with the TFLOPS of products of 1 by 1 bit by N and D (Figure 2.9)."""
    ours = rows[rows["algorithm"].isin(OURS)]
    best = ours.pivot_table(index="n", columns="d", values="tflops", aggfunc="max").reset_index()
    return [Listing(best, "bits-sizes", "Figure 2.9: TFLOPS of 1 by 1 bit by N and D")]


def reuse(rows: pd.DataFrame) -> Parts:
    """Return the file with times if A is read once and if it is read for each plane (Fig. 2.10)."""
    rows = rows[rows["reuse"].notna()]
    rows = rows.assign(reuse=rows["reuse"].astype(str) == "True")
    us = rows.pivot_table(index=["n", "bits"], columns="reuse", values="median_us")
    us["ratio"] = us[False] / us[True]
    times = us["ratio"]
    listed = us.reset_index().rename(columns={True: "us", False: "us_without_reuse"})
    return [
        f"Without reuse it takes {times.min():.2f} to {times.max():.2f} times as long.",
        Listing(listed, "bits-reuse", "Figure 2.10: each size and number of bits"),
    ]


def gather(rows: pd.DataFrame) -> Parts:
    """Return the gain of sums of packed rows over float32 by neighbors, and the file with times."""
    rows = rows[rows["algorithm"].isin(("lane_groups", "gather"))]
    us = rows.pivot_table(index=["nonzeros", "d"], columns="bits", values="median_us")
    lines = []
    for nonzeros, times in us.groupby(level="nonzeros"):
        ratios = (times[32] / times[bits] for bits in (8, 4))
        cells = (f"{ratio.min():.2f} to {ratio.max():.2f}" for ratio in ratios)
        lines.append((f"{nonzeros / 65536:.0f}", *cells))
    head = ("neighbors of a node", "8 bits over float32", "4 bits over float32")
    listed = us.rename(columns="us_{}_bits".format).reset_index()
    return [markdown(head, lines), Listing(listed, "bits-gather", "With 64, 128 and 256 columns")]


def density(rows: pd.DataFrame) -> Parts:
    """Return the file with times of sums and of dense products of bits by density."""
    rows = rows[rows["density"].notna()]
    name = rows["algorithm"] + " " + rows["bits"].astype(str)
    us = rows.assign(name=name).pivot_table(
        index=["d", "density"], columns="name", values="median_us"
    )
    title = "By density: sums of float32, 8 and 4 bits, and dense products of bits, µs"
    return [Listing(us.reset_index(), "bits-density", title)]


def network(rows: pd.DataFrame) -> Parts:
    """Return PyTorch Geometric's times over those of whole networks, and the file with times."""
    rows = rows[rows["graph"].notna()]
    keys = ["model", "graph"]
    us = rows.pivot_table(index=keys, columns="algorithm", values="median_us", sort=False).dropna()
    ratios = pd.DataFrame({bits: us["pyg"] / us[bits] for bits in ("8", "4", "2")})
    lines = []
    for model, part in ratios.groupby(level="model", sort=False):
        means = zip(part.apply(mean_of), part.min(), part.max(), strict=True)
        cells = (f"{mean:.2f} ({least:.2f} to {most:.2f})" for mean, least, most in means)
        lines.append((str(model).upper(), *cells))
    head = ("PyG in float32 over", "8 bits", "4 bits", "2 bits")
    return [markdown(head, lines), Listing(us.reset_index(), "bits-networks", "Each graph, µs")]


def parts(results: Results) -> Parts:
    """Return the file with edges cut by METIS and tiles skipped (Figure 2.8)."""
    return [Listing(results["bits-parts"], "bits-parts", "Figure 2.8: cut edges and skipped tiles")]


def accuracy(rows: pd.DataFrame) -> Parts:
    """Return test accuracies of GCN by number of bits (Table 2.2), and the file with GIN."""
    index = ["data", "model", "how"]
    means = rows.pivot_table(index=index, columns="bits", values="accuracy", sort=False)
    lines = []
    for data in rows["data"].unique():
        whole = means.loc[(data, "gcn", "whole numbers")]
        cells = (f"{whole[bits]:.1%}" for bits in (8, 4, 2))
        lines.append((data, f"{means.loc[(data, 'gcn', 'trained'), 32]:.1%}", *cells))
    head = ("GCN, whole numbers", "float32", "8 bits", "4 bits", "2 bits")
    listed = means.rename(columns="bits_{}".format).reset_index()
    return [markdown(head, lines), Listing(listed, "bits-accuracy", "Also GIN and other forms")]


PAGES = [
    Page(
        "bits.md",
        {
            "machine": lambda results: machine(results["bits-table-h200"]),
            "rates": lambda results: rates(results["bits-table-h200"]),
            "table": lambda results: table_2_3(results["bits-table-h200"]),
            "wide": lambda results: wide_products(results["bits-table-h200"]),
            "sizes": lambda results: sizes(results["bits-sizes-h200"]),
            "reuse": lambda results: reuse(results["bits-reuse-h200"]),
            "gather": lambda results: gather(results["bits-gather-h200"]),
            "density": lambda results: density(results["bits-density-h200"]),
            "network": lambda results: network(results["bits-network-h200"]),
            "parts": parts,
            "accuracy": lambda results: accuracy(results["bits-accuracy"]),
        },
    )
]
