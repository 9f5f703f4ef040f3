"""Lower limits of the time of an operation, from the measured bandwidth of a machine."""

from __future__ import annotations

import math
from collections.abc import Mapping

from accelviz.devices.base import Limits
from accelviz.graph import Pattern
from accelviz.plans import Operation
from accelviz.plans.operation import FLOAT_BYTES


def limits(
    operation: Operation,
    pattern: Pattern,
    widths: Mapping[str, int],
    machine: Limits,
    element_bytes: int = FLOAT_BYTES,
) -> dict[str, float]:
    """Compute the two limits of an operation's time, as columns of the result table.

    Parameters
    ----------
    operation : Operation
    pattern : Pattern
    widths : mapping of str to int
        Such as `{"n_cols": 64}`.
    machine : Limits
        Bandwidths, measured in the same run as the times to compare with the limits.
    element_bytes : int
        Bytes per element of gathered inputs, 4 or 2; other elements have 4.

    Returns
    -------
    dict of str to float

        - `floor_us`: time to read every input once and to write every output once at copy
          bandwidth, at least that of an empty launch. It holds for any order of columns.
        - `gather_limit_us`: time to read a row of the gathered operand for each nonzero (4 d nnz
          bytes in SpMM, or 2 d nnz with X in 16 bits) at gather bandwidth, plus the other bytes at
          copy bandwidth; at least that of an empty launch. It assumes random columns: locality can
          make an operation faster.
        - `copy_gb_per_s`, `gather_gb_per_s`: measured bandwidths. The latter is for random rows of
          an operand of this shape; NaN if no operand is gathered.
    """
    traffic = operation.traffic(pattern, widths, element_bytes)
    copy, floats = machine.copy_bandwidth, -(-traffic.gathered_row_bytes // FLOAT_BYTES)
    gather = machine.gather_bandwidth(traffic.gathered_rows, floats) if floats else math.nan
    gather_seconds = traffic.gathered / gather if floats else 0.0
    launch = machine.launch_seconds
    return {
        "floor_us": 1e6 * max(traffic.compulsory / copy, launch),
        "gather_limit_us": 1e6 * max(gather_seconds + traffic.streamed / copy, launch),
        "copy_gb_per_s": copy / 1e9,
        "gather_gb_per_s": gather / 1e9,
    }
