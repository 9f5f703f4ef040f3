"""The course: what lessons call, and assignments that are released, examined and graded."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelviz.course.exercise import PRODUCTS, compare, sealed
    from accelviz.course.lesson import changed, traced, verdict, whole_source
    from accelviz.widgets import predict

__all__ = [
    "PRODUCTS",
    "changed",
    "compare",
    "predict",
    "sealed",
    "traced",
    "verdict",
    "whole_source",
]


def __getattr__(name: str) -> Any:
    """Import at first use: the process of a submission needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    exercise = name in ("PRODUCTS", "compare", "sealed")
    module = "widgets" if name == "predict" else f"course.{'exercise' if exercise else 'lesson'}"
    return getattr(importlib.import_module(f"accelviz.{module}"), name)
