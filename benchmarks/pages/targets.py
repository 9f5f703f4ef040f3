"""Questions about `lane_groups` and their measured answers: tables of docs/performance.md.

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
#: Column counts: multiples of 16, others, and those of the random-gather limit.
ROUND_COLUMNS, ODD_COLUMNS = (16, 32, 48, 64, 96, 128), (17, 33, 50, 100)
LIMIT_COLUMNS = (16, 32, 64, 96, 128)
#: Shares of the random-gather limit that the picture marks as wanted, in shuffled order.
LEAST_SHARES = {16: 0.85, 32: 0.85, 64: 0.92, 96: 0.92, 128: 0.92}
MILLION, L2_BYTES = 1_000_000, 50 << 20
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
Answer = tuple[str, str]


def answers_table(
    rows: pd.DataFrame, preprocessing: pd.DataFrame | None, half: pd.DataFrame | None
) -> str:
    """Return the table of all questions with their measured answers."""
    answers = [
        *_limits(limit_shares(rows)),
        *_cusparse(rows),
        _order(order_gains(rows)),
        *(_peer(rows, name) for name in ("gnnadvisor", "accel_gcn")),
        _preprocessing(preprocessing),
        _half(half),
    ]
    return markdown(["question", "measured"], filter(None, answers), "---")


def _limits(rows: pd.DataFrame) -> list[Answer]:
    large = rows_at(rows[rows["nonzeros"] > MILLION], LIMIT_COLUMNS, "shuffled")
    means = large.groupby("columns")["share"].agg(geometric_mean)
    small = rows[rows["nonzeros"] <= MILLION]["launches"]
    return [
        (
            "share of the random-gather limit, more than a million nonzeros, shuffled, d = "
            f"{join_counts(means.index)}",
            ", ".join(f"{share:.2f}" for share in means),
        ),
        (
            "time over an empty launch and the limit, fewer nonzeros",
            f"{geometric_mean(small):.2f} ({small.min():.2f} to {small.max():.2f})",
        ),
    ]


def _cusparse(rows: pd.DataFrame) -> list[Answer]:
    both = [speedups_over(rows, case) for case in (PREPROCESSED, NOT_PREPROCESSED)]
    answers = []
    for columns in (ROUND_COLUMNS, ODD_COLUMNS):
        means = [mean_at(ratios, "speedup", columns) for ratios in both]
        measured = f"{means[0]:.2f} preprocessed, {means[1]:.2f} not"
        answers.append((f"over cuSPARSE, d = {join_counts(columns)}", measured))
    lowest = [ratios["speedup"].min() for ratios in both]
    measured = f"{lowest[0]:.3f} preprocessed, {lowest[1]:.3f} not"
    return [*answers, ("over cuSPARSE, the worst case", measured)]


def _order(gains: pd.DataFrame) -> Answer:
    beyond = gains.loc[gains["beyond"], "gain"]
    return (
        "natural over shuffled order where X is larger than the L2 (50 MiB)",
        f"{geometric_mean(beyond):.2f} ({beyond.min():.2f} to {beyond.max():.2f})",
    )


def _peer(rows: pd.DataFrame, name: str) -> Answer | None:
    if (ratios := speedups_over(rows, name)) is None:
        return None
    speedup = ratios["speedup"]
    mean, extremes = geometric_mean(speedup), f"{speedup.min():.2f} to {speedup.max():.2f}"
    return f"over our `{name}`", f"{mean:.2f} ({extremes})"


def _preprocessing(rows: pd.DataFrame | None) -> Answer | None:
    if rows is None:
        return None
    mean, wall = (geometric_mean(rows[name]) for name in ("gpu_ratio", "wall_ratio"))
    measured = f"{mean:.2f}, with the host's launches and waits {wall:.2f}"
    return "preprocessing on the GPU, in products with 128 columns", measured


def _half(half: pd.DataFrame | None) -> Answer | None:
    if half is None:
        return None
    speedup = with_wide_features(half_speedups(half))["speedup"]
    return (
        "16-bit features over our float32, d ≥ 64 (another problem)",
        f"{geometric_mean(speedup):.2f} ({speedup.min():.2f} to {speedup.max():.2f})",
    )


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
