"""`Y = A X`: a sparse matrix times a dense one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from accelviz.arrays import Ints
from accelviz.graph import Pattern
from accelviz.plans import Operand, Operation, Plan
from accelviz.plans.operation import COLUMNS, EPS32, FLOAT_BYTES, NONZEROS, ROWS, Arrays, Traffic
from accelviz.strategies.exact import by_rows, product, replay_rows
from accelviz.strategies.spmm.row_sums import sum_csr, sum_rows


def reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Multiply in float64 by SciPy; see `Operation.reference`.

    Notes
    -----
    The error of a float32 sum of deg(i) rounded products, in any order, is at most
    deg(i) * u * (|A| |X|)_ij plus terms of order u^2, with u = eps32 / 2 (Higham, Accuracy and
    Stability of Numerical Algorithms, section 3.1). The bound here has eps32 in place of u.
    """
    X, weights = inputs["X"], inputs["values"]
    magnitudes = np.abs(X)
    expected, bound = np.empty((2, pattern.n_rows, X.shape[1]))

    def multiply(piece: Pattern, rows: slice, nonzeros: slice) -> None:
        values = weights[nonzeros]
        expected[rows] = product(piece, values, X)
        bound[rows] = product(piece, np.abs(values), magnitudes)
        bound[rows] *= EPS32 * piece.degrees[:, None]

    by_rows(pattern, multiply)
    return {"Y": (expected, bound)}


def terms(pattern: Pattern, sizes: Mapping[str, int]) -> Ints:
    """Count the products of each row of Y, shape (n_rows, 1)."""
    return pattern.degrees[:, None]


def traffic(pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count bytes: 4 for a value, a column index and an element of Y, 8 for a row pointer."""
    streamed = 2 * FLOAT_BYTES * pattern.nnz + 2 * FLOAT_BYTES * (pattern.n_rows + 1)
    streamed += FLOAT_BYTES * widths["n_cols"] * pattern.n_rows
    return Traffic.of_columns(pattern, element_bytes * widths["n_cols"], streamed)


def replay(plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Add the products of every record of the workload to its row; see `Operation.replay`."""
    return replay_rows(sum_rows, ("values", "X", "Y"), plan, of_csr=sum_csr)


SPMM = Operation(
    name="spmm",
    formula="Y = A X",
    widths={"n_cols": None},
    inputs=(
        Operand("values", (NONZEROS,), weights=True),
        Operand("X", (COLUMNS, "n_cols"), gathered=True),
    ),
    outputs=(Operand("Y", (ROWS, "n_cols")),),
    fastest="lane_groups",
    reference=reference,
    replay=replay,
    traffic=traffic,
    terms=terms,
    independent="n_cols",
    fastest_on_cpu="graphblast",
)
