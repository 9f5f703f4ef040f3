"""The lines of an edge list: how they are split, and the numbers in them.

pandas reads the numbers. A block that it refuses, or that has a node out of range, is looked at
line by line to say where the mistake is.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.arrays import Floats
from accelviz.datasets.readers.columns import NUMBER
from accelviz.datasets.readers.text import malformed, quoted
from accelviz.errors import GraphError

#: In order of precedence; a run of blanks is what remains.
DELIMITERS = {",": "commas", ";": "semicolons", "|": "bars", "\t": "tabs", " ": "blanks"}
#: What pandas writes over columns without names.
POSITIONS = ["0", "1"], ["0", "1", "2"]
#: Blank lines and comments; a line end stands before them.
_SKIPPED = re.compile(rb"\n(?=[ \t\n#%/])[ \t]*+(?:(?:#|%|//)[^\n]*+)?(?=\n)")
_COMMENT = re.compile(rb"[ \t]*(?:#|%|//)")
_NAME = re.compile(r"(?!nan\b)[\"':]?[^\W\d]", re.IGNORECASE)
#: float32 holds every whole number up to here.
_EXACT = 2**24


def is_comment(line: bytes) -> bool:
    """Say whether a line is a comment."""
    return _COMMENT.match(line) is not None


def delimiter_of(line: bytes) -> str:
    """Return the delimiter of a line of data."""
    inside = line.strip().decode("latin-1")
    return next((delimiter for delimiter in DELIMITERS if delimiter in inside), " ")


def split(line: bytes, delimiter: str) -> list[str]:
    """Return the fields of a line without quotes and the blanks around them."""
    text = line.decode("utf-8", "backslashreplace").strip(" \n" if delimiter == "\t" else " \t\n")
    text = text.replace("\t", " ") if delimiter == " " else text
    fields = text.split(delimiter) if delimiter != " " else text.split(" ")
    with contextlib.suppress(csv.Error):  # a field may be too long for it
        fields = next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))
    return [field.strip(" \t") for field in fields]


def names_of(line: bytes) -> list[str] | None:
    """Return the names of columns that a line holds, or None: then it has a number, or no name."""
    fields = split(line, delimiter_of(line))
    if fields[:1] == [""] and fields[1:] in POSITIONS:  # the first is pandas' index
        return ["", "source", "target", "weight"][: len(fields)]
    if len(fields) < 2 or not any(map(_NAME.match, fields)):
        return None
    return None if any(re.fullmatch(NUMBER, field) for field in fields) else fields


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

    `number` and `line` are that line, `count` is its number of fields, `take` the positions of
    source, target and, if it is read, weight. Fields behind these may be missing, or more. With
    `doubtful`, nobody has said that the last column holds weights.
    """

    path: Path
    number: int
    line: bytes
    delimiter: str
    count: int
    take: tuple[int, ...]
    allowed: NodeRange
    doubtful: bool = False

    @property
    def _more(self) -> bool:
        return self.count > max(self.take) + 1

    def read(self, block: bytes) -> tuple[npt.NDArray[Any], Floats | None] | None:
        """Read a block of whole lines.

        Returns the nodes (int32, or int64 if larger ones are allowed; shape (edges, 2)) and the
        weights (float32, shape (edges,)) or None; or None alone, if there is a mistake.
        """
        # pandas takes the first line as the measure of all others.
        text = _SKIPPED.sub(b"", b"\n" + self.line.strip(b"\n") + b"\n" + block)
        low, high = self.allowed.low, self.allowed.high
        try:
            with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
                table = pd.read_csv(
                    io.BytesIO(text),
                    sep=r"\s+" if self.delimiter == " " else self.delimiter,
                    header=None,
                    names=range(max(self.count, max(self.take) + 1)),
                    index_col=False,
                    usecols=self.take if self._more else None,
                    dtype=dict.fromkeys(self.take[2:], np.float64),
                    skipinitialspace=True,
                    encoding_errors="replace",
                    low_memory=False,
                ).iloc[1:]
        except (ValueError, pd.errors.ParserWarning):
            return None
        nodes = table[[*self.take[:2]]].to_numpy()
        if nodes.dtype != np.int64 or nodes.min(initial=low) < low or nodes.max(initial=low) > high:
            return None
        if len(table) != text.count(b"\n") - 2:  # a quote may hide the end of a line
            return None
        nodes = nodes.astype(np.int32 if high <= np.iinfo(np.int32).max else np.int64)
        if len(self.take) < 3:
            return nodes, None
        weights = table[self.take[2]].to_numpy()
        if self.doubtful and _too_large(weights).any():
            return None
        with np.errstate(over="ignore", under="ignore"):
            narrow = weights.astype(np.float32)
        return (nodes, narrow) if np.isfinite(narrow).all() else None

    def mistake(self, first_line: int, block: bytes) -> GraphError:
        """Return an error for the first mistake in a block: its line, and what is expected."""
        for number, line in enumerate(block.split(b"\n"), first_line):
            if line.strip(b" \t") and not is_comment(line):
                mistake = self._problem(number, line)
                if mistake is not None:
                    return malformed(self.path, number, *mistake)
        problem = "a line ends inside quotes" if b'"' in block else "pandas cannot read it"
        expected = "an edge on each line; pandas.read_csv reads texts with line ends in them"
        return GraphError(f"{self.path}, from line {first_line} on", problem, expected)

    def _problem(self, number: int, line: bytes) -> tuple[str, str] | None:
        """Say what is wrong with a line and what is expected, or return None for a good line."""
        fields = split(line, self.delimiter)
        known = dict(zip(self.take, ("source", "target", "weight"), strict=False))
        last = max(self.take) + 1
        expected = " ".join(known.get(at, "(ignored)") for at in range(last))
        expected += f", separated by {DELIMITERS[self.delimiter]}"
        expected += f" as in line {self.number}" if number != self.number else ""
        if any(re.search(r"[,;|\t ]", field) for at, field in enumerate(fields) if at in known):
            expected += ", and decimal points: pandas.read_csv(decimal=',') reads commas"
            return f"mixed delimiters in {quoted(line)}", expected
        if len(fields) < last or (len(fields) > last and not self._more):
            if number <= self.number + 1:
                expected += f"; header=True if line {self.number} is no edge"
            return f"{len(fields)} field{'s' * (len(fields) > 1)} in {quoted(line)}", expected
        for at, name in known.items():
            if not fields[at]:
                return f"the {name} is empty", expected
            check = self._weight_problem if name == "weight" else self._node_problem
            if (problem := check(fields[at])) is not None:
                return problem
        return None

    def _node_problem(self, text: str) -> tuple[str, str] | None:
        if re.fullmatch("-[0-9]+", text):
            return f"the negative node {quoted(text)[1:-1]}", "nodes from 0"
        if not re.fullmatch(r"\+?[0-9]+", text):
            expected = "a whole number in digits; pandas.factorize numbers names, and load_graph "
            expected += "takes what networkx.read_edgelist returns"
            if re.fullmatch(NUMBER, text):
                expected = "a whole number in digits, as numpy.savetxt(..., fmt='%d') writes it"
            return f"{quoted(text)} is not a node", expected
        # Python refuses to read thousands of digits; twenty are too many already.
        node = int(text.lstrip("+0")[:20] or "0")
        if node < self.allowed.low:
            return f"node {node}", f"nodes from {self.allowed.low} on, or base=0"
        if node > self.allowed.high:
            return f"node {quoted(text)[1:-1]} {self.allowed.reason}", self.allowed.advice
        return None

    def _weight_problem(self, text: str) -> tuple[str, str] | None:
        if not re.fullmatch(NUMBER, text):
            return f"the weight {quoted(text)}", "a finite decimal number"
        with np.errstate(over="ignore", under="ignore"):
            finite = np.isfinite(np.float32(float(text)))
        if not finite:
            return f"the weight {quoted(text)} is infinite in float32", "below 3e38"
        if self.doubtful and _too_large(np.float64(text)):
            problem = f"{quoted(text)} in the third column is a time or an id rather than a weight"
            return problem, "weights=False to ignore that column, or weights=True to take it"
        return None


def _too_large(weights: Any) -> Any:
    """Say which numbers are whole, and too large for float32 to tell them from their neighbors."""
    return (np.abs(weights) > _EXACT) & (weights == np.trunc(weights))
