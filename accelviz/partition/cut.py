"""What a strategy's cut is, a word and a few integers, from which everything about it follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from accelviz.ordering import RowDegrees
from accelviz.partition.block_level import block_summary
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


def _library(rows: RowDegrees, n_cols: int) -> PartitionSummary:
    return PartitionSummary()


#: Every scheme, and what counts it. The explorer's page has a function of the same name for each
#: (`src/cuts.ts`).
KINDS: dict[str, Callable[..., PartitionSummary]] = {
    "block_level": block_summary,
    "lane_groups": lane_group_summary,
    "runs": runs_summary,
    "rows": row_summary,
    "row_groups": row_group_summary,
    "merge_path": merge_path_summary,
    "products": run_summary,
    "vertex": vertex_summary,
    "library": _library,
}
