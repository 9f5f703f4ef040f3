"""Small graphs of given degrees, for examples that are counted by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accelviz.errors import ArgumentError, check_fits, checked_integer
from accelviz.graph import MAX_SIDE, Graph


def graph_of_degrees(degrees: Sequence[int], name: str = "made", *, apart: bool = False) -> Graph:
    """Make a graph whose rows have these degrees: a row of degree d has columns 0 to d - 1.

    Parameters
    ----------
    degrees : sequence of int, shape (rows,)
    name : str
    apart : bool
        Whether each row's columns start after those of the row before.

    Raises
    ------
    ArgumentError
        If a degree is no integer of at least 0, or there is no memory for the nonzeros.
    """
    for degree in degrees:
        checked_integer("degrees", degree, MAX_SIDE, least=0, error=ArgumentError)
    pointers = np.cumsum([0, *degrees], dtype=np.int64)
    nnz = int(pointers[-1])
    check_fits("degrees", f"{nnz:,} nonzeros", 24 * nnz, "smaller degrees")
    columns = np.arange(nnz) - (0 if apart else np.repeat(pointers[:-1], degrees))
    shape = (len(degrees), int(columns.max(initial=-1)) + 1)
    values = np.ones(nnz, dtype=np.float32)
    return Graph(pointers, columns.astype(np.int32), values, shape, name)
