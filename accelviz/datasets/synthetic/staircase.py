"""Small graphs of given degrees, for examples that are counted by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accelviz.graph import Graph


def graph_of_degrees(degrees: Sequence[int], name: str = "made", *, apart: bool = False) -> Graph:
    """Make a graph whose rows have these degrees: a row of degree d has columns 0 to d - 1.

    Parameters
    ----------
    degrees : sequence of int, shape (rows,)
    name : str
    apart : bool
        Whether each row's columns start after those of the row before.
    """
    pointers = np.concatenate([[0], np.cumsum(degrees, dtype=np.int64)])
    first = pointers if apart else np.zeros_like(pointers)
    runs = [start + np.arange(d, dtype=np.int32) for start, d in zip(first, degrees, strict=False)]
    columns = np.concatenate(runs).astype(np.int32)
    shape = (len(degrees), int(columns.max(initial=-1)) + 1)
    return Graph(pointers, columns, np.ones(columns.size, dtype=np.float32), shape, name)
