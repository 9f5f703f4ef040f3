"""How fast an operation could be on a machine: two limits, from what it was measured to do."""

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
    """Work out the two times that an operation is held against, as columns of the result table.

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

    Returns
    -------
    dict of str to float

        - `floor_us`: every input read once and every output written once at copy speed, not below a
          launch. Physical for any order of columns.
        - `gather_limit_us`: a row of the gathered operand read anew for each nonzero (of an SpMM
          4 d nnz bytes, or 2 d nnz where X is kept in 16 bits) at gather speed, plus the rest at
          copy speed, not below a launch. What columns in no order allow; locality can go past it.
        - `copy_gb_per_s`, `gather_gb_per_s`: of the machine; the latter for random rows of an
          operand of this shape, NaN where none is gathered.
    """
    moved = operation.traffic(pattern, widths, element_bytes)
    copy, floats = machine.copy_bandwidth, -(-moved.gathered_row_bytes // FLOAT_BYTES)
    gather = machine.gather_bandwidth(moved.gathered_rows, floats) if floats else math.nan
    gathering = moved.gathered / gather if floats else 0.0
    least = machine.launch_seconds
    return {
        "floor_us": 1e6 * max(moved.compulsory / copy, least),
        "gather_limit_us": 1e6 * max(gathering + moved.streamed / copy, least),
        "copy_gb_per_s": copy / 1e9,
        "gather_gb_per_s": gather / 1e9,
    }
