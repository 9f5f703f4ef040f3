"""Columns of an edge list: which have source, target and weight, by their names or by options."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from accelviz.errors import ArgumentError, GraphError

#: Type of the option `columns`.
Columns = Sequence[str | int] | None

#: A finite number in decimal or scientific notation. Groups have no possessive quantifier, which is
#: wrong before Python 3.11.5.
NUMBER = r"[-+]?+(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][-+]?+[0-9]++)?"

#: Words about whether edges have a direction, or stand for both. The prefix of `symm` is bounded,
#: since a search for `\w*symm` in a long word takes quadratic time.
DIRECTION = re.compile(
    r"(?:non-?|un-?)?dire[ck]t(?!or|ly)(?:ed|ions?|ional)?|\ba?sym\b|\w{0,9}symm\w*|reciproc\w*|mutual"
    r"|\bdigraph|\barcs?\b|orient|(?:one|two)[\s_-]*way|both ways|\b(?:once|twice)\b|triang",
    re.IGNORECASE,
)

#: Column names of each role, without the words node, vertex and id.
_ROLES = {
    "source": {"source", "src", "from", "sender", "start", "u", "1"},
    "target": {"target", "tgt", "dst", "dest", "destination", "to", "receiver", "end", "v", "2"},
    "weight": {"weight", "weights", "w", "edgeweight", "edgeweights"},
    "ignored": {"id", "edgeid", "index", "label", "timeset"},
}
#: Names of pandas' index, and of Neo4j's columns for the database.
_IGNORED = re.compile(r"|unnamed: ?\d+|:(type|label|ignore)")


def role(name: str) -> str:
    """Return the role of a column by its name: a key of `_ROLES`, or "" if unknown."""
    name = name.strip(" \t\"'").lower()
    if _IGNORED.fullmatch(name):
        return "ignored"
    word = re.sub(r"[\W_]+", "", name)
    if word.isdigit():  # a position, not a name like `id1`
        return ""
    short = re.sub(r"nodes?|vertex|ids?", "", word)
    short = word if short.isalpha() and len(short) == 1 else short  # `vid` may mean a video
    return next((role for role, names in _ROLES.items() if {word, short} & names), "")


def choose_columns(
    names: Sequence[str] | None,
    fields: Sequence[str],
    columns: Columns,
    weights: bool | str | None,
    ignored: Collection[int] = (),
) -> tuple[int, ...]:
    """Return the positions of source, target and, if there is one, weight.

    Parameters
    ----------
    names : sequence of str, optional
        The column names, if there are any.
    fields : sequence of str
        Fields of the first edge. The error message proposes only columns of numbers as weights.
    columns, weights
        The options of `read_edge_list`.
    ignored : collection of int
        Positions of columns with other data.

    Raises
    ------
    GraphError
        If the names are ambiguous; the message names the options that resolve it.
    ArgumentError
        If an option does not match the columns.
    """
    count = len(fields)
    if columns is not None:
        if weights is not None:
            raise ArgumentError("weights", "given beside columns", "one or the other")
        return _positions(names, count, columns)
    if names is None:
        if isinstance(weights, str):
            raise ArgumentError("weights", f"got {weights!r}, and columns have no names", "True")
        if count > 3 and weights is None:
            expected = "weights=True for weights in the third, or weights=False to ignore all but "
            expected += "two, or columns=(source, target, weight), counted from 0"
            raise GraphError("columns", f"{count} without names", expected)
        return (0, 1, 2) if weights or (weights is None and count == 3) else (0, 1)
    numeric = [i for i in range(count) if re.fullmatch(NUMBER, fields[i])]
    roles = ["ignored" if i in ignored else role(name) for i, name in enumerate(names)]
    for end in ("source", "target"):
        if roles.count(end) != 1:
            problem = f"of {_listed(names)}, {roles.count(end) or 'none'} may be the {end}s"
            order = ["source", "", "target"]
            candidates = [i for i in numeric if roles[i] in order]
            candidates.sort(key=lambda i: order.index(roles[i]))
            expected = "two columns of whole numbers; pandas.factorize numbers names"
            if len(candidates) > 1:
                source, target = (_label(names, i) for i in candidates[:2])
                expected = f"columns=({source}, {target}) if edges go from {source} to {target}, "
                expected += "with a third if it holds weights; a SciPy matrix if they count "
                expected += "different things"
            raise GraphError("columns", problem, expected)
    ends = roles.index("source"), roles.index("target")
    if isinstance(weights, str):
        return _positions(names, count, (*ends, weights))
    others = [i for i in range(count) if roles[i] in ("weight", "")]
    if weights and not others:
        raise GraphError("columns", f"{_listed(names)} hold no weight", "weights=False")
    if weights is False or not others:
        return ends
    weight_columns = [i for i in others if roles[i] == "weight"]
    if weights and len(others) == 1:
        weight_columns = others
    if len(weight_columns) == 1:
        return (*ends, weight_columns[0])
    expected = "weights=False to ignore it"
    candidates = [i for i in weight_columns or others if i in numeric]
    if candidates:
        source, target, weight = (_label(names, i) for i in (*ends, candidates[0]))
        expected = f"columns=({source}, {target}, {weight}) for weights of {weight}, or "
        expected += "weights=False for none"
    unknown = _listed(names[i] for i in others)
    raise GraphError("columns", f"it is not known what {unknown} means", expected)


def _positions(names: Sequence[str] | None, count: int, columns: Any) -> tuple[int, ...]:
    """Return the positions of the columns in the option `columns`."""
    if not isinstance(columns, list | tuple) or len(columns) not in (2, 3):
        expected = "(source, target) or (source, target, weight), by name or position from 0"
        raise ArgumentError("columns", f"got {columns!r}", expected)
    positions = []
    for column in columns:
        matches = [i for i, name in enumerate(names or ()) if column == name]
        if type(column) is int and 0 <= column < count:
            matches = [column]
        if len(matches) != 1:
            problem = f"{len(matches)} columns are called" if matches else "there is no"
            span = f"positions 0 to {count - 1}"
            expected = f"{_listed(names)}, or {span}" if names else f"{span}, without names"
            raise ArgumentError("columns", f"{problem} {column!r}", expected)
        positions += matches
    if len(set(positions)) < len(positions):
        raise ArgumentError("columns", f"got {columns!r}", "each column once")
    return tuple(positions)


def _label(names: Sequence[str], position: int) -> str:
    """Return the name of a column for the option `columns`, or its position if that is clearer."""
    name = names[position]
    return repr(name if len(name) <= 40 and names.count(name) == 1 else position)


def _listed(names: Iterable[str]) -> str:
    labels = [repr(name if len(name) <= 40 else name[:40] + "…") for name in names]
    return ", ".join(labels[:6]) + (", …" if len(labels) > 6 else "")
