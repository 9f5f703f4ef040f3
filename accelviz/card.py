"""The graph card: what one wants to know of a graph before mapping it onto a GPU."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numba
import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from accelviz.graph import Graph

#: What a graph stands for, and what that means.
KINDS = {
    "real": "a published graph as it is",
    "given": "a file or object of yours",
    "twin": "made up, with the exact degrees of a published graph",
    "approximate twin": "made up, with degrees fitted to a few published figures",
    "random": "made up by a random model",
}

#: The rows of largest degree whose share of the nonzeros the card names.
TOP_ROWS = 0.01


@dataclass(frozen=True)
class GraphCard:
    """Facts of one graph; prints as a table.

    Attributes
    ----------
    name, source, kind : str
        As the graph has them; `kind` tells real from twin and exact from approximate.
    what_kind : str
        `kind` in words.
    rows, columns, nonzeros : int
    density : float
        Nonzeros over rows times columns; 0 for a graph without either.
    average_degree : float
        Nonzeros a row.
    max_degree, zero_rows : int
        The largest degree, and the rows without a nonzero.
    top_share : float
        Share of the nonzeros in the 1 % of rows (at least one) with the largest degrees.
    average_edge_span : float
        AES, Equation 3.4 of GNNAdvisor; NaN for a graph that is not square or has no nonzero.
    symmetric : bool
        Whether it equals its transpose, weights included.
    weighted : bool
        Whether any weight differs from 1.
    """

    name: str
    source: str
    kind: str
    what_kind: str
    rows: int
    columns: int
    nonzeros: int
    density: float
    average_degree: float
    max_degree: int
    zero_rows: int
    top_share: float
    average_edge_span: float
    symmetric: bool
    weighted: bool

    def lines(self) -> list[tuple[str, str]]:
        """Return the card as pairs of a label and a text."""
        square = self.rows == self.columns
        span = self.average_edge_span
        none = "not square" if not square else "no edge"
        return [
            ("graph", self.name),
            ("kind", f"{self.kind}: {self.what_kind}"),
            ("source", self.source),
            ("nodes" if square else "rows x columns", self._size(square)),
            ("edges", f"{self.nonzeros:,} nonzeros, {self._symmetry(square)}"),
            ("weights", "edge weights" if self.weighted else "all one"),
            ("density", f"{self.density:.2g}"),
            (
                "degree",
                f"{self.average_degree:,.1f} on average, {self.max_degree:,} at most, "
                f"{self.zero_rows:,} rows without a nonzero",
            ),
            ("top 1 % of rows", f"hold {self.top_share:.1%} of the nonzeros"),
            ("edge span (AES)", none if math.isnan(span) else f"{span:,.0f} ids on average"),
        ]

    def _size(self, square: bool) -> str:
        return f"{self.rows:,}" if square else f"{self.rows:,} x {self.columns:,}"

    def _symmetry(self, square: bool) -> str:
        if not square:
            return "rectangular"
        return "symmetric" if self.symmetric else "not symmetric (directed)"

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self.lines())
        return "\n".join(f"{label:<{width}}  {text}" for label, text in self.lines())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(label)}</th>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for label, text in self.lines()
        )
        return f"<table>{rows}</table>"


def describe(graph: Graph) -> GraphCard:
    """Return the card of `graph`; see `GraphCard`."""
    rows, columns = graph.shape
    degrees = np.sort(graph.degrees)[::-1]
    top = math.ceil(TOP_ROWS * rows)
    return GraphCard(
        name=graph.name,
        source=graph.source,
        kind=graph.kind,
        what_kind=KINDS[graph.kind],
        rows=rows,
        columns=columns,
        nonzeros=graph.nnz,
        density=graph.nnz / (rows * columns) if rows and columns else 0.0,
        average_degree=graph.nnz / rows if rows else 0.0,
        max_degree=int(degrees[0]) if rows else 0,
        zero_rows=int(np.count_nonzero(degrees == 0)),
        top_share=int(degrees[:top].sum(dtype=np.int64)) / graph.nnz if graph.nnz else 0.0,
        average_edge_span=average_edge_span(graph),
        symmetric=is_symmetric(graph),
        weighted=bool((graph.values != 1).any()),
    )


def average_edge_span(graph: Graph) -> float:
    """Return how far apart the two ids of an edge are on average (AES).

    Parameters
    ----------
    graph : Graph

    Returns
    -------
    float
        Mean of `|row - column|` over the nonzeros, in ids. NaN for a graph that has no nonzero, or
        that is not square: its row and column ids do not compare.

    Notes
    -----
    Equation 3.4 of GNNAdvisor. A random order of n nodes has about n / 3.
    """
    if graph.shape[0] != graph.shape[1] or graph.nnz == 0:
        return math.nan
    return int(_total_span(graph.row_pointers, graph.column_indices)) / graph.nnz


def is_symmetric(graph: Graph) -> bool:
    """Return whether a graph equals its transpose, weights included."""
    if graph.shape[0] != graph.shape[1]:
        return False
    return bool(_equals_transpose(graph.row_pointers, graph.column_indices, graph.values))


@numba.njit(cache=True, nogil=True, parallel=True)
def _total_span(row_pointers: npt.NDArray[np.int64], column_indices: npt.NDArray[np.int32]) -> int:
    total = 0
    for row in numba.prange(row_pointers.size - 1):
        span = 0
        for k in range(row_pointers[row], row_pointers[row + 1]):
            span += abs(int(column_indices[k]) - row)
        total += span
    return total


@numba.njit(cache=True, nogil=True)
def _equals_transpose(
    row_pointers: npt.NDArray[np.int64],
    column_indices: npt.NDArray[np.int32],
    values: npt.NDArray[np.float32],
) -> bool:
    """Walk the nonzeros row by row: if symmetric, those of column `c` come in row `c`'s order."""
    following = row_pointers[:-1].copy()
    for row in range(row_pointers.size - 1):
        for k in range(row_pointers[row], row_pointers[row + 1]):
            column = column_indices[k]
            mirror = following[column]
            if (
                mirror == row_pointers[column + 1]
                or column_indices[mirror] != row
                or values[mirror] != values[k]
            ):
                return False
            following[column] += 1
    return True
