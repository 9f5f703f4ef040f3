"""What was asked of `lane_groups`, beside what was measured: the tables of docs/performance.md.

Every ratio is one of medians inside one run, but for those between two vertex orders, each of which
has a run of its own. Means are geometric, over every case: a graph and a column count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd
from paper import markdown, plain

from accelviz.measure.comparison import geometric_mean, labelled, latest, speedups

OWN = "lane_groups"
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


@dataclass(frozen=True)
class Target:
    """One line of the table; `reached` is None where nothing was recorded."""

    what: str
    wanted: str
    measured: str
    reached: bool | None

    def line(self) -> list[str]:
        """Return the cells of the line."""
        said = {True: "met", False: "**not met**", None: "not recorded"}[self.reached]
        return [self.what, self.wanted, self.measured, said]


def group_of(graph: str) -> str:
    """Return which of `GROUPS` a graph is in; "found" where the project found its order."""
    for ending, name in (("-rabbit", "found"), ("-shuffled", "shuffled"), ("-twin", "natural")):
        if graph.endswith(ending):
            return name
    return "bundled"


def grouped(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the column `group`, and leave out graphs that are in none."""
    rows = rows.assign(group=[group_of(graph) for graph in rows["graph"]])
    return rows[rows["group"].isin(list(GROUPS))].reset_index(drop=True)


def own(table: pd.DataFrame, case: str = OWN) -> pd.DataFrame:
    """Return a case's times with `share` of the limit, and `launches`: time over launch and limit.

    The launch is the smallest floor of the table: no limit is below an empty launch.
    """
    rows = grouped(latest(labelled(table, case)))
    launch = table["floor_us"].min()
    limit = rows["gather_limit_us"]
    return rows.assign(
        share=limit / rows["median_us"], launches=rows["median_us"] / (launch + limit)
    )


def over(table: pd.DataFrame, case: str) -> pd.DataFrame | None:
    """Return our speedups over a case, None if it was not measured."""
    if case.split()[0] not in set(table["strategy"]):
        return None
    found = speedups(grouped(table), case, OWN)
    kept = grouped(found)
    kept.attrs["dropped"] = found.attrs["dropped"]
    return kept


def at(rows: pd.DataFrame, columns: Iterable[int], group: str | None = None) -> pd.DataFrame:
    """Keep some column counts, and one group."""
    kept = rows["columns"].isin(list(columns))
    return rows[kept if group is None else kept & (rows["group"] == group)]


def graph_name(graph: str) -> str:
    """Name a graph in prose; a twin with its order."""
    group = group_of(graph)
    return plain(graph) + (f" {group}" if group in ("shuffled", "natural") else "")


def graph_names(graphs: Iterable[str]) -> str:
    """List graphs in prose, each once."""
    return ", ".join(graph_name(graph) for graph in dict.fromkeys(graphs))


def case_name(graph: str, columns: int) -> str:
    """Name a case in prose."""
    return f"{graph_name(graph)} at d = {columns}"


def orders(table: pd.DataFrame, case: str = OWN) -> pd.DataFrame:
    """Divide the times of shuffled twins by those of the same twins in natural order.

    Returns the column `gain`, and `beyond`: whether the features are larger than the L2.
    """
    rows = own(table, case)
    both = []
    for group in ("shuffled", "natural"):
        part = rows[rows["group"] == group]
        part = part.assign(twin=part["graph"].str.removesuffix("-shuffled"))
        both.append(part.set_index(["twin", "columns"]))
    shuffled, natural = both
    found = shuffled[["rows", "nonzeros"]].assign(gain=shuffled["median_us"] / natural["median_us"])
    found = found.dropna(subset=["gain"]).reset_index()
    return found.assign(beyond=4 * found["columns"] * found["rows"] > L2_BYTES)


def wide(found: pd.DataFrame) -> pd.DataFrame:
    """Keep of `halves` the column counts that the target speaks of."""
    return found[found["columns"] >= 64]


def halves(half: pd.DataFrame) -> pd.DataFrame:
    """Divide the times with float32 features by those with 16-bit ones, inside a run.

    Returns a row for each graph, column count and storage with the column `speedup`, and `limit`:
    what the random-gather limits would allow.
    """
    rows = half[(half["strategy"] == OWN) & half["median_us"].notna()]
    cell = ["run", "graph", "fingerprint", "columns"]
    rows = rows.drop_duplicates([*cell, "dtype"])
    whole = rows[rows["dtype"] == "float32"][[*cell, "median_us", "gather_limit_us"]]
    found = rows[rows["dtype"] != "float32"].merge(whole, on=cell, suffixes=("", "_float32"))
    found = found.assign(
        speedup=found["median_us_float32"] / found["median_us"],
        limit=found["gather_limit_us_float32"] / found["gather_limit_us"],
    )
    same = ["graph", "fingerprint", "columns", "dtype"]
    return found.sort_values("run", kind="stable").drop_duplicates(same, keep="last")


def targets(
    table: pd.DataFrame, preprocessing: pd.DataFrame | None, half: pd.DataFrame | None
) -> list[Target]:
    """Hold every target against what was measured."""
    return [
        *_limits(own(table)),
        *_cusparse(table),
        _order(orders(table)),
        _peer(table, "gnnadvisor", OVER_GNNADVISOR),
        _peer(table, "accel_gcn", OVER_ACCEL_GCN),
        _preprocessing(preprocessing),
        _half(half),
    ]


def _limits(rows: pd.DataFrame) -> list[Target]:
    large = at(rows[rows["nonzeros"] > MILLION], SHARES, "shuffled")
    shares = large.groupby("columns")["share"].agg(geometric_mean)
    small = rows[rows["nonzeros"] <= MILLION]
    above = int((small["launches"] > MOST_LAUNCHES).sum())
    return [
        Target(
            "share of the random-gather limit, more than a million nonzeros, shuffled, mean",
            "0.85 at d = 16, 32; 0.92 at 64, 96, 128",
            ", ".join(f"{share:.2f}" for share in shares),
            all(share >= SHARES[d] for d, share in shares.items()),
        ),
        Target(
            "time over an empty launch and the limit, fewer nonzeros, every case",
            f"at most {MOST_LAUNCHES}",
            f"{geometric_mean(small['launches']):.2f} in the mean, {above} of {len(small)} above, "
            f"highest {small['launches'].max():.2f}",
            above == 0,
        ),
    ]


def _cusparse(table: pd.DataFrame) -> list[Target]:
    both = [over(table, case) for case in (PREPROCESSED, NOT_PREPROCESSED)]
    found = []
    for columns, wanted in ((ROUND, OVER_ROUND), (ODD, OVER_ODD)):
        means = [geometric_mean(at(each, columns)["speedup"]) for each in both]
        found.append(
            Target(
                f"over cuSPARSE, d = {counts_of(columns)}, mean",
                f"{wanted}",
                f"{means[0]:.2f} preprocessed, {means[1]:.2f} not",
                means[0] >= wanted,
            )
        )
    lowest = [each["speedup"].min() for each in both]
    below = [int((each["speedup"] < EVERY).sum()) for each in both]
    every = Target(
        "over cuSPARSE in every case",
        f"{EVERY}",
        f"lowest {lowest[0]:.3f}, {below[0]} of {len(both[0])} below; "
        f"not preprocessed {lowest[1]:.3f}, {below[1]}",
        below[0] == 0,
    )
    return [*found, every]


def _order(found: pd.DataFrame) -> Target:
    beyond = found[found["beyond"]]
    faster = int((beyond["gain"] > 1).sum())
    return Target(
        "natural order faster than shuffled where X is larger than the L2 (50 MiB), every case",
        "1",
        f"{geometric_mean(beyond['gain']):.2f} in the mean, lowest {beyond['gain'].min():.2f}, "
        f"faster in {faster} of {len(beyond)}",
        faster == len(beyond),
    )


def _peer(table: pd.DataFrame, name: str, wanted: float) -> Target:
    found = over(table, name)
    what = f"over our `{name}`, mean"
    if found is None:
        return Target(what, f"{wanted}", "–", None)
    mean = geometric_mean(found["speedup"])
    return Target(
        what,
        f"{wanted}",
        f"{mean:.2f} ({found['speedup'].min():.2f} to {found['speedup'].max():.2f})",
        mean >= wanted,
    )


def _preprocessing(table: pd.DataFrame | None) -> Target:
    what = "preprocessing on the GPU over one product with 128 columns, mean"
    if table is None:
        return Target(what, "at most 1", "–", None)
    mean = geometric_mean(table["gpu_ratio"])
    wall = geometric_mean(table["wall_ratio"])
    return Target(
        what,
        "at most 1",
        f"{mean:.2f}, with the host's launches and waits {wall:.2f}",
        mean <= MOST_PREPROCESSING,
    )


def _half(half: pd.DataFrame | None) -> Target:
    what = "16-bit features over our float32, d ≥ 64, every case (another problem)"
    if half is None:
        return Target(what, f"{OVER_FLOAT32}", "–", None)
    found = wide(halves(half))
    reached = int((found["speedup"] >= OVER_FLOAT32).sum())
    return Target(
        what,
        f"{OVER_FLOAT32}",
        f"{geometric_mean(found['speedup']):.2f} in the mean, {found['speedup'].min():.2f} to "
        f"{found['speedup'].max():.2f}, reached in {reached} of {len(found)}",
        reached == len(found),
    )


def means_table(table: pd.DataFrame) -> str:
    """List the means over the others by group; what is below the target is bold."""
    cases = [
        ("cuSPARSE, preprocessed", PREPROCESSED, ROUND, OVER_ROUND),
        ("cuSPARSE, preprocessed", PREPROCESSED, ODD, OVER_ODD),
        ("cuSPARSE, not preprocessed", NOT_PREPROCESSED, ROUND, OVER_ROUND),
        ("cuSPARSE, not preprocessed", NOT_PREPROCESSED, ODD, OVER_ODD),
        ("our `gnnadvisor`", "gnnadvisor", LIMIT, OVER_GNNADVISOR),
        ("our `accel_gcn`", "accel_gcn", LIMIT, OVER_ACCEL_GCN),
    ]
    lines = []
    for name, case, columns, wanted in cases:
        found = over(table, case)
        if found is None:
            continue
        means = by_group(at(found, columns), "speedup")
        shown = [f"{mean:.2f}" if mean >= wanted else f"**{mean:.2f}**" for mean in means]
        lines.append([name, counts_of(columns), f"{wanted}", *shown])
        if case == PREPROCESSED:
            limits = by_group(at(own(table, case), columns), "launches")
            what = "*launch + limit over the same*"
            lines.append([what, counts_of(columns), "", *(f"*{mean:.2f}*" for mean in limits)])
    return markdown(["mean over", "d", "wanted", *GROUPS.values(), "all"], lines)


def other_peers(table: pd.DataFrame, recorded: Iterable[pd.DataFrame]) -> str:
    """Hold the strategies that were recorded in other runs against ours, graph by graph."""
    key = ["graph", "fingerprint", "columns"]
    mine = latest(labelled(table, OWN)).set_index(key)["median_us"]
    times = pd.concat(list(recorded))
    known = set(table["strategy"])
    times = times[
        (times["state"] == "warm") & times["median_us"].notna() & ~times["strategy"].isin(known)
    ]
    times = times.drop_duplicates([*key, "strategy", "parameters"], keep="last")
    times = times.join(mine.rename("mine"), on=key, how="inner")
    ratios = (times["median_us"] / times["mine"]).groupby(times["strategy"])
    means = ratios.agg(geometric_mean).sort_values()
    lowest = ratios.min()
    said = ", ".join(f"`{name}` {mean:.2f} ({lowest[name]:.2f})" for name, mean in means.items())
    return f"Over the other strategies, in other runs on such a GPU, mean and lowest: {said}."


def by_group(rows: pd.DataFrame, value: str) -> list[float]:
    """Return the geometric mean of each of `GROUPS`, then that of all."""
    parts = [rows[rows["group"] == group] for group in GROUPS]
    return [geometric_mean(part[value]) for part in (*parts, rows)]


def counts_of(columns: Iterable[int]) -> str:
    """List column counts."""
    return ", ".join(map(str, columns))
