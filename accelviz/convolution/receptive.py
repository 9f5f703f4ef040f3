"""The 3D receptive field: how much of its input a stage has seen (chapter 7 of the thesis).

Equations 7.4 to 7.7. Channels are counted by following them: which input channels reach an output
channel is a product of matrices, so that groups, shuffles and sliding windows need no rule each.
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
#: Kinds of kernels. Each reads all channels, one, a group or a sliding window, or reorders them.
KINDS = ("conv", "pw", "dw", "gc", "gpw", "rpw", "shuffle")


@dataclass(frozen=True)
class Kernel:
    """A convolution, a factor of one, or a shuffle of channels.

    Parameters
    ----------
    kind : str
        "conv" standard, "pw" pointwise, "dw" depthwise, "gc" grouped, "gpw" grouped pointwise,
        "rpw" rolling pointwise (the sliding channels of chapter 6), "shuffle" (interlace).
    width : int
        Of the kernel in pixels; 1 for pointwise ones and the shuffle.
    groups : int
        Of "gc", "gpw", "rpw" and "shuffle".
    overlap : float
        Of "rpw".
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
        """Such as DW3 or RPW-g2-o50%."""
        named = self.kind.upper() + (str(self.width) if self.width > 1 else "")
        named += f"-g{self.groups}" if self.groups > 1 else ""
        return named + (f"-o{self.overlap:.0%}" if self.overlap else "")

    def reads(self, before: int, after: int) -> npt.NDArray[np.bool_]:
        """Return which channels each output channel is made of, bool, shape (after, before).

        Raises
        ------
        ArgumentError
            If the channels do not go into the groups, or one kernel a channel changes their number.
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
        return np.equal.outer(*(np.arange(n) // (n // self.groups) for n in (after, before)))

    def parameters(self, before: int, after: int) -> int:
        """Count the weights, without bias."""
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
        """Neurons of the stage's input that it covers, Equation 7.4."""
        return self.width**2 * self.channels


def fields(
    kernels: Iterable[Kernel], width: int, channels: int, outputs: Sequence[int] = ()
) -> list[Field]:
    """Follow the field through the kernels of a stage, Equations 7.4 to 7.6.

    Parameters
    ----------
    kernels : iterable of Kernel
    width, channels : int
        Of the stage's input, the chapter's w_0 and c_0.
    outputs : sequence of int, optional
        Channels after each kernel; those of the input if not given.

    Returns
    -------
    list of Field
        After each kernel: of the output channel that covers least.

    Raises
    ------
    ArgumentError
        If a size is no integer of at least 1, `kernels` has something else, or there are not as
        many outputs as kernels.
    """
    kernels = checked_kernels(kernels)
    checked_integer("width", width, error=ArgumentError)
    channels = checked_integer("channels", channels, error=ArgumentError)
    if outputs and len(outputs) != len(kernels):
        problem = f"{len(outputs)} for {len(kernels)} kernels"
        raise ArgumentError("outputs", problem, "one for each, or none")
    after_each, seen, span = [], np.eye(channels, dtype=bool), 1
    for kernel, after in zip(kernels, outputs or [channels] * len(kernels), strict=True):
        span = min(span + kernel.width - 1, width)  # Equation 7.5
        # Counted in float32, whose products are many times faster than those of integers.
        reached = kernel.reads(len(seen), after).astype(np.float32) @ seen.astype(np.float32)
        seen = reached > 0
        after_each.append(Field(span, int(seen.sum(axis=1).min())))
    return after_each


def checked_kernels(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Return kernels as a tuple, or raise ArgumentError for something else among them."""
    kernels = tuple(kernels)
    for kernel in kernels:
        if not isinstance(kernel, Kernel):
            raise ArgumentError("kernels", f"got {kernel!r}", "convolution.Kernel")
    return kernels


def gain(before: Field, after: Field, volume: int, alpha: float = ALPHA) -> float:
    """Return the gain of a layer, the growth of the field with the chapter's decay, Equation 7.7.

    Parameters
    ----------
    before, after : Field
    volume : int
        Neurons of the stage's input, w_0 x w_0 x c_0.
    alpha : float

    Raises
    ------
    ArgumentError
        If the field before, or the volume, is none.
    """
    if before.size < 1 or volume < 1:
        problem = f"a field of {before.size} before, in a volume of {volume}"
        raise ArgumentError("gain", problem, "both at least 1")
    share = (after.size - before.size) / before.size
    return share * math.exp(-alpha * before.size / volume)


def gains(fields: Sequence[Field], volume: int, alpha: float = ALPHA) -> list[float]:
    """Return the gains of all layers but the first, which has none."""
    return [gain(one, other, volume, alpha) for one, other in itertools.pairwise(fields)]


_DW = Kernel("dw", 3)
_GPW, _SHUFFLE = Kernel("gpw", groups=2), Kernel("shuffle", groups=2)
#: The blocks of Figures 7.4 and 7.5, and of how many standard convolutions each takes the place.
#: The figures being lost, C has the groups with which it sees half of the channels halfway, as the
#: text says, and D is ShuffleNet's own unit, of which one will do.
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
    """Whether a block may take the place of standard convolutions (section 7.4.2).

    Attributes
    ----------
    quality : bool
        Its field is theirs.
    compact : bool
        Without any one of its kernels it is smaller. `spare` names those without which it is not.
    spare : tuple of str
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
        How many standard convolutions of 3 x 3 it is to replace.
    width, channels : int
        Of the input of both.

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
