"""How fast an operation could be on a machine: two limits, from what it was measured to do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from accelviz.devices.base import Limits
from accelviz.graph import Pattern
from accelviz.plans import Operation
from accelviz.plans.operation import FLOAT_BYTES


@dataclass(frozen=True)
class OperationLimits:
    """Two times that an operation is held against, and what they are made of.

    Attributes
    ----------
    compulsory_bytes : int
        Every input read once and every output written once.
    gather_bytes : int
        A row of the gathered operand read anew for each nonzero: of an SpMM 4 d nnz, or 2 d nnz
        where X is kept in 16 bits.
    copy_bandwidth, gather_bandwidth : float
        Of the machine, in bytes per second; the latter for random rows of an operand of this shape,
        NaN where none is gathered.
    floor_seconds : float
        The compulsory bytes at copy speed, not below a launch. Physical for any order of columns.
    gather_seconds : float
        The random-gather limit: the gather bytes at gather speed plus the rest at copy speed, not
        below a launch. What columns in no order allow; locality can go past it.
    """

    compulsory_bytes: int
    gather_bytes: int
    copy_bandwidth: float
    gather_bandwidth: float
    floor_seconds: float
    gather_seconds: float


def limits(
    operation: Operation,
    pattern: Pattern,
    widths: Mapping[str, int],
    machine: Limits,
    element_bytes: int = FLOAT_BYTES,
) -> OperationLimits:
    """Work out both limits of an operation.

    Parameters
    ----------
    operation : Operation
    pattern : Pattern
    widths : mapping of str to int
        Such as `{"n_cols": 64}`.
    machine : Limits
        Measured in the same run as the times that will be held against the limits.
    element_bytes : int
        Bytes of an element of gathered inputs, 4 or 2; every other element has four.
    """
    moved = operation.traffic(pattern, widths, element_bytes)
    copy, floats = machine.copy_bandwidth, -(-moved.gathered_row_bytes // FLOAT_BYTES)
    gather = machine.gather_bandwidth(moved.gathered_rows, floats) if floats else math.nan
    gathering = moved.gathered / gather if floats else 0.0
    least = machine.launch_seconds
    return OperationLimits(
        compulsory_bytes=moved.compulsory,
        gather_bytes=moved.gathered,
        copy_bandwidth=copy,
        gather_bandwidth=gather,
        floor_seconds=max(moved.compulsory / copy, least),
        gather_seconds=max(gathering + moved.streamed / copy, least),
    )
