"""Starts a server and, beside it, a bare one: a process that never had A2's and A3's answers.

The bare one forks the processes of submissions whose work is what the library does too. There the
modules with the answers are stand-ins: they can be imported, and raise `NotYours` when they are
used. This file imports nothing of accelviz, as that would import the answers.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from types import ModuleType
from typing import Any

#: Packages with the answers, and what they have beside them, which everybody may use.
ANSWERS = ("accelviz.partition", "accelviz.strategies.spmm", "accelviz.strategies.sddmm")
_HARMLESS = ("metadata", "summary", "operation")
#: What does not work without them.
_PANELS = ("accelviz.widgets", "accelviz.analysis.settings")
#: What both servers import before they part, as far as it is installed: nobody's answers.
_LIBRARIES = (
    *("numba", "pandas", "scipy.sparse", "IPython.core.interactiveshell", "nbformat"),
    *("matplotlib.pyplot", "matplotlib_inline.backend_inline"),
)


class NotYours(AssertionError):  # noqa: N818
    """A submission uses what it should do itself."""


class StandIn:
    """What is not there, nor what it has or returns; harmless until the library is imported."""

    importing = True

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self) -> None:
        if not StandIn.importing:
            raise NotYours(
                f"{self._name} is not there while this is graded: the work is to be your own"
            )

    def __getattr__(self, name: str) -> StandIn:
        if name.startswith("_"):
            raise AttributeError(name)
        return StandIn(f"{self._name}.{name}")

    def __call__(self, *_: Any, **__: Any) -> StandIn:  # noqa: D102
        self._refuse()
        return StandIn(self._name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str | StandIn):  # a strategy is looked up by its name
            self._refuse()
        return self is other

    __hash__ = object.__hash__

    def __instancecheck__(self, value: Any) -> bool:
        return False

    def __mro_entries__(self, bases: Any) -> tuple[()]:
        return ()

    def __or__(self, other: Any) -> Any:
        return other

    __ror__ = __or__


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stand-in for each module with answers."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        package, _, own = name.rpartition(".")
        inside = any(f"{package}.".startswith(f"{each}.") for each in ANSWERS)
        if (inside and own not in _HARMLESS) or name.startswith(_PANELS):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        def lookup(name: str) -> StandIn:
            if name.startswith("__"):
                raise AttributeError(name)
            return StandIn(f"{module.__name__}.{name}")

        module.__getattr__ = lookup  # type: ignore[method-assign]


def boot(whole: int, bare: int) -> None:
    """Become a server, and fork the bare one before anything of accelviz is there.

    Parameters
    ----------
    whole, bare : int
        Each one's end of a connection.
    """
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    is_bare = os.fork() == 0
    os.close(whole if is_bare else bare)
    if is_bare:
        sys.meta_path.insert(0, _StandIns())
    server = importlib.import_module("accelviz.course.autograde.server")
    server.serve(bare if is_bare else whole, is_bare)
