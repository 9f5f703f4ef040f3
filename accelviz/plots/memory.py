"""Picture of memory accesses: the sectors that requests move, and the bytes that lanes request.

A request is one memory instruction of one warp. It moves whole sectors of 32 bytes of global
memory. The difference between moved and requested bytes is wasted bandwidth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from accelviz.analysis.lanes import Places, request_numbers, sector_runs
from accelviz.analysis.traffic import SECTOR_BYTES, requests
from accelviz.errors import ArgumentError
from accelviz.plots import draw
from accelviz.plots.style import BLACK, GREY, VERMILLION, WARP_COLOURS, Look, add_alt, tidy

#: Default number of requests over the width of a page.
MOST_REQUESTS = 320
#: Largest height of a figure in inches, unless many arrays need more.
MOST_INCHES = 9.0
#: Opacity of the moved bytes that no lane requests.
_FAINT = 0.25
#: Edge colour, and its name, of requests that are not loads, in arrays with several kinds.
_EDGES = {"store": (BLACK, "black"), "atomic": (VERMILLION, "red")}
#: Font size, in points, of regular text as wide as the bold headings.
_BOLD_SIZE = 12.0


@dataclass(frozen=True, eq=False)
class _Trace:
    """The drawn requests `first`, ..., `first + count - 1` of a trace with `total` requests."""

    title: str
    runs: pd.DataFrame
    costs: pd.DataFrame
    first: int
    count: int
    total: int

    @classmethod
    def of(cls, title: str, traced: pd.DataFrame, between: tuple[int, int]) -> _Trace:
        number = request_numbers(traced)
        total = int(number.max(initial=-1)) + 1
        first, stop = (min(bound, total) for bound in between)
        drawn = traced[(number >= first) & (number < stop)]
        return cls(title, sector_runs(drawn), requests(drawn), first, stop - first, total)

    def array(self, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return `runs` and `costs` of one array."""
        runs, costs = (t[(t["array"] == name).to_numpy(bool)] for t in (self.runs, self.costs))
        return runs, costs


def access_map(
    traces: Mapping[str, pd.DataFrame],
    *,
    arrays: Sequence[str] | None = None,
    between: tuple[int, int] | None = None,
) -> list[Axes]:
    """Draw the 32-byte sectors that the requests of a block move, and the bytes that lanes request.

    Each array has a line of panels, each trace a column. The x axis is time (requests in order),
    the y axis the address in sectors, the same for all traces. A moved sector is faint; its
    requested bytes have the full colour of the warp. Thus 32 lanes that read neighboring floats are
    four full sectors, and 32 lanes that read scattered floats are 32 faint ones. If an array has
    several kinds of requests, stores have a black edge and atomics a red one. If few of the sectors
    in the address range are touched, the others are omitted and the panel states it.

    Parameters
    ----------
    traces : mapping of str to DataFrame
        Title to a trace (`accelviz.trace`), or to a part of one, such as some of its warps.
    arrays : sequence of str, optional
        Arrays to draw. The default is all touched arrays, in the order of their first access.
    between : tuple of two int, optional
        Range of requests to draw (the second number excluded). The default is the first
        `MOST_REQUESTS`, divided by the number of traces. The picture states the total.

    Raises
    ------
    ArgumentError
        If there is no trace, `between` is not ascending from 0 or more, or no trace touches one of
        `arrays`.
    """
    if not traces:
        raise ArgumentError("traces", "no trace", "one or more, by title")
    between = (0, MOST_REQUESTS // len(traces)) if between is None else between
    if not 0 <= between[0] < between[1]:
        expected = "two ascending numbers, the first 0 or more"
        raise ArgumentError("between", f"got {between}", expected)
    columns = [_Trace.of(title, table, between) for title, table in traces.items()]
    names = _array_names(traces, columns, arrays) or [""]
    places = {}
    for name in names:
        sectors = [column.array(name)[0]["sector"].to_numpy(np.int64) for column in columns]
        places[name] = Places(np.concatenate(sectors))
    width = max(1, *(column.count for column in columns))
    heights = [float(np.clip(1.2 * np.log2(places[name].n + 1), 1.6, 12)) for name in names]
    text_inches = 1.3 + 0.4 * len(heights)
    panel_inches = max(MOST_INCHES - text_inches, 0.35 * len(heights))
    size = (10, text_inches + min(0.2 * sum(heights), panel_inches))
    panels = draw.new_panels(size, len(names), len(columns), height_ratios=heights)
    for i, name in enumerate(names):
        line = panels[i * len(columns) : (i + 1) * len(columns)]
        for ax, column in zip(line, columns, strict=True):
            _draw_panel(ax, column, name, places[name], width, len(columns))
            ax.tick_params(labelbottom=name == names[-1], labelleft=ax is line[0])
        shared = any(_is_shared(column.array(name)[1]) for column in columns)
        line[0].set_ylabel("32 bytes" if shared else "sector", fontsize=8.5)
    for ax, column in zip(panels, columns, strict=False):
        _write_heading(ax, column, names, len(columns))
    for ax, column in zip(panels[-len(columns) :], columns, strict=True):
        label = "time: requests, in order"
        if column.count < column.total:
            last = column.first + column.count - 1
            label += f"\n{column.first:,} to {last:,} of {column.total:,} are shown"
        note = draw.wrap("faint: moved, full: asked for; colours: warps", len(columns), 9.5)
        ax.set_xlabel(f"{label}\n{note}", fontsize=9.5)
    return panels


def _array_names(
    traces: Mapping[str, pd.DataFrame], columns: Sequence[_Trace], arrays: Sequence[str] | None
) -> list[str]:
    if arrays is None:
        tables = [column.runs[["array", "request"]].astype({"array": str}) for column in columns]
        first_request = pd.concat(tables).groupby("array")["request"].min()
        return list(first_request.sort_values(kind="stable").index)
    known = {str(name) for traced in traces.values() for name in traced["array"].unique()}
    for name in arrays:
        if known and name not in known:
            raise ArgumentError("arrays", f"{name!r} is not touched", ", ".join(sorted(known)))
    return list(arrays)


def _draw_panel(
    ax: Axes, column: _Trace, name: str, places: Places, width: int, panels: int
) -> None:
    """Draw the requests of one array; `width` is the number of requests on the x axis."""
    runs, costs = column.array(name)
    shared = _is_shared(costs)
    left = column.first - 0.5
    ax.set(xlim=(left, left + width), ylim=(0, max(places.n, 1)))
    draw.count_ticks(ax.xaxis, most=6 if panels < 3 else 3)
    draw.count_ticks(ax.yaxis, most=4)
    tidy(ax)
    if runs.empty:
        title = f"{name}: not touched" if name else "nothing is touched"
        ax.set_title(title, loc="left", fontsize=9.5, color=GREY)
        return
    notes = _draw_sectors(ax, runs, places, column, shared=shared)
    if places.gathered:
        unit = "pieces of 32 bytes" if shared else "sectors"
        notes = [f"only the {places.touched.size:,} of {places.spanned:,} {unit} touched", *notes]
    text = _cost_text(name, runs, costs)
    subtitle = draw.wrap("; ".join(notes), panels, 8)
    pad = 5 + 11 * (1 + subtitle.count("\n")) * bool(notes)
    ax.set_title(draw.wrap(text, panels, 9.5), loc="left", fontsize=9.5, pad=pad)
    draw.write_above(ax, subtitle, 4, 8)
    add_alt(ax, f"{column.title}, {text}.")


def _draw_sectors(
    ax: Axes, runs: pd.DataFrame, places: Places, column: _Trace, *, shared: bool
) -> list[str]:
    """Draw moved sectors and requested bytes, and return notes that explain the edge colours."""
    gap = 0.08 if column.count <= MOST_REQUESTS // 2 else 0.0
    left = runs["request"].to_numpy() + column.first - 0.5 + gap
    end = left + 1 - 2 * gap
    bottom = places.find(runs["sector"].to_numpy(np.int64)).astype(float)
    palette = np.array([to_rgb(colour) for colour in WARP_COLOURS])
    colours = palette[runs["warp"].to_numpy() % len(palette)]
    begins = runs["begins"].to_numpy()
    if not shared:
        faint = (side[begins] for side in (left, end, bottom, bottom + 1))
        fill = 1 - (1 - colours[begins]) * _FAINT
        # The edge keeps sectors visible that are lower than a pixel.
        draw.rectangles(ax, *faint, facecolors=fill, edgecolors="face", linewidths=0.4)
    kinds = runs["kind"].astype(str).to_numpy()
    has_several = len(set(kinds)) > 1
    low = bottom + runs["first"].to_numpy() / SECTOR_BYTES
    high = bottom + (runs["last"].to_numpy() + 1) / SECTOR_BYTES
    for kind in sorted(set(kinds)):
        is_kind = kinds == kind
        requested = (side[is_kind] for side in (left, end, low, high))
        colour = _EDGES[kind][0] if has_several and kind in _EDGES else "none"
        edge: Look = {"ec": colour, "linewidths": 0.8 * has_several}
        # Snapped to pixels, equal parts of a sector would differ in height or vanish.
        draw.rectangles(ax, *requested, facecolors=colours[is_kind], **edge, snap=False)
    edges = [f"{kind}s {colour}" for kind, (_, colour) in _EDGES.items() if kind in kinds]
    return ["with edge: " + ", ".join(edges)] if has_several else []


def _is_shared(costs: pd.DataFrame) -> bool:
    return bool((costs["space"] == "shared").any())


def _mean_text(mean: float, noun: str, plural: str) -> str:
    number = f"{mean:.3g}"
    return f"{number} {noun}{plural * (number != '1')}"


def _requested_share(runs: pd.DataFrame, sectors: int) -> str:
    """Return requested bytes over moved bytes, in percent."""
    requested = int((runs["last"] - runs["first"] + 1).sum())
    return f"{100 * requested / (SECTOR_BYTES * sectors):.3g}%"


def _cost_text(name: str, runs: pd.DataFrame, costs: pd.DataFrame) -> str:
    """Return the number of requests of an array by kind, and their mean cost, as text."""
    kinds = costs["kind"].astype(str).value_counts(sort=False)
    touched = ", ".join(draw.pluralize(number, kind) for kind, number in kinds.items() if number)
    if _is_shared(costs):
        passes = _mean_text(costs["wavefronts"].mean(), "pass", "es")
        return f"{name} (shared memory): {touched}, {passes} each"
    sectors = costs["sectors"].sum()
    mean = _mean_text(sectors / len(costs), "sector", "s")
    return f"{name}: {touched}, {mean} each, {_requested_share(runs, sectors)} of it asked for"


def _write_heading(ax: Axes, column: _Trace, names: Sequence[str], panels: int) -> None:
    costs = column.costs[column.costs["array"].isin(names) & (column.costs["space"] == "global")]
    text = column.title
    if len(costs):
        runs = column.runs[column.runs["array"].isin(set(costs["array"]))]
        sectors = int(costs["sectors"].sum())
        mean = _mean_text(sectors / len(costs), "sector", "s")
        text += (
            f":\n{_requested_share(runs, sectors)} of the bytes it moves are asked for,\n"
            f"{draw.pluralize(len(costs), 'request')}, {mean} each"
        )
    lines = ax.get_title(loc="left").count("\n") + 1
    notes = "".join(note.get_text() for note in ax.texts)
    up = 8 + 13 * lines + 11 * (1 + notes.count("\n")) * bool(notes)
    heading = "\n".join(draw.wrap(line, panels, _BOLD_SIZE) for line in text.split("\n"))
    draw.write_above(ax, heading, up, 10.5, fontweight="bold", color="black")
    # The layout narrows a panel beside wide text, so an invisible narrow text reserves the height.
    spacer = "\n".join("." for _ in heading.split("\n"))
    draw.write_above(ax, spacer, up, 10.5, alpha=0, in_layout=True)
    add_alt(ax, text.replace("\n", " ") + ".")
