"""What accuracy costs: errors of products against their times."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from accelviz.errors import ArgumentError
from accelviz.plots.drawing import Look, new_axes
from accelviz.plots.labels import label_points, write_title
from accelviz.plots.style import GREY, strategy_colours, tell, tidy

#: What products are worked out in, as `dtype` has it, and its marker.
_KINDS = {"float32": "o", "3xtf32": "D", "tf32": "^", "float16": "v"}
_CASE = ("graph", "order", "operation", "columns")


def error_against_speed(
    table: pd.DataFrame, *, over: str = "lane_groups", ax: Axes | None = None
) -> Axes:
    """Draw the error of each strategy and arithmetic against its speed.

    Right is faster, below is more exact. A point is the geometric mean of the ratio of times over
    the cases of the table, and the largest error among them.

    Parameters
    ----------
    table : DataFrame
        With the columns graph, order, operation, columns, strategy, dtype, median_us and error, as
        benchmarks/measure/tensor_modes.py writes them. Of a strategy that has several rows for a
        case, the fastest counts.
    over : str
        The strategy in float32 whose time stands for 1.
    ax : see `accelviz.plots`

    Raises
    ------
    ArgumentError
        If that strategy is not in the table.
    """
    case = [name for name in _CASE if name in table]
    table = table.fillna({"order": ""})  # as a file has graphs in the order they come in
    best = table.loc[table.groupby([*case, "strategy", "dtype"])["median_us"].idxmin()]
    ours = best[(best["strategy"] == over) & (best["dtype"] == "float32")]
    if ours.empty:
        raise ArgumentError("over", f"{over!r} in float32 is not in the table", "one that is")
    with_times = best.merge(ours[[*case, "median_us"]], on=case, suffixes=("", "_over"))
    ratio = with_times["median_us_over"] / with_times["median_us"]
    with_times = with_times.assign(log=np.log2(ratio))
    found = with_times.groupby(["strategy", "dtype"]).agg({"log": "mean", "error": "max"})
    found["speed"] = 2 ** found.pop("log")
    ax = new_axes(ax, figsize=(7.5, 4.2))
    colours = strategy_colours(dict.fromkeys(found.index.get_level_values("strategy")))
    spots = []
    for (strategy, dtype), point in found.iterrows():
        look: Look = {"color": colours[strategy], "marker": _KINDS[dtype], "markersize": 8}
        ax.plot(point["speed"], point["error"], **look)
        spots.append((point["speed"], point["error"], f"{strategy}, {dtype}", colours[strategy]))
    ax.axvline(1, color=GREY, linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlabel=f"times as fast as {over} in float32")
    ax.set_ylabel("largest error over the sum of |a x|")
    ticks = [t for t in (0.05, 0.1, 0.2, 0.5, 1, 2, 4) if t / 2 <= found["speed"].max()]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.set(xlim=(found["speed"].min() / 1.3, found["speed"].max() * 1.3))
    ax.set(ylim=(found["error"].min() / 3, found["error"].max() * 3))
    label_points(ax, spots)
    cases = len(ours)
    write_title(ax, f"Error against speed, {cases} {'case' if cases == 1 else 'cases'}")
    tell(
        ax,
        "Speed and largest error: "
        + "; ".join(
            f"{s}, {d}: {p['speed']:.2f}, {p['error']:.1e}" for (s, d), p in found.iterrows()
        )
        + ".",
    )
    return tidy(ax)
