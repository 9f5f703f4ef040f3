"""Convolutional networks as descriptions, and the stage organizer (chapter 7 of the thesis).

A network is a sequence of stages. A stage repeats a unit, one or several kernels, at one
resolution. `Network` counts parameters and FLOPs; `organize` moves units between stages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from accelviz.convolution.receptive import ALPHA, BLOCKS, Kernel, checked_kernels, fields, gains
from accelviz.errors import ArgumentError, checked_choice, checked_integer, is_number

#: Kinds of units, with the ratio of a unit's output channels to its stage's channels.
UNITS = {"conv": 1, "dw+pw": 1, "bottleneck": 4}
#: Kernels of each kind of unit that a block replaces.
STANDARD = {
    "conv": (Kernel("conv", 3),),
    "dw+pw": (Kernel("dw", 3), Kernel("pw")),
    "bottleneck": (Kernel("conv", 3),),
}


@dataclass(frozen=True)
class Stage:
    """Consecutive units at one resolution.

    Attributes
    ----------
    width : int
        Width and height of the feature maps in pixels.
    before, channels : int
        Channels of the stage's input, and channels inside each unit.
    units : int
        Number of units.
    """

    width: int
    before: int
    channels: int
    units: int


@dataclass(frozen=True)
class Network:
    """A convolutional network.

    Attributes
    ----------
    name : str
    stages : tuple of Stage
    unit : str
        Kind of the units: "conv" (3 x 3), "dw+pw" (3 x 3), or ResNet's "bottleneck".
    stem : (int, int, int)
        Kernel width and output channels of a convolution before the first stage, and the width of
        its output in units of the first stage's width; (0, 0, 1) without such a convolution.
    classes : int
    hidden : tuple of int
        Widths of the dense layers before the last one.
    pooled : int
        Width and height in pixels of the feature maps that the first dense layer reads.
    block : tuple of Kernel
        Kernels that replace a unit's 3 x 3 convolution (the chapter's decomposer); empty for the
        original unit. A convolution of the image itself is not replaced.
    """

    name: str
    stages: tuple[Stage, ...]
    unit: str = "conv"
    stem: tuple[int, int, int] = (0, 0, 1)
    classes: int = 10
    hidden: tuple[int, ...] = ()
    pooled: int = 1
    block: tuple[Kernel, ...] = ()

    @property
    def depths(self) -> tuple[int, ...]:
        """Number of units of each stage."""
        return tuple(stage.units for stage in self.stages)

    def with_depths(self, depths: Sequence[int]) -> Network:
        """Return the network with other numbers of units per stage.

        Raises
        ------
        ArgumentError
            If there is not one number for each stage, or a number is below 1.
        """
        if not isinstance(depths, Sequence) or len(depths) != len(self.stages):
            expected = f"one for each of {len(self.stages)} stages"
            raise ArgumentError("depths", f"got {depths!r}", expected)
        stages = [
            replace(stage, units=checked_integer("depths", units, error=ArgumentError))
            for stage, units in zip(self.stages, depths, strict=True)
        ]
        return replace(self, stages=tuple(stages))

    def with_block(self, block: str | Sequence[Kernel]) -> Network:
        """Return the network with its standard convolutions replaced by a block (section 7.4.2).

        Parameters
        ----------
        block : str or sequence of Kernel
            The kernels that replace one 3 x 3 convolution, or a name of `BLOCKS`. A block of
            `BLOCKS` that replaces two convolutions is halved.

        Raises
        ------
        ArgumentError
            If there is no such block, or it has no kernel.
        """
        if isinstance(block, str):
            kernels, standard = BLOCKS[checked_choice("block", block, BLOCKS)]
            block = kernels[: len(kernels) // standard]
        kernels = checked_kernels(block)
        if not kernels:
            raise ArgumentError("block", "got none", f"kernels, or one of {', '.join(BLOCKS)}")
        return replace(self, block=kernels)

    def _unit(self, before: int, inner: int) -> Iterator[tuple[Kernel, int, int]]:
        """Yield the kernels of a unit with their input and output channels.

        `before` are the unit's input channels, `inner` the channels of its stage.
        """
        kernels = self.block or STANDARD[self.unit]
        if self.unit == "bottleneck":
            yield Kernel("pw"), before, inner
            yield from ((kernel, inner, inner) for kernel in kernels)
            yield Kernel("pw"), inner, inner * UNITS[self.unit]
            return
        for kernel in STANDARD["conv"] if before == 3 else kernels:  # an image has 3 channels
            after = before if kernel.kind in ("dw", "shuffle") else inner
            yield kernel, before, after
            before = after

    def _convolutions(self) -> Iterator[_Convolution]:
        kernel_width, stem_channels, relative_width = self.stem
        if kernel_width:
            weights = kernel_width**2 * 3 * stem_channels
            side = relative_width * self.stages[0].width
            yield _Convolution(weights, side**2, stem_channels, False)
        has_bias = self.unit == "conv" and not self.block
        for number, stage in enumerate(self.stages):
            unit_inputs, stage_pixels = stage.before, stage.width**2
            unit_outputs = stage.channels * UNITS[self.unit]
            for unit in range(stage.units):
                pixels = stage_pixels
                if self.unit == "bottleneck" and unit == 0:
                    shortcut = unit_inputs * unit_outputs
                    yield _Convolution(shortcut, stage_pixels, unit_outputs, False)
                    if number:  # the first kernel still has the width of the previous stage
                        pixels = 4 * stage_pixels
                for kernel, before, after in self._unit(unit_inputs, stage.channels):
                    if weights := kernel.parameters(before, after):
                        yield _Convolution(weights, pixels, after, has_bias)
                    pixels = stage_pixels
                unit_inputs = unit_outputs

    def _dense(self) -> Iterator[tuple[int, int]]:
        """Yield the input and output widths of the dense layers."""
        sizes = [self.stages[-1].channels * UNITS[self.unit] * self.pooled**2, *self.hidden]
        yield from zip(sizes, [*self.hidden, self.classes], strict=True)

    @property
    def convolution_weights(self) -> int:
        """Number of weights of the convolutions; some tables of the chapter seem to list these."""
        return sum(layer.weights for layer in self._convolutions())

    @property
    def parameters(self) -> int:
        """Number of weights and biases, and of batch normalization's two numbers per channel."""
        dense = sum(n * m + m for n, m in self._dense())
        layers = self._convolutions()
        return dense + sum(layer.weights + layer.channels * (2 + layer.bias) for layer in layers)

    @property
    def flops(self) -> int:
        """Number of multiply-adds of convolutions and dense layers, the chapter's FLOPs."""
        dense = sum(n * m for n, m in self._dense())
        return dense + sum(layer.weights * layer.pixels for layer in self._convolutions())

    def gains(self, alpha: float = ALPHA) -> list[list[float]]:
        """Return the gains (Equation 7.7) of each stage's units except its first."""
        return [unit_gains(stage, stage.units, alpha) for stage in self.stages]

    @property
    def total_gain(self) -> float:
        """The sum of the gains of all stages."""
        return sum(map(sum, self.gains()))


class _Convolution(NamedTuple):
    """Numbers of weights, of output pixels and of output channels, and whether there is a bias."""

    weights: int
    pixels: int
    channels: int
    bias: bool


def unit_gains(stage: Stage, units: int, alpha: float = ALPHA) -> list[float]:
    """Return the gains of all units except the first, for a stage with `units` units.

    Each unit, of any kind, widens the field by two pixels and reads all channels.
    """
    # With 1 channel instead of all, every share of the volume is the same, and faster to compute.
    return gains(fields([Kernel("conv", 3)] * units, stage.width, 1), stage.width**2, alpha)


@dataclass(frozen=True)
class Step:
    """A step of the organizer, which moves or removes one unit.

    Attributes
    ----------
    source : int
        Number of the stage that loses the unit, from 0 on.
    target : int or None
        Number of the stage that gets the unit; None if the unit is removed.
    lost, gained : float
        Gain of the unit in `source`, and the highest gain of one more unit in any stage.
    depths : tuple of int
        Number of units of each stage after the step.
    """

    source: int
    target: int | None
    lost: float
    gained: float
    depths: tuple[int, ...]


def checked_network(network: object) -> Network:
    """Return `network`, or raise an ArgumentError that lists `NETWORKS` if it is no Network."""
    if not isinstance(network, Network):
        expected = f"a Network, such as NETWORKS[name] of {', '.join(NETWORKS)}"
        raise ArgumentError("network", f"got {network!r}", expected)
    return network


def organize(
    network: Network, theta: float = 0.0, alpha: float = ALPHA, most: int = 100
) -> list[Step]:
    """Move units between stages as long as that increases the total gain (section 7.4.1).

    Each step takes the last unit with the lowest gain from its stage, and adds a unit to the stage
    in which it has the highest gain. If both gains are below `theta`, the unit is removed instead.

    Parameters
    ----------
    network : Network
    theta : float
        Gains below theta count as zero (section 7.3), the border between under- and overfitting.
    alpha : float
        Decay of Equation 7.7.
    most : int
        Maximum number of steps.

    Returns
    -------
    list of Step
        `network.with_depths(steps[-1].depths)` is the organized network. Each stage keeps its
        first unit.

    Raises
    ------
    ArgumentError
        If `network` is not a Network, or a number is not finite.
    """
    network = checked_network(network)
    for name, value in (("theta", theta), ("alpha", alpha)):
        if not is_number(value):
            raise ArgumentError(name, f"got {value!r}", "a finite number")
    most = checked_integer("most", most, least=0, error=ArgumentError)
    stages, depths, steps = network.stages, list(network.depths), list[Step]()
    while len(steps) < most:
        pairs = [*zip(stages, depths, strict=True)]
        losses = [
            unit_gains(stage, units, alpha)[-1] if units > 1 else math.inf for stage, units in pairs
        ]
        additions = [unit_gains(stage, units + 1, alpha)[-1] for stage, units in pairs]
        lost, gained = min(losses), max(additions)
        source, target = losses.index(lost), additions.index(gained)
        moves = gained > max(lost, theta)
        if not moves and max(gained, lost) >= theta:
            break
        depths[source] -= 1
        if moves:
            depths[target] += 1
        steps.append(Step(source, target if moves else None, lost, gained, tuple(depths)))
    return steps


def _network(
    name: str,
    width: int,
    channels: tuple[int, ...],
    depths: tuple[int, ...],
    unit: str = "conv",
    stem: tuple[int, int, int] = (0, 0, 1),
    **attributes: Any,
) -> Network:
    """Return a network whose first stage has `width` pixels a side, each later one half of that."""
    before = [stem[1] or 3, *(UNITS[unit] * count for count in channels[:-1])]
    sizes = zip(before, channels, depths, strict=True)
    stages = tuple(Stage(width >> number, *size) for number, size in enumerate(sizes))
    return Network(name, stages, unit, stem, **attributes)


_VGG, _MOBILE, _RES = (64, 128, 256, 512, 512), (64, 128, 256, 512, 1024), (64, 128, 256, 512)
_VGG_DEPTHS = {"VGG11": (1, 1, 2, 2, 2), "VGG16": (2, 2, 3, 3, 3), "VGG19": (2, 2, 4, 4, 4)}
_VGG_IMAGENET: dict[str, Any] = {"classes": 1000, "hidden": (4096, 4096), "pooled": 7}
_ALL = (
    *(_network(name, 32, _VGG, depths) for name, depths in _VGG_DEPTHS.items()),
    *(
        _network(f"{name} ImageNet", 224, _VGG, depths, **_VGG_IMAGENET)
        for name, depths in _VGG_DEPTHS.items()
    ),
    *(
        _network(name, width, _MOBILE, (1, 2, 2, 6, 2), "dw+pw", (3, 32, 1), classes=classes)
        for name, width, classes in (("MobileNet", 32, 10), ("MobileNet ImageNet", 112, 1000))
    ),
    _network("ResNet50", 32, _RES, (3, 4, 6, 3), "bottleneck", (3, 64, 1)),
    _network("ResNet50 ImageNet", 56, _RES, (3, 4, 6, 3), "bottleneck", (7, 64, 2), classes=1000),
)
#: The chapter's networks, for CIFAR-10 (32 x 32 pixels) and for ImageNet (224 x 224).
NETWORKS = {network.name: network for network in _ALL}
