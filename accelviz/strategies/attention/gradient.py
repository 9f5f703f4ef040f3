"""Gradients of attention: of every input, given that of Y. Softmax is computed again, not kept.

With alpha = exp(score - logsumexp[i]), g = dY[i] . V[j], D[i] = dY[i] . Y[i], and `kept` 0 or
1 / (1 - rate): d_score = alpha (kept g - D[i]), and dV[j] is the sum of alpha kept dY[i].
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numba
import numpy as np

from accelviz.arrays import Ints, Longs
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
    ingredients,
    product,
    product_error,
    score_error,
    score_of,
    settings_of,
)

_FEATURES = ("heads", "n_cols")
_OUTPUTS = {
    "gat": (
        Operand("d_receiver", (ROWS, "heads")),
        Operand("d_sender", (COLUMNS, "heads")),
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
    """Sum in float64; see `Operation.reference`.

    Notes
    -----
    Each term is carried with what it may be off by: alpha by a factor of exp of what its score and
    its exponent's rounding are off by, dot products as in `sddmm`. A sum of n terms in any order
    adds (n + 2) eps times their magnitudes. Where softmax is peaked, terms are so small that a GPU
    may take them for zero, at each of the four operations that make one and add it.
    """
    scored = _, a, A, B, features, _ = ingredients(score, inputs)
    factors = dropout_factors(pattern.nnz, features.shape[1], inputs)
    dA, dB, dV = (np.zeros((3, *array.shape)) for array in (A, B, features))
    da = np.zeros((3, *a.shape))
    known = inputs["Y"], inputs["dY"], inputs["logsumexp"]
    _exact_terms(
        pattern.row_pointers, pattern.column_indices, scored, factors, known, (dA, dB, dV, da)
    )
    of_rows, of_columns = pattern.degrees, np.bincount(pattern.column_indices, minlength=len(dV[0]))
    if score == "gat":
        sums = {"d_receiver": (dA[..., 0], of_rows), "d_sender": (dB[..., 0], of_columns)}
    elif score == "cosine":  # B is scale V
        sizes = np.array([1, -1, -1])[:, None, None, None]
        V, scale = (
            np.where(sizes > 0, array, abs(array))
            for array in (features, inputs["scale"][..., None])
        )
        sums = {
            "dQ": (dA, of_rows),
            "d_scale": ((dB * V).sum(axis=-1), of_columns + features.shape[2]),
        }
        dV, of_columns = dV + scale * dB, 2 * of_columns
    else:  # V is the column's part of the score as well
        dV, of_columns = dV + dB, 2 * of_columns
        sums = {"dR": (dA, of_rows), "da": (da, np.full(len(a), pattern.nnz + 3))}
    sums["dV"] = dV, of_columns
    return {name: _held(*array) for name, array in sums.items()}


def _held(sums: Any, terms: Any) -> tuple[Any, Any]:
    """Return sums and their bounds, of sums of terms, of their magnitudes, of their errors."""
    counts = terms.reshape(-1, *[1] * (sums.ndim - 2))
    return sums[0], sums[2] + EPS32 * (counts + 3) * sums[1]


@numba.njit(cache=True, nogil=True)
def _add(sums: Any, index: Any, term: float, error: float) -> None:
    sums[0][index] += term
    sums[1][index] += abs(term)
    sums[2][index] += error + 4 * SMALLEST


@numba.njit(cache=True, nogil=True)
def _exact_terms(
    row_pointers: Longs, columns: Ints, scored: Any, factors: Any, known: Any, sums: Any
) -> None:
    leaky, a, A, B, V, slope = scored
    (Y, dY, logs), (dA, dB, dV, da) = known, sums
    heads, n_cols, width = V.shape[1], V.shape[2], A.shape[2]
    for i in range(row_pointers.size - 1):
        for h in range(heads):
            if row_pointers[i] == row_pointers[i + 1]:
                continue
            D, D_off = product(dY[i, h], Y[i, h]), product_error(dY[i, h], Y[i, h])
            for k in range(row_pointers[i], row_pointers[i + 1]):
                j = columns[k]
                score = score_of(leaky, a[h], A[i, h], B[j, h], slope)
                t = score - logs[i, h]
                alpha = np.exp(t)
                off = score_error(leaky, a[h], A[i, h], B[j, h])
                off += EPS32 * ((1 + EXP_SLOPE) * abs(t) + EXP_ULPS + 6)
                off = alpha * np.expm1(off) + 2 * SMALLEST
                g, g_off = product(dY[i, h], V[j, h]), product_error(dY[i, h], V[j, h])
                dropout = factors[k, h] if factors.size else np.float32(1)
                weight = alpha * dropout
                d_score = alpha * (dropout * g - D)
                d_off = off * (abs(dropout * g) + abs(D)) + alpha * (dropout * g_off + D_off)
                d_off += SMALLEST
                for c in range(n_cols):
                    _add(dV, (j, h, c), weight * dY[i, h, c], off * dropout * abs(dY[i, h, c]))
                for c in range(width):
                    if leaky:
                        x = A[i, h, c] + B[j, h, c]
                        rise = 1.0 if x > 0 else slope
                        up = down = rise * a[h, c]
                        size = abs(A[i, h, c]) + abs(B[j, h, c])
                        error = d_off * abs(rise * x) + 4 * EPS32 * abs(d_score * rise) * size
                        _add(da, (h, c), d_score * rise * x, error)
                    else:
                        up, down = B[j, h, c], A[i, h, c]
                    rounding = 4 * EPS32 * abs(d_score)
                    _add(dA, (i, h, c), d_score * up, (d_off + rounding) * abs(up))
                    _add(dB, (j, h, c), d_score * down, (d_off + rounding) * abs(down))


def completed(score: str, pattern: Pattern, inputs: Arrays) -> Arrays:
    """Put Y and logsumexp right: what attention gives of the other inputs."""
    wide = {name: np.asarray(array, np.float64) for name, array in inputs.items()}
    defaults = {operand.name: operand.setting(None) for operand in settings_of(score)}
    results = forward.reference(score, pattern, wide | defaults)
    return {name: expected.astype(np.float32) for name, (expected, _) in results.items()}


def replay(score: str, plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Follow the plan's records, of columns, and those of rows; see `Operation.replay`.

    Where the plan has no records of rows, as for a kernel that adds their sums by atomics, each row
    is one.
    """
    columns, pattern, order = Records.by_row(plan), plan.pattern, plan.layout.nonzero_order
    if plan.then:
        (back,) = plan.then
        rows, row_order = Records.by_row(back), back.layout.nonzero_order
    else:
        first = np.arange(pattern.n_rows + 1)
        runs = pattern.row_pointers[:-1], pattern.degrees
        walk = (first, *runs, pattern.column_indices, first[:-1].astype(np.int32))
        rows, row_order = Records(walk, pattern.row_pointers), None
    nnz, lock = pattern.nnz, threading.Lock()
    names = [operand.name for operand in _OUTPUTS[score]]

    def run(inputs: Arrays, outputs: Arrays) -> None:
        scored = ingredients(score, inputs)
        heads, n_cols = inputs["V"].shape[1:]
        D = np.einsum("ihc,ihc->ih", inputs["Y"], inputs["dY"])
        known = inputs["dY"], inputs["logsumexp"], D
        dV = outputs["dV"]
        dA = outputs[names[0]].reshape(-1, heads, scored[2].shape[2])
        dB = outputs["d_sender"][..., None] if score == "gat" else dV
        if score == "cosine":
            dB = np.empty_like(dV)
        dV[...], dA[...], dB[...] = 0, 0, 0
        da = np.zeros_like(scored[1])

        def of_columns(first: int, last: int) -> None:
            _terms(first, last, columns.walk, scored, factors, known, False, dB, dV, da)

        def of_rows(first: int, last: int) -> None:
            partial_da = np.zeros_like(da)
            _terms(first, last, rows.walk, scored, factors, known, True, dA, dV, partial_da)
            with lock:
                np.add(da, partial_da, out=da)

        factors = dropout_factors(order, heads, inputs)
        in_pieces(of_columns, columns, heads * n_cols)
        factors = dropout_factors(nnz if row_order is None else row_order, heads, inputs)
        in_pieces(of_rows, rows, heads * n_cols)
        if score == "cosine":
            outputs["d_scale"][...] = (dB * inputs["V"]).sum(axis=-1)
            dV += inputs["scale"][..., None] * dB
        if score == "gatv2":
            outputs["da"][...] = da

    return run


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _terms(
    first: int,
    last: int,
    walk: Any,
    scored: Any,
    factors: Any,
    known: Any,
    by_row: bool,
    sums: Any,
    dV: Any,
    da: Any,
) -> None:
    """Add up gradients of A and `a` by the records of rows, or those of B and V of columns."""
    first_record, nz_start, nz_count, columns, output_rows = walk
    (leaky, a, A, B, V, slope), (dY, logs, D) = scored, known
    heads, n_cols, width = V.shape[1], V.shape[2], A.shape[2]
    for row in range(first, last):
        end = output_rows[row]
        for h in range(heads):
            for record in range(first_record[row], first_record[row + 1]):
                for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                    i, j = (end, columns[k]) if by_row else (columns[k], end)
                    alpha = np.exp(score_of(leaky, a[h], A[i, h], B[j, h], slope) - logs[i, h])
                    dropout = factors[k, h] if factors.size else np.float32(1)
                    d_score = alpha * (dropout * product(dY[i, h], V[j, h]) - D[i, h])
                    if leaky:
                        for c in range(width):
                            x = A[i, h, c] + B[j, h, c]
                            rise = d_score if x > 0 else slope * d_score
                            sums[end, h, c] += rise * a[h, c]
                            if by_row:
                                da[h, c] += rise * x
                    else:
                        other = B[j, h] if by_row else A[i, h]
                        for c in range(width):
                            sums[end, h, c] += d_score * other[c]
                    if not by_row:
                        weight = alpha * dropout
                        for c in range(n_cols):
                            dV[j, h, c] += weight * dY[i, h, c]


def traffic(score: str, pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count bytes of the walk over columns, and of `cosine` and `gatv2` of that over rows as well.

    For each nonzero the first reads its row's dY and, of `cosine` and `gatv2`, Q or R; the second
    its column's V. Both read a column index; a head of a row has 16 or 8 bytes of statistics.
    """
    heads, features = widths["heads"], widths["heads"] * widths["n_cols"] * FLOAT_BYTES
    row = features + 16 * heads if score == "gat" else 2 * features + 8 * heads
    column = 0 if score == "gat" else features
    walks = 1 if score == "gat" else 2
    n_rows, n_columns = pattern.shape
    streamed = walks * (FLOAT_BYTES * pattern.nnz + 2 * FLOAT_BYTES * (n_rows + 1))
    # What statistics are made of; then each row's own operands and results, once.
    streamed += n_rows * (2 * features + 2 * row) + n_columns * (3 * features + column)
    rows = int(np.count_nonzero(pattern.degrees))
    return Traffic(
        compulsory=streamed + row * rows + column * pattern.used_columns,
        gathered=(row + column) * pattern.nnz,
        streamed=streamed,
        gathered_rows=n_rows,
        gathered_row_bytes=row + column,
    )


def _operation(score: str) -> Operation:
    known = (
        Operand("Y", (ROWS, *_FEATURES)),
        Operand("logsumexp", (ROWS, "heads")),
        Operand("dY", (ROWS, *_FEATURES), gathered=True),
    )
    operands = tuple(Operand(operand.name, operand.axes) for operand in INPUTS[score])
    return Operation(
        name=f"{score}_gradient",
        formula=f"gradients of {score} by {', '.join(operand.name for operand in operands)}",
        widths={"n_cols": None, "heads": 1},
        inputs=(*operands, *known, *settings_of(score)),
        outputs=_OUTPUTS[score],
        fastest="lane_groups",
        reference=partial(reference, score),
        replay=partial(replay, score),
        traffic=partial(traffic, score),
        completed=partial(completed, score),
        by_sender=True,
    )


GAT_GRADIENT, COSINE_GRADIENT, GATV2_GRADIENT = (_operation(score) for score in INPUTS)
