"""The course: functions for lessons, puzzles, and assignments with their checks and grading."""

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
    """Import a name at its first use, so that a submission's process starts quickly."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    exercise = name in ("PRODUCTS", "compare", "sealed")
    module = "widgets" if name == "predict" else f"course.{'exercise' if exercise else 'lesson'}"
    return getattr(importlib.import_module(f"accelviz.{module}"), name)
