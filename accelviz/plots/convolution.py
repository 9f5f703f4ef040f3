"""Sliding channels and receptive fields: who reads which channel, and what a stage has seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from accelviz.convolution import ChannelMap, Field, Kernel, fields, gains
from accelviz.errors import checked_type
from accelviz.plots import draw
from accelviz.plots.style import BLUE, GREY, IDLE, ROW_COLOURS, Look, add_alt, paler

#: Most layers that have a panel each.
_PANELS = 6


def channel_windows(channels: ChannelMap, *, ax: Axes | None = None) -> Axes:
    """Draw which input channels each filter reads; filters of equal windows have one colour.

    Parameters
    ----------
    channels : ChannelMap
    """
    checked_type("channels", channels, ChannelMap, "a ChannelMap")
    ax = draw.new_axes(ax, figsize=(7, 0.6 + 3.4 * channels.out_channels / channels.in_channels))
    filters = np.repeat(np.arange(channels.out_channels), channels.width)
    read = channels.windows.ravel()
    windows = filters % channels.cyclic_distance
    faces = [ROW_COLOURS[window % len(ROW_COLOURS)] for window in windows]
    look: Look = {"facecolors": faces, "edgecolors": "white", "linewidths": 0.6}
    draw.rectangles(ax, read, read + 1, filters, filters + 1, **look)
    ax.set(xlim=(0, channels.in_channels), ylim=(channels.out_channels, 0))
    ax.set(xlabel="input channel", ylabel="filter")
    draw.count_ticks(ax.xaxis, ax.yaxis, most=8)
    title = f"{channels.name}: {channels.cyclic_distance} distinct windows of {channels.width}"
    ax.set_title(title, loc="left", fontsize=10)
    of_all = f"of {channels.in_channels} channels, for {channels.out_channels} filters"
    return draw.finish(ax, f"{title} {of_all}.")


def field_growth(kernels: Sequence[Kernel], width: int, channels: int) -> list[Axes]:
    """Draw what one output neuron has seen of a stage's input, layer after layer.

    The square is the input in pixels, the bar beside it its channels. What the neuron has seen is
    filled, what the last layer added in a stronger colour.

    Parameters
    ----------
    kernels : sequence of Kernel
        Up to 6 of them.
    width, channels : int
        Of the input.
    """
    layers = list(kernels)[:_PANELS]
    seen = fields(layers, width, channels)
    added = [None, *gains(seen, width**2 * channels)]
    size = (1.9 * max(len(layers), 2), 2.5)
    panels = draw.new_panels(size, 1, max(len(layers), 1))
    left, bar = 1.1 * width, 0.16 * width  # of the channels
    before = Field(0, 0)
    for ax, kernel, now, more in zip(panels, layers, seen, added, strict=False):
        whole = Field(width, channels)
        for part, colour in ((whole, IDLE), (now, BLUE), (before, paler(BLUE, 0.45))):
            first, tall = (width - part.width) / 2, width * part.channels / channels
            ax.add_patch(Rectangle((first, first), part.width, part.width, facecolor=colour))
            ax.add_patch(Rectangle((left, width - tall), bar, tall, facecolor=colour))
        for x, wide in ((0, width), (left, bar)):
            ax.add_patch(Rectangle((x, 0), wide, width, fill=False, edgecolor=GREY, linewidth=0.7))
        ax.set(xlim=(-0.05 * width, left + bar + 1), ylim=(1.05 * width, -0.05 * width))
        ax.set_aspect("equal")
        ax.set_axis_off()
        gained = "" if more is None else f", gain {more:.2f}"
        ax.set_title(f"{kernel.name}\n{now.width} x {now.width} x {now.channels}", fontsize=9)
        ax.text(0, 1.08 * width, f"{now.size:,}{gained}", va="top", fontsize=8, color=GREY)
        add_alt(
            ax, f"After {kernel.name}: {now.size:,} of {width**2 * channels:,} neurons{gained}."
        )
        before = now
    return panels
