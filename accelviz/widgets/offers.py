"""Values that a strategy's controls offer, and its partition scheme at each combination of them.

The page has a control (a slider or menu) for `n_cols` and for each parameter of a strategy. Rules
in Python turn their values into a partition scheme and its arguments. `scheme_tables` evaluates
these rules beforehand, so that the page follows its controls without a kernel.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from accelviz.errors import AccelvizError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.plans import Setting, Settings, Strategy

#: Column counts that the control of `n_cols` offers: powers, multiples, and recorded odd counts.
COLUMNS = (
    *(1, 4, 8, 16, 17, 24, 32, 33, 48, 50, 64, 80, 96, 100, 112, 128),
    *(160, 192, 256, 512),
)
#: Most values of a range that a control offers completely.
_COMPLETE_RANGE = 32
#: A longer range is offered up to this factor times the largest of the parameter's `tries`.
_RANGE_FACTOR = 8
#: Most values of a control that are all combined with other controls; of more, samples are.
_UNSAMPLED = 7
#: Most combinations of values that are all evaluated.
_MAX_COMBINATIONS = 5000
#: Kind of scheme at combinations of values that a strategy refuses.
REFUSED = "refused"

#: A combination of values: for each control, the index of its value.
Point = tuple[int, ...]
#: An entry of a description: part, such as "arguments", and name in it; see `scheme_tables`.
Key = tuple[str, str]
_KIND: Key = ("kind", "")
#: Parts that a description may lack where its kind is known.
_OPTIONAL_PARTS = ("lanes", "workers", "text")


def offered(parameter: Setting, current: Any) -> tuple[Any, ...]:
    """Return the values that the control of a parameter offers, `current` included.

    Choices and values other than integers are offered as declared; of a range of integers, all
    multiples of `step` if they are few, else multiples by 1, 2, 3, 4, 6, 8, 12 ... A parameter
    without choices and without `tries` has only `current`.
    """
    most, step, tries = parameter.most, parameter.step, parameter.tries
    rule = (None,) if parameter.rule else ()
    if parameter.choices or not tries or not all(type(value) is int for value in tries):
        values = (*rule, *(parameter.choices or tries), current)
        return tuple({(type(value), value): value for value in values}.values())  # True is not 1
    if most is not None and most <= _COMPLETE_RANGE * step:
        steps = {*range(step, most + 1, step)}
    else:
        end = min(_RANGE_FACTOR * max(tries), most or max(tries)) // step
        powers = {1 << i for i in range(end.bit_length())}
        steps = {step * i for i in powers | {3 * i for i in powers} if i <= end}
    return (*rule, *sorted({*steps, *tries, parameter.default, current} - {None}))


def scheme_tables(
    strategy: Strategy,
    graph: Graph,
    controls: Mapping[str, Sequence[Any]],
    start: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Tabulate a strategy's partition scheme over the values that the controls offer.

    Parameters
    ----------
    strategy : Strategy
    graph : Graph
        Rules use its size and degrees.
    controls : mapping of str to sequence
        "n_cols" and the parameters that have controls, each with the values offered.
    start : mapping
        Current values of "n_cols" and of all parameters; `controls` offer theirs.

    Returns
    -------
    dict or None
        "kind" of the scheme, a tree; "arguments" of the scheme; "lanes", "workers", "text" (empty
        if not known) and "resolved", the parameters chosen by a rule that change any of these:
        trees by name. A tree is a number, a word or None, or {"over": control, "each": trees}, with
        one tree for each value of that control. The kind is `REFUSED` where the strategy refuses
        the combination of values. None if the page cannot compute the strategy's scheme.

    Notes
    -----
    Change each control alone, then chosen pairs, to find the controls that an entry depends on. If
    these have few combinations, evaluate all; otherwise branch over a control only if the entry
    changes along it, and repeat this in each branch.
    """
    described: dict[Point, dict[Key, Any]] = {}
    names = [*controls]
    axes, n_cols_axis = range(len(names)), names.index("n_cols")
    depends: dict[Key, set[int]] = {_KIND: set()}  # axes, by entry
    missing: set[tuple[Key, int]] = set()  # entries that no point near one with these columns has
    origin = tuple(_index(controls[name], start[name]) for name in names)
    usual = {**start, **strategy.defaults()}
    default = tuple(
        _index(controls[name], usual[name]) if usual[name] in controls[name] else i
        for name, i in zip(names, origin, strict=True)
    )
    chosen = {name: value for name, value in start.items() if name != "n_cols"}
    widths, settings = strategy.checked(start["n_cols"], chosen)
    rows = strategy.degrees(graph)

    def describe(point: Point) -> dict[Key, Any]:
        if point not in described:
            values = {name: controls[name][i] for name, i in zip(names, point, strict=True)}
            wide = {**widths, "n_cols": values.pop("n_cols")}
            replaced = settings.replaced(**values)
            described[point] = _description(strategy, graph, rows, wide, replaced)
        return described[point]

    def points_along(axis: int, point: Point, samples: int | None = None) -> list[Point]:
        """Return the points on a line; of more than `_UNSAMPLED`, about `samples` if given."""
        indices = [*range(len(controls[names[axis]]))]
        if samples is not None and len(indices) > _UNSAMPLED:
            last = len(indices) - 1
            indices = [indices[round(i * last / samples)] for i in range(samples + 1)]
        return [(*point[:axis], i, *point[axis + 1 :]) for i in indices]

    def near_point_with(key: Key, point: Point, free: Sequence[int]) -> Point:
        """Return a point with this entry, moved along free axes; `point` if there is none."""
        # Entries are missing where the kind differs or values are refused; lanes anywhere.
        n_cols = point[n_cols_axis]
        if (key, n_cols) in missing:
            return point
        moved = [axis for axis in free if key[0] in _OPTIONAL_PARTS or axis in depends[_KIND]]
        central = tuple(default[axis] if axis in free else i for axis, i in enumerate(point))
        for center in (point, central):
            for near in (center, *(near for axis in moved for near in points_along(axis, center))):
                if key in describe(near):
                    return near
        missing.add((key, n_cols))
        return point

    def varies(key: Key, points: list[Point]) -> bool:
        descriptions = map(describe, points)
        return len({entries[key] for entries in descriptions if key in entries}) > 1

    def n_combinations(some: set[int]) -> int:
        return math.prod(len(controls[names[axis]]) for axis in some)

    def build_tree(key: Key, point: Point, axes_left: tuple[int, ...], all_points: bool) -> Any:
        if key not in describe(point):
            free = [axis for axis in axes if axis in axes_left or axis not in depends[key]]
            point = near_point_with(key, point, free)
        for axis in axes_left:
            branches = points_along(axis, point)
            if all_points or varies(key, branches):
                further = tuple(other for other in axes_left if other != axis)
                trees = [build_tree(key, branch, further, all_points) for branch in branches]
                if all(type(tree) is type(trees[0]) and tree == trees[0] for tree in trees):
                    return trees[0]
                return {"over": names[axis], "each": trees}
        return describe(point).get(key)

    if not describe(origin):
        return None
    for axis in axes:
        lines = [points_along(axis, origin)]
        for other in axes:
            if other != axis:
                lines += [points_along(axis, point, 4) for point in points_along(other, origin, 3)]
        for points in lines:
            for key in {key for point in points for key in describe(point)}:
                if varies(key, points):
                    depends.setdefault(key, set()).add(axis)
    # A resolved parameter is shown only if its control changes another entry.
    matter = {names[axis] for key in depends if key[0] != "resolved" for axis in depends[key]}
    keys = dict.fromkeys(itertools.chain.from_iterable(described.values()))
    keys = {key: None for key in keys if key[0] != "resolved" or key[1] in matter}
    depends = {key: depends.get(key, set()) for key in keys}
    tables: dict[str, Any] = {part: {} for part in ("arguments", *_OPTIONAL_PARTS, "resolved")}
    for key in keys:
        # Controls that change one entry together may change another only together.
        joined = depends[key].union(
            *(others for others in depends.values() if others & depends[key])
        )
        if n_combinations(joined) <= _MAX_COMBINATIONS:
            depends[key] = joined
        all_points = n_combinations(depends[key]) <= _MAX_COMBINATIONS
        tree = build_tree(key, origin, tuple(sorted(depends[key])), all_points)
        part, name = key
        if name:
            tables[part][name] = tree
        else:
            tables[part] = tree
    return tables


def _description(
    strategy: Strategy, graph: Graph, rows: RowDegrees, widths: dict[str, int], settings: Settings
) -> dict[Key, Any]:
    try:
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
        "workers": vars(description.workers) if description.workers else {},
        "text": {"summary": description.text} if description.text else {},
        "resolved": {name: getattr(resolved, name) for name in rules},
    }
    entries = {(part, name): value for part in parts for name, value in parts[part].items()}
    return {_KIND: description.scheme.kind, **entries}


def _index(values: Sequence[Any], value: Any) -> int:
    """Return the index of a value; True is not 1 here."""
    return [(type(other), other) for other in values].index((type(value), value))
