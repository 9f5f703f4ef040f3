"""Makes what walks a list in one instruction be counted: the text is changed before it runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, MappingView, ValuesView
from typing import Any

import numpy as np

#: What counts, under names that nobody can write: what `in` looks through; a list that is moved up
#: or copied; what was made or is compared, which arrays count themselves; what is walked in any
#: case; and what `+=` adds. The last one counts arrays that were made unseen, and watches them.
SOUGHT, MOVED, MADE = "(sought)", "(moved)", "(made)"
WALKED, _ADDED, _WATCHED = "(walked)", "(added)", "(watched)"
_SIZED = list | tuple | set | dict | str | bytes | MappingView
_COUNTED: Mapping[str, Any] = {
    SOUGHT: list | tuple | np.ndarray | ValuesView,
    MOVED: list,
    MADE: _SIZED,
    WALKED: _SIZED | np.ndarray,
}
#: Functions that make a list or the like of what they are given, and methods that move all of one.
_MAKERS = frozenset(("list", "tuple", "set", "dict", "sum", "pow", "divmod"))
_MOVERS = frozenset(("copy", "reverse", "clear", "pop"))
#: Methods that keep what they are given, and do not look into it.
_HOLDERS = frozenset(("append", "get", "setdefault", "add"))
#: Bits of a whole number that are added in one step.
_WORD = 64
#: Steps of what is refused.
_TOO_MANY = 1 << 40


def counters(
    count: Callable[[int], None], watched: Callable[[Any], Any]
) -> dict[str, Callable[[Any], Any]]:
    """Return the functions by which changed text counts, by name; each returns its argument.

    Parameters
    ----------
    count : callable
        Adds steps.
    watched : callable
        Makes an array one that counts itself, if it is not.
    """

    def counter(name: str, kinds: Any) -> Callable[[Any], Any]:
        def counted(value: Any) -> Any:
            if name in (SOUGHT, WALKED) and isinstance(value, Iterator):
                value = list(value)
            if isinstance(value, kinds):
                count(len(value))
            elif isinstance(value, int):
                count(value.bit_length() // _WORD)
            return watched(value)

        return counted

    def added(value: Any) -> Any:
        if isinstance(value, tuple | str | bytes):
            count(_TOO_MANY)  # who catches what follows has not gained anything
            raise AssertionError(f"it adds a {type(value).__name__} by +=; use a list")
        return value

    own = {_ADDED: added, _WATCHED: watched}
    return {name: counter(name, kinds) for name, kinds in _COUNTED.items()} | own


class Seen(ast.NodeTransformer):
    """Wraps in calls of `counters` what takes more steps than its instructions."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Count what `in` looks through, and what is compared piece by piece."""
        self.generic_visit(node)
        node.left = _made(node.left)
        for i, each in enumerate(node.ops):
            inside = isinstance(each, ast.In | ast.NotIn)
            node.comparators[i] = (
                _call(SOUGHT, node.comparators[i]) if inside else _made(node.comparators[i])
            )
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Count slices that are read, and lists of which a part is replaced or taken out."""
        self.generic_visit(node)
        sliced = isinstance(node.slice, ast.Slice)
        if isinstance(node.ctx, ast.Load):
            return _call(WALKED, node) if sliced else node
        if sliced or isinstance(node.ctx, ast.Del):
            node.value = _call(MOVED, node.value)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Count lists that are put together, and numbers of many digits."""
        self.generic_visit(node)
        return _call(MADE, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Count what is added to a list."""
        self.generic_visit(node)
        node.value = _call(_ADDED, _call(WALKED, node.value))
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Count what is taken apart."""
        self.generic_visit(node)
        if any(isinstance(each, ast.Tuple | ast.List) for each in node.targets):
            node.value = _call(WALKED, node.value)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        """Count what is taken apart for a call or a list."""
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = _call(WALKED, node.value)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        """Count dictionaries that are put into one."""
        self.generic_visit(node)
        pairs = zip(node.keys, node.values, strict=True)
        node.values = [_call(WALKED, each) if key is None else each for key, each in pairs]
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        """Count what is written down."""
        self.generic_visit(node)
        node.value = _made(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Count what is copied, moved up, added to a list, or made of something."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name):
            return _call(MADE, node) if node.func.id in _MAKERS else node
        if isinstance(node.func, ast.Attribute) and node.func.attr not in _HOLDERS:
            node.args = [_made(each) for each in node.args]
            for each in node.keywords:
                each.value = _made(each.value)
        if isinstance(node.func, ast.Attribute):
            last = node.func.attr == "pop" and (not node.args or ast.unparse(node.args[0]) == "-1")
            if node.func.attr in _MOVERS and not last:
                node.func.value = _call(MOVED, node.func.value)
            if node.func.attr in ("extend", "update"):
                node.args = [_call(WALKED, each) for each in node.args]
            return _call(_WATCHED, node)
        return node


def _call(name: str, argument: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [argument], [])


def _made(node: ast.expr) -> ast.expr:
    return node if isinstance(node, ast.Constant | ast.Starred) else _call(MADE, node)
