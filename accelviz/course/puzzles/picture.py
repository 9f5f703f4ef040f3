"""Who reads and writes what: threads downwards, elements to the right, a panel for each array.

Panels are as wide as they need be, and a page puts as many side by side as it has room for. Text
has the page's own colour, so that it is legible on light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.analysis.traffic import BANK_BYTES, BANKS, SECTOR_BYTES, changes, requests
from accelviz.arrays import Longs

#: Legible on white and on black, and apart for any colour vision.
_COLOURS = {"load": "#2C8FD1", "store": "#E08A00", "atomic": "#B65FA5"}
_WORDS = {"load": "read", "store": "written", "atomic": "updated by atomics"}
_WRONG = "#D55E00"
_LEFT, _WIDTH, _TOP, _BOTTOM = 34, 226, 4, 32
#: Threads that are drawn; others look the same.
_MOST_THREADS = 384
_WARP = 32


def counted(number: int, noun: str, plural: str = "s") -> str:
    """Write a number of things."""
    return f"{number:,} {noun}{'' if number == 1 else plural}"


@dataclass(frozen=True)
class Panel:
    """An array to draw: its name in the trace, its elements of four bytes, and which are wrong."""

    name: str
    size: int
    wrong: Sequence[int] = ()


def picture(
    traced: pd.DataFrame,
    panels: Sequence[Panel],
    block: int,
    threads: int,
    to_the_mistake: bool = False,
) -> str:
    """Draw the accesses of a trace as HTML.

    Parameters
    ----------
    traced : DataFrame
        Of `trace_kernel`.
    panels : sequence of Panel
        Arrays of global memory; those in shared memory are found in the trace, and drawn by bank.
    block, threads : int
        Threads of a block, and of all.
    to_the_mistake : bool
        Whether the trace ends there.

    Returns
    -------
    str
        A panel for each array with a caption; "" if nothing was accessed.
    """
    if traced.empty:
        return ""
    traced = traced.assign(
        thread=traced["block"] * block + _WARP * traced["warp"] + traced["lane"],
        request=traced.groupby(["block", "step"]).ngroup(),
        array=traced["array"].astype(str),
        kind=traced["kind"].astype(str),
    )
    costs = requests(traced)
    first_ones = min(threads, _MOST_THREADS)
    sizes = {panel.name: panel for panel in panels}
    wanted = {(panel.name, "store"): np.inf for panel in panels if len(panel.wrong)}
    wanted |= dict(traced.groupby(["array", "kind"])["request"].min())
    drawn = [
        _panel(
            *(sizes.get(name, Panel(name, 0)), kind),
            *(traced[(traced["array"] == name) & (traced["kind"] == kind)], costs),
            *(block, first_ones),
        )
        for name, kind in sorted(wanted, key=lambda pair: wanted[pair])
    ]
    which = f", of {threads} the first {first_ones}" * (threads > first_ones)
    legend = (
        f"Downwards the threads of all blocks{which}; to the right the elements. In full colour: "
        "the request that costs most."
    )
    if to_the_mistake:
        legend = f"What was done before the mistake. {legend}"
    untouched = [panel.name for panel in panels if not (traced["array"] == panel.name).any()]
    if untouched:
        legend += f" Not touched: {escape(', '.join(untouched))}."
    return (
        f'<p style="font-size: 12px; margin: 6px 0">{legend}</p>'
        '<div style="display: flex; flex-wrap: wrap; gap: 4px 16px">' + "".join(drawn) + "</div>"
    )


def _panel(
    panel: Panel, kind: str, mine: pd.DataFrame, costs: pd.DataFrame, block: int, threads: int
) -> str:
    banked = bool((mine["space"] == "shared").any())
    columns = BANKS if banked else max(panel.size, 1)
    high = float(np.clip(192 / threads, 0.5, 8))
    tall, across, colour = high * threads, _WIDTH / columns, _COLOURS[kind]
    ink = 'stroke="currentColor" fill="none"'
    frame = f'width="{_WIDTH}" height="{tall:g}" {ink} opacity=".5"'
    parts = [f'<rect x="{_LEFT}" y="{_TOP}" {frame}/>']
    parts += _grid(columns, across, tall, high, threads, block, banked)
    said = "by no thread"
    if len(mine):
        of_array = costs.loc[mine["request"].unique()]
        price = "wavefronts" if banked else "sectors"
        drawn = of_array.loc[mine.loc[mine["thread"] < threads, "request"].unique()]
        candidates = drawn if len(drawn) else of_array
        costliest = (candidates[price] + candidates["collisions"]).idxmax()
        for only, least, opacity in (
            (mine, 1.4, 0.5),
            (mine[mine["request"] == costliest], 2.5, 1),
        ):
            path = _cells(only, banked, columns, threads, high, least)
            parts.append(f'<path d="{path}" fill="{colour}" opacity="{opacity}"/>')
        said = _caption(of_array, of_array.loc[costliest], price)
    parts += _tips(mine, panel.name, high, threads)
    below = _TOP + tall + 18
    for position in panel.wrong if kind != "load" else ():
        wrong = f'width="{max(across, 2):.1f}" height="5" fill="{_WRONG}"'
        parts.append(
            f'<rect x="{_LEFT + position * across:.1f}" y="{_TOP + tall + 2:.1f}" {wrong}/>'
        )
    parts.append(_tick(_LEFT, below, "bank 0" if banked else f"{panel.name}[0]", at="start"))
    last = "31" if banked else f"[{panel.size - 1}]" if panel.size > 1 else ""
    parts.append(_tick(_LEFT + _WIDTH, below, last, at="end"))
    if len(panel.wrong) and kind != "load":
        over = f"✗ {len(panel.wrong)} wrong"
        parts.append(_text(_LEFT + _WIDTH / 2, below, over, 'text-anchor="middle" font-size="11"'))
    where = f"{_WORDS[kind]}{', shared memory' * banked}"
    label = f"{panel.name}, {where}: {said}.{_reach(mine, panel.name)}"
    size = f"{_LEFT + _WIDTH + 6:g} {_TOP + tall + _BOTTOM - 8:g}"
    return (
        '<figure style="flex: 0 1 320px; min-width: 220px; margin: 0">'
        f'<figcaption style="font-size: 12px"><span style="color: {colour}">■</span> '
        f"<b>{escape(panel.name)}</b>, {where}: {escape(said)}</figcaption>"
        '<svg style="display: block; width: 100%; color: inherit" fill="currentColor" '
        f'viewBox="0 0 {size}" role="img" aria-label="{escape(label)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg></figure>'
    )


def _caption(of_array: pd.DataFrame, costliest: pd.Series, price: str) -> str:
    number, total, lanes = len(of_array), int(of_array[price].sum()), int(costliest["lanes"])
    unit, many = ("sector", "s") if price == "sectors" else ("pass", "es")
    said = f"{counted(number, 'request')}, {counted(total, unit, many)}"
    said += (
        f"; the costliest: {counted(lanes, 'lane')}, {counted(int(costliest[price]), unit, many)}"
    )
    met = int(of_array["collisions"].sum())
    return said + (f"; {counted(met, 'lane')} found the element taken" if met else "")


def _grid(
    columns: int, across: float, tall: float, high: float, threads: int, block: int, banked: bool
) -> list[str]:
    """Draw lines between sectors, between warps and, stronger, between blocks; name threads."""
    path, parts = "", []
    sector = 0 if banked else SECTOR_BYTES // BANK_BYTES
    if sector and sector * across >= 4:
        for position in range(sector, columns, sector):
            path += f"M{_LEFT + position * across:.1f} {_TOP}v{tall:g}"
    within, named = _WARP if threads > _WARP else 8, -12.0
    for thread in range(0, threads, within):
        y = _TOP + thread * high
        if thread:
            path += f"M{_LEFT} {y:.1f}h{_WIDTH}"
        if y - named >= 12:
            parts.append(_tick(_LEFT - 4, y + 8, str(thread), at="end"))
            named = y
    parts.append(f'<path d="{path}" stroke="currentColor" opacity=".25" stroke-width=".6"/>')
    between = range(block, threads, block) if block * high >= 4 else ()
    edges = "".join(f"M{_LEFT - 4} {_TOP + thread * high:.1f}h{_WIDTH + 4}" for thread in between)
    parts.append(f'<path d="{edges}" stroke="currentColor" opacity=".8" stroke-width="1.2"/>')
    return parts


def _tick(x: float, y: float, content: str, at: str = "end") -> str:
    """Write a number or a name beside an axis."""
    return _text(x, y, content, f'text-anchor="{at}" font-size="10" opacity=".8"')


def _text(x: float, y: float, content: str, look: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{escape(content)}</text>'


def _cells(
    accesses: pd.DataFrame,
    banked: bool,
    columns: int,
    threads: int,
    high: float,
    least: float,
) -> str:
    """Return the path of what threads access, at least so wide; neighboring elements as one."""
    chosen = accesses[accesses["thread"] < threads]
    thread, element = _spread(chosen)
    if banked:
        element %= BANKS
    cell = np.unique(thread * columns + element)
    begins = np.flatnonzero((np.diff(cell, prepend=-2) != 1) | (cell % columns == 0))
    lengths = np.diff(np.append(begins, len(cell)))
    row, column = np.divmod(cell[begins], columns)
    # Threads below each other that access the same are one rectangle.
    order = np.lexsort((row, lengths, column))
    row, column, lengths = row[order], column[order], lengths[order]
    top = np.flatnonzero(changes(column, lengths, row - np.arange(len(row))))
    rows = np.diff(np.append(top, len(row)))
    across, path = _WIDTH / columns, []
    for first, many in zip(top, rows, strict=True):
        x, y = _LEFT + column[first] * across, _TOP + row[first] * high
        wide = max(lengths[first] * across, least)
        path.append(f"M{x:.1f} {y:.1f}h{wide:.1f}v{max(many * high, 2):g}h-{wide:.1f}z")
    return "".join(path)


def _spread(accesses: pd.DataFrame) -> tuple[Longs, Longs]:
    """Return thread and word for each word of four bytes that is accessed."""
    words = np.maximum(accesses["bytes"].to_numpy() // BANK_BYTES, 1)
    first = accesses["offset"].to_numpy() // BANK_BYTES
    within = np.arange(words.sum()) - np.repeat(np.cumsum(words) - words, words)
    thread: npt.NDArray[np.int64] = np.repeat(accesses["thread"].to_numpy(), words)
    return thread, np.repeat(first, words) + within


def _tips(accesses: pd.DataFrame, name: str, high: float, threads: int) -> list[str]:
    """Say at each thread's line, while the pointer is there, what the thread accesses."""
    if high < 3:  # too low to be pointed at
        return []
    thread, element = _spread(accesses)
    parts = []
    for one in np.unique(thread[thread < threads]):
        places = np.unique(element[thread == one])
        indices = ", ".join(map(str, places[:8])) + " ..." * (len(places) > 8)
        parts.append(
            f'<rect x="{_LEFT}" y="{_TOP + one * high:.1f}" width="{_WIDTH}" height="{high:g}" '
            f'fill="transparent"><title>thread {one}: {escape(name)}[{indices}]</title></rect>'
        )
    return parts


def _reach(accesses: pd.DataFrame, name: str) -> str:
    if accesses.empty:
        return ""
    threads, words = accesses["thread"], _spread(accesses)[1]
    return (
        f" Threads {threads.min()} to {threads.max()} access {name}[{words.min()}] to "
        f"{name}[{words.max()}]."
    )
