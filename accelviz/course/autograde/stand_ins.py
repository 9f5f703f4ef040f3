"""Stand-ins for the library's partitions and strategies where a student's own are graded.

They can be imported and raise `NotYours` when they are used. A submission's process executes this
file before it imports accelviz, so nothing here may import accelviz.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any

#: Packages (with a dot at the end) and modules that have the answers of A2 and A3, and the modules
#: of the packages that everybody may use.
ANSWERS = (
    "accelviz.partition.",
    *(f"accelviz.strategies.{name}." for name in ("spmm", "sddmm")),
    *(f"accelviz.strategies.{name}" for name in ("cusparse", "fusegnn", "tc_gnn", "windows")),
)
HARMLESS = ("metadata", "summary", "operation")
#: What does not work without them.
_PANELS = ("accelviz.widgets", "accelviz.analysis.settings")


class NotYours(AssertionError):  # noqa: N818
    """A submission uses what it should do itself."""


class StandIn:
    """A missing module, an attribute of it, or a result; usable until the library is imported."""

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


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        answer = name.startswith(ANSWERS) and name.rpartition(".")[2] not in HARMLESS
        if answer or name.startswith(_PANELS):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        def lookup(name: str) -> StandIn:
            if name.startswith("__"):
                raise AttributeError(name)
            return StandIn(f"{module.__name__}.{name}")

        module.__getattr__ = lookup  # type: ignore[method-assign]


def install() -> None:
    """Put the stand-ins in front of the modules, for the rest of this process."""
    sys.meta_path.insert(0, _Finder())
    for module in ("", ".plots", ".course.checks", ".course.checks.export"):
        __import__(f"accelviz{module}")
    StandIn.importing = False
