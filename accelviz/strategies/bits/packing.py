"""Numbers of few bits in 32-bit words: planes of single bits, and rows of 8 or 4 bits.

Sections 2.3.1 and 2.4.2 of the thesis (QGTC): Equation 2.2 and the 3D-stacked bit compression.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints
from accelviz.errors import ArgumentError, checked_choice, checked_integer

Words = npt.NDArray[np.uint32]

#: Most bits of a number, and the bits of a word.
MOST_BITS, WORD_BITS = 16, 32
#: A line is padded to a multiple of so many bits, a plane to one of so many lines: 8 x 128.
LINE_BITS, LINES = 128, 8
#: Bits of a number in a packed row, and words that a lane loads, to which rows are padded.
ROW_BITS, VECTOR_WORDS = (8, 4), 4
#: Largest sum that a result of 32 bits holds.
MOST_SUM = (1 << 31) - 1


def padded_words(lines: int, along: int) -> tuple[int, int]:
    """Return the lines of a plane and the words of a line, padded."""
    return -(-lines // LINES) * LINES, -(-along // LINE_BITS) * (LINE_BITS // WORD_BITS)


def layout(shape: tuple[int, int], bits: int, side: str) -> tuple[int, int, int]:
    """Return the shape of the words of a matrix: planes, lines, words.

    Raises
    ------
    ArgumentError
        If there is no such side, or `bits` is out of range.
    """
    checked_choice("side", side, ("left", "right"))
    bits = checked_integer("bits", bits, MOST_BITS, error=ArgumentError)
    return bits, *padded_words(*(shape if side == "left" else shape[::-1]))


def check_numbers(numbers: npt.NDArray[Any], bits: int, advice: str = "") -> None:
    """Refuse what is no matrix of whole numbers of so many bits.

    Raises
    ------
    ArgumentError
    """
    if numbers.ndim != 2 or numbers.dtype.kind not in "biu":
        problem = f"{numbers.ndim}-D of {numbers.dtype}"
        raise ArgumentError("numbers", problem, f"a matrix of integers{advice}")
    if numbers.size and (numbers.min() < 0 or int(numbers.max()) >> bits):
        problem = f"{numbers.min()} to {numbers.max()}"
        raise ArgumentError("numbers", problem, f"0 to {(1 << bits) - 1}, which {bits} bits hold")


def pack_planes(numbers: npt.NDArray[Any], bits: int, side: str) -> Words:
    """Pack whole numbers below 2^bits plane by plane, in the shape of `layout`."""
    planes, lines, words = layout(numbers.shape, bits, side)
    oriented = (numbers if side == "left" else numbers.T).astype(np.uint16)
    spread = np.zeros((planes, lines, words * WORD_BITS), np.uint8)
    for plane in range(planes):
        spread[plane, : oriented.shape[0], : oriented.shape[1]] = oriented >> plane & 1
    packed = np.packbits(spread, axis=-1, bitorder="little").view("<u4")
    return packed.astype(np.uint32, copy=False)


def planes_of(words: Words) -> npt.NDArray[np.uint8]:
    """Return the bits of words of planes, 0 or 1, shape (planes, lines, bits of a line)."""
    as_bytes = np.ascontiguousarray(words, "<u4").view(np.uint8)
    return np.unpackbits(as_bytes, axis=-1, bitorder="little")


def levels_of(words: Words) -> Ints:
    """Return the numbers that words of planes hold, shape (lines, bits of a line)."""
    levels = np.zeros((words.shape[1], words.shape[2] * WORD_BITS), np.int32)
    for number, plane in enumerate(words):  # one at a time: a byte a bit takes memory
        levels |= planes_of(plane).astype(np.int32) << number
    return levels


def pack_ones(rows: Any, columns: Any, shape: tuple[int, int]) -> Words:
    """Pack a matrix of zeros with ones at these places as a left operand of one bit."""
    words = np.zeros(layout(shape, 1, "left"), np.uint32)
    bits = np.uint32(1) << (columns % WORD_BITS).astype(np.uint32)
    np.bitwise_or.at(words[0], (rows, columns // WORD_BITS), bits)
    return words


def row_words(columns: int, bits: int) -> int:
    """Return the words of a packed row."""
    return -(-columns * bits // (VECTOR_WORDS * WORD_BITS)) * VECTOR_WORDS


def row_levels(words: Words, bits: int) -> Ints:
    """Return the numbers that packed rows hold, shape (rows, numbers of a row)."""
    shifts = np.arange(0, WORD_BITS, bits, dtype=np.uint32)
    numbers = words[:, :, None] >> shifts & np.uint32((1 << bits) - 1)
    return numbers.reshape(len(words), words.shape[1] * shifts.size).astype(np.int32)


def quantized(X: Any, low: Any, step: Any, bits: int) -> tuple[npt.NDArray[np.uint32], int]:
    """Quantize float32 by Equation 2.2; return levels, and how many values were out of the range.

    Those are clipped to the first or the last level. The upper end itself, which Equation 2.2
    would give the level 2^bits, is the last level's and not counted.
    """
    highest = np.float32((1 << bits) - 1)
    with np.errstate(over="ignore"):
        above = X - low
        steps = np.divide(above, step, where=step > 0, out=np.zeros_like(above))
    outside = (steps < 0) | (steps > highest + 1) | ((step == 0) & (above != 0))
    return np.clip(np.floor(steps), 0, highest).astype(np.uint32), int(outside.sum())
