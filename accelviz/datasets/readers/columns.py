"""Which columns of a table of edges hold the senders, the receivers and the weights."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from accelviz.errors import ArgumentError, GraphError

#: What callers may say with the option `columns`.
Columns = Sequence[str | int] | None

#: Names that mean one thing to everybody, without "id", "node" and signs. In `head,tail` and
#: `row,col` either may be the sender, so they are asked about.
_ROLES = {
    "sender": {"source", "src", "from", "sender", "start", "u", "1"},
    "receiver": {"target", "tgt", "dst", "dest", "destination", "to", "receiver", "end", "v", "2"},
    "weight": {"weight", "weights", "w", "edgeweight", "edgeweights"},
}
#: Neo4j: `:START_ID(Person)`, `weight:float`.
_NEO4J = re.compile(r"[^:]*:(start|end)_id(\(.*\))?|:?([^:]*?)(:\w+)?")


def role(name: str) -> str:
    """Return "sender", "receiver" or "weight" if a column's name says so, else ""."""
    found = _NEO4J.fullmatch(name.strip(" \t\"'").lower())
    word = re.sub(r"[\W_]+", "", (found[1] or found[3]) if found else "")
    short = re.sub(r"nodes?|vertex|ids?", "", word)
    short = word if short.isalpha() and len(short) == 1 else short  # `vid` may be a video's
    return next((each for each, names in _ROLES.items() if {word, short} & names), "")


def chosen(
    names: Sequence[str] | None, count: int, columns: Columns, weights: bool | None
) -> tuple[int, ...]:
    """Return the positions of sender, receiver and, if there is one, weight.

    Parameters
    ----------
    names : sequence of str, optional
        The columns' names, if they have any.
    count : int
        How many columns there are.
    columns, weights
        The options of `read_edge_list`.

    Raises
    ------
    GraphError
        If the names do not say it: the message names the options that do.
    ArgumentError
        If an option is no choice of these columns.
    """
    if columns is not None:
        return _wanted(names, count, columns, weights)
    if names is None:
        if count > 3 and weights is None:
            expected = "weights=True for weights in the third, or weights=False to ignore all but "
            expected += "two, or columns=(sender, receiver, weight), counted from 0"
            raise GraphError("columns", f"{count} without names", expected)
        return (0, 1, 2) if weights or (weights is None and count == 3) else (0, 1)
    roles = [role(name) for name in names]
    example = ", ".join(map(repr, names[:2]))
    for each in ("sender", "receiver"):
        if roles.count(each) != 1:
            problem = f"of {_listed(names)}, {roles.count(each) or 'none'} may be the {each}s"
            raise GraphError("columns", problem, f"columns=({example}), the sender first")
    ends = roles.index("sender"), roles.index("receiver")
    others = [place for place in range(count) if place not in ends]
    found = [place for place in others if roles[place] == "weight"]
    if weights is False or not others:
        if weights:
            raise GraphError("columns", f"{_listed(names)} hold no weight", "weights=False")
        return ends
    if weights and not found and others == [2]:
        found = others
    if len(found) != 1 or (weights is None and others != found):
        unknown = _listed([names[place] for place in others if place not in found or found[1:]])
        own = [repr(names[place]) for place in (*ends, (found or others)[0])]
        expected = f"columns=({', '.join(own)}) for weights of {own[-1]}, or weights=False for none"
        raise GraphError("columns", f"it is not known what {unknown} means", expected)
    return (*ends, found[0])


def _wanted(
    names: Sequence[str] | None, count: int, columns: Sequence[str | int], weights: bool | None
) -> tuple[int, ...]:
    there = _listed(names) if names else f"positions 0 to {count - 1}, as there are no names"
    if weights is not None:
        raise ArgumentError("weights", "given beside columns", "one or the other")
    if not isinstance(columns, list | tuple) or len(columns) not in (2, 3):
        expected = "(sender, receiver) or (sender, receiver, weight), by name or position from 0"
        raise ArgumentError("columns", f"got {columns!r}", expected)
    found = []
    for each in columns:
        at = [i for i, name in enumerate(names or ()) if each == name]
        if type(each) is int and 0 <= each < count:
            at = [each]
        if len(at) != 1:
            what = f"{len(at)} columns are called" if at else "there is no"
            raise ArgumentError("columns", f"{what} {each!r}", there)
        found += at
    if len(set(found)) < len(found):
        raise ArgumentError("columns", f"got {columns!r}", "each column once")
    return tuple(found)


def _listed(names: Iterable[str]) -> str:
    shown = [repr(name if len(name) <= 40 else name[:40] + "…") for name in names]
    return ", ".join(shown[:6]) + (", …" if len(shown) > 6 else "")
