"""Why a target of docs/performance.md was missed, as far as times and hardware counters show it."""

from __future__ import annotations

import pandas as pd
from paper import plain
from targets import (
    EVERY,
    MILLION,
    MOST_LAUNCHES,
    NOT_PREPROCESSED,
    OVER_ACCEL_GCN,
    OVER_FLOAT32,
    OVER_GNNADVISOR,
    OVER_ROUND,
    OWN,
    PREPROCESSED,
    ROUND,
    at,
    case_name,
    counts_of,
    grouped,
    halves,
    over,
    own,
    wide,
)

from accelviz.measure.comparison import geometric_mean, speedups


def reasons(
    table: pd.DataFrame, counters: pd.DataFrame | None = None, half: pd.DataFrame | None = None
) -> list[str]:
    """Say of each target that was missed why, as far as times and hardware counters show it."""
    found = [
        _why_mean(table),
        _why_low(table, counters),
        _why_small(table, counters),
        _why_peer(table, "gnnadvisor", OVER_GNNADVISOR),
        _why_peer(table, "accel_gcn", OVER_ACCEL_GCN),
        _why_half(half),
    ]
    return [each for each in found if each]


def _why_mean(table: pd.DataFrame) -> str:
    found, limit = over(table, PREPROCESSED), own(table, PREPROCESSED)
    mean = geometric_mean(at(found, ROUND)["speedup"])
    if mean >= OVER_ROUND:
        return ""
    gain = speedups(grouped(table), NOT_PREPROCESSED, {"call": PREPROCESSED})
    gains = [geometric_mean(at(gain, [d])["speedup"]) for d in (16, 128)]
    best = {
        case: int(own(table, case)["variant"].str.startswith("csr_alg3").sum())
        for case in (NOT_PREPROCESSED, PREPROCESSED)
    }
    values = {
        group: (
            geometric_mean(at(found, ROUND, group)["speedup"]),
            geometric_mean(at(limit, ROUND, group)["launches"]),
        )
        for group in ("shuffled", "bundled")
    }
    (mine, allowed), (small, small_allowed) = values["shuffled"], values["bundled"]
    end = ": if each nonzero fetches a row of X anew, there is no such mean"
    return (
        f"- **{OVER_ROUND} over cuSPARSE.** The target seems to stem from times without "
        f"`cusparseSpMM_preprocess`. That call makes cuSPARSE {gains[0]:.2f} times as fast at "
        f"d = 16, {gains[1]:.2f} at d = 128 (at most {gain['speedup'].max():.2f}), and CSR_ALG3 "
        f"the fastest in {best[PREPROCESSED]} cases in place of {best[NOT_PREPROCESSED]}. On "
        f"shuffled twins an empty launch plus the random-gather limit would be {allowed:.2f} times "
        f"as fast as it, `{OWN}` is {mine:.2f} times{end if allowed < OVER_ROUND else ''}. On "
        f"bundled graphs, all small, launch plus limit would be {small_allowed:.2f} times as fast, "
        f"`{OWN}` is {small:.2f} times."
    )


def _counted(counters: pd.DataFrame | None, graph: str, columns: int) -> pd.Series | None:
    """Return the hardware counters of our kernel in a case, None if it was not profiled."""
    if counters is None:
        return None
    case = (counters["graph"] == graph) & (counters["columns"] == columns)
    rows = counters[case & (counters["strategy"] == OWN)]
    return None if rows.empty else rows.iloc[-1]


def _why_low(table: pd.DataFrame, counters: pd.DataFrame | None) -> str:
    found = over(table, PREPROCESSED)
    low = found[found["speedup"] < EVERY].sort_values("speedup")
    if low.empty:
        return ""
    parts = []
    for graph, columns, speedup in zip(low["graph"], low["columns"], low["speedup"], strict=True):
        counted = _counted(counters, graph, columns)
        profile = "not profiled"
        if counted is not None:
            busy = counted["active_cycles"] / counted["elapsed_cycles"]
            profile = (
                f"Nsight Compute, warm caches: {counted['l1_hit_pct']:.0f} % hits in the L1, the "
                f"L2 works at {counted['l2_pct']:.0f} % of its throughput, the L1 at "
                f"{counted['l1_pct']:.0f} %, DRAM at {counted['dram_pct']:.0f} %; an SM is busy "
                f"for {100 * busy:.0f} % of the launch's cycles"
            )
        parts.append(f"{case_name(graph, columns)}: {speedup:.3f} ({profile})")
    return f"- **Below {EVERY}.** {'; '.join(parts)}."


def _why_small(table: pd.DataFrame, counters: pd.DataFrame | None) -> str:
    rows = own(table)
    above = rows[(rows["nonzeros"] <= MILLION) & (rows["launches"] > MOST_LAUNCHES)]
    if above.empty:
        return ""
    aligned = at(above, ROUND)
    names = [
        f"{plain(graph)} at {counts_of(sorted(part['columns']))}"
        for graph, part in aligned.groupby("graph", sort=False)
    ]
    rest = f"The other {len(aligned)}: {'; '.join(names)}. " if names else ""
    cases = zip(aligned["graph"], aligned["columns"], strict=True)
    profiled = [each for case in cases if (each := _counted(counters, *case)) is not None]
    return (
        f"- **Small graphs.** In {len(above) - len(aligned)} of the {len(above)} cases above "
        f"{MOST_LAUNCHES}, d is 17, 33, 50 or 100: rows of X begin inside a sector of 32 bytes and "
        f"touch more sectors than the limit counts, and loads are narrower than 16 bytes but for "
        f"100. {rest}{_profile(profiled)}"
    )


def _profile(counted: list[pd.Series]) -> str:
    if not counted:
        return "None was profiled."
    rows = pd.DataFrame(counted)
    busy = 100 * rows["active_cycles"] / rows["elapsed_cycles"]
    return (
        f"Nsight Compute, warm caches, {len(rows)} of them: an SM is busy for {busy.min():.0f} to "
        f"{busy.max():.0f} % of the launch's cycles, the L1 works at {rows['l1_pct'].min():.0f} to "
        f"{rows['l1_pct'].max():.0f} % of its throughput, the L2 at {rows['l2_pct'].min():.0f} to "
        f"{rows['l2_pct'].max():.0f} %. No unit is full; what is left is waiting: metadata, "
        "nonzeros and X are loads that depend on each other, and a launch begins and ends with "
        "idle SMs."
    )


def _why_peer(table: pd.DataFrame, name: str, wanted: float) -> str:
    found = over(table, name)
    if found is None or geometric_mean(found["speedup"]) >= wanted:
        return ""
    allowed = own(table, name)
    twins, bundled = (found["group"] != "bundled", found["group"] == "bundled")
    means = [geometric_mean(found.loc[rows, "speedup"]) for rows in (twins, bundled) if rows.any()]
    most = geometric_mean(allowed.loc[allowed["group"] == "bundled", "launches"])
    said = f"{means[0]:.2f} on the twins, {means[-1]:.2f} on the bundled graphs"
    return (
        f"- **{wanted} over `{name}`.** {said}, all small: there an empty launch plus the limit "
        f"would be {most:.2f} times as fast as it. Ours is no plain port: see "
        "[reproduction.md](reproduction.md)."
    )


def _why_half(half: pd.DataFrame | None) -> str:
    if half is None:
        return ""
    found = wide(halves(half))
    missed = found[found["speedup"] < OVER_FLOAT32]
    if missed.empty:
        return ""
    return (
        f"- **16-bit features.** Reached at every d ≥ 64 on {_graphs(found, missed, False)}; not "
        f"on {_graphs(found, missed, True)}. In the cases below {OVER_FLOAT32} the random-gather "
        f"limits themselves allow {geometric_mean(missed['limit']):.2f} in the mean: Y and the "
        "nonzeros stay as wide."
    )


def _graphs(found: pd.DataFrame, missed: pd.DataFrame, lost: bool) -> str:
    names = [g for g in dict.fromkeys(found["graph"]) if (g in set(missed["graph"])) == lost]
    return ", ".join(plain(name) for name in names) or "none"
