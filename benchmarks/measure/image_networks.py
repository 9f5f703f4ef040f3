"""The networks of the thesis's chapters 6 and 7 as PyTorch modules, with a choice of convolutions.

VGG16, VGG19, MobileNet, ResNet18 and ResNet50 for images of 32 x 32 or 224 x 224 pixels. Their
3 x 3 convolutions are standard ones, or depthwise ones and a 1 x 1 convolution that mixes channels:
pointwise, in groups, or sliding (cg, co). Sliding channels are ours (`SlidingChannelConv2d`), or
are composed of PyTorch's operations as the chapter's two rivals are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from accelviz import convolution
from accelviz.convolution.networks import UNITS
from accelviz.torch import SlidingChannelConv2d

#: A 1 x 1 convolution by its channels; None for a standard 3 x 3 convolution.
Mixing = Callable[[int, int], nn.Module] | None


class Described(NamedTuple):
    """Unit, channels and number of units of each stage."""

    unit: str
    channels: tuple[int, ...]
    depths: tuple[int, ...]


def _described(network: convolution.Network) -> Described:
    return Described(network.unit, tuple(one.channels for one in network.stages), network.depths)


NETWORKS = {
    name: _described(convolution.NETWORKS[name]) for name in ("VGG16", "VGG19", "MobileNet")
}
NETWORKS["ResNet18"] = Described("basic", (64, 128, 256, 512), (2, 2, 2, 2))
NETWORKS["ResNet50"] = _described(convolution.NETWORKS["ResNet50"])


class _Stacked(SlidingChannelConv2d):
    """Sliding channels without bias, by index_select and PyTorch's convolutions."""

    def __init__(self, before: int, after: int, groups: int, overlap: float) -> None:
        super().__init__(before, after, groups, overlap, bias=False)
        self.register_buffer("read", self._channels_read(), persistent=False)

    def _channels_read(self) -> torch.Tensor:
        raise NotImplementedError


class ChannelStack(_Stacked):
    """The channels of each filter in a row, then a convolution in groups (PyTorch-Base)."""

    def _channels_read(self) -> torch.Tensor:
        return torch.from_numpy(self.channels.windows.astype(np.int64).ravel())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve."""
        stack = x.index_select(1, self.read)
        return nn.functional.conv2d(stack, self.weight, groups=self.channels.out_channels)


class ConvolutionStack(_Stacked):
    """A convolution for each distinct window, whose maps are put in order (PyTorch-Opt)."""

    def _channels_read(self) -> torch.Tensor:
        windows = self.channels.windows[: self.channels.cyclic_distance]
        return torch.from_numpy(windows.astype(np.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve."""
        n_windows = len(self.read)
        maps = [
            nn.functional.conv2d(x.index_select(1, window), self.weight[number::n_windows])
            for number, window in enumerate(self.read)
        ]
        filters = torch.arange(self.channels.out_channels, device=x.device)
        order = torch.cat([filters[number::n_windows] for number in range(n_windows)])
        return torch.cat(maps, 1).index_select(1, order.argsort())


class Masked(_Stacked):
    """A dense pointwise convolution with zeros between the windows."""

    def _channels_read(self) -> torch.Tensor:
        return torch.from_numpy(self.channels.windows.astype(np.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve."""
        dense = self.weight.new_zeros(self.channels.out_channels, self.channels.in_channels)
        dense = dense.scatter(1, self.read, self.weight.flatten(1))
        return nn.functional.conv2d(x, dense[:, :, None, None])


def mixing(kind: str, groups: int = 2, overlap: float = 0.5) -> Mixing:
    """Return a mixing convolution without bias, or None for "standard".

    Parameters
    ----------
    kind : {"standard", "pointwise", "grouped", "sliding", "tf32", "channel_stack", \
"convolution_stack", "masked"}
        "sliding" is ours in 3xTF32, "tf32" ours in TF32.
    """
    sliding = partial(SlidingChannelConv2d, groups=groups, overlap=overlap, bias=False)
    options: dict[str, Mixing] = {
        "standard": None,
        "pointwise": partial(nn.Conv2d, kernel_size=1, bias=False),
        "grouped": partial(nn.Conv2d, kernel_size=1, groups=groups, bias=False),
        "sliding": sliding,
        "tf32": partial(sliding, arithmetic="tf32"),
        **{
            name: partial(stacked, groups=groups, overlap=overlap)
            for name, stacked in (
                ("channel_stack", ChannelStack),
                ("convolution_stack", ConvolutionStack),
                ("masked", Masked),
            )
        },
    }
    return options[kind]


def _followed(convolution: nn.Module, channels: int, active: bool = True) -> list[nn.Module]:
    """Return a convolution, its normalization and, if `active`, an activation."""
    return [convolution, nn.BatchNorm2d(channels), *([nn.ReLU()] if active else [])]


def _conv(before: int, after: int, width: int, stride: int = 1, groups: int = 1) -> nn.Module:
    options = {"stride": stride, "padding": width // 2, "groups": groups, "bias": False}
    return nn.Conv2d(before, after, width, **options)


def spatial(
    before: int, after: int, stride: int, mix: Mixing, active: bool = True
) -> list[nn.Module]:
    """Return a 3 x 3 convolution: a standard one, or a depthwise one and `mix`."""
    if mix is None:
        return _followed(_conv(before, after, 3, stride), after, active)
    depthwise = _followed(_conv(before, before, 3, stride, before), before)
    return [*depthwise, *_followed(mix(before, after), after, active)]


class Residual(nn.Module):
    """ResNet's unit: the activation of the sum of a path and the input or its projection."""

    def __init__(self, path: Sequence[nn.Module], before: int, after: int, stride: int) -> None:
        super().__init__()
        self.path, self.shortcut = nn.Sequential(*path), nn.Sequential()
        if before != after or stride > 1:
            projection = _followed(_conv(before, after, 1, stride), after, False)
            self.shortcut = nn.Sequential(*projection)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add both paths."""
        return torch.relu(self.path(x) + self.shortcut(x))


def _unit(unit: str, before: int, inner: int, stride: int, mix: Mixing) -> list[nn.Module]:
    if unit in ("conv", "dw+pw"):
        return spatial(before, inner, stride, mix)
    if unit == "basic":
        second = spatial(inner, inner, 1, mix, active=False)
        path, after = [*spatial(before, inner, stride, mix), *second], inner
    else:
        after = UNITS[unit] * inner
        first, last = _conv(before, inner, 1), _conv(inner, after, 1)
        middle = spatial(inner, inner, stride, mix)
        path = [*_followed(first, inner), *middle, *_followed(last, after, False)]
    return [Residual(path, before, after, stride)]


def image_network(
    name: str,
    kind: str = "standard",
    groups: int = 2,
    overlap: float = 0.5,
    *,
    pixels: int = 32,
    classes: int = 10,
    narrower: int = 1,
    depths: Sequence[int] | None = None,
) -> nn.Module:
    """Return a network.

    Parameters
    ----------
    name : str
        A key of `NETWORKS`.
    kind, groups, overlap
        As of `mixing`. MobileNet's standard is "pointwise".
    pixels : {32, 224}
        Width and height of the images, of three colors.
    classes : int
    narrower : int
        Divisor of all numbers of channels.
    depths : sequence of int, optional
        Other numbers of units of the stages.
    """
    unit, channels, usual = NETWORKS[name]
    mix = mixing("pointwise" if unit == "dw+pw" and kind == "standard" else kind, groups, overlap)
    large, layers, before, stride = pixels > 32, list[nn.Module](), 3, 1
    if unit == "dw+pw":
        before = 32 // narrower
        layers += _followed(_conv(3, before, 3, 1 + large), before)
    elif unit != "conv":
        before = 64 // narrower
        layers += _followed(_conv(3, before, 7 if large else 3, 1 + large), before)
        layers += [nn.MaxPool2d(3, 2, 1)] * large
    for width, units in zip(channels, depths or usual, strict=True):
        inner = width // narrower
        for number in range(units):
            # A convolution of the image itself is a standard one.
            of_image = None if before == 3 else mix
            layers += _unit(unit, before, inner, stride if number == 0 else 1, of_image)
            before = inner * UNITS.get(unit, 1)
        stride = 1 if unit == "conv" else 2
        layers += [nn.MaxPool2d(2)] if unit == "conv" else []
    if large and unit == "conv":
        hidden = 4096 // narrower
        dense = [nn.Linear(49 * before, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()]
        return nn.Sequential(*layers, nn.Flatten(), *dense, nn.Linear(hidden, classes))
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes)
    return nn.Sequential(*layers, *head)


def n_parameters(network: nn.Module) -> int:
    """Return the number of parameters."""
    return sum(parameter.numel() for parameter in network.parameters())
