"""Metadata records decoded for display: one record per block or warp, of 32-bit words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError

WORD_BITS = 32


@dataclass(frozen=True)
class Field:
    """A bit field of a word: its name, its number of bits and its value."""

    name: str
    bits: int
    value: int


@dataclass(frozen=True)
class MetadataRecord:
    """A metadata record: the words that one block or one warp reads.

    Attributes
    ----------
    title : str
        Owner of the record, such as "block 3".
    words : tuple of int
        The 32-bit words in memory order, as unsigned integers.
    fields : tuple of tuple of Field
        Fields of each word, from high bits to low bits, 32 bits per word. Empty if unknown.
    meaning : str
        A sentence that explains the record; empty if unknown.
    """

    title: str
    words: tuple[int, ...]
    fields: tuple[tuple[Field, ...], ...]
    meaning: str = ""


def word_records(
    metadata: npt.NDArray[Any],
    numbers: int | Iterable[int],
    *,
    names: Sequence[str] = (),
    called: str = "record",
) -> list[MetadataRecord]:
    """Decode records of any strategy's metadata, one or two fields per word.

    Parameters
    ----------
    metadata : array of a 32-bit integer type, shape (records,) or (records, words)
        `Plan.metadata`.
    numbers : int or iterable of int
        Record numbers.
    names : sequence of str, optional
        A name for each word, such as row, first nonzero, length and padding for Accel-GCN's
        warp-level metadata (Figure 3b). A pair of names, such as "parts | part", divides the word
        into its upper and lower 16 bits. Without names the records have no fields.
    called : str
        Owner of a record, "block" or "warp".

    Raises
    ------
    ArgumentError
        If a record does not exist, `metadata` has another shape or dtype, or the number of names
        differs from the number of words.
    """
    array = np.asarray(metadata)
    if array.ndim not in (1, 2) or array.dtype.kind not in "iu" or array.dtype.itemsize != 4:
        expected = "32-bit integers, one record per block or warp"
        raise ArgumentError("metadata", f"a {array.ndim}-D array of {array.dtype}", expected)
    table = array.reshape(len(array), -1) if array.size else np.empty((0, 0), np.int32)
    if names and len(names) != table.shape[1]:
        raise ArgumentError("names", f"{len(names)} names", f"{table.shape[1]}, as many as words")
    records = []
    for number in as_list(numbers):
        if not 0 <= number < len(table):
            bounds = f"0 to {len(table) - 1:,}"
            raise ArgumentError(f"{called}s", f"there is no {called} {number}", bounds)
        signed = table[number].tolist()
        words = tuple(word % (1 << WORD_BITS) for word in signed)
        fields = tuple(map(_fields, names, signed))
        records.append(MetadataRecord(f"{called} {number:,}", words, fields))
    return records


def _fields(name: str, word: int) -> tuple[Field, ...]:
    upper_name, bar, lower_name = name.partition(" | ")
    if not bar:
        return (Field(name, WORD_BITS, word),)
    upper, lower = word >> 16 & 0xFFFF, word & 0xFFFF
    return Field(upper_name, 16, upper), Field(lower_name, 16, lower)


def as_list(numbers: int | Iterable[int]) -> list[int]:
    """Return one number or several as a list."""
    return [int(numbers)] if isinstance(numbers, int | np.integer) else list(numbers)
