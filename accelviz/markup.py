"""HTML of results in notebooks: a title, a sentence, facts and bars, in the colors of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

#: Largest number of bars; more distinct numbers are binned more coarsely.
_MOST_BARS = 10
#: Number of characters from which a label may have several lines.
_LONG = 40
_CELL = "text-align:left;vertical-align:top;padding:1px 12px 1px 0;border:0"
_BAR = "display:inline-block;height:.8em;background:currentColor;opacity:.55"


def summary(
    name: str,
    sentence: str,
    facts: Iterable[tuple[str, str]],
    bars: Sequence[tuple[str, float, str]] = (),
    bars_title: str = "",
) -> str:
    """Return HTML that a notebook displays for an object; texts are escaped.

    Parameters
    ----------
    name, sentence : str
        Name of the object, and the first line after it.
    facts : iterable of (str, str)
        Labels and texts, one line each.
    bars : sequence of (str, float, str)
        Label, length and text of each bar, under `bars_title`.
    """
    lines = "".join(_row(label, escape(text)) for label, text in facts)
    longest = max((length for _, length, _ in bars), default=0) or 1
    if bars:
        title = f"<td colspan=2 style='{_CELL};padding-top:8px'><b>{escape(bars_title)}</b></td>"
        lines += f"<tr style='background:none'>{title}</tr>"
    for label, length, text in bars:
        width = f"width:{12 * length / longest:.2f}em;min-width:{int(length > 0)}px"
        lines += _row(label, f"<span style='{_BAR};{width}'></span> {escape(text)}")
    head = f"<div><b>{escape(name)}</b>: {escape(sentence)}</div>"
    return f"<div>{head}<table style='margin:4px 0;border:0'>{lines}</table></div>"


def _row(label: str, cell: str) -> str:
    wrap = "nowrap" if len(label) < _LONG else "normal"
    style = f"{_CELL};font-weight:normal;opacity:.75;white-space:{wrap}"
    head = f"<th style='{style}'>{escape(label)}</th>"
    return f"<tr style='background:none'>{head}<td style='{_CELL}'>{cell}</td></tr>"


def histogram(numbers: Any, counts: Any) -> list[tuple[str, float, str]]:
    """Return bars that count `counts[i]` things of `numbers[i]`, in bins of powers of two or four.

    The first bar is that of the smallest number.

    Parameters
    ----------
    numbers : array of int, shape (k,)
        Ascending, 0 or more.
    counts : array of int, shape (k,)
    """
    most = int(numbers[-1]) if len(numbers) else 0
    power = 2 if most <= 2 ** (_MOST_BARS - 2) else 4
    while power ** (_MOST_BARS - 2) < most:
        power *= 4
    bars: list[tuple[str, float, str]] = []
    low = 0
    for high in [0, *(power**i for i in range(_MOST_BARS))]:
        if low > most:
            break
        count = int(counts[(numbers >= low) & (numbers <= high)].sum())
        label = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        if bars or count:
            bars.append((label, count, f"{count:,}"))
        low = high + 1
    return bars


def of_array(values: Any) -> list[tuple[str, float, str]]:
    """Return `histogram` of an array of integers."""
    return histogram(*np.unique(values, return_counts=True))
