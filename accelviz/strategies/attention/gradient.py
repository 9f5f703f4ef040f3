"""Gradients of attention by all of its inputs, given dY, the gradient by Y.

The softmax is computed again: alpha = exp(score - row_max[i]) / row_sum[i]. Let m be dropout's
factor, 0 or 1 / (1 - rate), and D[i] = dY[i] . Y[i]. Then d_score = alpha (m dY[i] . V[j] - D[i]),
and dV[j] is the sum of alpha m dY[i] over the nonzeros (i, j).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.compiled import njit
from accelviz.graph import Pattern
from accelviz.plans import Operand, Operation, Plan
from accelviz.plans.operation import COLUMNS, EPS32, FLOAT_BYTES, ROWS, Arrays, Traffic
from accelviz.plans.replay import Records, in_pieces
from accelviz.strategies.attention import forward
from accelviz.strategies.attention.scores import (
    EXP_SLOPE,
    EXP_ULPS,
    INPUTS,
    SMALLEST,
    dropout_factors,
    product,
    product_error,
    score_error,
    score_of,
    score_operands,
    settings_of,
)

_FEATURES = ("heads", "n_cols")
_OUTPUTS = {
    "gat": (
        Operand("d_receiver", (ROWS, "heads")),
        Operand("d_sender", (COLUMNS, "heads")),
        Operand("dV", (COLUMNS, *_FEATURES)),
    ),
    "dot": (
        Operand("dQ", (ROWS, *_FEATURES)),
        Operand("dK", (COLUMNS, *_FEATURES)),
        Operand("dV", (COLUMNS, *_FEATURES)),
    ),
    "cosine": (
        Operand("dQ", (ROWS, *_FEATURES)),
        Operand("dV", (COLUMNS, *_FEATURES)),
        Operand("d_scale", (COLUMNS, "heads")),
    ),
    "gatv2": (
        Operand("dR", (ROWS, *_FEATURES)),
        Operand("dV", (COLUMNS, *_FEATURES)),
        Operand("da", _FEATURES),
    ),
}


def reference(score: str, pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Compute in float64; see `Operation.reference`.

    Notes
    -----
    Every term has an error bound. That of alpha is a factor: exp of the errors of its score and of
    its exponent. Dot products have the bound of `sddmm`. A sum of n terms in any order adds
    (n + 2) eps times their magnitudes. A GPU may flush very small terms to zero at each of the four
    operations that compute and add one.
    """
    scored = _, a, A, B, features, _ = score_operands(score, inputs)
    factors = dropout_factors(pattern.nnz, features.shape[1], inputs)
    dA, dB, dV = (np.zeros((3, *array.shape)) for array in (A, B, features))
    da = np.zeros((3, *a.shape))
    results = inputs["Y"], inputs["dY"], inputs["row_max"], inputs["row_sum"]
    index = pattern.row_pointers, pattern.column_indices
    _exact_terms(*index, scored, factors, results, (dA, dB, dV, da))
    row_terms = pattern.degrees
    column_terms = np.bincount(pattern.column_indices, minlength=len(dV[0]))
    if score == "gat":
        sums = {"d_receiver": (dA[..., 0], row_terms), "d_sender": (dB[..., 0], column_terms)}
    elif score == "dot":  # B is K
        sums = {"dQ": (dA, row_terms), "dK": (dB, column_terms)}
    elif score == "cosine":  # B is scale V
        # The sums of terms take signed factors; those of magnitudes and errors absolute ones.
        V, scale = (
            np.stack([array, abs(array), abs(array)])
            for array in (features, inputs["scale"][..., None])
        )
        d_scale = (dB * V).sum(axis=-1)
        sums = {"dQ": (dA, row_terms), "d_scale": (d_scale, column_terms + features.shape[2])}
        dV, column_terms = dV + scale * dB, 2 * column_terms
    else:  # B is V
        dV, column_terms = dV + dB, 2 * column_terms
        sums = {"dR": (dA, row_terms), "da": (da, np.full(len(a), pattern.nnz + 3))}
    sums["dV"] = dV, column_terms
    return {name: _with_bound(*array) for name, array in sums.items()}


def _with_bound(sums: Any, terms: Any) -> tuple[Any, Any]:
    """Return a gradient and its bound from its sums of terms, magnitudes and errors."""
    n_terms = terms.reshape(-1, *[1] * (sums.ndim - 2))
    return sums[0], sums[2] + EPS32 * (n_terms + 3) * sums[1]


@njit(nogil=True)
def _add(sums: Any, index: Any, term: float, error: float) -> None:
    sums[0][index] += term
    sums[1][index] += abs(term)
    sums[2][index] += error + 4 * SMALLEST


@njit(nogil=True)
def _exact_terms(
    row_pointers: Longs, columns: Ints, scored: Any, factors: Any, results: Any, sums: Any
) -> None:
    leaky, a, A, B, V, slope = scored
    (Y, dY, row_max, row_sum), (dA, dB, dV, da) = results, sums
    heads, n_cols, width = V.shape[1], V.shape[2], A.shape[2]
    for i in range(row_pointers.size - 1):
        for h in range(heads):
            if row_pointers[i] == row_pointers[i + 1]:
                continue
            D, D_error = product(dY[i, h], Y[i, h]), product_error(dY[i, h], Y[i, h])
            for k in range(row_pointers[i], row_pointers[i + 1]):
                j = columns[k]
                score = score_of(leaky, a[h], A[i, h], B[j, h], slope)
                t = score - row_max[i, h]
                alpha = np.exp(t) / row_sum[i, h]
                exponent_error = score_error(leaky, a[h], A[i, h], B[j, h])
                exponent_error += EPS32 * ((1 + EXP_SLOPE) * abs(t) + EXP_ULPS + 6)
                alpha_error = alpha * np.expm1(exponent_error) + 2 * SMALLEST
                g, g_error = product(dY[i, h], V[j, h]), product_error(dY[i, h], V[j, h])
                dropout = factors[k, h] if factors.size else np.float32(1)
                weight, weight_error = alpha * dropout, alpha_error * dropout
                d_score = alpha * (dropout * g - D)
                d_error = alpha_error * (abs(dropout * g) + abs(D)) + SMALLEST
                d_error += alpha * (dropout * g_error + D_error)
                for c in range(n_cols):
                    _add(dV, (j, h, c), weight * dY[i, h, c], weight_error * abs(dY[i, h, c]))
                for c in range(width):
                    if leaky:
                        x = A[i, h, c] + B[j, h, c]
                        derivative = 1.0 if x > 0 else slope
                        by_A = by_B = derivative * a[h, c]
                        size = abs(A[i, h, c]) + abs(B[j, h, c])
                        error = d_error * abs(derivative * x)
                        error += 4 * EPS32 * abs(d_score * derivative) * size
                        _add(da, (h, c), d_score * derivative * x, error)
                    else:
                        by_A, by_B = B[j, h, c], A[i, h, c]
                    error = d_error + 4 * EPS32 * abs(d_score)
                    _add(dA, (i, h, c), d_score * by_A, error * abs(by_A))
                    _add(dB, (j, h, c), d_score * by_B, error * abs(by_B))


def completed(score: str, pattern: Pattern, inputs: Arrays) -> Arrays:
    """Return Y, row_max and row_sum that belong to the other, random, inputs."""
    doubles = {name: np.asarray(array, np.float64) for name, array in inputs.items()}
    defaults = {operand.name: operand.setting(None) for operand in settings_of(score)}
    results = forward.reference(score, pattern, doubles | defaults)
    return {name: expected.astype(np.float32) for name, (expected, _) in results.items()}


def replay(score: str, plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Execute the records of columns, then those of rows, on the CPU; see `Operation.replay`.

    A plan whose kernel adds the sums of rows by atomics has no records of rows; then each row is
    one record.
    """
    columns, pattern, order = Records.by_row(plan), plan.pattern, plan.layout.nonzero_order
    if plan.then:
        (row_plan,) = plan.then
        rows, row_order = Records.by_row(row_plan), row_plan.layout.nonzero_order
    else:
        row_range = np.arange(pattern.n_rows + 1)
        runs = pattern.row_pointers[:-1], pattern.degrees
        walk = (row_range, *runs, pattern.column_indices, row_range[:-1].astype(np.int32))
        rows, row_order = Records(walk, pattern.row_pointers), None
    nnz = pattern.nnz
    names = [operand.name for operand in _OUTPUTS[score]]

    def run(inputs: Arrays, outputs: Arrays) -> None:
        scored = score_operands(score, inputs)
        heads, n_cols = inputs["V"].shape[1:]
        with np.errstate(divide="ignore"):  # rows without nonzeros
            inverse_sum = 1 / inputs["row_sum"]
        results = inputs["dY"], inputs["row_max"], inverse_sum, _products(inputs["dY"], inputs["Y"])
        dV = outputs["dV"]
        dA = outputs[names[0]].reshape(-1, heads, scored[2].shape[2])
        dB = outputs["d_sender"][..., None] if score == "gat" else dV
        if score in ("dot", "cosine"):
            dB = outputs["dK"] if score == "dot" else np.empty_like(dV)
        dV[...], dA[...], dB[...] = 0, 0, 0
        by_piece = {row: np.zeros_like(scored[1]) for row in rows.pieces}  # of da

        def add_columns(first: int, last: int) -> None:
            da = by_piece[0]  # is not written
            _add_terms(first, last, columns.walk, scored, factors, results, False, dB, dV, da)

        def add_rows(first: int, last: int) -> None:
            for low, high in rows.pieces_within(first, last):
                da = by_piece[low]
                _add_terms(low, high, rows.walk, scored, factors, results, True, dA, dV, da)

        factors = dropout_factors(order, heads, inputs)
        in_pieces(add_columns, columns, heads * n_cols)
        factors = dropout_factors(nnz if row_order is None else row_order, heads, inputs)
        in_pieces(add_rows, rows, heads * n_cols)
        if score == "cosine":
            outputs["d_scale"][...] = (dB * inputs["V"]).sum(axis=-1)
            dV += inputs["scale"][..., None] * dB
        if score == "gatv2":
            outputs["da"][...] = sum(by_piece.values())

    return run


@njit(nogil=True)
def _products(dY: Any, Y: Any) -> Any:
    """Return the dot products of rows, summed in the order of those of dY and V."""
    D = np.empty(Y.shape[:2], Y.dtype)
    for i in range(Y.shape[0]):
        for h in range(Y.shape[1]):
            D[i, h] = product(dY[i, h], Y[i, h])
    return D


@njit(nogil=True, fastmath={"contract"})
def _add_terms(
    first: int,
    last: int,
    walk: Any,
    scored: Any,
    factors: Any,
    results: Any,
    by_row: bool,
    sums: Any,
    dV: Any,
    da: Any,
) -> None:
    """Add dA and da by the records of rows (`by_row`), or dB and dV by those of columns."""
    first_record, nz_start, nz_count, columns, output_rows = walk
    (leaky, a, A, B, V, slope), (dY, row_max, inverse_sum, D) = scored, results
    heads, n_cols, width = V.shape[1], V.shape[2], A.shape[2]
    for row in range(first, last):
        vertex = output_rows[row]
        for h in range(heads):
            for record in range(first_record[row], first_record[row + 1]):
                for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                    i, j = (vertex, columns[k]) if by_row else (columns[k], vertex)
                    score = score_of(leaky, a[h], A[i, h], B[j, h], slope)
                    alpha = np.exp(score - row_max[i, h]) * inverse_sum[i, h]
                    dropout = factors[k, h] if factors.size else np.float32(1)
                    d_score = alpha * (dropout * product(dY[i, h], V[j, h]) - D[i, h])
                    if leaky:
                        for c in range(width):
                            x = A[i, h, c] + B[j, h, c]
                            d_x = d_score if x > 0 else slope * d_score
                            sums[vertex, h, c] += d_x * a[h, c]
                            if by_row:
                                da[h, c] += d_x * x
                    else:
                        factor = B[j, h] if by_row else A[i, h]
                        for c in range(width):
                            sums[vertex, h, c] += d_score * factor[c]
                    if not by_row:
                        weight = alpha * dropout
                        for c in range(n_cols):
                            dV[j, h, c] += weight * dY[i, h, c]


def traffic(score: str, pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count bytes of the walk over columns and, except for `gat`, of the walk over rows.

    Per nonzero, the first gathers dY, the row's statistics (16 bytes per head) and, except for
    `gat`, Q or R; the second gathers V, of `dot` K too. Both read a column index.
    """
    heads, features = widths["heads"], widths["heads"] * widths["n_cols"] * FLOAT_BYTES
    row_bytes = (1 if score == "gat" else 2) * features + 16 * heads
    column_bytes = {"gat": 0, "dot": 2 * features}.get(score, features)
    walks = 1 if score == "gat" else 2
    n_rows, n_columns = pattern.shape
    streamed = walks * (FLOAT_BYTES * pattern.nnz + 2 * FLOAT_BYTES * (n_rows + 1))
    # The inputs of the statistics, and the operands and results of rows and columns.
    streamed += n_rows * (2 * features + 2 * row_bytes) + n_columns * (3 * features + column_bytes)
    rows = int(np.count_nonzero(pattern.degrees))
    return Traffic(
        compulsory=streamed + row_bytes * rows + column_bytes * pattern.used_columns,
        gathered=(row_bytes + column_bytes) * pattern.nnz,
        streamed=streamed,
        gathered_rows=n_rows,
        gathered_row_bytes=row_bytes + column_bytes,
    )


def _operation(score: str) -> Operation:
    results = (
        Operand("Y", (ROWS, *_FEATURES)),
        Operand("row_max", (ROWS, "heads")),
        Operand("row_sum", (ROWS, "heads")),
        Operand("dY", (ROWS, *_FEATURES), gathered=True),
    )
    operands = tuple(Operand(operand.name, operand.axes) for operand in INPUTS[score])
    return Operation(
        name=f"{score}_gradient",
        formula=f"gradients of {score} by {', '.join(operand.name for operand in operands)}",
        widths={"n_cols": None, "heads": 1},
        inputs=(*operands, *results, *settings_of(score)),
        outputs=_OUTPUTS[score],
        fastest="lane_groups",
        reference=partial(reference, score),
        replay=partial(replay, score),
        traffic=partial(traffic, score),
        completed=partial(completed, score),
        by_sender=True,
    )


GAT_GRADIENT, DOT_GRADIENT, COSINE_GRADIENT, GATV2_GRADIENT = map(_operation, INPUTS)
