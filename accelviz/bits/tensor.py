"""`BitTensor`, a matrix with a few bits per number packed in planes, and `Scale`, its real values.

Quantization divides a range of real values into 2^bits steps. A level is the number of a step.
"""

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
    """Real values of levels, Equation 2.2: level q has the values from `low + q step` on.

    Attributes
    ----------
    low, step : array of float32, shape (1,) or (columns,)
        Start of the range and width of a step, of the whole matrix or of each column. The step of
        a constant is 0.
    """

    low: Floats
    step: Floats

    @property
    def offset(self) -> Floats:
        """Value of level 0: the middle of its step, so that errors are at most half a step."""
        return np.add(self.low, self.step / np.float32(2), dtype=np.float32)

    @property
    def per_column(self) -> bool:
        """Whether each column has a range of its own."""
        return self.low.size > 1

    @classmethod
    def of_range(cls, low: Any, high: Any, bits: int) -> Scale:
        """Return the scale of 2^bits steps from `low` to `high`, in float32.

        Raises
        ------
        ArgumentError
            If a bound is not finite, `high` is below `low`, or the two have different sizes.
        """
        bounds = [np.atleast_1d(on_host("range", bound)) for bound in (low, high)]
        if any(bound.ndim > 1 or bound.dtype.kind not in "biuf" for bound in bounds):
            problem = " and ".join(f"{bound.ndim}-D of {bound.dtype}" for bound in bounds)
            raise ArgumentError("range", problem, "numbers, or one for each column")
        if len({1, *(bound.size for bound in bounds)}) > 2:
            problem = f"{bounds[0].size} lower and {bounds[1].size} upper bounds"
            raise ArgumentError("range", problem, "as many of both, or one for all")
        with np.errstate(over="ignore"):
            lows, highs = np.broadcast_arrays(*(bound.astype(np.float32) for bound in bounds))
            step = (highs - lows) / np.float32(1 << bits)
        if not np.isfinite([lows, highs]).all() or (highs < lows).any():
            expected = "two finite bounds, the lower one first"
            raise ArgumentError("range", f"from {low} to {high}", expected)
        if not np.isfinite(step).all():
            raise ArgumentError("range", f"from {low} to {high}", "one that float32 can measure")
        return cls(np.array(lows), np.array(step, np.float32))

    def levels(self, X: Floats, bits: int) -> tuple[npt.NDArray[np.uint32], int]:
        """Quantize X; return the levels, of X's shape, and the number of values out of range."""
        return quantized(X, self.low, self.step, bits)

    def values(self, levels: npt.NDArray[Any]) -> Floats:
        """Return the float32 values of levels, the middles of their steps; `to_val` of QGTC."""
        return levels.astype(np.float32) * self.step + self.offset


@dataclass(frozen=True, eq=False, repr=False)
class BitTensor:
    """A matrix of integers from 0 to 2^bits - 1 in packed bits; QGTC's bit-Tensor.

    Attributes
    ----------
    words : array of uint32, shape (bits, lines, words of a line)
        Plane p has bit p of each number. A line is a row of a left operand or a column of a right
        operand, so that a product reads both along the axis that it sums over. A word has 32
        consecutive numbers of a line, the first in the lowest bit. Lines are padded with zeros to a
        multiple of 128 bits, planes to a multiple of 8 lines. The array is on the host or a device.
    shape : tuple of two int
        Numbers of rows and columns.
    side : {"left", "right"}
        Operand of a product for which this is the layout. "left" is the paper's column-wise
        compression; "right" is its row-wise compression, stored by columns for the instruction.
    scale : Scale, optional
        Real values of the numbers. Without it, the numbers are the values.
    clipped : int
        Number of values that were out of range in quantization; -1 if they were not counted.
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
        """Bytes of `words`."""
        return int(self.words.nbytes)

    @property
    def on_gpu(self) -> bool:
        """Whether `words` is on a device, not on the host."""
        return owner(self.words) is not None

    def on_host(self) -> BitTensor:
        """Return the tensor with `words` on the host."""
        device = owner(self.words)
        return self if device is None else replace(self, words=device.to_host(self.words))

    @cached_property
    def planes(self) -> npt.NDArray[np.uint8]:
        """Bits, 0 or 1, uint8, shape (bits, rows, columns)."""
        return self._from_lines(planes_of(self.on_host().words))

    def levels(self) -> Ints:
        """Return the numbers, int32, shape (rows, columns)."""
        return self._from_lines(levels_of(self.on_host().words))

    def _from_lines(self, lines: Any) -> Any:
        """Return rows x columns without padding."""
        lines = lines if self.side == "left" else lines.swapaxes(-1, -2)
        return lines[..., : self.shape[0], : self.shape[1]]

    def values(self) -> Floats:
        """Return the real values of the numbers, float32; `Tensor.to_val` of QGTC."""
        levels = self.levels()
        return levels.astype(np.float32) if self.scale is None else self.scale.values(levels)

    @cached_property
    def sums(self) -> Longs:
        """Sums of the lines: of the rows of a left operand, or the columns of a right one."""
        return self.levels().sum(axis=1 if self.side == "left" else 0, dtype=np.int64)

    @cached_property
    def largest(self) -> int:
        """The largest number, 0 for an empty tensor."""
        return int(self.levels().max(initial=0))

    def __repr__(self) -> str:
        size = f"{self.shape[0]:,} x {self.shape[1]:,}"
        where = " on the GPU" if self.on_gpu else ""
        return f"BitTensor({size}, {self.bits} bits, {self.side}, {self.nbytes:,} bytes{where})"


def checked_tensor(name: str, tensor: Any) -> None:
    """Raise an `ArgumentError` unless `tensor` is a BitTensor."""
    checked_type(name, tensor, BitTensor, "a BitTensor: pack, quantize")


def pack(numbers: Any, bits: int, side: str, *, scale: Scale | None = None) -> BitTensor:
    """Pack integers as an operand of a product.

    Parameters
    ----------
    numbers : array of integers, shape (rows, columns)
        Numbers from 0 to 2^bits - 1.
    bits : int
        Bits of a number, 1 to 16.
    side : {"left", "right"}
        Operand of the product.
    scale : Scale, optional
        Real values of the numbers.

    Returns
    -------
    BitTensor

    Raises
    ------
    ArgumentError
        If `bits`, `side` or a number is out of range.

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
    """Pack integers row by row: the operand X of "bit_spmm_8" and "bit_spmm_4".

    Parameters
    ----------
    numbers : array of integers, shape (rows, columns)
        Numbers from 0 to 2^bits - 1.
    bits : {8, 4}
        Bits of a number.

    Returns
    -------
    array of uint32, shape (rows, words of a row)
        A word has its first number in the lowest bits. Rows are padded to 16 bytes.

    Raises
    ------
    ArgumentError
        If `bits` or a number is out of range.

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
    padded = np.zeros((rows, 32 // bits * row_words(columns, bits)), np.uint8)
    padded[:, :columns] = levels
    packed = padded if bits == 8 else padded[:, ::2] | np.uint8(16) * padded[:, 1::2]
    return np.ascontiguousarray(packed).view("<u4").astype(np.uint32, copy=False)
