"""The course: what lessons call, and assignments that are released, examined and graded."""

from accelviz.course.exercise import compare
from accelviz.course.lesson import traced
from accelviz.widgets import predict

__all__ = ["compare", "predict", "traced"]
