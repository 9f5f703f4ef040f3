"""Metadata bit by bit: what a block or a warp reads to know its work."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from accelviz.errors import ArgumentError
from accelviz.partition.metadata import WORD_BITS, Field, MetadataRecord
from accelviz.plots import draw
from accelviz.plots.style import BLUE, GREEN, GREY, ORANGE, PURPLE, Look, add_alt, paler

#: Fields of a line in turn, the last two being those of Accel-GCN's info. A 0 is paler than a 1.
_FIELD_COLOURS = (BLUE, GREEN, PURPLE, ORANGE, BLUE)
_PALE = 0.8
#: Bits that one hexadecimal digit stands for; a gap parts them.
_DIGIT, _DIGIT_GAP = 4, 0.3
#: Heights in units of `_INCHES`: a line of text, the names of a word's fields, its bits, its digits
#: and the space below, and the space between two lines of metadata.
_TEXT, _NAMES, _BITS, _DIGITS, _BETWEEN = 1.15, 1.35, 1.15, 1.25, 0.9
_INCHES = 0.175
#: Widths in bits, of what is beside them, and letters of a line of text.
_LEFT, _RIGHT, _LETTERS = 2.6, 6.5, 118
#: CUDA's names of the words of an int4.
_INT4 = ("x", "y", "z", "w")
#: Lines that fit on a page or two.
MOST_LINES = 16


def metadata_layout(lines: Sequence[MetadataRecord], *, ax: Axes | None = None) -> Axes:
    """Draw metadata as bits: a row of cells for each 32-bit word, its fields bracketed and named.

    Bit 31 is on the left. Below each four bits is their hexadecimal digit.

    Parameters
    ----------
    lines : sequence of MetadataRecord
        From `block_level_records` (Accel-GCN's int4) or `word_records` (any other), at most 16, one
        under the other.

    Raises
    ------
    ArgumentError
        If there are too many lines, or the fields of a word are not 32 bits in all.
    """
    if len(lines) > MOST_LINES:
        raise ArgumentError("lines", f"{len(lines)} lines of metadata", f"at most {MOST_LINES}")
    meanings = [textwrap.wrap(line.meaning, _LETTERS) for line in lines]
    word = _NAMES + _BITS + _DIGITS
    total = sum(_BETWEEN + _TEXT + word * len(line.words) for line in lines)
    total += _TEXT * sum(map(len, meanings)) - _BETWEEN * bool(lines)
    ax = draw.new_axes(ax, figsize=(9.5, max(1.2, total * _INCHES + 0.3)))
    ax.set_axis_off()
    ax.set(xlim=(-_LEFT, _left_edge(WORD_BITS) + _RIGHT), ylim=(max(total, 1), 0))
    if not lines:
        draw.label_empty(ax, "no metadata")
    y = 0.0
    for line, meaning in zip(lines, meanings, strict=True):
        size = f"{len(line.words) * WORD_BITS} bits"
        ax.text(-_LEFT, y, f"{line.title}: {size}", va="top", fontsize=11, fontweight="bold")
        for text in meaning:
            y += _TEXT
            ax.text(-_LEFT, y, text, va="top", fontsize=9.5)
        y += _TEXT
        colour = 0
        for i, bits in enumerate(line.words):
            name = f".{_INT4[i]}" if len(line.words) == len(_INT4) else f"word {i}"
            fields = line.fields[i] if line.fields else ()
            _word(ax, y + _NAMES, name, bits, fields, colour)
            colour += len(fields)
            y += word
        y += _BETWEEN
        digits = " ".join(map(_hexadecimal, line.words))
        alt = f"{line.title.capitalize()} in {size}, {digits}. {line.meaning}"
        add_alt(ax, alt.rstrip(". ") + ".")
    return ax


def _left_edge(bit: int) -> float:
    """Return where a bit begins, counted from the left."""
    return bit + bit // _DIGIT * _DIGIT_GAP


def _hexadecimal(word: int) -> str:
    return f"0x{word:0{WORD_BITS // _DIGIT}X}"


def _word(ax: Axes, top: float, name: str, word: int, fields: Sequence[Field], colour: int) -> None:
    """Draw a word whose bits begin at height `top`."""
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
        own_colour = _FIELD_COLOURS[(colour + i) % len(_FIELD_COLOURS)]
        first, last = len(colours), len(colours) + field.bits - 1
        colours += [own_colour] * field.bits
        low, high = _left_edge(first) + 0.06, _left_edge(last) + 0.94
        ax.plot([low, low, high, high], top - np.array([0.1, 0.28, 0.28, 0.1]), color=own_colour)
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
