"""Which names a student's code looks up, to tell whether the library does its work."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any
from unittest import mock

from accelviz.course.checks.common import require
from accelviz.strategies import REGISTRY, Plan, Strategy

#: Where the library has the answers to A2 and A3.
_PARTITIONS = "accelviz.partition"


def looked_up(functions: Iterable[Any]) -> dict[str, Any]:
    """Return the names that functions, and the functions beside them, look up.

    Parameters
    ----------
    functions : iterable of function
        Where one calls another one of its own module or notebook, that one is looked at too.

    Returns
    -------
    dict of str to object
        Global names, attributes and imports, with the global object of that name or None.

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
        for name in _names(each.__code__):
            found[name] = known = each.__globals__.get(name)
            if isinstance(known, FunctionType) and known.__globals__ is each.__globals__:
                waiting.append(known)
    return found


def _names(code: CodeType) -> set[str]:
    inner = [_names(each) for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*inner)


@contextlib.contextmanager
def own_work(functions: Iterable[Any]) -> Iterator[None]:
    """Refuse functions that use the library's partitions, and lock the papers' strategies.

    Raises
    ------
    AssertionError
        Naming what is lent; from within the block, where a strategy is asked for a plan.
    """
    found = looked_up(functions)
    lent = [name for name in found if name.startswith(_PARTITIONS)]
    for name, each in found.items():
        module = each.__name__ if isinstance(each, ModuleType) else getattr(each, "__module__", "")
        if str(module).startswith(_PARTITIONS):
            lent.append(name)
    if {"accelviz", "partition"} <= set(found):  # accelviz.partition.block_level.pack
        modules = {name.rpartition(".")[2] for name in sys.modules if name.startswith(_PARTITIONS)}
        lent += sorted((modules - {"partition"}) & set(found))
    require(not lent, f"it uses {', '.join(lent)} of {_PARTITIONS}; the work is to be your own")

    def locked(self: Strategy, *args: Any, **parameters: Any) -> Plan:
        raise AssertionError(f"it lets {self.name!r} do the work, which is to be your own")

    with contextlib.ExitStack() as stack:
        for each in REGISTRY:
            stack.enter_context(mock.patch.object(type(each), "build", locked))
        yield
