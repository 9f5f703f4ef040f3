"""Pieces of SVG and HTML: text in, text out. Hover and tooltips come with them for nothing.

Some attributes are for the panel's script: `data-key` lights up everything with the same key,
`data-info` is shown while the pointer or the focus is there, `data-pick` (JSON) is a change of
settings that a click or the Enter key asks for, and `data-scale` (JSON: setting, first,
end, last, step) asks for the value under the pointer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

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


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, classes: str = "") -> str:
    """Write a table; cells are HTML already."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>"
        for first, *rest in rows
    )
    head = f"<thead><tr>{head}</tr></thead>"
    return f'<table class="{classes}">{head}<tbody>{body}</tbody></table>'
