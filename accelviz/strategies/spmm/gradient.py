"""`dX = A^T dY` and `d_values[k] = dY[i] . X[j]`: both gradients of an SpMM, of one gather."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np

from accelviz.arrays import Floats, Ints, Longs
from accelviz.graph import Pattern
from accelviz.plans import Operand, Operation, Plan
from accelviz.plans.operation import EPS32, FLOAT_BYTES, NONZEROS, ROWS, SENDERS, Arrays, Traffic
from accelviz.plans.replay import Records, in_pieces


def reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Multiply in float64; see `Operation.reference`. Sums are off as those of `spmm`."""
    X, dY = inputs["X"], inputs["dY"]
    dX, magnitude = np.zeros((2, *X.shape))
    d_values, bound = np.zeros((2, pattern.nnz))
    operands, sums = (inputs["values"], X, dY), (dX, magnitude, d_values, bound)
    _exact_terms(pattern.row_pointers, pattern.column_indices, operands, sums)
    degrees = np.bincount(pattern.column_indices, minlength=pattern.shape[1])
    return {
        "d_values": (d_values, EPS32 * X.shape[1] * bound),
        "dX": (dX, EPS32 * degrees[:, None] * magnitude),
    }


@numba.njit(cache=True, nogil=True)
def _exact_terms(row_pointers: Longs, columns: Ints, operands: Any, sums: Any) -> None:
    (values, X, dY), (dX, magnitude, d_values, bound) = operands, sums
    for i in range(row_pointers.size - 1):
        for k in range(row_pointers[i], row_pointers[i + 1]):
            j = columns[k]
            for c in range(X.shape[1]):
                dX[j, c] += values[k] * dY[i, c]
                magnitude[j, c] += abs(values[k] * dY[i, c])
                d_values[k] += dY[i, c] * X[j, c]
                bound[k] += abs(dY[i, c] * X[j, c])


def replay(plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Follow the records of senders; see `Operation.replay`."""
    records, order = Records.by_row(plan), plan.layout.nonzero_order

    def run(inputs: Arrays, outputs: Arrays) -> None:
        outputs["dX"][...] = 0

        def piece(first: int, last: int) -> None:
            operands = (inputs["values"], inputs["X"], inputs["dY"])
            sums = outputs["d_values"], outputs["dX"]
            _terms(first, last, records.walk, order, operands, *sums)

        in_pieces(piece, records, inputs["X"].shape[1])

    return run


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _terms(
    first: int, last: int, walk: Any, order: Any, operands: Any, d_values: Floats, dX: Floats
) -> None:
    first_record, nz_start, nz_count, columns, output_rows = walk
    values, X, dY = operands
    for row in range(first, last):
        j = output_rows[row]
        for record in range(first_record[row], first_record[row + 1]):
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                i, total = columns[k], np.float32(0)
                for c in range(X.shape[1]):
                    dX[j, c] += values[k] * dY[i, c]
                    total += dY[i, c] * X[j, c]
                d_values[order[k]] = total


def traffic(pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count bytes: dY gathered; of a nonzero its target, weight and gradient, of a sender X, dX."""
    n_rows, n_senders = pattern.shape
    row = FLOAT_BYTES * widths["n_cols"]
    streamed = 3 * FLOAT_BYTES * pattern.nnz + 2 * FLOAT_BYTES * (n_senders + 1)
    streamed += 2 * row * n_senders
    return Traffic(
        compulsory=streamed + row * int(np.count_nonzero(pattern.degrees)),
        gathered=row * pattern.nnz,
        streamed=streamed,
        gathered_rows=n_rows,
        gathered_row_bytes=row,
    )


SPMM_GRADIENT = Operation(
    name="spmm_gradient",
    formula="dX = A^T dY, d_values = (dY X^T) at the nonzeros of A",
    widths={"n_cols": None},
    inputs=(
        Operand("values", (NONZEROS,), weights=True),
        Operand("X", (SENDERS, "n_cols")),
        Operand("dY", (ROWS, "n_cols"), gathered=True),
    ),
    outputs=(Operand("d_values", (NONZEROS,)), Operand("dX", (SENDERS, "n_cols"))),
    fastest="lane_groups",
    reference=reference,
    replay=replay,
    traffic=traffic,
    by_sender=True,
)
