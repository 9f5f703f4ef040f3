"""Tables of docs/bits.md: products of bits, sums of bit-packed neighbors, whole networks."""

from __future__ import annotations

import pandas as pd

from benchmarks.pages.document import Page, machine, markdown, mean_of, table

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
#: Numbers of bits in Figure 2.10.
BITS = (4, 8, 16)
OURS = ("warpgroup", "tiled", "split")
#: Sparse sums by algorithm and bits, and their names in the table of densities.
SUMS = {"lane_groups 32": "float32", "gather 8": "8 bits", "gather 4": "4 bits"}
SUMS |= {"cublas int8 8": "INT8"}


def rates(rows: pd.DataFrame) -> str:
    """Return a table of the throughput of the GPU's instructions."""
    rows = rows[rows["algorithm"].str.startswith("rate")]
    rows = rows.assign(name=rows["algorithm"].str.removeprefix("rate ").map(RATES))
    return table([("instruction", "{name}"), ("Tops/s", "{tflops:,.0f}")], rows)


def first_value(rows: pd.DataFrame, algorithm: str, column: str = "median_us") -> float:
    """Return the first value of an algorithm in a column."""
    return float(rows.loc[rows["algorithm"] == algorithm, column].iloc[0])


def products(rows: pd.DataFrame) -> str:
    """Return Table 2.3 beside the fastest of our algorithms: microseconds, TFLOPS."""
    launch, lines = first_value(rows, "launch"), []
    for (n, d), printed in PRINTED.items():
        shape = rows[(rows["n"] == n) & (rows["d"] == d)]
        int8, best = first_value(shape, "cublas int8"), shape[shape["algorithm"].isin(OURS)]
        for bits, published in enumerate(printed, 1):
            us = best.loc[best["bits"] == bits, "median_us"].min()
            rate = 2 * n * n * d / us / 1e6
            # Where the paper's product took at most 20 us, the target is two empty launches.
            limited = 2 * n * n * d / published / 1e6 <= 20
            met = us <= 2 * launch if limited else rate >= 4 * published
            wanted = f"{2 * launch:.1f} µs" if limited else f"{4 * published:,.0f} TFLOPS"
            cells = f"{us:.1f}", f"{rate:,.0f}", f"{published:.1f}", f"{rate / published:.1f}"
            ends = wanted, "yes" if met else "no", f"{int8 / us:.1f}"
            lines.append((f"{n:,}", d, bits, *cells, *ends))
    head = ("N", "D", "bits", "µs", "TFLOPS", "printed", "ratio", "wanted", "met", "over INT8")
    return markdown(head, lines)


def wide_products(rows: pd.DataFrame) -> str:
    """Return times for N = 8192 and 1,024 columns by bits, of all algorithms and beside INT8."""
    peaks = [first_value(rows, f"rate {name}", "tflops") for name in ("bit", "group")]
    shape = rows[(rows["n"] == 8192) & (rows["d"] == 1024)]
    times = shape.pivot_table(index="bits", columns="algorithm", values="median_us")
    lines = []
    for bits in range(1, 9):
        us = times.loc[bits]
        rate = 2 * 8192**2 * 1024 * bits / us["warpgroup"] / 1e6
        shares = (f"{rate / peak:.0%}" for peak in peaks)
        others = ("" if pd.isna(us[name]) else f"{us[name]:,.0f}" for name in ("paper", "popc"))
        over = f"{first_value(shape, 'cublas int8') / us['warpgroup']:.2f}"
        lines.append((bits, *(f"{us[name]:,.1f}" for name in OURS), *others, *shares, over))
    head = ("bits", "warpgroup, µs", "tiled", "split", "paper", "popc")
    return markdown((*head, "of mma's rate", "of wgmma's", "over INT8"), lines)


def sizes(rows: pd.DataFrame) -> str:
    """Return TFLOPS of products of 1 by 1 bit by N and D, of the fastest algorithm (Figure 2.9)."""
    ours = rows[rows["algorithm"].isin(OURS)]
    best = ours.pivot_table(index="n", columns="d", values="tflops", aggfunc="max")
    lines = [(f"{n:,}", *(f"{rate:,.0f}" for rate in row)) for n, row in best.iterrows()]
    return markdown(("N", *(f"D = {d:,}" for d in best.columns)), lines)


def reuse(rows: pd.DataFrame) -> str:
    """Return times with A read once, and the factor if A is read for each plane (Figure 2.10)."""
    rows = rows[rows["reuse"].notna()]
    rows = rows.assign(reuse=rows["reuse"].astype(str) == "True")
    us = rows.pivot_table(index="n", columns=["bits", "reuse"], values="median_us")
    lines = [
        (f"{n:,}", *(f"{row[b, True]:,.1f} ({row[b, False] / row[b, True]:.2f})" for b in BITS))
        for n, row in us.iterrows()
    ]
    return markdown(("N", *(f"{bits} bits, µs (without)" for bits in BITS)), lines)


def gather(rows: pd.DataFrame) -> str:
    """Return times of the sums of neighbors' rows in float32, 8 and 4 bits."""
    rows = rows[rows["algorithm"].isin(("lane_groups", "gather"))]
    us = rows.pivot_table(index=["nonzeros", "d"], columns="bits", values="median_us")
    lines = []
    for (nonzeros, d), row in us.iterrows():
        times = (f"{row[bits]:,.1f}" for bits in (32, 8, 4))
        ratios = (f"{row[32] / row[bits]:.2f}" for bits in (8, 4))
        lines.append((f"{nonzeros / 65536:.0f}", d, *times, *ratios))
    head = ("neighbors", "D", "float32, µs", "8 bits", "4 bits", "8 bits, ratio", "4 bits, ratio")
    return markdown(head, lines)


def density(rows: pd.DataFrame) -> str:
    """Return times of the products of one matrix, sparse and dense, by density."""
    lines = []
    for (d, share), cases in rows[rows["density"].notna()].groupby(["d", "density"]):
        times = cases.set_index(cases["algorithm"] + " " + cases["bits"].astype(str))["median_us"]
        cells = [
            f"{SUMS.get(name, '1 x ' + name.split()[-1] + ' bits')}: {us:,.1f}"
            for name, us in times.items()
        ]
        lines.append((d, "dense" if share == 1 else f"{share:.3%}", "; ".join(cells)))
    return markdown(("D", "density", "µs"), lines)


def network(rows: pd.DataFrame) -> str:
    """Return times of whole networks on batches, and PyTorch Geometric's over them."""
    rows = rows[rows["graph"].notna()]
    keys = ["model", "graph"]
    us = rows.pivot_table(index=keys, columns="algorithm", values="median_us", sort=False).dropna()
    ratios = pd.DataFrame({bits: us["pyg"] / us[bits] for bits in ("8", "4", "2")})
    lines = []
    for key in us.index:
        times = (f"{us.loc[key, name]:,.1f}" for name in ("pyg", "8", "4", "2"))
        lines.append((*key, *times, *(f"{ratio:.2f}" for ratio in ratios.loc[key])))
    for model, of_model in ratios.groupby(level="model", sort=False):
        means = (f"{mean:.2f}" for mean in of_model.apply(mean_of))
        lines.append((model, "geometric mean", *[""] * 4, *means))
    head = ("model", "graph", "PyG float32, µs", "8 bits", "4", "2", "ratio, 8 bits", "4", "2")
    return markdown(head, lines)


#: Columns of the table of batches: edges cut by METIS, and tiles skipped (Figure 2.8).
PARTS = [
    ("graph", "{graph}"),
    ("edges", "{edges:,}"),
    ("cut", "{cut:.0%}"),
    ("nodes of a batch", "{nodes:,.0f}"),
    ("jumped, 8 x 128", "{jumped_8:.0%}"),
    ("jumped, 32 x 512", "{jumped_32:.0%}"),
]


def accuracy(rows: pd.DataFrame) -> str:
    """Return test accuracies by number of bits, means over seeds (compare Table 2.2)."""
    means = rows.groupby(["data", "model", "how", "bits"], sort=False)["accuracy"].mean()
    lines = []
    for data, model in dict.fromkeys(zip(rows["data"], rows["model"], strict=True)):
        shares = means[data, model]
        for how in ("whole numbers", "quantized afterwards"):
            cells = [f"{shares['trained', 32]:.1%}"]
            bits = (16, 8, 4, 2, 1)
            cells += [f"{shares[how, b]:.1%}" if (how, b) in shares else "" for b in bits]
            lines.append((data, model, how, *cells))
    head = ("data", "model", "how", "float32", "16 bits", "8", "4", "2", "1")
    return markdown(head, lines)


PAGES = [
    Page(
        "bits.md",
        {
            "machine": lambda results: machine(results["bits-table-h200"]),
            "rates": lambda results: rates(results["bits-table-h200"]),
            "table": lambda results: products(results["bits-table-h200"]),
            "wide": lambda results: wide_products(results["bits-table-h200"]),
            "sizes": lambda results: sizes(results["bits-sizes-h200"]),
            "reuse": lambda results: reuse(results["bits-reuse-h200"]),
            "gather": lambda results: gather(results["bits-gather-h200"]),
            "density": lambda results: density(results["bits-density-h200"]),
            "network": lambda results: network(results["bits-network-h200"]),
            "parts": lambda results: table(PARTS, results["bits-parts"]),
            "accuracy": lambda results: accuracy(results["bits-accuracy"]),
        },
    )
]
