"""What can be written where: the room there is, and a colour that can be read."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb


def points(ax: Axes) -> tuple[float, float]:
    """Return width and height of `ax` in points, as far as known before the figure is laid out."""
    box = ax.get_window_extent()
    scale = 72 / ax.figure.dpi
    return box.width * scale, box.height * scale


def ink(colour: str | tuple[float, float, float]) -> str:
    """Return black or white, whichever is easier to read on a colour."""
    red, green, blue = to_rgb(colour)
    return "black" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.55 else "white"
