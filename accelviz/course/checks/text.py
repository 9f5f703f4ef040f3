"""A student's functions as text: what a test can read without running any of it."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from accelviz.course.checks.common import require
from accelviz.course.checks.remote import Remote


@dataclass
class Definitions:
    """A function, and what it needs of the cells around it.

    Attributes
    ----------
    name : str
    nodes : dict of str to statement
        Its definition, those of the functions that it calls, and constants, by name.
    imported : dict of str to str
        Module by the name that the cells import it under.
    """

    name: str
    nodes: dict[str, ast.stmt] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)

    def loaded(self) -> set[str]:
        """Return all names that the definitions read."""
        walked = (each for tree in self.nodes.values() for each in ast.walk(tree))
        return {each.id for each in walked if isinstance(each, ast.Name) and _reads(each)}

    def free(self) -> set[str]:
        """Return the names that the definitions read and do not bind."""
        bound = set(self.nodes)
        for tree in self.nodes.values():
            for each in ast.walk(tree):
                if isinstance(each, ast.Name) and not _reads(each):
                    bound.add(each.id)
                elif isinstance(each, ast.arg):
                    bound.add(each.arg)
                elif isinstance(each, ast.FunctionDef) or (
                    isinstance(each, ast.ExceptHandler) and each.name
                ):
                    bound.add(each.name or "")
        return self.loaded() - bound | {name for name in self.loaded() if name[:2] == "__"}


def definitions(function: Any) -> Definitions:
    """Find a function of a notebook in the text of its cells.

    Parameters
    ----------
    function : function or Remote

    Raises
    ------
    AssertionError
        If it is not defined there by `def`, at the top of a cell.
    """
    cells: Iterable[str]
    if isinstance(function, Remote):
        name, cells = function._name, function._link.cells
    else:
        require(inspect.isfunction(function), f"{function!r} is no plain function of Python")
        name, cells = function.__name__, function.__globals__.get("In") or _file(function)
    known: dict[str, ast.stmt] = {}
    imported: dict[str, str] = {"np": "numpy"}
    for cell in cells:
        try:
            body = ast.parse(cell).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # a cell that did not run either, or one with a magic
        for each in body:
            if isinstance(each, ast.FunctionDef):
                known[each.name] = each
            elif isinstance(each, ast.Import):
                imported |= {alias.asname or alias.name: alias.name for alias in each.names}
            elif isinstance(each, ast.ImportFrom):
                imported |= {a.asname or a.name: f"{each.module}.{a.name}" for a in each.names}
            elif (
                isinstance(each, ast.Assign)
                and isinstance(each.targets[0], ast.Name)
                and isinstance(each.value, ast.Name | ast.Lambda | ast.Constant)
            ):
                known[each.targets[0].id] = each
    require(name in known, f"{name or 'it'} is not defined by `def` at the top of a cell")
    found = Definitions(name, {}, imported)
    waiting = [name]
    while waiting:
        here = waiting.pop()
        if here in found.nodes:
            continue
        found.nodes[here] = known[here]
        names = {each.id for each in ast.walk(known[here]) if isinstance(each, ast.Name)}
        waiting += sorted(names & set(known))
    # in the order in which the cells have them, so that an alias follows what it names
    found.nodes = {each: known[each] for each in known if each in found.nodes}
    shadowed = sorted(set(found.nodes) & set(dir(builtins)))
    require(not shadowed, f"{', '.join(shadowed)} is a name of Python's own; choose another")
    return found


def _reads(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def _file(function: Any) -> list[str]:
    """Return the whole text around a function that is no notebook's."""
    try:
        return [inspect.getsource(inspect.getmodule(function) or function)]
    except (OSError, TypeError):
        return []
