"""The base class of partition schemes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from accelviz.ordering import RowDegrees
from accelviz.partition.hardware_warps import HardwareWarps
from accelviz.partition.summary import PartitionSummary


@dataclass(frozen=True)
class Scheme(ABC):
    """A rule that assigns nonzeros to blocks and warps, described by a few integers.

    A subclass is a frozen dataclass. Its fields are integers, or None for an unknown value. The
    field `warps` is the number of workers (warps or subwarps) per block.

    Attributes
    ----------
    kind : str
        Name of the function that implements the scheme in the explorer's page (`src/schemes/`). If
        it is empty, the page requests the workload from Python.
    """

    kind: ClassVar[str] = ""

    @abstractmethod
    def summary(self, rows: RowDegrees, n_cols: int, hardware: HardwareWarps) -> PartitionSummary:
        """Compute the statistics of the partition in closed form.

        Parameters
        ----------
        rows : RowDegrees
            Degree histogram and, optionally, row pointers. Without row pointers, statistics that
            depend on the order of the rows are None.
        n_cols : int
            Number of columns of X.
        hardware : HardwareWarps
            Hardware warps of a block, from `Description.hardware`.
        """


@dataclass(frozen=True)
class Library(Scheme):
    """A vendor's library, whose assignment of work is unknown."""

    kind = "library"

    def summary(self, rows: RowDegrees, n_cols: int, hardware: HardwareWarps) -> PartitionSummary:
        """Return a summary without any statistics."""
        return PartitionSummary()
