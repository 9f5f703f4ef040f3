"""Reasons why a kernel's memory traffic is above the par, in the learner's terms."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from accelviz.analysis.traffic import SECTOR_BYTES, requests
from accelviz.plots.draw import pluralize

_SITE = ["line", "kind", "space", "array"]
_WARP = 32


def reasons(traced: pd.DataFrame, exceeded: str) -> str:
    """Describe the line that costs most for each cost named in `exceeded`, as sentences.

    `traced` is the trace of a kernel, with an access of a lane in each row.
    """
    table = _with_ranges(traced)
    explain: dict[str, Callable[[pd.DataFrame], str]] = {
        "sectors": _sectors,
        "requests": _requests,
    }
    sentences = [explain[name](table) for name in exceeded.split(" and ")]
    return " ".join(dict.fromkeys(filter(None, sentences)))


def _with_ranges(traced: pd.DataFrame) -> pd.DataFrame:
    """Return the requests with their first byte, distinct elements, and needless sectors."""
    ends = traced.assign(end=traced["offset"] + traced["bytes"])
    groups = ends.groupby(["block", "warp", "step"], sort=False)
    ranges = groups.agg(
        first=("offset", "min"), end=("end", "max"), size=("bytes", "max"),
        elements=("offset", "nunique"),
    )  # fmt: skip
    table = requests(traced).merge(ranges, on=["block", "warp", "step"])
    table["useful"] = table["elements"] * table["size"]
    needed = -(-table["useful"] // SECTOR_BYTES)
    table["needless"] = (table["sectors"] - needed).where(table["space"] != "shared", 0)
    return table


def _costliest(table: pd.DataFrame, cost: pd.Series) -> pd.DataFrame:
    """Return the requests of the line and array with the largest sum of a cost, if above 0."""
    table = table.assign(cost=cost)[cost > 0]
    if table.empty:
        return table
    sums = table.groupby(_SITE, observed=True)["cost"].sum()
    site = pd.DataFrame([sums.idxmax()], columns=_SITE)
    return table.merge(site, on=_SITE)


def _sectors(table: pd.DataFrame) -> str:
    costliest = _costliest(table, table["needless"])
    array, again, times = _repeated(table)
    if again / SECTOR_BYTES > costliest["needless"].sum():
        return f"Your loads of {array} move about {times:.1f} times its bytes."
    if costliest.empty:
        return ""
    worst = costliest.loc[costliest["needless"].idxmax()]
    target = f"requests to {worst['array']} in line {worst['line']}"
    if worst["end"] - worst["first"] == worst["useful"]:
        start = int((costliest["first"] % SECTOR_BYTES).mode().iloc[0])
        more = pluralize(int(costliest["needless"].sum()), "sector")
        return f"Your {target} start {start} bytes into a sector, which takes {more} more."
    gap = (worst["end"] - worst["first"] - worst["size"]) / max(1, worst["elements"] - 1)
    enough = pluralize(int(worst["sectors"] - worst["needless"]), "sector")
    return (
        f"The lanes of your {target} are {gap:.0f} bytes apart, so that a request moves "
        f"{worst['sectors']} sectors, where {enough} can hold as much."
    )


def _requests(table: pd.DataFrame) -> str:
    conflicts = _costliest(table, (table["wavefronts"] - 1).clip(lower=0))
    collisions = _costliest(table, table["collisions"])
    idle = _costliest(table, (_WARP - table["lanes"]) * (table["lanes"] < _WARP // 2))
    if conflicts["wavefronts"].sum() > collisions["collisions"].sum():
        worst = conflicts.loc[conflicts["wavefronts"].idxmax()]
        return (
            f"In line {worst['line']}, {worst['wavefronts']} lanes want different elements of one "
            f"bank of {worst['array']}, so that a request takes {worst['wavefronts']} passes."
        )
    if len(collisions):
        worst = collisions.loc[collisions["collisions"].idxmax()]
        return (
            f"In line {worst['line']}, up to {worst['collisions'] + 1} lanes of a warp update the "
            f"same elements of {worst['array']} one after the other."
        )
    if len(idle):
        worst = idle.iloc[0]
        lanes = pluralize(round(float(idle["lanes"].mean())), "lane")
        count = pluralize(len(idle), "request")
        return f"Line {worst['line']} makes {count} to {worst['array']} with about {lanes} each."
    array, again, times = _repeated(table)
    return f"Your loads of {array} move about {times:.1f} times its bytes." if again else ""


def _repeated(table: pd.DataFrame) -> tuple[str, int, float]:
    """Return the array of which blocks load most bytes again, these bytes, and loaded over all."""
    loads = table[(table["kind"] == "load") & (table["space"] != "shared")]
    by_block = loads.groupby(["array", "block"], observed=True)
    sums = by_block.agg(loaded=("useful", "sum"), first=("first", "min"), end=("end", "max"))
    sums = sums.assign(extent=sums["end"] - sums["first"]).groupby("array", observed=True).sum()
    again = sums["loaded"] - sums["extent"]
    if again.empty or again.max() <= 0:
        return "", 0, 1.0
    array = again.idxmax()
    times = float(sums["loaded"][array] / sums["extent"][array])
    return str(array), int(again[array]), times
