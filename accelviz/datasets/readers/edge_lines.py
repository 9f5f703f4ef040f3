"""The lines of an edge list: what they may look like, and the numbers in them.

A line is `sender receiver` or `sender receiver weight`. The delimiter is the same in the whole
file: a comma, a semicolon, a bar, a tab, or a run of blanks. Blanks around the other delimiters,
blank lines, and lines that start with `#`, `%` or `//` mean nothing. A node is decimal digits; a
weight is a number in decimal or scientific notation, finite in float32.

One regular expression says all of this and checks a whole block of lines at once. NumPy then reads
the numbers. Only a block with a mistake is looked at line by line, to say where the mistake is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Floats
from accelviz.datasets.readers.text import malformed, shown
from accelviz.errors import GraphError

#: In order of precedence; a run of blanks is what remains.
DELIMITERS = {b",": "commas", b";": "semicolons", b"|": "bars", b"\t": "tabs", b" ": "blanks"}

_NODE = rb"[0-9]++"
#: A finite number in decimal or scientific notation.
NUMBER = rb"[-+]?+(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][-+]?+[0-9]++)?+"
_COMMENTS = re.compile(rb"(?m)^[ \t]*+(?:#|%|//)[^\n]*+")
_NAME = re.compile(rb"(?!nan\b)[\"']?[^\W\d]", re.IGNORECASE)
#: Up to here, float64 holds every whole number.
_EXACT = 2**53


def is_comment(line: bytes) -> bool:
    """Say whether a line is a comment."""
    return _COMMENTS.match(line) is not None


def is_header(line: bytes) -> bool:
    """Say whether a line holds names of columns: the first two fields start with a letter."""
    fields = split(line, delimiter_of(line))
    return len(fields) > 1 and all(_NAME.match(field) for field in fields[:2])


def delimiter_of(line: bytes) -> bytes:
    """Return the delimiter of a line of data."""
    inside = line.strip(b" \t\n")
    return next((delimiter for delimiter in DELIMITERS if delimiter in inside), b" ")


def split(line: bytes, delimiter: bytes) -> list[bytes]:
    """Return the fields of a line without the blanks around them."""
    if delimiter == b" ":
        return [field for field in line.strip(b" \t").split(b" ") if field]
    return [field.strip(b" " if delimiter == b"\t" else b" \t") for field in line.split(delimiter)]


@dataclass(frozen=True)
class NodeRange:
    """The least and the largest node; what is wrong with a larger one, and what to do about it."""

    low: int
    high: int
    reason: str
    advice: str


@dataclass(frozen=True)
class Layout:
    """What all lines of a file have in common, taken from the first one with an edge.

    `line` is the number of that line, `columns` how many fields are read: 2, or 3 with a weight.
    With `more`, further fields may follow, which mean nothing.
    """

    path: Path
    line: int
    delimiter: bytes
    columns: int
    more: bool
    allowed: NodeRange

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
        """A line without its end, its fields as groups; and any number of lines."""
        outer = rb"[ ]*+" if self.delimiter == b"\t" else rb"[ \t]*+"
        gap = rb"[ ]++" if self.delimiter == b" " else outer + re.escape(self.delimiter) + outer
        fields = [_NODE, _NODE, NUMBER][: self.columns]
        rest = b"(?:" + gap + rb"[^\n]*+)?+" if self.more else b""

        def line(form: bytes) -> bytes:
            return outer + gap.join(form % field for field in fields) + rest + outer

        lines = b"(?:(?:" + line(b"%b") + rb"|[ \t]*+)\n)*+"
        return re.compile(line(b"(%b)")), re.compile(lines)

    def read(self, block: bytes) -> tuple[npt.NDArray[Any], Floats | None] | None:
        """Read a block of whole lines.

        Returns the nodes (int32, or int64 if larger ones are allowed; shape (edges, 2)) and the
        weights (float32, shape (edges,)) or None; or None alone, if there is a mistake.
        """
        text = block
        if b"#" in text or b"%" in text or b"//" in text:
            text = _COMMENTS.sub(b"", text)
        one, many = self._patterns
        if not many.fullmatch(text):
            return None
        if self.more:
            text = b"".join(b"%b\n" % b" ".join(found) for found in one.findall(text))
        dtype = np.float64 if self.columns == 3 else np.int64
        numbers = np.empty(0, dtype)
        if text and not text.isspace():  # NumPy makes a number of no text
            numbers = np.fromstring(text.replace(self.delimiter, b" "), dtype, sep=" ")
        table = numbers.reshape(-1, self.columns)
        nodes = table[:, :2]
        if self.columns == 3 and nodes.max(initial=0) >= _EXACT:
            alone = replace(self, columns=2, more=True).read(block)
            if alone is None:
                return None
            nodes = alone[0]
        # NumPy reads a number beyond int64 as the largest int64, which no range allows.
        low, high = self.allowed.low, self.allowed.high
        if nodes.min(initial=low) < low or nodes.max(initial=low) > high:
            return None
        nodes = nodes.astype(np.int32 if high <= np.iinfo(np.int32).max else np.int64)
        if self.columns == 2:
            return nodes, None
        with np.errstate(over="ignore", under="ignore"):
            weights = table[:, 2].astype(np.float32)
        return (nodes, weights) if np.isfinite(weights).all() else None

    def mistake(self, first_line: int, block: bytes) -> GraphError:
        """Return an error for the first mistake in a block: its line, and what is expected."""
        for number, line in enumerate(block.split(b"\n"), first_line):
            if line.strip(b" \t") and not is_comment(line):
                found = self._problem(number, line)
                if found is not None:
                    return malformed(self.path, number, *found)
        raise AssertionError("there is no mistake")

    def _problem(self, number: int, line: bytes) -> tuple[str, str] | None:
        """Say what is wrong with a line and what is expected, or return None for a good line."""
        fields = split(line, self.delimiter)
        names = ("sender", "receiver", "weight")[: self.columns]
        expected = f"{' '.join(names)}, separated by {DELIMITERS[self.delimiter]}"
        expected += f" as in line {self.line}" if number != self.line else ""
        head = fields[: self.columns]
        if any(delimiter in field for field in head for delimiter in DELIMITERS):
            return f"mixed delimiters in {shown(line)}", expected
        if len(fields) < self.columns or (len(fields) > self.columns and not self.more):
            count = f"{len(fields)} field{'s' if len(fields) > 1 else ''}"
            return f"{count} in {shown(line)}", expected
        for name, field in zip(names, head, strict=True):
            if not field:
                return f"the {name} is empty", expected
            found = self._weight_problem(field) if name == "weight" else self._node_problem(field)
            if found is not None:
                return found
        return None if self._patterns[0].fullmatch(line) else (shown(line), expected)

    def _node_problem(self, text: bytes) -> tuple[str, str] | None:
        if re.fullmatch(rb"-[0-9]+", text):
            return f"the negative node {shown(text)[1:-1]}", "nodes from 0"
        if not text.isdigit():
            return f"{shown(text)} is not a node", "a whole number in digits"
        # Python refuses to read thousands of digits; twenty are too many already.
        node = int(text.lstrip(b"0")[:20] or b"0")
        if node < self.allowed.low:
            return f"node {node}", f"nodes from {self.allowed.low} on, or base=0"
        if node > self.allowed.high:
            return f"node {shown(text)[1:-1]} {self.allowed.reason}", self.allowed.advice
        return None

    def _weight_problem(self, text: bytes) -> tuple[str, str] | None:
        if not re.fullmatch(NUMBER, text):
            return f"the weight {shown(text)}", "a finite decimal number"
        with np.errstate(over="ignore", under="ignore"):
            finite = np.isfinite(np.float32(float(text)))
        problem = f"the weight {shown(text)} is infinite in float32"
        return None if finite else (problem, "below 3e38")
