"""The AES rule of GNNAdvisor (section 3.5.1), which predicts whether renumbering pays off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from accelviz.card import average_edge_span
from accelviz.datasets import load_graph
from accelviz.errors import GraphError


@dataclass(frozen=True)
class RenumberingAdvice:
    """The AES rule applied to a graph; true in a boolean context if renumbering pays off.

    Attributes
    ----------
    average_edge_span : float
        AES (Equation 3.4 of GNNAdvisor), the mean of |row - column| over the nonzeros; NaN for a
        graph without nonzeros.
    root_span : float
        sqrt(AES).
    threshold : int
        floor(sqrt(nodes) / 100).
    pays : bool
        Whether `root_span > threshold`.
    """

    average_edge_span: float
    root_span: float
    threshold: int
    pays: bool

    def __bool__(self) -> bool:
        return self.pays

    def __str__(self) -> str:
        if math.isnan(self.average_edge_span):
            return "Renumbering does not pay: there is no edge."
        verdict, sign = ("likely", ">") if self.pays else ("unlikely", "<=")
        return (
            f"Renumbering is {verdict} to pay: an edge spans {self.average_edge_span:,.1f} ids on "
            f"average, and sqrt(AES) = {self.root_span:,.1f} {sign} {self.threshold} = "
            "floor(sqrt(nodes) / 100)."
        )


def renumbering_pays(graph: Any) -> RenumberingAdvice:
    """Predict whether a community order speeds up the graph in its current numbering.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        A square matrix.

    Returns
    -------
    RenumberingAdvice

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix, or not square.

    Notes
    -----
    GNNAdvisor's rule of thumb: `sqrt(AES) > floor(sqrt(N) / 100)`. Below 10,000 nodes the right
    side is 0, so the result is true for every graph with an edge between two nodes. The rule does
    not consider whether the graph has communities.

    Examples
    --------
    >>> import accelviz.ordering
    >>> print(accelviz.ordering.renumbering_pays("pubmed"))  # doctest: +NORMALIZE_WHITESPACE
    Renumbering is likely to pay: an edge spans 6,526.1 ids on average,
    and sqrt(AES) = 80.8 > 1 = floor(sqrt(nodes) / 100).
    """
    graph = load_graph(graph)
    rows, columns = graph.shape
    if rows != columns:
        raise GraphError("graph", f"{rows} x {columns} is not square", "a square matrix")
    span = average_edge_span(graph)
    root = math.sqrt(span)
    threshold = math.isqrt(rows) // 100  # equals floor(sqrt(rows) / 100)
    return RenumberingAdvice(span, root, threshold, root > threshold)
