"""The explorer's views of a whole graph: degrees, loads, statistics, blocks, times."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from html import escape

import numpy as np

from accelviz.analysis.balance import LoadMap, load_bins
from accelviz.analysis.degrees import logarithmic_bins
from accelviz.ordering import DegreeHistogram, RowDegrees
from accelviz.partition.summary import Loads, PartitionSummary
from accelviz.widgets import drawing
from accelviz.widgets.drawing import (
    BLUE,
    GREY,
    IDLE,
    LINE,
    LOADS,
    ORANGE,
    VERMILLION,
    Axis,
    attributes,
    cells,
    frame,
    line,
    load_levels,
    rect,
    short,
    svg,
    text,
    tick,
)
from accelviz.widgets.state import Side, State
from accelviz.widgets.sweep_state import STATISTICS

#: First and second strategy, everywhere.
SIDES = (BLUE, ORANGE)
#: How a row is treated, and the colour that says so.
ONE_WARP = ("#56B4E9", "one warp has it")
SHARED = ("#CC79A7", "warps share it")
CUT = (VERMILLION, "cut over blocks")
UNKNOWN = (LINE, "not known")
_WIDTH, _HEIGHT = 360, 214
#: Counts from here on are written short, with the whole number on hover.
_LONG = 1_000_000


def headline(state: State) -> str:
    """Say in a sentence what the setting does to the graph."""
    graph, said = state.graph, []
    for side, colour in zip((state.first, state.second), SIDES, strict=True):
        share = side.summary.idle_share
        waits = "does not say what its warps do" if math.isnan(share) else f"<b>{share:.1%}</b>"
        said.append(f'<span style="color:{colour}">&#9632;</span> {escape(named(side))}: {waits}')
    return (
        f"<b>{escape(graph.name)}</b>, {graph.n_rows:,} rows, {graph.nnz:,} nonzeros. "
        f"Warp time spent waiting: {', '.join(said)}"
    )


def named(side: Side) -> str:
    """Name a side with the values that the sliders set."""
    values = {name: side.parameters[name] for name in side.choice.sliders}
    if all(type(value) is int for value in values.values()):
        words = " x ".join(map(str, values.values()))
    else:  # where a rule chooses some, the others need their names
        words = " ".join(f"{name}={value}" for name, value in values.items() if value is not None)
    return f"{side.choice.label} {words}".strip()


def degrees(state: State) -> str:
    """Draw how many rows have which degree, coloured by how the first strategy treats them."""
    histogram = RowDegrees.of(state.graph).histogram
    bars = list(_alike(state.first, histogram))
    top = max((rows for _, _, rows, _ in bars), default=1)
    x = Axis(0.9, max(histogram.largest, 2) * 1.15, 52, _WIDTH - 8, log=True)
    y = Axis(0.7, top * 1.4, _HEIGHT - 40, 22, log=True)
    none = histogram.n_rows - sum(rows for _, _, rows, _ in bars)
    left_out = f"; {short(none)} row{'s have' if none != 1 else ' has'} none" if none else ""
    parts = frame(x, y, f"degree (nonzeros in a row{left_out})", "rows")
    for low, high, rows, (colour, treated) in bars:
        left, right = x(low - 0.45), x(high + 0.45)
        said = f"degree {_range(low, high)}: {rows:,} rows, {treated}; click to follow one of them"
        extra = attributes(info=said, pick={"degree": [low, high]}, label=said)
        wide = max(right - left - 0.6, 1.2)
        parts.append(rect(left, y(rows), wide, y.start - y(rows), colour, extra))
    place = state.graph.degrees[state.settings.row] if state.graph.n_rows else 0
    if place:
        at = x(float(place))
        parts.append(
            f'<path d="M{at:.1f} {y.start:.1f}l-4 8h8z" fill="black">'
            f"<title>the row that is followed has {place} nonzeros</title></path>"
        )
    left = 56.0
    seen = {treated for *_, treated in bars}
    for colour, label in (each for each in (ONE_WARP, SHARED, CUT, UNKNOWN) if each in seen):
        parts += [rect(left, 8, 8, 8, colour), text(left + 11, 16, label, size=10)]
        left += 22 + 5.6 * len(label)
    return svg(_WIDTH, _HEIGHT, parts, f"Degrees of {state.graph.name}: up to {histogram.largest}")


def _alike(
    side: Side, histogram: DegreeHistogram
) -> Iterator[tuple[int, int, int, tuple[str, str]]]:
    """Give ranges of degrees that are treated alike: low, high, rows, treatment."""
    bins = logarithmic_bins(histogram.degrees, histogram.rows, per_octave=3)
    before = None
    for low, high in zip(bins.low.tolist(), bins.high.tolist(), strict=True):
        start, stop = np.searchsorted(histogram.degrees, [low, high + 1]).tolist()
        there = histogram.degrees[start:stop].tolist()
        last = treatment(side, there[-1])
        if last != before and (first := treatment(side, there[0])) != last:
            # Longer rows need more, so that a range this narrow is cut once at most.
            cut = bisect_left(there, True, key=lambda degree: treatment(side, degree) == last)
            yield low, there[cut - 1], int(histogram.rows[start : start + cut].sum()), first
            low, start = there[cut], start + cut
        yield low, high, int(histogram.rows[start:stop].sum()), last
        before = last


def treatment(side: Side, degree: int) -> tuple[str, str]:
    """Say how a strategy treats a row: what it would do if the graph had no other."""
    row = DegreeHistogram(np.array([degree]), np.array([1]))
    only = RowDegrees(row, np.array([0, degree], dtype=np.int64))
    found = side.choice.strategy.closed_form(only, side.n_cols, **side.parameters)
    if found is None or found.rows_cut is None:
        return UNKNOWN
    return CUT if found.rows_cut else SHARED if found.rows_shared else ONE_WARP


def loads(state: State) -> str:
    """Draw how many warps have how many nonzeros, both strategies with the same axes."""
    tallies = [side.summary.loads for side in (state.first, state.second)]
    known = [tally for tally in tallies if tally is not None]
    if not known:
        return note("The library does not say which warp does what.")
    bins = load_bins(max(int(tally.nonzeros.max(initial=1)) for tally in known))
    highest = max(int(max(1, tally.idle or 0, *tally.binned(bins))) for tally in known)
    y = Axis(0.7, highest * 1.5, _HEIGHT - 40, 22, log=True)
    left, right = 52.0, _WIDTH - 8.0
    slot = (right - left) / (bins.size + 2)
    parts = frame(Axis(0, 1, left, right), y, "nonzeros of a warp", "warps", x_ticks=False)
    for i, tally in enumerate(tallies):
        if tally is not None:
            parts += _tally_bars(tally, bins, y, left, slot, i)
    parts.append(tick(left + slot / 2, y.start + 14, "idle"))
    for i in range(0, bins.size, max(1, math.ceil(26 / slot))):
        parts.append(tick(left + (i + 2.5) * slot, y.start + 14, short(float(bins[i]))))
    for i, side in enumerate((state.first, state.second)):
        across = left + 4 + i * (right - left) / 2
        label = "no known loads" if tallies[i] is None else shortened(named(side), 26)
        parts += [rect(across, 8, 8, 8, SIDES[i]), text(across + 11, 16, label, size=10)]
    return svg(_WIDTH, _HEIGHT, parts, "Nonzeros of the warps of both strategies")


def _tally_bars(
    tally: Loads, bins: np.ndarray, y: Axis, left: float, slot: float, side: int
) -> list[str]:
    counts = tally.binned(bins).tolist()
    lower = [1, *(bins[:-1] + 1).tolist()]
    bars = [(0, tally.idle or 0, (GREY, "#A8A8A8")[side], "no nonzero")]
    for i, (count, low, high) in enumerate(zip(counts, lower, bins.tolist(), strict=True)):
        bars.append((i + 2, count, SIDES[side], f"{_range(low, high)} nonzeros"))
    parts = []
    for place, count, fill, what in bars:
        if count:
            across = left + (place + side * 0.42 + 0.06) * slot
            info = attributes(info=f"{count:,} warps with {what}")
            parts.append(rect(across, y(count), slot * 0.42, y.start - y(count), fill, info))
    if tally.mean:
        at = left + (float(np.interp(tally.mean, bins, np.arange(bins.size))) + 2.5) * slot
        parts.append(line(at, y.start, at, y.stop, SIDES[side], ' stroke-dasharray="3 3"'))
        parts.append(f"<title>mean {tally.mean:.2f}</title>")
    return parts


def _range(low: int, high: int) -> str:
    return str(high) if low >= high else f"{low} to {high}"


def statistics(state: State) -> str:
    """Lay out the statistics of both strategies, with the change since the last setting."""
    sides = ((state.first, "first"), (state.second, "second"))
    rows = []
    for column, (name, kind) in STATISTICS.items():
        attribute = column.removeprefix("warp_nzs_")
        cell = [name]
        for side, key in sides:
            now = _value(side.summary, attribute)
            then = _value(state.before.get(key, PartitionSummary()), attribute)
            cell += [written(now, kind), _change(now, then, kind)]
        rows.append(cell)
    return drawing.table(("", "first", "Δ", "second", "Δ"), rows, classes="av-statistics")


def _value(found: PartitionSummary, attribute: str) -> float:
    number = getattr(found, attribute)
    return float("nan") if number is None else float(number)


def written(number: float, kind: str) -> str:
    """Write a statistic."""
    if math.isnan(number):
        return '<span title="not known">&ndash;</span>'
    if kind == "share":
        return f"{number:.2%}"
    if kind == "number":
        return f"{number:,.2f}"
    if number >= _LONG:
        return f'<span title="{number:,.0f}">{short(number)}</span>'
    return f"{number:,.0f}"


def _change(now: float, then: float, kind: str) -> str:
    if math.isnan(now) or math.isnan(then) or now == then:
        return ""
    sign = "+" if now > then else "&minus;"
    apart = abs(now - then)
    other = f"{apart * 100:.1f} pt" if kind == "share" else f"{apart:.2f}"
    amount = short(apart) if kind == "count" else other
    if amount in ("0.0 pt", "0.00"):
        sign, amount = "&lt;", {"share": "0.1 pt", "number": "0.01"}[kind]
    return f'<span class="av-change">{sign}{amount}</span>'


def block_map(state: State) -> str:
    """Draw the load of the warps of all blocks, both strategies on one scale of colours."""
    left, height, across, top = 60.0, 78.0, 1032.0, 18.0
    maps = [(state.first, state.first.loads), (state.second, state.second_loads)]
    most = max(
        (int(found.load.max(initial=1)) for _, found in maps if found is not None), default=1
    )
    parts: list[str] = []
    for i, (side, found) in enumerate(maps):
        parts.append(rect(left, top - 13, 8, 8, SIDES[i]))
        title = named(side)
        if found is None:
            parts.append(text(left, top + 20, _no_map(side)))
        else:
            some = f", one of {found.every:,} is shown" if found.every > 1 else ""
            title += f": {found.n_blocks:,} blocks across{some}, {found.worker}s down"
            parts.append(rect(left, top, across, height, IDLE))
            parts += cells(found.load, top, left, across, height, most)
            lines = found.load.shape[1]
            for warp in sorted({0, lines - 1}):
                at = top + (warp + 0.5) * height / max(lines, 1) + 3.5
                parts.append(tick(left - 5, at, f"{warp}", at="end"))
            worker = found.worker.split()[-1]
            parts.append(tick(left - 22, top + height / 2 + 3, worker, at="end"))
            if i == 0 and found.n_blocks:
                parts += _map_cursor(state.settings.block, found, top, left, across, height)
        parts.append(text(left + 12, top - 5, title))
        top += height + 34
    parts += _legend(left, top - 12, most)
    return svg(1100, top + 16, parts, "Nonzeros of every warp of the blocks, first and second")


def _no_map(side: Side) -> str:
    if side.summary.warps is None:
        return "A library does not say which warp does what."
    return (
        f"{short(side.summary.warps)} warps are too many to plan while a slider moves: choose it "
        "as the strategy to see its blocks."
    )


def _map_cursor(
    block: int, found: LoadMap, top: float, left: float, across: float, height: float
) -> list[str]:
    covered = found.load.shape[0] * found.every
    at = left + (block + 0.5) / covered * across
    scale = ["block", 0, covered, found.n_blocks - 1, found.every]
    choose = attributes(scale=scale, label="choose a block")
    return [
        line(at, top - 3, at, top + height + 3, "black", ' stroke-width="1.6"'),
        rect(left, top, across, height, "transparent", choose),
    ]


def _legend(left: float, top: float, most: int) -> list[str]:
    parts = [rect(left, top, 18, 10, IDLE), text(left + 22, top + 9, "idle", size=10)]
    left += 52
    colours = dict(zip(load_levels(most).tolist(), LOADS, strict=True))
    for i, (low, colour) in enumerate(colours.items()):
        parts.append(rect(left + i * 30, top, 30, 10, colour))
        if i % 2 == 0 or len(colours) < len(LOADS):
            parts.append(tick(left + i * 30, top + 21, short(low), at="start"))
    said = "nonzeros of the warp. A block lasts as long as its busiest warp; its others wait."
    return [*parts, text(left + 30 * len(colours) + 8, top + 9, said)]


def note(sentence: str) -> str:
    """Write a sentence in place of a picture, or below one."""
    return f'<p class="av-note">{escape(sentence)}</p>'


def shortened(label: str, most: int) -> str:
    """Cut a label that would not fit."""
    return label if len(label) <= most else label[: most - 1] + "…"
