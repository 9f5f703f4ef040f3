"""SpMM with a maximum or minimum in place of the sum: `Y[i] = max of X[j]` over i's neighbors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numba
import numpy as np

from accelviz.arrays import Floats
from accelviz.graph import Pattern
from accelviz.plans import Operand, Operation, Plan
from accelviz.plans.operation import COLUMNS, EPS32, FLOAT_BYTES, ROWS, Arrays, Traffic
from accelviz.plans.plan import Widths
from accelviz.strategies.blocks import RowStrategy
from accelviz.strategies.exact import replay_rows
from accelviz.strategies.spmm.operation import traffic

#: Of a reduction: NumPy's function, the kernel's functor, and the sign that makes it a maximum.
REDUCTIONS = {"max": (np.maximum, "Largest", 1), "min": (np.minimum, "Least", -1)}


def _reference(reduction: str, pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Compare, which rounds nothing; see `Operation.reference`."""
    X, filled = inputs["X"], np.flatnonzero(pattern.degrees)
    Y, share = np.zeros((2, pattern.n_rows, X.shape[1]))
    starts, degrees = pattern.row_pointers[filled], pattern.degrees[filled]
    for c in range(X.shape[1] if filled.size else 0):
        x = X[pattern.column_indices, c]
        Y[filled, c] = REDUCTIONS[reduction][0].reduceat(x, starts)
        equal = x == np.repeat(Y[filled, c], degrees)
        share[filled, c] = 1 / np.add.reduceat(equal, starts, dtype=np.int64)
    return {"Y": (Y, np.zeros_like(Y)), "share": (share, EPS32 * share)}


def _replay(reduction: str, plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Compare along the records of rows; see `Operation.replay`."""
    sign = np.float32(REDUCTIONS[reduction][2])
    return replay_rows(_reduce_rows, ("X", "Y", "share"), plan, sign)


@numba.njit(cache=True, nogil=True)
def _reduce_rows(
    first: int, last: int, walk: Any, sign: Any, X: Floats, Y: Floats, share: Floats
) -> None:
    first_record, nz_start, nz_count, columns, output_rows = walk
    for row in range(first, last):
        y, count, begun = Y[output_rows[row]], share[output_rows[row]], False
        y[:], count[:] = 0, 0
        for record in range(first_record[row], first_record[row + 1]):
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                x = X[columns[k]]
                for c in range(X.shape[1]):
                    if not begun or sign * x[c] > sign * y[c] or x[c] != x[c]:
                        y[c], count[c] = x[c], 1
                    elif x[c] == y[c]:
                        count[c] += 1
                begun = True
        if begun:
            count[:] = np.float32(1) / count


def _traffic(pattern: Pattern, widths: Widths, element_bytes: int) -> Traffic:
    """Count bytes as of a sum, without the weights and with `share` beside Y."""
    streamed = traffic(pattern, widths, element_bytes).streamed
    streamed += FLOAT_BYTES * (widths["n_cols"] * pattern.n_rows - pattern.nnz)
    return Traffic.of_columns(pattern, element_bytes * widths["n_cols"], streamed)


def extremum(reduction: str) -> Operation:
    """Return the operation of a reduction.

    Its outputs are Y, zero for a row without a nonzero, and `share`: one over how many neighbors
    have the extremum. A NaN among the neighbors is one of Y, as in PyTorch.

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
        fastest="row_warp",
        reference=partial(_reference, reduction),
        replay=partial(_replay, reduction),
        traffic=_traffic,
        reduction=reduction,
        independent="n_cols",
    )


def _gradient_reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Add up in float64; see `Operation.reference`. Sums are off as those of `spmm`."""
    X, Y, dY = inputs["X"], inputs["Y"], inputs["dY"]
    rows = np.repeat(np.arange(pattern.n_rows), pattern.degrees)
    dX, magnitude = np.zeros((2, *X.shape))
    for c in range(X.shape[1]):
        terms = (X[pattern.column_indices, c] == Y[rows, c]) * dY[rows, c]
        for sums, part in ((dX, terms), (magnitude, np.abs(terms))):
            sums[:, c] = np.bincount(pattern.column_indices, part, pattern.shape[1])
    degrees = np.bincount(pattern.column_indices, minlength=pattern.shape[1])
    return {"dX": (dX, EPS32 * degrees[:, None] * magnitude)}


def _with_extrema(pattern: Pattern, inputs: Arrays) -> Arrays:
    """Put the maxima of X in place of a random Y, which has nothing in common with X."""
    (Y, _), _ = _reference("max", pattern, inputs).values()
    return {"Y": Y.astype(np.float32)}


@numba.njit(cache=True, nogil=True)
def _gradient_rows(
    first: int, last: int, walk: Any, X: Floats, Y: Floats, dY: Floats, dX: Floats
) -> None:
    """Add up along the records of columns."""
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
    """Count bytes: Y and dY gathered, of a nonzero its row, of a column X and dX."""
    row, (n_rows, n_columns) = FLOAT_BYTES * widths["n_cols"], pattern.shape
    streamed = FLOAT_BYTES * pattern.nnz + 2 * FLOAT_BYTES * (n_columns + 1) + 2 * row * n_columns
    compulsory = streamed + 2 * row * int(np.count_nonzero(pattern.degrees))
    return Traffic(compulsory, 2 * row * pattern.nnz, streamed, n_rows, 2 * row)


SPMM_MAX, SPMM_MIN = extremum("max"), extremum("min")
#: The gradient of both. dY has to be multiplied with `share` beforehand, so that neighbors that are
#: equal get an equal part, as in PyTorch. It is gathered along the transposed matrix, without
#: atomics: the result has the same bits each time.
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
    fastest="row_warp",
    reference=_gradient_reference,
    replay=partial(replay_rows, _gradient_rows, ("X", "Y", "dY", "dX")),
    traffic=_gradient_traffic,
    completed=_with_extrema,
    by_sender=True,
    independent="n_cols",
)


class RowWarp(RowStrategy):
    """A warp has a row, or a column, its lanes neighboring columns of the features."""

    name = "row_warp"
    summary = "a warp a row, lanes side by side in the columns"
    file = "spmm/extrema.cu"

    def __init__(self, operation: Operation) -> None:
        self.operation, self.entry = operation, "extremum_gradient"
        if operation.reduction != "sum":
            self.entry = f"extremum<{REDUCTIONS[operation.reduction][1]}>"

    def lanes(self, widths: Widths) -> None:
        """Return None: not known."""
        return
