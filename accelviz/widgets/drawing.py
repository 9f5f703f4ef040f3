"""Pieces of SVG and HTML: text in, text out. Hover and tooltips come with them for nothing.

Some attributes are for the panel's script: `data-key` lights up everything with the same key,
`data-info` is shown while the pointer or the focus is there, `data-pick` (JSON) is a change of
settings that a click or the Enter key asks for, and `data-scale` (JSON: setting, first,
end, last, step) asks for the value under the pointer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

#: Okabe and Ito's colours, as the plots have them.
BLUE, ORANGE, GREEN, VERMILLION, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
ROWS = (BLUE, ORANGE, GREEN, PURPLE)
IDLE, GREY, LINE = "#EDEDED", "#6E6E6E", "#BDBDBD"
#: From few nonzeros to many: viridis, light to dark.
LOADS = (
    *("#dfe318", "#bade28", "#86d549", "#56c667", "#35b779", "#1f988b", "#277f8e"),
    *("#2e6e8e", "#3b528b", "#453781", "#482173", "#440154"),
)


def attributes(
    key: str = "",
    info: str = "",
    pick: Mapping[str, Any] | None = None,
    scale: Sequence[Any] | None = None,
    label: str = "",
) -> str:
    """Write the attributes that the panel's script reads, with a space in front."""
    found = f' data-key="{escape(key)}"' if key else ""
    found += f' data-info="{escape(info)}"' if info else ""
    if pick is not None:
        found += f" data-pick='{escape(json.dumps(pick))}' tabindex='0' role='button'"
    if scale is not None:
        found += f" data-scale='{escape(json.dumps(scale))}'"
    return found + (f' aria-label="{escape(label)}"' if label else "")


def svg(width: float, height: float, parts: Iterable[str], label: str) -> str:
    """Wrap parts in a picture of this size, with its alt text."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def rect(x: float, y: float, width: float, height: float, fill: str, extra: str = "") -> str:
    """Draw a rectangle."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}" '
        f'fill="{fill}"{extra}/>'
    )


def line(x1: float, y1: float, x2: float, y2: float, colour: str = LINE, extra: str = "") -> str:
    """Draw a straight line."""
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{colour}" fill="none"{extra}/>'


def text(x: float, y: float, content: str, *, at: str = "start", colour: str = "", size: int = 11,
         extra: str = "") -> str:  # fmt: skip
    """Write a line of text; `at` is "start", "middle" or "end"."""
    fill = f' fill="{colour}"' if colour else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{at}" font-size="{size}"{fill}{extra}>'
        f"{escape(content)}</text>"
    )


def tick(x: float, y: float, content: str, *, at: str = "middle", size: int = 10) -> str:
    """Write a number or a name beside an axis, in grey."""
    return text(x, y, content, at=at, colour=GREY, size=size)


def turned(x: float, y: float, content: str) -> str:
    """Write a line of grey text upwards, its middle at this place."""
    extra = f' transform="rotate(-90 {x:.1f} {y:.1f})"'
    return text(x, y, content, at="middle", colour=GREY, extra=extra)


@dataclass(frozen=True)
class Axis:
    """A scale from numbers, `low` to `high`, to places in a picture, `start` to `stop`.

    With `log`, equal ratios are equally long.
    """

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a number; beyond the ends, that of the end."""
        low, high, value = (
            (math.log(each) for each in (self.low, self.high, max(value, self.low)))
            if self.log
            else (self.low, self.high, value)
        )
        share = (value - low) / (high - low) if high > low else 0.0
        return self.start + min(max(share, 0.0), 1.0) * (self.stop - self.start)

    def ticks(self) -> list[float]:
        """Return round numbers between the ends, three to seven."""
        if self.log:
            decades = math.floor(math.log10(self.high / self.low)) if self.low > 0 else 0
            if decades >= 1:
                first = math.ceil(math.log10(self.low))
                last = math.floor(math.log10(self.high) + 1e-9)
                every = max(1, round(decades / 4))
                return [10.0**power for power in range(first, last + 1, every)]
            powers = [2.0**power for power in range(11) if self.low <= 2.0**power <= self.high]
            return powers or [self.low]
        reach = (self.high - self.low) or 1.0
        decade = 10.0 ** math.floor(math.log10(reach))
        step = decade * next(
            factor for factor in (0.2, 0.5, 1, 2) if reach / (decade * factor) <= 6
        )
        lowest = math.ceil(self.low / step)
        return [step * i for i in range(lowest, math.floor(self.high / step + 1e-9) + 1)]


def short(number: float) -> str:
    """Write a count in few characters: 950, 12.3k, 2.9M."""
    if not math.isfinite(number):
        return "not known"
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= factor:
            value = number / (1e3 if unit == "k" else factor)
            return f"{value:.3g}{unit}" if value < 999.5 else f"{value:.0f}{unit}"
    return f"{number:,.0f}" if float(number).is_integer() or number >= 100 else f"{number:.2g}"


def frame(x: Axis, y: Axis, x_label: str, y_label: str, *, x_ticks: bool = True) -> list[str]:
    """Draw two axes with their labels; without `x_ticks`, the lower one has only its label."""
    left, right, bottom, top = x.start, x.stop, y.start, y.stop
    parts = [line(left, bottom, right, bottom), line(left, bottom, left, top)]
    for place, value in [(x(value), value) for value in x.ticks() if x_ticks]:
        parts.append(line(place, bottom, place, bottom + 3))
        parts.append(tick(place, bottom + 14, short(value)))
    for place, value in [(y(value), value) for value in y.ticks()]:
        parts.append(line(left - 3, place, left, place))
        parts.append(tick(left - 5, place + 3.5, short(value), at="end"))
    parts.append(tick((left + right) / 2, bottom + 28, x_label, size=11))
    return [*parts, turned(left - 40, (top + bottom) / 2, y_label)]


def load_levels(most: int) -> npt.NDArray[np.int64]:
    """Return the least load of each colour of `LOADS`; a load has the last that it reaches.

    `most` is the load of the darkest; equal ratios of loads are equally many colours apart.
    """
    shares = np.arange(len(LOADS)) / len(LOADS)
    return np.ceil(max(most, 2) ** shares - 1e-9).astype(np.int64)


def cells(
    load: npt.NDArray[np.int64], top: float, left: float, width: float, height: float, most: int
) -> list[str]:
    """Draw a table of loads, shape (columns, lines), as cells, one path for each colour.

    0 stays the colour of what is behind; `most` is the load of the darkest (`load_levels`).
    """
    columns, lines = load.shape
    if not columns or not lines:
        return []
    across, down = width / columns, height / lines
    level = np.searchsorted(load_levels(most), load, side="right") - 1
    parts = []
    for i, colour in enumerate(LOADS):
        there = np.argwhere(level == i)
        if len(there):
            path = "".join(
                f"M{left + c * across:.1f} {top + r * down:.1f}h{across:.2f}v{down:.2f}"
                f"h-{across:.2f}z"
                for c, r in there.tolist()
            )
            parts.append(f'<path d="{path}" fill="{colour}"/>')
    return parts


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, classes: str = "") -> str:
    """Write a table; cells are HTML already."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>"
        for first, *rest in rows
    )
    head = f"<thead><tr>{head}</tr></thead>"
    return f'<table class="{classes}">{head}<tbody>{body}</tbody></table>'
