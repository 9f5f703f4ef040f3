"""The lines of an edge list: what they may look like, and the numbers in them.

A line has a sender, a receiver and perhaps a weight, in this order or another, among other fields.
The delimiter is the same in the whole file: a comma, a semicolon, a bar, a tab, or a run of blanks.
Blanks around the other delimiters, blank lines, and lines that start with `#`, `%` or `//` mean
nothing. A node is decimal digits; a weight is a number in decimal or scientific notation, finite in
float32; both may stand in double quotes.

One regular expression says all of this and checks a whole block of lines at once. NumPy then reads
the numbers. Only a block with a mistake is looked at line by line, to say where the mistake is.
"""

from __future__ import annotations

import contextlib
import csv
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
_NAME = re.compile(rb"(?!nan\b)[\"':]?[^\W\d]", re.IGNORECASE)
#: What pandas writes over columns without names.
POSITIONS = [b"0", b"1"], [b"0", b"1", b"2"]
#: Numbers alone, with a comma in one and another delimiter between two.
_DECIMAL_COMMAS = re.compile(rb"(?=.*[0-9][;|\t][-+]?[0-9])(?=.*[0-9],[0-9])[-+0-9.,eE;|\t ]+\n?")
#: A number in quotes, alone between delimiters.
_QUOTED = re.compile(rb'(?<![^,;| \t\n])"(' + NUMBER + rb')"(?![^,;| \t\n])')
#: Up to here, float64 holds every whole number.
_EXACT = 2**53
#: And float32.
_EXACT32 = 2**24


def is_comment(line: bytes) -> bool:
    """Say whether a line is a comment."""
    return _COMMENTS.match(line) is not None


def names_of(line: bytes) -> list[str] | None:
    """Return the names of columns that a line holds, or None: then it has a number, or no name."""
    fields = split(line, delimiter_of(line))
    if fields[:1] == [b""] and fields[1:] in POSITIONS:  # the first is pandas' index
        return ["", "source", "target", "weight"][: len(fields)]
    if len(fields) < 2 or not any(map(_NAME.match, fields)):
        return None
    if any(re.fullmatch(NUMBER, field) for field in fields):
        return None
    return [field.strip(b"\"'").decode("utf-8", "backslashreplace") for field in fields]


def decimal_commas(line: bytes) -> tuple[str, str] | None:
    """Say what is wrong, and what is expected, if a line's numbers seem to have decimal commas."""
    if not _DECIMAL_COMMAS.fullmatch(line):
        return None
    problem = f"{shown(line.strip())} has commas beside another delimiter"
    return problem, "one delimiter, and decimal points: pandas.read_csv(decimal=',') reads commas"


def delimiter_of(line: bytes) -> bytes:
    """Return the delimiter of a line of data."""
    inside = line.strip(b" \t\n")
    return next((delimiter for delimiter in DELIMITERS if delimiter in inside), b" ")


def split(line: bytes, delimiter: bytes) -> list[bytes]:
    """Return the fields of a line without the blanks around them, and numbers without quotes."""
    line = _unquoted(line)
    if delimiter == b" ":
        return [field for field in line.strip(b" \t\n").split(b" ") if field]
    fields = line.split(delimiter)
    if b'"' in line:  # a delimiter in quotes is none
        text, own = line.decode("latin-1"), delimiter.decode()
        with contextlib.suppress(csv.Error):
            rows = csv.reader([text], delimiter=own, skipinitialspace=True)
            fields = [field.encode("latin-1") for field in next(rows)]
    return [field.strip(b" \n" if delimiter == b"\t" else b" \t\n") for field in fields]


def _unquoted(text: bytes) -> bytes:
    return _QUOTED.sub(rb"\1", text) if b'"' in text else text


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

    `line` is the number of that line, `take` the positions of sender, receiver and, if it is read,
    weight. With `more`, further fields may follow, which mean nothing. With `doubtful`, nobody has
    said that the last column holds weights. `same` is a position and what all lines have there.
    """

    path: Path
    line: int
    delimiter: bytes
    take: tuple[int, ...]
    more: bool
    allowed: NodeRange
    doubtful: bool = False
    same: tuple[int, bytes] | None = None

    @cached_property
    def _roles(self) -> list[str]:
        """What each field is, up to the last one that is read."""
        places = (*self.take, self.same[0]) if self.same else self.take
        roles = [""] * (max(places) + 1)
        for place, role in zip(self.take, ("sender", "receiver", "weight"), strict=False):
            roles[place] = role
        if self.same:
            roles[self.same[0]] = "direction"
        return roles

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
        """A line without its end, what is read of it as groups; and any number of lines."""
        outer = rb"[ ]*+" if self.delimiter == b"\t" else rb"[ \t]*+"
        gap = rb"[ ]++" if self.delimiter == b" " else outer + re.escape(self.delimiter) + outer
        skipped = rb'(?:"(?:[^"\n]|"")*+"' + outer + rb'|[^"\n' + self.delimiter + rb"]%b)"
        skipped %= b"++" if self.delimiter == b" " else b"*+"
        same = rb'"?+' + re.escape(self.same[1]) + rb'"?+' if self.same else b""
        rest = b"(?:" + gap + rb"[^\n]*+)?+" if self.more else b""

        def line(form: bytes) -> bytes:
            forms = {"": skipped, "weight": form % NUMBER, "direction": same}
            fields = gap.join(forms.get(role, form % _NODE) for role in self._roles)
            return outer + fields + rest + outer

        lines = b"(?:(?:" + line(b"%b") + rb"|[ \t]*+)\n)*+"
        return re.compile(line(b"(%b)")), re.compile(lines)

    def read(self, block: bytes) -> tuple[npt.NDArray[Any], Floats | None] | None:
        """Read a block of whole lines.

        Returns the nodes (int32, or int64 if larger ones are allowed; shape (edges, 2)) and the
        weights (float32, shape (edges,)) or None; or None alone, if there is a mistake.
        """
        text = _unquoted(block)
        if b"#" in text or b"%" in text or b"//" in text:
            text = _COMMENTS.sub(b"", text)
        one, many = self._patterns
        if not many.fullmatch(text):
            return None
        if self.more or {"", "direction"} & {*self._roles}:
            text = b"".join(b"%b\n" % b" ".join(found) for found in one.findall(text))
        weighted = len(self.take) > 2
        dtype = np.float64 if weighted else np.int64
        numbers = np.empty(0, dtype)
        if text and not text.isspace():  # NumPy makes a number of no text
            numbers = np.fromstring(text.replace(self.delimiter, b" "), dtype, sep=" ")
        order = [sorted(self.take).index(place) for place in self.take]
        table = numbers.reshape(-1, len(order))[:, order]
        nodes = table[:, :2]
        if weighted and nodes.max(initial=0) >= _EXACT:
            alone = replace(self, take=self.take[:2], more=True).read(block)
            if alone is None:
                return None
            nodes = alone[0]
        # NumPy reads a number beyond int64 as the largest int64, which no range allows.
        low, high = self.allowed.low, self.allowed.high
        if nodes.min(initial=low) < low or nodes.max(initial=low) > high:
            return None
        nodes = nodes.astype(np.int32 if high <= np.iinfo(np.int32).max else np.int64)
        if not weighted:
            return nodes, None
        if self.doubtful and _too_large(table[:, 2]).any():
            return None
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
        roles = self._roles
        expected = " ".join(role or "(ignored)" for role in roles)
        expected += f", separated by {DELIMITERS[self.delimiter]}"
        expected += f" as in line {self.line}" if number != self.line else ""
        head = fields[: len(roles)]
        read = [field for role, field in zip(roles, head, strict=False) if role]
        if any(delimiter in field for field in read for delimiter in DELIMITERS):
            return decimal_commas(line) or (f"mixed delimiters in {shown(line)}", expected)
        if len(fields) < len(roles) or (len(fields) > len(roles) and not self.more):
            count = f"{len(fields)} field{'s' if len(fields) > 1 else ''}"
            if number <= self.line + 1:
                expected += f"; header=True if line {self.line} is no edge"
            return f"{count} in {shown(line)}", expected
        for role, field in zip(roles, head, strict=True):
            if role and not field:
                return f"the {role} is empty", expected
            checks = {"": _nothing, "weight": self._weight_problem, "direction": self._other}
            found = checks.get(role, self._node_problem)(field)
            if found is not None:
                return found
        return None if self._patterns[0].fullmatch(_unquoted(line)) else (shown(line), expected)

    def _other(self, text: bytes) -> tuple[str, str] | None:
        if self.same and text != self.same[1]:
            problem = f"{shown(text)}, and {shown(self.same[1])} in line {self.line}"
            return problem, "one of them in all lines; symmetric=True or False says it for all"
        return None

    def _node_problem(self, text: bytes) -> tuple[str, str] | None:
        if re.fullmatch(rb"-[0-9]+", text):
            return f"the negative node {shown(text)[1:-1]}", "nodes from 0"
        if not text.isdigit():
            expected = "a whole number in digits; pandas.factorize numbers names, and load_graph "
            expected += "takes what networkx.read_edgelist returns"
            if re.fullmatch(NUMBER, text):
                expected = "a whole number in digits, as numpy.savetxt(..., fmt='%d') writes it"
            return f"{shown(text)} is not a node", expected
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
        if not finite:
            return f"the weight {shown(text)} is infinite in float32", "below 3e38"
        if self.doubtful and _too_large(np.float64(text)):
            problem = f"{shown(text)} in the third column is a time or an id rather than a weight"
            return problem, "weights=False to ignore that column, or weights=True to take it"
        return None


def _too_large(weights: Any) -> Any:
    """Say which numbers are whole, and too large for float32 to tell them from their neighbors."""
    return (np.abs(weights) > _EXACT32) & (weights == np.trunc(weights))


def _nothing(field: bytes) -> None:
    return None
