"""Matrices of a few bits a number: packed plane by plane, and what their levels stand for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Floats, Ints, Longs
from accelviz.devices.choice import owner
from accelviz.devices.operands import on_host
from accelviz.errors import ArgumentError, checked_type
from accelviz.strategies.bits.packing import (
    ROW_BITS,
    check_numbers,
    layout,
    levels_of,
    pack_planes,
    planes_of,
    quantized,
    row_words,
)


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
        bounds = [np.atleast_1d(on_host("range", bound)) for bound in (low, high)]
        if any(bound.ndim > 1 or bound.dtype.kind not in "biuf" for bound in bounds):
            problem = " and ".join(f"{bound.ndim}-D of {bound.dtype}" for bound in bounds)
            raise ArgumentError("range", problem, "numbers, or one for each column")
        if len({1, *(bound.size for bound in bounds)}) > 2:
            problem = f"{bounds[0].size} lower and {bounds[1].size} upper bounds"
            raise ArgumentError("range", problem, "as many of both, or one for all")
        with np.errstate(over="ignore"):
            first, last = np.broadcast_arrays(*(bound.astype(np.float32) for bound in bounds))
            step = (last - first) / np.float32(1 << bits)
        if not np.isfinite([first, last]).all() or (last < first).any():
            expected = "two finite bounds, the lower one first"
            raise ArgumentError("range", f"from {low} to {high}", expected)
        if not np.isfinite(step).all():
            raise ArgumentError("range", f"from {low} to {high}", "one that float32 can measure")
        return cls(np.array(first), np.array(step, np.float32))

    def levels(self, X: Floats, bits: int) -> tuple[npt.NDArray[np.uint32], int]:
        """Quantize; return the levels, shape as of X, and how many values were out of the range."""
        return quantized(X, self.low, self.step, bits)

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
        number to one of 8. On the host or a device.
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
        """Whether the words lie on a GPU, or another device than the host."""
        return owner(self.words) is not None

    def on_host(self) -> BitTensor:
        """Return it with its words on the host."""
        holder = owner(self.words)
        return self if holder is None else replace(self, words=holder.to_host(self.words))

    @cached_property
    def planes(self) -> npt.NDArray[np.uint8]:
        """Its bits, uint8 of 0 and 1, shape (bits, rows, columns)."""
        return self._cropped(planes_of(self.on_host().words))

    def levels(self) -> Ints:
        """Return the whole numbers, int32, shape (rows, columns)."""
        return self._cropped(levels_of(self.on_host().words))

    def _cropped(self, lines: Any) -> Any:
        """Take off the padding; turn lines of a right operand into columns."""
        lines = lines if self.side == "left" else lines.swapaxes(-1, -2)
        return lines[..., : self.shape[0], : self.shape[1]]

    def values(self) -> Floats:
        """Return what the numbers stand for, float32; `Tensor.to_val` of QGTC."""
        levels = self.levels()
        return levels.astype(np.float32) if self.scale is None else self.scale.values(levels)

    @cached_property
    def sums(self) -> Longs:
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


def checked_tensor(name: str, tensor: Any) -> None:
    """Refuse what is no BitTensor, by an ArgumentError."""
    checked_type(name, tensor, BitTensor, "a BitTensor: pack, quantize")


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
    levels = on_host("numbers", numbers)
    layout((0, 0), bits, side)
    check_numbers(levels, bits, "; `quantize` takes others")
    return BitTensor(pack_planes(levels, bits, side), levels.shape, side, scale)


def pack_rows(numbers: Any, bits: int) -> npt.NDArray[np.uint32]:
    """Pack whole numbers row by row: the operand X of "bit_spmm_8" and "bit_spmm_4".

    Parameters
    ----------
    numbers : array of integers, shape (rows, columns)
        From 0 to 2^bits - 1.
    bits : {8, 4}

    Returns
    -------
    array of uint32, shape (rows, words)
        The first number in the lowest bits; rows are padded to 16 bytes.

    Raises
    ------
    ArgumentError
        If `bits` is another number, or a number has more.

    Examples
    --------
    >>> import accelviz
    >>> plan = accelviz.plan("cora", n_cols=2, operation="bit_spmm_8")
    >>> X = pack_rows(np.full((2708, 2), 3), 8)
    >>> accelviz.devices.run_operation("bit_spmm_8", plan, {"X": X}, device="cpu")["Y"][0]
    array([9, 9], dtype=int32)
    """
    levels = on_host("numbers", numbers)
    if bits not in ROW_BITS:
        raise ArgumentError("bits", f"got {bits!r}", "8 or 4")
    check_numbers(levels, bits)
    rows, columns = levels.shape
    wide = np.zeros((rows, 32 // bits * row_words(columns, bits)), np.uint8)
    wide[:, :columns] = levels
    narrow = wide if bits == 8 else wide[:, ::2] | np.uint8(16) * wide[:, 1::2]
    return np.ascontiguousarray(narrow).view("<u4").astype(np.uint32, copy=False)
