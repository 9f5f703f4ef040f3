"""The contract of a partition scheme: how nonzeros are dealt out, in a few integers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from accelviz.ordering import RowDegrees
from accelviz.partition.summary import PartitionSummary


@dataclass(frozen=True)
class Scheme(ABC):
    """How nonzeros are dealt out to blocks and workers; a subclass is a frozen dataclass.

    Its fields are integers, or None where a value is not known. One is `warps`, the workers of a
    block.

    Attributes
    ----------
    kind : str
        The name of the scheme's function in the explorer's page (`src/schemes/`). Without one, the
        page asks Python for the workload.
    """

    kind: ClassVar[str] = ""

    @abstractmethod
    def summary(self, rows: RowDegrees, n_cols: int) -> PartitionSummary:
        """Count in closed form what the scheme makes of rows.

        Parameters
        ----------
        rows : RowDegrees
            With the row pointers, or without: then what depends on the rows' order is None.
        n_cols : int
            Columns of the features.
        """


@dataclass(frozen=True)
class Library(Scheme):
    """A vendor's library, which does not say what its warps do."""

    kind = "library"

    def summary(self, rows: RowDegrees, n_cols: int) -> PartitionSummary:
        """Know nothing."""
        return PartitionSummary()
