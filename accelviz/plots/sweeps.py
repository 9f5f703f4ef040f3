"""Sweeps: what a statistic of the partition does as its parameters change."""

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
    GREY,
    GRID,
    HALO,
    IDLE,
    TURNS,
    VERMILLION,
    Look,
    strategy_colours,
    tell,
)

_COLOURS = (*TURNS, BLACK, GREY)
#: Most labels at the ends of lines; most cells down and across with their value in them.
_LABELS, _WRITTEN = 12, (8, 16)
#: Most values that each have a tick.
_TICKS = 16
#: A row to point out, its name, marker and colour.
Mark = tuple[pd.Series, str, str, str]


def sweep_lines(
    table: pd.DataFrame,
    y: str = "idle_share",
    x: str = "max_block_warps",
    *,
    published: Mapping[str, Any] | None = PUBLISHED,
    ax: Axes | None = None,
) -> Axes:
    """Draw a statistic of a sweep against a parameter, a line for each value of the others.

    The lowest value is marked where less is better. Counts that differ by more than a factor of 50
    have a logarithmic axis.

    Parameters
    ----------
    table : DataFrame
        As `accelviz.sweep` returns it: parameters, then statistics.
    y : str
        The statistic.
    x : str
        The parameter. A strategy that has none of that name is a dashed line.
    published : mapping of str to value, optional
        The setting to mark; the paper's if not given. With None there is no mark.

    Raises
    ------
    ArgumentError
        If a column is missing, the table does not vary along `x`, or rows of one line have the same
        x.
    """
    settings.checked_sweep(table, y, x)
    curves = settings.lines(table, x)
    ax = draw.new_axes(ax, figsize=(9, 4.6))
    position = _x_axis(ax, table[x])
    values = _y_axis(ax, y, table[y])
    colours = _line_colours(curves)
    marks, title = _marks(table, y, published)
    pointed = {row.name for row, *_ in marks}
    for line, colour in zip(curves, colours, strict=True):
        heights = line.rows[y].to_numpy(float, na_value=np.nan)
        if line.constant:
            ax.axhline(heights[0], color=colour, lw=1.6, ls="--", zorder=2)
            continue
        # Of many lines those stand out that a marked setting is on.
        main = len(curves) <= 4 or not pointed.isdisjoint(line.rows.index)
        style: Look = {"lw": 2.2, "ms": 4.5} if main else {"lw": 1.1, "ms": 2.5}
        style |= {"zorder": 2 + main, "marker": "o" if len(heights) <= 40 else ""}
        ax.plot([position[value] for value in line.rows[x]], heights, color=colour, **style)
    unknown = [_words(line) or y for line in curves if not line.rows[y].notna().any()]
    note = f"\nnot shown, as degrees do not determine it: {', '.join(unknown)}" if unknown else ""
    ax.set(xlabel=quantities.parameter_label(x) + note, ylabel=quantities.statistic_label(y))
    ax.margins(x=0.02)
    ax.grid(axis="y", color=GRID, lw=0.8, zorder=0)
    ax.set_axisbelow(True)
    if len(values):
        _name_lines(ax, curves, colours, y)
    for row, name, marker, colour in marks:
        at = position[row[x]] if pd.notna(row[x]) else ax.get_xlim()[1]
        look: Look = {"ms": 8, "mfc": "white", "mec": colour, "mew": 1.8}
        if marker == "*":
            look = {"ms": 14, "mfc": colour, "mec": "white", "mew": 1.0}
        ax.plot([at], [row[y]], marker, ls="", label=name, zorder=5, clip_on=False, **look)
    if marks:  # where it covers no line
        ax.legend(prop={"weight": "bold", "size": 9}, labelcolor=[mark[3] for mark in marks])
    write = quantities.writer(y)
    reach = f"{write(values.min())} to {write(values.max())}" if len(values) else "no value"
    subject = f"{quantities.statistic_name(y)} against {x}"
    return draw.finish(ax, f"Lines of {subject}, {len(curves)} in all, {reach}. {title}.", title)


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

    Dark is much. A cell without a value is light grey.

    Parameters
    ----------
    table, published
        As of `sweep_lines`; the best and the published cell are outlined.
    value : str
        The statistic. Its values are written in the cells where those are at most 16 x 8.
    x, y : str
        The parameters across and down. Strategies that lack one of them are named in the picture.

    Raises
    ------
    ArgumentError
        If a column is missing, the table does not vary along `x` or `y`, or two rows have the same
        place.
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
        every = -(-len(values) // 40)
        axis.set_ticks(range(0, len(values), every), map(str, values[::every]), fontsize=9)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    label = quantities.parameter_label(x)
    if left_out := statistic.attrs["left_out"]:
        label += f"\nnot shown, without {x} or {y}: {', '.join(left_out)}"
    ax.set(xlabel=label, ylabel=quantities.parameter_label(y).replace(" (", "\n("))
    inside = table[table[x].notna() & table[y].notna()]
    marks, title = _marks(inside, value, published)
    draw.write_title(ax, title)
    if statistic.notna().any(axis=None):
        bar = draw.colour_bar(ax, image, quantities.statistic_label(value))
        quantities.mark_axis(bar.ax.yaxis, value, *image.get_clim(), log=log)
        bar.ax.minorticks_off()
        bar.outline.set_visible(False)
        written = down <= _WRITTEN[0] and across <= _WRITTEN[1]
        for (i, j), number in np.ndenumerate(statistic.to_numpy()):
            if written and np.isfinite(number):
                text = quantities.writer(value)(number).removesuffix(" %")  # is at the colour bar
                draw.centred(ax, j, i, text, colours(norm(number)), 8.5)
        _outline(ax, statistic, x, y, marks, written)
    over = f"{x} ({across} values) and {y} ({down})"
    tell(ax, f"Heat map of {quantities.statistic_name(value)} over {over}. {title}.")
    return ax


def _marks(
    table: pd.DataFrame, value: str, published: Mapping[str, Any] | None
) -> tuple[list[Mark], str]:
    """Return the published and the best setting of a sweep, and a title that compares them."""
    write, names = quantities.writer(value), settings.distinguishing(table)
    top, equal = settings.best(table, value)
    known = settings.at_setting(table, value, published)
    flat = 0 < equal == table[value].count() - 1

    def text(row: pd.Series) -> str:
        return write(float(row[value]))

    marks: list[Mark] = []
    if known is not None:
        marks.append((known, f"published: {text(known)}", "D", BLACK))
    if top is not None and not flat:
        marks.append((top, f"best: {text(top)}", "*", VERMILLION))
    if len(marks) == 2 and marks[0][0].name == marks[1][0].name:
        marks = [(marks[1][0], f"best, published: {text(marks[1][0])}", "*", VERMILLION)]
    graph = table.attrs.get("graph", "degrees")
    subject = quantities.statistic_name(value) + (f" of {graph}" if graph != "degrees" else "")
    values = table[value].dropna()
    at_known = "" if known is None else f"{text(known)} at the published {_setting(known, names)}"
    if values.empty:
        sentence = "the degrees alone do not determine it"
    elif top is not None and known is not None and top[value] == known[value]:
        sentence, at_known = f"{at_known}, no setting here is lower", ""
    elif flat and top is not None:
        sentence, at_known = f"{text(top)} at every setting", ""
    elif top is not None:
        more = f" and {equal} other setting{'s' * (equal > 1)}" if equal else ""
        sentence = f"{text(top)} at {_setting(top, names)}{more}"
    else:
        sentence = " to ".join(dict.fromkeys(map(write, (values.min(), values.max()))))
    return marks, f"{subject}: {sentence}" + f", {at_known}" * bool(at_known)


def _setting(row: pd.Series, names: Sequence[str]) -> str:
    """Write a setting: "4 x 8" for the block-level partition's two parameters."""
    names = [name for name in names if pd.notna(row[name])]
    pair, words = ["max_block_warps", "max_warp_nzs"], []
    if set(pair) & set(names) and all(name in row and pd.notna(row[name]) for name in pair):
        words = [" x ".join(str(row[name]) for name in pair)]
        names = [name for name in names if name not in pair]
    text = ", ".join(words + [f"{name} {row[name]}" for name in names if name != "strategy"])
    if "strategy" not in names:
        return text
    return f"{text} ({row['strategy']})" if text else str(row["strategy"])


def _x_axis(ax: Axes, values: pd.Series) -> dict[Any, float]:
    """Space the values of a parameter, and return where each one lies.

    If the steps grow, equal ratios are equally long; names and values up to 0 stand in a row.
    """
    seen = sorted(values.dropna().unique())
    numbers = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if not numbers or seen[0] <= 0:
        ax.set_xticks(range(len(seen)), list(map(str, seen)))
        return {value: i for i, value in enumerate(seen)}
    steps = np.diff(np.array(seen, dtype=np.float64))
    if steps.max() > 2 * steps.min():
        ax.set_xscale("log", base=2)
    if len(seen) > _TICKS:
        draw.count_ticks(ax.xaxis, most=10)
    else:
        ax.set_xticks(seen, [f"{value:g}" for value in seen])
    ax.xaxis.set_minor_locator(NullLocator())
    return {value: float(value) for value in seen}


def _span(statistic: str, values: pd.Series) -> tuple[float, float, bool]:
    """Return the least and the largest value, and whether a scale between them is logarithmic."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    counts = quantities.statistic_kind(statistic) in ("count", "ratio")
    return low, high, counts and 0 < 50 * low < high


def _y_axis(ax: Axes, statistic: str, values: pd.Series) -> pd.Series:
    """Choose the scale and the ticks of a statistic, and return its values that are known."""
    values = values.dropna().astype(float)
    if not len(values):
        draw.nothing(ax, "not determined")
        return values
    low, high, log = _span(statistic, values)
    if log:
        room = max(high / low, 1.5) ** 0.1
        ax.set(yscale="log", ylim=(low / room, high * room))
    else:
        ax.set_ylim(min(0.0, low), (high or 1) * 1.12)
    quantities.mark_axis(ax.yaxis, statistic, *ax.get_ylim(), log=log)
    return values


def _line_colours(curves: Sequence[Line]) -> list[Any]:
    """From dark to light where one number tells the lines apart, else one after the other."""
    varied = [line for line in curves if not line.constant]
    keys = [(name, value) for line in varied for name, value in line.key.items()]
    one = len(keys) == len(varied) > 1 == len({name for name, _ in keys})
    if one and all(isinstance(value, int | np.integer) for _, value in keys):
        rank = np.argsort(np.argsort([value for _, value in keys]))
        shades = iter(colormaps["viridis"](np.linspace(0, 0.85, len(varied)))[rank])
        return [GREY if line.constant else next(shades) for line in curves]
    if curves and all("strategy" in line.key for line in curves):
        return list(strategy_colours(map(_words, curves)).values())
    return [_COLOURS[i % len(_COLOURS)] for i in range(len(curves))]


def _name_lines(ax: Axes, curves: Sequence[Line], colours: Sequence[Any], y: str) -> None:
    """Write at the right what each line is; of many, every second, third, ..."""
    named = [(line, colour) for line, colour in zip(curves, colours, strict=True) if line.key]
    every = -(-len(named) // _LABELS)
    named = [pair for i, pair in enumerate(named) if i % every == 0 or i == len(named) - 1]
    ends = [(float(line.rows[y].iloc[-1]), _words(line), colour) for line, colour in named]
    names = list(dict.fromkeys(name for line, _ in named for name in line.key))
    heading = quantities.parameter_label(names[0]).replace(" (", "\n(") if len(names) == 1 else ""
    draw.label_ends(ax, ends, "" if names == ["strategy"] else heading)


def _words(line: Line) -> str:
    several = len(line.key) > 1
    return ", ".join(
        f"{name} {value}" if several and name != "strategy" else str(value)
        for name, value in line.key.items()
    )


def _outline(
    ax: Axes, statistic: pd.DataFrame, x: str, y: str, marks: Sequence[Mark], written: bool
) -> None:
    """Outline the best and the published cell, and name them."""
    down, across = statistic.shape
    for row, text, marker, colour in marks:
        j, i = statistic.columns.get_loc(row[x]), statistic.index.get_loc(row[y])
        for width, edge in ((4.5, "white"), (2.2, colour)):
            line: Look = {"fill": False, "ec": edge, "lw": width, "zorder": 4, "clip_on": False}
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **line))
        # The best one's name stands above its cell, the published one's below, if there are cells.
        above = i > 0 if marker == "*" else i == down - 1
        side = "left" if j < across / 6 else "right" if j > across * 5 / 6 else "center"
        name, size = (text.partition(":")[0], 8) if written else (text, 9)
        at = {"left": j - 0.5, "right": j + 0.5, "center": j}[side], i - 0.5 if above else i + 0.5
        look: Look = {"fontsize": size, "fontweight": "bold", "color": colour, "zorder": 6}
        look |= {"ha": side, "va": "bottom" if above else "top", "path_effects": HALO}
        draw.beside(ax, name, at, (0, 2 if above else -2), annotation_clip=False, **look)
