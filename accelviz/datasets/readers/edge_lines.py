"""The lines of an edge list: what they may look like, and the numbers in them.

A line is `sender receiver` or `sender receiver weight`, with one delimiter all through the file: a
comma, a semicolon, a bar, a tab, or a run of blanks. Blanks around the others, blank lines and
lines that start with `#`, `%` or `//` mean nothing. A node is decimal digits; a weight is a number
in decimal or scientific notation, finite in float32.

One regular expression says all of this, so that the fast way (a whole block at once, its numbers
read by NumPy) and the slow one (line by line, for the exact place of a mistake) cannot disagree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
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
    """The nodes that may occur.

    Parameters
    ----------
    low, high : int
        The least and the largest.
    reason : str
        What is wrong with one above `high`, as the end of a sentence.
    advice : str
        What to do about it.
    """

    low: int
    high: int
    reason: str
    advice: str


@dataclass(frozen=True)
class Layout:
    """What all lines of a file have in common, taken from the first one with an edge.

    Parameters
    ----------
    path : Path
    line : int
        Number of that first line.
    delimiter : bytes
        One of `DELIMITERS`.
    columns : int
        Fields that are read: 2, or 3 with a weight.
    more : bool
        Whether further fields may follow, which mean nothing.
    allowed : NodeRange
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

        blank = rb"[ \t]*+"
        return (
            re.compile(line(b"(%b)")),
            re.compile(b"(?:(?:" + line(b"%b") + b"|" + blank + rb")\n)*+"),
        )

    def fast(self, block: bytes) -> tuple[npt.NDArray[Any], Floats | None] | None:
        """Return what `slow` returns, or None where `slow` has to look at it."""
        if b"#" in block or b"%" in block or b"//" in block:
            block = _COMMENTS.sub(b"", block)
        one, many = self._patterns
        if not many.fullmatch(block):
            return None
        if self.more:
            block = b"".join(b"%b\n" % b" ".join(found) for found in one.findall(block))
        if not block or block.isspace():  # NumPy makes a number of no text
            return self._result(np.empty((0, self.columns), np.int64))
        dtype = np.float64 if self.columns == 3 else np.int64
        numbers = np.fromstring(block.replace(self.delimiter, b" "), dtype, sep=" ")
        table = numbers.reshape(-1, self.columns)
        nodes = table[:, :2]
        # Of whole numbers beyond its range, NumPy makes the largest; float64 rounds them.
        ceiling = min(
            self.allowed.high, _EXACT - 1 if self.columns == 3 else np.iinfo(np.int64).max - 1
        )
        if nodes.min() < self.allowed.low or nodes.max() > ceiling:
            return None
        result = self._result(table)
        return result if result[1] is None or np.isfinite(result[1]).all() else None

    def slow(self, first_line: int, block: bytes) -> tuple[npt.NDArray[Any], Floats | None]:
        """Read a block line by line.

        Returns
        -------
        nodes : array of int32 (int64 if there are larger ones), shape (edges, 2)
        weights : array of float32, shape (edges,), or None

        Raises
        ------
        GraphError
            With the number of the line, what is wrong with it and what is expected.
        """
        pattern, _ = self._patterns
        nodes, weights = [], []
        for number, line in enumerate(block.split(b"\n")[:-1], first_line):
            if not line.strip(b" \t") or is_comment(line):
                continue
            found = pattern.fullmatch(line)
            if found is None:
                raise self._shape_error(number, line)
            sender, receiver, *rest = found.groups()
            nodes.append([self._node(number, sender), self._node(number, receiver)])
            weights += [self._weight(number, text) for text in rest]
        table = np.array(nodes, np.int64).reshape(-1, 2)
        ids, _ = self._result(table)
        return ids, np.array(weights, np.float32) if self.columns == 3 else None

    def _result(self, table: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Floats | None]:
        small = self.allowed.high <= np.iinfo(np.int32).max
        nodes = table[:, :2].astype(np.int32 if small else np.int64)
        if table.shape[1] < 3:
            return nodes, None
        with np.errstate(over="ignore", under="ignore"):
            return nodes, table[:, 2].astype(np.float32)

    def _node(self, number: int, text: bytes) -> int:
        digits = text.lstrip(b"0")
        # Python refuses to read thousands of digits; twenty are too many already.
        node = int(digits or b"0") if len(digits) < 20 else 10**20
        if node < self.allowed.low:
            low = self.allowed.low
            raise malformed(self.path, number, f"node {node}", f"nodes from {low} on, or base=0")
        if node > self.allowed.high:
            problem = f"node {shown(text)[1:-1]} {self.allowed.reason}"
            raise malformed(self.path, number, problem, self.allowed.advice)
        return node

    def _weight(self, number: int, text: bytes) -> float:
        with np.errstate(over="ignore", under="ignore"):
            weight = np.float32(float(text))
        if not np.isfinite(weight):
            raise malformed(
                self.path, number, f"the weight {shown(text)} is infinite in float32", "below 3e38"
            )
        return float(weight)

    def _shape_error(self, number: int, line: bytes) -> GraphError:
        """Return the error for a line that does not match: the first thing wrong with it."""
        fields = split(line, self.delimiter)
        names = ("sender", "receiver", "weight")[: self.columns]
        expected = f"{' '.join(names)}, separated by {DELIMITERS[self.delimiter]}"
        expected += f" as in line {self.line}" if number != self.line else ""
        head = fields[: self.columns]
        if any(delimiter in field for field in head for delimiter in DELIMITERS):
            return malformed(self.path, number, f"mixed delimiters in {shown(line)}", expected)
        if len(fields) < self.columns or (len(fields) > self.columns and not self.more):
            count = f"{len(fields)} field{'s' if len(fields) > 1 else ''}"
            return malformed(self.path, number, f"{count} in {shown(line)}", expected)
        for name, field in zip(names, head, strict=False):
            form = NUMBER if name == "weight" else _NODE
            if re.fullmatch(form, field):
                continue
            if not field:
                return malformed(self.path, number, f"the {name} is empty", expected)
            if name == "weight":
                return malformed(
                    self.path, number, f"the weight {shown(field)}", "a finite decimal number"
                )
            if re.fullmatch(rb"-[0-9]+", field):
                return malformed(
                    self.path, number, f"the negative node {shown(field)[1:-1]}", "nodes from 0"
                )
            return malformed(
                self.path, number, f"{shown(field)} is no node", "a whole number in digits"
            )
        return malformed(self.path, number, f"{shown(line)}", expected)
