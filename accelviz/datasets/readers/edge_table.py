"""The table that an edge list is: which columns are read, and the numbers in its lines.

pandas reads the numbers. A block that it refuses, or that has a node out of range, is looked at
line by line to say where the mistake is.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.arrays import Floats
from accelviz.datasets.readers.text import malformed, quoted
from accelviz.errors import ArgumentError, GraphError

#: What callers may say with the option `columns`.
Columns = Sequence[str | int] | None

#: In order of precedence; a run of blanks is what remains.
DELIMITERS = {",": "commas", ";": "semicolons", "|": "bars", "\t": "tabs", " ": "blanks"}
#: A finite number in decimal or scientific notation.
NUMBER = r"[-+]?+(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][-+]?+[0-9]++)?+"
#: Blank lines and comments; a line end stands before them.
_SKIPPED = re.compile(rb"\n(?=[ \t\n#%/])[ \t]*+(?:(?:#|%|//)[^\n]*+)?(?=\n)")
_COMMENT = re.compile(rb"[ \t]*(?:#|%|//)")
_NAME = re.compile(r"(?!nan\b)[\"':]?[^\W\d]", re.IGNORECASE)
#: What pandas writes over columns without names.
POSITIONS = ["0", "1"], ["0", "1", "2"]
#: float32 holds every whole number up to here.
_EXACT = 2**24

#: Names that mean one thing to everybody, without "id", "node" and signs. In `head,tail` and
#: `row,col` either may be the source, so they are asked about.
_ROLES = {
    "source": {"source", "src", "from", "sender", "start", "u", "1"},
    "target": {"target", "tgt", "dst", "dest", "destination", "to", "receiver", "end", "v", "2"},
    "weight": {"weight", "weights", "w", "edgeweight", "edgeweights"},
    "ignored": {"id", "edgeid", "index", "label", "timeset"},
}
_ROLES_APART = ("weight", "ignored")
#: What pandas calls its index, and Neo4j what a database alone needs.
_IGNORED = re.compile(r"|unnamed: ?\d+|:(type|label|ignore)")
#: Neo4j: `:START_ID(Person)`, `weight:float`.
_NEO4J = re.compile(r"[^:]*:(start|end)_id(\(.*\))?|:?([^:]*?)(:\w+)?")
_KIND = re.compile(r"(?i):(?:start|end)_id(\(.*\))")


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


def role(name: str) -> str:
    """Return "source", "target", "weight" or "ignored" if a column's name says so, else ""."""
    name = name.strip(" \t\"'").lower()
    if _IGNORED.fullmatch(name):
        return "ignored"
    neo4j = _NEO4J.fullmatch(name)
    word = re.sub(r"[\W_]+", "", (neo4j[1] or neo4j[3]) if neo4j else "")
    if word.isdigit():  # a position is no `id1`
        return ""
    short = re.sub(r"nodes?|vertex|ids?", "", word)
    short = word if short.isalpha() and len(short) == 1 else short  # `vid` may be a video's
    return next((role for role, names in _ROLES.items() if {word, short} & names), "")


def choose_columns(
    names: Sequence[str] | None,
    count: int,
    columns: Columns,
    weights: bool | str | None,
    numeric: Sequence[bool] | None = None,
    ignored: Sequence[int] = (),
) -> tuple[int, ...]:
    """Return the positions of source, target and, if there is one, weight.

    Parameters
    ----------
    names : sequence of str, optional
        The columns' names, if they have any.
    count : int
        Number of columns.
    columns, weights
        The options of `read_edge_list`.
    numeric : sequence of bool, optional
        Which columns hold numbers: no other is proposed as the weights.
    ignored : sequence of int
        Columns that are known to be none of these.

    Raises
    ------
    GraphError
        If the names do not say it: the message names the options that do.
    ArgumentError
        If an option is no choice of these columns.
    """
    kinds = {kind for name in names or () for kind in _KIND.findall(name)}
    if len(kinds) > 1:
        problem = f"they count nodes of two kinds: {' and '.join(sorted(kinds))}"
        expected = "a SciPy matrix made of them: one kind its rows, the other its columns"
        raise GraphError("columns", problem, expected)
    if columns is not None:
        return _chosen_by_caller(names, count, columns, weights)
    if names is None:
        if isinstance(weights, str):
            raise ArgumentError("weights", f"got {weights!r}, and columns have no names", "True")
        if count > 3 and weights is None:
            expected = "weights=True for weights in the third, or weights=False to ignore all but "
            expected += "two, or columns=(source, target, weight), counted from 0"
            raise GraphError("columns", f"{count} without names", expected)
        return (0, 1, 2) if weights or (weights is None and count == 3) else (0, 1)
    numeric = [True] * count if numeric is None else numeric
    roles = ["ignored" if at in ignored else role(name) for at, name in enumerate(names)]
    for end in ("source", "target"):
        if roles.count(end) != 1:
            problem = f"of {_listed(names)}, {roles.count(end) or 'none'} may be the {end}s"
            able = [at for at in range(count) if numeric[at] and roles[at] not in _ROLES_APART]
            able = sorted(able, key=lambda at: ["source", "", "target"].index(roles[at]))[:2]
            expected = "two columns of whole numbers; pandas.factorize numbers names"
            if len(able) == 2:
                one, two = (_label(names, at) for at in able)
                expected = f"columns=({one}, {two}) if edges go from {one} to {two}, with a third "
                expected += "if it holds weights; a SciPy matrix if they count different things"
            raise GraphError("columns", problem, expected)
    ends = roles.index("source"), roles.index("target")
    if weights is False:
        return ends
    if isinstance(weights, str):
        return _chosen_by_caller(names, count, (*ends, weights), None)
    others = [at for at, word in enumerate(roles) if word in ("weight", "")]
    named = [at for at in others if roles[at] == "weight"]
    named = others if weights and len(others) == 1 else named
    if len(named) == 1:
        return (*ends, named[0])
    if not others:
        if weights:
            raise GraphError("columns", f"{_listed(names)} hold no weight", "weights=False")
        return ends
    expected = "weights=False to ignore it"
    able = [at for at in named or others if numeric[at]]
    if able:
        *_, weight = choice = [_label(names, at) for at in (*ends, able[0])]
        expected = f"columns=({', '.join(choice)}) for weights of {weight}, or weights=False for "
        expected += "none"
    unknown = _listed(names[at] for at in others)
    raise GraphError("columns", f"it is not known what {unknown} means", expected)


def _chosen_by_caller(
    names: Sequence[str] | None, count: int, columns: Any, weights: bool | str | None
) -> tuple[int, ...]:
    if weights is not None:
        raise ArgumentError("weights", "given beside columns", "one or the other")
    if not isinstance(columns, list | tuple) or len(columns) not in (2, 3):
        expected = "(source, target) or (source, target, weight), by name or position from 0"
        raise ArgumentError("columns", f"got {columns!r}", expected)
    positions = []
    for column in columns:
        matches = [at for at, name in enumerate(names or ()) if column == name]
        if type(column) is int and 0 <= column < count:
            matches = [column]
        if len(matches) != 1:
            problem = f"{len(matches)} columns are called" if matches else "there is no"
            expected = f"positions 0 to {count - 1}"
            expected = f"{_listed(names)}, or {expected}" if names else f"{expected}, without names"
            raise ArgumentError("columns", f"{problem} {column!r}", expected)
        positions += matches
    if len(set(positions)) < len(positions):
        raise ArgumentError("columns", f"got {columns!r}", "each column once")
    return tuple(positions)


def _label(names: Sequence[str], at: int) -> str:
    """Return how the option `columns` calls a column: by its position if its name is of no use."""
    return repr(names[at] if len(names[at]) <= 40 and names.count(names[at]) == 1 else at)


def _listed(names: Iterable[str]) -> str:
    labels = [repr(name if len(name) <= 40 else name[:40] + "…") for name in names]
    return ", ".join(labels[:6]) + (", …" if len(labels) > 6 else "")


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
        except ValueError:
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
