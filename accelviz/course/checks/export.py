"""What a student's scheme planned, as plain data; and its workload in another process.

`exported` runs beside the student's code, `slices` in a process that has not seen the graph. What
crosses of `slice_workload` is what it holds: its variables, its object's, the global ones that it
names. The function's text does not cross, as the other process has run the same cells, nor does the
matrix, which a kernel has anyway. So the bytes that cross are all that the function can know of the
graph, however it hides them, and are counted by who carries them. Both ends run beside the
student's code, and nothing here need be believed: to lie is to send less, or other bytes.
"""

from __future__ import annotations

import dis
import importlib
import io
import marshal
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from accelviz.course.checks.common import require
from accelviz.graph import Graph
from accelviz.ordering import Permutation
from accelviz.plans import Plan, Strategy
from accelviz.strategies import REGISTRY, SPMM
from accelviz.strategies import plan as make_plan

#: A workload's columns, in order.
COLUMNS = ("block", "warp", "row", "nz_start", "nz_count")
#: Bytes of what crosses that are no table: names, types and shapes of what is held, a few numbers.
FREE_BYTES = 512
_ARRAYS = ("row_pointers", "column_indices", "degrees")


def exported(
    strategy: Any, pointers: Any, columns: Any, values: Any, shape: Any, name: str, n_cols: int
) -> dict[str, Any]:
    """Let a scheme plan for a graph, and return what there is to know of the plan.

    Returns
    -------
    dict
        `name`, `blocks`, `warps`, `zero_outputs`, `order` of the rows (or None), `metadata` (or
        None), what `slice_workload` holds (`held`), and the `plan` itself.

    Raises
    ------
    AssertionError
        If the scheme is one of the papers' in disguise, or no scheme at all, or its plan does not
        belong to the graph.
    """
    graph = Graph(pointers, columns, values, tuple(shape), name)
    require(isinstance(strategy, Strategy), f"{strategy!r} is no object of a class of Strategy")
    require(
        not isinstance(strategy, tuple(map(type, REGISTRY))),
        f"{type(strategy).__name__} is derived from a scheme that is there already",
    )
    named = isinstance(strategy.name, str) and strategy.name.strip()
    require(named, "the scheme has no name")
    plan = make_plan(graph, strategy, n_cols, operation=SPMM)
    require(isinstance(plan, Plan), f"build returns a {type(plan).__name__}, and should a Plan")
    slice_workload = plan.layout.slice_workload
    require(callable(slice_workload), "the plan has no slice_workload")
    assert slice_workload is not None
    same_pattern = plan.pattern is graph.pattern
    require(same_pattern, "the plan's pattern is not that of the graph that build was given")
    require(plan.n_cols == n_cols, f"the plan is for {plan.n_cols} columns instead of {n_cols}")
    warps, launched = plan.workers_per_block, plan.launch.warps_per_block
    require(
        warps == launched, f"blocks have {warps} warps, and should have {launched}, as launched"
    )
    _check_matrix(plan)
    known = matrix(graph, plan.permutation, plan.layout.nonzero_order, plan.walked)
    return {
        "name": strategy.name,
        "blocks": int(plan.launch.n_blocks),
        "warps": int(warps),
        "zero_outputs": list(plan.zero_outputs),
        "order": None if plan.permutation is None else plan.permutation.order,
        "metadata": plan.metadata,
        "held": packed(slice_workload, known),
        "plan": plan,
    }


def slices(held: bytes, graph_data: Any, order: Any, ranges: list[tuple[int, int]]) -> list[Any]:
    """Return the parts of a workload for ranges of blocks, int64 (5, records) each.

    `held` and `order` (of the rows) are from `exported`, which was given `graph_data`.
    """
    pointers, columns, values, shape, name, _ = graph_data
    graph = Graph(pointers, columns, values, tuple(shape), name)
    permutation, walked, nonzero_order = None, graph.pattern, None
    if order is not None:
        permutation = Permutation(order)
        walked, nonzero_order = permutation.apply_to_pattern(graph.pattern)
    function = unpacked(held, matrix(graph, permutation, nonzero_order, walked))
    return [table(function(start, stop)) for start, stop in ranges]


def table(work: Any) -> Any:
    """Return a workload as int64, shape (5, records)."""
    return np.stack([np.asarray(work[name], dtype=np.int64) for name in COLUMNS])


def _check_matrix(plan: Plan) -> None:
    """Require that the walked pattern be the graph's, its rows in the permutation's order."""
    actual = plan.layout.nonzero_order
    if plan.permutation is None:
        same = plan.walked is plan.pattern and actual is None
        require(same, "without a permutation, walked and nonzero_order are not to be given")
        return
    expected, order = plan.permutation.apply_to_pattern(plan.pattern)
    for name in ("row_pointers", "column_indices"):
        require(
            np.array_equal(getattr(expected, name), getattr(plan.walked, name)),
            f"the {name} of walked are not those of the pattern with its rows permuted",
        )
    require(
        actual is not None and np.array_equal(actual, order),
        "nonzero_order is not the one that apply_to_pattern gives beside the walked pattern",
    )


def matrix(graph: Graph, permutation: Permutation | None, order: Any, walked: Any) -> Any:
    """Return what both processes have of a matrix, by name: objects, and arrays.

    `apply_to_pattern` gives the pattern `walked` and, beside it, the `order` of the nonzeros.
    """
    shared: dict[str, Any] = {"graph": graph, "pattern": graph.pattern, "walked": walked}
    shared |= {"permutation": permutation, "order": order, "values": graph.values}
    for name in ("walked", "pattern"):
        shared |= {f"{name}.{array}": getattr(shared[name], array) for array in _ARRAYS}
    shared["permutation.order"] = getattr(permutation, "order", None)
    return {name: value for name, value in shared.items() if value is not None}


def packed(function: Callable[..., Any], known: Mapping[str, Any]) -> bytes:
    """Return what a function holds, without the matrix.

    Raises
    ------
    AssertionError
        If it holds what cannot be taken elsewhere, such as a generator or an open file.
    """
    stream = io.BytesIO()
    try:
        _Packer(stream, known).dump(function)
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(
            f"slice_workload holds what cannot be taken to another process ({error}); let it hold "
            "numbers, text, arrays, lists and the like"
        ) from None
    return stream.getvalue()


def unpacked(data: bytes, known: Mapping[str, Any]) -> Callable[..., Any]:
    """Make the function again."""
    function: Callable[..., Any] = _Unpacker(io.BytesIO(data), known).load()
    return function


class _Packer(pickle.Pickler):
    def __init__(self, stream: io.BytesIO, known: Mapping[str, Any]) -> None:
        super().__init__(stream, protocol=5)
        self._known = known
        self._names = {id(value): name for name, value in known.items()}
        self._places: dict[str, dict[CodeType, Any]] = {}

    def persistent_id(self, value: Any) -> Any:
        if id(value) in self._names:
            return self._names[id(value)]
        if isinstance(value, ModuleType):
            return ("module", value.__name__)
        if isinstance(value, np.ndarray):  # perhaps a part of an array of the matrix
            for name, array in self._known.items():
                if isinstance(array, np.ndarray) and np.may_share_memory(value, array):
                    offset = value.ctypes.data - array.ctypes.data
                    return ("view", name, offset, value.shape, value.strides, value.dtype.str)
            return None
        module, title = getattr(value, "__module__", None), getattr(value, "__name__", None)
        if isinstance(module, str) and isinstance(title, str) and callable(value):
            space = vars(sys.modules.get(module, object))
            is_named = not isinstance(value, FunctionType) and space.get(title) is value
            return ("name", module, title) if is_named else None  # a class, a function of Numba's
        return None

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, FunctionType):
            return NotImplemented
        module = value.__module__
        if module != "__main__" and "<locals>" not in value.__qualname__:
            return NotImplemented  # a module's, which the other process imports
        if module not in self._places:
            self._places[module] = dict(_codes(value.__globals__))
        location = self._places[module].get(value.__code__) or marshal.dumps(value.__code__)
        cells = value.__closure__ or ()
        held = [cell.cell_contents if _is_full(cell) else _Empty for cell in cells]
        names = _named(value) if module == "__main__" else {}
        state = (held, value.__defaults__, value.__kwdefaults__, names)
        return (_function, (module, location, len(cells)), state, None, None, _fill)


class _Unpacker(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, known: Mapping[str, Any]) -> None:
        super().__init__(stream)
        self._known = known

    def persistent_load(self, reference: Any) -> Any:
        if isinstance(reference, str):
            return self._known[reference]
        kind, name, *more = reference
        if kind == "module":
            return importlib.import_module(name)
        if kind == "name":
            return getattr(sys.modules[name], more[0])
        offset, shape, strides, dtype = more
        view = np.ndarray(shape, dtype, self._known[name], offset, strides)
        view.setflags(write=False)
        return view


class _Empty:
    """Stands for a variable that has no value yet."""


def _is_full(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _codes(space: Mapping[str, Any]) -> Iterator[tuple[CodeType, Any]]:
    """Yield each piece of code of a module and where it stands: a name, places among constants."""
    waiting: list[tuple[CodeType, tuple[Any, ...]]] = []
    for name, value in list(space.items()):
        inside = vars(value) if isinstance(value, type) else {"": value}
        if isinstance(value, type) and value.__module__ != space.get("__name__"):
            continue
        for member_name, member in inside.items():
            function = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(function, FunctionType) and function.__globals__ is space:
                waiting.append((function.__code__, (f"{name}.{member_name}",)))
    while waiting:
        code, location = waiting.pop()
        yield code, location
        for index, constant in enumerate(code.co_consts):
            if isinstance(constant, CodeType):
                waiting.append((constant, (*location, index)))


def _named(function: FunctionType) -> dict[str, Any]:
    """Return the global data and functions of the notebook that a function names."""
    space, values = function.__globals__, {}
    waiting = [function.__code__]
    while waiting:
        code = waiting.pop()
        waiting += [item for item in code.co_consts if isinstance(item, CodeType)]
        for item in dis.get_instructions(code):
            value = space.get(item.argval) if item.opname == "LOAD_GLOBAL" else None
            mine = isinstance(value, FunctionType) and value.__globals__ is space
            if value is not None and (mine or not callable(value)):
                values[item.argval] = value
    return {name: item for name, item in values.items() if not isinstance(item, ModuleType)}


def _function(module: str, location: Any, cells: int) -> FunctionType:
    """Make a function again, its variables without a value yet."""
    space = vars(sys.modules[module])
    if isinstance(location, bytes):
        code = marshal.loads(location)
    else:
        code = next((code for code, known in _codes(space) if known == location), None)
    require(isinstance(code, CodeType), f"{location} is not there when only the cells are run")
    return FunctionType(code, space, closure=tuple(CellType() for _ in range(cells)))


def _fill(function: FunctionType, state: Any) -> None:
    """Give a function's variables their values."""
    held, function.__defaults__, function.__kwdefaults__, names = state
    for cell, value in zip(function.__closure__ or (), held, strict=True):
        if value is not _Empty:
            cell.cell_contents = value
    function.__globals__.update(names)
