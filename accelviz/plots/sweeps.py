"""Pictures of sweeps: a partition's statistic against parameters, as lines or as a heat map.

A sweep is the table of `accelviz.sweep`; `analysis.settings` splits it into lines and grids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from accelviz.analysis import settings
from accelviz.analysis.settings import PUBLISHED, Line
from accelviz.plots import draw, quantities
from accelviz.plots.style import (
    BLACK,
    CYCLE,
    GREY,
    GRID,
    HALO,
    IDLE,
    VERMILLION,
    Look,
    add_alt,
    strategy_colours,
)

_COLOURS = (*CYCLE, BLACK, GREY)
#: Largest number of labels at the ends of lines, and of ticks for single values.
_MAX_LABELS, _MAX_TICKS = 12, 16
#: Largest shape (down, across) of a heat map with a number in each cell.
_MAX_NUMBERED = (8, 16)
#: A highlighted setting: its record, label, marker and colour.
Mark = tuple[pd.Series, str, str, str]


def sweep_lines(
    table: pd.DataFrame,
    y: str = "idle_share",
    x: str = "max_block_warps",
    *,
    published: Mapping[str, Any] | None = PUBLISHED,
    ax: Axes | None = None,
) -> Axes:
    """Draw a statistic of a sweep against a parameter, one line per combination of the others.

    The lowest value is marked if smaller values are better. The axis of counts and ratios is
    logarithmic if they span more than a factor of 50.

    Parameters
    ----------
    table : DataFrame
        From `accelviz.sweep`.
    y : str
        Name of the statistic.
    x : str
        Name of the parameter. A strategy without this parameter is a dashed line.
    published : mapping of str to value, optional
        Setting to mark; the default is the paper's. None draws no mark.

    Raises
    ------
    ArgumentError
        If a column is missing, the table does not vary along `x`, or two records of a line have the
        same x.
    """
    settings.checked_sweep(table, y, x)
    curves = settings.lines(table, x)
    ax = draw.new_axes(ax, figsize=(9, 4.6))
    position = _x_axis(ax, table[x])
    values = _y_axis(ax, y, table[y])
    colours = _line_colours(curves)
    marks, title = _marks(table, y, published)
    marked_records = {record.name for record, *_ in marks}
    for line, colour in zip(curves, colours, strict=True):
        heights = line.rows[y].to_numpy(float, na_value=np.nan)
        if line.constant:
            ax.axhline(heights[0], color=colour, lw=1.6, ls="--", zorder=2)
            continue
        # If there are many lines, emphasize those with a marked setting.
        emphasized = len(curves) <= 4 or not marked_records.isdisjoint(line.rows.index)
        style: Look = {"lw": 2.2, "ms": 4.5} if emphasized else {"lw": 1.1, "ms": 2.5}
        style |= {"zorder": 2 + emphasized, "marker": "o" if len(heights) <= 40 else ""}
        ax.plot([position[value] for value in line.rows[x]], heights, color=colour, **style)
    unknown = [_line_name(line) or y for line in curves if not line.rows[y].notna().any()]
    note = f"\nnot shown, as degrees do not determine it: {', '.join(unknown)}" if unknown else ""
    ax.set(xlabel=quantities.parameter_label(x) + note, ylabel=quantities.statistic_label(y))
    ax.margins(x=0.02)
    ax.grid(axis="y", color=GRID, lw=0.8, zorder=0)
    ax.set_axisbelow(True)
    if len(values):
        _name_lines(ax, curves, colours, y)
    for record, name, marker, colour in marks:
        mark_x = position[record[x]] if pd.notna(record[x]) else ax.get_xlim()[1]
        look: Look = {"ms": 8, "mfc": "white", "mec": colour, "mew": 1.8}
        if marker == "*":
            look = {"ms": 14, "mfc": colour, "mec": "white", "mew": 1.0}
        ax.plot([mark_x], [record[y]], marker, ls="", label=name, zorder=5, clip_on=False, **look)
    if marks:
        look = {"labelcolor": [mark[3] for mark in marks], **draw.LEGEND_ABOVE}
        ax.legend(ncols=len(marks), prop={"weight": "bold", "size": 9}, **look)
    draw.write_title(ax, title, pad=26 if marks else None)
    write = quantities.writer(y)
    extent = f"{write(values.min())} to {write(values.max())}" if len(values) else "no value"
    subject = f"{quantities.statistic_name(y)} against {x}"
    return draw.finish(ax, f"Lines of {subject}, {len(curves)} in all, {extent}. {title}.")


def sweep_heatmap(
    table: pd.DataFrame,
    value: str = "idle_share",
    *,
    x: str = "max_block_warps",
    y: str = "max_warp_nzs",
    published: Mapping[str, Any] | None = PUBLISHED,
    ax: Axes | None = None,
) -> Axes:
    """Draw a statistic of a sweep over two parameters as a heat map.

    Large values are dark. A cell without a value is light grey. The cells of the best and of the
    published setting are outlined.

    Parameters
    ----------
    table, published
        As of `sweep_lines`.
    value : str
        Name of the statistic. The cells contain numbers if there are at most 16 x 8.
    x, y : str
        Parameters across and down. The picture names strategies that lack one of them.

    Raises
    ------
    ArgumentError
        If a column is missing, the table does not vary along `x` or `y`, or two records have the
        same values of both.
    """
    settings.checked_sweep(table, value, x, y)
    statistic = settings.grid(table, value, x, y)
    down, across = statistic.shape
    size = (min(10.0, max(6.0, 2.6 + 0.5 * across)), min(8.0, max(3.0, 1.5 + 0.36 * down)))
    ax = draw.new_axes(ax, figsize=size)
    colours = colormaps["viridis_r"].with_extremes(bad=IDLE)
    low, high, log = _span(value, pd.Series(statistic.to_numpy().ravel()))
    norm = LogNorm(low, high) if log else Normalize(low, high if high > low else low + 1)
    image = draw.cells(ax, statistic, colours, norm)
    for axis, values in ((ax.xaxis, statistic.columns), (ax.yaxis, statistic.index)):
        step = -(-len(values) // 40)
        axis.set_ticks(range(0, len(values), step), map(str, values[::step]), fontsize=9)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    label = quantities.parameter_label(x)
    if left_out := statistic.attrs["left_out"]:
        label += f"\nnot shown, without {x} or {y}: {', '.join(left_out)}"
    ax.set(xlabel=label, ylabel=quantities.parameter_label(y).replace(" (", "\n("))
    marks, title = _marks(table[table[x].notna() & table[y].notna()], value, published)
    draw.write_title(ax, title)
    if statistic.notna().any(axis=None):
        bar = draw.colour_bar(ax, image, quantities.statistic_label(value))
        quantities.mark_axis(bar.ax.yaxis, value, *image.get_clim(), log=log)
        bar.ax.minorticks_off()
        bar.outline.set_visible(False)
        is_numbered = down <= _MAX_NUMBERED[0] and across <= _MAX_NUMBERED[1]
        for (i, j), number in np.ndenumerate(statistic.to_numpy()):
            if is_numbered and np.isfinite(number):
                text = quantities.writer(value)(number).removesuffix(" %")  # in the bar's label
                draw.write_centred(ax, j, i, text, colours(norm(number)), 8.5)
        _outline(ax, statistic, x, y, marks, is_numbered)
    axes = f"{x} ({across} values) and {y} ({down})"
    add_alt(ax, f"Heat map of {quantities.statistic_name(value)} over {axes}. {title}.")
    return ax


def _marks(
    table: pd.DataFrame, value: str, published: Mapping[str, Any] | None
) -> tuple[list[Mark], str]:
    """Return the published and the best setting of a sweep, and a title that compares them."""
    write, names = quantities.writer(value), settings.distinguishing(table)
    best, equal = settings.best(table, value)
    reference = settings.at_setting(table, value, published)
    all_equal = 0 < equal == table[value].count() - 1

    def text(record: pd.Series) -> str:
        return write(float(record[value]))

    marks: list[Mark] = []
    if reference is not None:
        marks.append((reference, f"published: {text(reference)}", "D", BLACK))
    if best is not None and not all_equal:
        marks.append((best, f"best: {text(best)}", "*", VERMILLION))
    if len(marks) == 2 and marks[0][0].name == marks[1][0].name:
        marks = [(marks[1][0], f"best, published: {text(marks[1][0])}", "*", VERMILLION)]
    graph = table.attrs.get("graph", "degrees")
    subject = quantities.statistic_name(value) + (f" of {graph}" if graph != "degrees" else "")
    values, at_reference = table[value].dropna(), ""
    if reference is not None:
        at_reference = f"{text(reference)} at the published {_setting_text(reference, names)}"
    if values.empty:
        sentence = "the degrees alone do not determine it"
    elif best is not None and reference is not None and best[value] == reference[value]:
        sentence, at_reference = f"{at_reference}, no setting here is lower", ""
    elif all_equal and best is not None:
        sentence, at_reference = f"{text(best)} at every setting", ""
    elif best is not None:
        others = f" and {equal} other setting{'s' * (equal > 1)}" if equal else ""
        sentence = f"{text(best)} at {_setting_text(best, names)}{others}"
    else:
        sentence = " to ".join(dict.fromkeys(map(write, (values.min(), values.max()))))
    return marks, f"{subject}: {sentence}" + f", {at_reference}" * bool(at_reference)


def _setting_text(record: pd.Series, names: Sequence[str]) -> str:
    """Write a setting, such as "4 x 8" for the block-level partition's two parameters."""
    names = [name for name in names if pd.notna(record[name])]
    pair, parts = ["max_block_warps", "max_warp_nzs"], []
    if set(pair) & set(names) and all(name in record and pd.notna(record[name]) for name in pair):
        parts = [" x ".join(str(record[name]) for name in pair)]
        names = [name for name in names if name not in pair]
    text = ", ".join(parts + [f"{name} {record[name]}" for name in names if name != "strategy"])
    if "strategy" not in names:
        return text
    return f"{text} ({record['strategy']})" if text else str(record["strategy"])


def _x_axis(ax: Axes, values: pd.Series) -> dict[Any, float]:
    """Set the scale and ticks of a parameter's axis, and return the position of each value.

    Texts, and numbers that are not all positive, are equally spaced. Positive numbers have a
    logarithmic scale if their steps grow.
    """
    distinct = sorted(values.dropna().unique())
    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if not is_number or distinct[0] <= 0:
        ax.set_xticks(range(len(distinct)), list(map(str, distinct)))
        return {value: i for i, value in enumerate(distinct)}
    steps = np.diff(np.array(distinct, dtype=np.float64))
    if steps.max() > 2 * steps.min():
        ax.set_xscale("log", base=2)
    if len(distinct) > _MAX_TICKS:
        draw.count_ticks(ax.xaxis, most=10)
    else:
        ax.set_xticks(distinct, [f"{value:g}" for value in distinct])
    ax.xaxis.set_minor_locator(NullLocator())
    return {value: float(value) for value in distinct}


def _span(statistic: str, values: pd.Series) -> tuple[float, float, bool]:
    """Return the smallest and largest value, and whether their scale is logarithmic."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    may_be_log = quantities.statistic_kind(statistic) in ("count", "ratio")
    return low, high, may_be_log and 0 < 50 * low < high


def _y_axis(ax: Axes, statistic: str, values: pd.Series) -> pd.Series:
    """Set the scale and ticks of a statistic's axis, and return its values without NaN."""
    values = values.dropna().astype(float)
    if not len(values):
        draw.label_empty(ax, "not determined")
        return values
    low, high, log = _span(statistic, values)
    if log:
        margin = max(high / low, 1.5) ** 0.1
        ax.set(yscale="log", ylim=(low / margin, high * margin))
    else:
        ax.set_ylim(min(0.0, low), (high or 1) * 1.12)
    quantities.mark_axis(ax.yaxis, statistic, *ax.get_ylim(), log=log)
    return values


def _line_colours(curves: Sequence[Line]) -> list[Any]:
    """Return shades if one integer parameter distinguishes the lines, else distinct colours."""
    varied = [line for line in curves if not line.constant]
    keys = [(name, value) for line in varied for name, value in line.key.items()]
    one_parameter = len(keys) == len(varied) > 1 == len({name for name, _ in keys})
    if one_parameter and all(isinstance(value, int | np.integer) for _, value in keys):
        rank = np.argsort(np.argsort([value for _, value in keys]))
        shades = iter(colormaps["viridis"](np.linspace(0, 0.85, len(varied)))[rank])
        return [GREY if line.constant else next(shades) for line in curves]
    if curves and all("strategy" in line.key for line in curves):
        return list(strategy_colours(map(_line_name, curves)).values())
    return [_COLOURS[i % len(_COLOURS)] for i in range(len(curves))]


def _name_lines(ax: Axes, curves: Sequence[Line], colours: Sequence[Any], y: str) -> None:
    """Label lines at their right ends; of many lines, only every k-th and the last."""
    named = [(line, colour) for line, colour in zip(curves, colours, strict=True) if line.key]
    step = -(-len(named) // _MAX_LABELS)
    named = [pair for i, pair in enumerate(named) if i % step == 0 or i == len(named) - 1]
    ends = [(float(line.rows[y].iloc[-1]), _line_name(line), colour) for line, colour in named]
    names = list(dict.fromkeys(name for line, _ in named for name in line.key))
    heading = quantities.parameter_label(names[0]).replace(" (", "\n(") if len(names) == 1 else ""
    draw.label_ends(ax, ends, "" if names == ["strategy"] else heading)


def _line_name(line: Line) -> str:
    has_several = len(line.key) > 1
    return ", ".join(
        f"{name} {value}" if has_several and name != "strategy" else str(value)
        for name, value in line.key.items()
    )


def _outline(
    ax: Axes, statistic: pd.DataFrame, x: str, y: str, marks: Sequence[Mark], is_numbered: bool
) -> None:
    down, across = statistic.shape
    for record, text, marker, colour in marks:
        j, i = statistic.columns.get_loc(record[x]), statistic.index.get_loc(record[y])
        for width, edge in ((4.5, "white"), (2.2, colour)):
            line: Look = {"fill": False, "ec": edge, "lw": width, "zorder": 4, "clip_on": False}
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **line))
        # The best setting is labelled above its cell, the published one below, within the map.
        above = i > 0 if marker == "*" else i == down - 1
        side = "left" if j < across / 6 else "right" if j > across * 5 / 6 else "center"
        name, size = (text.partition(":")[0], 8) if is_numbered else (text, 9)
        xy = {"left": j - 0.5, "right": j + 0.5, "center": j}[side], i - 0.5 if above else i + 0.5
        look: Look = {"fontsize": size, "fontweight": "bold", "color": colour, "zorder": 6}
        look |= {"ha": side, "va": "bottom" if above else "top", "path_effects": HALO}
        draw.annotate(ax, name, xy, (0, 2 if above else -2), annotation_clip=False, **look)
