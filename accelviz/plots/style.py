"""Colours and habits that every picture shares."""

from __future__ import annotations

import base64
import io
import re
import zlib
from collections.abc import Iterable
from html import escape
from typing import Any, cast

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter

#: Options of a drawing function by name.
Look = dict[str, Any]
#: Keeps a text readable on lines and colours.
HALO = [withStroke(linewidth=3, foreground="white")]
#: Okabe and Ito's palette, distinguishable with any kind of colour vision.
BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, YELLOW, BLACK = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00"),
    *("#CC79A7", "#56B4E9", "#F0E442", "#000000"),
)
GREY = "#6E6E6E"
#: Where no warp works; lines behind a picture.
IDLE, GRID = "#EDEDED", "#DDDDDD"
#: Things that have no colour of their own, in turn: rows or blocks beside each other, lines.
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY)
ROW_COLOURS = CYCLE[:4]
#: The warps of a block, in turn.
WARP_COLOURS = (*CYCLE, VERMILLION, YELLOW, GREY)
#: The colour of each strategy in every picture. Vermillion is not among them, as it marks losses
#: and limits. Of any two here the distance is at least 14 in CIELAB, with any colour vision.
_STRATEGIES = {
    "accel_gcn": BLUE,
    "cusparse": BLACK,
    "gnnadvisor": ORANGE,
    "graphblast": GREEN,
    "merge_path": PURPLE,
    "ge_spmm": SKY,
    "lane_groups": "#800000",
    "row_thread": "#DDCC77",
    "fusegnn_gas": "#332288",
    "fusegnn_gar": "#B15928",
    "neugraph": "#8C0DF2",
    "unfused_gas": "#8C66F2",
    "tc_gnn": "#550055",
    "windows": "#6B573A",
    "window_tiles": "#FF0066",
}
#: For strategies that are not in the list.
_SPARE = ("#882255", "#BAB0AC", "#66AA55", "#AA6644", "#4466AA", "#999933")
#: In a dark notebook, a picture is turned dark; its colours keep their hue. Of JupyterLab, VS Code
#: and Colab.
_DARK = (
    '[data-jp-theme-light="false"] .accelviz-picture, .vscode-dark .accelviz-picture, '
    '[theme="dark"] .accelviz-picture {filter: invert(0.9) hue-rotate(180deg)}'
)
#: Counts on a logarithmic axis as people write them.
PLAIN = FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else "")


def strategy_colours(names: Iterable[str]) -> dict[str, str]:
    """Choose a colour for each strategy of a picture, the same one in every picture.

    Parameters
    ----------
    names : iterable of str
        Strategies, cases of them ("gnnadvisor ngs=32") or what a picture calls them ("Accel-GCN").

    Returns
    -------
    dict of str to str
        Name to colour, in the order of the names. A strategy that accelviz does not know has a
        colour that depends on its name, as has the second case of one strategy. Two names share a
        colour only if there are more names than colours.
    """
    names = list(dict.fromkeys(names))
    colours: dict[str, str] = {}
    for name in names:
        slug = re.sub(r"[^a-z0-9]+", "_", name.lower())
        for strategy, colour in _STRATEGIES.items():
            if f"{slug}_".startswith(f"{strategy}_") and colour not in colours.values():
                colours[name] = colour
    for name in names:
        turn = zlib.crc32(name.encode()) % len(_SPARE)
        order = (*_SPARE[turn:], *_SPARE[:turn], *_STRATEGIES.values())
        free = [colour for colour in order if colour not in colours.values()]
        colours.setdefault(name, free[0] if free else order[len(colours) % len(order)])
    return {name: colours[name] for name in names}


def paler(colour: str, share: float) -> tuple[float, float, float]:
    """Mix a colour with white: 1 leaves it as it is, 0 is white."""
    red, green, blue = (1 - (1 - part) * share for part in to_rgb(colour))
    return red, green, blue


def ink(colour: Any) -> str:
    """Return black or white, whichever is easier to read on a colour."""
    red, green, blue = to_rgb(colour)
    return "black" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.55 else "white"


def tidy(ax: Axes) -> Axes:
    """Remove the upper and the right edge, and return `ax`."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def new_figure(**figure_options: Any) -> Page:
    """Return a new figure that pyplot knows, so that a notebook shows it without being asked."""
    return cast(Page, plt.figure(FigureClass=Page, alt="", layout="constrained", **figure_options))


def add_alt(ax: Axes, sentence: str) -> None:
    """Add a sentence to the alt text of the figure that `ax` is in, if that is a `Page`."""
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
        picture = _png(self)
        # nbconvert keeps no other alt text than one in HTML.
        data = {"text/html": _img(picture, self.alt), "image/png": picture, "text/plain": self.alt}
        return data, {"image/png": {"alt": self.alt}}


def picture_html(figure: Figure) -> str:
    """Return a figure as HTML, and close it, so that no cell shows it."""
    plt.close(figure)
    return _img(_png(figure), figure.alt if isinstance(figure, Page) else "")


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _img(picture: bytes, alt: str) -> str:
    source = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    return (
        f'<style>{_DARK}</style><img class="accelviz-picture" alt="{escape(alt)}" '
        f'style="max-width: 100%" src="{source}">'
    )
