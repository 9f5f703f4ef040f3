"""Figure 2 of Accel-GCN: how unequal the rows of Collab are. Needs no GPU and no measurement."""

from __future__ import annotations

from pathlib import Path

from paper import FIGURES, LARGEST_DEGREE, markdown, picture, run

from accelviz import plots
from accelviz.datasets import TABLE_ONE
from accelviz.ordering import DegreeHistogram
from accelviz.plots.style import VERMILLION


def section(figures: Path = FIGURES) -> str:
    """Draw Collab's degrees and put its longest row beside its average one."""
    entry = TABLE_ONE["collab"]
    histogram = DegreeHistogram(*entry.histogram())
    average = histogram.nnz / histogram.n_rows
    times = histogram.largest / average
    ax = plots.degree_histogram(histogram.degrees, histogram.rows)
    ax.set_title(
        f"{entry.name}: the longest row is {times:.0f} times the average one",
        loc="left",
        fontsize=12,
        fontweight="bold",
    )
    for degree, text, height in (
        (average, f"average {average:.1f}", 0.93),
        (histogram.largest, f"longest {histogram.largest}", 0.55),
    ):
        ax.axvline(degree, color=VERMILLION, lw=1.4, zorder=4)
        ax.annotate(
            text,
            (degree, height),
            xycoords=("data", "axes fraction"),
            xytext=(-5, 0),
            textcoords="offset points",
            ha="right",
            color=VERMILLION,
        )
    alt = (
        f"Degree histogram of {entry.name}, both axes logarithmic: most rows have few nonzeros, "
        f"{average:.1f} on average; the longest has {histogram.largest}."
    )
    lines = [
        [
            entry.name,
            f"{histogram.n_rows:,}",
            f"{histogram.nnz:,}",
            f"{average:.2f}",
            histogram.largest,
            f"{times:.1f}",
            LARGEST_DEGREE,
        ]
    ]
    head = ["graph", "rows", "nonzeros", "average degree", "largest", "largest / average", "paper"]
    return f"{picture(ax.figure, figures, 'figure2', alt)}\n\n{markdown(head, lines)}"


if __name__ == "__main__":
    run(section, __doc__, measured=False)
