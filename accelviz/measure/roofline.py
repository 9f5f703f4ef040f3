"""Roofline: work per byte against work per second, with the bytes by a stated model.

Of an SpMM the work is known and the bytes are not: how often a row of X is read again depends on
the caches. So a point needs a model of them. `MODELS` has two, those of `measure.limits`.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from accelviz.errors import ArgumentError
from accelviz.measure.comparison import CELL, Cases, geometric_mean, labelled, latest
from accelviz.plans.operation import FLOAT_BYTES

#: Bytes models, and what each counts.
MODELS: Mapping[str, str] = {
    "compulsory": "every input is read once and every output written once",
    "gather": "a row of X is read anew for each nonzero, the rest once",
}
#: A launch that does nothing takes this long or less on the GPUs of the recorded tables, in
#: microseconds. A recorded limit that is no longer is the launch and not the bytes.
LAUNCH_US = 3.0
_LIMITS = {"compulsory": "floor_us", "gather": "gather_limit_us"}
_NEEDED = ("rows", "nonzeros", "copy_gb_per_s", "gather_gb_per_s", *_LIMITS.values())


def roofline_table(
    table: pd.DataFrame,
    strategies: Cases | None = None,
    *,
    model: str = "compulsory",
    state: str = "warm",
    peak_gflops: float | None = None,
) -> pd.DataFrame:
    """Work out where measurements lie in a roofline.

    Parameters
    ----------
    table : DataFrame
        Results of one machine, with the columns of `records.COLUMNS`.
    strategies : str, iterable of str, or mapping of str to str, optional
        Cases (see `measure.comparison`), or names for them; all if not given.
    model : {"compulsory", "gather"}
        How bytes are counted; see `MODELS`.
    state : {"warm", "cold"}
        Which times.
    peak_gflops : float, optional
        Of the machine in float32, 10^9 flops a second. It is not measured, so nothing is limited by
        it unless it is given.

    Returns
    -------
    DataFrame
        A row for each strategy, graph and column count, of several runs the latest, with

        - `flops`: 2 x nonzeros x columns, a multiplication and an addition each;
        - `bytes` by the model: compulsory ones from the recorded floor and copy bandwidth, gathered
          ones 4 x columns x nonzeros beside the matrix (8 bytes a nonzero or row pointer)
          and the result;
        - `intensity`: flops per byte;
        - `gflops`: achieved, 10^9 flops a second;
        - `copy_roof_gflops`, `gather_roof_gflops`: what the bytes at copy speed, and the
          random-gather limit, allow;
        - `roof_gflops`: that of the two which belongs to the model, at most `peak_gflops`, and
          `share`: achieved of it.
          Above 1 is possible with "gather", where locality serves a row from a cache.

        `attrs["left_out"]` counts the rows left out, whose limit is not longer than an empty launch
        (`LAUNCH_US`) and so says nothing of their bytes.

    Raises
    ------
    ArgumentError
        If the model is unknown, there is no such time, the table has no limits or more than one
        machine, or a case is not there or is not one setting.
    """
    if model not in MODELS:
        raise ArgumentError("model", f"got {model!r}", " or ".join(map(repr, MODELS)))
    missing = [name for name in (*_NEEDED, *CELL) if name not in table]
    if missing:
        raise ArgumentError("table", f"it has no {', '.join(missing)}", "a table of `benchmark`")
    rows = latest(labelled(table[table["state"] == state], strategies))
    if peak_gflops is not None and not peak_gflops > 0:
        raise ArgumentError("peak_gflops", f"got {peak_gflops}", "a positive number")
    if rows.empty:
        raise ArgumentError("table", f"no {state} time in it", "one run")
    if rows[[*_LIMITS.values()]].isna().any(axis=None):
        raise ArgumentError("table", "some times have no limits", "times of a GPU, which has them")
    machines = rows[["hardware", "device"]].drop_duplicates()
    if len(machines) > 1:
        names = ", ".join(machines["hardware"].astype(str))
        raise ArgumentError("table", f"more than one machine: {names}", "rows of one of them")
    large = rows[rows[_LIMITS[model]] > LAUNCH_US].reset_index(drop=True)
    if model == "compulsory":
        moved = large["floor_us"] * large["copy_gb_per_s"] * 1e3
    else:
        matrix = 2 * FLOAT_BYTES * (large["nonzeros"] + large["rows"] + 1)
        moved = matrix + FLOAT_BYTES * large["columns"] * (large["nonzeros"] + large["rows"])
    flops = 2.0 * large["nonzeros"] * large["columns"]
    copy_roof = flops / moved * large["copy_gb_per_s"]
    gather_roof = flops / large["gather_limit_us"] / 1e3
    roof = copy_roof if model == "compulsory" else gather_roof
    if peak_gflops is not None:
        roof = roof.clip(upper=peak_gflops)
    gflops = flops / large["median_us"] / 1e3
    columns = [*CELL, "graph_kind", "strategy", "parameters", "rows", "nonzeros", "median_us"]
    result = large[[*columns, "copy_gb_per_s", "gather_gb_per_s"]].assign(
        flops=flops,
        bytes=moved,
        intensity=flops / moved,
        gflops=gflops,
        copy_roof_gflops=copy_roof,
        gather_roof_gflops=gather_roof,
        roof_gflops=roof,
        share=gflops / roof,
    )
    result.attrs["left_out"] = len(rows) - len(large)
    return result


def shares(table: pd.DataFrame) -> pd.DataFrame:
    """Summarize which part of the roof each strategy reaches.

    Parameters
    ----------
    table : DataFrame
        As `roofline_table` gives it.

    Returns
    -------
    DataFrame
        A row for each strategy, its index, in the order of the table: `share` (geometric mean over
        the cases), `lowest`, `highest`, `cases`.
    """
    groups = table.groupby("strategy", sort=False)["share"]
    return groups.agg(share=geometric_mean, lowest="min", highest="max", cases="size")
