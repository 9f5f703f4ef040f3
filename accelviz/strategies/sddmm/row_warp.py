"""The readable SDDMM: a warp a row."""

from accelviz.strategies.blocks import RowStrategy
from accelviz.strategies.sddmm.operation import SDDMM


class RowWarp(RowStrategy):
    """A warp has a row: its lanes walk the columns of one nonzero after the other.

    Correct and simple, and slow: a hub is one warp's, and only one row of V is on its way.
    """

    operation = SDDMM
    name = "row_warp"
    summary = "a warp a row, one nonzero after the other, sums by shuffles"
    file = "sddmm/row_warp.cu"
