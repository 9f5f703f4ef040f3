"""`Y[i] = sum of dropout(softmax_j(score[i, j])) V[j]`, each head for itself, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numba
import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.graph import Pattern
from accelviz.plans import Operand, Operation, Plan
from accelviz.plans.operation import FLOAT_BYTES, ROWS, Arrays, Traffic
from accelviz.plans.replay import rowwise
from accelviz.strategies.attention.edge_softmax import exact_softmax
from accelviz.strategies.attention.scores import (
    INPUTS,
    SMALLEST,
    dropout_factors,
    ingredients,
    score_error,
    score_of,
    settings_of,
)
from accelviz.strategies.exact import by_rows, product


def reference(score: str, pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Attend in float64; see `Operation.reference`.

    `exact_softmax` says what alpha is off by. A sum of deg products in any order adds deg eps.
    """
    leaky, a, A, B, features, slope = ingredients(score, inputs)
    heads, sizes = features.shape[1], np.abs(features)
    factors = dropout_factors(pattern.nnz, heads, inputs)
    Y = np.empty((2, pattern.n_rows, *features.shape[1:]))
    logs = np.empty((2, pattern.n_rows, heads))

    def attend(piece: Pattern, rows: slice, nonzeros: slice) -> None:
        scores = np.empty((2, piece.nnz, heads))
        index = piece.column_indices, piece.row_pointers
        _score_edges(*index, (leaky, a, A[rows], B, slope), *scores)
        alpha, logs[:, rows] = exact_softmax(piece, *scores)
        for sums, weights, V in zip(Y, alpha, (features, sizes), strict=True):
            weights = weights * factors[nonzeros] if factors.size else weights
            for h in range(heads):
                sums[rows, h] = product(piece, weights[:, h], V[:, h])

    by_rows(pattern, attend)
    Y[1] += 2 * SMALLEST * pattern.degrees[:, None, None]
    return {"Y": (Y[0], Y[1]), "logsumexp": (logs[0], logs[1])}


@numba.njit(cache=True, nogil=True)
def _score_edges(columns: Ints, row_pointers: Longs, scored: Any, scores: Any, errors: Any) -> None:
    leaky, a, A, B, slope = scored
    for row in range(row_pointers.size - 1):
        for k in range(row_pointers[row], row_pointers[row + 1]):
            for h in range(scores.shape[1]):
                ends = A[row, h], B[columns[k], h]
                scores[k, h] = score_of(leaky, a[h], *ends, slope)
                errors[k, h] = score_error(leaky, a[h], *ends)


def replay(score: str, plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Find each row's softmax on the way through its records; see `Operation.replay`."""
    order = plan.pattern.nnz if plan.layout.nonzero_order is None else plan.layout.nonzero_order

    def operands(inputs: Arrays, outputs: Arrays) -> tuple[tuple[Any, ...], int]:
        heads, n_cols = inputs["V"].shape[1:]
        factors = dropout_factors(order, heads, inputs)
        results = outputs["Y"], outputs["logsumexp"]
        return (ingredients(score, inputs), factors, *results), heads * n_cols

    return rowwise(plan, _attend, operands)


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _attend(first: int, last: int, walk: Any, scored: Any, factors: Any, Y: Any, logs: Any) -> None:
    first_record, nz_start, nz_count, columns, output_rows = walk
    leaky, a, A, B, V, slope = scored
    heads, n_cols = V.shape[1], V.shape[2]
    for row in range(first, last):
        i = output_rows[row]
        for h in range(heads):
            y = Y[i, h]
            y[:] = 0
            largest, total = np.float32(-np.inf), np.float32(0)
            for record in range(first_record[row], first_record[row + 1]):
                for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                    j = columns[k]
                    score = score_of(leaky, a[h], A[i, h], B[j, h], slope)
                    if score > largest:
                        before = np.exp(largest - score)
                        total *= before
                        for c in range(n_cols):
                            y[c] *= before
                        largest = score
                    power = np.exp(score - largest)
                    total += power
                    if factors.size:
                        power *= factors[k, h]
                    for c in range(n_cols):
                        y[c] += power * V[j, h, c]
            logs[i, h] = 0
            if total > 0:
                logs[i, h] = largest + np.log(total)
                for c in range(n_cols):
                    y[c] /= total


def traffic(score: str, pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count bytes: of each nonzero a column index and its column's features, of each row the rest.

    A column has the features V of all heads, and of `gat` and `cosine` a number of each head.
    """
    heads, features = widths["heads"], widths["heads"] * widths["n_cols"]
    column_bytes = FLOAT_BYTES * (0 if score == "gatv2" else heads)
    of_row = heads if score == "gat" else features
    streamed = FLOAT_BYTES * pattern.nnz + 2 * FLOAT_BYTES * (pattern.n_rows + 1)
    streamed += FLOAT_BYTES * (of_row + features + heads) * pattern.n_rows
    return Traffic.of_columns(pattern, element_bytes * features + column_bytes, streamed)


def _operation(score: str, formula: str) -> Operation:
    return Operation(
        name=score,
        formula=f"Y = sum of dropout(softmax({formula})) V",
        widths={"n_cols": None, "heads": 1},
        inputs=(*INPUTS[score], *settings_of(score)),
        outputs=(
            Operand("Y", (ROWS, "heads", "n_cols")),
            Operand("logsumexp", (ROWS, "heads")),
        ),
        fastest="lane_groups",
        reference=partial(reference, score),
        replay=partial(replay, score),
        traffic=partial(traffic, score),
    )


GAT = _operation("gat", "LeakyReLU(receiver + sender)")
COSINE = _operation("cosine", "scale Q V^T")
GATV2 = _operation("gatv2", "a LeakyReLU(R + V)")
