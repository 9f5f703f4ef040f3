"""A picture of the learner's kernel to share: its numbers, graph, machine and date."""

from __future__ import annotations

import datetime
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from accelviz.course import my_spmm
from accelviz.datasets import load_graph
from accelviz.errors import ArgumentError

_WIDTH, _HEIGHT = 640, 372
#: Background, text, faint text, the learner's bars, other bars.
_THEMES = {
    "light": ("#FFFFFF", "#1A1A1A", "#5F5F5F", "#0072B2", "#BAB0AC"),
    "dark": ("#111418", "#F0F0F0", "#A8A8A8", "#56B4E9", "#5E646B"),
}


class ShareCard(NamedTuple):
    """A share card as SVG text; a notebook shows it."""

    svg: str

    def _repr_html_(self) -> str:
        return self.svg


def share_card(times: pd.DataFrame | None = None, theme: str = "light") -> ShareCard | None:
    """Draw the kernel of `my_spmm.cu`, and write `my_spmm-THEME.svg` beside it.

    Parameters
    ----------
    times : DataFrame, optional
        Result of `accelviz.benchmark` with the strategies "my_spmm" and others, on
        `my_spmm.GRAPH` with `my_spmm.COLUMNS` columns. By default the counts of the emulator are
        shown.
    theme : {"light", "dark"}

    Returns
    -------
    ShareCard or None
        None, after a sentence, if `my_spmm.cu` has no rung.

    Raises
    ------
    ArgumentError
        If the theme is another one, or if `times` has another graph or column count, no warm
        times, or none of "my_spmm".
    """
    if theme not in _THEMES:
        raise ArgumentError("theme", repr(theme), " or ".join(map(repr, _THEMES)))
    kernels = my_spmm.beside()
    if "my_spmm" not in kernels.index:
        print(f"No card yet: {my_spmm.FILE} has no rung.")
        return None
    score, graph = kernels.loc["my_spmm"], load_graph(my_spmm.GRAPH)
    machine, date = "emulated", datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%d")
    bars, unit = kernels["requests"].drop("row_thread"), "memory requests of all warps"
    if times is not None:
        warm = _warm(times)
        bars = warm.groupby("strategy")["median_us"].min()
        machine, date = str(warm["hardware"].iloc[0]), str(warm["date"].iloc[0])
        unit = "microseconds, warm"
    _, _, error = my_spmm.model()
    rungs = my_spmm.table()["requests"]
    background, ink, faint, *_ = _THEMES[theme]
    size = f"{graph.name}: {graph.n_rows:,} rows, {graph.nnz:,} nonzeros, {my_spmm.COLUMNS} columns"
    numbers = (
        f"{score['requests']:,.0f} requests · {score['sectors']:,.0f} sectors · "
        f"{100 * score['idle_share']:.1f} % idle · model {score['model_us']:.1f} µs "
        f"(off by a factor of {error:.1f} at most)"
    )
    parts = [
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="12" fill="{background}"/>',
        _text(24, 40, "My SpMM kernel", ink, 22, "bold"),
        _text(24, 64, size, faint, 14),
        _text(24, 96, "memory requests by rung (log, from 1,000)", ink, 13, "bold"),
        *_bars(24, 108, np.log10(rungs) - 3, rungs, theme, set(rungs.index), 144),
        _text(356, 96, unit, ink, 13, "bold"),
        *_bars(356, 108, bars.sort_values(), bars.sort_values(), theme, {"my_spmm"}, 92),
        _text(24, _HEIGHT - 50, numbers, ink, 12),
        _text(24, _HEIGHT - 24, f"{machine} · {date} · accelviz", faint, 13),
    ]
    alt = f"{size}. {numbers}. {machine}, {date}."
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(alt)}" style="width:100%;max-width:{_WIDTH}px;height:auto" '
        f'font-family="system-ui, sans-serif">{"".join(parts)}</svg>'
    )
    Path(f"my_spmm-{theme}.svg").write_text(svg, "utf-8")
    return ShareCard(svg)


def _warm(times: pd.DataFrame) -> pd.DataFrame:
    """Return the warm times; raise ArgumentError if they are not of the card's product."""
    warm = times[(times["state"] == "warm") & times["median_us"].notna()]
    expected = f"warm times of {my_spmm.GRAPH} with {my_spmm.COLUMNS} columns, with my_spmm"
    for column, value in (("graph", my_spmm.GRAPH), ("columns", my_spmm.COLUMNS)):
        if others := sorted({*warm[column]} - {value}):
            problem = f"{column} is {', '.join(map(str, others))}"
            raise ArgumentError("times", problem, expected)
    if warm.empty:
        raise ArgumentError("times", "there are no warm times", expected)
    if "my_spmm" not in {*warm["strategy"]}:
        raise ArgumentError("times", "there are none of my_spmm", expected)
    return warm


def _bars(
    x: int, y: int, lengths: pd.Series, values: pd.Series, theme: str, chosen: set[str], room: int
) -> list[str]:
    """Draw a bar, a name and a number for each value."""
    _, ink, faint, mine, other = _THEMES[theme]
    step, most, parts = min(24.0, 196 / max(len(values), 1)), float(lengths.max()), []
    for line, (name, value) in enumerate(values.items()):
        top, width = y + line * step, max(2.0, 100 * float(lengths[name]) / most)
        label = f"{value:,.0f}" if value >= 1000 else f"{value:,.1f}"
        colour, weight = (mine, "bold") if name in chosen else (other, "normal")
        named = "bold" if name == "my_spmm" else "normal"
        parts += [
            _text(x, top + step / 2 + 4, str(name), ink, 12, named),
            f'<rect x="{x + room}" y="{top + 3:.1f}" width="{width:.1f}" height="{step - 6:.1f}" '
            f'rx="2" fill="{colour}"/>',
            _text(x + room + 6 + width, top + step / 2 + 4, label, faint, 12, weight),
        ]
    return parts


def _text(x: float, y: float, text: str, colour: str, size: int, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )
