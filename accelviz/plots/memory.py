"""Where in memory a block's requests go: what is moved, and what of it is asked for."""

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
from accelviz.plots.style import BLACK, GREY, VERMILLION, WARP_COLOURS, Look, tell, tidy

#: Requests over the width of a page, unless the caller says which.
MOST_REQUESTS = 320
#: Inches of a figure, as long as there are not so many arrays that more are needed.
MOST_INCHES = 9.0
#: How strong the colour of a sector is where no byte of it is asked for.
_FAINT = 0.25
#: Around requests that do not load, where an array has several kinds.
_EDGES = {"store": (BLACK, "black"), "atomic": (VERMILLION, "red")}
#: Points of an upright letter that is as wide as a bold one of the headings.
_BOLD = 12.0


@dataclass(frozen=True, eq=False)
class _Trace:
    """A trace, cut to what is shown, and what is counted of it."""

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
        cut = traced[(number >= first) & (number < stop)]
        return cls(title, sector_runs(cut), requests(cut), first, stop - first, total)

    def of_array(self, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the runs and the costs of one array."""
        runs, costs = (t[(t["array"] == name).to_numpy(bool)] for t in (self.runs, self.costs))
        return runs, costs


def access_map(
    traces: Mapping[str, pd.DataFrame],
    *,
    arrays: Sequence[str] | None = None,
    between: tuple[int, int] | None = None,
) -> list[Axes]:
    """Draw which 32-byte sectors the requests of a block move, and which bytes they ask for.

    The traces of one array are side by side. Requests go to the right, in order, and addresses
    upwards, sector by sector, the same for all traces. A sector that a request moves is faint, and
    the bytes of it that a lane asks for have the full colour of the warp. Thus 32 lanes that read
    neighboring floats are four full sectors, and 32 lanes that read here and there are 32 faint
    ones. Where an array has several kinds of requests, stores have a black edge and atomics a red
    one. Where few sectors are touched, the others have no place, and the panel says so.

    Parameters
    ----------
    traces : mapping of str to DataFrame
        Title to a trace (`accelviz.trace`), or to some warps of one, side by side.
    arrays : sequence of str, optional
        A line of panels for each; all that are touched if not given, in that order.
    between : tuple of two int, optional
        Only these of the requests (the second one excluded); the first ones, `MOST_REQUESTS` over
        the width of the page, if not given. The picture says of how many.

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
    cut = [_Trace.of(title, table, between) for title, table in traces.items()]
    names = _arrays(traces, cut, arrays) or [""]
    places = {
        name: Places(
            np.concatenate([part.of_array(name)[0]["sector"].to_numpy(np.int64) for part in cut])
        )
        for name in names
    }
    width = max(1, *(part.count for part in cut))
    heights = [float(np.clip(1.2 * np.log2(places[name].n + 1), 1.6, 12)) for name in names]
    room = 1.3 + 0.4 * len(heights)
    size = (10, room + min(0.2 * sum(heights), max(MOST_INCHES - room, 0.35 * len(heights))))
    panels = draw.new_panels(size, len(names), len(cut), height_ratios=heights)
    for i, name in enumerate(names):
        line = panels[i * len(cut) : (i + 1) * len(cut)]
        for ax, part in zip(line, cut, strict=True):
            _panel(ax, part, name, places[name], width, len(cut))
            ax.tick_params(labelbottom=name == names[-1], labelleft=ax is line[0])
        shared = any(_is_shared(part.of_array(name)[1]) for part in cut)
        line[0].set_ylabel("32 bytes" if shared else "sector", fontsize=8.5)
    for ax, part in zip(panels, cut, strict=False):
        _head(ax, part, names, len(cut))
    for ax, part in zip(panels[-len(cut) :], cut, strict=True):
        label = "time: requests, in order"
        if part.count < part.total:
            last = part.first + part.count - 1
            label += f"\n{part.first:,} to {last:,} of {part.total:,} are shown"
        note = draw.wrapped("faint: moved, full: asked for; colours: warps", len(cut), 9.5)
        ax.set_xlabel(f"{label}\n{note}", fontsize=9.5)
    return panels


def _arrays(
    traces: Mapping[str, pd.DataFrame], cut: Sequence[_Trace], wanted: Sequence[str] | None
) -> list[str]:
    """Return the arrays to draw: those wanted, or all in the order in which they are touched."""
    if wanted is None:
        runs = pd.concat([part.runs[["array", "request"]].astype({"array": str}) for part in cut])
        return list(runs.groupby("array")["request"].min().sort_values(kind="stable").index)
    known = {str(name) for traced in traces.values() for name in traced["array"].unique()}
    for name in wanted:
        if known and name not in known:
            raise ArgumentError("arrays", f"{name!r} is not touched", ", ".join(sorted(known)))
    return list(wanted)


def _panel(ax: Axes, part: _Trace, name: str, places: Places, width: int, panels: int) -> None:
    """Draw the requests of one array, as many over the width as in all panels."""
    runs, costs = part.of_array(name)
    shared = _is_shared(costs)
    left = part.first - 0.5
    ax.set(xlim=(left, left + width), ylim=(0, max(places.n, 1)))
    draw.count_ticks(ax.xaxis, most=6 if panels < 3 else 3)
    draw.count_ticks(ax.yaxis, most=4)
    tidy(ax)
    if runs.empty:
        title = f"{name}: not touched" if name else "nothing is touched"
        ax.set_title(title, loc="left", fontsize=9.5, color=GREY)
        return
    notes = _sectors(ax, runs, places, part, shared=shared)
    if places.gathered:
        unit = "pieces of 32 bytes" if shared else "sectors"
        notes = [f"only the {places.touched.size:,} of {places.spanned:,} {unit} touched", *notes]
    text = _cost(name, runs, costs)
    below = draw.wrapped("; ".join(notes), panels, 8)
    pad = 5 + 11 * (1 + below.count("\n")) * bool(notes)
    ax.set_title(draw.wrapped(text, panels, 9.5), loc="left", fontsize=9.5, pad=pad)
    draw.above(ax, below, 4, 8)
    tell(ax, f"{part.title}, {text}.")


def _sectors(
    ax: Axes, runs: pd.DataFrame, places: Places, part: _Trace, *, shared: bool
) -> list[str]:
    """Draw the sectors that requests move, faint, and the bytes asked for; explain the edges."""
    gap = 0.08 if part.count <= MOST_REQUESTS // 2 else 0.0
    left = runs["request"].to_numpy() + part.first - 0.5 + gap
    end = left + 1 - 2 * gap
    bottom = places.find(runs["sector"].to_numpy(np.int64)).astype(float)
    palette = np.array([to_rgb(colour) for colour in WARP_COLOURS])
    colours = palette[runs["warp"].to_numpy() % len(palette)]
    begins = runs["begins"].to_numpy()
    if not shared:
        faint = (side[begins] for side in (left, end, bottom, bottom + 1))
        fill = 1 - (1 - colours[begins]) * _FAINT
        # An edge of its own colour keeps a sector in sight that is lower than a pixel.
        draw.rectangles(ax, *faint, facecolors=fill, edgecolors="face", linewidths=0.4)
    kinds = runs["kind"].astype(str).to_numpy()
    several = len(set(kinds)) > 1
    low = bottom + runs["first"].to_numpy() / SECTOR_BYTES
    high = bottom + (runs["last"].to_numpy() + 1) / SECTOR_BYTES
    for kind in sorted(set(kinds)):
        chosen = kinds == kind
        full = (side[chosen] for side in (left, end, low, high))
        colour = _EDGES[kind][0] if several and kind in _EDGES else "none"
        edge: Look = {"ec": colour, "linewidths": 0.8 * several}
        # If edges snapped to pixels, an eighth of a sector would be none here and one there.
        draw.rectangles(ax, *full, facecolors=colours[chosen], **edge, snap=False)
    edged = [f"{kind}s {colour}" for kind, (_, colour) in _EDGES.items() if kind in kinds]
    return ["with edge: " + ", ".join(edged)] if several else []


def _is_shared(costs: pd.DataFrame) -> bool:
    return bool((costs["space"] == "shared").any())


def _mean(mean: float, noun: str, plural: str) -> str:
    number = f"{mean:.3g}"
    return f"{number} {noun}{plural * (number != '1')}"


def _asked(runs: pd.DataFrame, sectors: int) -> str:
    """Return the share of the bytes of moved sectors that requests ask for."""
    asked = int((runs["last"] - runs["first"] + 1).sum())
    return f"{100 * asked / (SECTOR_BYTES * sectors):.3g}%"


def _cost(name: str, runs: pd.DataFrame, costs: pd.DataFrame) -> str:
    """Say how often an array is touched, and what it costs."""
    kinds = costs["kind"].astype(str).value_counts(sort=False)
    touched = ", ".join(draw.counted(number, kind) for kind, number in kinds.items() if number)
    if _is_shared(costs):
        passes = _mean(costs["wavefronts"].mean(), "pass", "es")
        return f"{name} (shared memory): {touched}, {passes} each"
    sectors = costs["sectors"].sum()
    mean = _mean(sectors / len(costs), "sector", "s")
    return f"{name}: {touched}, {mean} each, {_asked(runs, sectors)} of it asked for"


def _head(ax: Axes, part: _Trace, names: Sequence[str], panels: int) -> None:
    """Say above all panels of a trace what its requests of global memory cost."""
    costs = part.costs[part.costs["array"].isin(names) & (part.costs["space"] == "global")]
    text = part.title
    if len(costs):
        moved = part.runs[part.runs["array"].isin(set(costs["array"]))]
        sectors = int(costs["sectors"].sum())
        mean = _mean(sectors / len(costs), "sector", "s")
        text += (
            f":\n{_asked(moved, sectors)} of the bytes it moves are asked for,\n"
            f"{draw.counted(len(costs), 'request')}, {mean} each"
        )
    lines = ax.get_title(loc="left").count("\n") + 1
    notes = "".join(note.get_text() for note in ax.texts)
    up = 8 + 13 * lines + 11 * (1 + notes.count("\n")) * bool(notes)
    heading = "\n".join(draw.wrapped(line, panels, _BOLD) for line in text.split("\n"))
    draw.above(ax, heading, up, 10.5, fontweight="bold", color="black")
    # The layout would make a panel narrower for text that is wider; it is told the height only.
    room = "\n".join("." for _ in heading.split("\n"))
    draw.above(ax, room, up, 10.5, alpha=0, in_layout=True)
    tell(ax, text.replace("\n", " ") + ".")
