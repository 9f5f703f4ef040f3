"""The rungs of a ladder against their times."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from accelviz.measure.ladder import RIVAL
from accelviz.plots.drawing import Look, new_panels
from accelviz.plots.labels import HALO, head
from accelviz.plots.style import GREY, ORANGE, PLAIN, strategy_colours, tell, tidy


def ladder_times(times: pd.DataFrame, shares: pd.DataFrame, graph: str) -> list[Axes]:
    """Draw the rungs from bottom to top against their times, with the limit and the rival.

    Parameters
    ----------
    times, shares : DataFrame
        Of `measure.ladder.climbed`.
    graph : str
        One of theirs.
    """
    own, share = times[graph], shares[graph]
    rungs = [name for name in own.index if name != RIVAL]
    axes = new_panels(None, (10, 4.6), 1, own.shape[1], sharey=True)
    level = np.arange(len(rungs))
    colour = strategy_colours(["lane_groups"])["lane_groups"]
    text: Look = {"textcoords": "offset points", "fontsize": 9, "path_effects": HALO}
    for ax, d in zip(axes, own, strict=True):
        taken, vendor = own.loc[rungs, d], own.loc[RIVAL, d]
        limit = share.loc[rungs[0], d] * taken.iloc[0]
        ax.axvline(limit, color=ORANGE, lw=3)
        ax.axvline(vendor, color=GREY, ls="--")
        ax.plot(taken, level, "o-", color=colour)
        for y, x, reached in zip(level, taken, share.loc[rungs, d], strict=True):
            ax.annotate(f"{reached:.0%}", (x, y), (8, 1), va="center", **text)
        left = min(limit, taken.min()) / 2
        ax.set(xscale="log", xlabel="time, us", xlim=(left, taken.max() * 2.2))
        ax.xaxis.set_major_formatter(PLAIN)
        ax.set_yticks(level, rungs)
        ax.set_ylim(-0.5, len(rungs))
        limit_first = "right" if limit < vendor else "left"
        ax.annotate("limit", (limit, len(rungs) - 0.5), (0, 0), ha=limit_first, **text)
        ax.annotate(RIVAL, (vendor, len(rungs) - 0.5), (4, 0), ha="left", color=GREY, **text)
        said = f"{d} columns: {vendor / taken.iloc[-1]:.1f} times as fast as {RIVAL}"
        head(ax, said)
        first = taken.iloc[0] / taken.iloc[-1]
        reached = share.loc[rungs[-1], d]
        more = f"{first:.0f} times as {rungs[0]}, {reached:.0%} of the random-gather limit"
        tell(ax, f"{graph}, {said}, {more}.")
        tidy(ax)
    return axes
