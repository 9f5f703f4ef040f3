"""`scores[k] = U[i] . V[j]` for each nonzero k = (i, j): sampled dense-dense matrix product."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from accelviz.graph import Pattern
from accelviz.plans import Operand, Operation, Plan
from accelviz.plans.operation import EPS32, FLOAT_BYTES, NONZEROS, ROWS, SENDERS, Arrays, Traffic
from accelviz.plans.replay import Records, in_pieces

#: Nonzeros whose rows of U and V the reference has in memory at a time, times columns.
_PIECE_ELEMENTS = 1 << 22


def reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Multiply in float64 by NumPy; see `Operation.reference`.

    A sum of d products is off by at most d * eps32 * sum |u v|, as in `spmm`.
    """
    U, V = inputs["U"], inputs["V"]
    heads, n_cols = U.shape[1:]
    expected, bound = np.empty((2, pattern.nnz, heads))
    step = max(1, _PIECE_ELEMENTS // (heads * n_cols))
    for first in range(0, pattern.nnz, step):
        part = slice(first, min(first + step, pattern.nnz))
        positions = np.arange(part.start, part.stop)
        row = np.searchsorted(pattern.row_pointers, positions, side="right") - 1
        products = U[row] * V[pattern.column_indices[part]]
        expected[part] = products.sum(axis=2)
        bound[part] = n_cols * EPS32 * np.abs(products).sum(axis=2)
    return {"scores": (expected, bound)}


def traffic(pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count bytes: 4 for a column index and a score, 8 for a row pointer, U read once in order."""
    row = element_bytes * widths["n_cols"] * widths["heads"]
    streamed = FLOAT_BYTES * (1 + widths["heads"]) * pattern.nnz
    streamed += 2 * FLOAT_BYTES * (pattern.n_rows + 1) + row * pattern.n_rows
    return Traffic(
        compulsory=streamed + row * pattern.used_columns,
        gathered=row * pattern.nnz,
        streamed=streamed,
        gathered_rows=pattern.shape[1],
        gathered_row_bytes=row,
    )


def replay(plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Multiply for every record of the workload; see `Operation.replay`."""
    records = Records.by_row(plan)
    columns, output_rows = plan.walked.column_indices, plan.output_rows
    order = np.arange(plan.pattern.nnz) if plan.nonzero_order is None else plan.nonzero_order
    clears = "scores" in plan.cleared

    def run(inputs: Arrays, outputs: Arrays) -> None:
        U, V, scores = inputs["U"], inputs["V"], outputs["scores"]
        if clears:
            scores[...] = 0

        def piece(first: int, last: int) -> None:
            arrays = (records.first, records.nz_start, records.nz_count, columns, order)
            _dot_rows(first, last, *arrays, output_rows, U, V, scores)

        in_pieces(piece, records, U.shape[1] * U.shape[2])

    return run


@numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _dot_rows(
    first: int,
    last: int,
    first_record: npt.NDArray[np.int64],
    nz_start: npt.NDArray[np.int64],
    nz_count: npt.NDArray[np.int32],
    columns: npt.NDArray[np.int32],
    order: npt.NDArray[np.int64],
    output_rows: npt.NDArray[np.int32],
    U: npt.NDArray[np.float32],
    V: npt.NDArray[np.float32],
    scores: npt.NDArray[np.float32],
) -> None:
    heads, n_cols = U.shape[1], U.shape[2]
    for row in range(first, last):
        u = U[output_rows[row]]
        for record in range(first_record[row], first_record[row + 1]):
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                v = V[columns[k]]
                for h in range(heads):
                    total = np.float32(0)
                    for c in range(n_cols):
                        total += u[h, c] * v[h, c]
                    scores[order[k], h] = total


SDDMM = Operation(
    name="sddmm",
    formula="scores = (U V^T) at the nonzeros of A",
    widths={"n_cols": None, "heads": 1},
    inputs=(
        Operand("U", (ROWS, "heads", "n_cols"), gathered=True),
        Operand("V", (SENDERS, "heads", "n_cols"), gathered=True),
    ),
    outputs=(Operand("scores", (NONZEROS, "heads")),),
    fastest="lane_groups",
    reference=reference,
    replay=replay,
    traffic=traffic,
)
