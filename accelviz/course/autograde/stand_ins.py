"""Stand-ins for the library's partitions and strategies, which contain the answers of A2 and A3.

While a student's own partition or scheme is graded, these modules can be imported but raise
`NotYours` when used. A submission's process executes this file before it imports accelviz, so
nothing here may import accelviz.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from types import FrameType, ModuleType
from typing import Any

#: Packages (with a dot at the end) and modules with answers of A2 and A3.
ANSWERS = (
    "accelviz.partition.",
    "accelviz.course.checks.blocks",
    *(f"accelviz.strategies.{name}." for name in ("spmm", "sddmm")),
    *(f"accelviz.strategies.{name}" for name in ("cusparse", "fusegnn", "tc_gnn", "windows")),
)
#: Modules of these packages that are not replaced.
HARMLESS = ("hardware_warps", "metadata", "summary", "operation")
#: Modules that need the replaced ones, and are replaced too.
_DEPENDENT = ("accelviz.widgets", "accelviz.analysis.settings")


class NotYours(AssertionError):  # noqa: N818
    """A submission uses a part of the library that it should implement itself."""


class StandIn:
    """Placeholder for an attribute of a replaced module, or for a result of calling one.

    It can be called, compared and subclassed while a module of the library is imported; else it
    raises `NotYours`.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self) -> None:
        if not _imports_library(sys._getframe()):
            raise NotYours(
                f"{self._name} is not there while this is graded; outside of answers that is fine"
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


def _imports_library(frame: FrameType | None) -> bool:
    """Whether a frame or one of its callers is the import of a module of accelviz."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "<module>" and name.startswith("accelviz."):
            return True
        frame = frame.f_back
    return False


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        answer = name.startswith(ANSWERS) and name.rpartition(".")[2] not in HARMLESS
        if answer or name.startswith(_DEPENDENT):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        def lookup(name: str) -> StandIn:
            if name.startswith("__"):
                raise AttributeError(name)
            return StandIn(f"{module.__name__}.{name}")

        module.__getattr__ = lookup  # type: ignore[method-assign]


def install() -> None:
    """Replace the modules for the rest of this process."""
    sys.meta_path.insert(0, _Finder())
