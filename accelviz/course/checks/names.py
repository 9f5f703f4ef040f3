"""Which names a student's code looks up, to tell whether the library does its work."""

from __future__ import annotations

import contextlib
import dis
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any
from unittest import mock

from accelviz.course.checks.common import require
from accelviz.plans import Plan, Strategy
from accelviz.strategies import REGISTRY

#: Where the library has the answers to A2 and A3.
_PARTITIONS = "accelviz.partition"
_ANSWERS = (_PARTITIONS, "accelviz.strategies.spmm")
#: Instructions that read a variable by its name.
_VARIABLES = frozenset(("LOAD_GLOBAL", "LOAD_NAME"))


def looked_up(functions: Iterable[Any]) -> dict[str, Any]:
    """Return the names that functions, and the functions beside them, look up.

    Parameters
    ----------
    functions : iterable of function
        Where one calls another one of its own module or notebook, that one is looked at too.

    Returns
    -------
    dict of str to object
        Global names, attributes and imports, with the global object of that name or None. Functions
        of their own module or notebook are not among them: a helper may have any name.

    Raises
    ------
    AssertionError
        If one of them is no plain Python function.
    """
    found: dict[str, Any] = {}
    seen: set[FunctionType] = set()
    waiting = list(functions)
    while waiting:
        each = waiting.pop()
        require(isinstance(each, FunctionType), f"{each!r} is no plain function of Python")
        if each in seen:
            continue
        seen.add(each)
        variables, others = _names(each.__code__)
        for name in variables | others:
            known = each.__globals__.get(name)
            own = isinstance(known, FunctionType) and known.__globals__ is each.__globals__
            if own:
                waiting.append(known)
            if name in others or not own:
                found[name] = known
    return found


def _names(code: CodeType) -> tuple[set[str], set[str]]:
    """Return the global variables that code reads, and its attributes, imports and the like."""
    variables: set[str] = set()
    others: set[str] = set()
    for each in dis.get_instructions(code):
        if each.opcode in dis.hasname:
            (variables if each.opname in _VARIABLES else others).add(str(each.argval))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = _names(constant)
            variables |= inner[0]
            others |= inner[1]
    return variables, others


def own_results(function: Any, cases: Iterable[Sequence[Any]]) -> list[Any]:
    """Call a student's function for each case, where it is, and see that the work is its own."""
    with own_work([function]):
        return [function(*arguments) for arguments in cases]


@contextlib.contextmanager
def own_work(functions: Iterable[Any]) -> Iterator[None]:
    """Refuse functions that use the library's partitions or strategies, and lock the latter.

    Raises
    ------
    AssertionError
        Naming what is lent; from within the block, where a strategy is asked for a plan.
    """
    found = looked_up(functions)
    lent = [name for name in found if name.startswith(_ANSWERS)]
    for name, each in found.items():
        module = each.__name__ if isinstance(each, ModuleType) else getattr(each, "__module__", "")
        if str(module).startswith(_ANSWERS):
            lent.append(name)
    if {"accelviz", "partition"} <= set(found):  # accelviz.partition.block_level.pack
        modules = {name.rpartition(".")[2] for name in sys.modules if name.startswith(_PARTITIONS)}
        lent += sorted((modules - {"partition"}) & set(found))
    require(not lent, f"it uses {', '.join(lent)} of accelviz; the work is to be your own")

    def locked(self: Strategy, *args: Any, **parameters: Any) -> Plan:
        raise AssertionError(f"it lets {self.name!r} do the work, which is to be your own")

    with contextlib.ExitStack() as stack:
        for each in REGISTRY:
            stack.enter_context(mock.patch.object(type(each), "build", locked))
        yield
