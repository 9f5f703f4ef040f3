"""Attention over rows of items and its gradients, in Numba.

The score of an item is `a . LeakyReLU(A[i] + B[j])` (`leaky`) or `A[i] . B[j]`, as in
`accelviz.strategies.attention.scores`; both are symmetric in A and B. Rows are read in pieces of
`_PIECE` items, head by head, so that a piece's rows of V stay in the processor's cache.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from accelviz.arrays import Floats, Ints
from accelviz.compiled import njit

_PIECE = 128
#: ln 2 as the sum of two constants; the first has so few bits that its product with n is exact.
_LOG2E, _LN2_HIGH, _LN2_LOW = map(np.float32, (1.4426950408889634, 0.693145751953125, 1.428607e-6))
#: Taylor coefficients of exp, from the seventh down, and the least x with a normal exp(x).
_TAYLOR = tuple(np.float32(1 / math.factorial(n)) for n in range(7, -1, -1))
_LEAST = np.float32(-87)


@njit(nogil=True, fastmath={"contract"})
def _exp(x: Floats) -> None:
    """Replace each number x <= 0 by exp(x), within 1 unit of the last place; NaN stays NaN.

    With n = round(x / ln 2), exp(x) = 2^n exp(x - n ln 2). The loop is vectorised; one with calls
    of the library's function is not. Results below the normal numbers are 0.
    """
    for q in range(x.size):
        n = np.floor(x[q] * _LOG2E + np.float32(0.5))
        rest = (x[q] - n * _LN2_HIGH) - n * _LN2_LOW
        total = _TAYLOR[0]
        for coefficient in numba.literal_unroll(_TAYLOR[1:]):
            total = total * rest + coefficient
        exponent = np.int32(max(n, np.float32(-126))) + np.int32(127)
        power = total * np.int32(exponent << np.int32(23)).view(np.float32)
        x[q] = np.float32(0) if x[q] < _LEAST else power


# "reassoc" lets the sum over columns be a sum of vectors.
@njit(nogil=True, fastmath={"contract", "reassoc"})
def _score(
    leaky: bool, a: Any, row: Any, others: Any, h: int, slope: Any, nodes: Ints, scores: Floats
) -> None:
    """Write the scores of one row and head; `others` is indexed by `nodes`."""
    if leaky and row.size == 1:
        for q in range(nodes.size):
            x = row[0] + others[nodes[q], h, 0]
            scores[q] = a[0] * (x if x > 0 else slope * x)
        return
    for q in range(nodes.size):
        other, total = others[nodes[q], h], np.float32(0)
        if leaky:
            for c in range(row.size):
                x = row[c] + other[c]
                total += a[c] * (x if x > 0 else slope * x)
        else:
            for c in range(row.size):
                total += row[c] * other[c]
        scores[q] = total


@njit(nogil=True, fastmath={"contract", "reassoc"})
def _dots(row: Any, others: Any, h: int, nodes: Ints, dots: Floats) -> None:
    """Write the dot product of a row with those of `nodes`."""
    for q in range(nodes.size):
        other, total = others[nodes[q], h], np.float32(0)
        for c in range(row.size):
            total += row[c] * other[c]
        dots[q] = total


@njit(nogil=True, fastmath={"contract"})
def _add_scaled(y: Any, factors: Floats, X: Any, h: int, nodes: Ints) -> None:
    """Add the sum of `factors[q] * X[nodes[q], h]` to y."""
    n_fours = nodes.size // 4 * 4
    for q in range(0, n_fours, 4):  # independent loads hide the latency of random accesses
        f0, x0 = factors[q], X[nodes[q], h]
        f1, x1 = factors[q + 1], X[nodes[q + 1], h]
        f2, x2 = factors[q + 2], X[nodes[q + 2], h]
        f3, x3 = factors[q + 3], X[nodes[q + 3], h]
        for c in range(y.size):
            y[c] += f0 * x0[c] + f1 * x1[c] + f2 * x2[c] + f3 * x3[c]
    for q in range(n_fours, nodes.size):
        f0, x0 = factors[q], X[nodes[q], h]
        for c in range(y.size):
            y[c] += f0 * x0[c]


@njit(nogil=True, fastmath={"contract"}, error_model="numpy")
def attend(first: int, last: int, walk: Any, factors: Floats, scored: Any, results: Any) -> None:
    """Compute rows `first` to `last` - 1.

    Parameters
    ----------
    first, last : int
    walk : tuple
        As `Records.walk`, with one record a row.
    factors : array of float32, shape (nonzeros of these rows, heads) or (0, 0)
        Dropout's factors.
    scored : tuple
        Of `accelviz.strategies.attention.scores.score_operands`.
    results : tuple of arrays of float32
        Y, (n_rows, heads, n_cols), row_max and row_sum, (n_rows, heads).
    """
    _, nz_start, nz_count, columns, _ = walk
    (leaky, a, A, B, V, slope), (Y, row_max, row_sum) = scored, results
    n_heads, n_cols = V.shape[1:]
    buffer = np.empty(n_heads * _PIECE, np.float32)
    for i in range(first, last):
        start, stop = nz_start[i], nz_start[i] + nz_count[i]
        Y[i], row_max[i], row_sum[i] = 0, -np.inf if stop > start else 0, 0
        for piece in range(start, stop, _PIECE):
            nodes = columns[piece : min(piece + _PIECE, stop)]
            n = nodes.size
            for h in range(n_heads):
                powers = buffer[h * n : (h + 1) * n]
                _score(leaky, a[h], A[i, h], B, h, slope, nodes, powers)
                largest = row_max[i, h]
                for q in range(n):
                    largest = max(largest, powers[q])
                shift = largest if largest > -np.inf else np.float32(0)
                rescale = np.exp(row_max[i, h] - shift)
                row_max[i, h] = largest
                row_sum[i, h] *= rescale
                for c in range(n_cols):
                    Y[i, h, c] *= rescale
                for q in range(n):
                    powers[q] -= shift
            _exp(buffer[: n_heads * n])
            for h in range(n_heads):
                powers, total = buffer[h * n : (h + 1) * n], np.float32(0)
                for q in range(n):
                    total += powers[q]
                row_sum[i, h] += total
                if factors.size:
                    for q in range(n):
                        powers[q] *= factors[piece - nz_start[first] + q, h]
                _add_scaled(Y[i, h], powers, V, h, nodes)
        if stop > start:
            for h in range(V.shape[1]):
                for c in range(V.shape[2]):
                    Y[i, h, c] /= row_sum[i, h]


@njit(nogil=True, fastmath={"contract", "reassoc"})
def add_gradients(
    first: int,
    last: int,
    walk: Any,
    factors: Floats,
    by_target: bool,
    scored: Any,
    results: Any,
    gradients: Any,
) -> None:
    """Add the gradients of rows `first` to `last` - 1: dA and da by target, dB and dV by source.

    With alpha = exp(score - row_max[i]) / row_sum[i], dropout's factor m and D[i] = dY[i] . Y[i],
    the gradient of a score is alpha (m dY[i] . V[j] - D[i]).

    Parameters
    ----------
    first, last, walk, factors, scored
        As of `attend`; rows are sources without `by_target`.
    by_target : bool
    results : tuple of arrays of float32
        dY, (n_targets, heads, n_cols), and, (n_targets, heads, 3), row_max, 1 / row_sum and D.
    gradients : tuple of arrays of float32
        dA or dB; dV; da.
    """
    _, nz_start, nz_count, columns, _ = walk
    (leaky, a, A, B, V, slope), (dY, statistics), (sums, dV, da) = scored, results, gradients
    rows, others, u, v = (A, B, dY, V) if by_target else (B, A, V, dY)
    alpha, d_score = np.empty((2, _PIECE), np.float32)
    for row in range(first, last):
        stop = nz_start[row] + nz_count[row]
        for piece in range(nz_start[row], stop, _PIECE):
            nodes = columns[piece : min(piece + _PIECE, stop)]
            for h in range(V.shape[1]):
                _score(leaky, a[h], rows[row, h], others, h, slope, nodes, alpha)
                _dots(u[row, h], v, h, nodes, d_score)
                for q in range(nodes.size):
                    alpha[q] -= statistics[row if by_target else nodes[q], h, 0]
                _exp(alpha[: nodes.size])
                for q in range(nodes.size):
                    _, inverse, D = statistics[row if by_target else nodes[q], h]
                    dropout = np.float32(1)
                    if factors.size:
                        dropout = factors[piece - nz_start[first] + q, h]
                    alpha[q] *= inverse
                    d_score[q] = alpha[q] * (dropout * d_score[q] - D)
                    alpha[q] *= dropout
                if leaky:
                    for c in range(A.shape[2]):
                        row_value, total, total_da = rows[row, h, c], np.float32(0), np.float32(0)
                        for q in range(nodes.size):
                            x = row_value + others[nodes[q], h, c]
                            d_x = d_score[q] if x > 0 else slope * d_score[q]
                            total += d_x
                            total_da += d_x * x
                        sums[row, h, c] += total * a[h, c]
                        if by_target:
                            da[h, c] += total_da
                else:
                    _add_scaled(sums[row, h], d_score, others, h, nodes)
                if not by_target:
                    _add_scaled(dV[row, h], alpha, v, h, nodes)
