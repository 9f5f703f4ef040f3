"""When renumbering pays: the AES rule of GNNAdvisor (section 3.5.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from accelviz.card import average_edge_span
from accelviz.datasets import load_graph
from accelviz.errors import GraphError


@dataclass(frozen=True)
class RenumberingAdvice:
    """The AES rule applied to a graph; true if renumbering is likely to pay.

    Attributes
    ----------
    average_edge_span : float
        AES, Equation 3.4 of GNNAdvisor, in ids; NaN for a graph without a nonzero.
    root_span : float
        Its square root, which the rule compares.
    threshold : int
        The square root of the number of nodes over 100, rounded down.
    pays : bool
        Whether `root_span` is above `threshold`.
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
    """Say whether a community order is likely to speed this graph up, as it is numbered now.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        Square.

    Returns
    -------
    RenumberingAdvice

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix, or not square.

    Notes
    -----
    GNNAdvisor's rule of thumb: `sqrt(AES) > floor(sqrt(N) / 100)`. The right side is 0 below 10,000
    nodes, where it says yes to every graph with an edge between two nodes. The rule looks at how
    the graph is numbered, not at whether it has communities.

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
    threshold = math.isqrt(rows) // 100  # exact: rounding down twice is rounding down once
    return RenumberingAdvice(span, root, threshold, root > threshold)
