"""Sweeps: what a statistic of the partition does as its parameters change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from accelviz.analysis.settings import PUBLISHED, Grid, Line, checked_sweep, grid, lines
from accelviz.plots import quantities
from accelviz.plots.drawing import Look, cells, colour_bar, new_axes, nothing
from accelviz.plots.labels import HALO, beside, label_ends, write_title
from accelviz.plots.marks import Marks
from accelviz.plots.style import BLACK, GREY, GRID, IDLE, TURNS, ink, strategy_colours, tell, tidy

_COLOURS = (*TURNS, BLACK, GREY)
#: Most labels at the ends of lines; most cells down and across with their value in them.
_LABELS, _WRITTEN = 12, (8, 16)


def sweep_lines(
    table: pd.DataFrame,
    y: str = "idle_share",
    x: str = "max_block_warps",
    *,
    by: str | None = None,
    better: str | None = None,
    published: Mapping[str, Any] | None = PUBLISHED,
    log: bool | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a statistic of a sweep against a parameter, a line for each value of the others.

    Parameters
    ----------
    table : DataFrame
        As `accelviz.sweep` returns it: parameters, then statistics.
    y : str
        The statistic.
    x : str
        The parameter. A strategy that has none of that name is a dashed line.
    by : str, optional
        The parameter, or "strategy", that tells the lines apart; all that vary if not given.
    better : {"lowest", "highest", "neither"}, optional
        Which values are best, for the marker; if not given, what is known of the statistic.
    published : mapping of str to value, optional
        The setting to mark; the paper's if not given. With None there is no mark.
    log : bool, optional
        Logarithmic y; if not given, where counts differ by more than a factor of 50.

    Raises
    ------
    ArgumentError
        If a column is missing, the table does not vary along `x`, or rows of one line have the same
        x.
    """
    checked_sweep(table, y, x)
    found = lines(table, x, by)
    write = quantities.writer(y)
    ax = new_axes(ax, figsize=(9, 4.6))
    place = _x_axis(ax, table[x])
    values = table[y].dropna().to_numpy(dtype=np.float64)
    _y_axis(ax, y, values, log)
    colours = _line_colours(found)
    marks = Marks(table, y, better, published)
    pointed = {row.name for row, *_ in marks.places()}
    for line, colour in zip(found, colours, strict=True):
        heights = _floats(line.rows[y])
        if line.constant:
            ax.axhline(heights[0], color=colour, lw=1.6, ls="--", zorder=2)
            continue
        places = place(line.rows[x])
        # Of many lines those stand out that a marked setting is on.
        main = len(found) <= 4 or not pointed.isdisjoint(line.rows.index)
        style: Look = {"lw": 2.2, "ms": 4.5} if main else {"lw": 1.1, "ms": 2.5}
        style |= {"zorder": 2 + main, "marker": "o" if len(places) <= 40 else ""}
        ax.plot(places, heights, color=colour, **style)
    unknown = [_words(line) or y for line in found if not line.rows[y].notna().any()]
    note = f"\nnot shown, as degrees do not determine it: {', '.join(unknown)}" if unknown else ""
    ax.set(xlabel=quantities.parameter_label(x) + note, ylabel=quantities.statistic_label(y))
    ax.margins(x=0.02)
    ax.grid(axis="y", color=GRID, lw=0.8, zorder=0)
    ax.set_axisbelow(True)
    if values.size:
        _name_lines(ax, found, colours, y)
    write_title(ax, marks.title)
    end = ax.get_xlim()[1]
    for row, name, mark, colour in marks.places():
        at = place(pd.Series([row[x]]))[0] if pd.notna(row[x]) else end
        look: Look = {"ms": 8, "mfc": "white", "mec": colour, "mew": 1.8}
        if mark == "*":
            look = {"ms": 14, "mfc": colour, "mec": "white", "mew": 1.0}
        ax.plot([at], [row[y]], mark, zorder=5, clip_on=False, **look)
        across, up = (ax.transScale + ax.transLimits).transform((at, row[y]))
        side = "left" if across < 0.15 else "right" if across > 0.85 else "center"
        _name_setting(ax, name, (at, row[y]), 11 if up < 0.88 else -11, side, colour)
    what = f"{quantities.statistic_name(y)} against {x}"
    reach = f"{write(values.min())} to {write(values.max())}" if values.size else "no value"
    tell(ax, f"Lines of {what}, {len(found)} in all, {reach}. {marks.title}.")
    return tidy(ax)


def sweep_heatmap(
    table: pd.DataFrame,
    value: str = "idle_share",
    *,
    x: str = "max_block_warps",
    y: str = "max_warp_nzs",
    better: str | None = None,
    published: Mapping[str, Any] | None = PUBLISHED,
    ax: Axes | None = None,
) -> Axes:
    """Draw a statistic of a sweep over two parameters as a heat map.

    Dark is much. A cell without a value is light grey.

    Parameters
    ----------
    table : DataFrame
        As `accelviz.sweep` returns it: parameters, then statistics.
    value : str
        The statistic. Its values are written in the cells where those are at most 16 x 8.
    x, y : str
        The parameters across and down. Strategies that lack one of them are named in the picture.
    better : {"lowest", "highest", "neither"}, optional
        Which values are best, for the outline; if not given, what is known of the statistic.
    published : mapping of str to value, optional
        The setting to outline; the paper's if not given. With None there is no outline.

    Raises
    ------
    ArgumentError
        If a column is missing, the table does not vary along `x` or `y`, or two rows have the same
        place.
    """
    checked_sweep(table, value, x, y)
    found = grid(table, value, x, y)
    inside = table[table[x].notna() & table[y].notna()]
    down, across = found.cells.shape
    size = (min(10.0, max(6.0, 2.6 + 0.5 * across)), min(8.0, max(3.0, 1.5 + 0.36 * down)))
    ax = new_axes(ax, figsize=size)
    colours = colormaps["viridis_r"].with_extremes(bad=IDLE)
    image = cells(ax, found.cells, colours, _norm(value, found.cells))
    for set_ticks, values in ((ax.set_xticks, found.x), (ax.set_yticks, found.y)):
        every = -(-len(values) // 40)
        shown = range(0, len(values), every)
        set_ticks(shown, [str(values[i]) for i in shown], fontsize=9)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    label = quantities.parameter_label(x)
    if found.left_out:
        label += f"\nnot shown, without {x} or {y}: {', '.join(found.left_out)}"
    ax.set(xlabel=label, ylabel=quantities.parameter_label(y).replace(" (", "\n("))
    marks = Marks(inside, value, better, published)
    write_title(ax, marks.title)
    if np.isfinite(found.cells).any():
        bar = colour_bar(ax, image, quantities.statistic_label(value))
        log = isinstance(image.norm, LogNorm)
        quantities.mark_axis(bar.ax.yaxis, value, *image.get_clim(), log=log)
        bar.ax.minorticks_off()
        bar.outline.set_visible(False)
        written = down <= _WRITTEN[0] and across <= _WRITTEN[1]
        shades, write = image.to_rgba(np.ma.masked_invalid(found.cells)), quantities.writer(value)
        for (i, j), each in np.ndenumerate(found.cells):
            if written and np.isfinite(each):
                text = write(each).removesuffix(" %")  # which is at the colour bar
                style: Look = {"ha": "center", "va": "center", "color": ink(shades[i, j])}
                ax.text(j, i, text, fontsize=8.5, **style)
        _outline(ax, found, x, y, marks, written)
    over = f"{x} ({len(found.x)} values) and {y} ({len(found.y)})"
    tell(ax, f"Heat map of {quantities.statistic_name(value)} over {over}. {marks.title}.")
    return ax


def _floats(values: pd.Series) -> npt.NDArray[np.float64]:
    return values.to_numpy(dtype=np.float64, na_value=np.nan)


def _x_axis(ax: Axes, values: pd.Series) -> Callable[[pd.Series], npt.NDArray[np.float64]]:
    """Space the values of a parameter, and return the function from values to places.

    If the steps grow, equal ratios are equally long; names and values up to 0 stand in a row.
    """
    seen = sorted(values.dropna().unique())
    numbers = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if not numbers or seen[0] <= 0:
        ax.set_xticks(range(len(seen)), [str(each) for each in seen])
        order = {each: i for i, each in enumerate(seen)}
        return lambda some: np.array([order[each] for each in some], dtype=np.float64)
    steps = np.diff(np.array(seen, dtype=np.float64))
    if steps.max() > 2 * steps.min():
        ax.set_xscale("log", base=2)
    shown = seen
    if len(seen) > 16:
        # The first, the last, and the multiples of a step between them, not too close to those.
        step = next(s for s in (2, 4, 8, 16, 32, 64, 10**9) if len(seen) / s <= 10)
        apart = step / 2
        inside = [s for s in seen if s % step == 0 and s - seen[0] >= apart <= seen[-1] - s]
        shown = [seen[0], *inside, seen[-1]]
    ax.set_xticks(shown, [f"{each:g}" for each in shown])
    ax.xaxis.set_minor_locator(NullLocator())
    return lambda some: some.to_numpy(dtype=np.float64)


def _y_axis(ax: Axes, statistic: str, values: npt.NDArray[np.float64], log: bool | None) -> None:
    kind = quantities.statistic_kind(statistic)
    if not values.size:
        nothing(ax, "not determined")
        return
    low, high = float(values.min()), float(values.max())
    if log is None:
        log = kind in ("count", "bytes", "ratio") and low > 0 and high > 50 * low
    log = log and low > 0
    if log:
        ax.set_yscale("log")
        room = max(high / low, 1.5) ** 0.1
        ax.set_ylim(low / room, high * room)
    else:
        ax.set_ylim(min(0.0, low), (high or 1) * 1.12)
    quantities.mark_axis(ax.yaxis, statistic, *ax.get_ylim(), log=log)


def _line_colours(found: Sequence[Line]) -> list[Any]:
    """From dark to light where one number tells the lines apart, else one after the other."""
    varied = [line for line in found if not line.constant]
    names = {name for line in varied for name in line.key}
    values: list[Any] = [next(iter(line.key.values()), None) for line in varied]
    if len(varied) > 1 and len(names) == 1 and all(isinstance(v, int | np.integer) for v in values):
        order = {value: i for i, value in enumerate(sorted(map(int, values)))}
        shades = colormaps["viridis"](np.linspace(0, 0.85, len(varied)))
        shaded = iter([shades[order[int(value)]] for value in values])
        return [GREY if line.constant else next(shaded) for line in found]
    if found and all("strategy" in line.key for line in found):
        return list(strategy_colours(map(_words, found)).values())
    return [_COLOURS[i % len(_COLOURS)] for i in range(len(found))]


def _name_lines(ax: Axes, found: Sequence[Line], colours: Sequence[Any], y: str) -> None:
    """Write at the right what each line is; of many, every second, third, ..."""
    named = [(line, colour) for line, colour in zip(found, colours, strict=True) if line.key]
    every = -(-len(named) // _LABELS)
    named = [each for i, each in enumerate(named) if i % every == 0 or i == len(named) - 1]
    ends = [(float(line.rows[y].iloc[-1]), _words(line), colour) for line, colour in named]
    names = list(dict.fromkeys(name for line, _ in named for name in line.key))
    heading = quantities.parameter_label(names[0]).replace(" (", "\n(") if len(names) == 1 else ""
    label_ends(ax, ends, "" if names == ["strategy"] else heading)


def _words(line: Line) -> str:
    return ", ".join(
        f"{name} {each}" if len(line.key) > 1 and name != "strategy" else str(each)
        for name, each in line.key.items()
    )


def _name_setting(
    ax: Axes, text: str, at: tuple[float, float], up: int, side: str, colour: str, size: int = 9
) -> None:
    look: Look = {"fontsize": size, "fontweight": "bold", "color": colour, "path_effects": HALO}
    look |= {"ha": side, "va": "bottom" if up > 0 else "top", "zorder": 6}
    beside(ax, text, at, (0, up), annotation_clip=False, **look)


def _norm(statistic: str, values: npt.NDArray[np.float64]) -> Normalize:
    finite = values[np.isfinite(values)] if np.isfinite(values).any() else np.array([0.0, 1.0])
    low, high = float(finite.min()), float(finite.max())
    if quantities.statistic_kind(statistic) in ("count", "bytes") and low > 0 and high > 50 * low:
        return LogNorm(low, high)
    return Normalize(low, high if high > low else low + 1)


def _outline(ax: Axes, found: Grid, x: str, y: str, marks: Marks, written: bool) -> None:
    """Outline the best and the published cell, and name them."""
    for row, text, mark, colour in marks.places():
        j, i = found.x.index(row[x]), found.y.index(row[y])
        for width, edge in ((4.5, "white"), (2.2, colour)):
            line: Look = {"fill": False, "ec": edge, "lw": width, "zorder": 4, "clip_on": False}
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **line))
        # The best one's name stands above its cell, the published one's below, if there are cells.
        above = i > 0 if mark == "*" else i == len(found.y) - 1
        side = "left" if j < len(found.x) / 6 else "right" if j > len(found.x) * 5 / 6 else "center"
        shown, size = (text.partition(":")[0], 8) if written else (text, 9)
        at = {"left": j - 0.5, "right": j + 0.5, "center": j}[side], i - 0.5 if above else i + 0.5
        _name_setting(ax, shown, at, 2 if above else -2, side, colour, size)
