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
_SOURCE = Operand("source", (ROWS, "n_cols"), dtype=np.dtype(np.int32))


def shares(source: Any) -> Any:
    """Return the share of each equal nonzero: 1, or 1 / k of k; 0 if there is none.

    Parameters
    ----------
    source : array of int32
        As in `extremum`; of NumPy or CuPy.

    Returns
    -------
    array of float32
    """
    counts = (~source).clip(1, None).astype(np.float32)
    return (source >= 0) + (source < -1) / counts


def _reference(reduction: str, pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    X, rows = inputs["X"], np.flatnonzero(pattern.degrees)
    Y = np.zeros((pattern.n_rows, X.shape[1]))
    source = np.full(Y.shape, -1)
    starts, degrees = pattern.row_pointers[rows], pattern.degrees[rows]
    for c in range(X.shape[1] if rows.size else 0):
        x = X[pattern.column_indices, c]
        Y[rows, c] = REDUCTIONS[reduction][0].reduceat(x, starts)
        is_extremum = x == np.repeat(Y[rows, c], degrees)
        count = np.add.reduceat(is_extremum, starts, dtype=np.int64)
        columns = np.where(is_extremum, pattern.column_indices, pattern.shape[1])
        is_one = (count == 1) | (inputs["first"] != 0)
        source[rows, c] = np.where(is_one, np.minimum.reduceat(columns, starts), ~count)
    return {"Y": (Y, np.zeros_like(Y)), "source": (source, np.zeros_like(Y))}  # none is rounded


def _replay(reduction: str, plan: Plan) -> Callable[[Arrays, Arrays], None]:
    constants = np.float32(REDUCTIONS[reduction][1]), np.float32(0)
    return replay_rows(reduce_rows, ("first", "X", "Y", "source"), plan, *constants)


# Without Python's check of divisors, and with explicit loops, all loops over columns are vectors.
@njit(nogil=True, error_model="numpy")
def reduce_rows(
    first_row: int,
    last_row: int,
    walk: Any,
    sign: Any,
    initial: Any,
    first: Any,
    X: Floats,
    Y: Floats,
    source: Any,
) -> None:
    """Compute rows `first_row` to `last_row` - 1 of `Records.walk`.

    The sign -1 makes the maxima minima. With `initial` 1, an extremum of 0 has one more equal.
    """
    first_record, nz_start, nz_count, columns, output_rows = walk
    n_cols, zero, joins = X.shape[1], np.float32(0), first == 0
    two, one = np.int32(~2), np.int32(1)
    for row in range(first_row, last_row):
        y, sources, begun = Y[output_rows[row]], source[output_rows[row]], False
        for record in range(first_record[row], first_record[row + 1]):
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                x, column = X[columns[k]], np.int32(columns[k])
                if begun:
                    for c in range(n_cols):
                        a, b, before = x[c], y[c], sources[c]
                        replaces = (sign * a > sign * b) or (a != a)
                        more = two if before >= 0 else before - one
                        equals = more if (a == b) & joins else before
                        sources[c] = column if replaces else equals
                        y[c] = a if replaces else b
                else:
                    for c in range(n_cols):
                        y[c], sources[c] = x[c], column
                    begun = True
        for c in range(n_cols):
            if not begun:
                y[c], sources[c] = zero, np.int32(-1)
            elif y[c] != y[c]:
                sources[c] = np.int32(~1)
            elif initial and joins and y[c] == zero:
                sources[c] = two if sources[c] >= 0 else sources[c] - one


def _traffic(pattern: Pattern, widths: Widths, element_bytes: int) -> Traffic:
    """Count the bytes of SpMM, without the weights and with the output `source`."""
    streamed = traffic(pattern, widths, element_bytes).streamed
    streamed += FLOAT_BYTES * (widths["n_cols"] * pattern.n_rows - pattern.nnz)
    return Traffic.of_columns(pattern, element_bytes * widths["n_cols"], streamed)


def extremum(reduction: str) -> Operation:
    """Return the operation of a reduction, with the outputs Y and `source`.

    Y is 0 for a row without nonzeros. If an X of the row is NaN, so is Y, as in PyTorch. `source`
    says which of the row's nonzeros have X equal to Y: the column of the only one, or ~k, which is
    -1 - k, if there are k; ~1 if Y is NaN. With `first` 1, it is the first column of them.

    Parameters
    ----------
    reduction : {"max", "min"}
    """
    return Operation(
        name=f"spmm_{reduction}",
        formula=f"Y = the {reduction} of X over each row's nonzeros",
        widths={"n_cols": None},
        inputs=(
            Operand("X", (COLUMNS, "n_cols"), gathered=True),
            Operand("first", (), default=0.0, least=0, below=2),
        ),
        outputs=(Operand("Y", (ROWS, "n_cols")), _SOURCE),
        fastest="lane_groups",
        reference=partial(_reference, reduction),
        replay=partial(_replay, reduction),
        traffic=_traffic,
        reduction=reduction,
        independent="n_cols",
    )


def _gradient_reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Sum in float64; see `Operation.reference`. The bound is that of `spmm`."""
    X, Y, source = inputs["X"], inputs["Y"], np.asarray(inputs["source"]).astype(np.int32)
    rows, columns = np.repeat(np.arange(pattern.n_rows), pattern.degrees), pattern.column_indices
    dX, magnitude = np.zeros((2, *X.shape))
    parts = inputs["dY"] * shares(source).astype(np.float64)
    for c in range(X.shape[1]):
        is_source = (source[rows, c] == columns) | (source[rows, c] < -1)
        terms = ((X[columns, c] == Y[rows, c]) & is_source) * parts[rows, c]
        for sums, addends in ((dX, terms), (magnitude, np.abs(terms))):
            sums[:, c] = np.bincount(columns, addends, pattern.shape[1])
    degrees = np.bincount(columns, minlength=pattern.shape[1])
    return {"dX": (dX, EPS32 * (degrees[:, None] + 1) * magnitude)}


def _with_extrema(pattern: Pattern, inputs: Arrays) -> Arrays:
    """Replace a random Y by the maxima of X; else few elements of X would equal Y."""
    of_maxima = _reference("max", pattern, {**inputs, "first": 0})
    (Y, _), (source, _) = of_maxima.values()
    return {"Y": Y.astype(np.float32), "source": source.astype(np.int32)}


@njit(nogil=True)
def gradient_rows(
    first: int, last: int, walk: Any, X: Floats, Y: Floats, dY: Floats, source: Any, dX: Floats
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
                    code = source[i, c]
                    if X[j, c] == Y[i, c] and (code == j or code < -1):
                        dX[j, c] += dY[i, c] if code >= 0 else dY[i, c] / np.float32(~code)


@njit(nogil=True)
def _scatter_rows(
    first: int, last: int, walk: Any, X: Floats, Y: Floats, dY: Floats, source: Any, dX: Floats
) -> None:
    """Add to dX for rows `first` to `last` - 1 of `Records.walk` of the matrix."""
    first_record, nz_start, nz_count, columns, output_rows = walk
    for row in range(first, last):
        i = output_rows[row]
        for c in range(X.shape[1]):
            if source[i, c] >= 0:
                dX[source[i, c], c] += dY[i, c]
        for record in range(first_record[row], first_record[row + 1]):
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                j = columns[k]
                for c in range(X.shape[1]):
                    if source[i, c] < -1 and X[j, c] == Y[i, c]:
                        dX[j, c] += dY[i, c] / np.float32(~source[i, c])


def _gradient_replay(plan: Plan) -> Callable[[Arrays, Arrays], None]:
    names = ("X", "Y", "dY", "source", "dX")
    if not plan.strategy.by_sender:  # rows add to the same rows of dX: not in parallel
        return replay_rows(_scatter_rows, names, plan, threads=1)
    return replay_rows(gradient_rows, names, plan)


def _gradient_traffic(pattern: Pattern, widths: Widths, element_bytes: int) -> Traffic:
    """Count bytes: Y, dY and source gathered; X, dX, pointers and indices streamed."""
    row_bytes, (n_rows, n_columns) = FLOAT_BYTES * widths["n_cols"], pattern.shape
    streamed = FLOAT_BYTES * pattern.nnz + 2 * FLOAT_BYTES * (n_columns + 1)
    streamed += 2 * row_bytes * n_columns
    compulsory = streamed + 3 * row_bytes * int(np.count_nonzero(pattern.degrees))
    return Traffic(compulsory, 3 * row_bytes * pattern.nnz, streamed, n_rows, 3 * row_bytes)


SPMM_MAX, SPMM_MIN = extremum("max"), extremum("min")
#: The gradient of both: equal extrema get equal parts, as in PyTorch. Strategies that walk the
#: transposed matrix have no atomics: results are deterministic.
SPMM_EXTREMUM_GRADIENT = Operation(
    name="spmm_extremum_gradient",
    formula="dX[j] = the sum of the parts of dY[i] over j's nonzeros (i, j) with X[j] = Y[i]",
    widths={"n_cols": None},
    inputs=(
        Operand("X", (COLUMNS, "n_cols")),
        Operand("Y", (ROWS, "n_cols"), gathered=True),
        Operand("dY", (ROWS, "n_cols"), gathered=True),
        _SOURCE,
    ),
    outputs=(Operand("dX", (COLUMNS, "n_cols")),),
    fastest="lane_groups",
    reference=_gradient_reference,
    replay=_gradient_replay,
    traffic=_gradient_traffic,
    completed=_with_extrema,
    by_sender=True,
    independent="n_cols",
)
