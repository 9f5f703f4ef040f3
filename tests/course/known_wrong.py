"""What students hand in that is wrong, and the points it is worth, cell by cell.

Each is the perfect solution with one mistake in it, or another way to do it that the text rules
out or values less; a few are right in another way, and have all points.
"""

from __future__ import annotations

from tests.course.wrong import Wrong
from tests.course.wrong_functions import BLOCKS, COUNTING, REPORTS
from tests.course.wrong_plans import KERNELS, SCHEMES

WRONG: list[Wrong] = [*COUNTING, *BLOCKS, *SCHEMES, *KERNELS, *REPORTS]
