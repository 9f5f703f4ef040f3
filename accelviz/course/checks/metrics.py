"""Metrics of a partition scheme, counted from its workload, and what they earn in A3."""

from __future__ import annotations

import functools
import math
import sys
from array import array
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pandas as pd

from accelviz.graph import Graph, Pattern
from accelviz.ordering import Permutation
from accelviz.plans import Plan
from accelviz.strategies import plan as make_plan

#: Columns that metrics are taken with; none of them depends on how many.
N_COLS = 64
#: Nonzeros of the busiest warp that earn all points, and from which on there are none.
FINE_WARP, COARSE_WARP = 64, 1_024
#: The papers' schemes that cut most.
CUTTING = ("merge_path", "gnnadvisor")
#: What a kernel has anyway, and what is no data.
_NOT_METADATA = (Graph, Pattern, Permutation, ModuleType, type)
#: What counts as held where a function finds it by its name, outside of itself.
_HELD_BY_NAME = (
    *(FunctionType, MethodType, BuiltinMethodType, functools.partial, np.ndarray, pd.DataFrame),
    *(pd.Series, list, tuple, dict, set, frozenset, deque, array, bytes, bytearray, memoryview),
    *(str, int),
)
#: Bytes of a number or a text that is no table.
_SMALL = 64


@dataclass(frozen=True)
class Metrics:
    """What a scheme does to a graph; less is better in each of them.

    Attributes
    ----------
    waiting : float
        Share of warp time spent idle or waiting for the block's busiest warp (`idle_share`).
    busiest_warp : float
        Nonzeros of the busiest warp: nothing is faster than its slowest part.
    metadata_bytes : float
        Bytes of the plan's metadata; of a student's, those that `slice_workload` holds, if those
        are more.
    cut_parts : float
        Parts of rows that are cut over blocks: for each column, as many atomic additions in global
        memory.
    """

    waiting: float
    busiest_warp: float
    metadata_bytes: float
    cut_parts: float


def bounds(graph: Graph) -> tuple[Metrics, Metrics]:
    """Return the metrics that earn nothing, and those that earn everything, for a graph."""
    row_split = measured(make_plan(graph, "graphblast", N_COLS))
    accel_gcn = make_plan(graph, "accel_gcn", N_COLS)
    published = measured(accel_gcn)
    none = Metrics(
        row_split.waiting,
        max(row_split.busiest_warp, COARSE_WARP),
        make_plan(graph, "accel_gcn", N_COLS, partition="warp").metadata_bytes,
        max(measured(make_plan(graph, name, N_COLS)).cut_parts for name in CUTTING),
    )
    full = Metrics(published.waiting, FINE_WARP, accel_gcn.metadata_bytes, published.cut_parts)
    return none, full


def shares(yours: Metrics, none: Metrics, full: Metrics) -> Metrics:
    """Return the share of the points that each metric earns, 0 to 1.

    Parameters
    ----------
    yours : Metrics
    none, full : Metrics
        From `bounds`.

    Returns
    -------
    Metrics
        Linear between the bounds; of `busiest_warp`, between their logarithms. Where they leave
        nothing to gain, `full` or less earns everything and more earns nothing. Little metadata and
        few cuts are worth nothing where the warps wait instead: their shares are multiplied by that
        of `waiting`.
    """
    waiting = _share(yours.waiting, none.waiting, full.waiting)
    return Metrics(
        waiting,
        _share(*(math.log(max(1.0, each.busiest_warp)) for each in (yours, none, full))),
        waiting * _share(yours.metadata_bytes, none.metadata_bytes, full.metadata_bytes),
        waiting * _share(yours.cut_parts, none.cut_parts, full.cut_parts),
    )


def _share(yours: float, none: float, full: float) -> float:
    if yours <= full:
        return 1.0
    return max(0.0, (none - yours) / (none - full)) if none > full else 0.0


def measured(plan: Plan) -> Metrics:
    """Count a plan's metrics from its workload."""
    work = plan.workload()
    counted = plan.statistics
    parts = np.unique(np.stack([work.row.astype(np.int64), work.block], axis=1), axis=0)
    per_row = np.bincount(parts[:, 0], minlength=1)
    return Metrics(
        waiting=counted.idle_share,
        busiest_warp=counted.largest,
        metadata_bytes=plan.metadata_bytes,
        cut_parts=int(per_row[per_row > 1].sum()),
    )


def held_bytes(plan: Plan) -> int:
    """Count the bytes of all arrays that a plan's `slice_workload` can reach.

    Its matrix's own arrays are not counted, nor permutations, which every scheme that sorts has
    beside its metadata. A number in a list or a dict counts 8 bytes.
    """
    names = ("row_pointers", "column_indices", "degrees")
    known = [getattr(each, name) for each in (plan.walked, plan.pattern) for name in names]
    known += [plan.output_rows, plan.nonzero_order, plan.own_values]
    total = 0
    for each in _reachable(plan.slice_workload):
        if not isinstance(each, np.ndarray):
            total += _size(each)
        elif not any(np.may_share_memory(each, array) for array in known if np.size(array)):
            total += each.nbytes
    return total


def _size(value: Any) -> int:
    """Return the bytes of what is no array: a number 8, a longer one or a text its own."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(8, (value.bit_length() + 7) // 8)
    if isinstance(value, str | bytes | bytearray | memoryview):
        return len(value)
    return 8 if isinstance(value, float | np.generic) else sys.getsizeof(value)


def _reachable(root: Any) -> Iterator[Any]:
    """Yield the arrays that a callable holds, the numbers in its lists, and what else has data."""
    seen: dict[int, Any] = {}  # kept alive, so that no two of them have one id
    waiting = [root]
    while waiting:
        each = waiting.pop()
        theirs = isinstance(each, type) and each.__module__ == "__main__"
        library = isinstance(each, _NOT_METADATA) and not theirs
        if id(each) in seen or library or hasattr(each, "py_func"):
            continue
        seen[id(each)] = each
        if isinstance(each, np.ndarray):
            yield each
        elif isinstance(each, Mapping | list | tuple | set | frozenset | deque):
            inside = [*each.keys(), *each.values()] if isinstance(each, Mapping) else list(each)
            yield from (value for value in inside if isinstance(value, int | float | np.generic))
            waiting += inside
        elif isinstance(each, int | str) and _size(each) <= _SMALL:
            continue
        elif isinstance(each, int | str | bytes | bytearray | memoryview | array):
            yield each
        else:
            waiting += _held(each)


def _held(value: Any) -> list[Any]:
    """Return what a callable or an object of the student's holds."""
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, FunctionType):
        found = [cell.cell_contents for cell in value.__closure__ or ()]
        found += value.__defaults__ or ()
        names = (value.__globals__.get(name) for name in value.__code__.co_names)
        return found + [each for each in names if _is_theirs(each)]
    if isinstance(value, BuiltinMethodType):
        return [value.__self__]
    if isinstance(value, type):
        return [each for name, each in vars(value).items() if not name.startswith("__")]
    if isinstance(value, pd.DataFrame | pd.Series):
        return [value.to_numpy()]
    return list(vars(value).values()) if hasattr(value, "__dict__") else []


def _is_theirs(value: Any) -> bool:
    """Whether a global variable is data, or of a class of the notebook."""
    mine = value if isinstance(value, type) else type(value)
    return isinstance(value, _HELD_BY_NAME) or mine.__module__ == "__main__"
