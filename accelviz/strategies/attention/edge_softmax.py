"""`alpha[k] = softmax of scores[k]` over the nonzeros of k's row, for each head; and its gradient.

The columns of scores are heads, which do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np

from accelviz.arrays import Floats, Longs
from accelviz.graph import Pattern
from accelviz.plans import Operand, Operation, Plan
from accelviz.plans.operation import EPS32, FLOAT_BYTES, NONZEROS, Arrays, Traffic
from accelviz.plans.replay import Records, in_pieces
from accelviz.strategies.attention.bounds import EXP_SLOPE, EXP_ULPS, SMALLEST


def softmax_reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Divide in float64; see `Operation.reference`.

    Notes
    -----
    With t = score - largest <= 0: the difference is rounded, off by at most eps |t|, and a kernel
    takes exp to within `EXP_ULPS` + `EXP_SLOPE` |t| units of the last place. Where the largest
    score is found on the way, a term is carried from maximum to maximum by further factors; their
    exponents add up to t, and there is at most one for each nonzero of the row. So a term is off by
    a relative error of e(t) = eps ((1 + EXP_SLOPE) |t| + (EXP_ULPS + 2) (deg + 1)), the sum of deg
    terms by eps deg and its terms' mean error, and the quotient by one rounding more. What
    underflows is off by the smallest normal number, as the sum is at least 1.
    """
    scores = inputs["scores"]
    expected, bound = np.empty((2, *scores.shape))
    _exact_softmax(pattern.row_pointers, scores, expected, bound)
    return {"alpha": (expected, bound)}


@numba.njit(cache=True, nogil=True)
def _exact_softmax(row_pointers: Longs, scores: Any, expected: Any, bound: Any) -> None:
    for row in range(row_pointers.size - 1):
        first, last = row_pointers[row], row_pointers[row + 1]
        for h in range(scores.shape[1]):
            largest = -np.inf
            for k in range(first, last):
                largest = max(largest, scores[k, h])
            total = drift = 0.0
            for k in range(first, last):
                t = scores[k, h] - largest
                total += np.exp(t)
                drift += np.exp(t) * -t
            fixed = (EXP_ULPS + 3) * (last - first + 2)
            for k in range(first, last):
                t = scores[k, h] - largest
                alpha = np.exp(t) / total
                relative = (1 + EXP_SLOPE) * (drift / total - t) + 2 * fixed
                expected[k, h] = alpha
                bound[k, h] = EPS32 * relative * alpha + SMALLEST * (last - first + 2)


def gradient_reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Multiply in float64; see `Operation.reference`.

    The row's sum of deg products is off by at most eps deg sum |alpha d_alpha|, as in `spmm`; a
    difference and a product more are rounded.
    """
    alpha, d_alpha = inputs["alpha"], inputs["d_alpha"]
    expected, bound = np.empty((2, *alpha.shape))
    _exact_gradient(pattern.row_pointers, alpha, d_alpha, expected, bound)
    return {"d_scores": (expected, bound)}


@numba.njit(cache=True, nogil=True)
def _exact_gradient(
    row_pointers: Longs, alpha: Any, d_alpha: Any, expected: Any, bound: Any
) -> None:
    for row in range(row_pointers.size - 1):
        first, last = row_pointers[row], row_pointers[row + 1]
        for h in range(alpha.shape[1]):
            total = magnitude = 0.0
            for k in range(first, last):
                total += alpha[k, h] * d_alpha[k, h]
                magnitude += abs(alpha[k, h] * d_alpha[k, h])
            for k in range(first, last):
                expected[k, h] = alpha[k, h] * (d_alpha[k, h] - total)
                off = (last - first + 2) * magnitude + 2 * abs(d_alpha[k, h])
                bound[k, h] = EPS32 * abs(alpha[k, h]) * off + SMALLEST


def _traffic(arrays: int, pattern: Pattern, widths: Mapping[str, int]) -> Traffic:
    """Count bytes: 4 for each element of so many arrays of edge values, 8 for a row pointer."""
    streamed = FLOAT_BYTES * arrays * widths["n_cols"] * pattern.nnz
    return Traffic.of_senders(pattern, 0, streamed + 2 * FLOAT_BYTES * (pattern.n_rows + 1))


def softmax_traffic(pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count scores read and alpha written once; nothing is gathered."""
    return _traffic(2, pattern, widths)


def gradient_traffic(pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count alpha and d_alpha read and d_scores written once; nothing is gathered."""
    return _traffic(3, pattern, widths)


def _replay(
    plan: Plan, rows: Callable[..., None], names: tuple[str, ...]
) -> Callable[[Arrays, Arrays], None]:
    records = Records.by_row(plan)

    def run(inputs: Arrays, outputs: Arrays) -> None:
        arrays = [{**inputs, **outputs}[name] for name in names]

        def piece(first: int, last: int) -> None:
            rows(first, last, records.walk, *arrays)

        in_pieces(piece, records, arrays[0].shape[1])

    return run


def replay_softmax(plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Merge what the records of a row come to, then divide; see `Operation.replay`."""
    return _replay(plan, _softmax_rows, ("scores", "alpha"))


def replay_gradient(plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Sum over the records of a row, then subtract; see `Operation.replay`."""
    return _replay(plan, _gradient_rows, ("alpha", "d_alpha", "d_scores"))


@numba.njit(cache=True, nogil=True)
def _softmax_rows(first: int, last: int, walk: Any, scores: Floats, alpha: Floats) -> None:
    first_record, nz_start, nz_count = walk[:3]
    heads = scores.shape[1]
    largest, total = np.empty(heads, np.float32), np.empty(heads, np.float32)
    for row in range(first, last):
        largest[:], total[:] = -np.inf, 0
        records = range(first_record[row], first_record[row + 1])
        for record in records:
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                for h in range(heads):
                    score = scores[k, h]
                    if score > largest[h]:
                        total[h] = total[h] * np.exp(largest[h] - score) + np.float32(1)
                        largest[h] = score
                    else:
                        total[h] += np.exp(score - largest[h])
        for record in records:
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                for h in range(heads):
                    alpha[k, h] = np.exp(scores[k, h] - largest[h]) / total[h]


@numba.njit(cache=True, nogil=True)
def _gradient_rows(
    first: int, last: int, walk: Any, alpha: Floats, d_alpha: Floats, d_scores: Floats
) -> None:
    first_record, nz_start, nz_count = walk[:3]
    heads = alpha.shape[1]
    total = np.empty(heads, np.float32)
    for row in range(first, last):
        total[:] = 0
        records = range(first_record[row], first_record[row + 1])
        for record in records:
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                for h in range(heads):
                    total[h] += alpha[k, h] * d_alpha[k, h]
        for record in records:
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                for h in range(heads):
                    d_scores[k, h] = alpha[k, h] * (d_alpha[k, h] - total[h])


EDGE_SOFTMAX = Operation(
    name="edge_softmax",
    formula="alpha = softmax of the scores of each row's nonzeros",
    widths={"n_cols": None},
    inputs=(Operand("scores", (NONZEROS, "n_cols")),),
    outputs=(Operand("alpha", (NONZEROS, "n_cols")),),
    fastest="lane_groups",
    reference=softmax_reference,
    replay=replay_softmax,
    traffic=softmax_traffic,
    independent="n_cols",
)

EDGE_SOFTMAX_GRADIENT = Operation(
    name="edge_softmax_gradient",
    formula="d_scores = alpha (d_alpha - the row's sum of alpha d_alpha)",
    widths={"n_cols": None},
    inputs=(
        Operand("alpha", (NONZEROS, "n_cols")),
        Operand("d_alpha", (NONZEROS, "n_cols")),
    ),
    outputs=(Operand("d_scores", (NONZEROS, "n_cols")),),
    fastest="lane_groups",
    reference=gradient_reference,
    replay=replay_gradient,
    traffic=gradient_traffic,
    independent="n_cols",
)
