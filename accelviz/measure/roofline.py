"""Roofline model of SpMM measurements: arithmetic intensity, achieved GFLOP/s, and roofs.

The number of floating-point operations of an SpMM is known. The number of bytes depends on how
often caches serve a row of X, so it is computed by one of two models, `MODELS`.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from accelviz.errors import ArgumentError
from accelviz.measure.comparison import CELL, Cases, geometric_mean, labelled, latest
from accelviz.plans.operation import FLOAT_BYTES

#: Models of the bytes moved, as in `measure.limits`, and what they count.
MODELS: Mapping[str, str] = {
    "compulsory": "every input is read once and every output written once",
    "gather": "a row of X is read anew for each nonzero, the rest once",
}
#: Largest time of an empty launch on the recorded GPUs, in microseconds. A recorded limit of at
#: most this time is that of the launch, not of the bytes.
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
    """Compute the coordinates and roofs of measurements in the roofline model.

    Parameters
    ----------
    table : DataFrame
        Results of one machine, with the columns of `records.COLUMNS`.
    strategies : str, iterable of str, or mapping of str to str, optional
        Cases (see `measure.comparison`), or a mapping of names to cases. The default is all
        strategies.
    model : {"compulsory", "gather"}
        Model of the bytes moved; see `MODELS`.
    state : {"warm", "cold"}
        State of the cache.
    peak_gflops : float, optional
        Peak of the machine in float32, in GFLOP/s. It is not measured; if it is not given, only
        bandwidths limit the roof.

    Returns
    -------
    DataFrame
        One record per strategy, graph and column count, from the latest run, with

        - `flops`: 2 x nonzeros x columns;
        - `bytes`: "compulsory" ones follow from the recorded floor and copy bandwidth; "gather"
          ones are 4 x columns x nonzeros, plus the matrix (8 bytes per nonzero or row pointer) and
          the result;
        - `intensity`: flops per byte;
        - `gflops`: achieved GFLOP/s;
        - `copy_roof_gflops`, `gather_roof_gflops`: GFLOP/s at copy bandwidth, and at the
          random-gather limit;
        - `roof_gflops`: the roof of the model, at most `peak_gflops`;
        - `share`: achieved share of this roof. It may exceed 1 with "gather", if caches serve rows
          of X.

        `attrs["left_out"]` is the number of omitted records, whose limit is at most that of an
        empty launch (`LAUNCH_US`).

    Raises
    ------
    ArgumentError
        If the model is unknown, the table has no such time, no limits or several machines, or a
        case is missing or matches several settings.
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
    selected = rows[rows[_LIMITS[model]] > LAUNCH_US].reset_index(drop=True)
    if model == "compulsory":
        bytes_moved = selected["floor_us"] * selected["copy_gb_per_s"] * 1e3
    else:
        matrix = 2 * FLOAT_BYTES * (selected["nonzeros"] + selected["rows"] + 1)
        feature_rows = selected["nonzeros"] + selected["rows"]
        bytes_moved = matrix + FLOAT_BYTES * selected["columns"] * feature_rows
    flops = 2.0 * selected["nonzeros"] * selected["columns"]
    copy_roof = flops / bytes_moved * selected["copy_gb_per_s"]
    gather_roof = flops / selected["gather_limit_us"] / 1e3
    roof = copy_roof if model == "compulsory" else gather_roof
    if peak_gflops is not None:
        roof = roof.clip(upper=peak_gflops)
    gflops = flops / selected["median_us"] / 1e3
    columns = [*CELL, "graph_kind", "strategy", "parameters", "rows", "nonzeros", "median_us"]
    result = selected[[*columns, "copy_gb_per_s", "gather_gb_per_s"]].assign(
        flops=flops,
        bytes=bytes_moved,
        intensity=flops / bytes_moved,
        gflops=gflops,
        copy_roof_gflops=copy_roof,
        gather_roof_gflops=gather_roof,
        roof_gflops=roof,
        share=gflops / roof,
    )
    result.attrs["left_out"] = len(rows) - len(selected)
    return result


def shares(table: pd.DataFrame) -> pd.DataFrame:
    """Summarize the share of the roof that each strategy achieves.

    Parameters
    ----------
    table : DataFrame
        From `roofline_table`.

    Returns
    -------
    DataFrame
        One record per strategy, which is the index, in the order of the table: `share` (geometric
        mean over the cases), `lowest`, `highest`, `cases` (their number).
    """
    groups = table.groupby("strategy", sort=False)["share"]
    return groups.agg(share=geometric_mean, lowest="min", highest="max", cases="size")
