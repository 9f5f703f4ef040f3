"""Lines of a strategy's metadata taken apart: their words, the fields in them, what they say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError

#: Bits of a word of any metadata.
WORD_BITS = 32


@dataclass(frozen=True)
class Field:
    """Some neighboring bits of a word.

    Attributes
    ----------
    name : str
    bits : int
        How many there are.
    value : int
    """

    name: str
    bits: int
    value: int


@dataclass(frozen=True)
class MetadataRecord:
    """One line of metadata, which is what one block or one warp reads.

    Attributes
    ----------
    title : str
        What the line belongs to.
    words : tuple of int
        Its 32-bit words in the order of memory, as unsigned numbers.
    fields : tuple of tuple of Field
        Of each word, from the high bit to the low one; 32 bits in all. Empty where what the bits
        mean is not known.
    meaning : str
        What the line says, in words; empty where that is not known.
    """

    title: str
    words: tuple[int, ...]
    fields: tuple[tuple[Field, ...], ...]
    meaning: str = ""


def word_records(
    metadata: npt.NDArray[Any],
    lines: int | Iterable[int],
    *,
    names: Sequence[str] = (),
    called: str = "line",
) -> list[MetadataRecord]:
    """Take lines of any strategy's metadata apart, a field a word.

    Parameters
    ----------
    metadata : array of a 32-bit integer type, shape (lines,) or (lines, words)
        `Plan.metadata`.
    lines : int or iterable of int
        Which lines.
    names : sequence of str, optional
        Of the words, such as row, first nonzero, length and padding for Accel-GCN's warp-level
        metadata (Figure 3b). Two names in one, as "parts | part", are of the upper and the lower 16
        bits. Without names the words are left unnamed.
    called : str
        What a line belongs to: "block" or "warp".

    Raises
    ------
    ArgumentError
        If there is no such line, `metadata` is another array, or names and words differ in number.
    """
    array = np.asarray(metadata)
    if array.ndim not in (1, 2) or array.dtype.kind not in "iu" or array.dtype.itemsize != 4:
        expected = "32-bit integers, a line a block or warp"
        raise ArgumentError("metadata", f"a {array.ndim}-D array of {array.dtype}", expected)
    table = array.reshape(len(array), -1) if array.size else np.empty((0, 0), np.int32)
    if names and len(names) != table.shape[1]:
        raise ArgumentError("names", f"{len(names)} names", f"{table.shape[1]}, as many as words")
    records = []
    for line in numbered(lines):
        if not 0 <= line < len(table):
            bounds = f"0 to {len(table) - 1:,}"
            raise ArgumentError(f"{called}s", f"there is no {called} {line}", bounds)
        signed = table[line].tolist()
        words = tuple(word % (1 << WORD_BITS) for word in signed)
        fields = tuple(_fields(*word) for word in zip(names, signed, strict=False))
        records.append(MetadataRecord(f"{called} {line:,}", words, fields))
    return records


def _fields(name: str, word: int) -> tuple[Field, ...]:
    upper, both, lower = name.partition(" | ")
    if not both:
        return (Field(name, WORD_BITS, word),)
    half = WORD_BITS // 2
    parts = (upper, word >> half & (1 << half) - 1), (lower, word & (1 << half) - 1)
    return tuple(Field(label, half, value) for label, value in parts)


def numbered(lines: int | Iterable[int]) -> list[int]:
    """Return one number or several as a list."""
    return [int(lines)] if isinstance(lines, int | np.integer) else list(lines)
