"""Graph cards: the statistics of a graph that affect its mapping onto a GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accelviz import markup
from accelviz.graph import KINDS, Graph


@dataclass(frozen=True)
class GraphCard:
    """Statistics of one graph, printed as a table.

    Attributes
    ----------
    name, source, kind : str
        Attributes of the graph; `kind` distinguishes real graphs from synthetic ones.
    rows, columns, nonzeros : int
    density : float
        Nonzeros over rows times columns; 0 for a graph without rows or columns.
    average_degree : float
        Nonzeros per row.
    max_degree, zero_rows : int
        Largest degree, and number of rows without a nonzero.
    top_share : float
        Share of the nonzeros in the 1 % of rows (at least one) with the largest degrees.
    average_edge_span : float
        AES, Equation 3.4 of GNNAdvisor; NaN for a graph that is not square or has no nonzero.
    symmetric : bool
        Whether the matrix equals its transpose, including weights.
    weighted : bool
        Whether any weight differs from 1.
    """

    name: str
    source: str
    kind: str
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

    @classmethod
    def of(cls, graph: Graph) -> GraphCard:
        """Compute the card of a graph."""
        rows, columns = graph.shape
        degrees = np.sort(graph.degrees)[::-1]
        n_top = math.ceil(0.01 * rows)
        return cls(
            name=graph.name,
            source=graph.source,
            kind=graph.kind,
            rows=rows,
            columns=columns,
            nonzeros=graph.nnz,
            density=graph.nnz / (rows * columns) if rows and columns else 0.0,
            average_degree=graph.nnz / rows if rows else 0.0,
            max_degree=int(degrees[0]) if rows else 0,
            zero_rows=int(np.count_nonzero(degrees == 0)),
            top_share=int(degrees[:n_top].sum(dtype=np.int64)) / graph.nnz if graph.nnz else 0.0,
            average_edge_span=average_edge_span(graph),
            symmetric=is_symmetric(graph),
            weighted=bool((graph.values != 1).any()),
        )

    def lines(self) -> list[tuple[str, str]]:
        """Return the card as pairs (label, text)."""
        is_square = self.rows == self.columns
        if is_square:
            size = f"{self.rows:,}"
            symmetry = "symmetric" if self.symmetric else "not symmetric (directed)"
            span = f"{self.average_edge_span:,.0f} ids on average"
            if math.isnan(self.average_edge_span):
                span = "no edge"
        else:
            size, symmetry = f"{self.rows:,} x {self.columns:,}", "rectangular"
            span = "not square"
        degrees = f"{self.average_degree:,.1f} on average, {self.max_degree:,} at most"
        return [
            ("graph", self.name),
            ("kind", f"{self.kind}: {KINDS[self.kind]}"),
            ("source", self.source),
            ("nodes" if is_square else "rows x columns", size),
            ("edges", f"{self.nonzeros:,} nonzeros, {symmetry}"),
            ("weights", "edge weights" if self.weighted else "all one"),
            ("density", f"{self.density:.2g}"),
            ("degree", f"{degrees}, {self.zero_rows:,} rows without a nonzero"),
            ("top 1 % of rows", f"hold {self.top_share:.1%} of the nonzeros"),
            ("edge span (AES)", span),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{label:<15}  {text}" for label, text in self.lines())

    def _repr_html_(self) -> str:
        return markup.summary(self.name, self.lines()[1][1], self.lines()[2:])


def average_edge_span(graph: Graph) -> float:
    """Return the average distance of the two node ids of an edge (AES).

    Returns
    -------
    float
        Mean of `|row - column|` over the nonzeros, in ids. NaN for a graph without nonzeros, or
        that is not square.

    Notes
    -----
    Equation 3.4 of GNNAdvisor. A random order of n nodes has about n / 3.
    """
    if graph.shape[0] != graph.shape[1] or graph.nnz == 0:
        return math.nan
    rows = np.repeat(np.arange(graph.n_rows, dtype=np.int32), graph.degrees)
    return int(np.abs(rows - graph.column_indices).sum(dtype=np.int64)) / graph.nnz


def is_symmetric(graph: Graph) -> bool:
    """Return whether a graph equals its transpose, including weights."""
    if graph.shape[0] != graph.shape[1]:
        return False
    matrix = graph.adjacency
    transpose = matrix.T.tocsr()
    return all(
        np.array_equal(getattr(matrix, part), getattr(transpose, part))
        for part in ("indptr", "indices", "data")
    )
