"""Real graphs between the two orders of their twins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from accelviz.analysis.locality import Locality
from accelviz.plots.drawing import Look, new_panels
from accelviz.plots.style import BLACK, BLUE, GREY, ORANGE, tell, tidy

#: Statistic to what its axis says.
_AXES = {
    "edge span": "average edge span\n(1: as in a random order)",
    "neighbor overlap": "overlap of adjacent rows\n(0: no common neighbor)",
    "reuse distance": "median reuse distance\n(share of the rows of X)",
    "distinct columns": "distinct columns in 64 rows\n(1: none is read twice)",
}


def locality_brackets(
    graphs: Mapping[str, tuple[Locality, Locality, Locality]],
    *,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Draw four statistics of each real graph between those of its twin in both orders.

    Parameters
    ----------
    graphs : mapping of str to three Locality
        Name to the twin in natural order, the real graph, and the twin in shuffled order.
    axes : sequence of four Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    list of Axes
        One for each statistic.
    """
    axes = new_panels(axes, (12.5, 0.9 + 0.32 * len(graphs)), 1, 4, sharey=True)
    for ax, (statistic, label) in zip(axes, _AXES.items(), strict=True):
        between = 0
        for y, found in enumerate(graphs.values()):
            natural, real, shuffled = (each.relative[statistic] for each in found)
            ax.plot([natural, shuffled], [y, y], color=GREY, lw=1, alpha=0.5, zorder=1)
            ax.plot(natural, y, "<", ms=6, color=BLUE, label="twin, natural order")
            ax.plot(shuffled, y, ">", ms=6, color=ORANGE, label="twin, shuffled order")
            ax.plot(real, y, "D", ms=6, color=BLACK, label="real", zorder=3)
            between += min(natural, shuffled) <= real <= max(natural, shuffled)
        ax.set_xlabel(label, fontsize=9)
        ax.set_xlim(left=min(0, ax.get_xlim()[0]))
        what = f"By {statistic} {between} of {len(graphs)} real graphs lie"
        tell(ax, f"{what} between the two orders of their twins.")
        tidy(ax)
    axes[0].set_yticks(range(len(graphs)), list(graphs))
    axes[0].invert_yaxis()
    handles, labels = axes[0].get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    if named:
        place: Look = {"loc": "outside upper center", "ncols": 3, "fontsize": 9}
        axes[0].figure.legend(named.values(), named.keys(), **place)
    return axes
