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
    (squares,) = ax.collections
    corners = np.array([path.vertices.min(axis=0) for path in squares.get_paths()]).astype(int)
    cells = {tuple(corner) for corner in corners}
    expected = {(c, o) for o, window in enumerate(channels.windows.tolist()) for c in window}
    assert cells == expected
    assert len({tuple(colour) for colour in squares.get_facecolors()}) == channels.cyclic_distance
    assert f"{channels.cyclic_distance} distinct windows" in ax.figure.alt


def test_squares_and_bars_grow_as_the_field():
    kernels, _ = BLOCKS["F (DW + RPW)"]
    width, n_channels = 32, 64
    panels = plots.field_growth(kernels, width, n_channels)
    receptive_fields = fields(kernels, width, n_channels)
    for ax, kernel, field in zip(panels, kernels, receptive_fields, strict=True):
        # Squares and bars alternate: two of the whole input, then two of the receptive field.
        square, bar = ax.patches[2:4]
        assert square.get_width() == field.width
        assert bar.get_height() == width * field.channels / n_channels  # a full bar is `width` high
        assert kernel.name in ax.get_title()
        assert f"{field.size:,}" in ax.figure.alt


def test_the_first_layer_has_no_gain():
    first_panel = plots.field_growth([Kernel("conv", 3)], 8, 3)[0]
    assert "gain" not in first_panel.figure.alt


@pytest.mark.parametrize("name", NETWORKS)
def test_the_panel_s_data_add_up_to_any_network(name):
    """The data are the cost of one unit per stage, and cost and gain of each further unit."""
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


def test_the_panel_shows_text_without_javascript():
    html = widgets.stages()._repr_html_()
    assert "VGG16: (2, 2, 3, 3, 3) units" in html
    with pytest.raises(ArgumentError, match="there is no 'LeNet'"):
        widgets.stages("LeNet")
    with pytest.raises(ArgumentError, match="network: got None"):
        widgets.stages(None)


def test_invalid_channels_raise():
    with pytest.raises(ArgumentError, match="channels: got a int"):
        plots.channel_windows(3)
