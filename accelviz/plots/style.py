"""Colours, figures and alt text of all pictures."""

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

#: Keyword arguments of a drawing function.
Look = dict[str, Any]
#: Path effect that keeps text readable on lines and colours.
HALO = [withStroke(linewidth=3, foreground="white")]
#: Okabe and Ito's palette, distinguishable with any kind of colour vision.
BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, YELLOW, BLACK = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00"),
    *("#CC79A7", "#56B4E9", "#F0E442", "#000000"),
)
GREY = "#6E6E6E"
#: Background of idle areas; grid lines.
IDLE, GRID = "#EDEDED", "#DDDDDD"
#: Colours of consecutive things without a fixed colour, such as rows, blocks or lines.
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY)
ROW_COLOURS = CYCLE[:4]
WARP_COLOURS = (*CYCLE, VERMILLION, YELLOW, GREY)
#: Colour of each strategy. Vermillion is reserved for losses and limits. Any two colours have a
#: CIELAB distance of at least 14 with any kind of colour vision.
_STRATEGY_COLOURS = {
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
_OTHER_COLOURS = ("#882255", "#BAB0AC", "#66AA55", "#AA6644", "#4466AA", "#999933")
#: CSS that inverts the lightness of pictures in dark themes of JupyterLab, VS Code and Colab.
_DARK = (
    '[data-jp-theme-light="false"] .accelviz-picture, .vscode-dark .accelviz-picture, '
    '[theme="dark"] .accelviz-picture {filter: invert(0.9) hue-rotate(180deg)}'
)
#: Tick format of counts on a logarithmic axis, such as "10,000".
PLAIN = FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else "")


def strategy_colours(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each strategy, the same in every picture.

    Parameters
    ----------
    names : iterable of str
        Strategies, cases ("gnnadvisor ngs=32") or display names ("Accel-GCN").

    Returns
    -------
    dict of str to str
        Name to colour, in the order of the names. The colour of an unknown strategy, and of a
        second case of a strategy, depends on its name. Two names have the same colour only if there
        are more names than colours.
    """
    names = list(dict.fromkeys(names))
    colours: dict[str, str] = {}
    for name in names:
        slug = re.sub(r"[^a-z0-9]+", "_", name.lower())
        for strategy, colour in _STRATEGY_COLOURS.items():
            if f"{slug}_".startswith(f"{strategy}_") and colour not in colours.values():
                colours[name] = colour
    for name in names:
        first = zlib.crc32(name.encode()) % len(_OTHER_COLOURS)
        order = (*_OTHER_COLOURS[first:], *_OTHER_COLOURS[:first], *_STRATEGY_COLOURS.values())
        free = [colour for colour in order if colour not in colours.values()]
        colours.setdefault(name, free[0] if free else order[len(colours) % len(order)])
    return {name: colours[name] for name in names}


def paler(colour: str, share: float) -> tuple[float, float, float]:
    """Mix a colour with white; a `share` of 1 is the colour, 0 is white."""
    red, green, blue = (1 - (1 - channel) * share for channel in to_rgb(colour))
    return red, green, blue


def ink(colour: Any) -> str:
    """Return black or white, whichever is easier to read on a colour."""
    red, green, blue = to_rgb(colour)
    return "black" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.55 else "white"


def tidy(ax: Axes) -> Axes:
    """Hide the upper and the right edge, and return `ax`."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def new_figure(**figure_options: Any) -> Page:
    """Return a new figure that is registered with pyplot, so that a notebook displays it."""
    return cast(Page, plt.figure(FigureClass=Page, alt="", layout="constrained", **figure_options))


def add_alt(ax: Axes, sentence: str) -> None:
    """Append a sentence to the alt text of the figure of `ax`, if the figure is a `Page`."""
    figure = ax.get_figure(root=True)
    if isinstance(figure, Page) and sentence not in figure.alt:
        figure.alt = f"{figure.alt} {sentence}".strip()


class Page(Figure):
    """A figure that a notebook displays with alt text.

    Parameters
    ----------
    alt : str
        Description of the picture for readers who cannot see it.
    **options
        Options of `Figure`.
    """

    def __init__(self, *, alt: str, **options: Any) -> None:
        super().__init__(**options)
        self.alt = alt

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        picture = _png(self)
        # nbconvert keeps only alt text in HTML.
        data = {"text/html": _img(picture, self.alt), "image/png": picture, "text/plain": self.alt}
        return data, {"image/png": {"alt": self.alt}}


def picture_html(figure: Figure) -> str:
    """Return a figure as HTML, and close it, so that no notebook cell displays it again."""
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
