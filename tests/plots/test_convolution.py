"""Pictures of channels and receptive fields, and the panel of stages."""

import random

import numpy as np
import pytest

from accelviz import plots, widgets
from accelviz.convolution import BLOCKS, NETWORKS, ChannelMap, Kernel, fields
from accelviz.errors import ArgumentError


@pytest.mark.parametrize("channels", [ChannelMap(16, 12, 2, 0.5), ChannelMap(6, 3)], ids=repr)
def test_a_cell_for_each_weight_and_a_colour_for_each_window(channels):
    ax = plots.channel_windows(channels)
    (drawn,) = ax.collections
    corners = np.array([path.vertices.min(axis=0) for path in drawn.get_paths()]).astype(int)
    cells = {tuple(corner) for corner in corners}
    wanted = {(c, o) for o, window in enumerate(channels.windows.tolist()) for c in window}
    assert cells == wanted
    assert len({tuple(colour) for colour in drawn.get_facecolors()}) == channels.cyclic_distance
    assert f"{channels.cyclic_distance} distinct windows" in ax.figure.alt


def test_squares_and_bars_grow_as_the_field():
    block, _ = BLOCKS["F (DW + RPW)"]
    panels = plots.field_growth(block, 32, 64)
    seen = fields(block, 32, 64)
    for ax, kernel, now in zip(panels, block, seen, strict=True):
        square, bar = ax.patches[2:4]  # after the whole input's
        assert (square.get_width(), bar.get_height()) == (now.width, 32 * now.channels / 64)
        assert kernel.name in ax.get_title()
        assert f"{now.size:,}" in ax.figure.alt
    (one,) = plots.field_growth([Kernel("conv", 3)], 8, 3)[:1]
    assert "gain" not in one.figure.alt


@pytest.mark.parametrize("name", NETWORKS)
def test_the_panel_adds_up_what_a_network_has(name):
    """Its page knows one unit a stage, and what each more costs and gains."""
    content, network = widgets.stages(name).content, NETWORKS[name]
    depths = tuple(random.Random(name).choices(range(1, 9), k=len(network.stages)))
    moved = network.with_depths(depths)
    for quantity in ("parameters", "flops"):
        total = content["base"][quantity]
        for n, stage in zip(depths, content["stages"], strict=True):
            total += (n - 1) * stage["more"][quantity]
        assert total == getattr(moved, quantity)
    gained = [stage["gains"][: n - 1] for n, stage in zip(depths, content["stages"], strict=True)]
    assert sum(map(sum, gained)) == pytest.approx(moved.total_gain)


def test_the_panel_says_something_without_a_script():
    html = widgets.stages()._repr_html_()
    assert "VGG16: (2, 2, 3, 3, 3) units" in html
    with pytest.raises(ArgumentError, match="there is no 'LeNet'"):
        widgets.stages("LeNet")
    with pytest.raises(ArgumentError, match="network: got None"):
        widgets.stages(None)


def test_invalid_channels_raise():
    with pytest.raises(ArgumentError, match="channels: got a int"):
        plots.channel_windows(3)
