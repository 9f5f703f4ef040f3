"""Targets of `lane_groups` beside the measured values: tables of docs/performance.md.

A case is a graph and a column count; means over cases are geometric. Both times of a ratio are
medians of the same run, except ratios of two vertex orders, which are measured in separate runs.
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from accelviz.measure.comparison import geometric_mean, labelled, latest, speedups
from benchmarks.pages.document import markdown, paper_name

OURS = "lane_groups"
PREPROCESSED = "cusparse algorithm=fastest preprocess=True"
NOT_PREPROCESSED = "cusparse algorithm=fastest preprocess=False"
#: Column counts of the targets: multiples of 16, others, and those of the random-gather limit.
ROUND_COLUMNS, ODD_COLUMNS = (16, 32, 48, 64, 96, 128), (17, 33, 50, 100)
LIMIT_COLUMNS = (16, 32, 64, 96, 128)
#: Least share of the random-gather limit by column count, for graphs in shuffled order.
LEAST_SHARES = {16: 0.85, 32: 0.85, 64: 0.92, 96: 0.92, 128: 0.92}
MILLION, L2_BYTES = 1_000_000, 50 << 20
#: Least speedups over cuSPARSE: mean over ROUND_COLUMNS, mean over ODD_COLUMNS, and in every case.
OVER_ROUND, OVER_ODD, LEAST_SPEEDUP = 2.1, 1.8, 1.05
#: Least mean speedups over our versions of published strategies.
OVER_GNNADVISOR, OVER_ACCEL_GCN = 2.8, 2.1
#: Most time in units of launch plus limit, most preprocessing in units of a product, and least
#: speedup of 16-bit features over float32.
MOST_LAUNCHES, MOST_PREPROCESSING, OVER_FLOAT32 = 1.5, 1.0, 1.5
#: Groups of graphs, and their names in the tables.
GROUPS = {
    "shuffled": "twins, shuffled order",
    "natural": "twins, natural order",
    "bundled": "bundled real graphs",
}


def group_of(graph: str) -> str:
    """Return a graph's group: a key of `GROUPS`, or "rabbit" for the project's Rabbit order."""
    endings = {"-rabbit": "rabbit", "-shuffled": "shuffled", "-twin": "natural"}
    return next((name for end, name in endings.items() if graph.endswith(end)), "bundled")


def add_groups(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the column `group`; drop graphs that are in no group of `GROUPS`."""
    rows = rows.assign(group=rows["graph"].map(group_of))
    return rows[rows["group"].isin(list(GROUPS))].reset_index(drop=True)


def limit_shares(rows: pd.DataFrame, case: str = OURS) -> pd.DataFrame:
    """Return a case's times with their relation to the random-gather limit.

    Adds `share`, the limit over the time, and `launches`, the time over the sum of an empty launch
    and the limit. The launch is the smallest `floor_us` of the table.
    """
    launch = rows["floor_us"].min()
    rows = add_groups(latest(labelled(rows, case)))
    limit, us = rows["gather_limit_us"], rows["median_us"]
    return rows.assign(share=limit / us, launches=us / (launch + limit))


def speedups_over(rows: pd.DataFrame, case: str) -> pd.DataFrame | None:
    """Return our speedups over a case, or None if its strategy was not measured."""
    if case.split()[0] not in set(rows["strategy"]):
        return None
    ratios = speedups(add_groups(rows), case, OURS)
    dropped = ratios.attrs["dropped"]
    ratios = add_groups(ratios)
    ratios.attrs["dropped"] = dropped
    return ratios


def rows_at(rows: pd.DataFrame, columns: Iterable[int], group: str | None = None) -> pd.DataFrame:
    """Return the rows with some column counts, and of one group if given."""
    chosen = rows["columns"].isin(list(columns))
    return rows[chosen if group is None else chosen & (rows["group"] == group)]


def mean_at(
    rows: pd.DataFrame, value: str, columns: Iterable[int], group: str | None = None
) -> float:
    """Return the geometric mean of `value` over rows with some column counts, of one group."""
    return geometric_mean(rows_at(rows, columns, group)[value])


def graph_names(graphs: Iterable[str]) -> str:
    """Return the distinct graphs as a list in prose; twins with their order."""
    return ", ".join(
        paper_name(graph)
        + (f" {group}" if (group := group_of(graph)) in ("shuffled", "natural") else "")
        for graph in dict.fromkeys(graphs)
    )


def case_name(graph: str, columns: int) -> str:
    """Return a case in prose."""
    return f"{graph_names([graph])} at d = {columns}"


def join_counts(columns: Iterable[int]) -> str:
    """Return column counts as a list in prose."""
    return ", ".join(map(str, columns))


def order_gains(rows: pd.DataFrame, case: str = OURS) -> pd.DataFrame:
    """Return the times of shuffled twins over those of the same twins in natural order.

    The ratio is the column `gain`; `beyond` is true if the features are larger than the L2.
    """
    rows = limit_shares(rows, case)
    rows = rows.assign(twin=rows["graph"].str.removesuffix("-shuffled"))
    shuffled, natural = (
        rows[rows["group"] == group].set_index(["twin", "columns"])
        for group in ("shuffled", "natural")
    )
    gains = shuffled[["rows", "nonzeros"]].assign(gain=shuffled["median_us"] / natural["median_us"])
    gains = gains.dropna(subset=["gain"]).reset_index()
    return gains.assign(beyond=4 * gains["columns"] * gains["rows"] > L2_BYTES)


def half_speedups(half: pd.DataFrame) -> pd.DataFrame:
    """Return the times with float32 features over those with 16-bit features of the same run.

    One row per graph, column count and storage: `speedup`, and `limit`, the same ratio of the
    random-gather limits.
    """
    rows = half[(half["strategy"] == OURS) & half["median_us"].notna()]
    cell = ["run", "graph", "fingerprint", "columns"]
    rows = rows.drop_duplicates([*cell, "dtype"])
    whole = rows[rows["dtype"] == "float32"][[*cell, "median_us", "gather_limit_us"]]
    pairs = rows[rows["dtype"] != "float32"].merge(whole, on=cell, suffixes=("", "_float32"))
    pairs = pairs.assign(
        speedup=pairs["median_us_float32"] / pairs["median_us"],
        limit=pairs["gather_limit_us_float32"] / pairs["gather_limit_us"],
    )
    same = ["graph", "fingerprint", "columns", "dtype"]
    return pairs.sort_values("run", kind="stable").drop_duplicates(same, keep="last")


def with_wide_features(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `half_speedups` with at least 64 columns, which the target is about."""
    return pairs[pairs["columns"] >= 64]


#: Name of a target, wanted value, measured value, and whether it is met; None if not recorded.
Target = tuple[str, str, str, bool | None]


def targets_table(
    rows: pd.DataFrame, preprocessing: pd.DataFrame | None, half: pd.DataFrame | None
) -> str:
    """Return the table of all targets beside the measured values."""
    targets: list[Target] = [
        *_limits(limit_shares(rows)),
        *_cusparse(rows),
        _order(order_gains(rows)),
        _peer(rows, "gnnadvisor", OVER_GNNADVISOR),
        _peer(rows, "accel_gcn", OVER_ACCEL_GCN),
        _preprocessing(preprocessing),
        _half(half),
    ]
    verdicts = {True: "met", False: "**not met**", None: "not recorded"}
    lines = [(*cells, verdicts[met]) for *cells, met in targets]
    return markdown(["target", "wanted", "measured", ""], lines, "---")


def _limits(rows: pd.DataFrame) -> list[Target]:
    large = rows_at(rows[rows["nonzeros"] > MILLION], LEAST_SHARES, "shuffled")
    means = large.groupby("columns")["share"].agg(geometric_mean)
    small = rows[rows["nonzeros"] <= MILLION]
    above = int((small["launches"] > MOST_LAUNCHES).sum())
    return [
        (
            "share of the random-gather limit, more than a million nonzeros, shuffled, mean",
            "0.85 at d = 16, 32; 0.92 at 64, 96, 128",
            ", ".join(f"{share:.2f}" for share in means),
            all(share >= LEAST_SHARES[d] for d, share in means.items()),
        ),
        (
            "time over an empty launch and the limit, fewer nonzeros, every case",
            f"at most {MOST_LAUNCHES}",
            f"{geometric_mean(small['launches']):.2f} in the mean, {above} of {len(small)} above, "
            f"highest {small['launches'].max():.2f}",
            above == 0,
        ),
    ]


def _cusparse(rows: pd.DataFrame) -> list[Target]:
    both = [speedups_over(rows, case) for case in (PREPROCESSED, NOT_PREPROCESSED)]
    targets = []
    for columns, wanted in ((ROUND_COLUMNS, OVER_ROUND), (ODD_COLUMNS, OVER_ODD)):
        means = [mean_at(ratios, "speedup", columns) for ratios in both]
        measured = f"{means[0]:.2f} preprocessed, {means[1]:.2f} not"
        name = f"over cuSPARSE, d = {join_counts(columns)}, mean"
        targets.append((name, f"{wanted}", measured, means[0] >= wanted))
    lowest = [ratios["speedup"].min() for ratios in both]
    below = [int((ratios["speedup"] < LEAST_SPEEDUP).sum()) for ratios in both]
    measured = (
        f"lowest {lowest[0]:.3f}, {below[0]} of {len(both[0])} below; "
        f"not preprocessed {lowest[1]:.3f}, {below[1]}"
    )
    return [*targets, ("over cuSPARSE in every case", f"{LEAST_SPEEDUP}", measured, below[0] == 0)]


def _order(gains: pd.DataFrame) -> Target:
    beyond = gains.loc[gains["beyond"], "gain"]
    faster = int((beyond > 1).sum())
    return (
        "natural order faster than shuffled where X is larger than the L2 (50 MiB), every case",
        "1",
        f"{geometric_mean(beyond):.2f} in the mean, lowest {beyond.min():.2f}, "
        f"faster in {faster} of {len(beyond)}",
        faster == len(beyond),
    )


def _peer(rows: pd.DataFrame, name: str, wanted: float) -> Target:
    title, ratios = f"over our `{name}`, mean", speedups_over(rows, name)
    if ratios is None:
        return title, f"{wanted}", "–", None
    speedup = ratios["speedup"]
    mean, extremes = geometric_mean(speedup), f"{speedup.min():.2f} to {speedup.max():.2f}"
    return title, f"{wanted}", f"{mean:.2f} ({extremes})", mean >= wanted


def _preprocessing(rows: pd.DataFrame | None) -> Target:
    title = "preprocessing on the GPU over one product with 128 columns, mean"
    if rows is None:
        return title, "at most 1", "–", None
    mean, wall = (geometric_mean(rows[name]) for name in ("gpu_ratio", "wall_ratio"))
    measured = f"{mean:.2f}, with the host's launches and waits {wall:.2f}"
    return title, "at most 1", measured, mean <= MOST_PREPROCESSING


def _half(half: pd.DataFrame | None) -> Target:
    title = "16-bit features over our float32, d ≥ 64, every case (another problem)"
    if half is None:
        return title, f"{OVER_FLOAT32}", "–", None
    speedup = with_wide_features(half_speedups(half))["speedup"]
    reached = int((speedup >= OVER_FLOAT32).sum())
    measured = (
        f"{geometric_mean(speedup):.2f} in the mean, {speedup.min():.2f} to {speedup.max():.2f}, "
        f"reached in {reached} of {len(speedup)}"
    )
    return title, f"{OVER_FLOAT32}", measured, reached == len(speedup)


def means_table(rows: pd.DataFrame) -> str:
    """Return the mean speedups over other strategies by group; means below the target are bold."""
    lines = []
    for name, case, columns, wanted in (
        ("cuSPARSE, preprocessed", PREPROCESSED, ROUND_COLUMNS, OVER_ROUND),
        ("cuSPARSE, preprocessed", PREPROCESSED, ODD_COLUMNS, OVER_ODD),
        ("cuSPARSE, not preprocessed", NOT_PREPROCESSED, ROUND_COLUMNS, OVER_ROUND),
        ("cuSPARSE, not preprocessed", NOT_PREPROCESSED, ODD_COLUMNS, OVER_ODD),
        ("our `gnnadvisor`", "gnnadvisor", LIMIT_COLUMNS, OVER_GNNADVISOR),
        ("our `accel_gcn`", "accel_gcn", LIMIT_COLUMNS, OVER_ACCEL_GCN),
    ):
        ratios = speedups_over(rows, case)
        if ratios is None:
            continue
        groups = (*GROUPS, None)
        means = [mean_at(ratios, "speedup", columns, group) for group in groups]
        cells = [f"{mean:.2f}" if mean >= wanted else f"**{mean:.2f}**" for mean in means]
        lines.append([name, join_counts(columns), f"{wanted}", *cells])
        if case == PREPROCESSED:
            limit = limit_shares(rows, case)
            cells = [f"*{mean_at(limit, 'launches', columns, group):.2f}*" for group in groups]
            lines.append(["*launch + limit over the same*", join_counts(columns), "", *cells])
    return markdown(["mean over", "d", "wanted", *GROUPS.values(), "all"], lines)


def other_peers(rows: pd.DataFrame, recorded: Iterable[pd.DataFrame]) -> str:
    """Return a sentence with our mean speedups over strategies that were recorded in other runs."""
    key = ["graph", "fingerprint", "columns"]
    ours = latest(labelled(rows, OURS)).set_index(key)["median_us"]
    times = pd.concat(list(recorded))
    times = times[(times["state"] == "warm") & times["median_us"].notna()]
    times = times[~times["strategy"].isin(set(rows["strategy"]))]
    times = times.drop_duplicates([*key, "strategy", "parameters"], keep="last")
    times = times.join(ours.rename("ours"), on=key, how="inner")
    ratios = (times["median_us"] / times["ours"]).groupby(times["strategy"])
    means, lowest = ratios.agg(geometric_mean).sort_values(), ratios.min()
    peers = ", ".join(f"`{name}` {mean:.2f} ({lowest[name]:.2f})" for name, mean in means.items())
    return f"Over the other strategies, in other runs on such a GPU, mean and lowest: {peers}."
