"""The kernel a beginner writes: one thread a row."""

from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.spmm.rows import RowStrategy


class RowThread(RowStrategy):
    """A thread multiplies a whole row: lanes wait for their warp's longest row, and read X apart.

    It takes `block_warps` (warps of a block, 1 to 32).
    """

    name = "row_thread"
    summary = "the naive kernel: one thread a row"
    rows_per_warp = WARP_SIZE
