"""Who reads and writes what: threads downwards, elements to the right, a panel for each array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from accelviz.analysis.traffic import BANK_BYTES, BANKS, SECTOR_BYTES, requests
from accelviz.plots.draw import Look, new_panels, pluralize, rectangles, wrap
from accelviz.plots.style import (
    BLUE,
    GREY,
    ORANGE,
    PURPLE,
    VERMILLION,
    add_alt,
    paler,
    picture_html,
)

_COLOURS = {"load": BLUE, "store": ORANGE, "atomic": PURPLE}
_WORDS = {"load": "read", "store": "written", "atomic": "updated by atomics"}
#: Threads that are drawn, as others look the same; panels beside each other.
_MOST_THREADS, _ACROSS = 384, 3
_WARP = 32


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
        A panel for each array and kind of access; "" if nothing was accessed.
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
    drawn_threads = min(threads, _MOST_THREADS)
    known = {panel.name: panel for panel in panels}
    first_requests = {(panel.name, "store"): np.inf for panel in panels if len(panel.wrong)}
    first_requests |= dict(traced.groupby(["array", "kind"])["request"].min())
    wanted = sorted(first_requests, key=lambda pair: first_requests[pair])
    down = -(-len(wanted) // _ACROSS)
    axes = new_panels((10, 2.4 * down), down, min(len(wanted), _ACROSS))
    for ax, (name, kind) in zip(axes, wanted, strict=False):
        accesses = traced[(traced["array"] == name) & (traced["kind"] == kind)]
        _draw(ax, known.get(name, Panel(name, 0)), kind, accesses, costs, block, drawn_threads)
    for ax in axes[len(wanted) :]:
        ax.set_axis_off()
    which = f", of {threads} the first {drawn_threads}" * (threads > drawn_threads)
    legend = "What was done before the mistake. " * to_the_mistake
    legend += (
        f"Downwards the threads of all blocks{which}; to the right the elements. In full colour: "
        "the request that costs most."
    )
    untouched = [panel.name for panel in panels if not (traced["array"] == panel.name).any()]
    if untouched:
        legend += f" Not touched: {escape(', '.join(untouched))}."
    figure = axes[0].get_figure(root=True)
    assert figure is not None
    return f'<p style="font-size: 12px; margin: 6px 0">{legend}</p>{picture_html(figure)}'


def _draw(
    ax: Any,
    panel: Panel,
    kind: str,
    accesses: pd.DataFrame,
    costs: pd.DataFrame,
    block: int,
    threads: int,
) -> None:
    """Draw who accesses an array in one way, and say what that costs."""
    banked = bool((accesses["space"] == "shared").any())
    columns = BANKS if banked else max(panel.size, 1)
    ax.set(xlim=(0, columns), ylim=(threads, 0))
    lines: Look = {"color": GREY, "linewidth": 0.4, "alpha": 0.6, "zorder": 0}
    if not banked and columns <= 640:
        ax.vlines(range(0, columns, SECTOR_BYTES // BANK_BYTES), 0, threads, **lines)
    between = _WARP if threads > _WARP else 8
    ax.hlines(range(0, threads, between), 0, columns, **lines)
    edges = range(block, threads, block) if 48 * block >= threads else ()
    ax.hlines(edges, 0, columns, color=GREY, linewidth=1.2, zorder=0)
    step = between * -(-threads // (12 * between))
    ax.set_yticks(np.arange(0, threads, step) + 0.5, map(str, range(0, threads, step)))
    last = "31" if banked else f"[{panel.size - 1}]" if panel.size > 1 else ""
    ax.set_xticks([0, columns], ["bank 0" if banked else f"{panel.name}[0]", last])
    ax.tick_params(length=0, labelsize=8)
    said, reach = "by no thread", ""
    if len(accesses):
        price = "wavefronts" if banked else "sectors"
        of_array = costs.loc[accesses["request"].unique()]
        drawn = accesses["thread"] < threads
        seen = of_array.loc[accesses.loc[drawn, "request"].unique()]
        candidates = seen if len(seen) else of_array
        costliest = (candidates[price] + candidates["collisions"]).idxmax()
        said = _caption(of_array, of_array.loc[costliest], price)
        spread = words(accesses)
        (first, low), (until, high) = (
            spread[["thread", "element"]].agg(end) for end in ("min", "max")
        )
        reach = f" Threads {first} to {until} access {panel.name}[{low}] to {panel.name}[{high}]."
        for only in (spread, spread[spread["request"] == costliest]):
            cells = only[only["thread"] < threads].drop_duplicates(["thread", "element"])
            left = cells["element"].to_numpy() % columns
            top = cells["thread"].to_numpy()
            colour = paler(_COLOURS[kind], 0.5) if only is spread else _COLOURS[kind]
            look: Look = {"facecolors": [colour], "edgecolors": "face", "linewidths": 0.7}
            rectangles(ax, left, left + 1, top, top + 1, **look)
    if len(panel.wrong) and kind != "load":
        text = f"✗ {len(panel.wrong)} wrong"
        ax.plot(
            np.array(panel.wrong) + 0.5,
            [threads] * len(panel.wrong),
            "|",
            color=VERMILLION,
            clip_on=False,
        )
        ax.set_xlabel(text, color=VERMILLION, fontsize=9, labelpad=-8)
        reach += f" {text}."
    title = f"{panel.name}, {_WORDS[kind]}{', shared memory' * banked}: {said}"
    ax.set_title(wrap(title, _ACROSS, 8.5), loc="left", fontsize=8.5)
    add_alt(ax, f"{title}.{reach}")


def _caption(of_array: pd.DataFrame, costliest: pd.Series, price: str) -> str:
    total, lanes = int(of_array[price].sum()), int(costliest["lanes"])
    unit = ("sector", "s") if price == "sectors" else ("pass", "es")
    said = f"{pluralize(len(of_array), 'request')}, {pluralize(total, *unit)}; the costliest: "
    said += f"{pluralize(lanes, 'lane')}, {pluralize(int(costliest[price]), *unit)}"
    met = int(of_array["collisions"].sum())
    return said + (f"; {pluralize(met, 'lane')} found the element taken" if met else "")


def words(accesses: pd.DataFrame) -> pd.DataFrame:
    """Return accesses with a row for each word of four bytes, the `element`."""
    words = np.maximum(accesses["bytes"].to_numpy() // BANK_BYTES, 1)
    spread = accesses.loc[accesses.index.repeat(words)]
    within = np.arange(words.sum()) - np.repeat(np.cumsum(words) - words, words)
    return spread.assign(element=spread["offset"] // BANK_BYTES + within)
