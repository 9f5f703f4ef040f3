"""Colours and habits that every picture shares."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import Any, cast

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

#: Okabe and Ito's palette, distinguishable with any kind of colour vision.
BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, YELLOW, BLACK = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#F0E442",
    "#000000",
)
#: Neighboring rows of a block, in turn.
ROW_COLOURS = (BLUE, ORANGE, GREEN, PURPLE)
GREY = "#6E6E6E"
#: Counts on a logarithmic axis as people write them.
PLAIN = FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else "")
#: Where no warp works.
IDLE = "#EDEDED"


def tidy(ax: Axes) -> Axes:
    """Take away the lines that say nothing."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def new_axes(ax: Axes | None, **figure_options: Any) -> Axes:
    """Return `ax`, or the axes of a new figure, which `tell` can give its alt text."""
    if ax is not None:
        return ax
    return new_figure(**figure_options).subplots()


def new_figure(**figure_options: Any) -> Page:
    """Return a new figure that pyplot knows, so that a notebook shows it without being asked."""
    page = plt.figure(FigureClass=Page, alt="", layout="constrained", **figure_options)
    return cast(Page, page)


def tell(ax: Axes, sentence: str) -> None:
    """Add a sentence to the alt text of the figure that `ax` is in, if it has one."""
    figure = ax.get_figure(root=True)
    if isinstance(figure, Page) and sentence not in figure.alt:
        figure.alt = f"{figure.alt} {sentence}".strip()


class Page(Figure):
    """A figure that a notebook shows by itself, with alt text.

    Parameters
    ----------
    alt : str
        What the picture shows, for those who cannot see it.
    **options
        Of `Figure`.
    """

    def __init__(self, *, alt: str, **options: Any) -> None:
        super().__init__(**options)
        self.alt = alt

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        picture = buffer.getvalue()
        # nbconvert keeps no other alt text than one in HTML.
        html = (
            f'<img alt="{escape(self.alt)}" style="max-width: 100%" '
            f'src="data:image/png;base64,{base64.b64encode(picture).decode()}">'
        )
        data = {"text/html": html, "image/png": picture, "text/plain": self.alt}
        return data, {"image/png": {"alt": self.alt}}
