"""Graphs that are their degrees and nothing else, for counting by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accelviz.graph import Graph


def graph_of_degrees(degrees: Sequence[int], name: str = "made") -> Graph:
    """Make a graph whose rows have these degrees; a row of degree d has the columns 0 to d - 1.

    Parameters
    ----------
    degrees : sequence of int, shape (rows,)
    name : str
    """
    pointers = np.concatenate([[0], np.cumsum(degrees, dtype=np.int64)])
    columns = np.concatenate([np.arange(degree, dtype=np.int32) for degree in degrees])
    shape = (len(degrees), max(degrees))
    return Graph(pointers, columns, np.ones(columns.size, dtype=np.float32), shape, name)
