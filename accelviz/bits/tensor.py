"""Matrices of a few bits a number: quantized, and their bits packed plane by plane into words.

Sections 2.3.1 and 2.4.2 of the thesis (QGTC): Equation 2.2 and the 3D-stacked bit compression.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.base import on_host
from accelviz.errors import ArgumentError, checked_integer

Floats = npt.NDArray[np.float32]

#: Most bits of a number, and the bits of a word.
MOST_BITS, WORD_BITS = 16, 32
#: A line is padded to a multiple of so many bits, a plane to one of so many lines: 8 x 128.
LINE_BITS, LINES = 128, 8
SIDES = ("left", "right")


def padded(size: int, multiple: int) -> int:
    """Round up to a multiple."""
    return -(-size // multiple) * multiple


@dataclass(frozen=True, eq=False)
class Scale:
    """What levels stand for, Equation 2.2: level q is the values from `low + q step` on.

    Attributes
    ----------
    low, step : array of float32, shape (1,) or (columns,)
        Of the whole matrix, or of each column. A step of 0 is that of a constant.
    """

    low: Floats
    step: Floats

    @property
    def offset(self) -> Floats:
        """What level 0 is taken for: the middle of its values, so that errors are half a step."""
        return np.add(self.low, self.step / np.float32(2), dtype=np.float32)

    @property
    def per_column(self) -> bool:
        """Whether each column has its own."""
        return self.low.size > 1

    @classmethod
    def of_range(cls, low: Any, high: Any, bits: int) -> Scale:
        """Cut the range from `low` to `high` into 2^bits steps, in float32.

        Raises
        ------
        ArgumentError
            If a bound is not finite, `high` is below `low`, or the two do not fit each other.
        """
        found = [np.atleast_1d(on_host("range", end)) for end in (low, high)]
        if any(end.ndim > 1 or end.dtype.kind not in "biuf" for end in found):
            what = " and ".join(f"{end.ndim}-D of {end.dtype}" for end in found)
            raise ArgumentError("range", what, "numbers, or one for each column")
        with np.errstate(over="ignore"):
            ends = [end.astype(np.float32) for end in found]
        if ends[0].size != ends[1].size and 1 not in (ends[0].size, ends[1].size):
            what = f"{ends[0].size} lower and {ends[1].size} upper bounds"
            raise ArgumentError("range", what, "as many of both, or one for all")
        if not all(np.isfinite(end).all() for end in ends) or (ends[1] < ends[0]).any():
            right = "two finite bounds, the lower one first"
            raise ArgumentError("range", f"from {low} to {high}", right)
        first, last = np.broadcast_arrays(*ends)
        with np.errstate(over="ignore"):
            step = (last - first) / np.float32(1 << bits)
        if not np.isfinite(step).all():
            raise ArgumentError("range", f"from {low} to {high}", "one that float32 can measure")
        return cls(np.array(first, np.float32), np.array(step, np.float32))

    def levels(self, X: Floats, bits: int) -> tuple[npt.NDArray[np.uint32], int]:
        """Quantize; return the levels, shape as of X, and how many values were out of the range.

        Those are clipped to the first or the last level. The upper end itself, which Equation 2.2
        would give the level 2^bits, is the last level's and not counted.
        """
        most = np.float32((1 << bits) - 1)
        with np.errstate(over="ignore"):
            above = X - self.low
            steps = np.divide(above, self.step, where=self.step > 0, out=np.zeros_like(above))
        outside = (steps < 0) | (steps > most + 1) | ((self.step == 0) & (above != 0))
        return np.clip(np.floor(steps), 0, most).astype(np.uint32), int(outside.sum())

    def values(self, levels: npt.NDArray[Any]) -> Floats:
        """Return what levels stand for, float32; `to_val` of QGTC."""
        return levels.astype(np.float32) * self.step + self.offset


@dataclass(frozen=True, eq=False, repr=False)
class BitTensor:
    """A matrix of whole numbers from 0 to 2^bits - 1, its bits packed; QGTC's bit-Tensor.

    Attributes
    ----------
    words : array of uint32, shape (bits, lines, words)
        Plane p has bit p of each number. A line is a row of a left operand, or a column of a right
        one, so that a product reads both along the axis that it sums over: 32 neighbors to a word,
        the first in the lowest bit. Lines are padded with zeros to multiples of 128 bits, their
        number to one of 8. On the host, or of CuPy.
    shape : tuple of two int
        Rows and columns.
    side : {"left", "right"}
        Of which operand this is the layout: "left" is the paper's column-wise compression, "right"
        its row-wise one, stored by columns, as the instruction wants it.
    scale : Scale, optional
        What the numbers stand for. None where they stand for themselves.
    clipped : int
        Values that were out of the range when it was quantized; -1 where nobody counted.
    """

    words: Any
    shape: tuple[int, int]
    side: str
    scale: Scale | None = None
    clipped: int = 0

    @property
    def bits(self) -> int:
        """Bits of a number."""
        return int(self.words.shape[0])

    @property
    def nbytes(self) -> int:
        """Bytes of the words."""
        return int(self.words.nbytes)

    @property
    def on_gpu(self) -> bool:
        """Whether the words lie on a GPU."""
        return not isinstance(self.words, np.ndarray)

    def on_host(self) -> BitTensor:
        """Return it with its words on the host."""
        return replace(self, words=self.words.get()) if self.on_gpu else self

    @cached_property
    def planes(self) -> npt.NDArray[np.uint8]:
        """Its bits, uint8 of 0 and 1, shape (bits, rows, columns)."""
        lines, along = self.shape if self.side == "left" else self.shape[::-1]
        words = self.on_host().words.astype("<u4", copy=False)
        found = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little")
        found = found[:, :lines, :along]
        return found if self.side == "left" else found.transpose(0, 2, 1)

    def levels(self) -> npt.NDArray[np.int32]:
        """Return the whole numbers, int32, shape (rows, columns)."""
        found = np.zeros(self.shape, np.int32)
        for plane, bits in enumerate(self.planes):
            found |= bits.astype(np.int32) << plane
        return found

    def values(self) -> Floats:
        """Return what the numbers stand for, float32; `Tensor.to_val` of QGTC."""
        levels = self.levels()
        return levels.astype(np.float32) if self.scale is None else self.scale.values(levels)

    @cached_property
    def sums(self) -> npt.NDArray[np.int64]:
        """The sum of each line: of each row of a left operand, each column of a right one."""
        return self.levels().sum(axis=1 if self.side == "left" else 0, dtype=np.int64)

    @cached_property
    def largest(self) -> int:
        """The largest number in it."""
        return int(self.levels().max(initial=0))

    def __repr__(self) -> str:
        size = f"{self.shape[0]:,} x {self.shape[1]:,}"
        where = " on the GPU" if self.on_gpu else ""
        return f"BitTensor({size}, {self.bits} bits, {self.side}, {self.nbytes:,} bytes{where})"


def checked_tensor(name: str, given: Any) -> None:
    """Refuse what is no BitTensor.

    Raises
    ------
    ArgumentError
    """
    if not isinstance(given, BitTensor):
        raise ArgumentError(name, f"got a {type(given).__name__}", "a BitTensor: pack, quantize")


def layout(shape: tuple[int, int], bits: int, side: str) -> tuple[int, int, int]:
    """Return the shape of the words of a matrix: planes, lines, words.

    Raises
    ------
    ArgumentError
        If there is no such side, or `bits` is out of range.
    """
    if side not in SIDES:
        raise ArgumentError("side", f"got {side!r}", " or ".join(map(repr, SIDES)))
    checked_integer("bits", bits, MOST_BITS, error=ArgumentError)
    lines, along = shape if side == "left" else shape[::-1]
    return int(bits), padded(lines, LINES), padded(along, LINE_BITS) // WORD_BITS


def pack(numbers: Any, bits: int, side: str, *, scale: Scale | None = None) -> BitTensor:
    """Pack whole numbers.

    Parameters
    ----------
    numbers : array of integers, shape (rows, columns)
        From 0 to 2^bits - 1.
    bits : int
        1 to 16.
    side : {"left", "right"}
        Of which operand of a product.
    scale : Scale, optional
        What they stand for.

    Returns
    -------
    BitTensor

    Raises
    ------
    ArgumentError
        If `bits` or `side` is none, or a number is none of so many bits.

    Examples
    --------
    >>> pack([[1, 2], [3, 0]], 2, "left").words[:, :2, 0]
    array([[1, 1],
           [2, 1]], dtype=uint32)
    """
    found = on_host("numbers", numbers)
    if found.ndim != 2 or found.dtype.kind not in "biu":
        what = f"{found.ndim}-D of {found.dtype}"
        raise ArgumentError("numbers", what, "a matrix of integers; `quantize` takes others")
    wanted = layout(found.shape, bits, side)
    if found.size and (found.min() < 0 or int(found.max()) >> bits):
        what = f"{found.min()} to {found.max()}"
        raise ArgumentError("numbers", what, f"0 to {(1 << bits) - 1}, which {bits} bits hold")
    lines = (found if side == "left" else found.T).astype(np.uint16)
    spread = np.zeros((*wanted[:2], wanted[2] * WORD_BITS), np.uint8)
    for plane in range(bits):
        spread[plane, : lines.shape[0], : lines.shape[1]] = lines >> plane & 1
    words = np.packbits(spread, axis=-1, bitorder="little").view("<u4").astype(np.uint32)
    return BitTensor(words, found.shape, side, scale)
