"""What was asked of `lane_groups` beside what was measured.

Every ratio is one of medians inside one run, but for those between two vertex orders, each of which
has a run of its own. Means are geometric, over every case: a graph and a column count.
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from accelviz.measure.comparison import geometric_mean, labelled, latest, speedups
from benchmarks.pages.document import markdown, plain

OURS = "lane_groups"
PREPROCESSED = "cusparse algorithm=fastest preprocess=True"
NOT_PREPROCESSED = "cusparse algorithm=fastest preprocess=False"
#: Column counts that the targets name.
ROUND, ODD, LIMIT = (16, 32, 48, 64, 96, 128), (17, 33, 50, 100), (16, 32, 64, 96, 128)
#: Least shares of the random-gather limit, in shuffled order.
SHARES = {16: 0.85, 32: 0.85, 64: 0.92, 96: 0.92, 128: 0.92}
MILLION, L2_BYTES = 1_000_000, 50 << 20
#: Least speedups over cuSPARSE: in the mean over both kinds of column counts, and in every case.
OVER_ROUND, OVER_ODD, EVERY = 2.1, 1.8, 1.05
OVER_GNNADVISOR, OVER_ACCEL_GCN = 2.8, 2.1
MOST_LAUNCHES, MOST_PREPROCESSING, OVER_FLOAT32 = 1.5, 1.0, 1.5
#: The endings of a graph's name, and what such graphs are called.
GROUPS = {
    "shuffled": "twins, shuffled order",
    "natural": "twins, natural order",
    "bundled": "bundled real graphs",
}


def group_of(graph: str) -> str:
    """Return which of `GROUPS` a graph is in; "rabbit" where the project chose its order."""
    endings = {"-rabbit": "rabbit", "-shuffled": "shuffled", "-twin": "natural"}
    return next((name for end, name in endings.items() if graph.endswith(end)), "bundled")


def grouped(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the column `group`, and leave out graphs that are in none."""
    rows = rows.assign(group=rows["graph"].map(group_of))
    return rows[rows["group"].isin(list(GROUPS))].reset_index(drop=True)


def shares(rows: pd.DataFrame, case: str = OURS) -> pd.DataFrame:
    """Return a case's times with `share` of the limit, and `launches`: time over launch and limit.

    The launch is the smallest floor of the table: no limit is below an empty launch.
    """
    launch = rows["floor_us"].min()
    rows = grouped(latest(labelled(rows, case)))
    limit, us = rows["gather_limit_us"], rows["median_us"]
    return rows.assign(share=limit / us, launches=us / (launch + limit))


def over(rows: pd.DataFrame, case: str) -> pd.DataFrame | None:
    """Return our speedups over a case, None if it was not measured."""
    if case.split()[0] not in set(rows["strategy"]):
        return None
    ratios = speedups(grouped(rows), case, OURS)
    dropped = ratios.attrs["dropped"]
    ratios = grouped(ratios)
    ratios.attrs["dropped"] = dropped
    return ratios


def at(rows: pd.DataFrame, columns: Iterable[int], group: str | None = None) -> pd.DataFrame:
    """Keep some column counts, and one group."""
    chosen = rows["columns"].isin(list(columns))
    return rows[chosen if group is None else chosen & (rows["group"] == group)]


def mean_at(
    rows: pd.DataFrame, value: str, columns: Iterable[int], group: str | None = None
) -> float:
    """Return the geometric mean of a column at some column counts, in one group."""
    return geometric_mean(at(rows, columns, group)[value])


def graph_names(graphs: Iterable[str]) -> str:
    """List graphs in prose, each once; a twin with its order."""
    return ", ".join(
        plain(graph)
        + (f" {group}" if (group := group_of(graph)) in ("shuffled", "natural") else "")
        for graph in dict.fromkeys(graphs)
    )


def case_name(graph: str, columns: int) -> str:
    """Name a case in prose."""
    return f"{graph_names([graph])} at d = {columns}"


def counts_of(columns: Iterable[int]) -> str:
    """List column counts."""
    return ", ".join(map(str, columns))


def orders(rows: pd.DataFrame, case: str = OURS) -> pd.DataFrame:
    """Divide the times of shuffled twins by those of the same twins in natural order.

    Returns the column `gain`, and `beyond`: whether the features are larger than the L2.
    """
    rows = shares(rows, case)
    rows = rows.assign(twin=rows["graph"].str.removesuffix("-shuffled"))
    shuffled, natural = (
        rows[rows["group"] == group].set_index(["twin", "columns"])
        for group in ("shuffled", "natural")
    )
    gains = shuffled[["rows", "nonzeros"]].assign(gain=shuffled["median_us"] / natural["median_us"])
    gains = gains.dropna(subset=["gain"]).reset_index()
    return gains.assign(beyond=4 * gains["columns"] * gains["rows"] > L2_BYTES)


def halves(half: pd.DataFrame) -> pd.DataFrame:
    """Divide the times with float32 features by those with 16-bit ones, inside a run.

    Returns a row for each graph, column count and storage with the column `speedup`, and `limit`:
    what the random-gather limits would allow.
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


def wide(pairs: pd.DataFrame) -> pd.DataFrame:
    """Keep of `halves` the column counts that the target names."""
    return pairs[pairs["columns"] >= 64]


#: A target, the wanted number, what was measured, and whether it is met: None if not recorded.
Target = tuple[str, str, str, bool | None]


def targets_table(
    rows: pd.DataFrame, preprocessing: pd.DataFrame | None, half: pd.DataFrame | None
) -> str:
    """Hold every target against what was measured."""
    targets: list[Target] = [
        *_limits(shares(rows)),
        *_cusparse(rows),
        _order(orders(rows)),
        _peer(rows, "gnnadvisor", OVER_GNNADVISOR),
        _peer(rows, "accel_gcn", OVER_ACCEL_GCN),
        _preprocessing(preprocessing),
        _half(half),
    ]
    verdicts = {True: "met", False: "**not met**", None: "not recorded"}
    lines = [(*cells, verdicts[met]) for *cells, met in targets]
    return markdown(["target", "wanted", "measured", ""], lines, "---")


def _limits(rows: pd.DataFrame) -> list[Target]:
    large = at(rows[rows["nonzeros"] > MILLION], SHARES, "shuffled")
    means = large.groupby("columns")["share"].agg(geometric_mean)
    small = rows[rows["nonzeros"] <= MILLION]
    above = int((small["launches"] > MOST_LAUNCHES).sum())
    return [
        (
            "share of the random-gather limit, more than a million nonzeros, shuffled, mean",
            "0.85 at d = 16, 32; 0.92 at 64, 96, 128",
            ", ".join(f"{share:.2f}" for share in means),
            all(share >= SHARES[d] for d, share in means.items()),
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
    both = [over(rows, case) for case in (PREPROCESSED, NOT_PREPROCESSED)]
    targets = []
    for columns, wanted in ((ROUND, OVER_ROUND), (ODD, OVER_ODD)):
        means = [mean_at(ratios, "speedup", columns) for ratios in both]
        measured = f"{means[0]:.2f} preprocessed, {means[1]:.2f} not"
        name = f"over cuSPARSE, d = {counts_of(columns)}, mean"
        targets.append((name, f"{wanted}", measured, means[0] >= wanted))
    lowest = [ratios["speedup"].min() for ratios in both]
    below = [int((ratios["speedup"] < EVERY).sum()) for ratios in both]
    measured = (
        f"lowest {lowest[0]:.3f}, {below[0]} of {len(both[0])} below; "
        f"not preprocessed {lowest[1]:.3f}, {below[1]}"
    )
    return [*targets, ("over cuSPARSE in every case", f"{EVERY}", measured, below[0] == 0)]


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
    title, ratios = f"over our `{name}`, mean", over(rows, name)
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
    speedup = wide(halves(half))["speedup"]
    reached = int((speedup >= OVER_FLOAT32).sum())
    measured = (
        f"{geometric_mean(speedup):.2f} in the mean, {speedup.min():.2f} to {speedup.max():.2f}, "
        f"reached in {reached} of {len(speedup)}"
    )
    return title, f"{OVER_FLOAT32}", measured, reached == len(speedup)


def means_table(rows: pd.DataFrame) -> str:
    """List the means over the others by group; what is below the target is bold."""
    lines = []
    for name, case, columns, wanted in (
        ("cuSPARSE, preprocessed", PREPROCESSED, ROUND, OVER_ROUND),
        ("cuSPARSE, preprocessed", PREPROCESSED, ODD, OVER_ODD),
        ("cuSPARSE, not preprocessed", NOT_PREPROCESSED, ROUND, OVER_ROUND),
        ("cuSPARSE, not preprocessed", NOT_PREPROCESSED, ODD, OVER_ODD),
        ("our `gnnadvisor`", "gnnadvisor", LIMIT, OVER_GNNADVISOR),
        ("our `accel_gcn`", "accel_gcn", LIMIT, OVER_ACCEL_GCN),
    ):
        ratios = over(rows, case)
        if ratios is None:
            continue
        groups = (*GROUPS, None)
        means = [mean_at(ratios, "speedup", columns, group) for group in groups]
        cells = [f"{mean:.2f}" if mean >= wanted else f"**{mean:.2f}**" for mean in means]
        lines.append([name, counts_of(columns), f"{wanted}", *cells])
        if case == PREPROCESSED:
            limit = shares(rows, case)
            cells = [f"*{mean_at(limit, 'launches', columns, group):.2f}*" for group in groups]
            lines.append(["*launch + limit over the same*", counts_of(columns), "", *cells])
    return markdown(["mean over", "d", "wanted", *GROUPS.values(), "all"], lines)


def other_peers(rows: pd.DataFrame, recorded: Iterable[pd.DataFrame]) -> str:
    """Hold the strategies that were recorded in other runs against ours, graph by graph."""
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
