"""A description of a strategy's plan without building it: partition scheme and lanes' columns."""

from __future__ import annotations

from dataclasses import dataclass

from accelviz.ordering import RowDegrees
from accelviz.partition.hardware_warps import HardwareWarps, LaneColumns, WorkerLanes
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import PartitionSummary


@dataclass(frozen=True)
class Description:
    """The mapping of rows of known degrees by a strategy.

    Attributes
    ----------
    scheme : Scheme, optional
        Partition scheme, with a closed form of its statistics. None if it depends on the graph.
    lanes : LaneColumns, optional
        Columns of a gathered row that a lane reads. None if unknown; a trace shows them.
    workers : WorkerLanes, optional
        Lanes of a block's workers. None if the workers are warps, or combined warps of as many
        lanes as `lanes` has.
    text : str
        What the strategy does with these settings, in one line; "" if `Strategy.summary` says it.
    """

    scheme: Scheme | None = None
    lanes: LaneColumns | None = None
    workers: WorkerLanes | None = None
    text: str = ""

    def hardware(self, workers: int, n_cols: int) -> HardwareWarps:
        """Return the hardware warps of a block of `workers` workers."""
        return HardwareWarps.of(workers, self.workers, self.lanes, n_cols)

    def summary(self, rows: RowDegrees, n_cols: int) -> PartitionSummary | None:
        """Return the scheme's statistics; None if there is no scheme."""
        if self.scheme is None:
            return None
        hardware = self.hardware(getattr(self.scheme, "warps", 0), n_cols)
        return self.scheme.summary(rows, n_cols, hardware)
