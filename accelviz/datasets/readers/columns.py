"""The columns of an edge list: which hold source, target and weight, by name or by choice."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from accelviz.errors import ArgumentError, GraphError

#: What callers may say with the option `columns`.
Columns = Sequence[str | int] | None

#: A finite number in decimal or scientific notation.
NUMBER = r"[-+]?+(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][-+]?+[0-9]++)?+"

#: The rules: what columns of these names hold, without the words node, vertex and id.
_ROLES = {
    "source": {"source", "src", "from", "sender", "start", "u", "1"},
    "target": {"target", "tgt", "dst", "dest", "destination", "to", "receiver", "end", "v", "2"},
    "weight": {"weight", "weights", "w", "edgeweight", "edgeweights"},
    "ignored": {"id", "edgeid", "index", "label", "timeset"},
}
#: What pandas calls its index, and Neo4j what a database alone needs.
_IGNORED = re.compile(r"|unnamed: ?\d+|:(type|label|ignore)")


def role(name: str) -> str:
    """Return "source", "target", "weight" or "ignored" if a column's name says so, else ""."""
    name = name.strip(" \t\"'").lower()
    if _IGNORED.fullmatch(name):
        return "ignored"
    word = re.sub(r"[\W_]+", "", name)
    if word.isdigit():  # a position is no `id1`
        return ""
    short = re.sub(r"nodes?|vertex|ids?", "", word)
    short = word if short.isalpha() and len(short) == 1 else short  # `vid` may be a video's
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
        The columns' names, if they have any.
    fields : sequence of str
        What the first edge has in the columns; only one with a number is proposed as the weights.
    columns, weights
        The options of `read_edge_list`.
    ignored : collection of int
        Columns that are known to be none of these.

    Raises
    ------
    GraphError
        If the names do not say it: the message names the options that do.
    ArgumentError
        If an option is no choice of these columns.
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
    numeric = [at for at in range(count) if re.fullmatch(NUMBER, fields[at])]
    roles = ["ignored" if at in ignored else role(name) for at, name in enumerate(names)]
    for end in ("source", "target"):
        if roles.count(end) != 1:
            problem = f"of {_listed(names)}, {roles.count(end) or 'none'} may be the {end}s"
            able = [at for at in numeric if roles[at] in ("source", "", "target")]
            able.sort(key=lambda at: ["source", "", "target"].index(roles[at]))
            expected = "two columns of whole numbers; pandas.factorize numbers names"
            if len(able) > 1:
                one, two = (_label(names, at) for at in able[:2])
                expected = f"columns=({one}, {two}) if edges go from {one} to {two}, with a third "
                expected += "if it holds weights; a SciPy matrix if they count different things"
            raise GraphError("columns", problem, expected)
    ends = roles.index("source"), roles.index("target")
    if isinstance(weights, str):
        return _positions(names, count, (*ends, weights))
    others = [at for at in range(count) if roles[at] in ("weight", "")]
    if weights and not others:
        raise GraphError("columns", f"{_listed(names)} hold no weight", "weights=False")
    if weights is False or not others:
        return ends
    named = [at for at in others if roles[at] == "weight"]
    named = others if weights and len(others) == 1 else named
    if len(named) == 1:
        return (*ends, named[0])
    expected = "weights=False to ignore it"
    able = [at for at in named or others if at in numeric]
    if able:
        *_, weight = choice = [_label(names, at) for at in (*ends, able[0])]
        expected = f"columns=({', '.join(choice)}) for weights of {weight}, or weights=False for "
        expected += "none"
    unknown = _listed(names[at] for at in others)
    raise GraphError("columns", f"it is not known what {unknown} means", expected)


def _positions(names: Sequence[str] | None, count: int, columns: Any) -> tuple[int, ...]:
    """Return where the columns are that a caller chose by name or position."""
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
