"""SpMM with a maximum or minimum in place of the sum: `Y[i] = max of X[j]` over i's nonzeros."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from accelviz.arrays import Floats
from accelviz.compiled import njit
from accelviz.graph import Pattern
from accelviz.plans import Operand, Operation, Plan
from accelviz.plans.operation import COLUMNS, EPS32, FLOAT_BYTES, ROWS, Arrays, Traffic
from accelviz.plans.plan import Widths
from accelviz.strategies.exact import replay_rows
from accelviz.strategies.spmm.operation import traffic

#: NumPy's function, and the sign by which X is multiplied to take a maximum.
REDUCTIONS = {"max": (np.maximum, 1), "min": (np.minimum, -1)}


def _reference(reduction: str, pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    X, rows = inputs["X"], np.flatnonzero(pattern.degrees)
    Y, share = np.zeros((2, pattern.n_rows, X.shape[1]))
    starts, degrees = pattern.row_pointers[rows], pattern.degrees[rows]
    for c in range(X.shape[1] if rows.size else 0):
        x = X[pattern.column_indices, c]
        Y[rows, c] = REDUCTIONS[reduction][0].reduceat(x, starts)
        is_extremum = x == np.repeat(Y[rows, c], degrees)
        share[rows, c] = 1 / np.add.reduceat(is_extremum, starts, dtype=np.int64)
    return {"Y": (Y, np.zeros_like(Y)), "share": (share, EPS32 * share)}  # Y is not rounded


def _replay(reduction: str, plan: Plan) -> Callable[[Arrays, Arrays], None]:
    constants = np.float32(REDUCTIONS[reduction][1]), np.float32(0)
    return replay_rows(reduce_rows, ("X", "Y", "share"), plan, *constants)


# Without Python's check of divisors, and with explicit loops, all loops over columns are vectors.
@njit(nogil=True, error_model="numpy")
def reduce_rows(
    first: int, last: int, walk: Any, sign: Any, initial: Any, X: Floats, Y: Floats, share: Floats
) -> None:
    """Compute rows `first` to `last` - 1 of `Records.walk`.

    The sign -1 makes the maxima minima. With `initial` 1, an extremum of 0 has one more equal.
    """
    first_record, nz_start, nz_count, columns, output_rows = walk
    n_cols, zero, one = X.shape[1], np.float32(0), np.float32(1)
    for row in range(first, last):
        y, count, begun = Y[output_rows[row]], share[output_rows[row]], False
        for record in range(first_record[row], first_record[row + 1]):
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                x = X[columns[k]]
                if begun:
                    for c in range(n_cols):
                        a, b = x[c], y[c]
                        replaces = (sign * a > sign * b) or (a != a)
                        equals = count[c] + (one if a == b else zero)
                        count[c] = one if replaces else equals
                        y[c] = a if replaces else b
                else:
                    for c in range(n_cols):
                        y[c], count[c] = x[c], one
                    begun = True
        for c in range(n_cols):
            if begun:
                count[c] = one / (count[c] + (initial if y[c] == zero else zero))
            else:
                y[c], count[c] = zero, zero


def _traffic(pattern: Pattern, widths: Widths, element_bytes: int) -> Traffic:
    """Count the bytes of SpMM, without the weights and with the output `share`."""
    streamed = traffic(pattern, widths, element_bytes).streamed
    streamed += FLOAT_BYTES * (widths["n_cols"] * pattern.n_rows - pattern.nnz)
    return Traffic.of_columns(pattern, element_bytes * widths["n_cols"], streamed)


def extremum(reduction: str) -> Operation:
    """Return the operation of a reduction, with the outputs Y and `share`.

    `share` is 1 over the number of the row's nonzeros whose X equals Y. Both are 0 for a row
    without nonzeros. If an X of the row is NaN, so is Y, as in PyTorch.

    Parameters
    ----------
    reduction : {"max", "min"}
    """
    return Operation(
        name=f"spmm_{reduction}",
        formula=f"Y = the {reduction} of X over each row's nonzeros",
        widths={"n_cols": None},
        inputs=(Operand("X", (COLUMNS, "n_cols"), gathered=True),),
        outputs=(Operand("Y", (ROWS, "n_cols")), Operand("share", (ROWS, "n_cols"))),
        fastest="lane_groups",
        reference=partial(_reference, reduction),
        replay=partial(_replay, reduction),
        traffic=_traffic,
        reduction=reduction,
        independent="n_cols",
    )


def _gradient_reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Sum in float64; see `Operation.reference`. The bound is that of `spmm`."""
    X, Y, dY = inputs["X"], inputs["Y"], inputs["dY"]
    rows = np.repeat(np.arange(pattern.n_rows), pattern.degrees)
    dX, magnitude = np.zeros((2, *X.shape))
    for c in range(X.shape[1]):
        terms = (X[pattern.column_indices, c] == Y[rows, c]) * dY[rows, c]
        for sums, addends in ((dX, terms), (magnitude, np.abs(terms))):
            sums[:, c] = np.bincount(pattern.column_indices, addends, pattern.shape[1])
    degrees = np.bincount(pattern.column_indices, minlength=pattern.shape[1])
    return {"dX": (dX, EPS32 * degrees[:, None] * magnitude)}


def _with_extrema(pattern: Pattern, inputs: Arrays) -> Arrays:
    """Replace a random Y by the maxima of X; else few elements of X would equal Y."""
    Y, _ = _reference("max", pattern, inputs)["Y"]
    return {"Y": Y.astype(np.float32)}


@njit(nogil=True)
def gradient_rows(
    first: int, last: int, walk: Any, X: Floats, Y: Floats, dY: Floats, dX: Floats
) -> None:
    """Compute rows `first` to `last` - 1 of `Records.walk` of the transposed matrix."""
    first_record, nz_start, nz_count, columns, output_rows = walk
    for row in range(first, last):
        j = output_rows[row]
        dX[j] = 0
        for record in range(first_record[row], first_record[row + 1]):
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                i = columns[k]
                for c in range(X.shape[1]):
                    if X[j, c] == Y[i, c]:
                        dX[j, c] += dY[i, c]


def _gradient_traffic(pattern: Pattern, widths: Widths, element_bytes: int) -> Traffic:
    """Count bytes: Y and dY gathered; X, dX, pointers and indices streamed."""
    row_bytes, (n_rows, n_columns) = FLOAT_BYTES * widths["n_cols"], pattern.shape
    streamed = FLOAT_BYTES * pattern.nnz + 2 * FLOAT_BYTES * (n_columns + 1)
    streamed += 2 * row_bytes * n_columns
    compulsory = streamed + 2 * row_bytes * int(np.count_nonzero(pattern.degrees))
    return Traffic(compulsory, 2 * row_bytes * pattern.nnz, streamed, n_rows, 2 * row_bytes)


SPMM_MAX, SPMM_MIN = extremum("max"), extremum("min")
#: The gradient of both. The caller multiplies dY by `share` first, so that equal extrema get equal
#: parts, as in PyTorch. Kernels walk the transposed matrix without atomics: results are
#: deterministic.
SPMM_EXTREMUM_GRADIENT = Operation(
    name="spmm_extremum_gradient",
    formula="dX[j] = the sum of dY[i] over j's nonzeros (i, j) with X[j] = Y[i]",
    widths={"n_cols": None},
    inputs=(
        Operand("X", (COLUMNS, "n_cols")),
        Operand("Y", (ROWS, "n_cols"), gathered=True),
        Operand("dY", (ROWS, "n_cols"), gathered=True),
    ),
    outputs=(Operand("dX", (COLUMNS, "n_cols")),),
    fastest="lane_groups",
    reference=_gradient_reference,
    replay=partial(replay_rows, gradient_rows, ("X", "Y", "dY", "dX")),
    traffic=_gradient_traffic,
    completed=_with_extrema,
    by_sender=True,
    independent="n_cols",
)
