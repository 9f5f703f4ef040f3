"""The 3D receptive field of convolutions (chapter 7 of the thesis, Equations 7.4 to 7.7).

The 3D receptive field of a neuron is the part of a stage's input that it depends on: a square of
pixels by a number of channels. The channels that reach an output channel follow from a product of
boolean matrices, one per kernel, for all kinds of kernels alike.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accelviz.convolution.channels import ChannelMap
from accelviz.errors import ArgumentError, checked_choice, checked_integer

#: The chapter's alpha of Equation 7.7.
ALPHA = 3.0
#: Kinds of kernels; see `Kernel`.
KINDS = ("conv", "pw", "dw", "gc", "gpw", "rpw", "shuffle")


@dataclass(frozen=True)
class Kernel:
    """A convolution, or a shuffle of channels.

    Parameters
    ----------
    kind : str
        "conv" standard, "pw" pointwise, "dw" depthwise, "gc" grouped, "gpw" grouped pointwise,
        "rpw" rolling pointwise (the sliding channels of chapter 6), "shuffle" (interlaces groups).
    width : int
        Width of the kernel in pixels; 1 for pointwise kernels and the shuffle.
    groups : int
        Number of channel groups of "gc", "gpw", "rpw" and "shuffle".
    overlap : float
        Overlap of the windows of "rpw", as in `ChannelMap`.
    """

    kind: str
    width: int = 1
    groups: int = 1
    overlap: float = 0.0

    def __post_init__(self) -> None:
        checked_choice("kind", self.kind, KINDS)
        checked_integer("width", self.width, error=ArgumentError)
        checked_integer("groups", self.groups, error=ArgumentError)

    @property
    def name(self) -> str:
        """Short name, such as DW3 or RPW-g2-o50%."""
        name = self.kind.upper() + (str(self.width) if self.width > 1 else "")
        name += f"-g{self.groups}" if self.groups > 1 else ""
        return name + (f"-o{self.overlap:.0%}" if self.overlap else "")

    def reads(self, before: int, after: int) -> npt.NDArray[np.bool_]:
        """Return whether each of `after` channels depends on each of `before`, (after, before).

        Raises
        ------
        ArgumentError
            If a number of channels is not divisible by `groups`, or "dw" or "shuffle" would change
            the number of channels.
        """
        same = self.kind in ("dw", "shuffle")
        if before % self.groups or after % self.groups or (same and before != after):
            problem = f"{before} channels to {after} by {self.name}"
            raise ArgumentError("channels", problem, "multiples of groups; as many for DW, shuffle")
        if self.kind in ("conv", "pw"):
            return np.ones((after, before), bool)
        if self.kind == "dw":
            return np.eye(after, dtype=bool)
        if self.kind == "shuffle":
            order = np.arange(before).reshape(self.groups, -1).T.ravel()
            return np.eye(before, dtype=bool)[order]
        if self.kind == "rpw":
            channels = ChannelMap(before, after, self.groups, self.overlap)
            return channels.dense(np.ones((after, channels.width), bool))
        group_after, group_before = (np.arange(n) // (n // self.groups) for n in (after, before))
        return np.equal.outer(group_after, group_before)

    def parameters(self, before: int, after: int) -> int:
        """Return the number of weights, without bias."""
        if self.kind == "shuffle":
            return 0
        return self.width**2 * after * (1 if self.kind == "dw" else before // self.groups)


@dataclass(frozen=True)
class Field:
    """The 3D receptive field of a layer: a square of `width` pixels by `channels`."""

    width: int
    channels: int

    @property
    def size(self) -> int:
        """Number of covered neurons of the stage's input, Equation 7.4."""
        return self.width**2 * self.channels


def fields(
    kernels: Iterable[Kernel], width: int, channels: int, outputs: Sequence[int] = ()
) -> list[Field]:
    """Return the field after each kernel of a stage, Equations 7.4 to 7.6.

    Parameters
    ----------
    kernels : iterable of Kernel
    width, channels : int
        Width and channels of the stage's input, the chapter's w_0 and c_0.
    outputs : sequence of int, optional
        Number of channels after each kernel, by default `channels`.

    Returns
    -------
    list of Field
        One per kernel. If the output channels differ, it is the smallest field.

    Raises
    ------
    ArgumentError
        If a size is not a positive integer, `kernels` contains other objects, or the numbers of
        outputs and kernels differ.
    """
    kernels = checked_kernels(kernels)
    checked_integer("width", width, error=ArgumentError)
    channels = checked_integer("channels", channels, error=ArgumentError)
    if outputs and len(outputs) != len(kernels):
        problem = f"{len(outputs)} for {len(kernels)} kernels"
        raise ArgumentError("outputs", problem, "one for each, or none")
    stage_fields, covered, span = list[Field](), np.eye(channels, dtype=bool), 1
    for kernel, after in zip(kernels, outputs or [channels] * len(kernels), strict=True):
        span = min(span + kernel.width - 1, width)  # Equation 7.5
        # NumPy multiplies float32 matrices many times faster than integer ones.
        reads = kernel.reads(len(covered), after).astype(np.float32)
        covered = reads @ covered.astype(np.float32) > 0
        stage_fields.append(Field(span, int(covered.sum(axis=1).min())))
    return stage_fields


def checked_kernels(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Return kernels as a tuple, or raise ArgumentError if one is not a Kernel."""
    kernels = tuple(kernels)
    for kernel in kernels:
        if not isinstance(kernel, Kernel):
            raise ArgumentError("kernels", f"got {kernel!r}", "convolution.Kernel")
    return kernels


def gain(before: Field, after: Field, volume: int, alpha: float = ALPHA) -> float:
    """Return the gain of a layer: the relative growth of the field with a decay, Equation 7.7.

    Parameters
    ----------
    before, after : Field
        Fields before and after the layer.
    volume : int
        Number of neurons of the stage's input, w_0 x w_0 x c_0.
    alpha : float
        Rate of the decay with `before.size / volume`.

    Raises
    ------
    ArgumentError
        If the field before the layer, or the volume, is empty.
    """
    if before.size < 1 or volume < 1:
        problem = f"a field of {before.size} before, in a volume of {volume}"
        raise ArgumentError("gain", problem, "both at least 1")
    growth = (after.size - before.size) / before.size
    return growth * math.exp(-alpha * before.size / volume)


def gains(fields: Sequence[Field], volume: int, alpha: float = ALPHA) -> list[float]:
    """Return the gain of each layer after the first, given the field of each layer."""
    return [gain(before, after, volume, alpha) for before, after in itertools.pairwise(fields)]


_DW = Kernel("dw", 3)
_GPW, _SHUFFLE = Kernel("gpw", groups=2), Kernel("shuffle", groups=2)
#: Blocks of Figures 7.4 and 7.5 with the number of standard convolutions that each replaces. The
#: figures are lost. The groups of C are chosen such that half of the block reaches half of the
#: channels, as the text says. D is the unit of ShuffleNet; one unit replaces one convolution.
BLOCKS: dict[str, tuple[tuple[Kernel, ...], int]] = {
    "A (Xception)": ((Kernel("pw"), _DW), 1),
    "B (MobileNet)": ((_DW, Kernel("pw")), 1),
    "C (clcNet)": ((Kernel("gc", 3, 4), _SHUFFLE, Kernel("gpw", groups=4)) * 2, 2),
    "D (ShuffleNet)": ((_GPW, _SHUFFLE, _DW, _GPW), 1),
    "E (DW + shuffle + GPW)": ((_DW, _SHUFFLE, _GPW) * 2, 2),
    "F (DW + RPW)": ((_DW, Kernel("rpw", groups=2, overlap=0.5)) * 2, 2),
}


@dataclass(frozen=True)
class Replacement:
    """Whether a block may replace standard convolutions (section 7.4.2).

    Attributes
    ----------
    quality : bool
        Whether the block has the same field as the convolutions.
    compact : bool
        Whether each kernel is necessary: without it the field would be smaller.
    spare : tuple of str
        Names of the unnecessary kernels.
    """

    quality: bool
    compact: bool
    spare: tuple[str, ...]


def replaces(
    block: Sequence[Kernel], standard: int = 1, width: int = 32, channels: int = 64
) -> Replacement:
    """Apply the chapter's rule of kernel replacement.

    Parameters
    ----------
    block : sequence of Kernel
    standard : int
        Number of standard 3 x 3 convolutions to replace.
    width, channels : int
        Width and channels of the input.

    Raises
    ------
    ArgumentError
        If the block is empty, or as `fields` does.
    """
    block = checked_kernels(block)
    standard = checked_integer("standard", standard, error=ArgumentError)
    if not block:
        raise ArgumentError("block", "got none", "one kernel or more")
    replaced = fields([Kernel("conv", 3)] * standard, width, channels)[-1]
    field, spare = fields(block, width, channels)[-1], []
    for i, kernel in enumerate(block):
        others = (*block[:i], *block[i + 1 :])
        if others and fields(others, width, channels)[-1].size >= replaced.size:
            spare.append(kernel.name)
    return Replacement(field == replaced, not spare, tuple(spare))
