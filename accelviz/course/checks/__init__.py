"""What the assignments' test cells call: a check raises what is wrong, or returns points.

A check that raises nothing and returns None earns all points of its cell; one that returns a float
earns that many. An AssertionError or AccelvizError names the first case that is wrong, and how. No
check prints, whatever the student's code prints.
"""

from __future__ import annotations

from accelviz.course.checks import blocks, hidden, kernels, reports, schemes, sorting
from accelviz.course.checks.common import quietly

__all__ = ["blocks", "hidden", "kernels", "quietly", "reports", "schemes", "sorting"]
