"""What the controls of a strategy offer, and what each of its settings makes of the cut."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from accelviz.errors import AccelvizError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.plans import Setting, Strategy

#: What the control of the columns offers.
COLUMNS = (1, 4, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 512)
#: A control has every value of a range up to so many; of a longer one it has steps that grow, up to
#: so many times the largest value that is worth trying.
_EVERY, _BEYOND = 32, 8
#: Values of a name up to which all of them are looked at together with each other name.
_FEW = 7
#: Combinations of values up to which all of them are looked at.
_WHOLE = 2000
#: What a table says of values that cannot be had together.
REFUSED = "refused"
#: Before the name of a parameter: its value, which a rule chooses where it is None.
_SETTLED = "settled "

Values = Mapping[str, Sequence[Any]]
Places = tuple[int, ...]


def offered(parameter: Setting, now: Any) -> tuple[Any, ...]:
    """Return what the control of a parameter offers, the present value included.

    Of a parameter without choices and without values worth trying, that is `now` alone.
    """
    most, step, tries = parameter.most, parameter.step, parameter.tries
    rule = (None,) if parameter.rule else ()
    if parameter.choices or not tries or not all(type(each) is int for each in tries):
        return _once((*rule, *(parameter.choices or tries), now))
    if most is not None and most <= _EVERY * step:
        values = {*range(step, most + 1, step)}
    else:
        end = min(_BEYOND * max(tries), most or max(tries)) // step
        powers = {1 << i for i in range(end.bit_length())}
        values = {step * i for i in powers | {3 * i for i in powers} if i <= end}
    return (*rule, *sorted({*values, *tries, parameter.default, now} - {None}))


def _once(values: Sequence[Any]) -> tuple[Any, ...]:
    """Leave out what is there twice; True is not 1 here."""
    return tuple(value for _, value in {(type(each), each): each for each in values}.items())


def cut_tables(
    strategy: Strategy, graph: Graph, axes: Values, start: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Say what each argument of a strategy's cut is, over the values that the controls offer.

    A rule that chooses arguments stays in Python this way, and the page needs nobody to ask.

    Parameters
    ----------
    strategy : Strategy
    graph : Graph
        Rules look at its size and order.
    axes : mapping of str to sequence
        "n_cols" and the parameters that have controls, each with what its control offers.
    start : mapping
        "n_cols" and all parameters as they are set; those of `axes` have one of the values there.

    Returns
    -------
    dict of str to tree, or None
        Of "kind", each argument of the cut, and "reading lanes", "reading vector" and "reading
        tile" of what the lanes read (None if not known), a tree: a number, a word or None where it
        depends on nothing more; else {"over": name, "each": trees}, with a tree for each value of
        that name. So is "settled NAME" for each parameter that a rule may choose and on which any
        of them depends. The kind is `REFUSED` where the strategy cannot have values together. None
        if the strategy names no cut.

    Notes
    -----
    What an argument depends on is found by varying each name alone, and a few values of each two
    together. Of few combinations of these names all are looked at; of many, a tree branches over a
    name if the argument changes while that name alone does, and asks again in each branch.
    """
    seen: dict[Places, dict[str, Any]] = {}
    names = [*axes]
    every = tuple(range(len(names)))
    depends: dict[str, set[int]] = {"kind": set()}
    origin = tuple(_place(axes[name], start[name]) for name in names)
    known = strategy.defaults()
    default = tuple(
        _place(axes[name], known[name]) if name in known and known[name] in axes[name] else at
        for name, at in zip(names, origin, strict=True)
    )
    fixed = {name: value for name, value in start.items() if name not in axes}
    rows = strategy.degrees(graph)

    def look(places: Places) -> dict[str, Any]:
        if places not in seen:
            setting = {name: axes[name][at] for name, at in zip(names, places, strict=True)}
            seen[places] = _looked(strategy, graph, rows, **fixed, **setting)
        return seen[places]

    def moved(places: Places, axis: int, some: int | None = None) -> list[Places]:
        ats = [*range(len(axes[names[axis]]))]
        if some is not None and len(ats) > _FEW:
            ats = [ats[round(i * (len(ats) - 1) / some)] for i in range(some + 1)]
        return [(*places[:axis], at, *places[axis + 1 :]) for at in ats]

    def having(argument: str, places: Places, free: tuple[int, ...]) -> Places:
        """Find the argument near a place where another kind, or values refused, have it not."""
        if argument in look(places):
            return places
        usual = tuple(default[i] if i in free else at for i, at in enumerate(places))
        read = argument.startswith("reading ")  # what a kind needs is missing in another kind alone
        other = [axis for axis in free if read or axis in depends["kind"]]
        for middle in (places, usual):
            for each in (middle, *(near for axis in other for near in moved(middle, axis))):
                if argument in look(each):
                    return each
        return places

    def varies(argument: str, line: list[Places]) -> bool:
        found = [look(each) for each in line]
        return len({each[argument] for each in found if argument in each}) > 1

    def tree(argument: str, places: Places, left: tuple[int, ...], whole: bool) -> Any:
        free = tuple(each for each in every if each in left or each not in depends[argument])
        places = having(argument, places, free)
        for axis in left:
            if whole or varies(argument, moved(places, axis)):
                rest = tuple(each for each in left if each != axis)
                branches = [tree(argument, each, rest, whole) for each in moved(places, axis)]
                same = all(
                    type(each) is type(branches[0]) and each == branches[0] for each in branches
                )
                return branches[0] if same else {"over": names[axis], "each": branches}
        return look(places).get(argument)

    if not look(origin):
        return None
    for axis in every:
        lines = [moved(origin, axis)]
        lines += [
            moved(each, axis, 4)
            for other in every
            if other != axis
            for each in moved(origin, other, 3)
        ]
        for line in lines:
            for argument in {key for each in line for key in look(each)}:
                if varies(argument, line):
                    depends.setdefault(argument, set()).add(axis)
    telling = {names[axis] for key in depends if _SETTLED not in key for axis in depends[key]}
    arguments = dict.fromkeys(key for found in [*seen.values()] for key in found)
    for argument in [key for key in arguments if key.startswith(_SETTLED)]:
        if argument.removeprefix(_SETTLED) not in telling:  # its control is not shown either
            del arguments[argument]
            depends.pop(argument, None)
    trees = {}
    for argument in arguments:
        own = depends.setdefault(argument, set())
        # Names that move one argument together may move another only together.
        joined = own.union(*(each for each in depends.values() if each & own))
        many = math.prod(len(axes[names[axis]]) for axis in joined)
        if whole := many <= _WHOLE:
            depends[argument] = joined
        trees[argument] = tree(argument, origin, tuple(sorted(depends[argument])), whole)
    return trees


def _looked(
    strategy: Strategy, graph: Graph, rows: RowDegrees, n_cols: int, **given: Any
) -> dict[str, Any]:
    try:
        widths, settings = strategy.checked(n_cols, given)
        resolved = strategy.resolve(settings, graph, widths)
        description = strategy.describe(resolved, rows, widths)
    except AccelvizError:
        return {"kind": REFUSED}
    if description is None or description.scheme is None or not description.scheme.kind:
        return {}
    scheme, lanes = description.scheme, description.lanes
    read = {} if lanes is None else {f"reading {n}": v for n, v in vars(lanes).items()}
    rules = [name for name, declared in strategy.parameters.items() if declared.rule]
    chosen = {f"{_SETTLED}{name}": getattr(resolved, name) for name in rules}
    return {"kind": scheme.kind, **vars(scheme), **read, **chosen}


def _place(values: Sequence[Any], wanted: Any) -> int:
    """Return where a value is; True is not 1 here."""
    return next(i for i, each in enumerate(values) if type(each) is type(wanted) and each == wanted)
