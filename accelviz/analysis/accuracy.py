"""The float64 oracle, and the error bound that every result is held to."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.graph import Graph

EPS32 = float(np.finfo(np.float32).eps)


class Oracle:
    """`A @ X` in float64 by SciPy, and how far float32 may be from it.

    Parameters
    ----------
    graph : Graph
    X : array of float32, shape (graph.shape[1], n_cols)
        Its columns are independent, so the oracle of `X` serves `X[:, :d]` for every d.

    Notes
    -----
    A sum of deg(i) products, each rounded, in any order, is off by at most
    deg(i) * u * (|A| |X|)_ij up to terms of u^2, with u = eps32 / 2 (Higham, Accuracy and
    Stability of Numerical Algorithms, section 3.1). The bound here takes eps32 in place of u.
    """

    def __init__(self, graph: Graph, X: npt.NDArray[np.float32]) -> None:
        A = graph.adjacency.astype(np.float64)
        self.expected: npt.NDArray[np.float64] = A @ X.astype(np.float64)
        magnitude = abs(A) @ np.abs(X, dtype=np.float64)
        self.bound: npt.NDArray[np.float64] = graph.degrees[:, None] * EPS32 * magnitude

    def error(self, Y: npt.NDArray[Any]) -> float:
        """Return the largest error of `Y` in units of the bound: at most 1 is correct.

        A NaN, an infinity or a value where the bound is 0 (a row without a nonzero) that is not
        exactly right gives infinity.
        """
        expected, bound = self.expected[:, : Y.shape[1]], self.bound[:, : Y.shape[1]]
        distance = np.abs(Y - expected)
        if not np.isfinite(Y).all() or (distance[bound == 0] != 0).any():
            return float("inf")
        ratio = np.divide(distance, bound, out=np.zeros_like(distance), where=bound > 0)
        return float(ratio.max(initial=0.0))
