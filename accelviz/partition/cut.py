"""What a strategy's cut is, a word and a few integers, from which everything about it follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from accelviz.ordering import RowDegrees
from accelviz.partition.block_level import BlockSetting, block_summary
from accelviz.partition.lane_groups import lane_group_summary
from accelviz.partition.merge_path import merge_path_summary
from accelviz.partition.nonzero_runs import run_summary
from accelviz.partition.row_groups import row_group_summary
from accelviz.partition.row_split import row_summary
from accelviz.partition.summary import PartitionSummary
from accelviz.partition.thread_groups import vertex_summary
from accelviz.partition.warp_level import runs_summary


@dataclass(frozen=True)
class Cut:
    """How nonzeros are dealt out, for those who do not plan: summaries, and the explorer's page.

    Attributes
    ----------
    kind : str
        The scheme, one of `KINDS`.
    arguments : mapping of str to int or None
        What the scheme needs besides degrees and columns: its keywords in `KINDS`. `warps` is
        always the workers of a block. None where it is not known.
    """

    kind: str
    arguments: Mapping[str, int | None]

    def summary(self, rows: RowDegrees, n_cols: int) -> PartitionSummary:
        """Count what the scheme makes of such rows, in closed form."""
        return KINDS[self.kind](rows, n_cols, **self.arguments)


def _block_level(rows: RowDegrees, n_cols: int, *, warps: int, most: int) -> PartitionSummary:
    return block_summary(rows, n_cols, BlockSetting(warps, most))


def _lane_groups(
    rows: RowDegrees, n_cols: int, *, warps: int, most: int, short: int, tiles: int | None,
    in_place: int, atomics: int = 0,
) -> PartitionSummary:  # fmt: skip
    found = lane_group_summary(rows.histogram, BlockSetting(warps, most), short, tiles)
    if not atomics:
        return found
    return replace(found, global_atomics=(found.global_atomics or 0) + atomics * rows.histogram.nnz)


def _runs(
    rows: RowDegrees, n_cols: int, *, most: int, warps: int, line_bytes: int
) -> PartitionSummary:
    return runs_summary(rows, n_cols, most, warps, line_bytes)


def _rows(
    rows: RowDegrees, n_cols: int, *, each: int, warps: int, atomics: int = 0
) -> PartitionSummary:
    found = row_summary(rows, each, warps)
    return replace(found, global_atomics=atomics * rows.histogram.nnz)


def _row_groups(
    rows: RowDegrees, n_cols: int, *, most: int, heads: int, warps: int
) -> PartitionSummary:
    return row_group_summary(rows, most, heads, warps)


def _merge_path(rows: RowDegrees, n_cols: int, *, items: int, warps: int) -> PartitionSummary:
    return merge_path_summary(rows, n_cols, items, warps)


def _products(
    rows: RowDegrees, n_cols: int, *, run: int, heads: int, warps: int, atomics: int
) -> PartitionSummary:
    return run_summary(rows, run, heads, warps, atomics * rows.histogram.nnz * n_cols)


def _vertex(rows: RowDegrees, n_cols: int, *, warps: int) -> PartitionSummary:
    return vertex_summary(rows, warps)


def _library(rows: RowDegrees, n_cols: int) -> PartitionSummary:
    return PartitionSummary()


#: Every scheme. The explorer's page has a function of the same name for each (`cuts.js`).
KINDS: dict[str, Callable[..., PartitionSummary]] = {
    "block_level": _block_level,
    "lane_groups": _lane_groups,
    "runs": _runs,
    "rows": _rows,
    "row_groups": _row_groups,
    "merge_path": _merge_path,
    "products": _products,
    "vertex": _vertex,
    "library": _library,
}
