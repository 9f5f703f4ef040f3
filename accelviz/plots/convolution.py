"""Pictures of convolutions: input channels that filters read, and growth of receptive fields."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from accelviz.convolution import ChannelMap, Field, Kernel, fields, gains
from accelviz.errors import checked_type
from accelviz.plots import draw
from accelviz.plots.style import BLUE, GREY, IDLE, ROW_COLOURS, Look, add_alt, paler

_MAX_LAYERS = 6


def channel_windows(channels: ChannelMap, *, ax: Axes | None = None) -> Axes:
    """Draw the input channels that each filter reads; filters with equal windows share a colour."""
    checked_type("channels", channels, ChannelMap, "a ChannelMap")
    ax = draw.new_axes(ax, figsize=(7, 0.6 + 3.4 * channels.out_channels / channels.in_channels))
    filters = np.repeat(np.arange(channels.out_channels), channels.width)
    inputs = channels.windows.ravel()
    windows = filters % channels.cyclic_distance
    faces = [ROW_COLOURS[window % len(ROW_COLOURS)] for window in windows]
    look: Look = {"facecolors": faces, "edgecolors": "white", "linewidths": 0.6}
    draw.rectangles(ax, inputs, inputs + 1, filters, filters + 1, **look)
    ax.set(xlim=(0, channels.in_channels), ylim=(channels.out_channels, 0))
    ax.set(xlabel="input channel", ylabel="filter")
    draw.count_ticks(ax.xaxis, ax.yaxis, most=8)
    title = f"{channels.name}: {channels.cyclic_distance} distinct windows of {channels.width}"
    ax.set_title(title, loc="left", fontsize=10)
    size = f"of {channels.in_channels} channels, for {channels.out_channels} filters"
    return draw.finish(ax, f"{title} {size}.")


def field_growth(kernels: Sequence[Kernel], width: int, channels: int) -> list[Axes]:
    """Draw the receptive field of one output neuron, one panel per layer of a stage.

    The square is the input in pixels, the bar beside it are its channels. The receptive field is
    filled; the part that the last layer added has a stronger colour.

    Parameters
    ----------
    kernels : sequence of Kernel
        Layers; the first 6 are drawn.
    width, channels : int
        Size of the input.
    """
    layers = list(kernels)[:_MAX_LAYERS]
    receptive_fields = fields(layers, width, channels)
    layer_gains = [None, *gains(receptive_fields, width**2 * channels)]
    size = (1.9 * max(len(layers), 2), 2.5)
    panels = draw.new_panels(size, 1, max(len(layers), 1))
    left, bar = 1.1 * width, 0.16 * width  # position and width of the bar of channels
    previous = Field(0, 0)
    whole = Field(width, channels)
    for ax, kernel, field, gain in zip(panels, layers, receptive_fields, layer_gains, strict=False):
        for part, colour in ((whole, IDLE), (field, BLUE), (previous, paler(BLUE, 0.45))):
            corner, height = (width - part.width) / 2, width * part.channels / channels
            ax.add_patch(Rectangle((corner, corner), part.width, part.width, facecolor=colour))
            ax.add_patch(Rectangle((left, width - height), bar, height, facecolor=colour))
        for x, w in ((0, width), (left, bar)):
            ax.add_patch(Rectangle((x, 0), w, width, fill=False, edgecolor=GREY, linewidth=0.7))
        ax.set(xlim=(-0.05 * width, left + bar + 1), ylim=(1.05 * width, -0.05 * width))
        ax.set_aspect("equal")
        ax.set_axis_off()
        gain_text = "" if gain is None else f", gain {gain:.2f}"
        size_text = f"{field.width} x {field.width} x {field.channels}"
        ax.set_title(f"{kernel.name}\n{size_text}", fontsize=9)
        ax.text(0, 1.08 * width, f"{field.size:,}{gain_text}", va="top", fontsize=8, color=GREY)
        neurons = f"{field.size:,} of {width**2 * channels:,} neurons{gain_text}"
        add_alt(ax, f"After {kernel.name}: {neurons}.")
        previous = field
    return panels
