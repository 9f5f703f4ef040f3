"""Picture of metadata records: the bits and fields that a block or warp reads to find its work."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from accelviz.errors import ArgumentError
from accelviz.partition.metadata import WORD_BITS, Field, MetadataRecord
from accelviz.plots import draw
from accelviz.plots.style import BLUE, GREEN, GREY, ORANGE, PURPLE, Look, add_alt, paler

#: Colours of the fields of a record, and how much paler a 0 bit is than a 1 bit.
_FIELD_COLOURS = (BLUE, GREEN, PURPLE, ORANGE, BLUE)
_PALE = 0.8
#: Bits per hexadecimal digit, and gap between digits.
_DIGIT, _DIGIT_GAP = 4, 0.3
#: Heights in units of `_INCHES`: a line of text, the field names of a word, its bits, its digits
#: with the space below, and the space between two records.
_TEXT, _NAMES, _BITS, _DIGITS, _BETWEEN = 1.15, 1.35, 1.15, 1.25, 0.9
_INCHES = 0.175
#: Left and right margin in widths of a bit, and letters per line of text.
_LEFT, _RIGHT, _LETTERS = 2.6, 6.5, 118
#: CUDA's names of the members of an int4.
_INT4 = ("x", "y", "z", "w")
MOST_RECORDS = 16


def metadata_layout(records: Sequence[MetadataRecord], *, ax: Axes | None = None) -> Axes:
    """Draw metadata records as bits: a line of cells per 32-bit word, with its fields labelled.

    Bit 31 is on the left. The hexadecimal digit of each four bits is below them.

    Parameters
    ----------
    records : sequence of MetadataRecord
        From `block_level_records` (Accel-GCN's int4) or `word_records` (other strategies), at most
        16.

    Raises
    ------
    ArgumentError
        If there are too many records, or the fields of a word do not sum to 32 bits.
    """
    if len(records) > MOST_RECORDS:
        problem = f"{len(records)} records of metadata"
        raise ArgumentError("records", problem, f"at most {MOST_RECORDS}")
    meanings = [textwrap.wrap(record.meaning, _LETTERS) for record in records]
    word_height = _NAMES + _BITS + _DIGITS
    total = sum(_BETWEEN + _TEXT + word_height * len(record.words) for record in records)
    total += _TEXT * sum(map(len, meanings)) - _BETWEEN * bool(records)
    ax = draw.new_axes(ax, figsize=(9.5, max(1.2, total * _INCHES + 0.3)))
    ax.set_axis_off()
    ax.set(xlim=(-_LEFT, _left_edge(WORD_BITS) + _RIGHT), ylim=(max(total, 1), 0))
    if not records:
        draw.label_empty(ax, "no metadata")
    y = 0.0
    for record, meaning in zip(records, meanings, strict=True):
        size = f"{len(record.words) * WORD_BITS} bits"
        ax.text(-_LEFT, y, f"{record.title}: {size}", va="top", fontsize=11, fontweight="bold")
        for text in meaning:
            y += _TEXT
            ax.text(-_LEFT, y, text, va="top", fontsize=9.5)
        y += _TEXT
        colour = 0
        for i, word in enumerate(record.words):
            name = f".{_INT4[i]}" if len(record.words) == len(_INT4) else f"word {i}"
            fields = record.fields[i] if record.fields else ()
            _draw_word(ax, y + _NAMES, name, word, fields, colour)
            colour += len(fields)
            y += word_height
        y += _BETWEEN
        digits = " ".join(map(_hexadecimal, record.words))
        alt = f"{record.title.capitalize()} in {size}, {digits}. {record.meaning}"
        add_alt(ax, alt.rstrip(". ") + ".")
    return ax


def _left_edge(bit: int) -> float:
    """Return the x coordinate of a bit, which is counted from the left."""
    return bit + bit // _DIGIT * _DIGIT_GAP


def _hexadecimal(word: int) -> str:
    return f"0x{word:0{WORD_BITS // _DIGIT}X}"


def _draw_word(
    ax: Axes, top: float, name: str, word: int, fields: Sequence[Field], colour: int
) -> None:
    """Draw a word with its bits at height `top`; its first field has colour number `colour`."""
    if fields and sum(field.bits for field in fields) != WORD_BITS:
        sizes = " + ".join(str(field.bits) for field in fields)
        raise ArgumentError("fields", f"{sizes} bits", f"{WORD_BITS} bits a word")
    middle, below = top + _BITS / 2, top + _BITS
    code: Look = {"va": "center", "family": "monospace"}
    ax.text(-_LEFT, middle, name, fontsize=9, **code)
    value = _hexadecimal(word) + ("" if fields else f" = {word:,}")
    ax.text(_left_edge(WORD_BITS) + 0.2, middle, value, fontsize=9.5, **code)
    colours: list[str] = [] if fields else [GREY] * WORD_BITS
    for i, field in enumerate(fields):
        field_colour = _FIELD_COLOURS[(colour + i) % len(_FIELD_COLOURS)]
        first, last = len(colours), len(colours) + field.bits - 1
        colours += [field_colour] * field.bits
        low, high = _left_edge(first) + 0.06, _left_edge(last) + 0.94
        ax.plot([low, low, high, high], top - np.array([0.1, 0.28, 0.28, 0.1]), color=field_colour)
        small: Look = {"va": "bottom", "fontsize": 7, "color": GREY}
        ax.text(low, top - 0.36, str(WORD_BITS - 1 - first), ha="left", **small)
        ax.text(high, top - 0.36, str(WORD_BITS - 1 - last), ha="right", **small)
        text = f"{field.name} = {field.value:,}"
        ax.text((low + high) / 2, top - 0.34, text, ha="center", va="bottom", fontsize=9.5)
    bits, digits = f"{word:0{WORD_BITS}b}", _hexadecimal(word)[2:]
    faces = [
        paler(tint, 1 if bit == "1" else 1 - _PALE) for tint, bit in zip(colours, bits, strict=True)
    ]
    left = np.array([_left_edge(i) for i in range(WORD_BITS)])
    edge: Look = {"edgecolors": "white", "linewidths": 0.8}
    draw.rectangles(ax, left, left + 1, top, below, facecolors=faces, **edge)
    for x, bit, face in zip(left, bits, faces, strict=True):
        draw.write_centred(ax, x + 0.5, middle, bit, face, 8.5)
    under: Look = code | {"ha": "center", "va": "top", "fontsize": 8, "color": GREY}
    for x, digit in zip(left[::_DIGIT], digits, strict=True):
        ax.text(x + _DIGIT / 2, below + 0.1, digit, **under)
