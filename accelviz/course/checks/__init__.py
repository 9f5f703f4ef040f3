"""Checks that the assignments' test cells call on a student's functions and objects.

A check that returns None earns all points of its cell; one that returns a float earns that many. A
check raises AssertionError or AccelvizError with the first wrong case. Output that the student's
code prints is discarded.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from accelviz.course.checks.common import quietly

if TYPE_CHECKING:
    from accelviz.course.checks import blocks, hidden, kernels, reports, schemes, sorting

__all__ = ["blocks", "hidden", "kernels", "quietly", "reports", "schemes", "sorting"]


def __getattr__(name: str) -> Any:
    """Import a module at its first use: a process of a submission needs one or none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
