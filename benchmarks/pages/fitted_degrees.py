"""Fit degree distributions of Reddit and PRODUCTS, whose degrees are not available here.

Writes accelviz/datasets/degrees/fitted.npz. Twins with these degrees are called approximate.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import optimize

from accelviz.arrays import Longs
from accelviz.datasets import TABLE_ONE
from accelviz.errors import ArgumentError

#: File of the fitted degrees.
FITTED = Path(__file__).resolve().parents[2] / "accelviz" / "datasets" / "degrees" / "fitted.npz"
#: Publicly known maximum degrees.
LARGEST = {"PRODUCTS": 17_481, "Reddit": 21_657}
#: Range of the tail's shape, from nearly all rows at the maximum degree to nearly all at 1.
_SHAPES = (-60.0, 60.0)


def heavy_tailed_degrees(n_rows: int, nnz: int, max_degree: int) -> tuple[Longs, Longs]:
    """Fit a degree distribution with exactly the given nodes, edges and largest degree.

    Returns the distinct degrees, ascending, and the number of rows with each. Every row has at
    least one nonzero, and the last row has `max_degree`.

    The degree of the row at quantile u is `1 + (max - 1) * expm1(c t) / expm1(c t_last)` with
    `t = -log(1 - u)`: a generalised Pareto law whose parameter c is solved for the mean. The tail
    is a power law for c > 0, exponential for c = 0, and bounded for c < 0.
    """
    low, high = n_rows + max_degree - 1, n_rows * max_degree
    if n_rows < 1 or not max_degree >= 1 or not low <= nnz <= high:
        raise ArgumentError(
            "nnz",
            f"{nnz} nonzeros in {n_rows} rows of degree 1 to {max_degree}",
            f"at least 1 row, and {low} to {high} nonzeros",
        )
    t = -np.log1p(-(np.arange(n_rows) + 0.5) / n_rows)

    def fitted(shape: float) -> npt.NDArray[np.float64]:
        rise = np.expm1(shape * t) / np.expm1(shape * t[-1]) if shape else t / t[-1]
        return 1 + (max_degree - 1) * rise

    def excess(shape: float) -> float:
        return float(fitted(shape).sum()) - nnz

    low_shape, high_shape = (shape / t[-1] for shape in _SHAPES)
    if excess(low_shape) <= 0:
        shape = low_shape
    elif excess(high_shape) >= 0:
        shape = high_shape
    else:
        shape = optimize.brentq(excess, low_shape, high_shape, xtol=1e-14)
    row_degrees = np.rint(fitted(shape)).astype(np.int64)
    row_degrees[-1] = max_degree
    # Rounding errors are spread over rows that are not at a bound, one nonzero per row.
    while (due := nnz - int(row_degrees.sum())) != 0:
        rows = np.flatnonzero(row_degrees[:-1] < max_degree if due > 0 else row_degrees[:-1] > 1)
        chosen = rows[np.linspace(0, rows.size - 1, min(abs(due), rows.size)).astype(np.int64)]
        row_degrees[chosen] += np.sign(due)
    degrees, rows = np.unique(row_degrees, return_counts=True)
    return degrees, rows


def main() -> None:
    degrees = {}
    for name, largest in LARGEST.items():
        entry = TABLE_ONE[name.lower()]
        degrees[name] = np.stack(heavy_tailed_degrees(entry.nodes, entry.edges, largest))
    np.savez_compressed(FITTED, **degrees)


if __name__ == "__main__":
    main()
