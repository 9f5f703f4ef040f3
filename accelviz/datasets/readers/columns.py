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
    "nothing": {"id", "edgeid", "index", "label", "timeset"},
}
#: What pandas calls its index, and Neo4j what it ignores or a database alone needs.
_NOTHING = re.compile(r"|unnamed: ?\d+|:(type|label|ignore)")
#: Neo4j: `:START_ID(Person)`, `weight:float`.
_NEO4J = re.compile(r"[^:]*:(start|end)_id(\(.*\))?|:?([^:]*?)(:\w+)?")
_KIND = re.compile(r"(?i):(?:start|end)_id(\(.*\))")
#: Names of ends in the order in which their own conventions have sender and receiver.
_ENDS = ("head", "subject", "col", "column", "tail", "object", "row")
#: Names that are proposed as weights where the ends are asked about, too.
_VALUES = ("data", "value", "values", "rating")
#: A value that says whether an edge has no direction, as Gephi writes it under `Type`.
_DIRECTIONS = {"undirected": True, "mutual": True, "directed": False}
#: The same under the name `directed`.
_ANSWERS = {"false": True, "no": True, "0": True, "true": False, "yes": False, "1": False}


def role(name: str) -> str:
    """Return "sender", "receiver", "weight" or "nothing" if a column's name says so, else ""."""
    name = name.strip(" \t\"'").lower()
    if _NOTHING.fullmatch(name):
        return "nothing"
    found = _NEO4J.fullmatch(name)
    word = re.sub(r"[\W_]+", "", (found[1] or found[3]) if found else "")
    if word.isdigit():  # a position is no `id1`
        return ""
    short = re.sub(r"nodes?|vertex|ids?", "", word)
    short = word if short.isalpha() and len(short) == 1 else short  # `vid` may be a video's
    return next((each for each, names in _ROLES.items() if {word, short} & names), "")


def direction(names: Sequence[str], first: Sequence[str]) -> tuple[int, bool] | None:
    """Return the column that says whether edges have no direction, and what it says first."""
    for place, (name, value) in enumerate(zip(names, first, strict=True)):
        known = _ANSWERS if name.strip().lower() == "directed" else _DIRECTIONS
        if value.lower() in known:
            return place, known[value.lower()]
    return None


def chosen(
    names: Sequence[str] | None,
    count: int,
    columns: Columns,
    weights: bool | str | None,
    numeric: Sequence[bool] | None = None,
    skip: Sequence[int] = (),
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
    numeric : sequence of bool, optional
        Which columns hold numbers: no other is proposed as the weights.
    skip : sequence of int
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
        return _wanted(names, count, columns, weights)
    if names is None:
        if isinstance(weights, str):
            raise ArgumentError("weights", f"got {weights!r}, and columns have no names", "True")
        if count > 3 and weights is None:
            expected = "weights=True for weights in the third, or weights=False to ignore all but "
            expected += "two, or columns=(sender, receiver, weight), counted from 0"
            raise GraphError("columns", f"{count} without names", expected)
        return (0, 1, 2) if weights or (weights is None and count == 3) else (0, 1)
    roles = ["nothing" if at in skip else role(name) for at, name in enumerate(names)]
    numeric = [True] * count if numeric is None else numeric
    for each in ("sender", "receiver"):
        if roles.count(each) != 1:
            problem = f"of {_listed(names)}, {roles.count(each) or 'none'} may be the {each}s"
            raise GraphError("columns", problem, _ends_advice(names, roles, numeric))
    ends = roles.index("sender"), roles.index("receiver")
    if weights is False:
        return ends
    others = [at for at, each in enumerate(roles) if at not in ends and each != "nothing"]
    found = [at for at in others if roles[at] == "weight"]
    if isinstance(weights, str):
        return _wanted(names, count, (*ends, weights), None)
    if weights and len(others) == 1:
        found = others
    if len(found) == 1:
        return (*ends, found[0])
    if not others:
        if weights:
            raise GraphError("columns", f"{_listed(names)} hold no weight", "weights=False")
        return ends
    expected = "weights=False to ignore it"
    able = [at for at in found or others if numeric[at]]
    if able:
        own = [_own(names, at) for at in (*ends, able[0])]
        expected = f"columns=({', '.join(own)}) for weights of {own[-1]}, or weights=False for none"
    unknown = _listed(names[at] for at in others)
    raise GraphError("columns", f"it is not known what {unknown} means", expected)


def _own(names: Sequence[str], place: int) -> str:
    """Return how the option `columns` calls a column."""
    name = names[place]
    return repr(name if 0 < len(name) <= 40 and names.count(name) == 1 else place)


def _ends_advice(names: Sequence[str], roles: Sequence[str], numeric: Sequence[bool]) -> str:
    """Return what to do where the names do not say which columns are the two ends."""
    rank = {name: place for place, name in enumerate(("sender", *_ENDS, "", "receiver"))}
    words = [name.lower() if name.lower() in _ENDS else "" for name in names]
    words = [each or word for each, word in zip(roles, words, strict=True)]
    able = [at for at, word in enumerate(words) if word in rank and numeric[at]]
    able.sort(key=lambda at: rank[words[at]])
    if len(able) < 2:
        return "two columns of whole numbers; pandas.factorize numbers names"
    second = next((at for at in able[1:] if roles[at] == "receiver"), able[1])
    left = [at for at, each in enumerate(roles) if each == "weight" or names[at] in _VALUES]
    one, two, *weight = [_own(names, at) for at in (able[0], second, *left[:1])]
    either = [f"columns=({', '.join([*pair, *weight])})" for pair in ((one, two), (two, one))]
    return f"{' or '.join(either)}, the sender first; a SciPy matrix if they count different things"


def _wanted(
    names: Sequence[str] | None,
    count: int,
    columns: Sequence[str | int],
    weights: bool | str | None,
) -> tuple[int, ...]:
    there = f"positions 0 to {count - 1}"
    there = f"{_listed(names)}, or {there}" if names else f"{there}, as there are no names"
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
