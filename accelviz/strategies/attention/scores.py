"""Scores of edges, dropout and error bounds, for attention's references and CPU replays.

The score of an edge (i, j) is `a . LeakyReLU(A[i] + B[j])` for "gatv2" and, with one column and
`a` = 1, for "gat". For "dot" it is `A[i] . B[j]`, for "cosine" the same with B = scale V.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.compiled import njit
from accelviz.plans import Operand
from accelviz.plans.operation import COLUMNS, DEVICE_SCALARS, EPS32, ROWS, Arrays
from accelviz.random import edge_uniform_of

#: Error of a kernel's exp(x): at most `EXP_ULPS` + `EXP_SLOPE` |x| units of the last place (CUDA
#: Programming Guide, intrinsic functions: __expf, 2 + floor(|1.173 x|)).
EXP_ULPS, EXP_SLOPE = 2, 1.173
#: The smallest normal float32. Smaller magnitudes may be flushed to zero.
SMALLEST = float(np.finfo(np.float32).tiny)
#: Scalar inputs: LeakyReLU's slope below 0; dropout's rate, and its random state: the seed's two
#: words, a site and a step (accelviz.random.edge_uniform).
SLOPE = Operand("slope", (), default=0.2)
DROPOUT = (
    Operand("rate", (), default=0.0, least=0.0, below=1.0),
    Operand("random", (DEVICE_SCALARS,), default=(0, 0, 0, 0)),
)
_FEATURES = ("heads", "n_cols")
#: Dense inputs by score. Kernels gather rows of K and V.
RECEIVER, SENDER = Operand("receiver", (ROWS, "heads")), Operand("sender", (COLUMNS, "heads"))
Q = Operand("Q", (ROWS, *_FEATURES))
V = Operand("V", (COLUMNS, *_FEATURES), gathered=True)
INPUTS = {
    "gat": (RECEIVER, SENDER, V),
    "dot": (Q, Operand("K", (COLUMNS, *_FEATURES), gathered=True), V),
    "cosine": (Q, V, Operand("scale", (COLUMNS, "heads"))),
    "gatv2": (Operand("R", (ROWS, *_FEATURES)), V, Operand("a", _FEATURES)),
}


def settings_of(score: str) -> tuple[Operand, ...]:
    """Return the scalar inputs of a score's attention."""
    return DROPOUT if score in ("dot", "cosine") else (SLOPE, *DROPOUT)


def score_operands(score: str, inputs: Arrays) -> tuple[bool, Any, Any, Any, Any, Any]:
    """Return (leaky, a, A, B, V, slope) for `score_of`; A, B and V have three axes."""
    features = inputs["V"]
    ones = np.ones((features.shape[1], 1), features.dtype)
    slope = inputs.get("slope", np.float32(0))
    if score == "gat":
        A, B = inputs["receiver"][..., None], inputs["sender"][..., None]
        return True, ones, A, B, features, features.dtype.type(slope)
    if score in ("dot", "cosine"):
        B = inputs["K"] if score == "dot" else features * inputs["scale"][..., None]
        return False, ones, inputs["Q"], B, features, features.dtype.type(slope)
    return True, inputs["a"], inputs["R"], features, features, features.dtype.type(slope)


def dropout_factors(nonzeros: Any, heads: int, inputs: Arrays) -> Any:
    """Return dropout's factors of the edge values, 0 or 1 / (1 - rate).

    Parameters
    ----------
    nonzeros : int or array of int, shape (n,)
        Number of nonzeros, or their positions in the caller's order.
    heads : int
    inputs : mapping
        Inputs of the operation, among them `rate` and `random`.

    Returns
    -------
    array of float32, shape (n, heads), or (0, 0) if the rate is 0
    """
    rate, random_state = np.float32(inputs["rate"]), inputs["random"]
    if rate == 0:
        return np.ones((0, 0), np.float32)
    nonzeros = np.arange(nonzeros) if np.ndim(nonzeros) == 0 else nonzeros
    uniform = edge_uniform_of(nonzeros, heads, random_state)
    return np.where(uniform >= rate, np.float32(1) / (np.float32(1) - rate), np.float32(0))


@njit(nogil=True)
def score_of(leaky: bool, a: Any, r: Any, s: Any, slope: Any) -> Any:
    """Return the score of one edge and head; `r` and `s` are rows of A and B.

    Products of float32 are exact in float64, so that every caller computes the same sum. It is
    rounded to the rows' dtype, as the largest score that is stored.
    """
    total = 0.0
    for c in range(r.size):
        if leaky:
            x = r[c] + s[c]
            total += np.float64(a[c]) * (x if x > 0 else slope * x)
        else:
            total += np.float64(r[c]) * s[c]
    return r.dtype.type(total)


@njit(nogil=True)
def score_error(leaky: bool, a: Any, r: Any, s: Any) -> float:
    """Return a bound of the error of a float32 score: a sum of rounded products of rounded sums."""
    total = 0.0
    for c in range(r.size):
        total += abs(a[c]) * (abs(r[c]) + abs(s[c])) if leaky else abs(r[c] * s[c])
    return EPS32 * (r.size + 3) * total


@njit(nogil=True)
def product(u: Any, v: Any) -> Any:
    """Return the dot product of two rows, summed in float64, in their dtype."""
    total = 0.0
    for c in range(u.size):
        total += np.float64(u[c]) * v[c]
    return u.dtype.type(total)


@njit(nogil=True)
def product_error(u: Any, v: Any) -> float:
    """Return a bound of the error of a float32 dot product."""
    total = 0.0
    for c in range(u.size):
        total += abs(u[c] * v[c])
    return EPS32 * (u.size + 2) * total
