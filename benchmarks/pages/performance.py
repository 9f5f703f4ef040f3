"""Sections of docs/performance.md: `lane_groups` beside other strategies and its limits."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from accelviz.measure.comparison import geometric_mean, labelled, latest, speedups
from accelviz.measure.ladder import ladder_cases
from benchmarks.pages.document import (
    Listing,
    Page,
    Parts,
    Results,
    markdown,
    mean_of,
    measured_on,
    paper_name,
)
from benchmarks.pages.performance_figures import limit_picture, roofline_picture, speedup_picture
from benchmarks.pages.targets import (
    LIMIT_COLUMNS,
    NOT_PREPROCESSED,
    OURS,
    PREPROCESSED,
    answers_table,
    case_name,
    graph_names,
    half_speedups,
    join_counts,
    order_gains,
    other_peers,
    rows_at,
    speedups_over,
)


def ours(results: Results) -> pd.DataFrame:
    """Return warm times with float32 features, of `lane_groups` and the strategies beside it."""
    rows = results["ours-h200"]
    return rows[(rows["state"] == "warm") & (rows["dtype"] == "float32")]


def result(results: Results) -> Parts:
    """Return the main result in a paragraph, and a picture of all cases."""
    rows = ours(results)
    ratios = speedups_over(rows, PREPROCESSED)
    mean, losses = geometric_mean(ratios["speedup"]), int((ratios["speedup"] < 1).sum())
    worst = ratios.loc[ratios["speedup"].idxmin()]
    others = [
        f"{name} {geometric_mean(over_case['speedup']):.2f}"
        for name, case in (
            ("cuSPARSE without its preprocessing", NOT_PREPROCESSED),
            ("our GNNAdvisor", "gnnadvisor"),
            ("our Accel-GCN (the published scheme)", "accel_gcn"),
        )
        if (over_case := speedups_over(rows, case)) is not None
    ]
    return [
        f"**On an {rows['hardware'].iloc[0]}, `{OURS}` is {mean:.2f} times as fast as cuSPARSE**, "
        f"the fastest of its algorithms for each case, already preprocessed: the geometric mean "
        f"over {ratios['graph'].nunique()} graphs and {ratios['columns'].nunique()} column counts. "
        f"It is slower in {losses or 'none'} of {len(ratios)} cases; the least is "
        f"{worst['speedup']:.2f}, {case_name(worst['graph'], worst['columns'])}. Means over "
        f"others: {', '.join(others)}.",
        speedup_picture(rows),
        f"{measured_on(rows, ratios.attrs['dropped'])} Warm cache, float32.",
    ]


def answers(results: Results) -> Parts:
    """Return the means over other strategies and limits."""
    rows, half = ours(results), results.optional("half-h200")
    recorded = (results.optional(f"{name}-h200") for name in ("strategies", "bundled"))
    peers = [table for table in recorded if table is not None]
    return [
        answers_table(rows, results.optional("preprocessing-h200"), half),
        other_peers(rows, peers) if peers else "",
    ]


def ladder(results: Results) -> Parts:
    """Return the gain of each rung of the ladder, means over the graphs, in both orders."""
    rows = latest(labelled(results["ladder-h200"], ladder_cases()))
    shuffled = rows["graph"].str.endswith("-shuffled")
    rows = rows.assign(
        share=rows["gather_limit_us"] / rows["median_us"],
        order=shuffled.map({True: "shuffled", False: "natural"}),
    )
    values = ["median_us", "share"]
    wide = rows.pivot_table(index="strategy", columns=["order", "columns", "graph"], values=values)
    rungs = [*ladder_cases()]
    wide = wide.reindex(rungs)
    gains = wide["median_us"].shift() / wide["median_us"]
    counts = sorted(rows["columns"].unique())
    keys = [(o, d) for o in ("natural", "shuffled") if o in set(rows["order"]) for d in counts]
    head = ["rung"]
    head += [f"{order}, d = {d}" for order, d in keys]
    head.append("share of the limit")
    lines = []
    for rung in rungs:
        means = (mean_of(gains.loc[rung, key]) for key in keys)
        cells = [f"{mean:.2f}" if mean >= 0.98 else f"**{mean:.2f}**" for mean in means]
        if rung in (rungs[0], rungs[-1]):
            cells = [""] * len(keys)
        lines.append([rung, *cells, f"{mean_of(wide['share'].loc[rung]):.2f}"])
    graphs = ", ".join(dict.fromkeys(map(paper_name, rows["graph"])))
    return [
        "Each rung changes one thing. A gain is the time of the rung before over its own, bold "
        "where it is slower; the last column is the share of the random-gather limit. "
        f"Means over {graphs}. [An elective](../notebooks/electives/the-ladder.ipynb) climbs it.",
        markdown(head, lines),
    ]


def tuning(results: Results) -> str:
    """Return a sentence about the gain of a search over the rule, and its cost."""
    rows = results["tuning-h200"]
    gain = rows["rule_us"] / rows["tuned_us"]
    graphs, counts = graph_names(rows["graph"]), join_counts(sorted(rows["columns"].unique()))
    return (
        f"On {graphs} at d = {counts} the setting that it found is {gain.min():.2f} to "
        f"{gain.max():.2f} times as fast as the rule's. The search takes "
        f"{rows['seconds'].min():.1f} to {rows['seconds'].max():.1f} s. It pays after "
        f"{rows['pays_after'].min():,.0f} products in the best case."
    )


def locality(results: Results) -> Parts:
    """Return the gains from vertex orders, and the savings of Rabbit order."""
    gains, vendor = (order_gains(ours(results), case) for case in (OURS, PREPROCESSED))
    lines = []
    for d in LIMIT_COLUMNS:
        cells = []
        for rows in (gains, vendor):
            for beyond in (True, False):
                part = rows_at(rows[rows["beyond"] == beyond], [d])["gain"]
                cells.append(geometric_mean(part) if len(part) else math.nan)
        beyond = rows_at(gains, [d])["beyond"]
        lines.append([d, int(beyond.sum()), len(beyond), *cells])
    head = ["columns", "graphs_with_X_beyond_L2", "graphs"]
    for name in (OURS, "cusparse"):
        head += [f"{name}_beyond", f"{name}_within"]
    beyond, within = (gains.loc[gains["beyond"] == part, "gain"] for part in (True, False))
    most = gains.loc[gains["gain"].idxmax()]
    rabbit = results.optional("orders-h200")
    return [
        f"Times in shuffled order over those of the same twin in natural order, each in a run of "
        f"its own: {geometric_mean(beyond):.2f} where the features are larger than the L2 "
        f"({beyond.min():.2f} to {beyond.max():.2f}, {most['twin'].removesuffix('-twin')} at "
        f"d = {most['columns']}), {geometric_mean(within):.2f} where they are not.",
        Listing(pd.DataFrame(lines, columns=head), "locality", "By columns, beside cuSPARSE"),
        *([] if rabbit is None else _rabbit(rabbit)),
    ]


def _rabbit(rows: pd.DataFrame) -> list[str | Listing]:
    """Return the savings of Rabbit order, and the time that finding it takes."""
    vendor = speedups(rows[rows["graph"].str.endswith("-rabbit")], PREPROCESSED, OURS)
    rows = latest(labelled(rows, OURS))
    renumbered, key = rows["graph"].str.endswith("-rabbit"), ["graph", "columns"]
    before = rows.loc[~renumbered, [*key, "median_us"]]
    after = rows[renumbered]
    for table in (after, vendor):
        table["graph"] = table["graph"].str.removesuffix("-rabbit")
    both = after.merge(before, on=key, suffixes=("", "_before")).merge(
        vendor[[*key, "speedup"]], on=key
    )
    both["gain"] = both["median_us_before"] / both["median_us"]
    saved = (both["median_us_before"] - both["median_us"]) / 1e6
    both["pays"] = both["order_seconds"] / saved.where(saved > 0, 0)  # infinite if it saves nothing
    wide = both.pivot_table(index="graph", columns="columns", values=["gain", "pays", "speedup"])
    paid = wide["pays"].replace(np.inf, np.nan)
    lines = [
        [
            d,
            f"{mean_of(wide['gain', d]):.2f} ({wide['gain', d].min():.2f} to "
            f"{wide['gain', d].max():.2f})",
            "never" if paid[d].isna().all() else f"{paid[d].min():,.0f} to {paid[d].max():,.0f}",
            f"{mean_of(wide['speedup', d]):.2f}",
        ]
        for d in wide["gain"]
    ]
    listed = both[["graph", "columns", "order_seconds", "gain", "pays", "speedup"]]
    seconds = both["order_seconds"]
    return [
        'Where no order is given, one can be found: `vertex_order(graph, "rabbit")`, on one core '
        f"of the host in {seconds.min():.1f} to {seconds.max():.1f} s. On {len(wide)} shuffled "
        "twins it gains:",
        markdown(["d", "gain", "products until it pays", "then over cuSPARSE"], lines),
        Listing(listed, "rabbit-order", "Each twin"),
    ]


def sixteen_bits(results: Results) -> Parts:
    """Return the speedups of 16-bit features over float32, and their errors."""
    ratios = half_speedups(results["half-h200"])
    keys = ["dtype", "columns"]
    means = ratios.pivot_table(index="graph", columns=keys, values="speedup", sort=False)
    counts = sorted(set(ratios["columns"]))
    lines = [
        [dtype, *(f"{mean_of(means[dtype, d]):.2f}" for d in counts)]
        for dtype in ("float16", "bfloat16")
    ]
    rounding = results.optional("rounding")
    listed = ratios[["graph", "columns", "dtype", "speedup", "limit"]]
    return [
        "## Sixteen bits",
        'With `storage="float16"` or `"bfloat16"` features are rounded beforehand, by up to 2^-11 '
        "or 2^-8 of each number; float16 ends at 65,504. Sums and Y stay float32. **That is "
        "another problem than float32.** The table has the mean speedup over float32.",
        markdown(["features in", *(f"d = {d}" for d in counts)], lines),
        Listing(listed, "sixteen-bits", "Each graph"),
        "" if rounding is None else accuracy(rounding),
    ]


def accuracy(rounding: pd.DataFrame) -> str:
    """Return the errors of products of rounded features against those of exact features."""
    lines = []
    for storage, rows in rounding.groupby("storage", sort=False):
        ends = [(rows[name].min(), rows[name].max()) for name in ("norm", "median", "largest")]
        lines.append([storage, *(f"{low:.1e} to {high:.1e}" for low, high in ends)])
    head = ["features in", "error of Y, norm", "of an element, median", "largest"]
    return (
        f"Against float64 of the features *before* rounding (random signed features and weights, "
        f"d = {rounding['columns'].iloc[0]}, on {graph_names(rounding['graph'])}); an element's "
        "error is in units of its sum of |a x|:\n\n" + markdown(head, lines)
    )


def preprocessing(results: Results) -> str:
    """Return a paragraph about the cost of preprocessing on the GPU."""
    rows = results["preprocessing-h200"]
    large = rows["nnz"] > 1_000_000
    gpu, wall = rows["gpu_ratio"], rows["wall_ratio"]
    host = geometric_mean(rows["host_us"] / rows["wall_us"])
    return (
        f"On the GPU, degree sort, metadata and paired nonzeros take {geometric_mean(gpu):.2f} of "
        f"one product with 128 columns ({len(rows)} graphs and orders): "
        f"{geometric_mean(gpu[large]):.2f} above a million nonzeros, "
        f"{geometric_mean(gpu[~large]):.2f} below. By the host's clock, with launches and waits, "
        f"{geometric_mean(wall):.2f}. The host takes {host:.0f} times as long as that. Both make "
        "the same arrays, bit for bit."
    )


#: Operations of walks-h100.csv.gz and their names.
WALKS = {
    "gat": "GAT",
    "gat_gradient": "GAT's gradient",
    "gatv2": "GATv2",
    "gatv2_gradient": "GATv2's gradient",
    "spmm_max": "maximum",
    "spmm_extremum_gradient": "maximum's gradient",
    "spmm": "sum (SpMM)",
}


def walks(results: Results) -> Parts:
    """Return the file with the least recorded times of attention and maxima, and that of all."""
    rows = results["walks-h100"]
    rows = rows[(rows["commit"] != rows["commit"].iloc[0]) & rows["operation"].isin(list(WALKS))]
    names = ["operation", "heads", "columns", "graph", "tried", "us"]
    every = Listing(rows[names], "walks", "Every graph, size and setting")
    rows = rows.assign(operation=rows["operation"].map(WALKS))
    us = rows.pivot_table("us", ["operation", "heads", "columns"], "graph", "min", sort=False)
    return [Listing(us.reset_index(), "walks-fastest", "The fastest setting, µs"), every]


PAGES = [
    Page(
        "performance.md",
        {
            "result": result,
            "answers": answers,
            "limits": lambda results: [
                limit_picture(ours(results)),
                roofline_picture(ours(results)),
            ],
            "ladder": ladder,
            "tuning": tuning,
            "locality": locality,
            "sixteen-bits": sixteen_bits,
            "preprocessing": preprocessing,
        },
        one_machine=True,
    ),
    Page("performance.md", {"walks": walks}),
]
