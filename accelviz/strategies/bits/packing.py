"""Packing of numbers of few bits in 32-bit words: in planes of single bits, or row by row.

Sections 2.3.1 and 2.4.2 of the thesis (QGTC): Equation 2.2 and the 3D-stacked bit compression. A
line is a row of a left operand or a column of a right operand, packed 32 bits to a word.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints
from accelviz.errors import ArgumentError, checked_choice, checked_integer

Words = npt.NDArray[np.uint32]

#: Most bits of a number; bits of a word.
MOST_BITS, WORD_BITS = 16, 32
#: Padding: a line has a multiple of LINE_BITS bits, a plane a multiple of LINES lines.
LINE_BITS, LINES = 128, 8
#: Bits of a number in packed rows; words of a load, to a multiple of which rows are padded.
ROW_BITS, VECTOR_WORDS = (8, 4), 4
#: The largest int32.
MOST_SUM = (1 << 31) - 1


def padded_words(lines: int, line_bits: int) -> tuple[int, int]:
    """Return the number of lines of a plane and of words of a line, padded."""
    return -(-lines // LINES) * LINES, -(-line_bits // LINE_BITS) * (LINE_BITS // WORD_BITS)


def layout(shape: tuple[int, int], bits: int, side: str) -> tuple[int, int, int]:
    """Return the shape of a packed matrix: planes, lines, words of a line.

    Raises
    ------
    ArgumentError
        If `side` is not "left" or "right", or `bits` is out of range.
    """
    checked_choice("side", side, ("left", "right"))
    bits = checked_integer("bits", bits, MOST_BITS, error=ArgumentError)
    return bits, *padded_words(*(shape if side == "left" else shape[::-1]))


def check_numbers(numbers: npt.NDArray[Any], bits: int, advice: str = "") -> None:
    """Raise an `ArgumentError` unless `numbers` is a matrix of integers from 0 to 2^bits - 1."""
    if numbers.ndim != 2 or numbers.dtype.kind not in "biu":
        problem = f"{numbers.ndim}-D of {numbers.dtype}"
        raise ArgumentError("numbers", problem, f"a matrix of integers{advice}")
    if numbers.size and (numbers.min() < 0 or int(numbers.max()) >> bits):
        problem = f"{numbers.min()} to {numbers.max()}"
        raise ArgumentError("numbers", problem, f"0 to {(1 << bits) - 1}, which {bits} bits hold")


def pack_planes(numbers: npt.NDArray[Any], bits: int, side: str) -> Words:
    """Pack integers from 0 to 2^bits - 1 plane by plane; `layout` has the shape."""
    planes, lines, words = layout(numbers.shape, bits, side)
    by_line = (numbers if side == "left" else numbers.T).astype(np.uint16)
    bit_array = np.zeros((planes, lines, words * WORD_BITS), np.uint8)
    for plane in range(planes):
        bit_array[plane, : by_line.shape[0], : by_line.shape[1]] = by_line >> plane & 1
    packed = np.packbits(bit_array, axis=-1, bitorder="little").view("<u4")
    return packed.astype(np.uint32, copy=False)


def planes_of(words: Words) -> npt.NDArray[np.uint8]:
    """Unpack planes into bits, 0 or 1, shape (planes, lines, bits of a line)."""
    as_bytes = np.ascontiguousarray(words, "<u4").view(np.uint8)
    return np.unpackbits(as_bytes, axis=-1, bitorder="little")


def levels_of(words: Words) -> Ints:
    """Unpack planes into numbers, shape (lines, bits of a line)."""
    levels = np.zeros((words.shape[1], words.shape[2] * WORD_BITS), np.int32)
    for number, plane in enumerate(words):  # one at a time, as unpacked bits have a byte each
        levels |= planes_of(plane).astype(np.int32) << number
    return levels


def pack_ones(rows: Any, columns: Any, shape: tuple[int, int]) -> Words:
    """Pack the binary matrix with ones at (rows, columns) as a left operand."""
    words = np.zeros(layout(shape, 1, "left"), np.uint32)
    bits = np.uint32(1) << (columns % WORD_BITS).astype(np.uint32)
    np.bitwise_or.at(words[0], (rows, columns // WORD_BITS), bits)
    return words


def row_words(columns: int, bits: int) -> int:
    """Return the number of words of a packed row, padded."""
    return -(-columns * bits // (VECTOR_WORDS * WORD_BITS)) * VECTOR_WORDS


def row_levels(words: Words, bits: int) -> Ints:
    """Unpack rows into numbers, shape (rows, numbers of a row)."""
    shifts = np.arange(0, WORD_BITS, bits, dtype=np.uint32)
    numbers = words[:, :, None] >> shifts & np.uint32((1 << bits) - 1)
    return numbers.reshape(len(words), words.shape[1] * shifts.size).astype(np.int32)


def quantized(X: Any, low: Any, step: Any, bits: int) -> tuple[npt.NDArray[np.uint32], int]:
    """Quantize float32 by Equation 2.2; return the levels and the number of values out of range.

    Values out of range have the first or the last level. The upper end of the range, for which
    Equation 2.2 gives 2^bits, has the last level and counts as in range.
    """
    highest = np.float32((1 << bits) - 1)
    with np.errstate(over="ignore"):
        above = X - low
        steps = np.divide(above, step, where=step > 0, out=np.zeros_like(above))
    outside = (steps < 0) | (steps > highest + 1) | ((step == 0) & (above != 0))
    return np.clip(np.floor(steps), 0, highest).astype(np.uint32), int(outside.sum())
