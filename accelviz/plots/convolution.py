"""Sliding channels and receptive fields: who reads which channel, and what a stage has seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from accelviz.convolution import ChannelMap, Field, Kernel, fields, gains
from accelviz.convolution.channels import checked_map
from accelviz.errors import ArgumentError
from accelviz.plots.drawing import Look, count_ticks, new_axes, new_panels, rectangles
from accelviz.plots.style import BLUE, GREY, GRID, IDLE, ROW_COLOURS, paler, tell, tidy

#: Most layers that have a panel each.
_PANELS = 6


def channel_windows(channels: ChannelMap, *, ax: Axes | None = None) -> Axes:
    """Draw which input channels each filter reads; filters of equal windows have one colour.

    Parameters
    ----------
    channels : ChannelMap
    """
    channels = checked_map(channels)
    ax = new_axes(ax, figsize=(7, 0.6 + 3.4 * channels.out_channels / channels.in_channels))
    filters = np.repeat(np.arange(channels.out_channels), channels.width)
    read = channels.windows.ravel()
    turns = [ROW_COLOURS[w % len(ROW_COLOURS)] for w in range(channels.cyclic_distance)]
    faces = [turns[o % channels.cyclic_distance] for o in filters]
    look: Look = {"facecolors": faces, "edgecolors": "white", "linewidths": 0.6}
    rectangles(ax, read, read + 1, filters, filters + 1, **look)
    ax.set(xlim=(0, channels.in_channels), ylim=(channels.out_channels, 0))
    ax.set(xlabel="input channel", ylabel="filter")
    count_ticks(ax.xaxis, ax.yaxis, most=8)
    said = f"{channels.name}: {channels.cyclic_distance} distinct windows of {channels.width}"
    ax.set_title(said, loc="left", fontsize=10)
    tell(ax, f"{said} of {channels.in_channels} channels, for {channels.out_channels} filters.")
    return tidy(ax)


def field_growth(
    kernels: Sequence[Kernel],
    width: int,
    channels: int,
    *,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
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
    shown = list(kernels)[:_PANELS]
    found = fields(shown, width, channels)
    added = [None, *gains(found, width**2 * channels)]
    panels = new_panels(axes, (1.9 * max(len(shown), 2), 2.5), 1, max(len(shown), 1))
    before = Field(0, 0)
    for ax, kernel, now, more in zip(panels, shown, found, added, strict=False):
        new, old = {"facecolor": BLUE}, {"facecolor": paler(BLUE, 0.45)}
        bar = 0.16 * width
        for part, look in (
            (Field(width, channels), {"facecolor": IDLE}),
            (now, new),
            (before, old),
        ):
            first = (width - part.width) / 2
            tall = width * part.channels / channels
            ax.add_patch(Rectangle((first, first), part.width, part.width, **look))
            ax.add_patch(Rectangle((1.1 * width, width - tall), bar, tall, **look))
        for x, wide in ((0, width), (1.1 * width, bar)):
            ax.add_patch(Rectangle((x, 0), wide, width, fill=False, edgecolor=GREY, linewidth=0.7))
        ax.set(xlim=(-0.05 * width, 1.1 * width + bar + 1), ylim=(1.05 * width, -0.05 * width))
        ax.set_aspect("equal")
        ax.set_axis_off()
        gained = "" if more is None else f", gain {more:.2f}"
        ax.set_title(f"{kernel.name}\n{now.width} x {now.width} x {now.channels}", fontsize=9)
        ax.text(0, 1.08 * width, f"{now.size:,}{gained}", va="top", fontsize=8, color=GREY)
        tell(ax, f"After {kernel.name}: {now.size:,} of {width**2 * channels:,} neurons{gained}.")
        before = now
    return panels


def stage_gains(
    depths: dict[str, Sequence[int]], totals: dict[str, float], *, ax: Axes | None = None
) -> Axes:
    """Draw how many units each stage has, structure beside structure.

    Parameters
    ----------
    depths : dict of str to sequence of int
        By what a structure is called.
    totals : dict of str to float
        The total gain of each.

    Raises
    ------
    ArgumentError
        If there is no structure, or they have not as many stages or names.
    """
    if len({len(own) for own in depths.values()}) != 1 or not set(depths) <= set(totals):
        right = "structures of as many stages each, and a total of each"
        raise ArgumentError("depths, totals", f"got {depths!r}, {totals!r}", right)
    ax = new_axes(ax, figsize=(7.5, 3))
    stages = len(next(iter(depths.values())))
    wide = 0.8 / len(depths)
    for i, (name, own) in enumerate(depths.items()):
        at = np.arange(stages) + (i - (len(depths) - 1) / 2) * wide
        colour = ROW_COLOURS[i % len(ROW_COLOURS)]
        bars = ax.bar(at, own, wide, color=colour, label=f"{name}: gain {totals[name]:.2f}")
        ax.bar_label(bars, fontsize=8, color=GREY)
    ax.set_xticks(range(stages), [f"stage {i + 1}" for i in range(stages)])
    ax.set_ylabel("convolutions")
    ax.grid(axis="y", color=GRID)
    ax.set_axisbelow(True)
    count_ticks(ax.yaxis, most=6)
    ax.legend(fontsize=8)
    said = "; ".join(f"{name} {list(own)}" for name, own in depths.items())
    tell(ax, f"Units of each stage: {said}.")
    return tidy(ax)
