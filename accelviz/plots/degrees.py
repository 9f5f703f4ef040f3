"""Degree distributions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from accelviz.plots.style import BLUE, GREY, IDLE, PLAIN, new_axes, tidy


def degree_histogram(
    degrees: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    *,
    bounds: Mapping[int, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how many rows have each degree, both axes logarithmic.

    Parameters
    ----------
    degrees, rows : arrays of int64, shape (k,)
        The degrees that occur, ascending, and how many rows have each of them. Rows of degree 0,
        which a logarithmic axis cannot show, are named in the picture.
    bounds : mapping of int to str, optional
        Degrees at which something changes, with what holds up to there; drawn as shaded bands.
    ax : Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    Axes
    """
    ax = new_axes(ax, figsize=(6, 4))
    seen = degrees > 0
    ax.set_xscale("log")
    ax.set_yscale("log")
    largest = int(degrees.max(initial=1))
    if seen.any():
        ax.vlines(degrees[seen], 0.6, rows[seen], color=BLUE, lw=1.0, alpha=0.35)
        ax.plot(degrees[seen], rows[seen], "o", ms=4, color=BLUE, zorder=3)
        ax.set_ylim(0.6, rows[seen].max() * 3)
    ax.set_xlim(0.8, largest * 1.6)
    _shade(ax, bounds or {}, largest)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PLAIN)
        axis.set_minor_formatter(NullFormatter())
    label, zero = "degree (nonzeros in a row)", int(rows[~seen].sum())
    ax.set_xlabel(f"{label}\nnot shown: {zero:,} rows without a nonzero" if zero else label)
    ax.set_ylabel("rows with that degree")
    return tidy(ax)


def _shade(ax: Axes, bounds: Mapping[int, str], largest: int) -> None:
    left = 0.8
    for i, (bound, label) in enumerate(bounds.items()):
        right = min(bound + 0.5, largest * 1.6)
        if left >= right:
            continue
        if i % 2 == 0:
            ax.axvspan(left, right, color=IDLE, zorder=0, lw=0)
        ax.annotate(
            label,
            ((left * right) ** 0.5, 0.98),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="top",
            fontsize=8,
            color=GREY,
        )
        left = right
