"""Parser of edge-list lines: comments, column names, fields and numbers.

pandas parses blocks of lines. If a block has an invalid line or a node out of range, its lines are
parsed again one by one, to raise an error with the line number.
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

from accelviz.arrays import Floats
from accelviz.datasets.readers.columns import NUMBER
from accelviz.datasets.readers.text import malformed, quoted
from accelviz.errors import GraphError

#: Delimiters in order of precedence. Blanks may be repeated.
DELIMITERS = {",": "commas", ";": "semicolons", "|": "bars", "\t": "tabs", " ": "blanks"}
#: The header that pandas writes for columns without names.
POSITIONS = ["0", "1"], ["0", "1", "2"]
#: A line end followed by a blank line or a comment.
_SKIPPED = re.compile(rb"\n(?=[ \t\n#%/])[ \t]*+(?:(?:#|%|//)[^\n]*+)?(?=\n)")
_COMMENT = re.compile(rb"[ \t]*(?:#|%|//)")
_NAME = re.compile(r"(?!nan\b)[\"':]?[^\W\d]", re.IGNORECASE)
#: float32 represents every integer up to this.
_EXACT = 2**24


def is_comment(line: bytes) -> bool:
    """Return whether a line is a comment."""
    return _COMMENT.match(line) is not None


def delimiter_of(line: bytes) -> str:
    """Return the delimiter of a line of data."""
    text = line.strip().decode("latin-1")
    return next((delimiter for delimiter in DELIMITERS if delimiter in text), " ")


def split(line: bytes, delimiter: str) -> list[str]:
    """Return the fields of a line, without quotes and surrounding blanks."""
    text = line.decode("utf-8", "backslashreplace").strip(" \n" if delimiter == "\t" else " \t\n")
    text = text.replace("\t", " ") if delimiter == " " else text
    fields = text.split(delimiter) if delimiter != " " else text.split(" ")
    with contextlib.suppress(csv.Error):  # raised for a very long field
        fields = next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))
    return [field.strip(" \t") for field in fields]


def names_of(line: bytes) -> list[str] | None:
    """Return the column names in a line, or None if it has a number or no name."""
    fields = split(line, delimiter_of(line))
    if fields[:1] == [""] and fields[1:] in POSITIONS:  # pandas, with an index column
        return ["", "source", "target", "weight"][: len(fields)]
    if len(fields) < 2 or not any(map(_NAME.match, fields)):
        return None
    return None if any(re.fullmatch(NUMBER, field) for field in fields) else fields


@dataclass(frozen=True)
class NodeRange:
    """Smallest and largest valid node; problem and advice for the error about a larger node."""

    low: int
    high: int
    reason: str
    advice: str


@dataclass(frozen=True)
class Layout:
    """The structure of all lines of a file, derived from the first edge.

    `line_number`, `line` and `count` are that edge's line and its number of fields. `positions` are
    those of source, target and, optionally, weight; the number of fields after them may vary if the
    first edge has any. `guessed_weights` is true if the weights are a third column without a name
    that no option has confirmed.
    """

    path: Path
    line_number: int
    line: bytes
    delimiter: str
    count: int
    positions: tuple[int, ...]
    allowed: NodeRange
    guessed_weights: bool = False

    @property
    def _has_extra_fields(self) -> bool:
        return self.count > max(self.positions) + 1

    def read(self, block: bytes) -> tuple[npt.NDArray[Any], Floats | None] | None:
        """Parse a block of whole lines.

        Returns nodes (int32, or int64 if `allowed` exceeds it, shape (edges, 2)) and weights
        (float32, shape (edges,)) or None. Returns None alone if a line is invalid.
        """
        import pandas as pd

        # pandas derives the number of columns from the first line.
        text = _SKIPPED.sub(b"", b"\n" + self.line.strip(b"\n") + b"\n" + block)
        low, high = self.allowed.low, self.allowed.high
        try:
            with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
                table = pd.read_csv(
                    io.BytesIO(text),
                    sep=r"\s+" if self.delimiter == " " else self.delimiter,
                    header=None,
                    names=range(max(self.count, max(self.positions) + 1)),
                    index_col=False,
                    usecols=self.positions if self._has_extra_fields else None,
                    dtype=dict.fromkeys(self.positions[2:], np.float64),
                    skipinitialspace=True,
                    encoding_errors="replace",
                    low_memory=False,
                ).iloc[1:]
        except (ValueError, pd.errors.ParserWarning):
            return None
        nodes = table[[*self.positions[:2]]].to_numpy()
        if nodes.dtype != np.int64 or nodes.min(initial=low) < low or nodes.max(initial=low) > high:
            return None
        if len(table) != text.count(b"\n") - 2:  # quotes may contain line ends
            return None
        nodes = nodes.astype(np.int32 if high <= np.iinfo(np.int32).max else np.int64)
        if len(self.positions) < 3:
            return nodes, None
        weights = table[self.positions[2]].to_numpy()
        if self.guessed_weights and _is_large_integer(weights).any():
            return None
        with np.errstate(over="ignore", under="ignore"):
            weights = weights.astype(np.float32)
        return (nodes, weights) if np.isfinite(weights).all() else None

    def mistake(self, first_line: int, block: bytes) -> GraphError:
        """Return an error with the first invalid line of a block."""
        for number, line in enumerate(block.split(b"\n"), first_line):
            if line.strip(b" \t") and not is_comment(line):
                problem_and_expected = self._problem(number, line)
                if problem_and_expected is not None:
                    return malformed(self.path, number, *problem_and_expected)
        problem = "a line ends inside quotes" if b'"' in block else "pandas cannot read it"
        expected = "an edge on each line; pandas.read_csv reads texts with line ends in them"
        return GraphError(f"{self.path}, from line {first_line} on", problem, expected)

    def _problem(self, number: int, line: bytes) -> tuple[str, str] | None:
        """Return the problem of a line and the expected text, or None for a valid line."""
        fields = split(line, self.delimiter)
        roles = dict(zip(self.positions, ("source", "target", "weight"), strict=False))
        needed = max(self.positions) + 1
        expected = " ".join(roles.get(position, "(ignored)") for position in range(needed))
        expected += f", separated by {DELIMITERS[self.delimiter]}"
        expected += f" as in line {self.line_number}" if number != self.line_number else ""
        if any(re.search(r"[,;|\t ]", fields[p]) for p in roles if p < len(fields)):
            expected += ", and decimal points: pandas.read_csv(decimal=',') reads commas"
            return f"mixed delimiters in {quoted(line)}", expected
        if len(fields) < needed or (len(fields) > needed and not self._has_extra_fields):
            if number <= self.line_number + 1:
                expected += f"; header=True if line {self.line_number} is no edge"
            return f"{len(fields)} field{'s' * (len(fields) > 1)} in {quoted(line)}", expected
        for position, name in roles.items():
            if not fields[position]:
                return f"the {name} is empty", expected
            check = self._weight_problem if name == "weight" else self._node_problem
            if (problem := check(fields[position])) is not None:
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
        # Python raises an error for thousands of digits; 20 already exceed every range.
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
        if self.guessed_weights and _is_large_integer(np.float64(text)):
            problem = f"{quoted(text)} in the third column is a time or an id rather than a weight"
            return problem, "weights=False to ignore that column, or weights=True to take it"
        return None


def _is_large_integer(weights: Any) -> Any:
    """Return which weights are integers beyond the exact range of float32, such as timestamps."""
    return (np.abs(weights) > _EXACT) & (weights == np.trunc(weights))
