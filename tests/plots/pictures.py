"""Read the texts of a picture back."""

from matplotlib.figure import FigureBase
from matplotlib.text import Text


def read_texts(ax):
    """Return the texts inside a panel."""
    return [text.get_text() for text in ax.texts]


def read_title(ax):
    """Return the title on the left as one line."""
    return ax.get_title(loc="left").replace("\n", " ")


def cut_off(figure):
    """Return titles, axis labels and annotations of a figure that do not lie inside of it."""
    figure.draw_without_rendering()
    width, height = figure.canvas.get_width_height()
    wanted = {text.get_text() for panel in figure.findobj(FigureBase) for text in panel.texts}
    for ax in figure.axes:
        wanted |= {ax.get_title(side) for side in ("left", "center", "right")}
        wanted |= {ax.get_xlabel(), ax.get_ylabel(), *read_texts(ax)}
    texts = []
    for text in figure.findobj(Text):
        box = text.get_window_extent()
        outside = min(box.x0, box.y0) < -1 or box.x1 > width + 1 or box.y1 > height + 1
        if text.get_text().strip() and text.get_text() in wanted and outside:
            texts.append(text.get_text())
    return texts
