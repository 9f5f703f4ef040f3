"""Draws the memory accesses of a kernel: one panel per array and kind of access (load, store).

Threads run downwards, elements of the array to the right; a cell is colored if the thread accesses
the element. Arrays in shared memory are drawn by bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from accelviz.analysis.traffic import BANK_BYTES, BANKS, SECTOR_BYTES, requests
from accelviz.plots import style
from accelviz.plots.draw import Look, new_panels, pluralize, rectangles, wrap

_COLOURS = {"load": style.BLUE, "store": style.ORANGE, "atomic": style.PURPLE}
_WORDS = {"load": "read", "store": "written", "atomic": "updated by atomics"}
#: Number of threads that are drawn, and of panels in a row.
_MAX_THREADS, _ACROSS = 384, 3
_WARP = 32


@dataclass(frozen=True)
class Panel:
    """An array to draw: name in the trace, number of elements, indices of wrong elements."""

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
        Result of `trace_kernel`.
    panels : sequence of Panel
        Arrays in global memory; arrays in shared memory are taken from the trace.
    block, threads : int
        Number of threads per block, and of all threads.
    to_the_mistake : bool
        Whether the trace ends at an error of the kernel.

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
    drawn_threads = min(threads, _MAX_THREADS)
    panels_by_name = {panel.name: panel for panel in panels}
    first_requests = {(panel.name, "store"): np.inf for panel in panels if len(panel.wrong)}
    first_requests |= dict(traced.groupby(["array", "kind"])["request"].min())
    drawn = sorted(first_requests, key=lambda pair: first_requests[pair])
    n_rows = -(-len(drawn) // _ACROSS)
    axes = new_panels((10, 2.4 * n_rows), n_rows, min(len(drawn), _ACROSS))
    for ax, (name, kind) in zip(axes, drawn, strict=False):
        accesses = traced[(traced["array"] == name) & (traced["kind"] == kind)]
        panel = panels_by_name.get(name, Panel(name, 0))
        _draw(ax, panel, kind, accesses, costs, block, drawn_threads)
    for ax in axes[len(drawn) :]:
        ax.set_axis_off()
    selection = f", of {threads} the first {drawn_threads}" * (threads > drawn_threads)
    legend = "What was done before the mistake. " * to_the_mistake
    legend += (
        f"Downwards the threads of all blocks{selection}; to the right the elements. In full "
        "colour: the request that costs most."
    )
    untouched = [panel.name for panel in panels if not (traced["array"] == panel.name).any()]
    if untouched:
        legend += f" Not touched: {escape(', '.join(untouched))}."
    figure = axes[0].get_figure(root=True)
    assert figure is not None
    return f'<p style="font-size: 12px; margin: 6px 0">{legend}</p>{style.picture_html(figure)}'


def _draw(
    ax: Any,
    panel: Panel,
    kind: str,
    accesses: pd.DataFrame,
    costs: pd.DataFrame,
    block: int,
    threads: int,
) -> None:
    """Draw one kind of access to an array, with its cost as the title."""
    banked = bool((accesses["space"] == "shared").any())
    columns = BANKS if banked else max(panel.size, 1)
    ax.set(xlim=(0, columns), ylim=(threads, 0))
    lines: Look = {"color": style.GREY, "linewidth": 0.4, "alpha": 0.6, "zorder": 0}
    if not banked and columns <= 640:
        ax.vlines(range(0, columns, SECTOR_BYTES // BANK_BYTES), 0, threads, **lines)
    distance = _WARP if threads > _WARP else 8
    ax.hlines(range(0, threads, distance), 0, columns, **lines)
    block_edges = range(block, threads, block) if 48 * block >= threads else ()
    ax.hlines(block_edges, 0, columns, color=style.GREY, linewidth=1.2, zorder=0)
    step = distance * -(-threads // (12 * distance))
    ax.set_yticks(np.arange(0, threads, step) + 0.5, map(str, range(0, threads, step)))
    end_label = f"[{panel.size - 1}]" if panel.size > 1 else ""
    x_labels = ("bank 0", "31") if banked else (f"{panel.name}[0]", end_label)
    ax.set_xticks([0, columns], x_labels)
    ax.tick_params(length=0, labelsize=8)
    caption, extent = "by no thread", ""
    if len(accesses):
        unit = "wavefronts" if banked else "sectors"
        array_costs = costs.loc[accesses["request"].unique()]
        is_drawn = accesses["thread"] < threads
        drawn_costs = array_costs.loc[accesses.loc[is_drawn, "request"].unique()]
        candidates = drawn_costs if len(drawn_costs) else array_costs
        costliest = (candidates[unit] + candidates["collisions"]).idxmax()
        caption = _caption(array_costs, array_costs.loc[costliest], unit)
        elements = words(accesses)
        (first, low), (last, high) = (
            elements[["thread", "element"]].agg(end) for end in ("min", "max")
        )
        extent = f" Threads {first} to {last} access {panel.name}[{low}] to {panel.name}[{high}]."
        pale = style.paler(_COLOURS[kind], 0.5)
        in_costliest = elements[elements["request"] == costliest]
        for accessed, colour in ((elements, pale), (in_costliest, _COLOURS[kind])):
            cells = accessed[accessed["thread"] < threads].drop_duplicates(["thread", "element"])
            left = cells["element"].to_numpy() % columns
            top = cells["thread"].to_numpy()
            look: Look = {"facecolors": [colour], "edgecolors": "face", "linewidths": 0.7}
            rectangles(ax, left, left + 1, top, top + 1, **look)
    if len(panel.wrong) and kind != "load":
        text = f"✗ {len(panel.wrong)} wrong"
        positions = np.array(panel.wrong) + 0.5
        heights = [threads] * len(positions)
        ax.plot(positions, heights, "|", color=style.VERMILLION, clip_on=False)
        ax.set_xlabel(text, color=style.VERMILLION, fontsize=9, labelpad=-8)
        extent += f" {text}."
    title = f"{panel.name}, {_WORDS[kind]}{', shared memory' * banked}: {caption}"
    ax.set_title(wrap(title, _ACROSS, 8.5), loc="left", fontsize=8.5)
    style.add_alt(ax, f"{title}.{extent}")


def _caption(costs: pd.DataFrame, costliest: pd.Series, unit: str) -> str:
    total, lanes = int(costs[unit].sum()), int(costliest["lanes"])
    word = ("sector", "s") if unit == "sectors" else ("pass", "es")
    caption = f"{pluralize(len(costs), 'request')}, {pluralize(total, *word)}; the costliest: "
    caption += f"{pluralize(lanes, 'lane')}, {pluralize(int(costliest[unit]), *word)}"
    collisions = int(costs["collisions"].sum())
    if collisions:
        caption += f"; {pluralize(collisions, 'lane')} found the element taken"
    return caption


def words(accesses: pd.DataFrame) -> pd.DataFrame:
    """Return accesses with one row for each element of four bytes, in the column `element`."""
    sizes = np.maximum(accesses["bytes"].to_numpy() // BANK_BYTES, 1)
    repeated = accesses.loc[accesses.index.repeat(sizes)]
    offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return repeated.assign(element=repeated["offset"] // BANK_BYTES + offsets)
