"""What the controls of a strategy offer, and its partition scheme at each of their values."""

from __future__ import annotations

import itertools
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
#: Values of a control up to which all of them are tried together with each other control.
_FEW = 7
#: Combinations of values up to which all of them are tried.
_ALL = 2000
#: The kind of scheme where a strategy refuses values together.
REFUSED = "refused"

#: The index of a value of each control.
Point = tuple[int, ...]
#: A part of a strategy's description ("kind", "arguments", "lanes", "resolved") and a name in it.
Key = tuple[str, str]
_KIND: Key = ("kind", "")


def offered(parameter: Setting, now: Any) -> tuple[Any, ...]:
    """Return what the control of a parameter offers, the present value included.

    Of a parameter without choices and without values worth trying, that is `now` alone.
    """
    most, step, tries = parameter.most, parameter.step, parameter.tries
    rule = (None,) if parameter.rule else ()
    if parameter.choices or not tries or not all(type(value) is int for value in tries):
        values = (*rule, *(parameter.choices or tries), now)
        return tuple({(type(value), value): value for value in values}.values())  # True is not 1
    if most is not None and most <= _EVERY * step:
        steps = {*range(step, most + 1, step)}
    else:
        end = min(_BEYOND * max(tries), most or max(tries)) // step
        powers = {1 << i for i in range(end.bit_length())}
        steps = {step * i for i in powers | {3 * i for i in powers} if i <= end}
    return (*rule, *sorted({*steps, *tries, parameter.default, now} - {None}))


def scheme_tables(
    strategy: Strategy,
    graph: Graph,
    controls: Mapping[str, Sequence[Any]],
    start: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Describe a strategy's scheme at all values that the controls offer.

    Rules that choose arguments stay in Python this way, and the page needs no kernel for them.

    Parameters
    ----------
    strategy : Strategy
    graph : Graph
        Rules use its size and order.
    controls : mapping of str to sequence
        "n_cols" and the parameters that have controls, each with what its control offers.
    start : mapping
        "n_cols" and all parameters as they are set; those of `controls` have one of its values.

    Returns
    -------
    dict or None
        "kind", a tree; "arguments" of the scheme, "lanes" (empty if not known) and "resolved", the
        parameters that a rule may choose and that matter to any of these: trees by name. A tree is
        a number, a word or None where it depends on nothing more; else {"over": name, "each":
        trees}, with a tree for each value of that control. The kind is `REFUSED` where the strategy
        cannot have values together. None if the page cannot compute the strategy's scheme.

    Notes
    -----
    Change each control alone, then chosen pairs, to find the controls that an argument depends on.
    Of few combinations of these controls try all; of many, branch over a control if the argument
    changes while that control alone does, and ask again in each branch.
    """
    described: dict[Point, dict[Key, Any]] = {}
    names = [*controls]
    axes = range(len(names))
    depends: dict[Key, set[int]] = {_KIND: set()}
    origin = tuple(_index(controls[name], start[name]) for name in names)
    usual = {**start, **strategy.defaults()}
    default = tuple(
        _index(controls[name], usual[name]) if usual[name] in controls[name] else i
        for name, i in zip(names, origin, strict=True)
    )
    fixed = {name: value for name, value in start.items() if name not in controls}
    rows = strategy.degrees(graph)

    def at(point: Point) -> dict[Key, Any]:
        if point not in described:
            values = {name: controls[name][i] for name, i in zip(names, point, strict=True)}
            described[point] = _described(strategy, graph, rows, **fixed, **values)
        return described[point]

    def line(point: Point, axis: int, some: int | None = None) -> list[Point]:
        """Return the points along an axis: all, or of more than `_FEW` about `some`."""
        indices = [*range(len(controls[names[axis]]))]
        if some is not None and len(indices) > _FEW:
            indices = [indices[round(i * (len(indices) - 1) / some)] for i in range(some + 1)]
        return [(*point[:axis], i, *point[axis + 1 :]) for i in indices]

    def having(key: Key, point: Point, free: Sequence[int]) -> Point:
        """Find a key near a point where another kind, or values refused, have it not."""
        # Lanes are missing in another kind alone.
        others = [axis for axis in free if key[0] == "lanes" or axis in depends[_KIND]]
        central = tuple(default[axis] if axis in free else i for axis, i in enumerate(point))
        for middle in (point, central):
            for near in (middle, *(near for axis in others for near in line(middle, axis))):
                if key in at(near):
                    return near
        return point

    def varies(key: Key, points: list[Point]) -> bool:
        return len({at(point)[key] for point in points if key in at(point)}) > 1

    def tree(key: Key, point: Point, left: tuple[int, ...], all_points: bool) -> Any:
        free = [axis for axis in axes if axis in left or axis not in depends[key]]
        point = having(key, point, free)
        for axis in left:
            if all_points or varies(key, line(point, axis)):
                rest = tuple(other for other in left if other != axis)
                first, *others = (tree(key, near, rest, all_points) for near in line(point, axis))
                if all(type(other) is type(first) and other == first for other in others):
                    return first
                return {"over": names[axis], "each": [first, *others]}
        return at(point).get(key)

    if not at(origin):
        return None
    for axis in axes:
        lines = [line(origin, axis)]
        for other in axes:
            if other != axis:
                lines += [line(point, axis, 4) for point in line(origin, other, 3)]
        for points in lines:
            for key in {key for point in points for key in at(point)}:
                if varies(key, points):
                    depends.setdefault(key, set()).add(axis)
    # A rule's control is shown only if something else depends on it.
    matter = {names[axis] for key in depends if key[0] != "resolved" for axis in depends[key]}
    keys = dict.fromkeys(itertools.chain.from_iterable(described.values()))
    keys = {key: None for key in keys if key[0] != "resolved" or key[1] in matter}
    depends = {key: depends.get(key, set()) for key in keys}
    tables: dict[str, Any] = {"arguments": {}, "lanes": {}, "resolved": {}}
    for key in keys:
        # Controls that change one argument together may change another only together.
        joined = depends[key].union(
            *(others for others in depends.values() if others & depends[key])
        )
        all_points = math.prod(len(controls[names[axis]]) for axis in joined) <= _ALL
        if all_points:
            depends[key] = joined
        grown = tree(key, origin, tuple(sorted(depends[key])), all_points)
        part, name = key
        if name:
            tables[part][name] = grown
        else:
            tables[part] = grown
    return tables


def _described(
    strategy: Strategy, graph: Graph, rows: RowDegrees, n_cols: int, **values: Any
) -> dict[Key, Any]:
    try:
        widths, settings = strategy.checked(n_cols, values)
        resolved = strategy.resolve(settings, graph, widths)
        description = strategy.describe(resolved, rows, widths)
    except AccelvizError:
        return {_KIND: REFUSED}
    if description is None or description.scheme is None or not description.scheme.kind:
        return {}
    rules = [name for name, declared in strategy.parameters.items() if declared.rule]
    parts = {
        "arguments": vars(description.scheme),
        "lanes": vars(description.lanes) if description.lanes else {},
        "resolved": {name: getattr(resolved, name) for name in rules},
    }
    named = {(part, name): value for part in parts for name, value in parts[part].items()}
    return {_KIND: description.scheme.kind, **named}


def _index(values: Sequence[Any], wanted: Any) -> int:
    """Return the index of a value; True is not 1 here."""
    pairs = ((type(value), value) for value in values)
    return [*pairs].index((type(wanted), wanted))
