"""Where in memory a block's requests go: what is moved, and what of it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize, to_rgb

from accelviz.analysis.lanes import Places, request_numbers, sector_map, sector_runs
from accelviz.analysis.traffic import SECTOR_BYTES, requests
from accelviz.errors import ArgumentError
from accelviz.plots.drawing import Look, cells, colour_bar, count_ticks, new_panels, rectangles
from accelviz.plots.labels import beside, counted, wrapped
from accelviz.plots.style import BLACK, GREY, VERMILLION, WARP_COLOURS, tell, tidy

#: Requests that are drawn one by one over the width of a page, and touched sectors in a panel.
MOST_REQUESTS, MOST_SECTORS = 320, 20_000
#: Cells of the image that is drawn instead.
LINES, COLUMNS = 60, 400
#: Of a figure of its own, as long as there are not so many arrays that more are needed.
MOST_INCHES = 9.0
#: How strong the colour of a sector is where no byte of it is asked for.
_FAINT = 0.25
_SHARE = ListedColormap(colormaps["Blues"](np.linspace(0.22, 1, 256)))
#: Around requests that do not load, where an array has several kinds.
_EDGES = {"load": "none", "store": BLACK, "atomic": VERMILLION}
_EDGE_NAMES = {"store": "black", "atomic": "red"}
#: Points of an upright letter that is as wide as a bold one of the headings.
_BOLD = 12.0
#: The colour bar takes the room of so many more panels, in proportion.
_BAR = 1.13
#: For text above a panel.
_ABOVE: Look = {"xycoords": "axes fraction", "in_layout": False}


@dataclass(frozen=True, eq=False)
class _Trace:
    """A trace, cut to what is shown, and what is counted of it."""

    title: str
    runs: pd.DataFrame
    costs: pd.DataFrame
    first: int
    shown: int
    total: int

    @classmethod
    def of(cls, title: str, traced: pd.DataFrame, between: tuple[int, int] | None) -> _Trace:
        number = request_numbers(traced)
        total = int(number.max(initial=-1)) + 1
        first, stop = between or (0, total)
        stop = min(stop, total)
        first = min(first, stop)
        cut = traced[(number >= first) & (number < stop)]
        return cls(title, sector_runs(cut), requests(cut), first, stop - first, total)

    def runs_of(self, array: str) -> pd.DataFrame:
        return self.runs[(self.runs["array"] == array).to_numpy(bool)]

    def costs_of(self, array: str) -> pd.DataFrame:
        return self.costs[(self.costs["array"] == array).to_numpy(bool)]


def access_map(
    traces: Mapping[str, pd.DataFrame],
    *,
    arrays: Sequence[str] | None = None,
    warps: Sequence[int] | None = None,
    between: tuple[int, int] | None = None,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Draw which 32-byte sectors the requests of a block move, and which bytes they ask for.

    The traces of one array are side by side. Requests go to the right, in order, and addresses
    upwards, sector by sector, the same for all traces. A sector that a request moves is faint, and
    the bytes of it that a lane asks for have the full colour of the warp. Thus 32 lanes that read
    neighboring floats are four full sectors, and 32 lanes that read here and there are 32 faint
    ones. Where an array has several kinds of requests, stores have a black edge and atomics a red
    one. Where few sectors are touched, the others have no place, and the panel says so.

    More than `MOST_REQUESTS` requests (over the width of the page) or `MOST_SECTORS` sectors make
    an image of at most `LINES` x `COLUMNS` cells, and the picture says how much a cell is. Its
    colour is the share of the moved bytes that is asked for. Each trace then has its own axis of
    requests; the heading has their number.

    Parameters
    ----------
    traces : mapping of str to DataFrame
        Title to a trace (`accelviz.trace`), side by side.
    arrays : sequence of str, optional
        A line of panels for each; all that are touched if not given, in that order.
    warps : sequence of int, optional
        Only the requests of these warps of the block, for a close-up; all if not given.
    between : tuple of two int, optional
        Only these of the requests (the second one excluded), for a close-up; all if not given.

    Raises
    ------
    ArgumentError
        If there is no trace, `between` is not ascending from 0 or more, or no trace touches one of
        `arrays`.
    """
    if not traces:
        raise ArgumentError("traces", "no trace", "one or more, by title")
    if between is not None and not 0 <= between[0] < between[1]:
        expected = "two ascending numbers, the first 0 or more"
        raise ArgumentError("between", f"got {between}", expected)
    cut = []
    for title, traced in traces.items():
        chosen = traced if warps is None else traced[traced["warp"].isin(list(warps))]
        cut.append(_Trace.of(title, chosen, between))
    names = _arrays(traces, cut, arrays) or [""]
    places = {}
    for name in names:
        touched = [each.runs_of(name)["sector"].to_numpy(np.int64) for each in cut]
        places[name] = Places.of(np.concatenate(touched))
    single = all(
        each.shown * len(cut) <= MOST_REQUESTS and len(each.runs) <= MOST_SECTORS for each in cut
    )
    width = max(each.shown for each in cut) if single else None
    heights = [float(np.clip(1.2 * np.log2(places[name].n + 1), 1.6, 12)) for name in names]
    room = 1.3 + 0.4 * len(heights)
    size = (10, room + min(0.2 * sum(heights), max(MOST_INCHES - room, 0.35 * len(heights))))
    axes = new_panels(axes, size, len(names), len(cut), height_ratios=heights)
    panels = np.reshape(np.array(axes, dtype=object), (len(names), len(cut)))
    for line, name in zip(panels, names, strict=True):
        for ax, each in zip(line, cut, strict=True):
            _panel(ax, each, name, places[name], width, len(cut))
            ax.tick_params(labelbottom=name == names[-1], labelleft=ax is line[0])
        shared = any(_is_shared(each.costs_of(name)) for each in cut)
        line[0].set_ylabel("32 bytes" if shared else "sector", fontsize=8.5)
    for ax, each in zip(panels[0], cut, strict=True):
        _head(ax, each, names, len(cut))
    for ax, each in zip(panels[-1], cut, strict=True):
        label = "time: requests, in order"
        if each.shown < each.total:
            last = each.first + each.shown - 1
            label += f"\n{each.first:,} to {last:,} of {each.total:,} are shown"
        per_cell = max(1, -(-each.shown // (COLUMNS // len(cut))))
        note = f"{counted(per_cell, 'request')} to a cell"
        if len({other.shown for other in cut}) > 1:
            note += " (each panel as wide as its own requests)"
        note = wrapped(note, len(cut), 9.5)
        if single:
            note = wrapped("faint: moved, full: asked for; colours: warps", len(cut), 9.5)
        ax.set_xlabel(f"{label}\n{note}", fontsize=9.5)
    if not single:
        shares = ScalarMappable(Normalize(0, 1), _SHARE)
        bar = colour_bar(axes, shares, "share of the moved bytes that is asked for", aspect=30)
        bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    return axes


def _arrays(
    traces: Mapping[str, pd.DataFrame], cut: Sequence[_Trace], wanted: Sequence[str] | None
) -> list[str]:
    """Return the arrays to draw: those wanted, or all in the order in which they are touched."""
    if wanted is None:
        runs = pd.concat([each.runs[["array", "request"]].astype({"array": str}) for each in cut])
        return list(runs.groupby("array")["request"].min().sort_values(kind="stable").index)
    known = {str(name) for traced in traces.values() for name in traced["array"].unique()}
    for name in wanted:
        if known and name not in known:
            raise ArgumentError("arrays", f"{name!r} is not touched", ", ".join(sorted(known)))
    return list(wanted)


def _panel(
    ax: Axes, each: _Trace, name: str, places: Places, width: int | None, panels: int
) -> None:
    """Draw the requests of one array, one by one if there is a width that all panels share."""
    runs, costs = each.runs_of(name), each.costs_of(name)
    shared = _is_shared(costs)
    left, top = each.first - 0.5, max(places.n, 1)
    ax.set(xlim=(left, left + max(width or each.shown, 1)), ylim=(0, top))
    count_ticks(ax.xaxis, most=6 if panels < 3 else 3)
    count_ticks(ax.yaxis, most=4)
    tidy(ax)
    if not len(runs):
        said = f"{name}: not touched" if name else "nothing is touched"
        ax.set_title(said, loc="left", fontsize=9.5, color=GREY)
        return
    notes = []
    if places.gathered:
        what = "pieces of 32 bytes" if shared else "sectors"
        notes.append(f"only the {places.touched.size:,} of {places.spanned:,} {what} touched")
    if width is not None:
        edges = _sectors(ax, runs, places, each, shared=shared)
        notes += [edges] if edges else []
    else:
        found = sector_map(runs, places, each.shown, lines=LINES, columns=COLUMNS // panels)
        # What is not moved in sectors is all asked for.
        share = np.where(np.isnan(found.share), np.nan, 1.0) if shared else found.share
        right = left + share.shape[1] * found.requests_per_column
        extent = (left, right, 0, share.shape[0] * found.places_per_line)
        cells(ax, share, _SHARE, Normalize(0, 1), origin="lower", extent=extent)
        ax.set(xlim=(left, left + max(each.shown, 1)), ylim=(0, top))
        if found.places_per_line > 1:
            notes.append(f"{found.places_per_line:,} sectors to a cell")
    said = _cost(name, runs, costs)
    across = panels * (_BAR if width is None else 1.0)
    below = wrapped("; ".join(notes), across, 8)
    pad = 5 + 11 * (1 + below.count("\n")) * bool(notes)
    ax.set_title(wrapped(said, across, 9.5), loc="left", fontsize=9.5, pad=pad)
    beside(ax, below, (0, 1), (0, 4), **_ABOVE, fontsize=8, color=GREY)
    tell(ax, f"{each.title}, {said}.")


def _sectors(ax: Axes, runs: pd.DataFrame, places: Places, each: _Trace, *, shared: bool) -> str:
    """Draw the sectors that requests move, faint, and the bytes asked for; explain the edges."""
    gap = 0.08 if each.shown <= MOST_REQUESTS // 2 else 0.0
    left = runs["request"].to_numpy() + each.first - 0.5 + gap
    right = left + 1 - 2 * gap
    bottom = places.find(runs["sector"].to_numpy(np.int64)).astype(float)
    palette = np.array([to_rgb(colour) for colour in WARP_COLOURS])
    colours = palette[runs["warp"].to_numpy() % len(palette)]
    begins = runs["begins"].to_numpy()
    if not shared:
        faint = (side[begins] for side in (left, right, bottom, bottom + 1))
        fill = 1 - (1 - colours[begins]) * _FAINT
        # An edge of its own colour keeps a sector in sight that is lower than a pixel.
        rectangles(ax, *faint, facecolors=fill, edgecolors="face", linewidths=0.4)
    kinds = runs["kind"].astype(str).to_numpy()
    several = len(set(kinds)) > 1
    low = bottom + runs["first"].to_numpy() / SECTOR_BYTES
    high = bottom + (runs["last"].to_numpy() + 1) / SECTOR_BYTES
    for kind in sorted(set(kinds)):
        chosen = kinds == kind
        full = (side[chosen] for side in (left, right, low, high))
        edge: Look = {"ec": _EDGES[kind] if several else "none", "linewidths": 0.8 * several}
        # If edges snapped to pixels, an eighth of a sector would be none here and one there.
        rectangles(ax, *full, facecolors=colours[chosen], **edge, snap=False)
    edged = [f"{kind}s {colour}" for kind, colour in _EDGE_NAMES.items() if kind in kinds]
    return "with edge: " + ", ".join(edged) if several else ""


def _is_shared(costs: pd.DataFrame) -> bool:
    return bool((costs["space"] == "shared").any())


def _mean(mean: float, what: str, plural: str) -> str:
    number = f"{mean:.3g}"
    return f"{number} {what}{plural * (number != '1')}"


def _asked(runs: pd.DataFrame, sectors: int) -> str:
    """Return the share of the bytes of moved sectors that requests ask for."""
    asked = int((runs["last"] - runs["first"] + 1).sum())
    return f"{100 * asked / (SECTOR_BYTES * sectors):.3g}%"


def _cost(name: str, runs: pd.DataFrame, costs: pd.DataFrame) -> str:
    """Say how often an array is touched, and what it costs."""
    kinds = costs["kind"].astype(str).value_counts(sort=False)
    made = ", ".join(counted(number, kind) for kind, number in kinds[kinds > 0].items())
    if _is_shared(costs):
        passes = costs["wavefronts"].mean()
        return f"{name} (shared memory): {made}, {_mean(passes, 'pass', 'es')} each"
    sectors = costs["sectors"].sum()
    return (
        f"{name}: {made}, {_mean(sectors / len(costs), 'sector', 's')} each, "
        f"{_asked(runs, sectors)} of it asked for"
    )


def _head(ax: Axes, each: _Trace, names: Sequence[str], panels: int) -> None:
    """Say above all panels of a trace what its requests of global memory cost."""
    chosen = each.costs["array"].isin(names) & (each.costs["space"] == "global")
    runs = pd.concat([each.runs_of(name) for name in names]) if names else each.runs
    costs = each.costs[chosen.to_numpy(bool)]
    text = each.title
    if len(costs):
        arrays = set(costs["array"])
        moved = runs[runs["array"].isin(arrays).to_numpy(bool)]
        sectors = int(costs["sectors"].sum())
        text += (
            f":\n{_asked(moved, sectors)} of the bytes it moves are asked for,\n"
            f"{counted(len(costs), 'request')}, {_mean(sectors / len(costs), 'sector', 's')} each"
        )
    lines = ax.get_title(loc="left").count("\n") + 1
    notes = "".join(note.get_text() for note in ax.texts)
    above = 8 + 13 * lines + 11 * (1 + notes.count("\n")) * bool(notes)
    shown = "\n".join(wrapped(line, panels * _BAR, _BOLD) for line in text.split("\n"))
    beside(ax, shown, (0, 1), (0, above), **_ABOVE, fontsize=10.5, fontweight="bold")
    # The layout would make a panel narrower for text that is wider; it is told the height only.
    room = "\n".join("." for _ in shown.split("\n"))
    beside(ax, room, (0, 1), (0, above), xycoords="axes fraction", alpha=0, fontsize=10.5)
    tell(ax, text.replace("\n", " ") + ".")
