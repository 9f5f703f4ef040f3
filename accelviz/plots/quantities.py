"""Names and number formats of the statistics and parameters of a sweep."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib import ticker
from matplotlib.axis import Axis

from accelviz.strategies import REGISTRY

#: Statistic to its name in a sentence and its kind.
_STATISTICS = {
    "blocks": ("blocks launched", "count"),
    "warps": ("warps launched", "count"),
    "busy_warps": ("warps with work", "count"),
    "idle_warps": ("launched warps without work", "share"),
    "idle_share": ("idle share", "share"),
    "warp_nzs_mean": ("mean nonzeros of a warp", "number"),
    "warp_nzs_q1": ("lower quartile of the nonzeros of a warp", "number"),
    "warp_nzs_median": ("median nonzeros of a warp", "number"),
    "warp_nzs_q3": ("upper quartile of the nonzeros of a warp", "number"),
    "largest": ("nonzeros of the busiest warp", "count"),
    "imbalance": ("imbalance", "ratio"),
    "metadata_bytes": ("bytes of metadata", "count"),
    "rows_shared": ("rows shared by warps of a block", "count"),
    "rows_cut": ("rows split between blocks", "count"),
    "shared_atomics": ("floats added by atomics in shared memory", "count"),
    "global_atomics": ("floats added by atomics in global memory", "count"),
}
#: Statistics whose axis label differs from their name.
_AXIS_LABELS = {
    "idle_share": "idle share: warp time idle until\nthe block's busiest warp ends",
    "imbalance": "imbalance: nonzeros of the busiest warp\nover the mean of warps with work",
}


def statistic_name(statistic: str) -> str:
    """Return the name of a statistic in a sentence; an unknown statistic is returned as is."""
    return _STATISTICS.get(statistic, (statistic, ""))[0]


def statistic_label(statistic: str) -> str:
    """Return the axis label of a statistic."""
    return _AXIS_LABELS.get(statistic, statistic_name(statistic))


def statistic_kind(statistic: str) -> str:
    """Return the kind of a statistic: "share", "count", "ratio" or "number"."""
    return _STATISTICS.get(statistic, ("", "number"))[1]


def parameter_label(parameter: str) -> str:
    """Return the axis label of a parameter: its name, and its meaning if known."""
    settings = (strategy.parameters.get(parameter) for strategy in REGISTRY)
    meaning = next((setting.meaning for setting in settings if setting is not None), "")
    meaning = "columns of X" if parameter == "n_cols" else meaning.partition(";")[0]
    return f"{parameter} ({meaning})" if meaning else parameter


def writer(statistic: str) -> Callable[[float], str]:
    """Return the function that formats a statistic's values."""
    return _WRITERS[statistic_kind(statistic)]


def share_text(value: float) -> str:
    """Format a share: "12.3 %", "0.02 %", "0 %"."""
    percent = 100 * value
    if percent == 0:
        return "0 %"
    return f"{percent:.1f} %" if abs(percent) >= 0.05 else f"{percent:.1g} %"


def percent_text(share: float) -> str:
    """Format a share with about two digits: "38 %", "9.8 %", "under 0.1 %"."""
    percent = 100 * share
    if percent == 0 or percent >= 9.95:
        # 99.9 % must not become 100 %.
        return f"{percent:.1f} %" if 99 < percent < 99.95 else f"{percent:.0f} %"
    return f"{percent:.1f} %" if percent >= 0.05 else "under 0.1 %"


def count_text(value: float) -> str:
    """Format a count: "12,345", "1.23 M"."""
    for size, unit in ((1e9, " G"), (1e6, " M")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:,.0f}"


def mark_axis(axis: Axis, statistic: str, low: float, high: float, *, log: bool) -> None:
    """Set ticks and tick format for a statistic's values from `low` to `high`."""
    kind = statistic_kind(statistic)
    if log:
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,)))
    else:
        steps = [1, 2, 2.5, 5, 10]
        axis.set_major_locator(ticker.MaxNLocator(7, integer=kind == "count", steps=steps))
    texts = {"share": "{:.4g} %", "ratio": "{:g}", "number": "{:,.5g}"}
    text, scale, write = texts.get(kind), 100 if kind == "share" else 1, writer(statistic)
    axis.set_major_formatter(lambda value, _: text.format(scale * value) if text else write(value))
    axis.set_minor_formatter(ticker.NullFormatter())


_WRITERS: dict[str, Callable[[float], str]] = {
    "share": share_text,
    "count": count_text,
    "ratio": "{:.2f}".format,
    "number": lambda value: f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}",
}
