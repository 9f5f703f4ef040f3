"""The float64 oracle, and the error bound that every result is held to."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz.executors.base import is_device_array
from accelviz.graph import Graph

EPS32 = float(np.finfo(np.float32).eps)
#: Less than any float32, and what a float32 over it is more than.
_TINY, _TOO_LARGE = 1e-300, 1e200
#: Nonzeros of a piece that one thread multiplies at a time.
_PIECE_NONZEROS = 1 << 20


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
        shape = (graph.n_rows, X.shape[1])
        self.expected: npt.NDArray[np.float64] = np.empty(shape)
        self.bound: npt.NDArray[np.float64] = np.empty(shape)
        wide = X.astype(np.float64)
        magnitudes = np.abs(wide)
        pointers = graph.row_pointers

        def multiply(rows: tuple[int, int]) -> None:
            first, last = rows
            part = slice(pointers[first], pointers[last])
            values = graph.values[part].astype(np.float64)
            index = graph.column_indices[part], pointers[first : last + 1] - pointers[first]
            size = (last - first, graph.shape[1])
            self.expected[first:last] = sparse.csr_array((values, *index), shape=size) @ wide
            absolute = sparse.csr_array((np.abs(values), *index), shape=size) @ magnitudes
            self.bound[first:last] = graph.degrees[first:last, None] * EPS32 * absolute

        # SciPy lets other threads run while it multiplies.
        pieces = max(1, graph.nnz // _PIECE_NONZEROS)
        cuts = np.searchsorted(pointers, np.linspace(0, graph.nnz, pieces + 1)).tolist()
        cuts[0], cuts[-1] = 0, graph.n_rows
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            list(threads.map(multiply, pairwise(cuts)))

    def moved(self, to_device: Callable[[npt.NDArray[Any]], Any]) -> Oracle:
        """Return a copy whose arrays lie on a device, to check results where they are."""
        moved = copy.copy(self)
        moved.expected, moved.bound = to_device(self.expected), to_device(self.bound)
        return moved

    def error(self, Y: Any) -> float:
        """Return the largest error of `Y` in units of the bound: at most 1 is correct.

        A NaN, an infinity or a value where the bound is 0 (a row without a nonzero) that is not
        exactly right gives infinity.

        Parameters
        ----------
        Y : array, shape (n_rows, at most the oracle's columns)
            On the host or on the device; an oracle that was moved wants it on the device.
        """
        if is_device_array(Y) and not is_device_array(self.expected):
            Y = Y.get()
        columns = slice(0, Y.shape[1])
        expected, bound = self.expected[:, columns], self.bound[:, columns]
        if not is_device_array(Y):
            return float(_largest_error(Y, expected, bound))
        if Y.size == 0:
            return 0.0
        # Where the bound is 0, any distance but 0 is to be beyond all bounds.
        ratio = abs(Y - expected) / (bound + (bound == 0) * _TINY)
        worst = float(ratio.max())
        return worst if worst < _TOO_LARGE else float("inf")


@numba.njit(cache=True, nogil=True, parallel=True)
def _largest_error(
    Y: npt.NDArray[Any], expected: npt.NDArray[np.float64], bound: npt.NDArray[np.float64]
) -> float:
    worst = 0.0
    for i in numba.prange(Y.shape[0]):
        here = 0.0
        for j in range(Y.shape[1]):
            distance = abs(np.float64(Y[i, j]) - expected[i, j])
            if distance == 0.0:
                continue
            # NaN fails every comparison, so what is not surely fine is infinitely wrong.
            inside = distance < np.inf and bound[i, j] > 0.0
            here = max(here, distance / bound[i, j]) if inside else np.inf
        worst = max(worst, here)
    return worst
