"""The course: functions for lessons, puzzles, and assignments with their checks and grading."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelviz.course.exercise import PRODUCTS, compare, sealed
    from accelviz.course.lesson import (
        changed,
        folded_source,
        sparse_columns,
        traced,
        verdict,
        whole_source,
    )
    from accelviz.course.references import known
    from accelviz.widgets import predict

__all__ = [
    "PRODUCTS",
    "changed",
    "compare",
    "folded_source",
    "known",
    "predict",
    "sealed",
    "sparse_columns",
    "traced",
    "verdict",
    "whole_source",
]


def __getattr__(name: str) -> Any:
    """Import a name at its first use, so that a submission's process starts quickly."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = {"predict": "widgets", "known": "course.references"}
    modules |= dict.fromkeys(("PRODUCTS", "compare", "sealed"), "course.exercise")
    module = modules.get(name, "course.lesson")
    return getattr(importlib.import_module(f"accelviz.{module}"), name)
