"""The gradients of an SpMM, `dX = A^T dY` and `d_values[k] = dY[i] . X[j]`, as one operation.

Strategies walk A^T by rows, so that they read each dY[i] once for both gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from accelviz.arrays import Floats
from accelviz.compiled import njit
from accelviz.graph import Pattern
from accelviz.plans import Operand, Operation, Plan
from accelviz.plans.operation import COLUMNS, EPS32, FLOAT_BYTES, NONZEROS, ROWS, Arrays, Traffic
from accelviz.strategies.exact import edge_dots, replay_rows


def reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Return {output: (values, error bounds)} in float64; see `Operation.reference`.

    The bound of dX is that of `spmm`.
    """
    X, dY, values = inputs["X"], inputs["dY"], inputs["values"]
    dots = edge_dots(pattern, dY[:, None], X[:, None])
    index = pattern.column_indices, pattern.row_pointers
    dX, magnitude = (
        sparse.csr_array((weights, *index), shape=pattern.shape).T @ gradient
        for weights, gradient in ((values, dY), (np.abs(values), np.abs(dY)))
    )
    degrees = np.bincount(pattern.column_indices, minlength=pattern.shape[1])
    return {
        "d_values": (dots[0][:, 0], dots[1][:, 0]),
        "dX": (dX, EPS32 * degrees[:, None] * magnitude),
    }


def replay(plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Execute the workload's records on the CPU; see `Operation.replay`."""
    names = "values", "X", "dY", "d_values", "dX"
    return replay_rows(gradient_rows, names, plan, plan.layout.nonzero_order)


# "reassoc" lets the dot product be a sum of vectors.
@njit(nogil=True, fastmath={"contract", "reassoc"})
def gradient_rows(
    first: int,
    last: int,
    walk: Any,
    order: Any,
    values: Floats,
    X: Floats,
    dY: Floats,
    d_values: Floats,
    dX: Floats,
) -> None:
    """Compute rows `first` to `last` (exclusive) in the order of the walk.

    `walk` has five arrays: first record of each row, first nonzero and number of nonzeros of each
    record, column of each nonzero, output row of each row. They describe A^T.
    """
    first_record, nz_start, nz_count, columns, output_rows = walk
    for row in range(first, last):
        j = output_rows[row]
        dX[j] = 0
        for record in range(first_record[row], first_record[row + 1]):
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                i, total = columns[k], np.float32(0)
                for c in range(X.shape[1]):
                    dX[j, c] += values[k] * dY[i, c]
                    total += dY[i, c] * X[j, c]
                d_values[order[k]] = total


def traffic(pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count bytes: dY gathered; X, dX, pointers, indices, weights and d_values streamed."""
    n_rows, n_columns = pattern.shape
    row_bytes = FLOAT_BYTES * widths["n_cols"]
    # Index, weight and d_values of each nonzero; pointers of int64.
    streamed = 3 * FLOAT_BYTES * pattern.nnz + 2 * FLOAT_BYTES * (n_columns + 1)
    streamed += 2 * row_bytes * n_columns
    compulsory = streamed + row_bytes * int(np.count_nonzero(pattern.degrees))
    return Traffic(compulsory, row_bytes * pattern.nnz, streamed, n_rows, row_bytes)


SPMM_GRADIENT = Operation(
    name="spmm_gradient",
    formula="dX = A^T dY, d_values = (dY X^T) at the nonzeros of A",
    widths={"n_cols": None},
    inputs=(
        Operand("values", (NONZEROS,), weights=True),
        Operand("X", (COLUMNS, "n_cols")),
        Operand("dY", (ROWS, "n_cols"), gathered=True),
    ),
    outputs=(Operand("d_values", (NONZEROS,)), Operand("dX", (COLUMNS, "n_cols"))),
    fastest="lane_groups",
    reference=reference,
    replay=replay,
    traffic=traffic,
    by_sender=True,  # strategies walk the columns of A
)
