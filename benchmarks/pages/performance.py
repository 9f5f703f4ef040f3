"""Sections of docs/performance.md: `lane_groups` beside other strategies and its limits."""

from __future__ import annotations

import numpy as np
import pandas as pd

from accelviz.measure.comparison import geometric_mean, labelled, latest, speedups
from accelviz.measure.ladder import ladder_cases
from benchmarks.pages.document import (
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
    case_name,
    graph_names,
    half_speedups,
    join_counts,
    means_table,
    order_gains,
    other_peers,
    rows_at,
    speedups_over,
    targets_table,
    with_wide_features,
)

#: Settings in order of precedence: the first that differs from the rule's was the varied one.
VARIED = (
    *("column_tile", "lanes", "block_threads", "group_nzs", "short_nzs"),
    *("block_order", "at_once", "blocks_per_sm"),
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


def targets(results: Results) -> Parts:
    """Return the targets beside the measured values."""
    rows, half = ours(results), results.optional("half-h200")
    recorded = (results.optional(f"{name}-h200") for name in ("strategies", "bundled"))
    peers = [table for table in recorded if table is not None]
    return [
        targets_table(rows, results.optional("preprocessing-h200"), half),
        "2.2 billion nonzeros, more than 2^31, ran correctly on the same GPU: metadata in full, "
        "sampled rows against float64 (`tests/test_gpu_preprocessing.py`).",
        means_table(rows),
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
    for value in ("gain", "share"):
        head += [f"{value}, {order}, d = {d}" for order, d in keys]
    lines = []
    for rung in rungs:
        means = (mean_of(gains.loc[rung, key]) for key in keys)
        cells = [f"{mean:.2f}" if mean >= 0.98 else f"**{mean:.2f}**" for mean in means]
        if rung in (rungs[0], rungs[-1]):
            cells = [""] * len(keys)
        shares = (f"{mean_of(wide['share'].loc[rung, key]):.2f}" for key in keys)
        lines.append([rung, *cells, *shares])
    graphs = ", ".join(dict.fromkeys(map(paper_name, rows["graph"])))
    return [
        f"Each rung is a step from the one before. Its gain is the time of that one over its own, "
        f"its share that of the random-gather limit; means over {graphs}; bold is slower. "
        "[Lesson 12](../notebooks/12-the-ladder.ipynb) climbs it step by step, with predictions.",
        markdown(head, lines),
    ]


def rule(results: Results) -> Parts:
    """Return the times with settings that differ from the rule's in one parameter."""
    rows = results["lanes-h200"]
    rows = rows[(rows["strategy"] == OURS) & rows["median_us"].notna()]
    ratios = _against_the_rule(rows)
    again, other = (ratios[ratios["setting"].isna() == same] for same in (True, False))
    best = other.loc[other.groupby(["run", "graph", "columns"])["ratio"].idxmin()]
    low = best.loc[best["ratio"].idxmin()]
    gain = best["ratio"].clip(upper=1)
    lines = []
    for setting in (name for name in VARIED if name in set(other["setting"])):
        part = other[other["setting"] == setting]
        means = part.groupby("value")["ratio"].agg(geometric_mean)
        values = sorted(means.index, key=lambda text: (len(text), text))
        of_values = ", ".join(f"{value}: {means[value]:.2f}" for value in values)
        extremes = f"{part['ratio'].min():.2f} to {part['ratio'].max():.2f}"
        lines.append([f"`{setting}`", of_values, extremes])
    graphs, counts = graph_names(rows["graph"]), join_counts(sorted(rows["columns"].unique()))
    saved = [f"{100 - 100 * ratio:.1f} %" for ratio in (geometric_mean(gain), gain.min())]
    best_case = f"{case_name(low['graph'], low['columns'])}, `{low['setting']}` {low['value']}"
    return [
        f"Settings around the rule's, one varied at a time, on {graphs} at d = {counts}: the time "
        f"over that of the rule's setting, where it is another one (means; above 1 is slower). The "
        f"best in each case would save {saved[0]} in the mean, at most {saved[1]} ({best_case}). "
        f"The rule's setting itself, measured again among them, was {again['ratio'].min():.2f} to "
        f"{again['ratio'].max():.2f} of its first time.",
        markdown(["setting", "value: time over the rule's", "lowest to highest"], lines, "---"),
    ]


def _against_the_rule(rows: pd.DataFrame) -> pd.DataFrame:
    """Return each time over that of its case's first row, which has the rule's setting."""
    ratios = []
    for cell, part in rows.groupby(["run", "graph", "columns"], sort=False):
        settings = [dict(word.split("=") for word in text.split()) for text in part["parameters"]]
        for setting in settings:  # a tile wider than the features is one tile
            setting["column_tile"] = str(min(int(setting["column_tile"]), cell[2]))
        for setting, median in list(zip(settings, part["median_us"], strict=True))[1:]:
            varied = next((key for key in VARIED if setting[key] != settings[0][key]), None)
            value = None if varied is None else setting[varied]
            ratios.append((*cell, varied, value, median / part["median_us"].iloc[0]))
    return pd.DataFrame(ratios, columns=["run", "graph", "columns", "setting", "value", "ratio"])


def tuning(results: Results) -> str:
    """Return a sentence about the gain of a search over the rule, and its cost."""
    rows = results["tuning-h200"]
    gain = rows["rule_us"] / rows["tuned_us"]
    graphs, counts = graph_names(rows["graph"]), join_counts(sorted(rows["columns"].unique()))
    return (
        f"On {graphs} at d = {counts} the setting that it found is {gain.min():.2f} to "
        f"{gain.max():.2f} times as fast as the rule's, in {rows['seconds'].min():.1f} to "
        f"{rows['seconds'].max():.1f} s, which at best {rows['pays_after'].min():,.0f} products "
        "get back."
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
                cells.append(f"{geometric_mean(part):.2f}" if len(part) else "–")
        beyond = rows_at(gains, [d])["beyond"]
        lines.append([d, f"{int(beyond.sum())} of {len(beyond)}", *cells])
    head = ["d", "graphs with X beyond the L2"]
    for name in (f"`{OURS}`", "cuSPARSE"):
        head += [f"{name}, beyond", "within"]
    beyond, within = (gains.loc[gains["beyond"] == part, "gain"] for part in (True, False))
    most = gains.loc[gains["gain"].idxmax()]
    rabbit = results.optional("orders-h200")
    return [
        f"Times in shuffled order over those of the same twin in natural order, each in a run of "
        f"its own: {geometric_mean(beyond):.2f} where the features are larger than the L2 "
        f"({beyond.min():.2f} to {beyond.max():.2f}, {most['twin'].removesuffix('-twin')} at "
        f"d = {most['columns']}), {geometric_mean(within):.2f} where they are not.",
        markdown(head, lines),
        *([] if rabbit is None else _rabbit(rabbit)),
    ]


def _rabbit(rows: pd.DataFrame) -> list[str]:
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
    seconds = both.drop_duplicates("graph").set_index("graph")["order_seconds"]
    lines = []
    for graph, line in wide.iterrows():
        pays = (f"{n:,.0f}" if np.isfinite(n) else "never" for n in line["pays"])
        gain, lead = ([f"{ratio:.2f}" for ratio in line[name]] for name in ("gain", "speedup"))
        lines.append([paper_name(graph), f"{seconds[graph]:.1f}", *gain, *pays, *lead])
    gain, lead = (
        [f"{mean_of(wide[name, d]):.2f}" for d in wide["gain"]] for name in ("gain", "speedup")
    )
    lines.append(["**mean**", "", *gain, *[""] * len(gain), *lead])
    head = ["graph", "found in, s"]
    for name in ("gain", "pays after", "over cuSPARSE"):
        head += [f"{name}, d = {d}" for d in wide["gain"]]
    return [
        "Where no order is given, one can be found. Shuffled twins, renumbered by the project's "
        'Rabbit order (`vertex_order(graph, "rabbit")`, on one core of the host, compiled before): '
        "the time before over the time after, in one run; after how many products the finding has "
        "paid; and the lead over cuSPARSE, preprocessed, on the same order.",
        markdown(head, lines),
    ]


def sixteen_bits(results: Results) -> Parts:
    """Return the speedups of 16-bit features over float32, and their errors."""
    ratios = half_speedups(results["half-h200"])
    keys = ["dtype", "columns"]
    means = ratios.pivot_table(index="graph", columns=keys, values="speedup", sort=False)
    counts = sorted(set(ratios["columns"]))
    keys = [(dtype, d) for dtype in ("float16", "bfloat16") for d in counts]
    means = means[[key for key in keys if key in means.columns]]
    lines = [
        [paper_name(str(graph)), *(f"{x:.2f}" for x in line)] for graph, line in means.iterrows()
    ]
    lines.append(["**mean**", *(f"{mean:.2f}" for mean in means.apply(mean_of))])
    rounding = results.optional("rounding")
    return [
        "## Sixteen bits",
        'With `storage="float16"` or `"bfloat16"` features are rounded '
        "beforehand, by up to 2^-11 and 2^-8 of each number (float16 by more below 6e-5, and it "
        "ends at 65,504); sums and Y stay float32. **That is another problem**, and such times "
        "never stand beside float32's without a label. Results "
        f"are held to float64 of the rounded features (largest error "
        f"{ratios['error_over_bound'].max():.2f} of the bound). How many times as fast as with "
        f"float32, in the same run; the random-gather limits would allow "
        f"{geometric_mean(with_wide_features(ratios)['limit']):.2f} at d ≥ 64 in the mean.",
        markdown(["graph", *(f"{dtype}, d = {d}" for dtype, d in means.columns)], lines),
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


PAGES = [
    Page(
        "performance.md",
        {
            "result": result,
            "targets": targets,
            "limits": lambda results: [
                limit_picture(ours(results)),
                roofline_picture(ours(results)),
            ],
            "ladder": ladder,
            "rule": rule,
            "tuning": tuning,
            "locality": locality,
            "sixteen-bits": sixteen_bits,
            "preprocessing": preprocessing,
        },
        one_machine=True,
    )
]
