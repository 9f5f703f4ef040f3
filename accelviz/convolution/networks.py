"""Networks as plain descriptions: their parameters, their FLOPs, and the stage organizer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from accelviz.convolution.receptive import (
    ALPHA,
    BLOCKS,
    Kernel,
    checked_kernels,
    fields,
    gains,
)
from accelviz.errors import ArgumentError, checked_choice, checked_integer, is_number

#: A unit of a stage: what is repeated, and how many times wider its last output is.
UNITS = {"conv": 1, "dw+pw": 1, "bottleneck": 4}
#: The kernels that a block takes the place of.
STANDARD = {
    "conv": (Kernel("conv", 3),),
    "dw+pw": (Kernel("dw", 3), Kernel("pw")),
    "bottleneck": (Kernel("conv", 3),),
}


@dataclass(frozen=True)
class Stage:
    """Units of one resolution.

    Attributes
    ----------
    width : int
        Pixels of a side.
    before, channels : int
        Channels that come in, and of each unit.
    units : int
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
        What a stage repeats: "conv" (3 x 3), "dw+pw" (3 x 3), or ResNet's "bottleneck".
    stem : tuple of int
        Kernel width and channels of a convolution before the first stage, and how many times its
        output is wider than the first stage; (0, 0, 1) for none.
    classes : int
    hidden : tuple of int
        Widths of dense layers before the last.
    pooled : int
        Pixels of a side that the first dense layer reads.
    block : tuple of Kernel
        What takes the place of a unit's 3 x 3 convolution, as the decomposer has it; empty for the
        unit as it is. The first convolution of an image stays.
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
        """Units of each stage."""
        return tuple(stage.units for stage in self.stages)

    def with_depths(self, depths: Sequence[int]) -> Network:
        """Return the network with other numbers of units.

        Raises
        ------
        ArgumentError
            If there are not as many as stages, or one is below 1.
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
        """Return the network with standard convolutions decomposed (section 7.4.2).

        Parameters
        ----------
        block : str or sequence of Kernel
            A name of `BLOCKS`, or what takes the place of the 3 x 3 convolution of a unit. A block
            of two convolutions has each half in the place of one.

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
        """Yield the kernels of a unit, each with its channels before and after."""
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

    def _convolutions(self) -> Iterator[tuple[int, int, int, bool]]:
        """Yield weights, output pixels, channels to normalize, and whether there is a bias."""
        width, channels, wider = self.stem
        if width:
            side = wider * self.stages[0].width
            yield width**2 * 3 * channels, side**2, channels, False
        biased = self.unit == "conv" and not self.block
        for number, stage in enumerate(self.stages):
            before, pixels = stage.before, stage.width**2
            outer = stage.channels * UNITS[self.unit]
            for unit in range(stage.units):
                of_unit = pixels
                if self.unit == "bottleneck" and unit == 0:
                    yield before * outer, pixels, outer, False  # the shortcut
                    # Sides are halved after the first kernel of a later stage.
                    of_unit *= 4 if number else 1
                for kernel, ins, outs in self._unit(before, stage.channels):
                    if weights := kernel.parameters(ins, outs):
                        yield weights, of_unit, outs, biased
                    of_unit = pixels
                before = outer

    def _dense(self) -> Iterator[tuple[int, int]]:
        sizes = [self.stages[-1].channels * UNITS[self.unit] * self.pooled**2, *self.hidden]
        yield from zip(sizes, [*self.hidden, self.classes], strict=True)

    @property
    def convolution_weights(self) -> int:
        """Weights of convolutions alone, as some of the chapter's tables seem to count."""
        return sum(weights for weights, *_ in self._convolutions())

    @property
    def parameters(self) -> int:
        """Weights, biases, the two numbers a channel of batch normalization, dense layers."""
        dense = sum(n * m + m for n, m in self._dense())
        layers = self._convolutions()
        return dense + sum(weights + channels * (2 + bias) for weights, _, channels, bias in layers)

    @property
    def flops(self) -> int:
        """Multiplications of convolutions and dense layers, one with its addition."""
        dense = sum(n * m for n, m in self._dense())
        return dense + sum(weights * pixels for weights, pixels, *_ in self._convolutions())

    def gains(self, alpha: float = ALPHA) -> list[list[float]]:
        """Return the gains of each stage's units but the first, Equation 7.7."""
        return [unit_gains(stage, stage.units, alpha) for stage in self.stages]

    @property
    def total_gain(self) -> float:
        """The sum of the gains of all stages."""
        return sum(map(sum, self.gains()))


def unit_gains(stage: Stage, units: int, alpha: float = ALPHA) -> list[float]:
    """Return the gains of a stage's units but the first, for a number of units.

    Whatever the unit, it widens the field by two pixels and reads all channels.
    """
    # A share of all channels is the same share of one, and faster to follow.
    return gains(fields([Kernel("conv", 3)] * units, stage.width, 1), stage.width**2, alpha)


@dataclass(frozen=True)
class Step:
    """A step of the organizer: a unit moves from stage `source` to stage `target`, from 0 on.

    `target` is None if the unit is removed. `lost` and `gained` are the gains of the unit, and
    `depths` the units of each stage after the step.
    """

    source: int
    target: int | None
    lost: float
    gained: float
    depths: tuple[int, ...]


def checked_network(network: object) -> Network:
    """Return `network` if it is one; an ArgumentError lists those of `NETWORKS`."""
    if not isinstance(network, Network):
        expected = f"a Network, such as NETWORKS[name] of {', '.join(NETWORKS)}"
        raise ArgumentError("network", f"got {network!r}", expected)
    return network


def organize(
    network: Network, theta: float = 0.0, alpha: float = ALPHA, most: int = 100
) -> list[Step]:
    """Move the unit that adds least to where it adds most, until that does not pay (7.4.1).

    Parameters
    ----------
    network : Network
    theta : float
        Gains below theta count as zero (section 7.3), the border between under- and overfitting.
    alpha : float
        Of Equation 7.7.
    most : int
        Steps after which to stop.

    Returns
    -------
    list of Step
        `with_depths` of the last one's is the organized network. A stage keeps its first unit.

    Raises
    ------
    ArgumentError
        If `network` is none, or a number is not finite.
    """
    network = checked_network(network)
    for name, value in (("theta", theta), ("alpha", alpha)):
        if not is_number(value):
            raise ArgumentError(name, f"got {value!r}", "a finite number")
    most = checked_integer("most", most, least=0, error=ArgumentError)
    stages, depths, steps = network.stages, list(network.depths), list[Step]()
    while len(steps) < most:
        pairs = [*zip(stages, depths, strict=True)]
        last = [
            unit_gains(stage, units, alpha)[-1] if units > 1 else math.inf for stage, units in pairs
        ]
        more = [unit_gains(stage, units + 1, alpha)[-1] for stage, units in pairs]
        source, target = last.index(min(last)), more.index(max(more))
        moves = more[target] > last[source] and more[target] > theta
        if not moves and not (more[target] < theta and last[source] < theta):
            break
        depths[source] -= 1
        if moves:
            depths[target] += 1
        goal = target if moves else None
        steps.append(Step(source, goal, last[source], more[target], tuple(depths)))
    return steps


def _network(
    name: str,
    width: int,
    channels: tuple[int, ...],
    depths: tuple[int, ...],
    unit: str = "conv",
    stem: tuple[int, int, int] = (0, 0, 1),
    **more: Any,
) -> Network:
    """Return a network whose stages halve the sides, from `width` pixels on."""
    before = [stem[1] or 3, *(UNITS[unit] * count for count in channels[:-1])]
    sizes = zip(before, channels, depths, strict=True)
    stages = tuple(Stage(width >> number, *size) for number, size in enumerate(sizes))
    return Network(name, stages, unit, stem, **more)


_VGG, _MOBILE, _RES = (64, 128, 256, 512, 512), (64, 128, 256, 512, 1024), (64, 128, 256, 512)
_SIZES: dict[str, tuple[int, dict[str, Any]]] = {
    "": (32, {}),
    " ImageNet": (224, {"classes": 1000, "hidden": (4096, 4096), "pooled": 7}),
}
_ALL = (
    *(
        _network(name + ending, width, _VGG, depths, **more)
        for name, depths in (
            ("VGG11", (1, 1, 2, 2, 2)),
            ("VGG16", (2, 2, 3, 3, 3)),
            ("VGG19", (2, 2, 4, 4, 4)),
        )
        for ending, (width, more) in _SIZES.items()
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
