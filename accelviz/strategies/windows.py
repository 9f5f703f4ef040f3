"""What strategies share whose blocks have windows of rows with shared columns."""

from __future__ import annotations

from typing import Any

from accelviz.ordering import RowDegrees
from accelviz.partition.shared_columns import WORD_COLUMNS
from accelviz.plans.description import Description
from accelviz.plans.plan import Strategy, Widths
from accelviz.plans.settings import setting


class WindowStrategy(Strategy):
    """Blocks depend on the columns that rows share, so that only a plan tells what they are."""

    metadata_words = ("window", "first word", "columns", "parts | part")

    def describe(self, settings: Any, rows: RowDegrees, widths: Widths) -> Description:
        """Leave the blocks to the workload."""
        return Description()


def part_columns_of() -> Any:
    """Declare the setting of SpMM's strategies: more columns are cut; None leaves it to a rule."""
    return setting(
        None, "most distinct columns of a part", 1 << 20, step=WORD_COLUMNS, tries=(64, 256, 2048)
    )


def widest(n_cols: int, halves: bool) -> int:
    """Return the columns that a copy of at most 16 bytes moves, a divisor of all."""
    return next(v for v in (8, 4, 2, 1) if n_cols % v == 0 and v <= (8 if halves else 4))
