"""`scores[k] = U[i] . V[j]` for each nonzero k = (i, j): sampled dense-dense matrix product."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np

from accelviz.arrays import Floats, Ints, Longs
from accelviz.errors import PartitionError
from accelviz.graph import MAX_SIDE, Graph, Pattern
from accelviz.plans import Operand, Operation, Plan
from accelviz.plans.operation import EPS32, FLOAT_BYTES, NONZEROS, ROWS, SENDERS, Arrays, Traffic
from accelviz.plans.replay import Records, in_pieces

#: Nonzeros of a piece that one thread multiplies at a time in the reference.
_PIECE_NONZEROS = 1 << 18


def reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Multiply in float64; see `Operation.reference`.

    A sum of d products is off by at most d * eps32 * sum |u v|, as in `spmm`.
    """
    U, V = inputs["U"], inputs["V"]
    expected, bound = np.empty((2, pattern.nnz, U.shape[1]))

    def piece(first: int) -> None:
        last = min(first + _PIECE_NONZEROS, pattern.nnz)
        row = np.searchsorted(pattern.row_pointers, np.arange(first, last), side="right") - 1
        columns = pattern.column_indices[first:last]
        _exact_dots(row, columns, U, V, expected[first:last], bound[first:last])

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(piece, range(0, pattern.nnz, _PIECE_NONZEROS)))
    bound *= U.shape[2] * EPS32
    return {"scores": (expected, bound)}


@numba.njit(cache=True, nogil=True)
def _exact_dots(row: Longs, columns: Ints, U: Any, V: Any, expected: Any, bound: Any) -> None:
    for k in range(row.size):
        for h in range(U.shape[1]):
            u, v = U[row[k], h], V[columns[k], h]
            total = magnitude = 0.0
            for c in range(u.size):
                total += u[c] * v[c]
                magnitude += abs(u[c] * v[c])
            expected[k, h], bound[k, h] = total, magnitude


def check_heads(graph: Graph, heads: int) -> None:
    """Refuse rows and heads that a kernel could not count in 31 bits.

    Raises
    ------
    PartitionError
    """
    if max(graph.shape) * heads > MAX_SIDE:
        sides = f"{max(graph.shape):,} rows or columns of {heads} heads"
        raise PartitionError("heads", sides, f"a product of at most {MAX_SIDE:,}")


def terms(pattern: Pattern, sizes: Mapping[str, int]) -> int:
    """Count the products of a score."""
    return sizes["n_cols"]


def traffic(pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count bytes: 4 for a column index and a score, 8 for a row pointer, U read once in order."""
    row = element_bytes * widths["n_cols"] * widths["heads"]
    streamed = FLOAT_BYTES * (1 + widths["heads"]) * pattern.nnz
    streamed += 2 * FLOAT_BYTES * (pattern.n_rows + 1) + row * pattern.n_rows
    return Traffic.of_senders(pattern, row, streamed)


def replay(plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Multiply for every record of the workload; see `Operation.replay`."""
    records = Records.by_row(plan)
    order = (
        np.arange(plan.pattern.nnz)
        if plan.layout.nonzero_order is None
        else plan.layout.nonzero_order
    )
    clears = "scores" in plan.zero_outputs

    def run(inputs: Arrays, outputs: Arrays) -> None:
        U, V, scores = inputs["U"], inputs["V"], outputs["scores"]
        if clears:
            scores[...] = 0

        def piece(first: int, last: int) -> None:
            _dot_rows(first, last, records.walk, order, U, V, scores)

        in_pieces(piece, records, U.shape[1] * U.shape[2])

    return run


@numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _dot_rows(
    first: int, last: int, walk: Any, order: Longs, U: Floats, V: Floats, scores: Floats
) -> None:
    first_record, nz_start, nz_count, columns, output_rows = walk
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
    terms=terms,
)
