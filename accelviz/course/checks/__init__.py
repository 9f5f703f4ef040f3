"""Checks that the assignments' test cells call on a student's functions and objects.

A check that returns None earns all points of its cell; one that returns a float earns that many. A
check raises AssertionError or AccelvizError with the first wrong case. Output that the student's
code prints is discarded.
"""

from __future__ import annotations

from accelviz.course.checks import blocks, hidden, kernels, reports, schemes, sorting
from accelviz.course.checks.common import quietly

__all__ = ["blocks", "hidden", "kernels", "quietly", "reports", "schemes", "sorting"]
