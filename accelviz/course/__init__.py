"""The course: what lessons call, and assignments that are released, examined and graded."""

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
