"""How many steps a function takes, counted and not timed: bytecodes, and elements NumPy reads.

The function is taken as text and compiled anew, out of a part of Python in which nothing can reach
what counts.
"""

from __future__ import annotations

import ast
import builtins
import copy
import math
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.course.checks.common import case, require
from accelviz.course.checks.text import Definitions, definitions
from accelviz.course.checks.walks import WALKED, Seen, counters

#: Functions and methods that sort by comparing, or that keep things sorted, or that do it for you.
SORTING = frozenset(
    {
        *("sort", "sorted", "argsort", "lexsort", "partition", "argpartition", "unique", "rank"),
        *("sort_values", "sort_index", "rankdata", "groupby", "heapify", "heappush", "heapq"),
        *("bisect", "insort", "nlargest", "nsmallest", "setdiff1d", "union1d", "intersect1d"),
        *("degree_sort", "sort_by_degree", "windowed_degree_sort", "vertex_order"),
        *("DegreeHistogram", "Permutation"),
    }
)
#: Methods of a list that walk it unseen.
WALKING = frozenset(("index", "count", "insert", "remove"))
#: What a function may use where its steps are counted: of Python, as attributes, and of NumPy.
_BUILTINS = (
    *("abs", "bool", "dict", "divmod", "enumerate", "float", "int", "isinstance", "len", "list"),
    *(
        "max",
        "min",
        "pow",
        "range",
        "reversed",
        "round",
        "set",
        "sum",
        "tuple",
        "zip",
        "all",
        "any",
    ),
    *("ValueError", "TypeError", "AssertionError", "IndexError", "slice"),
)
_WALKERS = frozenset(("list", "tuple", "set", "sum", "max", "min", "all", "any"))
_METHODS = frozenset(
    {
        *("append", "pop", "extend", "copy", "items", "keys", "values", "get", "setdefault", "add"),
        *("shape", "size", "dtype", "ndim", "astype", "tolist", "item", "fill", "reshape", "ravel"),
        *("sum", "cumsum", "max", "min", "any", "all", "nonzero", "repeat", "take", "argmax"),
        *("argmin", "reduce", "accumulate", "at", "warn", "update", "clear", "reverse", "itemsize"),
    }
)
_NUMPY = frozenset(
    {
        *("ndarray", "array", "asarray", "ascontiguousarray", "zeros", "ones", "empty", "full"),
        *("zeros_like", "ones_like", "empty_like", "full_like", "arange", "bincount", "cumsum"),
        *("concatenate", "append", "repeat", "add", "subtract", "multiply", "minimum", "maximum"),
        *("where", "flatnonzero", "nonzero", "count_nonzero", "sum", "max", "min", "amax", "amin"),
        *("diff", "roll", "put", "take", "copy", "copyto", "hstack", "tile", "equal", "size"),
        *("int8", "int16", "int32", "int64", "intp", "uint8", "uint32", "uint64", "bool_"),
        *("float32", "float64", "integer", "iinfo", "any", "all", "insert", "flip", "array_equal"),
    }
)
#: What counted text is made of; the rest of the language could reach what counts, as `match` reads
#: any attribute, or is not needed.
_NODES = (
    *(ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Lambda, ast.Pass, ast.Expr),
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.While, ast.If),
    *(ast.IfExp, ast.Break, ast.Continue, ast.Raise, ast.Assert, ast.Try, ast.ExceptHandler),
    *(ast.Import, ast.ImportFrom, ast.alias, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare),
    *(ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.expr_context, ast.comprehension),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Call, ast.keyword, ast.Name),
    *(ast.Attribute, ast.Subscript, ast.Slice, ast.Starred, ast.Constant, ast.List, ast.Tuple),
    *(ast.Dict, ast.Set, ast.JoinedStr, ast.FormattedValue, ast.Delete),
)
#: An input four times as large may take this many times the steps: four, and a little to spare.
MOST_GROWTH = 4.5
#: Steps for each element of an input: a dozen of loops, and less than a walk through all of it.
MOST_STEPS = 300
_TIMES = 4


@dataclass
class Tally:
    """Steps counted so far."""

    steps: int = 0


class Watched(np.ndarray):
    """An array that adds every element that is read from it to a tally."""

    tally: Tally

    @classmethod
    def of(cls, array: npt.NDArray[Any], tally: Tally) -> Watched:
        """Watch a read-only view of an array."""
        watched = array.view(cls)
        watched.tally = tally
        watched.setflags(write=False)
        return watched

    def __array_finalize__(self, parent: Any) -> None:
        self.tally = getattr(parent, "tally", Tally())

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if "out" in options:
            options["out"] = tuple(_read(each) for each in options["out"])
        result = getattr(ufunc, method)(*map(_read, inputs), **options)
        return _watch(result, self.tally)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*map(_read, args), **{name: _read(each) for name, each in kwargs.items()})

    def __getitem__(self, place: Any) -> Any:
        found = self.view(np.ndarray)[_read(place)]
        self.tally.steps += int(np.size(found))
        return _watch(found, self.tally)

    def __iter__(self) -> Iterator[Any]:
        return iter(_read(self))

    def tolist(self) -> Any:
        """Count all elements as read."""
        return _read(self).tolist()

    def __setitem__(self, place: Any, value: Any) -> None:
        plain = self.view(np.ndarray)
        self.tally.steps += int(np.size(plain[place]))
        plain[place] = _read(value)


def _watched_method(name: str) -> Callable[..., Any]:
    def method(self: Watched, *args: Any, **options: Any) -> Any:
        return _watch(getattr(_read(self), name)(*map(_read, args), **options), self.tally)

    return method


for _name in ("astype", "copy", "sum", "cumsum", "max", "min", "any", "all", "nonzero", "repeat"):
    setattr(Watched, _name, _watched_method(_name))
for _name in ("take", "argmax", "argmin", "fill", "reshape", "ravel", "item"):
    setattr(Watched, _name, _watched_method(_name))


def _read(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_read, value))
    if not isinstance(value, Watched):
        return value
    value.tally.steps += value.size
    return value.view(np.ndarray)


def _watch(value: Any, tally: Tally) -> Any:
    """Watch what NumPy made, too."""
    if isinstance(value, tuple):
        return tuple(_watch(each, tally) for each in value)
    if isinstance(value, np.ndarray):
        value = value.view(Watched)
        value.tally = tally
    return value


def _refuse(names: set[str] | frozenset[str]) -> None:
    require(not names, f"it uses {', '.join(sorted(names))}; count instead")


class _NumPy:
    """The part of NumPy whose steps are counted."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, type | np.ufunc) or not callable(found):
            return found

        def counted(*args: Any, **options: Any) -> Any:
            options = {key: _read(value) for key, value in options.items()}
            result = _watch(found(*map(_read, args), **options), self.tally)
            self.tally.steps += int(np.size(result)) if isinstance(result, np.ndarray) else 0
            return result

        return counted


def _allowed(found: Definitions) -> None:
    """Refuse text that is more than loops, arithmetic, lists and NumPy.

    Raises
    ------
    AssertionError
        Naming what no step can be counted of.
    """
    imported: dict[str, str] = dict(found.imported)
    walked = [each for tree in found.nodes.values() for each in ast.walk(tree)]
    attributes = {each.attr for each in walked if isinstance(each, ast.Attribute)}
    aliases = {a.name for each in walked if isinstance(each, ast.ImportFrom) for a in each.names}
    _refuse((attributes | aliases | found.free()) & SORTING)
    for each in walked:
        if isinstance(each, ast.Import):
            imported |= {(a.asname or a.name): a.name for a in each.names}
        elif isinstance(each, ast.ImportFrom):
            names = ", ".join(alias.name for alias in each.names)
            raise AssertionError(f"it imports {names}; write np.{names} and the like instead")
        elif isinstance(each, ast.FunctionDef) and each.decorator_list:
            raise AssertionError(
                f"{each.name} is compiled by Numba or changed by another decorator, where no step "
                "can be counted"
            )
        elif not isinstance(each, _NODES):
            raise AssertionError(f"it has a {type(each).__name__}, where no step is counted")
    for each in walked:
        if isinstance(each, ast.Attribute):
            numpy = isinstance(each.value, ast.Name) and imported.get(each.value.id) == "numpy"
            known = _NUMPY if numpy else _METHODS
            walks = each.attr in WALKING and not numpy
            require(
                not walks,
                f"it uses {each.attr}, which walks a whole list; no step of it is counted",
            )
            require(each.attr in known, f"it uses .{each.attr}, of which no step is counted")
    free = found.free() - set(imported)
    compiled = sorted(free - set(_BUILTINS) - {"print"})
    require(
        not compiled,
        f"it uses {', '.join(compiled)}, of which no step can be counted (what Numba compiled, for "
        "one)",
    )
    strange = sorted(set(imported.values()) - {"numpy", "math", "warnings"} if imported else ())
    named = {name for name, module in imported.items() if module in strange} & found.loaded()
    require(not named, f"it uses {', '.join(sorted(named))}, of which no step is counted")


def _compiled(found: Definitions, tally: Tally) -> Callable[[Any], Any]:
    """Compile the text so that its steps are counted."""

    def count(steps: int) -> None:
        tally.steps += steps

    def watched(value: Any) -> Any:
        if isinstance(value, np.ndarray) and not isinstance(value, Watched):
            count(value.size)
            return _watch(value, tally)
        return value

    counting = counters(count, watched)

    def walker(name: str) -> Callable[..., Any]:
        function = getattr(builtins, name)
        return lambda *args, **options: function(*map(counting[WALKED], args), **options)

    modules = {
        "numpy": _NumPy(tally),
        "math": math,
        "warnings": types.SimpleNamespace(warn=lambda *_, **__: None),
    }
    known = {name: getattr(builtins, name) for name in _BUILTINS}
    known |= {name: walker(name) for name in _WALKERS - {"list", "tuple", "set"}}
    known["print"] = lambda *_, **__: None

    def importing(name: str, *_: Any) -> Any:
        return modules[name]

    space: dict[str, Any] = {
        "__builtins__": {**known, "__import__": importing},
        **counting,
        **{name: modules[each] for name, each in found.imported.items() if each in modules},
    }
    body = [Seen().visit(copy.deepcopy(tree)) for tree in found.nodes.values()]
    module = ast.fix_missing_locations(ast.Module(body, []))
    exec(compile(module, "<counted>", "exec"), space)
    function: Callable[[Any], Any] = space[found.name]
    return function


def steps(found: Definitions, array: npt.NDArray[Any]) -> int:
    """Count what a call takes: bytecodes, lines, and elements that NumPy reads or makes."""
    tally = Tally()
    function = _compiled(found, tally)

    def traced(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != "<counted>":
            return None
        frame.f_trace_opcodes = True
        tally.steps += event in ("opcode", "line")
        return traced

    watched, before = Watched.of(array, tally), sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 asks for it before the tracing begins
    sys.settrace(traced)
    try:
        function(watched)
    finally:
        sys.settrace(before)
    return tally.steps


def linear(
    function: Callable[[Any], Any],
    make: Callable[[int], npt.NDArray[Any]],
    right: Callable[[Callable[[Any], Any], npt.NDArray[Any]], None],
) -> None:
    """Refuse a function that sorts by comparing, or whose steps grow faster than its input.

    Parameters
    ----------
    function : callable
        Of an array: a function of a notebook.
    make : callable
        `make(scale)` gives an input `scale` times as large as `make(1)` in all that counts.
    right : callable
        `right(function, array)` raises AssertionError if the result is wrong: a function that does
        nothing is no linear one.

    Raises
    ------
    AssertionError
        If it is more than plain Python and NumPy, sorts, gives a wrong result, or takes more than
        `MOST_GROWTH` times the steps for four times the input, or `MOST_STEPS` for each element.
    """
    found = definitions(function)
    _allowed(found)
    with case("counting steps"):
        own = _compiled(found, Tally())
        right(lambda array: np.asarray(own(Watched.of(array, Tally()))), make(_TIMES))
        few, many = steps(found, make(1)), steps(found, make(_TIMES))
    size = make(_TIMES).size
    require(
        many <= MOST_STEPS * size,
        f"{size:,} elements take {many:,} steps, which is {many / size:.0f} for each; at most "
        f"{MOST_STEPS} may be",
    )
    require(
        many <= MOST_GROWTH * few,
        f"{_TIMES} times the input take {many / few:.1f} times the steps ({few:,}, then {many:,}); "
        f"at most {MOST_GROWTH} is linear",
    )
