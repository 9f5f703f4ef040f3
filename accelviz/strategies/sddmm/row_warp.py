"""The simplest SDDMM strategy: one warp per row."""

from accelviz.strategies.blocks import RowStrategy
from accelviz.strategies.sddmm.operation import SDDMM


class RowWarp(RowStrategy):
    """The lanes of a warp multiply the columns of one nonzero of its row after the other.

    It is slow: one warp has all nonzeros of a long row, and loads one row of V at a time.
    """

    operation = SDDMM
    name = "row_warp"
    summary = "a warp per row, one nonzero after the other, sums by shuffles"
    file = "sddmm/row_warp.cu"
