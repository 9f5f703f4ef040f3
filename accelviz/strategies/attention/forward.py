"""Attention in one pass, `Y[i] = sum over j of dropout(softmax(score[i, j])) V[j]` per head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.compiled import njit
from accelviz.graph import Pattern
from accelviz.plans import Operand, Operation, Plan
from accelviz.plans.operation import FLOAT_BYTES, ROWS, Arrays, Traffic
from accelviz.plans.replay import rowwise
from accelviz.strategies.attention.edge_softmax import exact_softmax
from accelviz.strategies.attention.scores import (
    INPUTS,
    SMALLEST,
    dropout_factors,
    score_error,
    score_of,
    score_operands,
    settings_of,
)
from accelviz.strategies.exact import by_rows, product


def reference(score: str, pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Compute in float64; see `Operation.reference`.

    The bound is `exact_softmax`'s for alpha, plus deg eps for a sum of deg products in any order.
    """
    leaky, a, A, B, features, slope = score_operands(score, inputs)
    heads, magnitudes = features.shape[1], np.abs(features)
    factors = dropout_factors(pattern.nnz, heads, inputs)
    Y = np.empty((2, pattern.n_rows, *features.shape[1:]))
    row_max, row_sum = np.empty((2, 2, pattern.n_rows, heads))

    def attend(piece: Pattern, rows: slice, nonzeros: slice) -> None:
        scores = np.empty((2, piece.nnz, heads))
        index = piece.column_indices, piece.row_pointers
        _score_edges(*index, (leaky, a, A[rows], B, slope), *scores)
        alpha, row_max[:, rows], row_sum[:, rows] = exact_softmax(piece, *scores)
        for sums, weights, V in zip(Y, alpha, (features, magnitudes), strict=True):
            weights = weights * factors[nonzeros] if factors.size else weights
            for h in range(heads):
                sums[rows, h] = product(piece, weights[:, h], V[:, h])

    by_rows(pattern, attend)
    Y[1] += 2 * SMALLEST * pattern.degrees[:, None, None]
    sums = {"Y": Y, "row_max": row_max, "row_sum": row_sum}
    return {name: (expected, bound) for name, (expected, bound) in sums.items()}


@njit(nogil=True)
def _score_edges(columns: Ints, row_pointers: Longs, scored: Any, scores: Any, errors: Any) -> None:
    leaky, a, A, B, slope = scored
    for row in range(row_pointers.size - 1):
        for k in range(row_pointers[row], row_pointers[row + 1]):
            for h in range(scores.shape[1]):
                ends = A[row, h], B[columns[k], h]
                scores[k, h] = score_of(leaky, a[h], *ends, slope)
                errors[k, h] = score_error(leaky, a[h], *ends)


def replay(score: str, plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Compute softmax and sum in one pass over each row's records; see `Operation.replay`."""
    order = plan.pattern.nnz if plan.layout.nonzero_order is None else plan.layout.nonzero_order

    def operands(inputs: Arrays, outputs: Arrays) -> tuple[tuple[Any, ...], int]:
        heads, n_cols = inputs["V"].shape[1:]
        factors = dropout_factors(order, heads, inputs)
        results = outputs["Y"], outputs["row_max"], outputs["row_sum"]
        return (score_operands(score, inputs), factors, results), heads * n_cols

    return rowwise(plan, _attend, operands)


@njit(nogil=True, fastmath={"contract"})
def _attend(first: int, last: int, walk: Any, scored: Any, factors: Any, results: Any) -> None:
    first_record, nz_start, nz_count, columns, output_rows = walk
    (leaky, a, A, B, V, slope), (Y, row_max, row_sum) = scored, results
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
                        rescale = np.exp(largest - score)
                        total *= rescale
                        for c in range(n_cols):
                            y[c] *= rescale
                        largest = score
                    power = np.exp(score - largest)
                    total += power
                    if factors.size:
                        power *= factors[k, h]
                    for c in range(n_cols):
                        y[c] += power * V[j, h, c]
            row_max[i, h], row_sum[i, h] = largest if total != 0 else np.float32(0), total
            if total > 0:
                for c in range(n_cols):
                    y[c] /= total


def traffic(score: str, pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count bytes of V (of `dot`: K and V) and one number per head (`gat`, `cosine`), gathered.

    Streamed are the column indices, the row pointers, and each row's operand, Y, row_max and
    row_sum.
    """
    heads, features = widths["heads"], widths["heads"] * widths["n_cols"]
    column_bytes = {"gatv2": 0, "dot": element_bytes * features}.get(score, FLOAT_BYTES * heads)
    row_operand = heads if score == "gat" else features
    streamed = FLOAT_BYTES * pattern.nnz + 2 * FLOAT_BYTES * (pattern.n_rows + 1)
    streamed += FLOAT_BYTES * (row_operand + features + 2 * heads) * pattern.n_rows
    return Traffic.of_columns(pattern, element_bytes * features + column_bytes, streamed)


def _operation(score: str, formula: str) -> Operation:
    return Operation(
        name=score,
        formula=f"Y = sum of dropout(softmax({formula})) V",
        widths={"n_cols": None, "heads": 1},
        inputs=(*INPUTS[score], *settings_of(score)),
        outputs=(
            Operand("Y", (ROWS, "heads", "n_cols")),
            Operand("row_max", (ROWS, "heads")),
            Operand("row_sum", (ROWS, "heads")),
        ),
        fastest="lane_groups",
        reference=partial(reference, score),
        replay=partial(replay, score),
        traffic=partial(traffic, score),
    )


GAT = _operation("gat", "LeakyReLU(receiver + sender)")
DOT = _operation("dot", "Q K^T")
COSINE = _operation("cosine", "scale Q V^T")
GATV2 = _operation("gatv2", "a LeakyReLU(R + V)")
